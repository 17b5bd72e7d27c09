//! Which server is to own which segment: the same answer for everybody who sees the same servers.
//!
//! Servers rank themselves for each segment by a hash of who they are and of the segment (rendezvous hashing), so whoever
//! comes or goes moves only what it gets or had. Segments that belong together (`model/tie.rs`) go where the first one goes.
//! Nobody leads: each server reads who is there and does its own part. It gives up what another ranks higher for, and takes
//! what it ranks highest for once nobody has it whose session holds. Views may differ for a while: the store lets only one
//! take a segment, and whoever was slower looks again.

use crate::engine::Transfer;
use crate::fault::{Fault, armed};
use crate::model::{Member, SegmentId, SegmentRow, SegmentSet, SessionId, SessionRow, WallMs};

/// What a server sees when it looks around.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// By the database's clock.
    pub now: WallMs,
    /// Every session that is not revoked.
    pub sessions: Vec<SessionRow>,
    pub segments: Vec<SegmentRow>,
    pub ties: SegmentSet,
}

impl Sight {
    /// What `me` has to do so that everybody owns its share.
    pub fn plan(&self, me: SessionId) -> Transfer {
        let (live, over): (Vec<&SessionRow>, Vec<&SessionRow>) =
            self.sessions.iter().partition(|row| self.holds(row, me));
        let mut plan = Transfer::default();
        let is_held = |row: &SegmentRow| live.iter().any(|it| it.id == row.owner);
        let first = self.segments.iter().find(|row| row.id == SegmentId::HOME);
        let is_within_reach = first.is_some_and(|row| row.owner == me || !is_held(row));
        // What is tied to the first segment waits until that is free too.
        let home = owner(&live, SegmentId::HOME).filter(|it| *it != me || is_within_reach);
        for row in &self.segments {
            let wanted = match row.id == SegmentId::HOME || self.is_tied(row.id) {
                true => home,
                false => owner(&live, row.id),
            };
            if wanted == Some(me) && !is_held(row) {
                plan.take.push(row.clone());
            } else if row.owner == me && wanted != Some(me) {
                plan.give.insert(row.id);
            }
        }
        if !plan.take.is_empty() && !armed(Fault::TakeOverWithoutRevoke) {
            plan.revoke = over.iter().map(|row| row.id).collect();
        }
        plan
    }

    /// Two servers that are there and say that they are reached at one address: one of them cannot be.
    pub fn at_one_address(&self, me: SessionId) -> Option<(&Member, &Member)> {
        let live = || self.sessions.iter().filter(|row| self.holds(row, me));
        let pairs = live().flat_map(|one| live().map(move |other| (one, other)));
        let mut pairs = pairs.filter(|(one, other)| one.id < other.id);
        let clash = pairs.find(|(one, other)| {
            let (one, other) = (&one.member, &other.member);
            one.address.is_some() && one.address == other.address && are_apart(one, other)
        });
        clash.map(|(one, other)| (&one.member, &other.member))
    }

    fn is_tied(&self, segment: SegmentId) -> bool {
        self.ties.contains(segment) && !armed(Fault::TieNotKept)
    }

    /// Whether a session has not ended. A server that was started anew where another was has the place of that one: two
    /// cannot listen at one address.
    fn holds(&self, row: &SessionRow, me: SessionId) -> bool {
        let newer = |it: &SessionRow| {
            it.id > row.id && it.member.address.is_some() && is_same(&it.member, &row.member)
        };
        let lasts = row.expires > self.now && !armed(Fault::LiveSessionRevoked);
        row.id == me || (lasts && !self.sessions.iter().any(newer))
    }
}

/// Whether both are lives of one server. One data directory has one server at a time; two directories under one name and
/// address are two servers with one configuration, and neither has the place of the other.
fn is_same(one: &Member, other: &Member) -> bool {
    one.server == other.server && one.address == other.address && !are_apart(one, other)
}

/// Whether they keep what is theirs in different places, as far as both say where.
fn are_apart(one: &Member, other: &Member) -> bool {
    let homes = one.home.zip(other.home);
    homes.is_some_and(|(one, other)| one != other)
}

