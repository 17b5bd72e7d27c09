//! Messages on their way. Pure: it says what to send when, and is told what became of it.
//!
//! A message is tried until it is delivered, refused for good, or a day old. One at a time goes to a place, the oldest
//! first. The number of messages is bounded for each place and in all; beyond it the oldest of the place, or the new one,
//! is given up, which the list of deliveries shows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use drumtower_core::model::WallMs;
use serde::{Deserialize, Serialize};

use super::message::Message;
use super::target::{CHANNELS, Place};

/// Messages that wait for one place, and for all together.
pub const PLACE: usize = 20;
pub const ALL: usize = 1000;
/// Deliveries that are remembered after their end.
pub const RECENT: usize = 200;
/// A message is not tried for longer.
const TRIED_FOR_MS: i64 = 24 * 3_600_000;
const FIRST_WAIT_MS: i64 = 5000;
const LONGEST_WAIT_MS: i64 = 3_600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is being tried.
    Pending,
    Delivered,
    /// It was refused for good, or tried for a day.
    Failed,
    /// There were too many messages.
    Dropped,
}

/// What became of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// It may work later.
    Again(String),
    /// It never will.
    Never(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub(crate) message: Message,
    pub state: State,
    pub attempts: u32,
    pub next: Option<WallMs>,
    pub updated: WallMs,
    pub error: Option<String>,
    #[serde(skip)]
    sending: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outbox {
    /// Oldest first.
    pending: VecDeque<Delivery>,
    recent: VecDeque<Delivery>,
    #[serde(skip)]
    pub totals: Totals,
}

/// Since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals(BTreeMap<(&'static str, &'static str), u64>);

impl Totals {
    fn count(&mut self, channel: &'static str, state: State) {
        *self.0.entry((channel, state.as_str())).or_default() += 1;
    }

    /// By channel and state, also what never was.
    pub fn get(&self) -> impl Iterator<Item = ((&'static str, &'static str), u64)> {
        let ends = [State::Delivered, State::Failed, State::Dropped];
        let keys = CHANNELS
            .into_iter()
            .flat_map(move |channel| ends.map(|state| (channel, state.as_str())));
        keys.map(|key| (key, self.0.get(&key).copied().unwrap_or(0)))
    }
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

impl Outbox {
    /// Takes a message, unless it is known.
    pub fn push(&mut self, message: Message, now: WallMs) {
        let known = |it: &Delivery| it.message.id == message.id;
        if self.pending.iter().any(known) || self.recent.iter().any(known) {
            return;
        }
        let of_place = |it: &Delivery| it.message.place == message.place;
        let crowded = self.pending.iter().filter(|it| of_place(it)).count() >= PLACE;
        let oldest = self
            .pending
            .iter()
            .position(|it| of_place(it) && !it.sending);
        let delivery = Delivery {
            message: message.clone(),
            state: State::Pending,
            attempts: 0,
            next: Some(now),
            updated: now,
            error: None,
            sending: false,
        };
        match oldest {
            Some(index) if crowded => {
                if let Some(oldest) = self.pending.remove(index) {
                    self.give_up(oldest, now);
                }
            }
            _ if crowded || self.pending.len() >= ALL => return self.give_up(delivery, now),
            _ => {}
        }
        self.pending.push_back(delivery);
    }

    fn give_up(&mut self, mut delivery: Delivery, now: WallMs) {
        let why =
            format!("given up: more than {PLACE} messages wait for this target, or {ALL} in all");
        delivery.error.get_or_insert(why);
        self.close(delivery, State::Dropped, now);
    }

    fn close(&mut self, mut delivery: Delivery, state: State, now: WallMs) {
        delivery.state = state;
        delivery.next = None;
        delivery.updated = now;
        delivery.sending = false;
        self.totals
            .count(delivery.message.place.target.channel(), state);
        self.recent.push_back(delivery);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    /// What to send now, at most so many. Each must be given to [`Outbox::finished`].
    pub fn start(&mut self, now: WallMs, most: usize) -> Vec<Message> {
        let mut busy: BTreeSet<Place> = BTreeSet::new();
        let sending = self.pending.iter().filter(|it| it.sending);
        busy.extend(sending.map(|it| it.message.place.clone()));
        let mut messages = Vec::new();
        for delivery in &mut self.pending {
            if messages.len() == most {
                break;
            }
            // An older message to the same place goes first, also while it waits for its next try.
            if busy.insert(delivery.message.place.clone())
                && delivery.next.is_some_and(|next| next <= now)
            {
                delivery.sending = true;
                messages.push(delivery.message.clone());
            }
        }
        messages
    }

    /// What became of a try.
    pub fn finished(&mut self, id: &str, outcome: Outcome, now: WallMs) {
        let Some(index) = self.pending.iter().position(|it| it.message.id == id) else {
            return;
        };
        let Some(mut delivery) = self.pending.remove(index) else {
            return;
        };
        delivery.attempts += 1;
        delivery.sending = false;
        delivery.updated = now;
        match outcome {
            Outcome::Delivered => {
                delivery.error = None;
                self.close(delivery, State::Delivered, now);
            }
            Outcome::Never(error) => {
                delivery.error = Some(error);
                self.close(delivery, State::Failed, now);
            }
            Outcome::Again(error) if now.since(delivery.message.created) >= TRIED_FOR_MS => {
                delivery.error = Some(format!("tried for a day: {error}"));
                self.close(delivery, State::Failed, now);
            }
            Outcome::Again(error) => {
                delivery.error = Some(error);
                delivery.next = Some(now.plus(wait_ms(delivery.attempts)));
                self.pending.insert(index, delivery);
            }
        }
    }

    /// The newest first: those under way, then those that ended.
    pub fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.pending.iter().rev().chain(self.recent.iter().rev())
    }

    pub fn pending(&self) -> usize {
        self.pending.len()
    }
}

fn wait_ms(attempts: u32) -> i64 {
    let doubled = FIRST_WAIT_MS.checked_shl(attempts.saturating_sub(1).min(20));
    doubled.map_or(LONGEST_WAIT_MS, |ms| ms.min(LONGEST_WAIT_MS))
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
