//! The shares against servers that use what they are granted, with messages that take their time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use drumtower_proto::worker::v1 as wire;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::server_message::Body as Down;
use wire::worker_message::Body as Up;

use super::{LinkId, Shares};

/// Between two marks of a link.
const HEARTBEAT: u64 = 50;

struct World {
    now: u64,
    /// How long a message takes.
    latency: u64,
    capacity: u32,
    shares: Shares,
    servers: BTreeMap<LinkId, Server>,
    /// When they end, whose they are, and their weight.
    running: Vec<(u64, Option<LinkId>, u32)>,
}

/// It has runs of these weights without end, and each of them takes so long.
#[derive(Default)]
struct Server {
    weights: Vec<u32>,
    lasts: u64,
    granted: u64,
    consumed: u64,
    wanted: u32,
    up: VecDeque<(u64, Up)>,
    down: VecDeque<(u64, Down)>,
    started: BTreeMap<u32, u64>,
}

impl Server {
    fn hear(&mut self, message: Up) -> Option<Down> {
        match message {
            Up::Grant(grant) => {
                assert!(grant.total > self.granted, "a grant that grants nothing");
                self.granted = grant.total;
                self.wanted = 0;
                None
            }
            Up::Recall(recall) => {
                self.granted = self.consumed;
                Some(Down::RecallAnswer(wire::RecallAnswer {
                    id: recall.id,
                    consumed: self.consumed,
                }))
            }
            other => panic!("no matter of shares: {other:?}"),
        }
    }

    /// What it assigns as long as its credit lasts, the heavy ones first, and what it wants.
    fn speak(&mut self) -> Vec<Down> {
        let mut said = Vec::new();
        self.weights.sort_unstable();
        for weight in self.weights.clone().into_iter().rev() {
            while self.granted - self.consumed >= u64::from(weight) {
                self.consumed += u64::from(weight);
                said.push(Down::Assign(wire::Assign {
                    weight,
                    ..wire::Assign::default()
                }));
            }
            if self.wanted < weight {
                self.wanted = weight;
                said.push(Down::Want(wire::Want { weight }));
            }
        }
        said
    }
}

impl World {
    fn new(capacity: u32, links: u32) -> Self {
        let mut world = Self {
            now: 0,
            latency: 1,
            capacity,
            shares: Shares::new(capacity),
            servers: BTreeMap::new(),
            running: Vec::new(),
        };
        for link in 0..links {
            world.join(LinkId(link));
        }
        world
    }

    fn join(&mut self, link: LinkId) {
        if let Entry::Vacant(place) = self.servers.entry(link) {
            place.insert(Server::default());
            self.shares.join(link);
        }
    }

    fn leave(&mut self, link: LinkId) {
        if self.servers.remove(&link).is_some() {
            self.shares.leave(link);
            let own = self.running.iter_mut().filter(|it| it.1 == Some(link));
            own.for_each(|it| it.1 = None);
        }
    }

    fn busy(&mut self, link: u32, weights: &[u32], lasts: u64) {
        if let Some(server) = self.servers.get_mut(&LinkId(link)) {
            let fitting = weights.iter().map(|weight| *weight.min(&self.capacity));
            server.weights = fitting.collect();
            server.lasts = lasts;
        }
    }

