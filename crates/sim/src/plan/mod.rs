//! What a seed draws: who is in the world, how they are set up, what their users do, and what goes wrong.
//!
//! Not every world has everything. Each draws which kinds of trouble it may have and how much of each, so that some
//! worlds are full of one kind and free of another: faults hide behind faults.

mod jobs;
mod shape;
mod trouble;

use drumtower_core::engine;
use drumtower_core::lease::Terms;
use drumtower_core::model::Actor;

use crate::clock::{At, Clock, MINUTE};
use crate::random::Random;

pub use jobs::{HANDLERS, NAMESPACES, QUEUES, calendar, edited, fresh, queue};
pub use shape::{Figures, Shape};
pub use trouble::{CommitTrouble, Trouble};

/// One world before it begins.
#[derive(Debug)]
pub struct Plan {
    /// One on an embedded store, or several on one.
    pub servers: Vec<ServerPlan>,
    /// The clock of a store that several servers have open.
    pub store_clock: Clock,
    pub workers: Vec<WorkerPlan>,
    pub clients: usize,
    pub shape: Shape,
    pub figures: Figures,
    /// When trouble ends.
    pub calm_at: At,
    pub troubles: Vec<(At, Trouble)>,
    /// The usual way of a message, at most.
    pub latency_us: u64,
    /// Each start of a server draws one of these; all grant the same where this is empty.
    pub terms: Vec<Terms>,
}

#[derive(Debug)]
pub struct ServerPlan {
    pub clock: Clock,
    pub options: engine::Options,
}

#[derive(Clone, Debug)]
pub struct WorkerPlan {
    pub clock: Clock,
    pub capacity: u32,
    pub handlers: Vec<String>,
    pub exec: bool,
    pub namespace: Option<String>,
    /// How many of its tasks do not hear that they should stop, in a thousand.
    pub deaf_permille: u64,
}

/// Instants near which a schedule has something to get wrong.
const BEGINNINGS: &[&str] = &[
    "2026-11-16T08:00:00Z",
    // Clocks go back in New York, forward in Berlin, forward in Lord Howe.
    "2026-11-01T05:55:00Z",
    "2027-03-28T00:56:00Z",
    "2026-10-03T15:27:00Z",
    // The end of a year, a leap day, the end of a month.
    "2026-12-31T23:55:00Z",
    "2028-02-28T23:57:00Z",
    "2027-04-30T21:56:00Z",
];

/// An administrator who cannot decide how long a worker may go on.
const CHANGING_TERMS: &[Terms] = &[
    Terms {
        lease_ms: 6_000,
        heartbeat_ms: 1_500,
        kill_ms: 500,
    },
    Terms {
        lease_ms: 45_000,
        heartbeat_ms: 9_000,
        kill_ms: 500,
    },
];

impl Plan {
    pub fn draw(random: &mut Random) -> Self {
        let shape = Shape::draw(random);
        let figures = shape.figures(random);
        let begins = beginning(shape, random);
        let terms = *random.pick(&[
            Terms::default(),
            Terms::default(),
            Terms {
                lease_ms: 6_000,
                heartbeat_ms: 1_500,
                kill_ms: 500,
            },
        ]);
        let skew_ms: i64 = *random.pick(&[0, 50, 400, 900]);
        let count = if random.chance(500) {
            random.between(2, 3)
        } else {
            1
        };
        let options = |index: u64, random: &mut Random| engine::Options {
            server: Actor::new(&format!("server-{index}")),
            terms,
            window_ms: *random.pick(&[5_000, 20_000, 60_000]),
            read_ahead_jobs: *random.pick(&[2, 8, 50_000]),
            ready_window: *random.pick(&[1, 2, 5, 20, 1_000]),
            ready_total: *random.pick(&[3, 20, 200_000]),
            session_ms: 3_000,
            host: format!("host-{index}"),
            // As the driver sets it where others could take the segments.
            idle_commit_ms: match count {
                1 => *random.pick(&[None, Some(1_000)]),
                _ => Some(1_000),
            },
        };
        let store_clock = clock(begins, skew_ms, random);
        let servers: Vec<ServerPlan> = (0..count)
            .map(|index| ServerPlan {
                clock: clock(begins, skew_ms, random),
                options: options(index, random),
            })
            .collect();
        let count = random.skewed(1, 8);
        let workers: Vec<WorkerPlan> = (0..count)
            .map(|index| WorkerPlan::draw(index, begins, skew_ms, figures.capacity, random))
            .collect();
        let calm_at = At(random.between(MINUTE, 4 * MINUTE));
        let troubles = trouble::draw(random, calm_at, &terms, servers.len() > 1);
        Self {
            servers,
            store_clock,
            workers,
            clients: random.between(1, 3) as usize,
            shape,
            figures,
            calm_at,
            troubles,
            latency_us: *random.pick(&[300, 3_000, 40_000]),
            terms: match random.chance(300) {
                true => CHANGING_TERMS.to_vec(),
                false => Vec::new(),
            },
        }
    }

    /// The longest lease that any server grants.
    pub fn longest_lease_ms(&self) -> u64 {
        let servers = self.servers.iter().map(|server| server.options.terms);
        let terms = servers.chain(self.terms.iter().copied());
        terms.map(|terms| terms.lease_ms).max().unwrap_or(0)
    }
}

impl WorkerPlan {
    fn draw(index: u64, begins: i64, skew_ms: i64, most: u64, random: &mut Random) -> Self {
        let mut handlers: Vec<String> = HANDLERS
            .iter()
            .filter(|_| random.chance(700))
            .map(|name| (*name).to_owned())
            .collect();
        if index == 0 && handlers.is_empty() {
            handlers.push(HANDLERS[0].to_owned());
        }
        let namespace = random
            .chance(150)
            .then(|| random.pick(NAMESPACES).to_string());
        Self {
            clock: clock(begins, skew_ms, random),
            capacity: u32::try_from(random.skewed(1, most)).unwrap_or(1),
            handlers,
            exec: random.chance(700),
            namespace: namespace.filter(|_| index > 0),
            deaf_permille: *random.pick(&[0, 0, 50, 300]),
        }
    }
}

/// Drift stays below half of what leases allow for between two clocks.
fn clock(begins: i64, skew_ms: i64, random: &mut Random) -> Clock {
    let skew = random.signed(skew_ms.unsigned_abs()) / 2;
    let most = *random.pick(&[0, 100, 4_500]);
    let drift = random.signed(most);
    Clock::new(begins + skew, random.between(0, 90_000_000), drift)
}

fn beginning(shape: Shape, random: &mut Random) -> i64 {
    let text = match shape {
        Shape::Midnight => &"2026-11-16T23:57:30Z",
        _ => random.pick(BEGINNINGS),
    };
    let named = text
        .parse::<jiff::Timestamp>()
        .map_or(1_800_000_000_000, jiff::Timestamp::as_millisecond);
    named + random.signed(90_000)
}
