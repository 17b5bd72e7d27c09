//! The namespace that holds where neither a flag nor a file names one.

use drumtower_core::model::NamespaceName;

use crate::failure::{Failure, Result};

const VARIABLE: &str = "DRUMTOWER_NAMESPACE";

/// What the variable says. For flags that must tell a wish on the command line from a habit; the others let the parser of
/// flags read it.
pub fn by_variable() -> Result<Option<NamespaceName>> {
    match std::env::var(VARIABLE).unwrap_or_default().trim() {
        "" => Ok(None),
        name => NamespaceName::new(name)
            .map(Some)
            .map_err(|error| Failure::usage(format!("{VARIABLE}: {error}"))),
    }
}
