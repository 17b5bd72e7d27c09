//! A request that a server does not own goes on to the one that does, by what the store says, as servers forward to each other.
//!
//! Whoever says that it is elsewhere has done nothing, so asking again does no harm, as often as it takes: while segments move,
//! and until those that belong together have come to one server.

use drumtower_core::model::{SegmentId, SegmentSet};

use super::{CallId, Deed};
use crate::clock::MS;
use crate::world::World;
use crate::world::event::Event;

impl World {
    /// Whom a user asks: anybody.
    pub(super) fn some_server(&mut self) -> usize {
        match self.servers.len() {
            1 => 0,
            count => self.random.below(count as u64) as usize,
        }
    }

    /// Who has all of these, if one server has.
    fn only_owner(&self, segments: &SegmentSet) -> Option<usize> {
        let mut owners = segments.iter().map(|segment| self.owner_of(segment));
        let first = owners.next()??;
        owners.all(|owner| owner == Some(first)).then_some(first)
    }

    /// Who is best asked for this.
    pub(super) fn server_for(&mut self, deed: &Deed) -> usize {
        let owner = self.only_owner(&deed.command().segments());
        owner.unwrap_or_else(|| self.some_server())
    }

    pub(crate) fn forward(&mut self, id: CallId) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let segments = call.deed.command().segments();
        let asked = call.server;
        let owner = self.only_owner(&segments);
        let home = self.owner_of(SegmentId::HOME);
        let moving = owner.is_none_or(|owner| owner == asked);
        let pause = match moving {
            true => self.random.between(100 * MS, 500 * MS),
            false => 0,
        };
        let server = owner.or(home).unwrap_or(asked);
        if let Some(call) = self.calls.get_mut(&id) {
            call.server = server;
        }
        self.cover("forward");
        let at = self.at.plus(pause + self.latency());
        self.push(at, Event::Request { call: id });
    }
}
