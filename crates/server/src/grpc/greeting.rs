//! The first message of a stream: who the worker is, and whether the two speak the same protocol.

use std::collections::BTreeMap;

use drumtower_core::engine::{Enforcement, Hello};
use drumtower_core::model::{Limits, NamespaceName, ProcessId, WorkerName};
use drumtower_proto::worker::v1 as wire;
use drumtower_proto::{LINKS, PROTOCOL_MAX, PROTOCOL_MIN};

/// Handlers that one worker may register.
const MAX_HANDLERS: usize = 1024;

/// Reads a hello. The error says why there can be no session; dialling again would not help.
pub fn read(hello: wire::Hello, namespace: Option<NamespaceName>) -> Result<(Hello, u32), String> {
    let protocol = agree(hello.protocol_min, hello.protocol_max)?;
    let worker = WorkerName::new(&hello.worker).map_err(|error| error.to_string())?;
    if hello.capacity == 0 {
        return Err(
            "capacity: `0` takes no work: give the worker a capacity of at least 1".to_owned(),
        );
    }
    let hello = Hello {
        worker,
        process: ProcessId(hello.process),
        stream_number: hello.stream,
        namespace,
        host: short(hello.host),
        version: short(hello.version),
        labels: labels(hello.labels)?,
        exec: hello.exec,
        http: hello.http,
        enforcement: enforcement(hello.enforcement.unwrap_or_default()),
        handlers: handlers(hello.handlers)?,
        capacity: hello.capacity,
        links: hello.features.iter().any(|feature| feature == LINKS),
    };
    Ok((hello, protocol))
}

/// The highest version that both speak.
fn agree(min: u32, max: u32) -> Result<u32, String> {
    let highest = max.min(PROTOCOL_MAX);
    if highest >= min && highest >= PROTOCOL_MIN {
        return Ok(highest);
    }
    let older = if max < PROTOCOL_MIN {
        "worker"
    } else {
        "server"
    };
    Err(format!(
        "the worker speaks protocol {min} to {max}, the server {PROTOCOL_MIN} to {PROTOCOL_MAX}: upgrade the {older}"
    ))
}

fn labels(
    given: std::collections::HashMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let fits = |text: &str| {
        text.chars().count() <= Limits::LABEL_CHARS && !text.chars().any(char::is_control)
    };
    if given.len() > Limits::LABELS {
        return Err(format!(
            "labels: a worker may have {}, this one has {}",
            Limits::LABELS,
            given.len()
        ));
    }
    match given
        .iter()
        .find(|(key, value)| key.is_empty() || !fits(key) || !fits(value))
    {
        None => Ok(given.into_iter().collect()),
        Some(_) => Err(format!(
            "labels: a key and its value may have {} printable characters",
            Limits::LABEL_CHARS
        )),
    }
}

fn handlers(given: Vec<String>) -> Result<Vec<String>, String> {
    let fits = |name: &String| !name.is_empty() && name.chars().count() <= Limits::NAME_CHARS;
    if given.len() > MAX_HANDLERS {
        return Err(format!(
            "handlers: a worker may have {MAX_HANDLERS}, this one has {}",
            given.len()
        ));
    }
    if given.iter().all(fits) {
        Ok(given)
    } else {
        Err(format!(
            "handlers: a name has 1 to {} characters",
            Limits::NAME_CHARS
        ))
    }
}

fn enforcement(given: wire::Enforcement) -> Enforcement {
    Enforcement {
        by: short(given.by),
        why: short(given.why),
    }
}

/// Text that is only shown.
fn short(text: String) -> String {
    if text.len() <= 256 {
        text
    } else {
        text.chars().take(256).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> wire::Hello {
        wire::Hello {
            protocol_min: 1,
            protocol_max: 1,
            worker: "w1".to_owned(),
            capacity: 4,
            ..wire::Hello::default()
        }
    }

    #[test]
    fn the_highest_common_protocol_is_chosen() {
        assert_eq!(agree(PROTOCOL_MIN, PROTOCOL_MAX + 5), Ok(PROTOCOL_MAX));
        assert!(
            agree(PROTOCOL_MAX + 1, PROTOCOL_MAX + 2)
                .unwrap_err()
                .contains("upgrade the server")
        );
        assert!(agree(0, 0).unwrap_err().contains("upgrade the worker"));
    }

    #[test]
    fn a_hello_out_of_bounds_is_refused_in_words() {
        assert!(read(hello(), None).is_ok());
        let refused = |change: fn(&mut wire::Hello)| {
            let mut hello = hello();
            change(&mut hello);
            read(hello, None).unwrap_err()
        };
        assert!(refused(|it| it.worker = "Bad Name".to_owned()).contains("worker name"));
        assert!(refused(|it| it.capacity = 0).contains("capacity"));
        assert!(refused(|it| it.handlers = vec![String::new()]).contains("handlers"));
        assert!(
            refused(|it| it.labels.extend([(String::new(), String::new())])).contains("labels")
        );
    }
}
