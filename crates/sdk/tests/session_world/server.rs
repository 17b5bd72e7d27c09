//! The other side: a server that keeps attempts for ever and knows only what arrived.

use std::collections::BTreeMap;

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::Attempt;
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;

pub const LEASE_MS: u64 = 1_000;
pub const HEARTBEAT_MS: u64 = 200;

#[derive(Default)]
pub struct Server {
    pub attempts: BTreeMap<Attempt, Assigned>,
    runs: u64,
    fence: u64,
    /// The newest heartbeat received, on whatever stream.
    last_beat: u64,
    pub welcomed: bool,
    pub granted: u64,
    pub consumed: u64,
    position: u64,
    stream: u64,
    pub last_held: Vec<Attempt>,
    pub goodbye: bool,
    /// The newest checkpoint of each run.
    pub checkpoints: BTreeMap<u64, u64>,
}

pub struct Assigned {
    pub fence: u64,
    pub weight: u32,
    /// The stream and position of its latest sending.
    sent: (u64, u64),
    pub ended: bool,
    pub chunks: u64,
}

impl Server {
    pub fn stream_opened(&mut self, stream: u64) {
        self.stream = stream;
        self.welcomed = false;
        self.granted = 0;
        self.consumed = 0;
        self.position = 0;
    }

    pub fn credit(&self) -> u64 {
        self.granted - self.consumed
    }

    /// A run that was never assigned.
    pub fn assign_fresh(&mut self, weight: u32) -> Option<Body> {
        self.runs += 1;
        self.assign(
            Attempt {
                run: self.runs,
                number: 1,
            },
            weight,
        )
    }

    /// The next attempt of a run whose last one has ended.
    pub fn assign_next(&mut self, pick: usize) -> Option<Body> {
        let (last, weight) = self.pick(pick, |assigned| assigned.ended)?;
        let next = Attempt {
            run: last.run,
            number: last.number + 1,
        };
        if self.attempts.contains_key(&next) {
            None
        } else {
            self.assign(next, weight)
        }
    }

    /// Sends again what has not ended.
    pub fn assign_again(&mut self, pick: usize) -> Option<Body> {
        let (attempt, weight) = self.pick(pick, |assigned| !assigned.ended)?;
        self.assign(attempt, weight)
    }

    /// Sends what has ended, or was overtaken: a copy that should not exist.
    pub fn assign_stale(&mut self, pick: usize) -> Option<Body> {
        let (attempt, weight) = self.pick(pick, |assigned| assigned.ended)?;
        self.assign(attempt, weight)
    }

    fn pick(&self, pick: usize, fits: impl Fn(&Assigned) -> bool) -> Option<(Attempt, u32)> {
        let fitting: Vec<_> = self
            .attempts
            .iter()
            .filter(|(_, assigned)| fits(assigned))
            .collect();
        let (attempt, assigned) = fitting.get(pick % fitting.len().max(1))?;
        Some((**attempt, assigned.weight))
    }

    fn assign(&mut self, attempt: Attempt, weight: u32) -> Option<Body> {
        if !self.welcomed || self.last_beat == 0 || self.credit() < u64::from(weight) {
            return None;
        }
        self.consumed += u64::from(weight);
        self.position += 1;
        self.fence += 1;
        let fence = self.fence;
        let sent = (self.stream, self.position);
        let assigned = Assigned {
            fence,
            weight,
            sent,
            ended: false,
            chunks: 0,
        };
        let assigned = self.attempts.entry(attempt).or_insert(assigned);
        assigned.sent = sent;
        Some(Body::Assign(wire::Assign {
            position: self.position,
            attempt: Some(reference(attempt, assigned.fence)),
            beat: self.last_beat,
            task: Some(wire::assign::Task::Exec(wire::ExecTask::default())),
            weight,
            timeout_ms: 3_000,
            checkpoint: self
                .checkpoints
                .get(&attempt.run)
                .map(|number| wire::CheckpointMark {
                    number: *number,
                    bytes: 8,
                }),
            ..wire::Assign::default()
        }))
    }

