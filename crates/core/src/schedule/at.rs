//! Single instants.
//!
//! Without calendars an instant is a number. With them its local date matters, and a roll moves it to another day with
//! the same time of day there.

use super::civil::DAY_S;
use super::filter::Filter;
use super::spec::{DstFold, DstGap};
use super::zone::{Instants, Zone};

const DAY_MS: i64 = DAY_S * 1000;

#[derive(Debug, Clone)]
pub(super) struct At {
    /// What clocks show, in milliseconds since 1970-01-01T00:00:00.
    civil_ms: i64,
    /// Given so, without an offset.
    local: bool,
    /// When it happens on its own day.
    instants: Instants,
    zone: Zone,
    gap: DstGap,
    fold: DstFold,
}

impl At {
    pub(super) fn instant(at: i64, zone: Zone) -> Self {
        let instants = Instants {
            first: Some(at),
            second: None,
        };
        Self {
            civil_ms: at + zone.offset(at.div_euclid(1000)) * 1000,
            local: false,
            instants,
            zone,
            gap: DstGap::default(),
            fold: DstFold::default(),
        }
    }

    pub(super) fn local(civil_ms: i64, zone: Zone, gap: DstGap, fold: DstFold) -> Self {
        Self {
            civil_ms,
            local: true,
            instants: zone.instants(civil_ms, gap, fold),
            zone,
            gap,
            fold,
        }
    }

    pub(super) fn zone(&self) -> &Zone {
        &self.zone
    }

    pub(super) fn civil_ms(&self) -> i64 {
        self.civil_ms
    }

    pub(super) fn day(&self) -> i32 {
        self.civil_ms.div_euclid(DAY_MS) as i32
    }

    /// When it happens without calendars.
    pub(super) fn instants(&self) -> Instants {
        self.instants
    }

    /// Whether it was given without an offset, so that gaps and folds concern it.
    pub(super) fn is_local(&self) -> bool {
        self.local
    }

    /// When clocks show it: never in a gap, twice in a fold.
    pub(super) fn both_passes(&self) -> Instants {
        self.zone
            .instants(self.civil_ms, DstGap::Skip, DstFold::Both)
    }

    pub(super) fn placed(&self, filter: Option<&Filter<'_>>) -> Instants {
        let Some(filter) = filter else {
            return self.instants;
        };
        let day = self.day();
        match filter.target(day) {
            None => Instants::default(),
            Some(target) if target == day => self.instants,
            Some(target) => {
                let moved = self.civil_ms + i64::from(target - day) * DAY_MS;
                self.zone.instants(moved, self.gap, self.fold)
            }
        }
    }
}