    fn pass(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.now += 1;
            self.end_runs();
            for link in self.servers.keys().copied().collect::<Vec<_>>() {
                self.talk(link);
            }
            self.check();
        }
    }

    fn end_runs(&mut self) {
        let (over, running) = self
            .running
            .iter()
            .partition(|(ends, ..)| *ends <= self.now);
        self.running = running;
        let over: Vec<(u64, Option<LinkId>, u32)> = over;
        for (_, home, weight) in over {
            self.shares.vacate(home, weight);
        }
    }

    fn talk(&mut self, link: LinkId) {
        let arrives = self.now + self.latency;
        let server = self.servers.get_mut(&link).expect("it is there");
        if self.now.is_multiple_of(HEARTBEAT) {
            self.shares.mark(link);
        }
        while let Some((_, message)) = server.up.pop_front_if(|(at, _)| *at <= self.now) {
            let answer = server.hear(message);
            server.down.extend(answer.map(|it| (arrives, it)));
        }
        let said = server.speak();
        server.down.extend(said.into_iter().map(|it| (arrives, it)));
        while let Some((_, message)) = server.down.pop_front_if(|(at, _)| *at <= self.now) {
            match message {
                Down::Assign(assign) => {
                    assert!(self.shares.consume(link, assign.weight), "without credit");
                    self.shares.occupy(link, assign.weight);
                    let ends = self.now + server.lasts;
                    self.running.push((ends, Some(link), assign.weight));
                    *server.started.entry(assign.weight).or_default() += 1;
                }
                Down::Want(want) => self.shares.want(link, want.weight),
                Down::RecallAnswer(answer) => self.shares.answered(link, answer.id),
                other => panic!("no matter of shares: {other:?}"),
            }
        }
        if let Some(recall) = self.shares.recall(link) {
            server.up.push_back((arrives, Up::Recall(recall)));
        }
        if let Some(total) = self.shares.grant(link) {
            let grant = wire::Grant { total };
            server.up.push_back((arrives, Up::Grant(grant)));
        }
    }

    fn check(&self) {
        let capacity = u64::from(self.capacity);
        let targets: u64 = self.shares.links.values().map(|it| it.target).sum();
        let there = !self.servers.is_empty();
        assert_eq!(targets, if there { capacity } else { 0 });
        let running: u64 = self.running.iter().map(|it| u64::from(it.2)).sum();
        assert_eq!(running, self.shares.running());
        let promised: u64 = self.servers.values().map(Server::promised).sum();
        assert!(promised + running <= capacity, "{promised} and {running}");
    }

    fn target(&self, link: u32) -> u64 {
        self.shares.links[&LinkId(link)].target
    }

    fn started(&self, link: u32, weight: u32) -> u64 {
        let started = &self.servers[&LinkId(link)].started;
        started.get(&weight).copied().unwrap_or(0)
    }
}

