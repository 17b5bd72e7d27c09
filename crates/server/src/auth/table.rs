//! The tokens in memory, and the one gate that every call passes.
//!
//! A copy of the store's rows, read again whenever they change. The copy is replaced whole, so that a check sees either
//! the table before a change or the one after it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use drumtower_core::model::{Actor, Role, TokenId, TokenRow};
use drumtower_store::Read;
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::policy::{self, Operation, Who};
use super::secret::{Secret, digest};
use super::{Denied, Principal};

/// Rows by the first bytes of their digest. The digest is not a secret that timing could help to guess: what it is of
/// cannot be computed back. The rest is compared in constant time all the same.
type Rows = BTreeMap<[u8; 8], Vec<(Digest, Principal)>>;
type Digest = [u8; 32];

/// Until the tokens are read again that could not be read.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub struct Authority {
    shared: Arc<Shared>,
}

struct Shared {
    reader: Arc<dyn Read>,
    rows: RwLock<Arc<Rows>>,
    refreshing: Mutex<()>,
    local: Option<(Digest, Principal)>,
    changes: watch::Sender<u64>,
    /// How often tokens and settings had changed when the tokens were last read.
    definitions: AtomicU64,
}

impl Authority {
    /// Reads the tokens; `local` is the secret of the machine's own admin, known only in memory.
    pub fn load(
        reader: Arc<dyn Read>,
        local: Option<&Secret>,
    ) -> Result<Self, drumtower_store::Error> {
        let local = local.map(|secret| {
            let principal = Principal {
                actor: Actor::new("local"),
                role: Role::Admin,
                namespace: None,
                token: None,
            };
            (secret.digest(), principal)
        });
        // The count first: what changes in between is read again, and not missed.
        let definitions = AtomicU64::new(reader.definitions()?);
        let rows = RwLock::new(Arc::new(index(reader.tokens()?)));
        Ok(Self {
            shared: Arc::new(Shared {
                reader,
                rows,
                refreshing: Mutex::new(()),
                local,
                changes: watch::channel(0).0,
                definitions,
            }),
        })
    }

