//! Tokens in the store of a server that is stopped.
//!
//! The store's lock keeps every server out meanwhile. The change is a commit of a session of its own, which takes segment
//! 0, where token ids are drawn, over from whoever had it: a server that starts later takes it back the same way.

use std::path::Path;

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{
    Actor, Epoch, Member, NamespaceName, Role, SegmentId, SegmentRow, TokenId, TokenRow,
};
use drumtower_server::auth::Secret;
use drumtower_server::auth::first_start::RESERVED;
use drumtower_server::auth::first_start::URL_FILE;
use drumtower_store::{Commit, Error, Read, Store, sqlite};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Result};

/// As long as a commit may take; nobody renews this session.
const SESSION_MS: i64 = 60_000;
/// The bits of an id that hold its segment and counter; all zero in the first id of segment 0 in a millisecond.
const BELOW_THE_MILLISECOND: u64 = (1 << 22) - 1;

pub struct Offline {
    writer: sqlite::Writer,
    reader: sqlite::Reader,
}

impl Offline {
    /// `None` when a server is running on this directory: it is the one to ask.
    pub fn open(data: &Path) -> Result<Option<Self>> {
        if !data.join(sqlite::FILE).is_file() {
            // Its state is elsewhere, and it knows where.
            if data.join(URL_FILE).is_file() {
                return Ok(None);
            }
            return Err(Failure::usage(format!("{} holds no store", data.display()))
                .remedy("name the data directory of a server with --data"));
        }
        match sqlite::open(data, sqlite::Options::default()) {
            Ok((writer, reader)) => Ok(Some(Self { writer, reader })),
            Err(Error::Locked(_)) if data.join(URL_FILE).is_file() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub fn list(&self) -> Result<Vec<Value>> {
        Ok(self
            .reader
            .tokens()?
            .iter()
            .filter(|token| !token.revoked)
            .map(show)
            .collect())
    }

    pub fn create(
        &mut self,
        name: &str,
        role: Role,
        namespace: Option<NamespaceName>,
    ) -> Result<Value> {
        NamespaceName::new(name).map_err(|error| {
            Failure::new(
                Exit::Refused,
                error.to_string().replace("namespace", "token"),
            )
        })?;
        if RESERVED.contains(&name) {
            let message = format!("`{name}` is a part of the system: choose another name");
            return Err(Failure::new(Exit::Refused, message));
        }
        if self
            .reader
            .tokens()?
            .iter()
            .any(|token| !token.revoked && token.name == name)
        {
            let message = format!("there is already a token named `{name}`: choose another name");
            return Err(Failure::new(Exit::Refused, message));
        }
        let secret =
            Secret::draw().map_err(|error| Failure::failed(format!("no random bits: {error}")))?;
        let created = self.writer.clock()?;
        let segment = self.segment()?;
        let row = TokenRow {
            id: TokenId(segment.id_mark),
            name: name.to_owned(),
            role,
            namespace,
            hash: secret.digest(),
            created,
            actor: Actor::new("offline"),
            revoked: false,
        };
        let mut shown = show(&row);
        shown["secret"] = json!(secret.text());
        self.commit(row, segment)?;
        Ok(shown)
    }

    pub fn revoke(&mut self, id: &str) -> Result<()> {
        let token = self
            .reader
            .tokens()?
            .into_iter()
            .find(|token| token.id.to_string() == id);
        let token =
            token.ok_or_else(|| Failure::new(Exit::NotFound, format!("there is no token {id}")))?;
        let segment = self.segment()?;
        self.commit(
            TokenRow {
                revoked: true,
                ..token
            },
            segment,
        )
    }

    /// Segment 0 with its mark at the next millisecond: an id that was never given to anything.
    fn segment(&self) -> Result<SegmentRow> {
        let row = self
            .reader
            .segments()?
            .into_iter()
            .find(|row| row.id == SegmentId(0));
        let row =
            row.ok_or_else(|| Failure::failed("the store has no segment 0: it is damaged"))?;
        let id_mark = (row.id_mark | BELOW_THE_MILLISECOND) + 1;
        let epoch = Epoch(row.epoch.0 + 1);
        Ok(SegmentRow {
            epoch,
            id_mark,
            ..row
        })
    }

    fn commit(&mut self, token: TokenRow, segment: SegmentRow) -> Result<()> {
        let revoke = self
            .writer
            .live_sessions()?
            .into_iter()
            .map(|session| session.id)
            .collect();
        let session = self
            .writer
            .begin_session(&Member::alone("offline"), SESSION_MS)?;
        let mut changes = ChangeSet {
            session,
            seq: 1,
            extend_ms: SESSION_MS,
            revoke,
            ..ChangeSet::default()
        };
        changes.segments.insert(
            segment.id,
            SegmentRow {
                owner: session,
                ..segment
            },
        );
        changes.tokens.insert(token.id, token);
        match self.writer.commit(&changes)? {
            Commit::Done => Ok(self.writer.close()?),
            Commit::Fenced => Err(Failure::failed(
                "another process took the store over: nothing was changed",
            )),
        }
    }
}

/// A token as the API shows it.
fn show(token: &TokenRow) -> Value {
    let created = Timestamp::from_millisecond(token.created.0)
        .map(|at| format!("{at:.3}"))
        .unwrap_or_default();
    json!({
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "namespace": token.namespace,
        "created": created,
        "actor": token.actor,
        "revoked": token.revoked,
    })
}
