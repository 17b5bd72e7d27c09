//! V14: who owns which segment, learned from the commits that move them. Only the session that a segment's row names may write of
//! that segment, under one epoch; it takes a segment from nobody, or from a session that is revoked. On a shared store nobody is
//! revoked whose session has not ended, unless its server has begun another.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Epoch, SegmentId, SegmentRow, SegmentSet, SessionId, WallMs};
use drumtower_server::driver::boot::Taken;
use drumtower_store::Read;

use super::Checks;
use crate::clock::{At, SECOND};
use crate::world::World;

#[derive(Default)]
pub(super) struct Owners {
    /// Who has a segment, since which epoch.
    of: BTreeMap<SegmentId, (SessionId, Epoch)>,
    sessions: BTreeMap<SessionId, Session>,
}

struct Session {
    server: usize,
    /// By the store's clock.
    ends: WallMs,
    /// When it went on although it had ended: whoever has seen that may still revoke it.
    lapsed: Option<At>,
    revoked: bool,
}

/// Between a look and the commit that follows from it, at most.
const DECIDES_WITHIN_US: u64 = 60 * SECOND;

impl World {
    /// A server begins a session, which has taken something.
    pub(crate) fn check_joined(&mut self, server: usize, taken: &Taken) {
        let now = self.store_now();
        let ends = now.plus(self.servers[server].options.session_ms);
        let session = Session {
            server,
            ends,
            lapsed: None,
            revoked: false,
        };
        let owners = &mut self.checks.owners;
        owners.sessions.insert(taken.session, session);
        let live = self.reader.sessions().map(|(_, rows)| rows);
        let live: BTreeSet<SessionId> = live.unwrap_or_default().iter().map(|it| it.id).collect();
        let known = self.checks.owners.sessions.iter();
        let revoked = known.filter(|(id, row)| !row.revoked && !live.contains(id));
        for id in revoked.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.revoked(id, now);
        }
        for row in self.reader.segments().unwrap_or_default() {
            if taken.segments.contains(row.id) {
                self.checks.taken(taken.session, &row);
            }
        }
    }

    fn revoked(&mut self, id: SessionId, now: WallMs) {
        let is_cluster = self.is_cluster();
        let sessions = &mut self.checks.owners.sessions;
        let Some(row) = sessions.get_mut(&id) else {
            return;
        };
        row.revoked = true;
        let (server, ends) = (row.server, row.ends);
        let lapsed = row
            .lapsed
            .is_some_and(|at| self.at.since(at) < DECIDES_WITHIN_US);
        let mut newer = sessions.range(SessionId(id.0 + 1)..);
        let anew = newer.any(|(_, row)| row.server == server);
        if is_cluster && ends > now && !anew && !lapsed {
            let words = format!(
                "session {} of server {server} is revoked {} ms before its end",
                id.0,
                ends.since(now)
            );
            self.checks.find("V14", words);
        }
    }

    pub(super) fn check_owners(&mut self, changes: &ChangeSet) {
        let (me, now) = (changes.session, self.store_now());
        for id in changes.revoke.iter().filter(|id| **id != me) {
            self.revoked(*id, now);
        }
        let known = self.checks.owners.sessions.get_mut(&me);
        let revoked = known.is_none_or(|row| {
            if row.ends <= now {
                row.lapsed = Some(self.at);
            }
            row.ends = now.plus(changes.extend_ms);
            row.revoked
        });
        if revoked {
            let words = format!(
                "a commit of session {} was taken after another took over",
                me.0
            );
            self.checks.find("V14", words);
        }
        let owned = |segment: &SegmentId| {
            let owner = self.checks.owners.of.get(segment);
            owner.is_some_and(|(owner, _)| *owner == me)
        };
        let written = touched(changes);
        let foreign = written.iter().find(|segment| !owned(segment));
        if let Some(segment) = foreign {
            let words = format!(
                "session {} writes of segment {}, which it does not own",
                me.0, segment.0
            );
            self.checks.find("V14", words);
        }
        for row in changes.segments.values() {
            self.checks.moved(me, row);
        }
        // Who leaves ends its session with its last commit.
        if changes.revoke.contains(&me)
            && let Some(row) = self.checks.owners.sessions.get_mut(&me)
        {
            row.revoked = true;
        }
    }

    /// Whether a commit takes segments: whoever is slower than another is refused.
    pub(crate) fn takes(&self, changes: &ChangeSet) -> bool {
        let owners = &self.checks.owners.of;
        let mut rows = changes.segments.values();
        rows.any(|row| {
            let before = owners.get(&row.id).map(|(owner, _)| *owner);
            row.owner == changes.session && before != Some(changes.session)
        })
    }

    /// The server whose session a segment's row names, unless that is revoked.
    pub(crate) fn owner_of(&self, segment: SegmentId) -> Option<usize> {
        let owners = &self.checks.owners;
        let (session, _) = owners.of.get(&segment)?;
        let row = owners.sessions.get(session)?;
        (!row.revoked).then_some(row.server)
    }

    /// What the clock of a segment's owner shows.
    pub(crate) fn wall_at(&self, segment: SegmentId) -> WallMs {
        let server = self.owner_of(segment).unwrap_or(0);
        self.servers[server].clock.now(self.at).wall
    }

    pub(super) fn earliest_wall(&self) -> Option<WallMs> {
        let servers = self.servers.iter();
        servers.map(|node| node.clock.now(self.at).wall).min()
    }
}

