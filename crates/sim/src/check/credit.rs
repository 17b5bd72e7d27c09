//! V11: a worker never promises more than it has. What it granted on all streams and was not used, and what runs, stay within its
//! capacity, counted from the words on the wire.

use drumtower_proto::worker::v1 as wire;

use crate::world::World;

/// The credit of one stream, as whoever reads along counts it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    granted: u64,
    consumed: u64,
    /// Assignments that came, without copies.
    position: u64,
    recall: Option<u64>,
}

impl Ledger {
    pub(crate) fn said(&mut self, message: &wire::WorkerMessage) {
        use wire::worker_message::Body;
        match &message.body {
            Some(Body::Grant(grant)) => self.granted = self.granted.max(grant.total),
            Some(Body::Recall(recall)) => self.recall = Some(recall.id),
            _ => {}
        }
    }

    pub(crate) fn heard(&mut self, message: &wire::ServerMessage) {
        use wire::server_message::Body;
        match &message.body {
            Some(Body::Assign(assign)) if assign.position > self.position => {
                self.position = assign.position;
                self.consumed += u64::from(assign.weight);
            }
            Some(Body::RecallAnswer(answer)) if self.recall == Some(answer.id) => {
                self.recall = None;
                self.granted = self.consumed;
            }
            _ => {}
        }
    }

    fn outstanding(&self) -> u64 {
        self.granted.saturating_sub(self.consumed)
    }
}

impl World {
    pub(crate) fn check_granted(&mut self, worker: usize) {
        let node = &self.workers[worker];
        let conns = node.conns().filter_map(|conn| self.conns.get(&conn));
        let outstanding: u64 = conns.map(|conn| conn.ledger.outstanding()).sum();
        let tasks = node.live.iter().flat_map(|live| live.tasks.values());
        let running: u64 = tasks.map(|task| u64::from(task.weight)).sum();
        let capacity = u64::from(node.shape.capacity);
        if outstanding + running > capacity {
            let words = format!(
                "worker {worker} has granted {outstanding} and runs {running} of {capacity}"
            );
            self.checks.find("V11", words);
        }
    }
}
