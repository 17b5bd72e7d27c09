//! Keeps a new API token. The edge has drawn the secret; only its hash comes here.

use crate::model::{Actor, AuditAction, Limits, Now, SpecError, TokenRow};

use super::super::{Effect, Engine, NewToken, Refusal, Reply};
use super::Answer;

/// More than anyone manages by hand, few enough to hold in memory.
const TOKENS: usize = 10_000;

impl Engine {
    pub(super) fn create_token(&mut self, now: Now, actor: &Actor, token: NewToken) -> Answer {
        let length = token.name.chars().count();
        if length == 0 || length > Limits::NAME_CHARS || token.name.chars().any(char::is_control) {
            let message = format!("must be 1 to {} printable characters", Limits::NAME_CHARS);
            return Err(Refusal::Invalid(SpecError::new("name", message)));
        }
        let mut live = self.tokens.values().filter(|row| !row.revoked);
        if live.any(|row| row.name == token.name) {
            return Err(Refusal::TokenNameTaken(token.name));
        }
        if self.tokens.values().filter(|row| !row.revoked).count() >= TOKENS {
            let message = format!("there are {TOKENS} tokens already: no more can be made");
            return Err(Refusal::Invalid(SpecError::new("name", message)));
        }
        let row = TokenRow {
            id: self.segments.token_id(now.wall),
            name: token.name,
            role: token.role,
            namespace: token.namespace,
            hash: token.hash,
            created: now.wall,
            actor: actor.clone(),
            revoked: false,
        };
        self.tokens.insert(row.id, row.clone());
        self.building.token(row.id);
        self.record_token_deed(now, actor, &row, AuditAction::Created);
        self.effect(Effect::TokensChanged);
        Ok(Reply::Token(Box::new(row)))
    }
}
