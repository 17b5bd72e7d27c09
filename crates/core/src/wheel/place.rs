//! Where a deadline belongs, as seen from the current time: pure arithmetic on base-64 digits.

/// Digits of a deadline that the wheel itself covers; 64^6 ms is about 2.2 years.
pub(super) const LEVELS: usize = 6;
/// Slots of a level: one for each bit of a `u64`.
pub(super) const SLOTS: usize = 64;

const DIGIT_BITS: u32 = 6;
const TURN_BITS: u32 = DIGIT_BITS * LEVELS as u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The deadline is not in the future.
    Due,
    /// A slot of the wheel; `level` 0 is the finest.
    Slot { level: usize, slot: usize },
    /// A later full turn of the wheel.
    Turn(u64),
}

impl Place {
    pub(super) fn of(now: u64, at: u64) -> Self {
        if at <= now {
            Place::Due
        } else {
            Self::ahead(now, at)
        }
    }

    /// As [`Place::of`], except that a deadline of exactly `now` gets a slot of level 0: during a
    /// cascade it still has to fire in order with its neighbours.
    pub(super) fn ahead(now: u64, at: u64) -> Self {
        let turn = at >> TURN_BITS;
        if turn != now >> TURN_BITS {
            return Place::Turn(turn);
        }
        // `| 1` makes equal times differ in digit 0; it changes no other answer.
        let highest = 63 - ((now ^ at) | 1).leading_zeros();
        let level = highest / DIGIT_BITS;
        let slot = (at >> (level * DIGIT_BITS)) % SLOTS as u64;
        Place::Slot {
            level: level as usize,
            slot: slot as usize,
        }
    }

    /// The first millisecond that the place covers.
    pub(super) fn start(self, now: u64) -> u64 {
        match self {
            Place::Due => now,
            Place::Slot { level, slot } => {
                let shift = level as u32 * DIGIT_BITS;
                let above = now >> (shift + DIGIT_BITS) << (shift + DIGIT_BITS);
                above | (slot as u64) << shift
            }
            Place::Turn(turn) => turn << TURN_BITS,
        }
    }

    /// Whether the place covers a single millisecond.
    pub(super) fn is_exact(self) -> bool {
        matches!(self, Place::Slot { level: 0, .. })
    }
}
