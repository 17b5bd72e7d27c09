//! A seeded maker of change sets. Most are legal; some have one thing wrong with them.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{
    BackfillChange, ChangeSet, JobChange, LetterChange, Prune, RunChange, ScheduleChange,
};
use drumtower_core::model::{
    Actor, After, AfterOn, AfterRow, Arrival, AuditAction, AuditEntry, AuditId, AuditKind,
    AuditObject, BackfillId, BackfillRow, BackfillState, BreakerRow, CalendarRef, CalendarVersion,
    Checkpoint, Counters, DrainRow, Ending, Epoch, Fence, GateKey, IdempotencyEntry,
    IdempotencyHash, JobId, JobName, JobRow, JobVersion, JsonText, Limits, LockName, LockRef,
    LockRow, Need, Open, Origin, Pause, Progress, QueueRow, QueueSpec, RateRow, Retention, Role,
    Run, RunId, RunState, ScheduleRow, SegmentId, SegmentRow, SessionId, SettingKey, SettingName,
    SettingRow, Standing, SweepCause, SweepRow, TokenId, TokenRow, Unfired, UnfiredReason, WallMs,
    WorkerName, WorkerRef,
};
use drumtower_store::conformance::SESSION_MS;
use drumtower_store::conformance::sample::{self, T0};

/// SplitMix64: small, seeded, the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            None
        } else {
            Some(from[self.below(from.len() as u64) as usize].clone())
        }
    }
}

/// What the generator believes to be stored.
pub struct Generator {
    random: Random,
    now_ms: i64,
    session: Option<SessionId>,
    old_session: Option<SessionId>,
    seq: u64,
    number: u64,
    jobs: BTreeMap<JobId, JobRow>,
    schedules: BTreeMap<JobId, ScheduleRow>,
    active: BTreeMap<RunId, Run>,
    seen: BTreeSet<RunId>,
    keys: Vec<(IdempotencyHash, WallMs)>,
    epochs: BTreeMap<SegmentId, SegmentRow>,
    ranges: Vec<Unfired>,
    /// The newest version of each.
    calendars: BTreeMap<CalendarRef, u32>,
    /// As they were last written; retention may have taken some.
    backfills: BTreeMap<BackfillId, BackfillRow>,
}

/// Calendars that jobs use, whether they were made or not; the last is never made.
const CALENDARS: [&str; 4] = ["workdays", "holidays", "work.days", "none"];

impl Generator {
    pub fn new(random: Random) -> Self {
        Self {
            random,
            now_ms: 0,
            session: None,
            old_session: None,
            seq: 0,
            number: 0,
            jobs: BTreeMap::new(),
            schedules: BTreeMap::new(),
            active: BTreeMap::new(),
            seen: BTreeSet::new(),
            keys: Vec::new(),
            epochs: BTreeMap::new(),
            ranges: Vec::new(),
            calendars: BTreeMap::new(),
            backfills: BTreeMap::new(),
        }
    }

