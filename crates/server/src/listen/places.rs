//! Places for connections: bounded in all by what the process may open, and for one address by a share of that, so that one
//! machine cannot shut the door for the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::network;

/// Descriptors kept for files: the store, logs, backups.
const KEPT_BACK: usize = 256;
/// More than anyone connects to one server.
const MOST: usize = 100_000;

#[derive(Clone)]
pub struct Places {
    all: Arc<Semaphore>,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    share: usize,
}

/// One place; free again when it is dropped.
pub struct Place {
    address: IpAddr,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// As many as the process may open files for.
    pub fn for_this_process() -> Self {
        Self::new(of_descriptors(descriptors()))
    }

    fn new(count: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(count)),
            taken: Arc::default(),
            // One address may stand for many workers behind one router, and still leaves room.
            share: (count / 4 * 3).max(1),
        }
    }

    /// A place for a connection from `from`; waits while all are taken, and is refused beyond the address's share.
    pub async fn take(&self, from: IpAddr) -> Option<Place> {
        let address = network(from);
        let permit = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let mut taken = lock(&self.taken);
        let count = taken.entry(address).or_default();
        if *count >= self.share {
            return None;
        }
        *count += 1;
        Some(Place {
            address,
            taken: Arc::clone(&self.taken),
            _permit: permit,
        })
    }

    /// Waits until there is a place at all.
    pub async fn wait(&self) {
        let _ = self.all.acquire().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

fn lock(taken: &Mutex<HashMap<IpAddr, usize>>) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_descriptors(descriptors: usize) -> usize {
    let after_files = descriptors.saturating_sub(KEPT_BACK);
    after_files.max(descriptors / 2).clamp(1, MOST)
}

#[cfg(unix)]
fn descriptors() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call fills the struct it is given and keeps no pointer to it.
    let answered = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    if answered {
        usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
    } else {
        1024
    }
}

#[cfg(not(unix))]
fn descriptors() -> usize {
    8192
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn files_keep_their_descriptors() {
        assert_eq!(of_descriptors(1024), 768);
        assert_eq!(of_descriptors(256), 128, "half, when there are few");
        assert_eq!(of_descriptors(usize::MAX), MOST);
        assert_eq!(of_descriptors(0), 1);
    }

    #[tokio::test]
    async fn one_address_leaves_room_for_others() {
        let places = Places::new(4);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(places.take(address(1)).await.expect("within its share"));
        }
        assert!(places.take(address(1)).await.is_none());
        held.push(places.take(address(2)).await.expect("another address"));
        held.remove(0);
        assert!(places.take(address(1)).await.is_some(), "a place was freed");
        held.clear();
        assert!(lock(&places.taken).is_empty());
        assert_eq!(places.all.available_permits(), 4);
    }
}
