//! The task that drives notifications: it hears, reads, sends and keeps; what follows from what is decided elsewhere.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drumtower_core::model::{JobId, SegmentSet, WallMs};
use drumtower_store::Read;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

use super::event::{Event, Sighting};
use super::group::{Grouped, Groups, Pace};
use super::outbox::Outcome;
use super::rules::Rules;
use super::state::State;
use super::watch::{Suspect, Watch};
use super::{Notices, Options, heal};
use crate::api::time::now;
use crate::driver::Handle;
use crate::driver::tap::{Chunk, Fact, Heard, Interest, JobDeed, Subscription};

const TICK: Duration = Duration::from_millis(500);
/// The state is kept so long after something was told, or after anything happened.
const KEEP_WITHIN: Duration = Duration::from_secs(1);
const KEEP_CURSOR_WITHIN: Duration = Duration::from_secs(10);
/// Messages that are sent at once.
const SENDING: usize = 16;
const SUSPECTS: usize = 1000;
/// Ends are stamped before they are committed: what lies this close before the cursor is looked at again.
const OVERLAP_MS: i64 = 5000;
/// Longer than it takes until somebody has the segments of a server that is gone.
const TAKEN_OVER_WITHIN_MS: i64 = 20_000;
/// Runs that are known to have been told of after a restart.
const TOLD_KEPT: usize = 2000;
/// Runs that were too many to watch are looked for again after so long.
const COMPLETE_AGAIN: Duration = Duration::from_secs(60);
const READ_AGAIN: Duration = Duration::from_secs(1);

pub struct Notifier {
    data: PathBuf,
    notices: Notices,
    reader: Arc<dyn Read>,
    facts: Subscription,
    settings: channel::Receiver<u64>,
    /// Whose runs are this server's to tell of.
    owned: channel::Receiver<SegmentSet>,
    pace: Pace,
    watch: Watch,
    rules: Rules,
    groups: Groups,
    cursor: WallMs,
    late_through: WallMs,
    sending: JoinSet<(String, Outcome)>,
    /// Something was told since the state was kept; anything happened.
    told: bool,
    moved: bool,
    kept: Instant,
    completed: Instant,
}

impl Notifier {
    /// Goes on where the state file ends. It listens from here on, and reads it; nothing is sent before [`Notifier::run`].
    pub fn new(
        data: PathBuf,
        options: &Options,
        notices: Notices,
        handle: &Handle,
        reader: Arc<dyn Read>,
    ) -> Self {
        let state = State::load(&data, now());
        *notices.outbox() = state.outbox;
        Self {
            data,
            notices,
            reader,
            facts: handle.tap().subscribe(Interest::Committed),
            settings: handle.settings_changed(),
            owned: handle.owned(),
            pace: Pace {
                per_hour: options.per_hour,
            },
            watch: Watch::resume(state.failing, state.told),
            rules: Rules::default(),
            groups: state.groups,
            cursor: state.cursor,
            late_through: state.late_through,
            sending: JoinSet::new(),
            told: true,
            moved: false,
            kept: Instant::now(),
            completed: Instant::now(),
        }
    }

