//! What the engine believes the time to be.
//!
//! Wall time may step. A step back is followed at once: cursors keep what has been decided from being decided again, so
//! jobs wait until the clock has caught up with them. A step forward of more than a minute may be a mistake that is soon
//! undone, and a time that has fired cannot be taken back; so the engine goes on by its own steady count of time until
//! the step is confirmed: by a worker on another machine whose clock agrees, or by having stood for a minute without such
//! a worker objecting. Nothing that is due by the steady count is early by the other, so jobs go on firing meanwhile.

use crate::model::{MonoMs, Now, ProcessId, WallMs};

use super::{Effect, Engine};

/// Less than this is the noise of reading two clocks one after the other.
const OFFSET_NOISE_MS: i64 = 5;
/// A step forward up to this is believed at once.
const BELIEVED_MS: i64 = 60_000;
/// Two readings closer than this are of the same step.
const SAME_STEP_MS: i64 = 1_000;
/// How long a step that nobody confirms or denies is held back.
const HOLD_MS: u64 = 60_000;
/// How close another machine's clock must be to confirm or deny.
const AGREES_MS: i64 = 30_000;
/// A worker's clock further off than this is worth a warning.
pub(super) const SKEW_LIMIT_MS: i64 = 1_000;

/// A step forward that is not believed yet.
#[derive(Debug)]
pub(super) struct Hold {
    /// When it was noticed, or last denied.
    since: MonoMs,
    /// Wall minus monotonic time as the stepped clock has it.
    offset: i64,
}

impl Engine {
    /// Notices a step of the wall clock, places the timers of schedules anew, and returns the time to go by.
    pub(super) fn follow_clock(&mut self, raw: Now) -> Now {
        let moved = raw.offset().saturating_sub(self.offset);
        if moved > BELIEVED_MS {
            self.hold_step(raw, moved);
        } else {
            if self.hold.take().is_some() {
                self.alarm("the wall clock is back where it was: going on by it");
            }
            if moved.abs() > OFFSET_NOISE_MS {
                self.take_step(raw, moved);
            }
        }
        self.now = self.believed(raw);
        self.now
    }

    /// Wall minus monotonic time as the engine believes it: for the engine after this one.
    pub fn believed_offset(&self) -> i64 {
        self.offset
    }

    /// The time that the engine goes by when the clocks read `raw`.
    pub(super) fn believed(&self, raw: Now) -> Now {
        if self.hold.is_none() {
            return raw;
        }
        let mono = i64::try_from(raw.mono.0).unwrap_or(i64::MAX);
        Now {
            wall: WallMs(mono.saturating_add(self.offset)),
            mono: raw.mono,
        }
    }

    fn hold_step(&mut self, raw: Now, moved: i64) {
        let offset = raw.offset();
        match &self.hold {
            Some(hold) if (hold.offset - offset).abs() <= SAME_STEP_MS => {
                if raw.mono.0.saturating_sub(hold.since.0) >= HOLD_MS {
                    self.confirm_step(raw, moved, "it has stood for a minute");
                }
            }
            _ => {
                self.hold = Some(Hold {
                    since: raw.mono,
                    offset,
                });
                let seconds = moved / 1000;
                self.alarm(&format!(
                    "the wall clock went forward by {seconds} s: going on by a steady clock until that is confirmed by a worker on another machine, or has stood for {} s",
                    HOLD_MS / 1000
                ));
            }
        }
    }

    fn confirm_step(&mut self, raw: Now, moved: i64, why: &str) {
        self.hold = None;
        self.alarm(&format!(
            "the wall clock's step of {} s is believed: {why}",
            moved / 1000
        ));
        self.take_step(raw, moved);
    }

    /// Goes by the clock as it stands. After a step back timers come early and wait again.
    fn take_step(&mut self, raw: Now, moved: i64) {
        self.offset = raw.offset();
        self.now = raw;
        if moved < -SKEW_LIMIT_MS {
            self.alarm(&format!(
                "the wall clock went back by {} ms: times that have fired do not fire again, so jobs wait until it has caught up",
                -moved
            ));
        }
        self.rewrite_rates();
        if moved > 0 {
            for job in self.jobs.ids() {
                self.arm_job(job);
            }
            self.arm_delayed();
            self.arm_drains();
            self.arm_starts();
            self.arm_rests();
            self.read_ahead_if_short(raw);
        } else {
            self.look_at_rests();
        }
    }

    /// What a worker's clock shows: another machine's opinion on a step that is held back.
    pub(super) fn hear_clock(&mut self, now: Now, host: &str, wall: WallMs) {
        let Some(hold) = &mut self.hold else {
            return;
        };
        if host == self.options.host {
            return;
        }
        let stepped = i64::try_from(now.mono.0)
            .unwrap_or(i64::MAX)
            .saturating_add(hold.offset);
        if wall.0.saturating_sub(stepped).unsigned_abs() <= AGREES_MS.unsigned_abs() {
            let raw = Now {
                wall: WallMs(stepped),
                mono: now.mono,
            };
            let moved = hold.offset.saturating_sub(self.offset);
            self.confirm_step(raw, moved, "a worker on another machine agrees");
        } else if wall.since(now.wall).unsigned_abs() <= AGREES_MS.unsigned_abs() {
            hold.since = now.mono;
        }
    }

    /// Warns once when a worker's clock goes too far off, and tells when it is right again. While a step is held back
    /// nobody knows which clock is off.
    pub(super) fn warn_of_skew(&mut self, process: ProcessId, skew_ms: i64) {
        if self.hold.is_some() {
            return;
        }
        let worker = self.fleet.expect_mut(process);
        let off = skew_ms.unsigned_abs() > SKEW_LIMIT_MS.unsigned_abs();
        if worker.skewed == off {
            return;
        }
        worker.skewed = off;
        let name = worker.hello.worker.clone();
        self.alarm(&match off {
            true => format!(
                "the clock of worker `{name}` is {skew_ms} ms off the server's: set one of them right, or start times will look wrong"
            ),
            false => format!("the clock of worker `{name}` is right again"),
        });
    }

    fn alarm(&mut self, text: &str) {
        self.effect(Effect::Alarm {
            text: text.to_owned(),
        });
    }
}
