//! What the worker says. Messages are made when they leave, so that they tell what is true then.

use drumtower_core::model::Now;
use drumtower_proto::worker::v1 as wire;
use drumtower_proto::{CHECKPOINTS, LINKS, PROTOCOL_MAX, PROTOCOL_MIN};
use wire::worker_message::Body;

use super::held::Phase;
use super::link::{Out, StreamPhase};
use super::{Attempt, LinkId, Session};

/// With this many ends that the server has not acknowledged, the worker asks for no more work.
const UNACKNOWLEDGED_MAX: usize = 20_000;

impl Session {
    /// The next message to send on the present stream of a link. It counts as sent at `now`, which must not be later
    /// than when it really leaves: leases run from there.
    pub fn poll_transmit(&mut self, now: Now, link: LinkId) -> Option<wire::WorkerMessage> {
        let state = self.links.get_mut(&link)?;
        let body = match state.phase {
            StreamPhase::Down | StreamPhase::Greeted => None,
            StreamPhase::Opened => {
                state.phase = StreamPhase::Greeted;
                let stream = state.stream;
                Some(Body::Hello(self.hello(now, stream)))
            }
            StreamPhase::Welcomed => self.next_body(now, link),
        };
        body.map(|body| wire::WorkerMessage { body: Some(body) })
    }

    fn next_body(&mut self, now: Now, id: LinkId) -> Option<Body> {
        let link = self.links.get_mut(&id)?;
        // Before the next heartbeat, which acknowledges the assignment and does not name it: the server must know why.
        if let Some(refused) = link.refusals.pop_front() {
            return Some(Body::Refused(refused));
        }
        if link.next_beat <= now.mono {
            link.next_beat = now.mono.plus(link.heartbeat_ms);
            let acked_position = link.last_position;
            return Some(Body::Heartbeat(self.heartbeat(now, id, acked_position)));
        }
        if let Some(recall) = self.shares.recall(id) {
            return Some(Body::Recall(recall));
        }
        while let Some(out) = self.links.get_mut(&id)?.outbox.pop_front() {
            if let Some(body) = self.resolve(now, out) {
                return Some(body);
            }
        }
        if self.drain.is_some() {
            return self.goodbye(id);
        }
        if self.unacknowledged >= UNACKNOWLEDGED_MAX {
            return None;
        }
        let total = self.shares.grant(id)?;
        Some(Body::Grant(wire::Grant { total }))
    }

    fn resolve(&mut self, now: Now, out: Out) -> Option<Body> {
        match out {
            Out::Log(attempt) => self.next_chunk(attempt),
            Out::Progress(attempt) => self.next_progress(now.mono, attempt),
            Out::Checkpoint(attempt) => self.next_checkpoint(attempt),
            Out::Started(attempt) => {
                let held = self.held.get(&attempt)?;
                // An end that follows says when it started.
                let Phase::Running { wall_ms } = held.phase else {
                    return None;
                };
                Some(Body::Started(wire::Started {
                    attempt: Some(held.attempt),
                    wall_ms,
                }))
            }
            Out::Finished(attempt) => {
                let held = self.held.get(&attempt)?;
                let Phase::Finished(end) = &held.phase else {
                    return None;
                };
                Some(Body::Finished(wire::Finished::clone(end)))
            }
        }
    }

    fn next_chunk(&mut self, attempt: Attempt) -> Option<Body> {
        let held = self.held.get_mut(&attempt)?;
        let chunk = held.log.next_unsent();
        held.log_queued = held.log.has_unsent();
        if held.log_queued
            && let Some(link) = held.home.and_then(|home| self.links.get_mut(&home))
        {
            // Before everything else: an end in the queue comes after all output.
            link.outbox.push_front(Out::Log(attempt));
        }
        chunk.map(Body::Log)
    }

    fn hello(&self, now: Now, stream: u64) -> wire::Hello {
        wire::Hello {
            protocol_min: PROTOCOL_MIN,
            protocol_max: PROTOCOL_MAX,
            features: vec![CHECKPOINTS.to_owned(), LINKS.to_owned()],
            worker: self.config.worker.clone(),
            process: self.config.process.0,
            stream,
            host: self.config.host.clone(),
            version: self.config.version.clone(),
            labels: self.config.labels.clone().into_iter().collect(),
            exec: self.config.exec,
            http: self.config.http,
            enforcement: Some(self.config.enforcement.clone()),
            handlers: self.config.handlers.iter().cloned().collect(),
            capacity: self.config.capacity,
            wall_ms: now.wall.0,
        }
    }

    fn heartbeat(&mut self, now: Now, link: LinkId, acked_position: u64) -> wire::Heartbeat {
        let running_weight = u32::try_from(self.shares.running()).unwrap_or(u32::MAX);
        let number = self.beats.send(now.mono, link);
        wire::Heartbeat {
            number,
            wall_ms: now.wall.0,
            acked_position,
            held: self.name_held(link, number),
            load: Some(wire::Load {
                running_weight,
                ..self.load
            }),
        }
    }
}
