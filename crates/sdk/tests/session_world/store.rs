//! What the servers share: attempts that are kept for ever, and who owns which runs.

use std::collections::BTreeMap;

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::Attempt;

/// Runs fall into two classes, each owned by one server.
pub const CLASSES: u64 = 2;

#[derive(Default)]
pub struct Store {
    pub attempts: BTreeMap<Attempt, Assigned>,
    /// The newest checkpoint of each run.
    pub checkpoints: BTreeMap<u64, u64>,
    /// Who owns the runs of each class, and since when.
    owners: [Owner; CLASSES as usize],
    runs: u64,
    fence: u64,
}

#[derive(Clone, Copy, Default)]
struct Owner {
    server: usize,
    since: u64,
}

pub struct Assigned {
    pub fence: u64,
    pub weight: u32,
    /// The stream and position of its latest sending by its owner, who knows it from the store alone if there is none.
    pub sent: Option<(u64, u64)>,
    pub ended: bool,
    pub chunks: u64,
}

impl Store {
    pub fn owns(&self, server: usize, run: u64) -> bool {
        self.owner(class_of(run)) == server
    }

    /// When the present owner of a run became it.
    pub fn owned_since(&self, run: u64) -> u64 {
        self.owners[place(class_of(run))].since
    }

    pub fn owner(&self, class: u64) -> usize {
        self.owners[place(class)].server
    }

    /// Another server owns the runs of a class from now on.
    pub fn hand_over(&mut self, now: u64, class: u64, server: usize) {
        self.owners[place(class)] = Owner { server, since: now };
        for (attempt, assigned) in &mut self.attempts {
            if class_of(attempt.run) == class {
                assigned.sent = None;
            }
        }
    }

    /// A run that was never assigned, of those that a server owns.
    pub fn fresh_run(&mut self, server: usize) -> Option<u64> {
        let mut next = self.runs + 1..=self.runs + 2 * CLASSES;
        let run = next.find(|run| self.owns(server, *run))?;
        self.runs = run;
        Some(run)
    }

    pub fn next_fence(&mut self) -> u64 {
        self.fence += 1;
        self.fence
    }

    pub fn reference(&self, attempt: Attempt) -> wire::AttemptRef {
        wire::AttemptRef {
            run: attempt.run,
            attempt: attempt.number,
            fence: self.attempts[&attempt].fence,
        }
    }
}

/// Two runs of a class follow each other, as odd and even ones behave differently.
fn class_of(run: u64) -> u64 {
    run / 2 % CLASSES
}

fn place(class: u64) -> usize {
    usize::try_from(class).expect("two")
}