    pub fn now(&self) -> WallMs {
        T0.plus(self.now_ms)
    }

    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }

    pub fn calendars(&self) -> impl Iterator<Item = CalendarRef> {
        let named = |namespace| CALENDARS.map(|name| sample::calendar(namespace, name));
        ["default", "team-b"].into_iter().flat_map(named)
    }

    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        self.seen.iter().copied()
    }

    pub fn keys(&self) -> impl Iterator<Item = (IdempotencyHash, WallMs)> {
        self.keys.iter().copied()
    }

    pub fn wants_session(&mut self) -> bool {
        self.session.is_none() || self.random.one_in(40)
    }

    pub fn begin(&mut self, session: SessionId) {
        self.old_session = self.session.replace(session);
        self.seq = 0;
    }

    /// The next set to try.
    pub fn changes(&mut self) -> ChangeSet {
        self.now_ms += match self.random.below(20) {
            0 => 86_400_000 / 2,
            1 => 7_200_000,
            2..6 => 61_000,
            _ => 900,
        };
        let mut changes = ChangeSet {
            session: self.session.unwrap_or_default(),
            seq: self.seq + 1,
            extend_ms: SESSION_MS,
            revoke: self.old_session.into_iter().collect(),
            ..ChangeSet::default()
        };
        self.add_jobs(&mut changes);
        self.add_calendars(&mut changes);
        self.add_runs(&mut changes);
        self.add_checkpoints(&mut changes);
        self.add_system(&mut changes);
        self.add_backfills(&mut changes);
        if self.random.one_in(8) {
            self.spoil(&mut changes);
        }
        changes
    }

    /// Takes over what was committed.
    pub fn settle(&mut self, changes: &ChangeSet, done: bool) {
        if !done {
            return;
        }
        self.seq = changes.seq;
        self.old_session = None;
        for change in changes.jobs.values() {
            let (JobChange::Insert(row) | JobChange::Update(row)) = change;
            self.jobs.insert(row.id, row.clone());
        }
        self.schedules.extend(
            changes
                .schedules
                .values()
                .map(|change| (change.row.job, change.row.clone())),
        );
        for (id, change) in &changes.runs {
            self.seen.insert(*id);
            match change {
                RunChange::Insert(run) | RunChange::Update(run) => {
                    drop(self.active.insert(*id, Run::clone(run)))
                }
                RunChange::Finish(_) | RunChange::InsertFinished(_) => drop(self.active.remove(id)),
            }
        }
        self.keys.extend(
            changes
                .keys
                .values()
                .map(|entry| (entry.hash, entry.created)),
        );
        self.epochs.extend(changes.segments.clone());
        self.ranges.extend(changes.unfired.values().cloned());
        self.calendars.extend(changes.calendars.keys().cloned());
        let written = changes.backfills.values().map(|change| change.row.clone());
        self.backfills.extend(written.map(|row| (row.id, row)));
    }

    fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn add_jobs(&mut self, changes: &mut ChangeSet) {
        if self.jobs.len() < 3 || (self.jobs.len() < 12 && self.random.one_in(12)) {
            let number = self.number();
            let row = sample::job_row(
                number,
                ["default", "team-b"][(number % 2) as usize],
                &format!("job-{number}"),
            );
            let made = sample::new_jobs([row]);
            changes.jobs.extend(made.jobs);
            for (key, version) in made.versions {
                changes.versions.insert(key, self.definition(version));
            }
            changes.schedules.extend(made.schedules);
        }
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        let Some(id) = self.random.pick(&ids).filter(|_| self.random.one_in(3)) else {
            return;
        };
        let mut row = self.jobs[&id].clone();
        row.revision += 1;
        match self.random.below(4) {
            0 => {
                row.paused = Some(Pause {
                    at: self.now(),
                    actor: Actor::new("ann"),
                })
            }
            1 => row.deleted = true,
            _ => {
                row.version += 1;
                let version = self.definition(sample::version(&row));
                changes.versions.insert((id, row.version), version);
                row.deleted |= self.random.one_in(12);
            }
        }
        changes.jobs.insert(id, JobChange::Update(row));
        let old = &self.schedules[&id];
        let (through, due) = (
            self.now().max(old.fired_through),
            self.random.one_in(4).then_some(self.now()),
        );
        let next = ScheduleRow {
            job: id,
            fired_through: through,
            next_nominal: due,
            next_due: due,
            fires: old.fires + 1,
            paused_through: self.random.one_in(3).then(|| through.plus(500)),
        };
        changes.schedules.insert(
            id,
            ScheduleChange {
                expected: Some(old.fired_through),
                row: next,
            },
        );
        self.add_unfired(changes, id);
    }

    /// A definition with calendars and jobs before it, or without.
    fn definition(&mut self, mut version: JobVersion) -> JobVersion {
        version.spec.after = self.random.one_in(3).then(|| After {
            jobs: [self.random.below(4), 4 + self.random.below(4)]
                .map(|n| JobName::new(&format!("job-{n}")).expect("a name"))
                .into(),
            need: Need::All,
            on: AfterOn::Success,
        });
        let mut some = || {
            let count = self.random.below(3) as usize;
            let names = (0..count).filter_map(|_| self.random.pick(&CALENDARS));
            names.collect::<Vec<_>>()
        };
        let (only, minus) = (some(), some());
        if self.random.one_in(3) {
            return version;
        }
        sample::uses(version, &only, &minus)
    }

    fn add_calendars(&mut self, changes: &mut ChangeSet) {
        if self.random.one_in(4) {
            let names = &CALENDARS[..3];
            let name = self.random.pick(names).unwrap_or(names[0]);
            let namespace = ["default", "team-b"][self.random.below(2) as usize];
            let calendar = sample::calendar(namespace, name);
            let newest = self.calendars.get(&calendar).copied().unwrap_or(0);
            // Now and then so many that old ones go.
            let count = if self.random.one_in(9) { 70 } else { 1 };
            for number in newest + 1..=newest + count {
                let version = CalendarVersion {
                    deleted: self.random.one_in(5),
                    ..sample::calendar_version(namespace, name, number)
                };
                changes
                    .calendars
                    .insert((calendar.clone(), number), version);
            }
        }
        if self.random.one_in(5) {
            let calendars: Vec<_> = self.calendars.keys().cloned().collect();
            let cause = self.random.pick(&calendars);
            let cause = cause.map_or(SweepCause::TimeZones, SweepCause::Calendar);
            let looked = self.random.below(900);
            let row = SweepRow {
                cause: cause.clone(),
                version: looked.to_string(),
                after: self.jobs.keys().next().copied(),
                looked,
                changed: looked / 3,
                started: self.now(),
                finished: self.random.one_in(2).then(|| self.now()),
            };
            changes.sweeps.insert(cause, row);
        }
        if self.random.one_in(20) {
            changes.tz_version = Some(format!("2026{}", self.random.below(26)));
        }
    }

    fn add_unfired(&mut self, changes: &mut ChangeSet, job: JobId) {
        let mine: Vec<Unfired> = self
            .ranges
            .iter()
            .filter(|range| range.job == job)
            .cloned()
            .collect();
        let first = match self.random.pick(&mine).filter(|_| self.random.one_in(2)) {
            Some(range) => range.first,
            None => self.now(),
        };
        let (last, server) = (self.now().plus(10), Actor::new("server-1"));
        let range = Unfired {
            job,
            first,
            last,
            version: 1,
            count: 2,
            reason: [UnfiredReason::Overlap, UnfiredReason::Edited][self.random.below(2) as usize],
            server,
        };
        changes.unfired.insert((job, first), range);
    }

    fn new_run(&mut self) -> Option<Run> {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        let job = self.random.pick(&ids)?;
        let number = self.number();
        let mut run = sample::run(self.now_ms, number % 4096, job);
        run.namespace = self.jobs[&job].namespace.clone();
        run.retention = Retention::ALL[self.random.below(4) as usize];
        if self.random.one_in(2) {
            (run.origin, run.nominal) = (Origin::Schedule, Some(run.due));
        }
        run.standing = match self.random.below(4) {
            0 => Standing {
                counts: self.random.one_in(2),
                key: self
                    .random
                    .one_in(2)
                    .then(|| self.random.below(3).to_string()),
                queued: self.random.one_in(3),
                superseded: self.random.one_in(3),
            },
            _ => Standing::of(run.origin),
        };
        if self.random.one_in(4) {
            run.parked = Some(format!("default/exec/{}", self.random.below(3)));
        }
        if self.random.one_in(5) {
            run.not_before = Some(run.due.plus(self.random.below(5_000) as i64));
        }
        if self.random.one_in(3) {
            run.start_by = Some(run.due.plus(self.random.below(9_000) as i64));
        }
        if self.random.one_in(5) {
            let (percent, at) = (self.random.below(101) as u8, run.created);
            let message = self.random.one_in(2).then(|| "half way".to_owned());
            run.progress = Some(Progress {
                percent,
                message,
                at,
            });
        }
        if self.random.one_in(6) {
            let text = "p".repeat(self.random.below(3_000) as usize);
            run.params = Some(JsonText::from_value(&serde_json::json!(text)));
        }
        Some(run)
    }

    fn end(&mut self, run: &Run) -> Run {
        let state = [
            RunState::Completed,
            RunState::Completed,
            RunState::Failed,
            RunState::Cancelled,
        ];
        let state = state[self.random.below(4) as usize];
        let lasted = T0.plus(self.now_ms).since(run.created).max(0);
        let mut fresh = run.clone();
        (fresh.parked, fresh.state) = (None, RunState::Pending);
        fresh.attempts.clear();
        fresh.transitions.truncate(1);
        let mut ended = sample::ended(fresh, state, lasted);
        if self.random.one_in(8) {
            ended.result = Some(JsonText::from_value(&serde_json::json!("r".repeat(2_000))));
        }
        ended
    }

    fn add_runs(&mut self, changes: &mut ChangeSet) {
        let known: Vec<Run> = self.active.values().cloned().collect();
        for run in known {
            let change = match self.random.below(5) {
                0 | 1 => RunChange::Finish(Box::new(self.end(&run))),
                2 if run.state == RunState::Pending => {
                    RunChange::Update(Box::new(sample::running(Run {
                        parked: None,
                        ..run
                    })))
                }
                _ => continue,
            };
            changes.runs.insert(change.run().id, change);
        }
        for _ in 0..self.random.below(14) {
            let Some(run) = self.new_run() else { return };
            let at_once = self.random.one_in(5);
            let change = if at_once {
                RunChange::InsertFinished(Box::new(self.end(&run)))
            } else {
                RunChange::Insert(Box::new(run))
            };
            if !self.seen.contains(&change.run().id) {
                changes.runs.insert(change.run().id, change);
            }
        }
    }

    /// Most of them newer than what is there, some not.
    fn add_checkpoints(&mut self, changes: &mut ChangeSet) {
        let seen: Vec<RunId> = self.seen.iter().copied().collect();
        for _ in 0..self.random.below(3) {
            let Some(run) = self.random.pick(&seen) else {
                return;
            };
            let number = match self.random.one_in(60) {
                true => 1,
                false => self.number(),
            };
            let body = vec![number as u8; self.random.below(2_000) as usize];
            let checkpoint = (!self.random.one_in(4)).then(|| Checkpoint {
                number,
                body: body.into(),
            });
            changes.checkpoints.insert(run, checkpoint);
        }
    }

    fn add_system(&mut self, changes: &mut ChangeSet) {
        let number = self.number();
        if self.random.one_in(3) {
            let id = SegmentId(self.random.below(5) as u16);
            let known = self.epochs.get(&id);
            let (epoch, mark) = known.map_or((0, 0), |row| (row.epoch.0, row.id_mark));
            // Whoever has it may keep the epoch or take it anew.
            let own = known.is_some_and(|row| row.owner == changes.session);
            let raised = if own { self.random.below(2) } else { 1 };
            let (epoch, id_mark) = (Epoch(epoch + raised), mark + number);
            changes.segments.insert(
                id,
                SegmentRow {
                    id,
                    owner: changes.session,
                    epoch,
                    id_mark,
                },
            );
            let counters = Counters {
                created: number,
                completed: 3,
                failed: 2,
                cancelled: 1,
            };
            changes
                .counters
                .insert((id, sample::namespace("team-b")), counters);
        }
        if self.random.one_in(3) {
            let text = format!("key-{}", number % 700);
            let hash = IdempotencyHash::of("default", "one", &text);
            let (run, created) = (RunId(number), self.now());
            changes.keys.insert(
                hash,
                IdempotencyEntry {
                    hash,
                    fingerprint: hash,
                    run,
                    created,
                },
            );
        }
        if self.random.one_in(10) {
            let id = TokenId(self.random.next());
            let (name, actor, created) = (format!("token-{number}"), Actor::new("ann"), self.now());
            let hash = [number as u8; 32];
            let row = TokenRow {
                id,
                name,
                role: Role::Viewer,
                namespace: None,
                hash,
                created,
                actor,
                revoked: false,
            };
            changes.tokens.insert(id, row);
        }
        self.records(changes);
        if self.random.one_in(2) {
            changes.prune = Some(Prune {
                now: self.now(),
                limit: self.random.below(12) as usize,
            });
        }
    }

    /// Settings, queues, rates, locks and entries of the audit log; some of the entries are old enough to go.
    fn records(&mut self, changes: &mut ChangeSet) {
        if self.random.one_in(8) {
            let names = [None, Some(sample::namespace("default"))];
            let key = SettingKey {
                namespace: names[self.random.below(2) as usize].clone(),
                name: SettingName::Notify,
            };
            let row = SettingRow {
                key: key.clone(),
                revision: self.random.below(9) + 1,
                value: None,
                updated: self.now(),
                actor: Actor::new("ann"),
            };
            changes.settings.insert(key, row);
        }
        if self.random.one_in(6) {
            let spec = serde_json::json!({
                "kind": "Queue",
                "name": format!("queue-{}", self.random.below(3)),
                "concurrency": self.random.below(9) + 1,
            });
            let spec: QueueSpec = serde_json::from_value(spec).expect("a queue");
            let row = QueueRow {
                spec,
                revision: self.random.below(9) + 1,
                paused: None,
                deleted: self.random.one_in(4),
                created: self.now(),
                updated: self.now(),
                actor: Actor::new("ann"),
            };
            changes.queues.insert(row.queue(), row);
        }
        if self.random.one_in(3) {
            let gate = GateKey::Job(JobId(self.random.below(12)));
            let row = RateRow {
                reached_ns: self.random.below(1 << 40) as i64,
                span_ns: 7,
            };
            let used = !self.random.one_in(3);
            changes.rates.insert(gate, used.then_some(row));
        }
        if self.random.one_in(4) {
            let row = LockRow {
                lock: LockRef {
                    namespace: sample::namespace("default"),
                    name: LockName::new(&format!("lock-{}", self.random.below(4))).expect("a name"),
                },
                owner: "somebody".to_owned(),
                fence: Fence(self.random.below(1_000)),
                ttl_ms: 30_000,
                acquired: self.now(),
                actor: Actor::new("ann"),
            };
            let held = self.random.one_in(2);
            changes.locks.insert(row.lock.clone(), held.then_some(row));
        }
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        if let Some(job) = self.random.pick(&jobs).filter(|_| self.random.one_in(4)) {
            let (at, cooldown_ms) = (self.now(), self.random.below(9_000));
            let open = self.random.one_in(2).then(|| Open {
                since: at,
                at: at.plus(5),
                cooldown_ms,
                probe: self.random.one_in(2).then_some(RunId(77)),
                passed: 1,
            });
            let failures = self.random.below(9) as u32;
            let row = BreakerRow {
                job,
                failures,
                open,
            };
            let kept = !self.random.one_in(3);
            changes.breakers.insert(job, kept.then_some(row));
        }
        self.add_endings(&jobs, changes);
        if self.random.one_in(4) {
            let row = DrainRow {
                worker: WorkerRef {
                    name: WorkerName::new(&format!("w-{}", self.random.below(4))).expect("a name"),
                    namespace: self.random.one_in(2).then(|| sample::namespace("default")),
                },
                since: self.now(),
                actor: Actor::new("ann"),
                deadline: self.random.one_in(2).then(|| self.now()),
                forced: None,
            };
            let there = self.random.one_in(2);
            let row = (row.worker.clone(), there.then_some(row));
            changes.drains.insert(row.0, row.1);
        }
        if self.random.one_in(4) {
            let back = self.random.below(2) as i64 * (AuditEntry::KEPT_MS + 1);
            let at = self.now().plus(-back);
            self.number += 1;
            let id = AuditId(AuditId::first_at(at).0 + self.number % 4000);
            let entry = AuditEntry {
                id,
                at,
                actor: Actor::new("ann"),
                action: AuditAction::Created,
                object: AuditObject {
                    kind: AuditKind::Job,
                    namespace: None,
                    name: format!("job-{}", self.random.below(3)),
                },
                version: None,
                changes: Vec::new(),
            };
            changes.audit.insert(id, entry);
        }
        if self.random.one_in(5) {
            let back = self.random.below(2) as i64 * (Limits::DEAD_LETTER_MS + 1);
            self.number += 1;
            let run = sample::run(self.now().0 - back, self.number, sample::job_id(1));
            let run = sample::ended(run, RunState::Failed, 5);
            let letter = LetterChange::Insert(Box::new(run.clone()));
            changes.letters.insert(run.id, letter);
        }
    }

    /// Ends that followers are told of, and what has come of the jobs before.
    fn add_endings(&mut self, jobs: &[JobId], changes: &mut ChangeSet) {
        let name = |n: u64| JobName::new(&format!("job-{n}")).expect("a name");
        let ending = Ending {
            run: RunId(70 + self.random.below(5)),
            root: RunId(7),
            namespace: sample::namespace("default"),
            name: name(self.random.below(4)),
            state: RunState::Completed,
            at: self.now(),
            through: self.random.one_in(2).then_some(JobId(9)),
        };
        if self.random.one_in(3) {
            let told = self.random.one_in(3);
            let run = ending.run;
            changes.endings.insert(run, (!told).then_some(ending));
        }
        if let Some(job) = self.random.pick(jobs).filter(|_| self.random.one_in(4)) {
            let arrival = Arrival {
                run: RunId(77),
                state: RunState::Failed,
                at: self.now(),
            };
            let row = AfterRow {
                arrived: [(name(self.random.below(4)), arrival)].into(),
                unmade: None,
            };
            let kept = !self.random.one_in(3);
            changes.waits.insert(job, kept.then_some(row));
        }
    }

    /// New backfills, and steps of old ones; some ended so long ago that they go, and a step of such a one is refused.
    fn add_backfills(&mut self, changes: &mut ChangeSet) {
        if self.random.one_in(4) {
            self.number += 1;
            let row = sample::backfill(self.now_ms, 1 + self.number % 3);
            let expected = None;
            changes
                .backfills
                .insert(row.id, BackfillChange { expected, row });
        }
        let known: Vec<BackfillRow> = self.backfills.values().cloned().collect();
        let picked = self.random.pick(&known).filter(|_| self.random.one_in(3));
        let gone = |row: &BackfillRow| {
            row.ended
                .is_some_and(|at| self.now().since(at) > Limits::BACKFILL_MS)
        };
        let gone = picked.as_ref().filter(|row| gone(row)).map(|row| row.id);
        // Few of those that retention took are tried.
        if let Some(id) = gone.filter(|_| !self.random.one_in(8)) {
            self.backfills.remove(&id);
        } else if let Some(mut row) = picked {
            let expected = Some(row.step);
            row.step += 1;
            row.made += 1;
            row.live = (0..self.random.below(3)).map(RunId).collect();
            row.state = BackfillState::ALL[self.random.below(4) as usize];
            let back = self.random.below(2) as i64 * (Limits::BACKFILL_MS + 1);
            row.ended = row.state.is_over().then(|| self.now().plus(-back));
            changes
                .backfills
                .insert(row.id, BackfillChange { expected, row });
        }
    }

    /// Breaks one thing.
    fn spoil(&mut self, changes: &mut ChangeSet) {
        let seen: Vec<RunId> = self.seen.iter().copied().collect();
        let run = self.random.pick(&seen).map(|id| Run {
            id,
            ..sample::run(0, 0, sample::job_id(1))
        });
        let stranger = sample::run(self.now_ms, 4_095, sample::job_id(1));
        let jobs: Vec<JobRow> = self.jobs.values().cloned().collect();
        let taken = self.random.pick(&jobs);
        match (self.random.below(10), run, taken) {
            (0, ..) => changes.seq += self.random.below(3) + 1,
            (1, ..) => changes.seq -= 1,
            (2, Some(run), _) => drop(
                changes
                    .runs
                    .insert(run.id, RunChange::Insert(Box::new(run))),
            ),
            (3, Some(run), _) => {
                let ended = sample::ended(run, RunState::Failed, 1);
                changes
                    .runs
                    .insert(ended.id, RunChange::InsertFinished(Box::new(ended)));
            }
            (4, ..) => drop(
                changes
                    .runs
                    .insert(stranger.id, RunChange::Update(Box::new(stranger))),
            ),
            (5, _, Some(row)) => {
                let made = sample::new_jobs([JobRow {
                    id: sample::job_id(4_000),
                    ..row
                }]);
                changes.jobs.extend(made.jobs);
                changes.versions.extend(made.versions);
                changes.schedules.extend(made.schedules);
            }
            (6, _, Some(row)) => {
                let row = sample::schedule(row.id, None);
                let expected = Some(T0.plus(-77));
                changes
                    .schedules
                    .insert(row.job, ScheduleChange { expected, row });
            }
            (7, ..) => changes.revoke.push(SessionId(777)),
            (8, ..) => {
                let newest = self.calendars.get(&sample::calendar("default", "workdays"));
                let number = newest.map_or(2, |number| number - 1);
                let version = sample::calendar_version("default", "workdays", number);
                changes
                    .calendars
                    .insert((version.calendar(), number), version);
            }
            _ => changes.session = SessionId(changes.session.0 + 5),
        }
    }
}
