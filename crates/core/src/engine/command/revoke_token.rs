//! Takes a token's right away for ever. Revoking twice changes nothing.

use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, Now, SegmentId, TokenId, TokenRow, diff,
};
use serde_json::json;

use super::super::deeds::Told;
use super::super::{Effect, Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn revoke_token(&mut self, now: Now, actor: &Actor, id: TokenId) -> Answer {
        let row = self.tokens.get_mut(&id).ok_or(Refusal::NoSuchToken(id))?;
        let before = std::mem::replace(&mut row.revoked, true);
        let answer = row.clone();
        if !before {
            self.building.token(id);
            self.record_token_deed(now, actor, &answer, AuditAction::Revoked);
            self.effect(Effect::TokensChanged);
        }
        Ok(Reply::Token(Box::new(answer)))
    }

    pub(super) fn record_token_deed(
        &mut self,
        now: Now,
        actor: &Actor,
        token: &TokenRow,
        action: AuditAction,
    ) {
        let object = AuditObject {
            kind: AuditKind::Token,
            namespace: token.namespace.clone(),
            name: token.name.clone(),
        };
        let told = Told {
            version: None,
            changes: match action {
                AuditAction::Created => diff(
                    &json!({}),
                    &json!({"id": token.id, "role": token.role, "namespace": token.namespace}),
                ),
                _ => diff(&json!({"revoked": false}), &json!({"revoked": true})),
            },
        };
        self.record_deed(now, actor, SegmentId(0), action, object, told);
    }
}
