//! `drumtower worker drain`: no new work, and what runs ends or moves by a deadline.

use std::time::Duration;

use clap::Args;
use drumtower_core::model::NamespaceName;
use serde_json::{Value, json};
use ureq::http::Method;

use super::number;
use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::duration;
use crate::failure::Result;
use crate::output::{Output, hint, text};

/// How often --wait looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Take a worker out of service: no new work, what runs ends
///
/// It holds for the name, over restarts of the worker and of the server, until
/// `drumtower worker resume`. With --deadline, what still runs by then is stopped and goes
/// to another worker, with its checkpoint; that counts as a loss, not as a failure. Again
/// with another --deadline moves it. A worker that is not connected can be drained too.
///
///     drumtower worker drain build-1
///     drumtower worker drain build-1 --deadline 10m --wait
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Drain {
    /// The worker's name; of several processes that have it, all are meant
    worker: String,
    /// How long what runs may take to end; 0s stops it at once
    #[arg(long, value_parser = duration::parse, value_name = "DURATION")]
    deadline: Option<Duration>,
    /// Wait until it runs nothing, and tell how many runs are left
    #[arg(long)]
    wait: bool,
    /// Only workers whose token is bound to this namespace
    #[arg(short, long)]
    namespace: Option<NamespaceName>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Drain {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let deadline = self.deadline.map(duration::words);
        let call = target(Method::POST, &self.worker, "drain", self.namespace.as_ref());
        let mut told = client.value(call.json(json!({ "deadline": deadline })))?;
        if self.wait {
            let mut left = None;
            while number(&told, "/attempts") > 0 {
                let attempts = number(&told, "/attempts");
                if left.replace(attempts) != Some(attempts) {
                    hint(&standing(&told));
                }
                std::thread::sleep(LOOK_EVERY);
                // The same request without a deadline changes nothing.
                let call = target(Method::POST, &self.worker, "drain", self.namespace.as_ref());
                told = client.value(call)?;
            }
        }
        self.output.one(&told, |_| standing(&told))
    }
}

/// A request about workers of that name.
pub(super) fn target(
    method: Method,
    worker: &str,
    verb: &str,
    namespace: Option<&NamespaceName>,
) -> Call {
    let path = format!("/api/v1/workers/{}/{verb}", segment(worker));
    Call::new(method, path).maybe("namespace", namespace)
}

/// Where the workers stand, in one line.
pub(super) fn standing(told: &Value) -> String {
    let name = text(told, "name");
    let left = match (number(told, "/processes"), number(told, "/attempts")) {
        (0, _) => "no worker of that name is connected".to_owned(),
        (_, 0) => "it runs nothing".to_owned(),
        (_, 1) => "1 run has to end".to_owned(),
        (_, many) => format!("{many} runs have to end"),
    };
    let drain = told.get("maintenance").filter(|it| !it.is_null());
    let Some(drain) = drain else {
        return format!("{name} is in service\n");
    };
    let (deadline, forced) = (text(drain, "deadline"), text(drain, "forced"));
    let until = match (deadline.as_str(), forced.as_str()) {
        ("", _) => String::new(),
        (deadline, "") => format!(", by {deadline}"),
        (_, forced) => format!(", stopped what ran at {forced}"),
    };
    format!("{name} is drained: {left}{until}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told() {
        let told = |attempts: u64, forced: Value| {
            standing(&json!({
                "name": "w", "processes": 1, "attempts": attempts,
                "maintenance": {"deadline": "T9", "forced": forced},
            }))
        };
        assert_eq!(
            told(2, Value::Null),
            "w is drained: 2 runs have to end, by T9\n"
        );
        assert_eq!(
            told(0, json!("T9")),
            "w is drained: it runs nothing, stopped what ran at T9\n"
        );
        let free = json!({"name": "w", "processes": 1, "attempts": 3, "maintenance": null});
        assert_eq!(standing(&free), "w is in service\n");
        let gone =
            json!({"name": "w", "processes": 0, "attempts": 0, "maintenance": {"deadline": null}});
        assert_eq!(
            standing(&gone),
            "w is drained: no worker of that name is connected\n"
        );
    }
}
