//! What the people of a world use it for: what their jobs look like, and what they ask for.
//!
//! Nearly half of all worlds have a little of everything, in small. The others look like one kind of user each, at a size at which
//! what only happens in crowds happens: lines that are longer than memory, batches that are full, hundreds of retries.

use crate::clock::SECOND;
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A little of everything.
    Mixed,
    /// Little happens, and it takes long: long enough for a server to be wrong about a worker, or about itself.
    Quiet,
    /// Reports of a whole company, all at midnight.
    Midnight,
    /// Small jobs every second that fail and are tried again.
    EverySecond,
    /// One job gets nearly all the work.
    HotJob,
    /// Tasks of minutes that save how far they are.
    LongTasks,
    /// Hundreds of runs are asked for at once.
    Bursts,
    /// Most of what runs fails.
    Failing,
    /// Limits by the values of a key, of which there are hundreds, and handlers that nobody has.
    ManyKeys,
}

/// The figures of a shape.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// How many jobs there are to begin with.
    pub jobs: usize,
    /// How often a client does something, on average.
    pub pause_us: u64,
    /// How long a task takes, at most.
    pub longest_task_ms: u64,
    /// How many tasks fail, in a thousand.
    pub fail_permille: u64,
    /// How many say how far they are.
    pub telling_permille: u64,
    /// How many of those that may not take long never end by themselves.
    pub stuck_permille: u64,
    /// How many of the deeds of users are about locks.
    pub locks_permille: u64,
    /// The most weight that a worker takes.
    pub capacity: u64,
}

impl Shape {
    pub fn draw(random: &mut Random) -> Self {
        match random.below(20) {
            0..9 => Self::Mixed,
            9 => Self::ManyKeys,
            10..14 => Self::Quiet,
            14 => Self::Midnight,
            15 => Self::EverySecond,
            16 => Self::HotJob,
            17 => Self::LongTasks,
            18 => Self::Bursts,
            _ => Self::Failing,
        }
    }

    /// Whether only what is asked for runs.
    pub fn is_quiet(self) -> bool {
        matches!(self, Self::Quiet | Self::LongTasks)
    }

    pub fn figures(self, random: &mut Random) -> Figures {
        let usual = Figures {
            jobs: random.skewed(1, 12) as usize,
            pause_us: random.between(200_000, 6 * SECOND),
            longest_task_ms: *random.pick(&[20, 2_000, 20_000, 60_000]),
            fail_permille: *random.pick(&[0, 100, 100, 300]),
            telling_permille: *random.pick(&[0, 200, 600]),
            stuck_permille: *random.pick(&[0, 0, 20]),
            locks_permille: *random.pick(&[0, 0, 100, 400]),
            capacity: 12,
        };
        match self {
            Self::Mixed => usual,
            Self::Quiet => Figures {
                jobs: random.skewed(1, 4) as usize,
                pause_us: random.between(4 * SECOND, 15 * SECOND),
                longest_task_ms: 60_000,
                ..usual
            },
            Self::Midnight => Figures {
                jobs: random.between(60, 250) as usize,
                pause_us: random.between(2 * SECOND, 6 * SECOND),
                longest_task_ms: *random.pick(&[500, 5_000]),
                capacity: 48,
                ..usual
            },
            Self::EverySecond => Figures {
                jobs: random.between(5, 25) as usize,
                longest_task_ms: *random.pick(&[200, 900]),
                fail_permille: random.between(200, 600),
                capacity: 24,
                ..usual
            },
            Self::HotJob | Self::Bursts | Self::ManyKeys => Figures {
                jobs: random.between(3, 8) as usize,
                pause_us: random.between(500_000, 4 * SECOND),
                longest_task_ms: *random.pick(&[20, 900]),
                capacity: 24,
                ..usual
            },
            Self::LongTasks => Figures {
                jobs: random.skewed(1, 4) as usize,
                pause_us: random.between(4 * SECOND, 15 * SECOND),
                longest_task_ms: 180_000,
                telling_permille: 1_000,
                ..usual
            },
            Self::Failing => Figures {
                fail_permille: random.between(600, 950),
                longest_task_ms: *random.pick(&[20, 2_000]),
                capacity: 24,
                ..usual
            },
        }
    }
}
