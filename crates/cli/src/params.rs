//! Parameters of runs as they are typed.

use serde_json::Value;

use crate::failure::{Failure, Result};

/// Reads `--params`.
pub fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!("--params `{text}` is not JSON: {error}"))
            .remedy("write it in quotes, as in --params '{\"name\": \"Ada\"}'")
    })
}
