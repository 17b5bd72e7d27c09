//! What a run must pass before it is given to a worker: one gate for each thing that limits it.
//!
//! A gate has a form as text. It is the key of its rate's row, and runs that wait because memory has no room for them are
//! parked in the store under it. Runs of one line with the same gates wait in one pen, whose key names them all.

use std::fmt;
use std::sync::Arc;

use super::limit::key_words;
use super::{JobId, NamespaceName, QueueName, QueueRef};

/// The more particular come first: it is there that runs wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateKey {
    /// Attempts of a job with one value of its `limits.key`.
    JobKey(JobId, Arc<str>),
    /// Attempts in a queue with one value of its `key`.
    QueueKey(QueueRef, Arc<str>),
    Job(JobId),
    Queue(QueueRef),
}

impl GateKey {
    /// The job whose attempts it counts; `None` for one of a queue.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::Job(job) | Self::JobKey(job, _) => Some(*job),
            Self::Queue(_) | Self::QueueKey(..) => None,
        }
    }

    /// Reads the form as text back.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.strip_prefix('@')?.split_once('/')?;
        let mut parts = rest.split('/');
        let key = match kind {
            "job" => {
                let job = JobId(parts.next()?.parse().ok()?);
                match parts.next() {
                    Some(value) => Self::JobKey(job, Arc::from(value)),
                    None => Self::Job(job),
                }
            }
            "queue" => {
                let queue = QueueRef {
                    namespace: NamespaceName::new(parts.next()?).ok()?,
                    name: QueueName::new(parts.next()?).ok()?,
                };
                match parts.next() {
                    Some(value) => Self::QueueKey(queue, Arc::from(value)),
                    None => Self::Queue(queue),
                }
            }
            _ => return None,
        };
        parts.next().is_none().then_some(key)
    }

    /// The queue it belongs to.
    pub fn queue(&self) -> Option<&QueueRef> {
        match self {
            Self::Queue(queue) | Self::QueueKey(queue, _) => Some(queue),
            Self::Job(_) | Self::JobKey(..) => None,
        }
    }

    /// The value of the key that it counts by, as people read it.
    pub fn value(&self) -> Option<String> {
        match self {
            Self::JobKey(_, value) | Self::QueueKey(_, value) => Some(key_words(value)),
            Self::Job(_) | Self::Queue(_) => None,
        }
    }
}

impl fmt::Display for GateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "@job/{}", job.0),
            Self::JobKey(job, value) => write!(f, "@job/{}/{value}", job.0),
            Self::Queue(queue) => write!(f, "@queue/{}/{}", queue.namespace, queue.name),
            Self::QueueKey(queue, value) => {
                write!(f, "@queue/{}/{}/{value}", queue.namespace, queue.name)
            }
        }
    }
}

/// The gates that runs wait at which are parked under `key`, and, when it is the key of a pen, that of its line.
pub fn parked_at(key: &str) -> Option<(Vec<GateKey>, Option<&str>)> {
    match key.strip_prefix("@pen/") {
        None => Some((vec![GateKey::parse(key)?], None)),
        Some(rest) => {
            let (count, mut rest) = rest.split_once('|')?;
            let mut gates = Vec::new();
            for _ in 0..count.parse::<u8>().ok()? {
                let (gate, more) = rest.split_once('|')?;
                gates.push(GateKey::parse(gate)?);
                rest = more;
            }
            (!gates.is_empty()).then_some((gates, Some(rest)))
        }
    }
}

/// The key of the pen of a line's runs that must pass these gates.
pub fn pen_key(gates: &[GateKey], line: &str) -> String {
    let mut key = format!("@pen/{}|", gates.len());
    for gate in gates {
        key.push_str(&gate.to_string());
        key.push('|');
    }
    key.push_str(line);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back() {
        let queue = QueueRef {
            namespace: NamespaceName::new("team-a").expect("a name"),
            name: QueueName::new("mail").expect("a name"),
        };
        let gates = [
            GateKey::JobKey(JobId(7), Arc::from("=eu%2f1")),
            GateKey::QueueKey(queue.clone(), Arc::from("~null")),
            GateKey::Job(JobId(7)),
            GateKey::Queue(queue),
        ];
        for gate in &gates {
            assert_eq!(GateKey::parse(&gate.to_string()).as_ref(), Some(gate));
            let text = gate.to_string();
            assert_eq!(parked_at(&text), Some((vec![gate.clone()], None)));
        }
        let line = "default/handler:a|b/c/1";
        let key = pen_key(&gates, line);
        assert_eq!(parked_at(&key), Some((gates.to_vec(), Some(line))));
        for other in [
            "",
            "due/7",
            line,
            "@job/x",
            "@job/1/a/b",
            "@pen/1|x",
            "@pen/9|@job/1|y",
        ] {
            assert_eq!(parked_at(other), None, "{other}");
        }
    }
}
