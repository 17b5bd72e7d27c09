//! What goes wrong, and when.

use drumtower_core::lease::Terms;

use crate::clock::{At, MS, SECOND};
use crate::random::Random;

/// One thing that goes wrong. Whom it hits is drawn when it happens, among those that are there then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A server dies and is started again.
    CrashServer {
        down_us: u64,
    },
    /// A server dies after it has performed so many more effects.
    CrashAmidEffects {
        effects: u32,
        down_us: u64,
    },
    FreezeServer {
        for_us: u64,
    },
    /// A server does not reach the store, and others take what it had. Workers and callers reach it all the while.
    CutStore {
        for_us: u64,
    },
    /// The other way round: no worker reaches a server, which keeps its session.
    CutWorkers {
        for_us: u64,
    },
    /// A server is stopped in good order and started again.
    LeaveServer {
        down_us: u64,
    },
    StepServer {
        ms: i64,
    },
    /// The clock of a store that several servers have open is set.
    StepStore {
        ms: i64,
    },
    KillWorker {
        down_us: u64,
    },
    /// A worker is lost again and again.
    FlapWorker {
        times: u64,
        down_us: u64,
        up_us: u64,
    },
    DrainWorker {
        within_us: u64,
        down_us: u64,
    },
    FreezeWorker {
        for_us: u64,
    },
    StepWorker {
        ms: i64,
    },
    CutStream,
    /// What a worker says is lost; what it is told arrives.
    CutUp {
        noticed_us: u64,
    },
    /// The other way round.
    CutDown {
        noticed_us: u64,
    },
    /// What a worker is told takes very long, and then what it says is lost.
    LateEchoes {
        for_us: u64,
        latency_us: u64,
    },
    /// A worker reaches nobody.
    Partition {
        for_us: u64,
    },
    /// Messages take much longer.
    SlowNetwork {
        for_us: u64,
        latency_us: u64,
    },
    Commits {
        kind: CommitTrouble,
        for_us: u64,
    },
    SlowLoads {
        for_us: u64,
    },
    /// The store cannot be read: the loop drops all it holds.
    LoadError,
    /// What a worker said, or was told, arrives once more.
    RepeatWords {
        to_worker: bool,
    },
    /// Copies of what users ask for arrive later, some of them much later.
    LateCopies {
        for_us: u64,
    },
    /// Everything is off for hours.
    Outage {
        for_us: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitTrouble {
    Slow,
    Busy,
    /// No answer; it was applied.
    UnknownApplied,
    /// No answer; it never arrived.
    UnknownLost,
    /// No answer, and it arrives when nobody thinks of it any more.
    UnknownLate,
    /// The store says that a row is not as expected: everything is read anew.
    Refused,
}

impl CommitTrouble {
    pub const ALL: [Self; 6] = [
        Self::Slow,
        Self::Busy,
        Self::UnknownApplied,
        Self::UnknownLost,
        Self::UnknownLate,
        Self::Refused,
    ];
}

impl Trouble {
    pub const NAMES: [&str; 30] = [
        "none",
        "server crash",
        "crash amid effects",
        "server freeze",
        "cut from store",
        "server clock step",
        "worker kill",
        "worker drain",
        "worker freeze",
        "worker clock step",
        "stream cut",
        "cut up",
        "cut down",
        "partition",
        "slow network",
        "commit slow",
        "commit busy",
        "commit unknown, applied",
        "commit unknown, lost",
        "commit unknown, late",
        "commit refused",
        "slow loads",
        "load error",
        "repeated words",
        "late echoes",
        "worker flaps",
        "late copies",
        "cut from workers",
        "server leaves",
        "store clock step",
    ];

    /// Its row in the table of coverage.
    pub fn index(self) -> usize {
        match self {
            Self::CrashServer { .. } | Self::Outage { .. } => 1,
            Self::CrashAmidEffects { .. } => 2,
            Self::FreezeServer { .. } => 3,
            Self::CutStore { .. } => 4,
            Self::StepServer { .. } => 5,
            Self::KillWorker { .. } => 6,
            Self::DrainWorker { .. } => 7,
            Self::FreezeWorker { .. } => 8,
            Self::StepWorker { .. } => 9,
            Self::CutStream => 10,
            Self::CutUp { .. } => 11,
            Self::CutDown { .. } => 12,
            Self::Partition { .. } => 13,
            Self::SlowNetwork { .. } => 14,
            Self::Commits { kind, .. } => 15 + kind as usize,
            Self::SlowLoads { .. } => 21,
            Self::LoadError => 22,
            Self::RepeatWords { .. } => 23,
            Self::LateEchoes { .. } => 24,
            Self::FlapWorker { .. } => 25,
            Self::LateCopies { .. } => 26,
            Self::CutWorkers { .. } => 27,
            Self::LeaveServer { .. } => 28,
            Self::StepStore { .. } => 29,
        }
    }

    /// How long it goes on; what it leaves behind is felt for a while after.
    pub fn lasts_us(self) -> u64 {
        let own = match self {
            Self::CrashServer { down_us } | Self::CrashAmidEffects { down_us, .. } => down_us,
            Self::KillWorker { down_us } | Self::LeaveServer { down_us } => down_us,
            Self::DrainWorker { within_us, down_us } => within_us + down_us,
            Self::FlapWorker {
                times,
                down_us,
                up_us,
            } => times * (down_us + up_us),
            Self::FreezeServer { for_us }
            | Self::FreezeWorker { for_us }
            | Self::CutStore { for_us }
            | Self::CutWorkers { for_us }
            | Self::Partition { for_us }
            | Self::SlowNetwork { for_us, .. }
            | Self::LateEchoes { for_us, .. }
            | Self::LateCopies { for_us }
            | Self::Commits { for_us, .. }
            | Self::SlowLoads { for_us }
            | Self::Outage { for_us } => for_us,
            Self::CutUp { noticed_us } | Self::CutDown { noticed_us } => noticed_us,
            _ => 0,
        };
        own + 3 * SECOND
    }
}

/// All of them, those that only a server that is one of several meets last.
const KINDS: u64 = 36;
const ALONE: u64 = 31;

/// Draws which kinds this world has, then when each of them happens.
pub(super) fn draw(
    random: &mut Random,
    until: At,
    terms: &Terms,
    is_cluster: bool,
) -> Vec<(At, Trouble)> {
    let kinds = if is_cluster { KINDS } else { ALONE };
    let enabled: Vec<u64> = (0..kinds).filter(|_| random.chance(350)).collect();
    if enabled.is_empty() {
        return Vec::new();
    }
    let gap_us = random.between(2, 25) * SECOND;
    let mut troubles = Vec::new();
    let mut at = At(SECOND);
    loop {
        at = at.plus(random.between(10 * MS, 2 * gap_us));
        if at >= until {
            return troubles;
        }
        let kind = *random.pick(&enabled);
        troubles.push((at, one(kind, random, terms)));
    }
}

fn one(kind: u64, random: &mut Random, terms: &Terms) -> Trouble {
    let lease_us = terms.lease_ms * MS;
    // Shorter than a lease, about as long, or longer.
    let around_lease = |random: &mut Random| match random.below(3) {
        0 => random.between(10 * MS, lease_us / 2),
        1 => random.between(lease_us * 8 / 10, lease_us * 13 / 10),
        _ => random.between(lease_us, 3 * lease_us),
    };
    let down_us = random.skewed(20 * MS, 30 * SECOND);
    let commits = |kind, random: &mut Random| Trouble::Commits {
        kind,
        for_us: random.skewed(200 * MS, 20 * SECOND),
    };
    match kind {
        0 => Trouble::CrashServer { down_us },
        1 | 2 => Trouble::CrashAmidEffects {
            effects: u32::try_from(random.skewed(0, 40)).unwrap_or(0),
            down_us,
        },
        3 | 4 => Trouble::FreezeServer {
            for_us: around_lease(random),
        },
        5 | 31 | 32 => Trouble::CutStore {
            for_us: random.skewed(500 * MS, 20 * SECOND),
        },
        6 => Trouble::StepServer { ms: step(random) },
        7 => Trouble::KillWorker { down_us },
        8 => Trouble::DrainWorker {
            within_us: random.skewed(MS, 20 * SECOND),
            down_us,
        },
        9 | 10 => Trouble::FreezeWorker {
            for_us: around_lease(random),
        },
        11 => Trouble::StepWorker {
            ms: random.signed(2_000),
        },
        12 => Trouble::CutStream,
        13 => Trouble::CutUp {
            noticed_us: around_lease(random),
        },
        14 => Trouble::CutDown {
            noticed_us: around_lease(random),
        },
        15 => Trouble::Partition {
            for_us: around_lease(random),
        },
        16 => Trouble::SlowNetwork {
            for_us: random.skewed(SECOND, 20 * SECOND),
            latency_us: random.skewed(50 * MS, 8 * SECOND),
        },
        17 | 18 => commits(*random.pick(&CommitTrouble::ALL), random),
        19 => commits(CommitTrouble::UnknownLate, random),
        20 => Trouble::SlowLoads {
            for_us: random.skewed(SECOND, 30 * SECOND),
        },
        21 => Trouble::LoadError,
        22 | 26 => Trouble::RepeatWords {
            to_worker: kind == 26,
        },
        23 | 24 => Trouble::LateEchoes {
            for_us: random.between(2 * SECOND, 20 * SECOND),
            latency_us: random.between(lease_us / 10, lease_us * 9 / 10),
        },
        25 => Trouble::FlapWorker {
            times: random.between(2, 8),
            down_us: lease_us + random.between(SECOND, 4 * SECOND),
            up_us: random.skewed(100 * MS, 8 * SECOND),
        },
        27 => Trouble::LateCopies {
            for_us: random.skewed(SECOND, 30 * SECOND),
        },
        29 | 33 => Trouble::LeaveServer { down_us },
        30 | 34 => Trouble::CutWorkers {
            for_us: around_lease(random),
        },
        35 => Trouble::StepStore {
            ms: random.signed(8_000),
        },
        _ => Trouble::Outage {
            for_us: random.skewed(60 * SECOND, 30 * 3_600 * SECOND),
        },
    }
}

/// Slews of milliseconds, corrections of seconds, now and then a mistake of hours.
fn step(random: &mut Random) -> i64 {
    match random.below(10) {
        0..4 => random.signed(30),
        4..8 => random.signed(5_000),
        8 => random.signed(90_000),
        _ => random.signed(3 * 3_600_000),
    }
}
