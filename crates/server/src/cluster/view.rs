//! Who is there: the sessions that the store holds, read every half second.
//!
//! A view may be old when it is used. Nothing rests on it but where a request is sent first: the server that it reaches
//! says whether it owns what the request is about.

use std::sync::Arc;
use std::time::Duration;

use drumtower_core::model::{Member, SegmentId, SegmentSet, SessionId, WallMs};
use drumtower_store::Read;
use tokio::sync::watch;

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// One server and what it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub session: SessionId,
    pub member: Member,
    /// By the database's clock.
    pub expires: WallMs,
    /// What it owns.
    pub segments: SegmentSet,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Those whose sessions have not ended, by session.
    pub servers: Vec<Server>,
    /// The database's clock when this was read.
    pub now: WallMs,
    /// Why the store could not be read, when it could not be.
    pub trouble: Option<String>,
}

impl View {
    /// Where the servers that own something are reached.
    pub fn owners(&self) -> Vec<String> {
        let owners = self.servers.iter().filter(|it| !it.segments.is_empty());
        owners.filter_map(|it| it.member.address.clone()).collect()
    }

    /// Whether the server at an address is there and owns nothing.
    pub fn owns_nothing(&self, address: Option<&str>) -> bool {
        let mut sessions = self
            .servers
            .iter()
            .filter(|it| it.member.address.as_deref() == address);
        sessions.next().is_some_and(|it| it.segments.is_empty())
            && sessions.all(|it| it.segments.is_empty())
    }

    /// Who has a segment, if its session has not ended.
    pub fn owner_of(&self, segment: SegmentId) -> Option<&Server> {
        let mut servers = self.servers.iter();
        servers.find(|server| server.segments.contains(segment))
    }
}

/// What is seen, and apart from it what changes more rarely.
pub(super) struct Seen {
    pub view: watch::Receiver<View>,
    /// Where the servers that own something are reached.
    pub owners: watch::Receiver<Vec<String>>,
}

/// Reads the store until nobody looks any more.
pub(super) fn follow(reader: Arc<dyn Read>) -> Seen {
    let (sender, receiver) = watch::channel(View::default());
    let (owners, owners_seen) = watch::channel(Vec::new());
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !sender.is_closed() {
            ticks.tick().await;
            let reader = Arc::clone(&reader);
            let read = tokio::task::spawn_blocking(move || look(reader.as_ref())).await;
            let view = match read {
                Ok(Ok(view)) => view,
                Ok(Err(error)) => View {
                    trouble: Some(error.to_string()),
                    ..sender.borrow().clone()
                },
                Err(_) => return,
            };
            owners.send_if_modified(|known| {
                let now = view.owners();
                let changed = *known != now;
                *known = now;
                changed
            });
            sender.send_replace(view);
        }
    });
    Seen {
        view: receiver,
        owners: owners_seen,
    }
}

fn look(reader: &dyn Read) -> Result<View, drumtower_store::Error> {
    let (now, sessions) = reader.sessions()?;
    let owners = reader.owners()?;
    let owned = |session| {
        let owner = owners.iter().find(|owner| owner.session == session);
        owner.map_or(SegmentSet::NONE, |owner| owner.segments)
    };
    let servers: Vec<Server> = sessions
        .into_iter()
        .filter(|row| row.expires > now)
        .map(|row| Server {
            session: row.id,
            segments: owned(row.id),
            member: row.member,
            expires: row.expires,
        })
        .collect();
    Ok(View {
        servers,
        now,
        trouble: None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use drumtower_core::engine::take_over;
    use drumtower_store::memory::Memory;
    use drumtower_store::{Commit, Store};

    use super::*;

    #[test]
    fn a_server_is_seen_until_its_session_ends_or_is_revoked() {
        let clock = Arc::new(AtomicI64::new(1_000));
        let read = Arc::clone(&clock);
        let mut store = Memory::with_clock(Arc::new(move || WallMs(read.load(Ordering::SeqCst))));
        let reader = store.reader();
        let member = |name: &str| Member {
            address: Some(format!("http://{name}:7070")),
            ..Member::alone(name)
        };
        let one = store
            .begin_session(&member("one"), 3_000)
            .expect("it begins");
        let segments = reader.segments().expect("they are read");
        let taken = take_over(one, 1, 3_000, Vec::new(), segments.clone());
        assert_eq!(store.commit(&taken).expect("it is answered"), Commit::Done);
        let two = store
            .begin_session(&member("two"), 9_000)
            .expect("it begins");
        let view = look(&reader).expect("it is read");
        assert_eq!(view.servers.len(), 2);
        let owner = view.owner_of(SegmentId::HOME).expect("there is one");
        assert_eq!((owner.session, owner.segments), (one, SegmentSet::ALL));
        assert_eq!(owner.member, member("one"));
        // The owner's session ends: it is not asked any more, and nobody else is in its place yet.
        clock.store(4_000, Ordering::SeqCst);
        let view = look(&reader).expect("it is read");
        assert_eq!(view.owner_of(SegmentId::HOME), None);
        assert_eq!(view.servers.len(), 1);
        let segments = reader.segments().expect("they are read");
        let taken = take_over(two, 1, 9_000, vec![one], segments);
        assert_eq!(store.commit(&taken).expect("it is answered"), Commit::Done);
        let view = look(&reader).expect("it is read");
        assert_eq!(
            view.owner_of(SegmentId::HOME).map(|server| server.session),
            Some(two)
        );
    }
}
