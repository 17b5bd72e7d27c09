//! A message, as JSON for programs and as text for people.
//!
//! The JSON is a contract: `version` is raised when a key changes its meaning or goes; keys may be added.

use drumtower_core::model::{JobName, NamespaceName, NotifyOn, RunId, WallMs, WorkerName};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::digest::{Digest, JOBS};
use super::event::Event;
use super::target::Place;
use crate::api::time::Time;

pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The same for the same first event and count, so that a repetition can be recognised.
    pub id: String,
    pub place: Place,
    pub created: WallMs,
    /// Nothing happened when it is a test.
    pub digest: Option<Digest>,
}

#[derive(Serialize)]
struct Body<'a> {
    version: u32,
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    created: Time,
    namespace: &'a NamespaceName,
    /// `null` when it tells of several jobs.
    job: Option<&'a JobName>,
    summary: String,
    counts: Counts,
    /// How many jobs, at least.
    jobs: usize,
    from: Option<Time>,
    to: Option<Time>,
    events: Vec<Told<'a>>,
    /// How many events are counted and not among `events`.
    more: u64,
}

#[derive(Serialize)]
struct Counts {
    failure: u64,
    recovery: u64,
    late: u64,
}

#[derive(Serialize)]
struct Told<'a> {
    kind: NotifyOn,
    job: &'a JobName,
    run: RunId,
    at: Time,
    due: Time,
    started: Option<Time>,
    attempts: u32,
    worker: Option<&'a WorkerName>,
    exit_code: Option<i32>,
    error: Option<&'a str>,
}

impl Message {
    pub fn new(place: &Place, digest: Digest, created: WallMs) -> Self {
        let mut hash = Sha256::new();
        let first = digest.examples.first();
        let parts = [
            place.namespace.as_str().to_owned(),
            format!("{:?}", place.target),
            first.map_or(String::new(), |it| {
                format!("{}{}", it.kind.as_str(), it.run)
            }),
            digest.total().to_string(),
        ];
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let id = hash.finalize();
        Self {
            id: format!("msg_{}", hex(&id[..16])),
            place: place.clone(),
            created,
            digest: Some(digest),
        }
    }

    /// A message that tells of nothing; `drawn` keeps its id from being known already.
    pub fn test(place: Place, created: WallMs, drawn: [u8; 16]) -> Self {
        Self {
            id: format!("msg_{}", hex(&drawn)),
            place,
            created,
            digest: None,
        }
    }