impl Server {
    /// What it can still assign, and what it has assigned that did not arrive.
    fn promised(&self) -> u64 {
        let coming = self.down.iter().map(|(_, message)| match message {
            Down::Assign(assign) => u64::from(assign.weight),
            _ => 0,
        });
        self.granted - self.consumed + coming.sum::<u64>()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Busy(u32, Vec<u32>, u64),
    Join(u32),
    Leave(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..80u64).prop_map(Step::Pass),
        4 => (0..4u32, vec(1..=8u32, 0..3), 1..60u64).prop_map(|(l, w, t)| Step::Busy(l, w, t)),
        1 => (0..4u32).prop_map(Step::Join),
        1 => (0..4u32).prop_map(Step::Leave),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_capacity_is_never_exceeded_and_nobody_waits_for_ever(
        capacity in 1..40u32,
        latency in 1..9u64,
        steps in vec(step(), 1..40),
    ) {
        let mut world = World::new(capacity, 2);
        world.latency = latency;
        for step in steps {
            match step {
                Step::Pass(ticks) => world.pass(ticks),
                Step::Busy(link, weights, lasts) => world.busy(link, &weights, lasts),
                Step::Join(link) => world.join(LinkId(link)),
                Step::Leave(link) => world.leave(LinkId(link)),
            }
        }
        // Whatever it came to, two servers can have runs of the whole capacity, and two others some of 1.
        let weights = [1, capacity, 1, capacity];
        let mut before = weights.map(|_| 0);
        for (link, weight) in (0..4).zip(weights) {
            world.join(LinkId(link));
            world.busy(link, &[weight], 5);
            before[link as usize] = world.started(link, weight);
        }
        world.pass(4 * 50 * (latency + 10));
        for (link, weight) in (0..4).zip(weights) {
            let started = world.started(link, weight);
            prop_assert!(started > before[link as usize], "{link} waits");
        }
    }

    #[test]
    fn servers_that_all_want_come_to_fair_shares(capacity in 4..60u32, links in 2..5u32, first in 0..5u32) {
        prop_assume!(links <= capacity);
        let mut world = World::new(capacity, links);
        // One has had everything before.
        world.busy(first % links, &[1], 40);
        world.pass(1_000);
        for link in 0..links {
            world.busy(link, &[1], 40);
        }
        world.pass(1_000);
        let fair = u64::from(capacity / links);
        for link in 0..links {
            let target = world.target(link);
            prop_assert!(target >= fair, "{link} has {target}, not {fair}");
        }
    }

    #[test]
    fn a_busy_server_has_nearly_all_while_the_others_are_idle(capacity in 4..600u32, links in 2..5u32) {
        prop_assume!(links < capacity);
        let mut world = World::new(capacity, links);
        world.pass(3 * HEARTBEAT);
        world.busy(0, &[1], 20);
        // Half of what the others leave at each step, and a round or two for each.
        world.pass(u64::from(links * capacity.ilog2() + 2) * 12);
        let nearly_all = u64::from(capacity - (links - 1));
        prop_assert_eq!(world.target(0), nearly_all);
    }

    #[test]
    fn a_heavy_want_is_met_among_light_ones_and_they_among_heavy_ones(
        capacity in 4..40u32,
        weight in 1..40u32,
        lasts in 1..80u64,
    ) {
        let weight = weight.min(capacity);
        let mut world = World::new(capacity, 3);
        world.busy(0, &[1, weight], lasts);
        for link in 1..3 {
            world.busy(link, &[1], 30);
        }
        world.pass(40 * (lasts + 40));
        if u64::from(weight) > world.target(0) {
            prop_assert!(world.started(0, weight) > 5);
        }
        for link in 1..3 {
            prop_assert!(world.started(link, 1) > 5, "{link} starves");
        }
    }
}

#[test]
fn a_link_alone_has_all_and_what_ends_is_granted_again() {
    let mut shares = Shares::new(10);
    let link = LinkId(1);
    shares.join(link);
    assert_eq!(shares.grant(link), Some(10));
    assert_eq!(shares.grant(link), None);
    assert!(shares.consume(link, 4));
    shares.occupy(link, 4);
    assert_eq!(shares.grant(link), None);
    shares.vacate(Some(link), 4);
    assert_eq!(shares.grant(link), Some(14));
    assert_eq!(shares.recall(link), None);
}

#[test]
fn a_new_stream_is_granted_what_does_not_run() {
    let mut shares = Shares::new(10);
    let link = LinkId(1);
    shares.join(link);
    shares.grant(link);
    shares.consume(link, 4);
    shares.occupy(link, 4);
    shares.leave(link);
    shares.join(link);
    assert_eq!(shares.grant(link), Some(6));
}

#[test]
fn an_answer_counts_for_its_own_recall_alone() {
    let mut shares = Shares::new(8);
    let (one, two) = (LinkId(1), LinkId(2));
    shares.join(one);
    assert_eq!(shares.grant(one), Some(8));
    shares.join(two);
    let recall = shares.recall(one).expect("it has more than its share");
    assert!(recall.stays);
    assert_eq!(shares.grant(two), None, "nothing is back yet");
    shares.answered(one, recall.id + 1);
    shares.answered(two, recall.id);
    assert_eq!(shares.grant(two), None);
    shares.answered(one, recall.id);
    assert_eq!(shares.grant(two), Some(4));
    assert_eq!(
        shares.grant(one),
        Some(4),
        "totals start from what was used"
    );
    shares.answered(one, recall.id);
    assert_eq!(shares.outstanding(), 8);
}

#[test]
fn what_a_heavy_want_was_given_and_not_used_is_taken_back() {
    let mut shares = Shares::new(8);
    let (one, two) = (LinkId(1), LinkId(2));
    shares.join(one);
    shares.join(two);
    assert_eq!(shares.grant(two), Some(4));
    shares.want(one, 8);
    assert_eq!(shares.grant(one), None, "all at once, or nothing");
    let recall = shares.recall(two).expect("the turn needs it");
    shares.answered(two, recall.id);
    assert_eq!(shares.grant(two), None, "it waits for the turn");
    assert_eq!(shares.grant(one), Some(8));
    assert_eq!(shares.recall(one), None);
    shares.mark(one);
    assert_eq!(shares.recall(one), None, "the server may not have had it");
    shares.mark(one);
    assert!(shares.recall(one).is_some());
}
