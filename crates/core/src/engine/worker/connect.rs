//! A worker dials in. It gets its terms, and credit counts from nothing; it is given work after its first heartbeat.

use crate::model::{Now, ProcessId};

use super::super::{Effect, Engine, Hello, StreamId, ToWorker};

impl Engine {
    pub(super) fn connect(&mut self, now: Now, stream: StreamId, hello: Hello) {
        let process = hello.process;
        if let Some(known) = self.fleet.get(process) {
            // A process keeps its token: another one that claims its number is not it.
            if !self.may_be(process, &hello) {
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
        worker.doubt();
        worker.forget_stream();
        self.fleet.open_stream(stream, process);
        self.arm_lease(now, process);
        self.keep_maintenance(process);
        self.match_lines(process);
        let terms = self.options.terms;
        let message = ToWorker::Welcome {
            lease_ms: terms.lease_ms,
            heartbeat_ms: terms.heartbeat_ms,
        };
        self.effect(Effect::Send { stream, message });
    }

    /// Whether a process that says hello may be the one that is known under its number. One that is known only by what
    /// the store says it was given has shown no token yet: any will do that could have been given all of that.
    fn may_be(&self, process: ProcessId, hello: &Hello) -> bool {
        let Some(known) = self.fleet.get(process) else {
            return true;
        };
        if known.has_dialled() {
            return known.hello.namespace == hello.namespace;
        }
        let Some(scope) = &hello.namespace else {
            return true;
        };
        let mut held = known.attempts.keys().filter_map(|run| self.runs.get(*run));
        held.all(|resident| resident.run.namespace == *scope)
    }
}
