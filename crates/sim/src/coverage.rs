//! What was tried while what was going wrong: so that a blind spot is seen.

use crate::plan::Trouble;

/// What users and workers do, and what only time does.
pub const DEEDS: [&str; 40] = [
    "put job",
    "pause job",
    "resume job",
    "delete job",
    "trigger",
    "cancel",
    "breaker",
    "rerun",
    "calendar",
    "put queue",
    "pause queue",
    "resume queue",
    "delete queue",
    "drain worker",
    "resume worker",
    "reset worker",
    "backfill",
    "tend",
    "requeue",
    "discard",
    "misused key",
    "lock",
    "renew lock",
    "release",
    "hang up",
    "connect",
    "heartbeat",
    "started",
    "finished",
    "refused",
    "progress",
    "checkpoint",
    "verdict",
    "goodbye",
    "disconnect",
    "boot",
    "load",
    "move",
    "leave",
    "forward",
];

const TROUBLES: usize = Trouble::NAMES.len();

#[derive(Clone, Debug)]
pub struct Coverage {
    counts: [[u64; DEEDS.len()]; TROUBLES],
    /// How often each trouble happened.
    pub troubles: [u64; TROUBLES],
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            counts: [[0; DEEDS.len()]; TROUBLES],
            troubles: [0; TROUBLES],
        }
    }
}

impl Coverage {
    pub(crate) fn count(&mut self, trouble: usize, deed: usize) {
        self.counts[trouble][deed] += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        for (mine, theirs) in self.troubles.iter_mut().zip(other.troubles) {
            *mine += theirs;
        }
    }

    /// The table, commands across, troubles down.
    pub fn table(&self) -> String {
        let mut text = format!("{:<24}{:>9}", "", "happened");
        for deed in DEEDS {
            text += &format!("{deed:>11}");
        }
        for (trouble, counts) in self.counts.iter().enumerate() {
            let happened = match trouble {
                0 => "-".to_owned(),
                _ => self.troubles[trouble].to_string(),
            };
            text += &format!("\n{:<24}{happened:>9}", Trouble::NAMES[trouble]);
            for count in counts {
                text += &match count {
                    0 => format!("{:>11}", "·"),
                    count => format!("{count:>11}"),
                };
            }
        }
        text
    }

    /// What never happened under which trouble, in words; empty when everything did.
    pub fn blind_spots(&self) -> Vec<String> {
        let mut spots = Vec::new();
        for (trouble, counts) in self.counts.iter().enumerate() {
            let missing: Vec<&str> = counts
                .iter()
                .zip(DEEDS)
                .filter(|(count, _)| **count == 0)
                .map(|(_, deed)| deed)
                .collect();
            if !missing.is_empty() {
                let name = Trouble::NAMES[trouble];
                spots.push(format!("under {name}: {}", missing.join(", ")));
            }
        }
        spots
    }
}

/// The column of a deed.
pub(crate) fn deed(name: &str) -> usize {
    let found = DEEDS.iter().position(|deed| *deed == name);
    found.unwrap_or_else(|| panic!("`{name}` is not in the table of deeds"))
}