impl Checks {
    /// Whether a session has what is kept for all segments.
    pub(super) fn has_home(&self, session: SessionId) -> bool {
        let home = self.owners.of.get(&SegmentId::HOME);
        home.is_some_and(|(owner, _)| *owner == session)
    }

    fn taken(&mut self, me: SessionId, row: &SegmentRow) {
        let nobody = (SessionId(0), Epoch(0));
        let before = self.owners.of.insert(row.id, (row.owner, row.epoch));
        let (owner, epoch) = before.unwrap_or(nobody);
        let alive = self.owners.sessions.get(&owner).filter(|it| !it.revoked);
        if alive.is_some() {
            let words = format!(
                "session {} takes segment {} from session {}, which is not revoked",
                me.0, row.id.0, owner.0
            );
            self.find("V14", words);
        }
        if row.owner != me || row.epoch <= epoch {
            let words = format!(
                "session {} takes segment {} under {:?} after {epoch:?}",
                me.0, row.id.0, row.epoch
            );
            self.find("V14", words);
        }
    }

    /// A row of a segment in a commit: its mark is raised, or it comes, or it goes.
    fn moved(&mut self, me: SessionId, row: &SegmentRow) {
        let before = self.owners.of.get(&row.id).copied();
        let had = before.is_some_and(|(owner, _)| owner == me);
        if row.owner == me && !had {
            return self.taken(me, row);
        }
        let stays = row.owner == me || row.owner == SessionId(0);
        if !had || !stays || before.is_some_and(|(_, epoch)| epoch != row.epoch) {
            let words = format!("session {} writes {row:?} over {before:?}", me.0);
            self.find("V14", words);
        }
        self.owners.of.insert(row.id, (row.owner, row.epoch));
    }
}

/// The segments that a commit writes of, beside their rows.
fn touched(changes: &ChangeSet) -> SegmentSet {
    let runs = changes.runs.keys().chain(changes.checkpoints.keys());
    let runs = runs
        .chain(changes.letters.keys())
        .chain(changes.endings.keys());
    let jobs = changes.jobs.keys().chain(changes.schedules.keys());
    let jobs = jobs
        .chain(changes.breakers.keys())
        .chain(changes.waits.keys());
    let versions = changes.versions.keys().map(|(job, _)| job);
    let unfired = changes.unfired.keys().map(|(job, _)| job);
    let mut segments: SegmentSet = runs.map(|it| it.segment()).collect();
    let jobs = jobs.chain(versions).chain(unfired).map(|it| it.segment());
    let locks = changes.locks.keys().map(|it| it.segment());
    let backfills = changes.backfills.keys().map(|it| it.segment());
    let counters = changes.counters.keys().map(|(segment, _)| *segment);
    let rates = changes.rates.keys().map(|gate| match gate.job() {
        Some(job) => job.segment(),
        None => SegmentId::HOME,
    });
    let owned = jobs.chain(locks).chain(backfills).chain(counters);
    for segment in owned.chain(rates) {
        segments.insert(segment);
    }
    let shared = changes.queues.len()
        + changes.calendars.len()
        + changes.drains.len()
        + changes.tokens.len()
        + changes.settings.len()
        + changes.sweeps.len()
        + usize::from(changes.tz_version.is_some())
        + usize::from(changes.prune.is_some());
    if shared > 0 {
        segments.insert(SegmentId::HOME);
    }
    segments
}