    /// Reads the tokens again. Blocks on the store.
    pub fn refresh(&self) -> Result<(), drumtower_store::Error> {
        // One at a time: a slower one that read before a revocation must not bring the token back.
        let _turn = self
            .shared
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let definitions = self.shared.reader.definitions()?;
        let rows = Arc::new(index(self.shared.reader.tokens()?));
        *self
            .shared
            .rows
            .write()
            .unwrap_or_else(PoisonError::into_inner) = rows;
        // After the rows: whoever finds this count may rely on them.
        self.shared.definitions.store(definitions, Ordering::SeqCst);
        self.shared.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Reads the tokens again unless they are those that the store has. Blocks on the store.
    ///
    /// Whoever was refused before asks again after it, whether or not it read anything: somebody else may have done so
    /// in between.
    pub fn refresh_if_changed(&self) -> Result<(), drumtower_store::Error> {
        let known = self.shared.definitions.load(Ordering::SeqCst);
        if self.shared.reader.definitions()? == known {
            return Ok(());
        }
        self.refresh()
    }

    /// Ticks after every refresh, for whoever holds a connection open on a token's strength.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Refreshes whenever the store's table has changed, until the driver is gone.
    pub async fn follow(self, mut changed: watch::Receiver<u64>) {
        while changed.changed().await.is_ok() {
            // What was revoked must not stay good because it could not be read just then.
            while !self.read_again().await && changed.has_changed().is_ok() {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }

    async fn read_again(&self) -> bool {
        let authority = self.clone();
        match tokio::task::spawn_blocking(move || authority.refresh()).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => tracing::error!(%error, "the tokens could not be read again"),
            Err(error) => tracing::error!(%error, "reading the tokens was cut short"),
        }
        false
    }

    /// Lets a caller pass the door of `operation`, or says why not. `None` comes from a door that asks for no token.
    pub fn admit(
        &self,
        operation: Operation,
        authorization: Option<&str>,
    ) -> Result<Option<Principal>, Denied> {
        self.admit_by(operation, || self.authenticate(authorization))
    }

    /// As [`admit`](Self::admit), for a caller that is known in another way than by a header. It is asked for only where
    /// the door asks for somebody.
    pub fn admit_by(
        &self,
        operation: Operation,
        caller: impl FnOnce() -> Result<Principal, Denied>,
    ) -> Result<Option<Principal>, Denied> {
        let Who::Roles(roles) = policy::who(operation) else {
            return Ok(None);
        };
        let principal = caller()?;
        if roles.contains(&principal.role) {
            return Ok(Some(principal));
        }
        let needed = roles.iter().map(|role| policy::role_name(*role));
        Err(Denied::Role {
            role: policy::role_name(principal.role),
            operation,
            needed: needed.collect::<Vec<_>>().join(", "),
        })
    }

    /// The same for whoever another server vouches for as its machine's own admin.
    pub fn admit_local(&self, operation: Operation) -> Result<Option<Principal>, Denied> {
        let local = self.shared.local.as_ref().ok_or(Denied::UnknownToken)?;
        self.admit_by(operation, || Ok(local.1.clone()))
    }

    fn authenticate(&self, authorization: Option<&str>) -> Result<Principal, Denied> {
        let secret = bearer(authorization)?;
        self.find(&digest(secret)).ok_or(Denied::UnknownToken)
    }

    /// The digest of a good token; `None` as its id means that of the machine's own admin.
    pub fn digest_of(&self, token: Option<TokenId>) -> Option<Digest> {
        let Some(token) = token else {
            return self.shared.local.as_ref().map(|(digest, _)| *digest);
        };
        let rows = self.shared.rows.read();
        let rows = Arc::clone(&rows.unwrap_or_else(PoisonError::into_inner));
        let mut all = rows.values().flatten();
        all.find(|(_, known)| known.token == Some(token))
            .map(|(digest, _)| *digest)
    }

    /// The caller behind a token, by its digest.
    pub fn known_by(&self, digest: &Digest) -> Option<Principal> {
        self.find(digest)
    }

    fn find(&self, given: &Digest) -> Option<Principal> {
        let same = |kept: &Digest| bool::from(kept.ct_eq(given));
        if let Some((kept, principal)) = &self.shared.local
            && same(kept)
        {
            return Some(principal.clone());
        }
        let rows = Arc::clone(
            &self
                .shared
                .rows
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let candidates = rows.get(&start(given))?;
        candidates
            .iter()
            .find(|(kept, _)| same(kept))
            .map(|(_, principal)| principal.clone())
    }

    /// How many tokens are good.
    pub fn count(&self) -> usize {
        let rows = self.shared.rows.read();
        let rows = rows.unwrap_or_else(PoisonError::into_inner);
        rows.values().map(Vec::len).sum()
    }

    /// Whether a principal admitted before would still be known.
    pub fn still_knows(&self, principal: &Principal) -> bool {
        let Some(token) = principal.token else {
            return true;
        };
        let rows = Arc::clone(
            &self
                .shared
                .rows
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        );
        rows.values()
            .flatten()
            .any(|(_, known)| known.token == Some(token))
    }
}

/// The secret that a caller shows.
fn bearer(authorization: Option<&str>) -> Result<&str, Denied> {
    let given = authorization.ok_or(Denied::NoToken)?;
    let (scheme, secret) = given.split_once(' ').ok_or(Denied::NoToken)?;
    match scheme.eq_ignore_ascii_case("bearer") {
        true => Ok(secret.trim()),
        false => Err(Denied::NoToken),
    }
}

fn start(digest: &Digest) -> [u8; 8] {
    let mut start = [0; 8];
    start.copy_from_slice(&digest[..8]);
    start
}

fn index(tokens: Vec<TokenRow>) -> Rows {
    let mut rows = Rows::new();
    for token in tokens.into_iter().filter(|token| !token.revoked) {
        let principal = Principal {
            actor: Actor::new(&token.name),
            role: token.role,
            namespace: token.namespace,
            token: Some(token.id),
        };
        rows.entry(start(&token.hash))
            .or_default()
            .push((token.hash, principal));
    }
    rows
}
