//! Takes a token's right away for ever. Revoking twice changes nothing.

use crate::model::TokenId;

use super::super::{Effect, Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn revoke_token(&mut self, id: TokenId) -> Answer {
        let row = self.tokens.get_mut(&id).ok_or(Refusal::NoSuchToken(id))?;
        let before = std::mem::replace(&mut row.revoked, true);
        let answer = row.clone();
        if !before {
            self.building.token(id);
            self.effect(Effect::TokensChanged);
        }
        Ok(Reply::Token(Box::new(answer)))
    }
}
