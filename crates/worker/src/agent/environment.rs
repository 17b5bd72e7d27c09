//! What a command is told about the attempt that it carries out.

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::Attempt;

/// The `DRUMTOWER_*` variables of an assignment. Parameters are JSON; times are milliseconds since 1970.
pub(super) fn of(assign: &wire::Assign) -> Vec<(String, String)> {
    let attempt = assign.attempt.unwrap_or_default();
    let mut variables = vec![
        ("DRUMTOWER_NAMESPACE", assign.namespace.clone()),
        ("DRUMTOWER_JOB", assign.job.clone()),
        ("DRUMTOWER_JOB_VERSION", assign.job_version.to_string()),
        ("DRUMTOWER_RUN", Attempt::from(attempt).run_id().to_string()),
        ("DRUMTOWER_ATTEMPT", attempt.attempt.to_string()),
        ("DRUMTOWER_FENCE", attempt.fence.to_string()),
        ("DRUMTOWER_IDEMPOTENCY_KEY", assign.idempotency_key.clone()),
        ("DRUMTOWER_DUE_MS", assign.due_wall_ms.to_string()),
        (
            "DRUMTOWER_PARAMS",
            if assign.params.is_empty() {
                "null".to_owned()
            } else {
                assign.params.clone()
            },
        ),
    ];
    if let Some(nominal_ms) = assign.nominal_wall_ms {
        variables.push(("DRUMTOWER_NOMINAL_MS", nominal_ms.to_string()));
    }
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
