//! One of the servers: it knows what arrived, and what the store says of the runs that it owns.

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::Attempt;
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;

use super::store::{Assigned, Store};

pub const LEASE_MS: u64 = 1_000;
pub const HEARTBEAT_MS: u64 = 200;

pub struct Server {
    number: usize,
    /// The newest heartbeat received, on whatever stream.
    last_beat: u64,
    /// What was another's when it was named.
    elsewhere: Vec<wire::AttemptRef>,
    pub welcomed: bool,
    granted: u64,
    consumed: u64,
    position: u64,
    stream: u64,
    pub last_held: Vec<Attempt>,
    pub goodbye: bool,
}

impl Server {
    pub fn new(number: usize) -> Self {
        Self {
            number,
            last_beat: 0,
            elsewhere: Vec::new(),
            welcomed: false,
            granted: 0,
            consumed: 0,
            position: 0,
            stream: 0,
            last_held: Vec::new(),
            goodbye: false,
        }
    }

    pub fn stream_opened(&mut self, stream: u64) {
        *self = Self {
            last_beat: self.last_beat,
            stream,
            last_held: std::mem::take(&mut self.last_held),
            ..Self::new(self.number)
        };
    }

    pub fn credit(&self) -> u64 {
        self.granted - self.consumed
    }

    /// A run that was never assigned.
    pub fn assign_fresh(&mut self, store: &mut Store, weight: u32) -> Option<Body> {
        let run = store.fresh_run(self.number)?;
        self.assign(store, Attempt { run, number: 1 }, weight)
    }

    /// The next attempt of a run whose last one has ended.
    pub fn assign_next(&mut self, store: &mut Store, pick: usize) -> Option<Body> {
        let (last, weight) = self.pick(store, pick, |assigned| assigned.ended)?;
        let next = Attempt {
            run: last.run,
            number: last.number + 1,
        };
        if store.attempts.contains_key(&next) {
            None
        } else {
            self.assign(store, next, weight)
        }
    }

    /// Sends again what has not ended.
    pub fn assign_again(&mut self, store: &mut Store, pick: usize) -> Option<Body> {
        let (attempt, weight) = self.pick(store, pick, |assigned| {
            !assigned.ended && assigned.sent.is_some()
        })?;
        self.assign(store, attempt, weight)
    }

    /// Sends what has ended, or was overtaken: a copy that should not exist.
    pub fn assign_stale(&mut self, store: &mut Store, pick: usize) -> Option<Body> {
        let (attempt, weight) = self.pick(store, pick, |assigned| assigned.ended)?;
        self.assign(store, attempt, weight)
    }

    fn pick(
        &self,
        store: &Store,
        pick: usize,
        fits: impl Fn(&Assigned) -> bool,
    ) -> Option<(Attempt, u32)> {
        let fitting: Vec<_> = store
            .attempts
            .iter()
            .filter(|(attempt, assigned)| store.owns(self.number, attempt.run) && fits(assigned))
            .collect();
        let (attempt, assigned) = fitting.get(pick % fitting.len().max(1))?;
        Some((**attempt, assigned.weight))
    }

    fn assign(&mut self, store: &mut Store, attempt: Attempt, weight: u32) -> Option<Body> {
        if !self.welcomed || self.last_beat == 0 || self.credit() < u64::from(weight) {
            return None;
        }
        self.consumed += u64::from(weight);
        self.position += 1;
        let fence = store.next_fence();
        let assigned = store.attempts.entry(attempt).or_insert(Assigned {
            fence,
            weight,
            sent: None,
            ended: false,
            chunks: 0,
        });
        assigned.sent = Some((self.stream, self.position));
        let checkpoint = store.checkpoints.get(&attempt.run);
        Some(Body::Assign(wire::Assign {
            position: self.position,
            attempt: Some(store.reference(attempt)),
            beat: self.last_beat,
            task: Some(wire::assign::Task::Exec(wire::ExecTask::default())),
            weight,
            timeout_ms: 3_000,
            checkpoint: checkpoint.map(|number| wire::CheckpointMark {
                number: *number,
                bytes: 8,
            }),
            ..wire::Assign::default()
        }))
    }

    /// Of what it was told, it prolongs only what it owns still.
    pub fn renew(&self, store: &Store) -> Option<Body> {
        let lost = self.last_held.iter();
        let lost = lost.filter(|attempt| !store.owns(self.number, attempt.run));
        let mut elsewhere = self.elsewhere.clone();
        elsewhere.extend(lost.map(|attempt| store.reference(*attempt)));
        (self.welcomed && self.last_beat > 0).then_some(Body::Renew(wire::Renew {
            beat: self.last_beat,
            elsewhere,
        }))
    }

    pub fn cancel(&self, store: &Store, pick: usize) -> Option<Body> {
        let (attempt, _) = self.pick(store, pick, |assigned| !assigned.ended)?;
        self.welcomed.then(|| {
            Body::Cancel(wire::Cancel {
                attempt: Some(store.reference(attempt)),
                reason: String::new(),
            })
        })
    }

    pub fn want(&self, weight: u32) -> Option<Body> {
        let lacks = self.credit() < u64::from(weight);
        (self.welcomed && lacks).then_some(Body::Want(wire::Want { weight }))
    }

