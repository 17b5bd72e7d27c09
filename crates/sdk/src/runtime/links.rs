//! The links of a worker: one to each server that has work to give.
//!
//! It begins with one that leads to any server. A welcome says who greeted, and from then on the link is that server's;
//! it says too which servers have work to give, and each of them gets a link. The newest word of any server on that
//! counts.
//!
//! - A server without work to give keeps its link as long as the stream is open.
//! - One server has one link. A stream that replaces another of the same server has been taken by that server for the
//!   only one, so the link with the newer stream stays.
//! - There is always a link. The last one leads to any server again when its own has nothing to give, and so does one whose
//!   server cannot be reached in any way while no other is connected.

use std::collections::BTreeMap;
use std::time::Duration;

use drumtower_proto::worker::v1 as wire;
use futures_util::future::{join_all, select_all};
use tokio::sync::watch;

use super::fetch::{Channels, Source};
use super::link::{Happened, Link};
use super::peer::Peer;
use super::servers::Servers;
use crate::session::{Attempt, LinkId, Session};

/// Far more servers than share a database.
const LINKS: usize = 64;

pub(super) struct Links {
    links: BTreeMap<LinkId, Link>,
    /// How many there have been.
    made: u32,
    servers: Servers,
    /// The addresses of those that have work to give.
    owners: Vec<String>,
    channels: watch::Sender<Channels>,
    seed: u64,
    turn: usize,
}

impl Links {
    pub(super) fn new(servers: Servers, seed: u64) -> Self {
        let mut links = Self {
            links: BTreeMap::new(),
            made: 0,
            servers,
            owners: Vec::new(),
            channels: watch::channel(Channels::new()).0,
            seed,
            turn: 0,
        };
        links.add(None);
        links
    }

    fn add(&mut self, peer: Option<Peer>) {
        self.made += 1;
        let seed = self.seed.rotate_left(self.made);
        self.links.insert(LinkId(self.made), Link::new(peer, seed));
    }

    /// Waits for the next thing to happen on any link. Cancel-safe.
    pub(super) async fn next(&mut self) -> (LinkId, Happened) {
        self.turn += 1;
        let links = self.links.iter_mut();
        let waiting = links.map(|(id, link)| Box::pin(async { (*id, link.next().await) }));
        let mut waiting: Vec<_> = waiting.collect();
        // The first that is ready wins, so none is always the first.
        let first = self.turn % waiting.len();
        waiting.rotate_left(first);
        select_all(waiting).await.0
    }

    pub(super) fn get(&self, id: LinkId) -> Option<&Link> {
        self.links.get(&id)
    }

    pub(super) fn dial(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.dial(&self.servers);
        }
    }

    pub(super) fn open(
        &mut self,
        id: LinkId,
        channel: tonic::transport::Channel,
        session: &mut Session,
    ) {
        if let Some(link) = self.links.get_mut(&id) {
            self.channels.send_modify(|open| {
                open.insert(id, channel.clone());
            });
            link.open(channel, &self.servers, id, session);
        }
    }

    pub(super) fn transmit(&mut self, session: &mut Session) {
        for (id, link) in &mut self.links {
            link.transmit(*id, session);
        }
    }

    /// A server welcomed the stream of a link.
    pub(super) fn welcomed(&mut self, id: LinkId, welcome: &wire::Welcome, session: &mut Session) {
        self.servers.learn(&welcome.servers);
        self.replace(id, &welcome.address, session);
        let address = Some(&welcome.address).filter(|address| !address.is_empty());
        let peer = address.map(|address| Peer::new(address, &self.servers));
        if let Some(link) = self.links.get_mut(&id) {
            link.welcomed_by(peer);
        }
        self.follow(&welcome.owners, session);
    }

    /// Another link of the server that greeted has lost its stream to this one. It goes on looking for the server that
    /// this one looked for, if there was another.
    fn replace(&mut self, id: LinkId, address: &str, session: &mut Session) {
        let same =
            |(other, link): &(&LinkId, &Link)| **other != id && link.address() == Some(address);
        let Some(other) = self.links.iter().find(same).map(|(other, _)| *other) else {
            return;
        };
        let Some(mut replaced) = self.links.remove(&other) else {
            return;
        };
        self.close_channel(other);
        session.link_gone(other);
        if let Some(link) = self.links.get_mut(&id)
            && link.address().is_some_and(|sought| sought != address)
        {
            replaced.take_place_of(link);
            self.links.insert(other, replaced);
        }
    }

    /// These have work to give: each has a link, and nobody waits for another.
    pub(super) fn follow(&mut self, owners: &[String], session: &mut Session) {
        self.owners = owners.to_vec();
        let is_owner = |link: &Link| {
            link.address()
                .is_some_and(|it| owners.iter().any(|owner| owner == it))
        };
        let idle = self
            .links
            .iter()
            .filter(|(_, link)| !link.is_welcomed() && !is_owner(link));
        for id in idle.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.remove(id, session);
        }
        for owner in owners {
            let known = self
                .links
                .values()
                .any(|link| link.address() == Some(owner));
            if !known && self.links.len() < LINKS {
                self.add(Some(Peer::new(owner, &self.servers)));
            }
        }
    }

    fn remove(&mut self, id: LinkId, session: &mut Session) {
        if self.links.remove(&id).is_some() {
            self.close_channel(id);
            session.link_gone(id);
        }
    }

    /// The stream of a link is gone, or could not be had. Returns how long it waits; nothing if there is no such link
    /// any more.
    pub(super) fn lost(&mut self, id: LinkId, session: &mut Session) -> Option<Duration> {
        self.close_channel(id);
        let connected = self
            .links
            .iter()
            .any(|(other, link)| *other != id && link.is_welcomed());
        let alone = self.links.len() == 1;
        let link = self.links.get_mut(&id)?;
        let address = link.address();
        let has_work = address.is_none_or(|it| self.owners.iter().any(|owner| owner == it));
        if !has_work && !alone {
            self.remove(id, session);
            return None;
        }
        if !has_work || !connected && link.has_tried_all(&self.servers) {
            link.forget_peer();
        }
        Some(link.drop_and_wait())
    }

    /// The server of a link does not want this worker, and others do.
    pub(super) fn rest(&mut self, id: LinkId) {
        self.close_channel(id);
        if let Some(link) = self.links.get_mut(&id) {
            link.rest();
        }
    }

    /// No server wants this worker.
    pub(super) fn halt(&mut self) {
        self.links.values_mut().for_each(Link::halt);
    }

    pub(super) fn is_single(&self) -> bool {
        self.links.len() == 1
    }

    fn close_channel(&self, id: LinkId) {
        self.channels
            .send_if_modified(|open| open.remove(&id).is_some());
    }

    /// What asks the servers beside the streams, first of all the one that assigned the attempt.
    pub(super) fn source(&self, attempt: Attempt, session: &Session, process: u64) -> Source {
        Source {
            channels: self.channels.subscribe(),
            prefers: session.home(attempt),
            token: self.servers.token().cloned(),
            process,
        }
    }

    /// Ends all streams in good order.
    pub(super) async fn close(self, patience: Duration) {
        join_all(self.links.into_values().map(|link| link.close(patience))).await;
    }
}
