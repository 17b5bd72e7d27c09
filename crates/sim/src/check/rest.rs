//! The world has come to rest: everything is compared with everything, by the audit.

use drumtower_audit::{Journaled, Options, check_records};

use crate::world::World;

/// Nothing is asked about times closer to the end than this.
const GRACE_MS: i64 = 10_000;

impl World {
    pub(crate) fn check_end(&mut self) {
        self.look_at_clocks();
        self.check_letters_left();
        self.check_all_told();
        self.check_jitter_seen();
        let (spread, stepped) = (self.checks.spread_ms(), self.checks.stepped_ms);
        let apart = spread + stepped;
        let options = Options {
            now: self.earliest_wall(),
            grace_ms: GRACE_MS,
            clock_bound_ms: apart,
            clock_step_ms: if self.servers.len() > 1 {
                apart
            } else {
                stepped
            },
            clock_back_ms: apart,
            lease_ms: i64::try_from(self.plan.longest_lease_ms()).unwrap_or(i64::MAX),
            journaled: Journaled::All,
            settled: true,
            ..Options::default()
        };
        let mut journals: Vec<_> = self
            .clients
            .iter()
            .map(|client| client.journal.clone())
            .collect();
        journals.push(std::mem::take(&mut self.checks.tasks));
        match check_records(&journals, &self.reader, &options) {
            Ok(report) => {
                for violation in report.violations {
                    let words = format!("{}: {}", violation.subject, violation.evidence);
                    self.checks.find(violation.promise, words);
                }
            }
            Err(error) => self.checks.find("audit", error.to_string()),
        }
    }
}