    /// Takes a message in and answers.
    pub fn handle(&mut self, now: u64, store: &mut Store, message: FromWorker) -> Option<Body> {
        match message {
            FromWorker::Hello(hello) => {
                self.welcomed = true;
                let links = drumtower_proto::LINKS.to_owned();
                assert!(hello.features.contains(&links), "it says what it heeds");
                Some(Body::Welcome(wire::Welcome {
                    protocol: 1,
                    lease_ms: LEASE_MS,
                    heartbeat_ms: HEARTBEAT_MS,
                    features: vec![drumtower_proto::CHECKPOINTS.to_owned()],
                    ..wire::Welcome::default()
                }))
            }
            FromWorker::Heartbeat(beat) => {
                self.heartbeat(now, store, &beat);
                None
            }
            FromWorker::Grant(grant) => {
                assert!(grant.total > self.granted, "a grant that grants nothing");
                self.granted = grant.total;
                None
            }
            FromWorker::Recall(recall) => {
                self.granted = self.consumed;
                Some(Body::RecallAnswer(wire::RecallAnswer {
                    id: recall.id,
                    consumed: self.consumed,
                }))
            }
            FromWorker::Started(_) | FromWorker::Progress(_) => None,
            FromWorker::Finished(finished) => {
                self.owned(store, finished.attempt)?;
                Some(finish(store, &finished))
            }
            FromWorker::Refused(refused) => {
                let reference = self.owned(store, refused.attempt)?;
                if let Some(assigned) = store.attempts.get_mut(&reference.into()) {
                    assigned.ended = true;
                }
                None
            }
            FromWorker::Log(chunk) => {
                self.owned(store, chunk.attempt)?;
                Some(keep_output(store, &chunk))
            }
            FromWorker::Checkpoint(saved) => {
                self.owned(store, saved.attempt)?;
                Some(keep_checkpoint(store, &saved))
            }
            FromWorker::Goodbye(_) => {
                assert!(self.credit() == 0, "it left with credit outstanding");
                self.goodbye = true;
                None
            }
        }
    }

    /// A server takes nothing of an attempt that is another's.
    fn owned(&self, store: &Store, attempt: Option<wire::AttemptRef>) -> Option<wire::AttemptRef> {
        attempt.filter(|attempt| store.owns(self.number, attempt.run))
    }

    /// What is named is claimed. What is not is lost, as soon as the worker must have known of it: at once if it was
    /// sent or claimed before; if it is known from the store alone, when its lease must be over.
    fn heartbeat(&mut self, now: u64, store: &mut Store, beat: &wire::Heartbeat) {
        assert!(
            beat.number > self.last_beat,
            "heartbeats grow across streams"
        );
        self.last_beat = beat.number;
        self.last_held = beat.held.iter().map(|held| (*held).into()).collect();
        let held = beat.held.iter().copied();
        let foreign = held.filter(|held| !store.owns(self.number, held.run));
        self.elsewhere = foreign.collect();
        let attempts = store.attempts.keys().copied();
        let own: Vec<Attempt> = attempts
            .filter(|it| store.owns(self.number, it.run))
            .collect();
        for attempt in own {
            let waited = store.owned_since(attempt.run) + LEASE_MS <= now;
            let named = self.last_held.contains(&attempt);
            let Some(assigned) = store.attempts.get_mut(&attempt) else {
                continue;
            };
            let on_this_stream = assigned.sent.filter(|(stream, _)| *stream == self.stream);
            if named {
                let position = on_this_stream.map_or(0, |(_, position)| position);
                assigned.sent = Some((self.stream, position));
                continue;
            }
            assigned.ended |= match (assigned.sent, on_this_stream) {
                (_, Some((_, position))) => position <= beat.acked_position,
                (Some(_), None) => true,
                (None, None) => waited,
            };
        }
    }
}

fn finish(store: &mut Store, finished: &wire::Finished) -> Body {
    let reference = finished.attempt.expect("it names the attempt");
    let assigned = store
        .attempts
        .get_mut(&reference.into())
        .expect("it was assigned");
    assert_eq!(assigned.fence, reference.fence);
    // The test's executor says in the memory which checkpoint it saved last.
    let last = finished.peak_memory_bytes;
    if !assigned.ended && last > 0 && finished.outcome() != wire::Outcome::Succeeded {
        let kept = store.checkpoints.get(&reference.run);
        assert_eq!(kept, Some(&last), "the end overtook a checkpoint");
    }
    assigned.ended = true;
    // The test's executor says in the duration how many chunks it wrote.
    assert_eq!(
        assigned.chunks, finished.duration_ms,
        "the end overtook output"
    );
    Body::FinishAck(wire::FinishAck {
        attempt: Some(reference),
    })
}

fn keep_checkpoint(store: &mut Store, saved: &wire::Checkpoint) -> Body {
    let reference = saved.attempt.expect("it names the attempt");
    assert_eq!(saved.body, saved.number.to_le_bytes(), "the wrong body");
    let kept = !store.attempts[&reference.into()].ended;
    if kept {
        let newest = store.checkpoints.entry(reference.run).or_default();
        *newest = saved.number.max(*newest);
    }
    Body::CheckpointAck(wire::CheckpointAck {
        attempt: Some(reference),
        number: saved.number,
        kept,
    })
}

fn keep_output(store: &mut Store, chunk: &wire::LogChunk) -> Body {
    let reference = chunk.attempt.expect("it names the attempt");
    let assigned = store
        .attempts
        .get_mut(&reference.into())
        .expect("it was assigned");
    assert!(chunk.seq <= assigned.chunks + 1, "a gap in the output");
    assigned.chunks = assigned.chunks.max(chunk.seq);
    Body::LogAck(wire::LogAck {
        attempt: Some(reference),
        seq: assigned.chunks,
    })
}
