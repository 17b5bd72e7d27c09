//! Users who hold locks: each believes in a hold from the answer on until its term, counted from when it asked, is over.

use drumtower_core::engine::Refusal;
use drumtower_core::model::{
    Fence, Limits, LockName, LockRef, LockRequest, LockRow, NamespaceName,
};

use super::{Call, Deed};
use crate::clock::{At, MS};
use crate::world::{World, note};

const LOCKS: u64 = 3;

/// A hold that a user believes in.
#[derive(Clone, Debug)]
pub struct Hold {
    pub(crate) lock: LockRef,
    pub(crate) owner: String,
    pub(crate) fence: Fence,
    pub(crate) until: At,
}

impl World {
    pub(super) fn lock_deed(&mut self, client: usize) -> Option<Deed> {
        let at = self.at;
        let user = &mut self.clients[client];
        user.holds.retain(|hold| hold.until > at);
        let random = &mut user.random;
        if !user.holds.is_empty() && random.chance(700) {
            let index = random.below(user.holds.len() as u64) as usize;
            let hold = user.holds[index].clone();
            if random.chance(600) {
                let ttl_ms = random.chance(200).then(|| ttl(random));
                return Some(Deed::Renew { hold, ttl_ms });
            }
            // Whoever gives it back does not believe in it from then on, whatever is still under way.
            user.holds.remove(index);
            user.given_back.insert(hold.owner.clone());
            let fence = Some(hold.fence);
            let lock = hold.lock;
            return Some(Deed::Release { lock, fence });
        }
        let lock = LockRef {
            namespace: NamespaceName::default(),
            name: LockName::new(&format!("lock-{}", random.below(LOCKS))).ok()?,
        };
        if random.chance(15) {
            self.checks.lock_forced(&lock);
            return Some(Deed::Release { lock, fence: None });
        }
        user.keys += 1;
        Some(Deed::Acquire(LockRequest {
            lock,
            owner: format!("c{client}-{}", user.keys),
            ttl_ms: ttl(random),
            wait_ms: *random.pick(&[0, 0, 1_000, 5_000, 30_000]),
        }))
    }

    /// A user is told that it holds a lock.
    pub(super) fn lock_given(&mut self, call: &Call, row: &LockRow) {
        let client = call.client;
        note!(
            self,
            "client {client} holds {} as {} under fence {}",
            row.lock.name,
            row.owner,
            row.fence.0
        );
        let user = &mut self.clients[client];
        if user.given_back.contains(&row.owner) {
            return;
        }
        let counted = i128::from(row.ttl_ms * MS);
        let drift = counted * i128::from(user.drift_ppm) / 1_000_000;
        let until = call
            .sent
            .plus(u64::try_from(counted - drift).unwrap_or_default());
        let known = user.holds.iter_mut().find(|hold| hold.owner == row.owner);
        match known {
            Some(hold) => hold.until = hold.until.max(until),
            None => user.holds.push(Hold {
                lock: row.lock.clone(),
                owner: row.owner.clone(),
                fence: row.fence,
                until,
            }),
        }
        self.check_hold(row, until);
    }

    pub(super) fn lock_refused(&mut self, call: &Call, refusal: &Refusal) {
        if let (Deed::Renew { hold, .. }, Refusal::LockLost(_)) = (&call.deed, refusal) {
            let user = &mut self.clients[call.client];
            user.holds.retain(|it| it.owner != hold.owner);
        }
    }
}

fn ttl(random: &mut crate::random::Random) -> u64 {
    *random.pick(&[Limits::LOCK_TTL_MIN_MS, 2_000, 5_000, 15_000])
}