fn owner(live: &[&SessionRow], segment: SegmentId) -> Option<SessionId> {
    let ranked = live.iter().map(|row| (rank(&row.member, segment), row.id));
    ranked.max().map(|(_, session)| session)
}

fn rank(member: &Member, segment: SegmentId) -> u64 {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(member.server.0.as_bytes());
    hasher.update(&[0]);
    hasher.update(member.address.as_deref().unwrap_or("").as_bytes());
    hasher.update(&[0]);
    hasher.update(&segment.0.to_le_bytes());
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{Epoch, Home};

    fn session(id: u64, server: &str) -> SessionRow {
        SessionRow {
            id: SessionId(id),
            member: Member {
                address: Some(format!("http://{server}:7070")),
                ..Member::alone(server)
            },
            seq: 1,
            expires: WallMs(10_000),
            revoked: false,
            took: None,
        }
    }

    /// Servers that look around in turn until nobody has anything to do.
    struct Cluster(Sight);

    impl Cluster {
        fn new() -> Self {
            let row = |id| SegmentRow {
                id,
                owner: SessionId(0),
                epoch: Epoch(0),
                id_mark: 0,
            };
            Self(Sight {
                segments: SegmentSet::ALL.iter().map(row).collect(),
                ..Sight::default()
            })
        }

        fn carry_out(&mut self, me: SessionId, plan: &Transfer) {
            let taken = |id| plan.take.iter().any(|row| row.id == id);
            for row in &mut self.0.segments {
                if taken(row.id) {
                    (row.owner, row.epoch) = (me, Epoch(row.epoch.0 + 1));
                } else if plan.give.contains(row.id) {
                    row.owner = SessionId(0);
                }
            }
            self.0.sessions.retain(|row| !plan.revoke.contains(&row.id));
        }

        /// How many segments changed hands.
        fn settle(&mut self) -> usize {
            let before: Vec<SessionId> = self.0.segments.iter().map(|row| row.owner).collect();
            for _ in 0..3 {
                let ids: Vec<SessionId> = self.0.sessions.iter().map(|row| row.id).collect();
                for id in ids {
                    let expired = |row: &SessionRow| row.id == id && row.expires <= self.0.now;
                    if !self.0.sessions.iter().any(expired) {
                        let plan = self.0.plan(id);
                        self.carry_out(id, &plan);
                    }
                }
            }
            let after = self.0.segments.iter().map(|row| row.owner);
            before.iter().zip(after).filter(|(a, b)| **a != *b).count()
        }

        fn owned(&self) -> BTreeMap<u64, usize> {
            let mut owned = BTreeMap::new();
            for row in &self.0.segments {
                *owned.entry(row.owner.0).or_default() += 1;
            }
            owned
        }
    }

    #[test]
    fn who_comes_or_goes_moves_only_its_share() {
        let mut cluster = Cluster::new();
        cluster.0.sessions.push(session(1, "a"));
        assert_eq!(cluster.settle(), 1024);
        cluster.0.sessions.push(session(2, "b"));
        let moved = cluster.settle();
        assert_eq!(cluster.owned()[&2], moved);
        assert!((400..624).contains(&moved), "{moved}");
        cluster.0.sessions.push(session(3, "c"));
        let moved = cluster.settle();
        assert_eq!(cluster.owned()[&3], moved);
        assert!((250..440).contains(&moved), "{moved}");
        let had = cluster.owned()[&2];
        cluster.0.sessions.retain(|row| row.id != SessionId(2));
        assert_eq!(cluster.settle(), had);
        assert_eq!(cluster.owned().values().sum::<usize>(), 1024);
        assert!(!cluster.owned().contains_key(&2));
    }

    #[test]
    fn what_a_live_session_has_is_given_and_never_taken() {
        let mut cluster = Cluster::new();
        cluster.0.sessions.push(session(1, "a"));
        cluster.settle();
        cluster.0.sessions.push(session(2, "b"));
        assert!(cluster.0.plan(SessionId(2)).is_nothing());
        let plan = cluster.0.plan(SessionId(1));
        assert!(!plan.give.is_empty() && plan.take.is_empty());
        // Its session has ended: the other takes everything and revokes it.
        cluster.0.sessions[0].expires = WallMs(0);
        let plan = cluster.0.plan(SessionId(2));
        assert_eq!(plan.take.len(), 1024);
        assert_eq!(plan.revoke, [SessionId(1)]);
    }

    #[test]
    fn a_server_that_was_started_anew_does_not_wait_for_its_own_session() {
        let mut cluster = Cluster::new();
        cluster.0.sessions.push(session(1, "a"));
        cluster.settle();
        cluster.0.sessions.push(session(2, "a"));
        let plan = cluster.0.plan(SessionId(2));
        assert_eq!((plan.take.len(), plan.revoke), (1024, vec![SessionId(1)]));
    }

    #[test]
    fn who_has_another_data_directory_is_another_server() {
        let mut cluster = Cluster::new();
        let at_home = |id, home| {
            let mut row = session(id, "a");
            row.member.home = Some(Home(home));
            row
        };
        cluster.0.sessions.push(at_home(1, 7));
        cluster.settle();
        // The same directory: started anew.
        cluster.0.sessions.push(at_home(2, 7));
        let plan = cluster.0.plan(SessionId(2));
        assert_eq!((plan.take.len(), plan.revoke), (1024, vec![SessionId(1)]));
        assert_eq!(cluster.0.at_one_address(SessionId(2)), None);
        // A copied configuration: nobody is deposed, and it can be told.
        cluster.0.sessions[1] = at_home(2, 8);
        assert!(cluster.0.plan(SessionId(2)).is_nothing());
        let (one, other) = cluster
            .0
            .at_one_address(SessionId(1))
            .expect("both are there");
        assert_eq!((one.home, other.home), (Some(Home(7)), Some(Home(8))));
        cluster.settle();
        cluster.settle();
        let names: Vec<u64> = cluster.0.sessions.iter().map(|row| row.id.0).collect();
        assert_eq!(names, [1, 2]);
        assert_eq!(cluster.settle(), 0, "nothing goes to and fro");
        // Who does not say where it keeps things is taken for the same, as by a program before it.
        let mut cluster = Cluster::new();
        cluster.0.sessions.push(at_home(1, 7));
        cluster.settle();
        cluster.0.sessions.push(session(2, "a"));
        assert_eq!(cluster.0.plan(SessionId(2)).revoke, [SessionId(1)]);
    }

    #[test]
    fn what_is_tied_goes_where_the_first_segment_goes() {
        let mut cluster = Cluster::new();
        for (id, server) in [(1, "a"), (2, "b"), (3, "c")] {
            cluster.0.sessions.push(session(id, server));
        }
        cluster.settle();
        let tied: SegmentSet = (100..200).map(SegmentId).collect();
        cluster.0.ties = tied;
        cluster.settle();
        let owner = |id: usize| cluster.0.segments[id].owner;
        assert!((100..200).all(|id| owner(id) == owner(0)));
        assert!((200..1024).any(|id| owner(id) != owner(0)));
    }

    #[test]
    fn what_is_tied_is_not_taken_before_the_first_segment_is_free() {
        let mut cluster = Cluster::new();
        cluster.0.sessions.push(session(1, "a"));
        cluster.settle();
        let names = ["b", "c", "d", "e", "f", "g"];
        let newer = names.iter().find(|name| {
            let first = |server| rank(&session(0, server).member, SegmentId::HOME);
            first(name) > first("a")
        });
        cluster
            .0
            .sessions
            .push(session(2, newer.expect("one ranks higher")));
        cluster.0.ties = (100..110).map(SegmentId).collect();
        cluster.0.segments[100].owner = SessionId(0);
        let takes = |cluster: &Cluster| {
            let plan = cluster.0.plan(SessionId(2));
            plan.take.iter().map(|row| row.id).collect::<Vec<_>>()
        };
        assert_eq!(takes(&cluster), [], "the first one has an owner");
        let plan = cluster.0.plan(SessionId(1));
        cluster.carry_out(SessionId(1), &plan);
        assert!(takes(&cluster).contains(&SegmentId(100)));
        cluster.settle();
        assert!((100..110).all(|id| cluster.0.segments[id].owner == SessionId(2)));
    }
}