    /// Runs until the driver ends.
    pub async fn run(mut self) {
        self.read_settings().await;
        self.heal().await;
        self.watch_waiting(self.late_through).await;
        self.keep().await;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                heard = self.facts.next() => match heard {
                    None => break,
                    Some(Heard::Facts(chunk)) => self.take(&chunk).await,
                    Some(Heard::Missed(count)) => {
                        tracing::debug!(count, "facts were missed and are read from the store");
                        self.heal().await;
                        self.watch_waiting(self.late_through).await;
                    }
                },
                Ok(()) = self.settings.changed() => self.read_settings().await,
                // What came with segments from another server is this one's to tell of from here on, and what that one may not
                // have come to tell of.
                Ok(()) = self.owned.changed() => {
                    self.cursor = self.cursor.min(now().plus(-TAKEN_OVER_WITHIN_MS));
                    self.heal().await;
                    self.watch_waiting(self.late_through).await;
                }
                Some(sent) = self.sending.join_next() => self.sent(sent.ok()),
                _ = ticks.tick() => self.tick().await,
            }
            self.send();
        }
        self.sending.shutdown().await;
        self.keep().await;
    }

    async fn tick(&mut self) {
        let now = now();
        loop {
            let suspects = self.watch.suspects(now, SUSPECTS);
            let all = suspects.len() < SUSPECTS;
            self.judge_waiting(suspects).await;
            if all {
                break;
            }
        }
        self.late_through = now;
        for message in self.groups.tick(self.pace, now) {
            self.told = true;
            self.notices.outbox().push(message, now);
        }
        if self.watch.incomplete() && self.completed.elapsed() >= COMPLETE_AGAIN {
            self.watch_waiting(self.late_through).await;
        }
        let since = self.kept.elapsed();
        if self.told && since >= KEEP_WITHIN || self.moved && since >= KEEP_CURSOR_WITHIN {
            self.keep().await;
        }
    }

    async fn take(&mut self, chunk: &Chunk) {
        let (mut events, mut suspects) = (Vec::new(), Vec::new());
        for fact in &chunk.facts {
            match fact {
                Fact::Run(run) => {
                    let (event, suspect) = self.watch.see(&Sighting::of_fact(run));
                    events.extend(event);
                    suspects.extend(suspect);
                    self.cursor = self.cursor.max(run.at);
                    self.moved = true;
                }
                Fact::Job(job) => {
                    self.rules.forget(job.job.id);
                    if job.deed == JobDeed::Deleted {
                        self.watch.forget(job.job.id);
                    }
                }
                _ => {}
            }
        }
        self.judge(events, suspects).await;
    }

    /// Looks at what ended and was not heard.
    async fn heal(&mut self) {
        let (from, failing) = (self.cursor.plus(-OVERLAP_MS), self.watch.failing().clone());
        let found = self
            .read(move |store| heal::ended_since(store, from, &failing))
            .await;
        let owned = *self.owned.borrow_and_update();
        let own = |(run, _): &&heal::Found| owned.contains(run.id.segment());
        let mut events = Vec::new();
        for (run, job) in found.iter().filter(own) {
            let sighting = Sighting::of_run(run, job);
            let (event, _) = self.watch.see(&sighting);
            events.extend(event);
            self.cursor = self.cursor.max(sighting.at);
        }
        self.judge(events, Vec::new()).await;
    }

    /// Watches the runs that wait in the store; `judged` is the instant until which they were judged before.
    async fn watch_waiting(&mut self, judged: WallMs) {
        self.watch.begin_completing();
        self.completed = Instant::now();
        let found = self.read(heal::waiting).await;
        let owned = *self.owned.borrow();
        let own = |(run, _): &&heal::Found| owned.contains(run.id.segment());
        for (run, job) in found.iter().filter(own) {
            self.watch.wait(&Sighting::of_run(run, job), judged);
        }
    }

    async fn judge_waiting(&mut self, suspects: Vec<Suspect>) {
        self.learn(suspects.iter().map(|it| it.job.id)).await;
        let owned = *self.owned.borrow();
        for suspect in suspects {
            let thresholds = self.rules.thresholds(&suspect.job);
            let events = suspect.judge(&thresholds);
            self.watch.judged(&suspect, &thresholds);
            // Of one that went to another server nobody hears here whether it has started.
            if owned.contains(suspect.job.id.segment()) {
                events.into_iter().for_each(|event| self.tell(&event));
            }
        }
    }

    async fn judge(&mut self, events: Vec<Event>, suspects: Vec<Suspect>) {
        let jobs = events.iter().map(|it| it.job_id);
        self.learn(jobs.chain(suspects.iter().map(|it| it.job.id)))
            .await;
        for suspect in suspects {
            let late = suspect.judge(&self.rules.thresholds(&suspect.job));
            late.into_iter().for_each(|event| self.tell(&event));
        }
        events.into_iter().for_each(|event| self.tell(&event));
    }

    fn tell(&mut self, event: &Event) {
        let now = now();
        for (place, group_for_ms) in self.rules.places(event) {
            self.told = true;
            let event = event.clone();
            match self.groups.add(self.pace, now, &place, group_for_ms, event) {
                Grouped::Send(message) => self.notices.outbox().push(message, now),
                Grouped::Kept => {}
                Grouped::Dropped => {
                    tracing::warn!(target = %place.target, "too many targets are told at once: one is left out");
                }
            }
        }
    }

    fn send(&mut self) {
        let room = SENDING.saturating_sub(self.sending.len());
        let now = now();
        for message in self.notices.outbox().start(now, room) {
            let notices = self.notices.clone();
            self.sending.spawn(async move {
                let outcome = notices.deliver(&message, now).await;
                (message.id, outcome)
            });
        }
    }

    /// A task that died is tried again after the next start; there is nothing in it that could.
    fn sent(&mut self, sent: Option<(String, Outcome)>) {
        let Some((id, outcome)) = sent else { return };
        match &outcome {
            Outcome::Delivered => tracing::debug!(%id, "a message was delivered"),
            Outcome::Again(error) => {
                tracing::warn!(%id, %error, "a message was not delivered and is tried again");
            }
            Outcome::Never(error) => tracing::error!(%id, %error, "a message cannot be delivered"),
        }
        self.notices.outbox().finished(&id, outcome, now());
        self.told = true;
    }

    async fn read_settings(&mut self) {
        let namespaces = self.read(Rules::read_namespaces).await;
        self.rules.set_namespaces(namespaces);
    }

    /// Reads the rules of jobs that are not known.
    async fn learn(&mut self, jobs: impl Iterator<Item = JobId>) {
        let unknown: BTreeSet<JobId> = jobs.filter(|job| !self.rules.knows(*job)).collect();
        if unknown.is_empty() {
            return;
        }
        let unknown: Vec<JobId> = unknown.into_iter().collect();
        let rules = self
            .read(move |store| Rules::read_jobs(store, &unknown))
            .await;
        self.rules.hold(rules);
    }

    /// Reads until it works: facts that come meanwhile are missed and found again.
    async fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&dyn Read) -> Result<T, drumtower_store::Error> + Send + Sync + 'static,
    ) -> T {
        let read = Arc::new(read);
        loop {
            let (reader, once) = (Arc::clone(&self.reader), Arc::clone(&read));
            match tokio::task::spawn_blocking(move || once(&*reader)).await {
                Ok(Ok(found)) => return found,
                Ok(Err(error)) => tracing::warn!(%error, "notifications wait for the store"),
                Err(error) => tracing::error!(%error, "notifications could not read the store"),
            }
            tokio::time::sleep(READ_AGAIN).await;
        }
    }

    async fn keep(&mut self) {
        let state = State {
            cursor: self.cursor,
            late_through: self.late_through,
            failing: self.watch.failing().clone(),
            told: self.watch.told(TOLD_KEPT),
            groups: self.groups.clone(),
            outbox: self.notices.outbox().clone(),
            ..State::new(self.cursor)
        };
        let data = self.data.clone();
        let kept = tokio::task::spawn_blocking(move || state.save(&data)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "the state of notifications is not kept; after a restart messages may come again");
        }
        (self.told, self.moved) = (false, false);
        self.kept = Instant::now();
    }
}
