//! From events to messages: few, however much happens. Pure: time is passed in.
//!
//! For each place (a target as one namespace uses it):
//!
//! ```text
//! event ─► a summary is being gathered? ─yes─► into it
//!            │ no
//!            ▼
//!          its job and kind has an open window? ─yes─► into the window's digest, sent when the window ends
//!            │ no
//!            ▼
//!          the place may be sent to? ─yes─► a message at once, and a window of `group_for` opens
//!            │ no
//!            ▼
//!          a summary begins, sent as soon as the place may be sent to again
//! ```
//!
//! A place may be sent to `per_hour` times an hour, evenly, and [`BURST`] times at once. So ten thousand failing jobs of a
//! namespace make five messages, and then one summary at a time.

use std::collections::BTreeMap;

use drumtower_core::model::{JobId, NotifyOn, WallMs};
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::event::Event;
use super::message::Message;
use super::pairs;
use super::target::Place;

/// Messages that may go to a place one right after the other.
pub const BURST: i64 = 5;
/// Places that are held at once: those with something gathered, or sent to of late.
const PLACES: usize = 50_000;
const HOUR_MS: i64 = 3_600_000;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub per_hour: u32,
}

impl Pace {
    fn interval_ms(self) -> i64 {
        HOUR_MS / i64::from(self.per_hour.max(1))
    }

    fn burst(self) -> i64 {
        BURST.min(i64::from(self.per_hour.max(1)))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    #[serde(with = "pairs")]
    lanes: BTreeMap<Place, Lane>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Lane {
    /// Where the place would stand if it had been sent to evenly: ahead of now by what was sent in advance.
    paid_until: WallMs,
    #[serde(with = "pairs")]
    windows: BTreeMap<(JobId, NotifyOn), Window>,
    gathered: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Window {
    until: WallMs,
    for_ms: u64,
    digest: Option<Digest>,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Grouped {
    Send(Message),
    /// It is in a digest.
    Kept,
    /// Too many places: it is told to nobody there.
    Dropped,
}

impl Groups {
    pub fn add(
        &mut self,
        pace: Pace,
        now: WallMs,
        place: &Place,
        group_for_ms: u64,
        event: Event,
    ) -> Grouped {
        if !self.lanes.contains_key(place) {
            if self.lanes.len() >= PLACES {
                return Grouped::Dropped;
            }
            self.lanes.insert(place.clone(), Lane::new(now));
        }
        match self.lanes.get_mut(place) {
            Some(lane) => lane.add(pace, now, place, group_for_ms, event),
            None => Grouped::Dropped,
        }
    }

    /// What windows and summaries have to say by now.
    pub fn tick(&mut self, pace: Pace, now: WallMs) -> Vec<Message> {
        let mut messages = Vec::new();
        for (place, lane) in &mut self.lanes {
            lane.tick(pace, now, place, &mut messages);
        }
        self.lanes.retain(|_, lane| !lane.idle(now));
        messages
    }
}

impl Lane {
    fn new(now: WallMs) -> Self {
        Self {
            paid_until: now,
            windows: BTreeMap::new(),
            gathered: None,
        }
    }

    fn idle(&self, now: WallMs) -> bool {
        self.windows.is_empty() && self.gathered.is_none() && self.paid_until <= now
    }

    /// Whether a message may go now; if so it is counted.
    fn pay(&mut self, pace: Pace, now: WallMs) -> bool {
        let furthest = now.plus(pace.interval_ms() * pace.burst());
        // A clock that was set back must not silence a place for as long.
        let paid = self.paid_until.max(now).min(furthest);
        let after = paid.plus(pace.interval_ms());
        let may = after <= furthest;
        self.paid_until = if may { after } else { paid };
        may
    }

    fn add(
        &mut self,
        pace: Pace,
        now: WallMs,
        place: &Place,
        group_for_ms: u64,
        event: Event,
    ) -> Grouped {
        if let Some(gathered) = &mut self.gathered {
            gathered.add(event);
            return Grouped::Kept;
        }
        let key = (event.job_id, event.kind);
        if let Some(window) = self.windows.get_mut(&key)
            && now < window.until
        {
            match &mut window.digest {
                Some(digest) => digest.add(event),
                None => window.digest = Some(Digest::of(event)),
            }
            return Grouped::Kept;
        }
        if !self.pay(pace, now) {
            self.gathered = Some(Digest::of(event));
            return Grouped::Kept;
        }
        let mut digest = Digest::of(event);
        if let Some(before) = self.windows.remove(&key).and_then(|it| it.digest) {
            digest.join(before);
        }
        self.open(key, now, group_for_ms);
        Grouped::Send(Message::new(place, digest, now))
    }

    fn open(&mut self, key: (JobId, NotifyOn), now: WallMs, for_ms: u64) {
        let until = now.plus(i64::try_from(for_ms).unwrap_or(i64::MAX));
        let window = Window {
            until,
            for_ms,
            digest: None,
        };
        self.windows.insert(key, window);
    }

    fn tick(&mut self, pace: Pace, now: WallMs, place: &Place, messages: &mut Vec<Message>) {
        let ended: Vec<(JobId, NotifyOn)> = self
            .windows
            .iter()
            .filter(|(_, window)| window.until <= now || window.is_astray(now))
            .map(|(key, _)| *key)
            .collect();
        for key in ended {
            let Some(Window { digest, for_ms, .. }) = self.windows.remove(&key) else {
                continue;
            };
            let Some(digest) = digest else { continue };
            if let Some(gathered) = &mut self.gathered {
                gathered.join(digest);
            } else if self.pay(pace, now) {
                messages.push(Message::new(place, digest, now));
                self.open(key, now, for_ms);
            } else {
                self.gathered = Some(digest);
            }
        }
        if self.gathered.is_some()
            && self.pay(pace, now)
            && let Some(gathered) = self.gathered.take()
        {
            messages.push(Message::new(place, gathered, now));
        }
    }
}

impl Window {
    /// The clock was set back behind its beginning.
    fn is_astray(&self, now: WallMs) -> bool {
        let length = i64::try_from(self.for_ms).unwrap_or(i64::MAX);
        self.until.since(now) > length
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
