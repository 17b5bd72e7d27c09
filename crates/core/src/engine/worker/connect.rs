//! A worker dials in. It gets its terms, and credit counts from nothing; it is given work after its first heartbeat.

use crate::model::Now;

use super::super::{Effect, Engine, Hello, StreamId, ToWorker};

impl Engine {
    pub(super) fn connect(&mut self, now: Now, stream: StreamId, hello: Hello) {
        let process = hello.process;
        if let Some(known) = self.fleet.get(process) {
            // A process keeps its token: another one that claims its number is not it.
            if known.hello.namespace != hello.namespace {
                self.effect(Effect::Close {
                    stream,
                    reason: "this worker is known with a token of another namespace",
                    again: false,
                });
                return;
            }
            if known.hello.stream_number >= hello.stream_number {
                self.effect(Effect::Close {
                    stream,
                    reason: "a newer stream of this worker is open",
                    again: false,
                });
                return;
            }
            if let Some(old) = known.stream {
                self.fleet.close_stream(old);
                self.effect(Effect::Close {
                    stream: old,
                    reason: "replaced by a newer stream",
                    again: false,
                });
            }
        }
        let worker = self.fleet.register(now, hello);
        worker.stream = Some(stream);
        worker.connected = now.wall;
        worker.draining = false;
        worker.void_credit();
        self.fleet.open_stream(stream, process);
        self.arm_lease(now, process);
        self.match_lines(process);
        let terms = self.options.terms;
        let message = ToWorker::Welcome {
            lease_ms: terms.lease_ms,
            heartbeat_ms: terms.heartbeat_ms,
        };
        self.effect(Effect::Send { stream, message });
    }
}
