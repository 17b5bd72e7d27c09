//! Listens to what every other server commits, as long as it is there and somebody here wants to hear it.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Uri};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::super::held::addressed;
use super::super::proof::{OWN_HEADER, Occasion};
use super::super::{Cluster, Inner};
use super::{Heard, PATH, SILENCE};
use crate::driver::Handle;

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Whoever comes back soon finds the others still telling.
const LINGER: Duration = Duration::from_secs(30);
/// More than the facts of one line take.
const LINE_BYTES: usize = 16 << 20;

/// Ends a listener when it is dropped.
struct Listener(AbortHandle);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Cluster {
    /// Listens to whoever is there, until it is aborted; a server that is alone listens to nobody.
    pub async fn listen(self, handle: Handle) {
        let Some(inner) = self.inner.clone() else {
            return;
        };
        let mut view = inner.view.clone();
        let mut wanting = handle.wanting_others();
        let mut listeners: BTreeMap<String, Listener> = BTreeMap::new();
        let (mut was_wanted, mut wanted_at) = (false, Instant::now());
        loop {
            let peers = self.peers();
            listeners.retain(|address, _| peers.contains(address));
            let is_wanted = *wanting.borrow_and_update() > 0;
            if is_wanted || was_wanted {
                (was_wanted, wanted_at) = (is_wanted, Instant::now());
            }
            for address in peers.into_iter().filter(|_| is_wanted) {
                listeners.entry(address.clone()).or_insert_with(|| {
                    let (cluster, handle) = (self.clone(), handle.clone());
                    let task = tokio::spawn(listen_to(cluster, address, handle));
                    Listener(task.abort_handle())
                });
            }
            let is_idle = !is_wanted && !listeners.is_empty();
            let changed = tokio::select! {
                changed = view.changed() => changed,
                changed = wanting.changed() => changed,
                () = tokio::time::sleep_until(wanted_at + LINGER), if is_idle => {
                    listeners.clear();
                    Ok(())
                }
            };
            if changed.is_err() {
                return;
            }
        }
    }
}

async fn listen_to(cluster: Cluster, address: String, handle: Handle) {
    let Some(inner) = &cluster.inner else {
        return;
    };
    let mut pause = SHORTEST_PAUSE;
    loop {
        if let Some(pieces) = dial(inner, &address).await {
            let ears = Ears(&handle);
            match ears.take(pieces).await {
                0 => {}
                _ => pause = SHORTEST_PAUSE,
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

type Pieces = axum::body::BodyDataStream;

async fn dial(inner: &Inner, address: &str) -> Option<Pieces> {
    let path = Uri::from_static(PATH);
    let at = Occasion::now(&Method::GET, &path);
    let mut headers = HeaderMap::new();
    headers.insert(OWN_HEADER, inner.key.seal_own(at));
    let request = addressed(address, &Method::GET, &path, headers, Body::empty());
    let answered = tokio::time::timeout(SILENCE, inner.links.ask(request)).await;
    let answer = answered.ok()?;
    let answer = answer.inspect_err(|why| tracing::debug!(%address, %why, "no facts are told"));
    let answer = answer.ok().filter(|answer| answer.status().is_success())?;
    Some(answer.into_body().into_data_stream())
}

/// Hands over what is heard; when it is dropped, more may have been told than was heard.
struct Ears<'a>(&'a Handle);

impl Drop for Ears<'_> {
    fn drop(&mut self) {
        self.0.missed_from_another(1);
    }
}

impl Ears<'_> {
    /// Until the other is silent or gone; how many lines it told.
    async fn take(self, mut pieces: Pieces) -> u64 {
        let (mut rest, mut lines) = (BytesMut::new(), 0);
        while let Ok(Some(Ok(piece))) = tokio::time::timeout(SILENCE, pieces.next()).await {
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.split_to(end + 1).freeze();
                self.line(&line, lines == 0);
                lines += 1;
            }
            if rest.len() > LINE_BYTES {
                break;
            }
        }
        lines
    }

    fn line(&self, line: &Bytes, is_first: bool) {
        if is_first {
            // What was committed before is in the store.
            self.0.missed_from_another(1);
        }
        match serde_json::from_slice(line) {
            Ok(Heard::Facts(facts)) => self.0.hear_from_another(facts),
            Ok(Heard::Missed(count)) => self.0.missed_from_another(count),
            Ok(Heard::Beat) => {}
            Err(_) => self.0.missed_from_another(1),
        }
    }
}
