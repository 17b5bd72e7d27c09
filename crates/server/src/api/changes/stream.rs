//! One stream: gathers facts, folds them, and sends what its rate allows, until the client, its token or the server goes.
//!
//! A client that does not read holds back only itself: facts it has no room for stay in the tap's ring, and go from there.

use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::Edge;
use super::Place;
use super::id::Ids;
use super::message::Writer;
use super::window::{Message, Window};
use super::wish::{Resume, Wish};
use crate::auth::Principal;
use crate::driver::tap::{Heard, Subscription};

/// Between two flushes at least.
const FLUSH_EVERY: Duration = Duration::from_millis(50);
/// After a silence so long there is a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A client that does not take what it is sent for so long is gone, and its place is someone else's.
const SEND_MAY_TAKE: Duration = Duration::from_secs(30);

pub struct Stream {
    edge: Edge,
    wish: Wish,
    facts: Subscription,
    window: Window,
    out: mpsc::Sender<Bytes>,
    /// The last fact that is folded into what was sent, and into what will be.
    sent: u64,
    heard: u64,
    /// Messages that may be sent now; below zero, none until it is refilled.
    budget: f64,
    refilled: Instant,
    flushed: Instant,
    /// It is bound to a namespace: how much happens in the others is not for it to know.
    bound: bool,
    _place: Place,
}

impl Stream {
    pub fn new(
        edge: Edge,
        wish: Wish,
        resume: Resume,
        out: mpsc::Sender<Bytes>,
        bound: bool,
        place: Place,
    ) -> Self {
        let (tap, interest) = (edge.handle.tap(), wish.interest());
        let mut window = Window::default();
        let facts = match resume {
            Resume::Now => tap.subscribe_to_all(interest),
            Resume::After(seq) => tap.subscribe_after(seq, interest),
            Resume::OtherLife => {
                window.restarted();
                tap.subscribe_to_all(interest)
            }
        };
        let (heard, now) = (facts.place(), Instant::now());
        Self {
            edge,
            budget: f64::from(wish.rate),
            wish,
            facts,
            window,
            out,
            sent: heard,
            heard,
            refilled: now,
            flushed: now,
            bound,
            _place: place,
        }
    }

    /// Tells until the client, its token or the server goes.
    pub async fn run(self, principal: Principal) {
        let (edge, out) = (self.edge.clone(), self.out.clone());
        let mut tokens = edge.authority.changes();
        let mut telling = std::pin::pin!(self.tell());
        loop {
            tokio::select! {
                () = &mut telling => return,
                _ = tokens.changed() => if !edge.authority.still_knows(&principal) { return },
                () = out.closed() => return,
                () = edge.stopped() => return,
            }
        }
    }

    async fn tell(mut self) {
        let ids = self.edge.streams.ids.clone();
        let mut greeting = Writer::new(&ids);
        greeting.ready(&self.edge.server, self.wish.rate, self.sent);
        let mut going = self.send(greeting).await;
        while going {
            if self.window.is_empty() {
                let silence = HEARTBEAT.saturating_sub(self.flushed.elapsed());
                match tokio::time::timeout(silence, self.facts.next()).await {
                    Ok(Some(heard)) => self.fold(heard),
                    Ok(None) => return,
                    Err(_) => {}
                }
            }
            tokio::time::sleep_until(self.flushed + FLUSH_EVERY).await;
            self.gather().await;
            going = self.flush(&ids).await;
        }
    }

    fn fold(&mut self, heard: Heard) {
        match heard {
            Heard::Missed(count) => self.window.missed(count),
            Heard::Facts(chunk) => {
                let wanted = chunk.facts.iter().filter(|fact| self.wish.wants(fact));
                for fact in wanted {
                    self.window.add(fact);
                }
            }
        }
        self.heard = self.facts.place();
    }

    /// Folds what is there, and lets others have their turn meanwhile.
    async fn gather(&mut self) {
        while let Some(heard) = self.facts.ready() {
            self.fold(heard);
            tokio::task::consume_budget().await;
        }
    }

    /// Sends what there is as far as the rate allows; false when nobody takes it.
    async fn flush(&mut self, ids: &Ids) -> bool {
        self.refill();
        let mut text = Writer::new(ids);
        if self.window.is_empty() {
            if self.flushed.elapsed() < HEARTBEAT {
                return true;
            }
            text.heartbeat(self.heard);
        } else if self.budget < 1.0 {
            // What comes meanwhile is folded, so that it does not run out of the ring.
            tokio::time::sleep(FLUSH_EVERY).await;
            return true;
        } else {
            let mut messages = self.window.take(self.budget as usize);
            if self.bound {
                messages.iter_mut().for_each(Message::leave_out_missed);
            }
            self.budget -= messages.len() as f64;
            let last = messages.len() - 1;
            for (index, message) in messages.iter().enumerate() {
                // Whoever is cut off within a flush gets the whole of it again.
                let place = if index == last { self.heard } else { self.sent };
                text.message(message, place);
            }
        }
        self.sent = self.heard;
        self.send(text).await
    }

    fn refill(&mut self) {
        let rate = f64::from(self.wish.rate);
        let earned = self.refilled.elapsed().as_secs_f64() * rate;
        self.budget = (self.budget + earned).min(rate);
        self.refilled = Instant::now();
    }

    async fn send(&mut self, text: Writer<'_>) -> bool {
        let sent = hand_over(&self.out, Bytes::from(text.take())).await;
        self.flushed = Instant::now();
        sent
    }
}

/// False when nobody takes it.
async fn hand_over(out: &mpsc::Sender<Bytes>, piece: Bytes) -> bool {
    let sent = tokio::time::timeout(SEND_MAY_TAKE, out.send(piece)).await;
    matches!(sent, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (out, mut pieces) = mpsc::channel(1);
        assert!(hand_over(&out, Bytes::from("1")).await);
        let began = Instant::now();
        assert!(!hand_over(&out, Bytes::from("2")).await);
        assert_eq!(began.elapsed(), SEND_MAY_TAKE);
        pieces.recv().await;
        assert!(hand_over(&out, Bytes::from("3")).await, "one that reads");
        drop(pieces);
        assert!(!hand_over(&out, Bytes::from("4")).await);
    }
}
