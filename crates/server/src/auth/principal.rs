//! The caller behind a token, and the one place that decides what its namespace lets it see.
//!
//! Two questions are asked. A caller that *names* a namespace is told when it may not [`enter`](Principal::enter) it:
//! the answer is the same whether or not anything exists there. A caller that names an *object* by its id must not learn
//! that the object exists elsewhere: [`sees`](Principal::sees) turns it into a missing one.

use drumtower_core::model::{Actor, NamespaceName, Role, TokenId};

use super::policy::Operation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// What its deeds are recorded under.
    pub actor: Actor,
    pub role: Role,
    /// The one namespace it is good for; `None` means all.
    pub namespace: Option<NamespaceName>,
    /// The row behind it; the local token has none.
    pub token: Option<TokenId>,
}

/// Why a caller is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("this needs a token: send `Authorization: Bearer drt_…`")]
    NoToken,
    #[error("the token is not known here, or was revoked: ask an admin for another one")]
    UnknownToken,
    #[error("the session has ended: sign in again")]
    SessionEnded,
    #[error(
        "a session changes something only with the header `X-Drumtower-Console`, which pages of other sites cannot send"
    )]
    OtherSite,
    #[error("a token with the role {role} may not do this ({operation:?}): use one of {needed}")]
    Role {
        role: &'static str,
        operation: Operation,
        needed: String,
    },
    #[error("the token is bound to namespace `{own}` and may not enter `{given}`")]
    Namespace {
        own: NamespaceName,
        given: NamespaceName,
    },
}

impl Principal {
    /// Whether it is this machine's own admin, whom no other server knows.
    pub fn is_local(&self) -> bool {
        self.token.is_none()
    }

    /// Whether it may act in the namespace it named.
    pub fn enter(&self, given: &NamespaceName) -> Result<(), Denied> {
        match &self.namespace {
            Some(own) if own != given => Err(Denied::Namespace {
                own: own.clone(),
                given: given.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether an object of that namespace exists for it.
    pub fn sees(&self, namespace: &NamespaceName) -> bool {
        self.namespace.as_ref().is_none_or(|own| own == namespace)
    }

    /// Whether something that belongs to one namespace, or to none, is its own to manage.
    pub fn owns(&self, namespace: Option<&NamespaceName>) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|own| Some(own) == namespace)
    }

    /// The filter of a listing: what the caller asked for, within what it may see.
    pub fn narrow(&self, given: Option<NamespaceName>) -> Result<Option<NamespaceName>, Denied> {
        match given {
            Some(given) => self.enter(&given).map(|()| Some(given)),
            None => Ok(self.namespace.clone()),
        }
    }

    /// The namespace meant by a caller that names none.
    pub fn home(&self) -> NamespaceName {
        self.namespace.clone().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(namespace: Option<&str>) -> Principal {
        let namespace = namespace.map(|name| NamespaceName::new(name).unwrap());
        Principal {
            actor: Actor::new("test"),
            role: Role::Operator,
            namespace,
            token: None,
        }
    }

    #[test]
    fn a_bound_principal_stays_in_its_namespace() {
        let (own, other) = (
            NamespaceName::new("a").unwrap(),
            NamespaceName::new("b").unwrap(),
        );
        let bound = principal(Some("a"));
        assert_eq!(bound.enter(&own), Ok(()));
        assert!(matches!(bound.enter(&other), Err(Denied::Namespace { .. })));
        assert!(bound.sees(&own) && !bound.sees(&other));
        assert!(bound.owns(Some(&own)) && !bound.owns(Some(&other)) && !bound.owns(None));
        assert_eq!(bound.narrow(None), Ok(Some(own.clone())));
        assert!(bound.narrow(Some(other)).is_err());
        assert_eq!(bound.home(), own);
    }

    #[test]
    fn an_unbound_principal_goes_everywhere() {
        let other = NamespaceName::new("b").unwrap();
        let free = principal(None);
        assert_eq!(free.enter(&other), Ok(()));
        assert!(free.sees(&other) && free.owns(None));
        assert_eq!(free.narrow(None), Ok(None));
        assert_eq!(free.home(), NamespaceName::default());
    }
}