    /// What kind of message it is.
    pub fn kind(&self) -> &'static str {
        match &self.digest {
            None => "test",
            Some(digest) => digest.single().map_or("summary", |it| it.kind.as_str()),
        }
    }

    /// The job, when it tells of one only.
    pub fn job(&self) -> Option<&JobName> {
        let jobs = &self.digest.as_ref()?.jobs;
        jobs.first().filter(|_| jobs.len() == 1)
    }

    pub fn json(&self) -> Vec<u8> {
        let digest = self.digest.as_ref();
        let count = |kind| digest.map_or(0, |it| it.count(kind));
        let events = digest.map_or(&[][..], |it| &it.examples);
        let body = Body {
            version: VERSION,
            id: &self.id,
            kind: self.kind(),
            created: self.created.into(),
            namespace: &self.place.namespace,
            job: self.job(),
            summary: self.summary(),
            counts: Counts {
                failure: count(NotifyOn::Failure),
                recovery: count(NotifyOn::Recovery),
                late: count(NotifyOn::Late),
            },
            jobs: digest.map_or(0, |it| it.jobs.len()),
            from: digest.map(|it| it.first.into()),
            to: digest.map(|it| it.last.into()),
            events: events.iter().map(told).collect(),
            more: digest.map_or(0, |it| it.total() - it.examples.len() as u64),
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// One line for people.
    pub fn summary(&self) -> String {
        let namespace = &self.place.namespace;
        let Some(digest) = &self.digest else {
            return format!("test message of namespace {namespace}");
        };
        if let Some(event) = digest.single() {
            let what = match event.kind {
                NotifyOn::Failure => "failed",
                NotifyOn::Recovery => "recovered",
                NotifyOn::Late => "is late",
            };
            return format!("{namespace}/{} {what}", event.job);
        }
        let words: Vec<String> = digest
            .counts
            .iter()
            .map(|(kind, count)| counted(*kind, *count))
            .collect();
        let whose = match self.job() {
            Some(job) => format!("of {namespace}/{job}"),
            None => format!("of {} jobs in {namespace}", jobs(digest)),
        };
        format!("{} {whose}", words.join(", "))
    }

    /// The body of a mail.
    pub fn text(&self) -> String {
        let Some(digest) = &self.digest else {
            return format!(
                "This is a test message of the namespace {}. Nothing happened.\n\nMessages about jobs reach you in the same way.\n\nMessage {}\n",
                self.place.namespace, self.id
            );
        };
        let mut text = match digest.single() {
            Some(event) => single(event),
            None => self.several(digest),
        };
        text.push_str(&format!("\nMessage {}\n", self.id));
        text
    }

    fn several(&self, digest: &Digest) -> String {
        let mut text = format!(
            "{}, from {} to {}.\n",
            self.summary(),
            Time(digest.first),
            Time(digest.last)
        );
        for event in &digest.examples {
            let error = event.error.as_deref().map(one_line);
            let error = error.map_or(String::new(), |error| format!(": {error}"));
            let (kind, at) = (event.kind.as_str(), Time(event.at));
            text.push_str(&format!(
                "\n  {kind:<8}  {at}  {}  {}{error}",
                event.job, event.run
            ));
        }
        let more = digest.total() - digest.examples.len() as u64;
        if more > 0 {
            text.push_str(&format!("\n  and {more} more"));
        }
        let state = match digest.count(NotifyOn::Failure) {
            0 => "",
            _ => " --state failed",
        };
        let namespace = &self.place.namespace;
        text.push_str(&format!(
            "\n\nLook further:\n  drumtower run list -n {namespace}{state}\n"
        ));
        text
    }
}

fn told(event: &Event) -> Told<'_> {
    Told {
        kind: event.kind,
        job: &event.job,
        run: event.run,
        at: event.at.into(),
        due: event.due.into(),
        started: event.started.map(Time::from),
        attempts: event.attempts,
        worker: event.worker.as_ref(),
        exit_code: event.exit_code,
        error: event.error.as_deref(),
    }
}

fn single(event: &Event) -> String {
    let Event {
        job,
        namespace,
        run,
        ..
    } = event;
    let mut text = match (event.kind, event.started) {
        (NotifyOn::Failure, _) => format!("A run of {namespace}/{job} failed.\n"),
        (NotifyOn::Recovery, _) => {
            format!("A run of {namespace}/{job} completed; the one before it had failed.\n")
        }
        (NotifyOn::Late, None) => format!(
            "A run of {namespace}/{job} has not started. It waits for a worker that offers what it needs and has room.\n"
        ),
        (NotifyOn::Late, Some(_)) => format!("A run of {namespace}/{job} started late.\n"),
    };
    let mut row = |name: &str, value: &dyn std::fmt::Display| {
        text.push_str(&format!("\n  {name:<9} {value}"));
    };
    row("run", run);
    row("due", &Time(event.due));
    if let Some(started) = event.started {
        row("started", &Time(started));
    }
    match event.kind {
        NotifyOn::Late => row("late at", &Time(event.at)),
        _ => row("ended", &Time(event.at)),
    }
    if event.attempts > 0 {
        row("attempts", &event.attempts);
    }
    if let Some(worker) = &event.worker {
        row("worker", worker);
    }
    if let Some(code) = event.exit_code {
        row("exit code", &code);
    }
    if let Some(error) = &event.error {
        row("error", &one_line(error));
    }
    let further = match event.kind {
        NotifyOn::Late if event.started.is_none() => "drumtower worker list".to_owned(),
        _ => format!("drumtower run logs {run}"),
    };
    text.push_str(&format!(
        "\n\nLook further:\n  drumtower run show {run}\n  {further}\n  drumtower job show {job} -n {namespace}\n"
    ));
    text
}

fn counted(kind: NotifyOn, count: u64) -> String {
    let (one, several) = match kind {
        NotifyOn::Failure => ("failure", "failures"),
        NotifyOn::Recovery => ("recovery", "recoveries"),
        NotifyOn::Late => ("late run", "late runs"),
    };
    format!("{count} {}", if count == 1 { one } else { several })
}

fn jobs(digest: &Digest) -> String {
    match digest.jobs.len() {
        JOBS.. => format!("at least {JOBS}"),
        count => count.to_string(),
    }
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_control()).collect();
    words.join(" ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
