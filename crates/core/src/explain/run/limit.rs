//! Which limit holds a run back, and how full it is.

use crate::engine::{Held, Hindrance};
use crate::model::{GateKey, WallMs};

use super::Cause;
use super::words::{ahead, instant};

impl Hindrance {
    pub fn code(&self) -> Cause {
        match self.what {
            Held::Paused => Cause::QueuePaused,
            Held::Full { .. } => Cause::WaitsForALimit,
            Held::Rate { .. } => Cause::WaitsForARate,
        }
    }

    /// `2 of 2 attempts of its job run, which is all that `limits.concurrency` allows`
    pub fn text(&self, now: WallMs) -> String {
        let who = match &self.gate {
            GateKey::Job(_) | GateKey::JobKey(..) => "its job".to_owned(),
            GateKey::Queue(queue) | GateKey::QueueKey(queue, _) => {
                format!("queue `{}`", queue.name)
            }
        };
        let key = |name: &str| match &self.gate {
            GateKey::Job(_) | GateKey::JobKey(..) => format!("`limits.{name}`"),
            GateKey::Queue(_) | GateKey::QueueKey(..) => format!("its `{name}`"),
        };
        match (self.what, self.gate.value()) {
            (Held::Paused, _) => format!("{who} is paused and gives nothing out"),
            (Held::Full { held, most }, None) => format!(
                "{held} of {most} attempts of {who} run, which is all that {} allows",
                key("concurrency")
            ),
            (Held::Full { held, most }, Some(value)) => format!(
                "{held} of {most} attempts of {who} with the key {value} run, which is all that {} allows",
                key("per_key")
            ),
            (Held::Rate { until }, _) => format!(
                "{} of {who} admits the next start at {}, {}",
                key("rate").trim_start_matches("its "),
                instant(until),
                ahead(until, now)
            ),
        }
    }
}
