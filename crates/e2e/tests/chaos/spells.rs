//! What goes wrong for a while and kills nobody: processes stand still, networks fall silent, the disk is full.
//!
//! What concerns a worker goes on beside everything else; what concerns the server is waited for.

use std::time::{Duration, Instant};

use drumtower_e2e::{Way, eventually};

use super::{Chaos, LEASE, Who};

/// Something that ends by itself.
#[derive(Debug)]
pub struct Spell {
    until: Instant,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Frozen(Who),
    Held(Who, Way),
    Slow(Who),
}

/// Mostly longer than a lease with its margin.
fn length(random: &mut fastrand::Rng) -> Duration {
    let least = match random.u8(..) < 80 {
        true => Duration::from_millis(300),
        false => LEASE + Duration::from_millis(1_200),
    };
    least + Duration::from_millis(random.u64(0..2_000))
}

impl Chaos<'_> {
    pub(super) fn freeze_server(&mut self, random: &mut fastrand::Rng) {
        self.live();
        self.server.await_ready();
        let length = length(random);
        self.trouble(named("the server was frozen", length));
        self.server.process().signal(libc::SIGSTOP);
        std::thread::sleep(length);
        self.server.process().signal(libc::SIGCONT);
    }

    pub(super) fn freeze(&mut self, who: Who, random: &mut fastrand::Rng) {
        let length = length(random);
        self.trouble(named("a worker was frozen", length));
        self.worker(who).process().signal(libc::SIGSTOP);
        self.cast(Kind::Frozen(who), length);
    }

    pub(super) fn cut(&mut self, who: Who) {
        self.trouble("connections of a worker were cut");
        self.ways[who as usize].cut();
    }

    pub(super) fn hold(&mut self, who: Who, way: Way, random: &mut fastrand::Rng) {
        let length = length(random);
        self.trouble(named(
            "one way between a worker and the server was held up",
            length,
        ));
        self.ways[who as usize].hold(way, true);
        self.cast(Kind::Held(who, way), length);
    }

    pub(super) fn slow(&mut self, who: Who, random: &mut fastrand::Rng) {
        self.trouble("the network of a worker was slow");
        let delay = Duration::from_millis(random.u64(20..800));
        self.ways[who as usize].delay(delay);
        self.cast(Kind::Slow(who), length(random));
    }

    /// Fills the disk under the living server, and makes room again. It goes on by itself.
    pub(super) fn fill_disk(&mut self, random: &mut fastrand::Rng) {
        let Some(disk) = self.disk else { return };
        self.live();
        self.server.await_ready();
        self.trouble("the disk was full");
        disk.fill();
        std::thread::sleep(Duration::from_millis(random.u64(100..1_500)));
        disk.free();
        let api = self.server.api();
        eventually("the server is ready by itself", || {
            api.is_ready().then_some(())
        });
    }

    fn cast(&mut self, kind: Kind, length: Duration) {
        let until = Instant::now() + length;
        self.spells.push(Spell { until, kind });
    }

    /// Ends what has lasted for long enough, or everything.
    pub(super) fn end_spells(&mut self, all: bool) {
        let now = Instant::now();
        let spells = std::mem::take(&mut self.spells);
        let (over, left): (Vec<_>, Vec<_>) = spells
            .into_iter()
            .partition(|spell| all || spell.until <= now);
        for spell in over {
            // Of two that are alike the later ends them both.
            if left.iter().any(|it| it.kind == spell.kind) {
                continue;
            }
            match spell.kind {
                Kind::Frozen(who) => self.worker(who).process().signal(libc::SIGCONT),
                // What was held up arrives now, however late.
                Kind::Held(who, way) => self.ways[who as usize].hold(way, false),
                Kind::Slow(who) => self.ways[who as usize].delay(Duration::ZERO),
            }
        }
        self.spells = left;
    }
}

fn named(what: &str, length: Duration) -> String {
    let beyond = if length > LEASE {
        ", beyond its lease"
    } else {
        ""
    };
    format!("{what}{beyond}")
}
