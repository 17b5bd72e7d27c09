//! Performs effects after their commit. It decides nothing; it may die between any two.

use drumtower_core::engine::{Effect, Refusal, ToWorker};
use drumtower_proto::PROTOCOL_MAX;
use drumtower_server::grpc::outgoing::{Greeting, write};

use crate::client::Said;
use crate::world::World;
use crate::world::event::Life;

impl World {
    pub(super) fn perform(&mut self, server: usize, life: Life, effects: Vec<Effect>) {
        for effect in effects {
            if let Some((left, down_us)) = self.servers[server].dies_after {
                if left == 0 {
                    self.crash_server(server, down_us);
                    return;
                }
                self.servers[server].dies_after = Some((left - 1, down_us));
            }
            self.check_effect(&effect);
            let Some(live) = self.servers[server].live(life) else {
                return;
            };
            match effect {
                Effect::Reply { ticket, reply } => {
                    let Some(call) = live.tickets.remove(&ticket) else {
                        continue;
                    };
                    if let Err(Refusal::Elsewhere(_)) = reply {
                        self.forward(call);
                    } else {
                        self.answer(call, Said::Answer(Box::new(reply)));
                    }
                }
                Effect::Send { stream, message } => {
                    if let Some(conn) = live.streams.get(&stream).copied() {
                        self.tell(server, conn, message);
                    }
                }
                Effect::Close {
                    stream,
                    reason,
                    again,
                } => {
                    if let Some(conn) = live.streams.remove(&stream) {
                        self.close_stream(conn, reason, again);
                    }
                }
                Effect::Alarm { text } => crate::world::note!(self, "alarm: {text}"),
                // Nobody in this world watches runs, tokens or settings.
                _ => {}
            }
        }
    }

    fn tell(&mut self, server: usize, conn: crate::world::net::ConnId, message: ToWorker) {
        let greeting = Greeting {
            protocol: PROTOCOL_MAX,
            server: self.servers[server].options.server.to_string(),
            wall_ms: self.servers[server].clock.now(self.at).wall.0,
            servers: Vec::new(),
            address: String::new(),
            owners: Vec::new(),
        };
        let body = write(message, Some(&greeting));
        self.send_down(conn, body);
    }
}