    pub fn renew(&self) -> Option<Body> {
        (self.welcomed && self.last_beat > 0).then_some(Body::Renew(wire::Renew {
            beat: self.last_beat,
        }))
    }

    pub fn cancel(&self, pick: usize) -> Option<Body> {
        let (attempt, _) = self.pick(pick, |assigned| !assigned.ended)?;
        let reference = reference(attempt, self.attempts[&attempt].fence);
        self.welcomed.then(|| {
            Body::Cancel(wire::Cancel {
                attempt: Some(reference),
                reason: String::new(),
            })
        })
    }

    /// Takes a message in and answers.
    pub fn handle(&mut self, message: FromWorker) -> Option<Body> {
        match message {
            FromWorker::Hello(_) => {
                self.welcomed = true;
                Some(Body::Welcome(wire::Welcome {
                    protocol: 1,
                    lease_ms: LEASE_MS,
                    heartbeat_ms: HEARTBEAT_MS,
                    features: vec![drumtower_proto::CHECKPOINTS.to_owned()],
                    ..wire::Welcome::default()
                }))
            }
            FromWorker::Heartbeat(beat) => {
                self.heartbeat(&beat);
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
            FromWorker::Started(_) => None,
            FromWorker::Finished(finished) => Some(self.finished(&finished)),
            FromWorker::Refused(refused) => {
                let attempt = refused.attempt.expect("it names the attempt").into();
                if let Some(assigned) = self.attempts.get_mut(&attempt) {
                    assigned.ended = true;
                }
                None
            }
            FromWorker::Log(chunk) => Some(self.log(&chunk)),
            FromWorker::Progress(_) => None,
            FromWorker::Checkpoint(saved) => Some(self.checkpoint(&saved)),
            FromWorker::Goodbye(_) => {
                assert!(self.credit() == 0, "it left with credit outstanding");
                self.goodbye = true;
                None
            }
        }
    }

    fn heartbeat(&mut self, beat: &wire::Heartbeat) {
        assert!(
            beat.number > self.last_beat,
            "heartbeats grow across streams"
        );
        self.last_beat = beat.number;
        self.last_held = beat.held.iter().map(|held| (*held).into()).collect();
        for (attempt, assigned) in &mut self.attempts {
            let (stream, position) = assigned.sent;
            let settled = stream < self.stream || position <= beat.acked_position;
            if settled && !self.last_held.contains(attempt) {
                assigned.ended = true;
            }
        }
    }

    fn finished(&mut self, finished: &wire::Finished) -> Body {
        let reference = finished.attempt.expect("it names the attempt");
        let assigned = self
            .attempts
            .get_mut(&reference.into())
            .expect("it was assigned");
        assert_eq!(assigned.fence, reference.fence);
        // The test's executor says in the memory which checkpoint it saved last.
        let last = finished.peak_memory_bytes;
        if !assigned.ended && last > 0 && finished.outcome() != wire::Outcome::Succeeded {
            let kept = self.checkpoints.get(&reference.run);
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

    fn checkpoint(&mut self, saved: &wire::Checkpoint) -> Body {
        let reference = saved.attempt.expect("it names the attempt");
        assert_eq!(saved.body, saved.number.to_le_bytes(), "the wrong body");
        let kept = !self.attempts[&reference.into()].ended;
        if kept {
            let newest = self.checkpoints.entry(reference.run).or_default();
            *newest = saved.number.max(*newest);
        }
        Body::CheckpointAck(wire::CheckpointAck {
            attempt: Some(reference),
            number: saved.number,
            kept,
        })
    }

    fn log(&mut self, chunk: &wire::LogChunk) -> Body {
        let reference = chunk.attempt.expect("it names the attempt");
        let assigned = self
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
}

fn reference(attempt: Attempt, fence: u64) -> wire::AttemptRef {
    wire::AttemptRef {
        run: attempt.run,
        attempt: attempt.number,
        fence,
    }
}
