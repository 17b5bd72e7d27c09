//! Performs effects after their commit: answers callers, writes to workers' streams, wakes those who wait.
//!
//! It decides nothing. Tickets and streams are its only state, and both are dropped with the life of the loop. Callers may be
//! gone before they are answered: which ones is told to the engine, once.

use std::collections::BTreeMap;

use drumtower_core::engine::{Effect, StreamId, Ticket};
use tokio::sync::{mpsc, oneshot, watch};

use super::handle::{Answer, StreamMessage, Unavailable, Watchers};

pub(super) struct Performer {
    tickets: BTreeMap<Ticket, oneshot::Sender<Answer>>,
    next_ticket: u64,
    /// Callers that could not be answered.
    gone: Vec<Ticket>,
    streams: BTreeMap<StreamId, mpsc::Sender<StreamMessage>>,
    watchers: Watchers,
    tokens: watch::Sender<u64>,
    settings: watch::Sender<u64>,
}

impl Performer {
    pub(super) fn new(
        watchers: Watchers,
        tokens: watch::Sender<u64>,
        settings: watch::Sender<u64>,
    ) -> Self {
        Self {
            tickets: BTreeMap::new(),
            next_ticket: 0,
            gone: Vec::new(),
            streams: BTreeMap::new(),
            watchers,
            tokens,
            settings,
        }
    }

    /// Remembers a caller; the ticket stands for it in the engine.
    pub(super) fn ticket(&mut self, answer: oneshot::Sender<Answer>) -> Ticket {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.tickets.insert(ticket, answer);
        ticket
    }

    /// Looks which callers wait no more.
    pub(super) fn look_for_callers(&mut self) {
        let gone = &mut self.gone;
        self.tickets.retain(|ticket, caller| {
            // Asked once: who hangs up between two questions would be let go and never told of.
            let waits = !caller.is_closed();
            if !waits {
                gone.push(*ticket);
            }
            waits
        });
    }

    /// Callers that are gone and have not been answered.
    pub(super) fn take_gone(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.gone)
    }

    /// The callers of these tickets have to ask again: nothing was done for them.
    pub(super) fn ask_again(&mut self, tickets: &[Ticket], why: &Unavailable) {
        for ticket in tickets {
            if let Some(answer) = self.tickets.remove(ticket) {
                let _ = answer.send(Err(why.clone()));
            }
        }
    }

    pub(super) fn opened(&mut self, stream: StreamId, out: mpsc::Sender<StreamMessage>) {
        self.streams.insert(stream, out);
    }

    pub(super) fn closed(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }

    pub(super) fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Reply { ticket, reply } => self.answer(ticket, Ok(reply)),
                Effect::Send { stream, message } => {
                    self.send(stream, StreamMessage::Message(message));
                }
                Effect::Close {
                    stream,
                    reason,
                    again,
                } => self.close(stream, reason, again),
                Effect::RunChanged { run } => self.watchers.changed(run),
                Effect::Alarm { text } => tracing::error!("{text}"),
                Effect::TokensChanged => self.tokens.send_modify(|count| *count += 1),
                Effect::SettingsChanged => self.settings.send_modify(|count| *count += 1),
            }
        }
    }

    /// The callers among these effects learn that nobody knows whether their change was made.
    pub(super) fn outcome_unknown(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Reply { ticket, .. } = effect {
                self.answer(ticket, Err(Unavailable::OutcomeUnknown));
            }
        }
    }

    /// Others may have changed what is not known here.
    pub(super) fn look_again(&mut self) {
        self.watchers.changed_all();
        self.tokens.send_modify(|count| *count += 1);
        self.settings.send_modify(|count| *count += 1);
    }

    /// Ends a life of the loop: nothing that was not committed happened, and workers dial again.
    pub(super) fn drop_all(&mut self, why: &Unavailable) {
        for (_, answer) in std::mem::take(&mut self.tickets) {
            let _ = answer.send(Err(why.clone()));
        }
        self.gone.clear();
        for (_, out) in std::mem::take(&mut self.streams) {
            let _ = out.try_send(StreamMessage::Close {
                reason: why.to_string(),
                again: true,
            });
        }
        self.watchers.changed_all();
        self.tokens.send_modify(|count| *count += 1);
        self.settings.send_modify(|count| *count += 1);
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer) {
        if let Some(caller) = self.tickets.remove(&ticket)
            && caller.send(answer).is_err()
        {
            self.gone.push(ticket);
        }
    }

    fn close(&mut self, stream: StreamId, reason: &str, again: bool) {
        let reason = reason.to_owned();
        self.send(stream, StreamMessage::Close { reason, again });
        self.streams.remove(&stream);
    }

    /// A worker that does not read its stream loses it: nothing may pile up here.
    fn send(&mut self, stream: StreamId, message: StreamMessage) {
        if let Some(out) = self.streams.get(&stream)
            && let Err(mpsc::error::TrySendError::Full(_)) = out.try_send(message)
        {
            tracing::warn!(?stream, "a worker does not read its stream; closing it");
            self.streams.remove(&stream);
        }
    }
}
