//! A run in few bytes: times as differences, what is rare behind one byte, what is in the row's columns left out.
//!
//! Payloads beyond [`Limits::INLINE_PAYLOAD_BYTES`] lie in side tables; the packed form says so.

use drumtower_core::model::{
    Actor, Attempt, AttemptEnd, AttemptOutcome, BackfillMark, CancelRequest, CheckpointMark, Fence,
    Home, JobId, JsonText, Limits, LogLocator, NamespaceName, Origin, ProcessId, Progress, Reason,
    Retention, Run, RunId, RunState, Standing, Transition, Verdict, WallMs, WorkerName,
};
use serde::{Deserialize, Serialize};

use crate::{Error, codec};

#[derive(Serialize, Deserialize)]
pub struct Packed<'a> {
    namespace: &'a str,
    job_version: u32,
    pub state: RunState,
    origin: Origin,
    actor: &'a str,
    retention: Retention,
    /// After the id's own time.
    created: i64,
    /// After creation.
    due: i64,
    /// After creation.
    nominal: Option<i64>,
    #[serde(borrow)]
    pub params: Payload<'a>,
    pub result: Payload<'a>,
    idempotency_key: Option<&'a str>,
    rare: Option<Rare<'a>>,
    attempts: Vec<PackedAttempt<'a>>,
    transitions: Vec<PackedTransition>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload<'a> {
    None,
    Inline(&'a str),
    Aside,
}

#[derive(Serialize, Deserialize)]
struct Rare<'a> {
    parent_run: Option<RunId>,
    root_run: Option<RunId>,
    rerun_of: Option<RunId>,
    shard: Option<(u32, u32)>,
    parked: Option<&'a str>,
    cancel: Option<CancelRequest>,
    error: Option<&'a str>,
}

/// What runs have had since the packed form was fixed; only what a run has is written. Variants are only added, at the end.
#[derive(Serialize, Deserialize)]
enum Later {
    NotBefore(WallMs),
    Progress(Progress),
    Checkpoint(CheckpointMark),
    /// What the end of an attempt has beside what every end has.
    End {
        attempt: u32,
        http_status: Option<u16>,
        verdict: Option<Verdict>,
    },
    StartBy(WallMs),
    Standing(Standing),
    Backfill(BackfillMark),
    /// Whose files the output of an attempt lies in.
    Home {
        attempt: u32,
        home: Home,
    },
}

#[derive(Serialize, Deserialize)]
struct PackedAttempt<'a> {
    number: u32,
    fence: Fence,
    worker: &'a str,
    /// Random, so eight bytes are shorter than a number of varying length.
    process: [u8; 8],
    assigned: i64,
    started: Option<i64>,
    #[serde(borrow)]
    end: Option<PackedEnd<'a>>,
}

#[derive(Serialize, Deserialize)]
struct PackedEnd<'a> {
    outcome: AttemptOutcome,
    at: i64,
    duration_ms: u64,
    exit_code: Option<i32>,
    signal: Option<i32>,
    cpu_ms: u64,
    peak_memory_bytes: u64,
    error: Option<&'a str>,
    log: Option<PackedLog>,
}

/// A [`LogLocator`] as it was when the packed form was fixed.
#[derive(Serialize, Deserialize)]
struct PackedLog {
    file: u32,
    offset: u64,
    bytes: u64,
    truncated: bool,
}

#[derive(Serialize, Deserialize)]
struct PackedTransition {
    to: RunState,
    reason: Reason,
    attempt: u32,
    /// After the one before, the first after creation.
    at: i64,
}

/// Differences wrap, so that any two times come back.
fn after(at: WallMs, base: WallMs) -> i64 {
    at.0.wrapping_sub(base.0)
}

fn time(base: WallMs, after: i64) -> WallMs {
    WallMs(base.0.wrapping_add(after))
}

fn payload(value: Option<&JsonText>) -> Payload<'_> {
    match value.map(JsonText::as_str) {
        None => Payload::None,
        Some(text) if text.len() > Limits::INLINE_PAYLOAD_BYTES => Payload::Aside,
        Some(text) => Payload::Inline(text),
    }
}

/// The text of a payload that does not go into the row.
pub fn aside(value: Option<&JsonText>) -> Option<&str> {
    value
        .map(JsonText::as_str)
        .filter(|text| text.len() > Limits::INLINE_PAYLOAD_BYTES)
}

pub fn seal(run: &Run) -> Result<Vec<u8>, Error> {
    let mut last = run.created;
    let transitions = run.transitions.iter().map(|transition| {
        let at = after(transition.at, last);
        last = transition.at;
        PackedTransition {
            to: transition.to,
            reason: transition.reason,
            attempt: transition.attempt,
            at,
        }
    });
    let packed = Packed {
        namespace: run.namespace.as_str(),
        job_version: run.job_version,
        state: run.state,
        origin: run.origin,
        actor: &run.actor.0,
        retention: run.retention,
        created: after(run.created, run.id.created()),
        due: after(run.due, run.created),
        nominal: run.nominal.map(|at| after(at, run.created)),
        params: payload(run.params.as_ref()),
        result: payload(run.result.as_ref()),
        idempotency_key: run.idempotency_key.as_deref(),
        rare: rare(run),
        attempts: run
            .attempts
            .iter()
            .map(|attempt| pack_attempt(attempt, run.created))
            .collect(),
        transitions: transitions.collect(),
    };
    codec::seal_growing(&packed, &later(run))
}

fn later(run: &Run) -> Vec<Later> {
    let later = [
        run.not_before.map(Later::NotBefore),
        run.progress.clone().map(Later::Progress),
        run.checkpoint.map(Later::Checkpoint),
        run.start_by.map(Later::StartBy),
        (run.standing != Standing::of(run.origin)).then(|| Later::Standing(run.standing.clone())),
        run.backfill.map(Later::Backfill),
    ];
    let ends = run.attempts.iter().filter_map(|attempt| {
        let end = attempt.end.as_ref()?;
        let any = end.http_status.is_some() || end.verdict.is_some();
        any.then_some(Later::End {
            attempt: attempt.number,
            http_status: end.http_status,
            verdict: end.verdict,
        })
    });
    let homes = run.attempts.iter().filter_map(|attempt| {
        let home = attempt.end.as_ref()?.log?.home?;
        Some(Later::Home {
            attempt: attempt.number,
            home,
        })
    });
    let later = later.into_iter().flatten();
    later.chain(ends).chain(homes).collect()
}

fn rare(run: &Run) -> Option<Rare<'_>> {
    let rare = Rare {
        parent_run: run.parent_run,
        root_run: run.root_run,
        rerun_of: run.rerun_of,
        shard: run.shard,
        parked: run.parked.as_deref(),
        cancel: run.cancel.clone(),
        error: run.error.as_deref(),
    };
    let any = rare
        .parent_run
        .or(rare.root_run)
        .or(rare.rerun_of)
        .is_some()
        || rare.shard.is_some()
        || rare.parked.or(rare.error).is_some()
        || rare.cancel.is_some();
    any.then_some(rare)
}

fn pack_attempt(attempt: &Attempt, created: WallMs) -> PackedAttempt<'_> {
    PackedAttempt {
        number: attempt.number,
        fence: attempt.fence,
        worker: attempt.worker.as_str(),
        process: attempt.process.0.to_le_bytes(),
        assigned: after(attempt.assigned, created),
        started: attempt.started.map(|at| after(at, attempt.assigned)),
        end: attempt.end.as_ref().map(|end| PackedEnd {
            outcome: end.outcome,
            at: after(end.at, attempt.assigned),
            duration_ms: end.duration_ms,
            exit_code: end.exit_code,
            signal: end.signal,
            cpu_ms: end.cpu_ms,
            peak_memory_bytes: end.peak_memory_bytes,
            error: end.error.as_deref(),
            log: end.log.map(|log| PackedLog {
                file: log.file,
                offset: log.offset,
                bytes: log.bytes,
                truncated: log.truncated,
            }),
        }),
    }
}

/// What a payload is when it is not in the row: asked by run id, only if the packed form says that it lies aside.
pub trait Aside {
    fn params(&self, run: RunId) -> Result<String, Error>;
    fn result(&self, run: RunId) -> Result<String, Error>;
}

/// For those who look at no payload.
pub struct NoPayload;

impl Aside for NoPayload {
    fn params(&self, _run: RunId) -> Result<String, Error> {
        Ok("null".to_owned())
    }

    fn result(&self, _run: RunId) -> Result<String, Error> {
        Ok("null".to_owned())
    }
}

pub fn open(id: RunId, job: JobId, blob: &[u8], payloads: &impl Aside) -> Result<Run, Error> {
    let (packed, later): (Packed<'_>, Vec<Later>) = codec::open_growing(blob)?;
    let created = time(id.created(), packed.created);
    let mut last = created;
    let transitions = packed.transitions.iter().map(|packed| {
        last = time(last, packed.at);
        Transition {
            to: packed.to,
            at: last,
            reason: packed.reason,
            attempt: packed.attempt,
        }
    });
    let transitions = transitions.collect();
    let params = match packed.params {
        Payload::None => None,
        Payload::Inline(text) => Some(codec::json(text)?),
        Payload::Aside => Some(codec::json(&payloads.params(id)?)?),
    };
    let result = match packed.result {
        Payload::None => None,
        Payload::Inline(text) => Some(codec::json(text)?),
        Payload::Aside => Some(codec::json(&payloads.result(id)?)?),
    };
    let rare = packed.rare.as_ref();
    let mut run = Run {
        id,
        namespace: NamespaceName::new(packed.namespace).map_err(broken)?,
        job,
        job_version: packed.job_version,
        state: packed.state,
        origin: packed.origin,
        actor: Actor::new(packed.actor),
        nominal: packed.nominal.map(|at| time(created, at)),
        due: time(created, packed.due),
        created,
        retention: packed.retention,
        params,
        idempotency_key: packed.idempotency_key.map(str::to_owned),
        parent_run: rare.and_then(|rare| rare.parent_run),
        root_run: rare.and_then(|rare| rare.root_run),
        rerun_of: rare.and_then(|rare| rare.rerun_of),
        backfill: None,
        shard: rare.and_then(|rare| rare.shard),
        not_before: None,
        start_by: None,
        parked: rare.and_then(|rare| rare.parked).map(str::to_owned),
        standing: Standing::of(packed.origin),
        cancel: rare.and_then(|rare| rare.cancel.clone()),
        attempts: packed
            .attempts
            .iter()
            .map(|packed| open_attempt(packed, created))
            .collect::<Result<_, _>>()?,
        transitions,
        progress: None,
        checkpoint: None,
        result,
        error: rare.and_then(|rare| rare.error).map(str::to_owned),
    };
    for later in later {
        match later {
            Later::NotBefore(at) => run.not_before = Some(at),
            Later::Progress(progress) => run.progress = Some(progress),
            Later::Checkpoint(mark) => run.checkpoint = Some(mark),
            Later::StartBy(by) => run.start_by = Some(by),
            Later::Standing(standing) => run.standing = standing,
            Later::Backfill(mark) => run.backfill = Some(mark),
            Later::End {
                attempt,
                http_status,
                verdict,
            } => {
                if let Some(end) = end_of(&mut run, attempt) {
                    (end.http_status, end.verdict) = (http_status, verdict);
                }
            }
            Later::Home { attempt, home } => {
                let log = end_of(&mut run, attempt).and_then(|end| end.log.as_mut());
                if let Some(log) = log {
                    log.home = Some(home);
                }
            }
        }
    }
    Ok(run)
}

fn end_of(run: &mut Run, attempt: u32) -> Option<&mut AttemptEnd> {
    let attempts = run.attempts.iter_mut();
    let mut ended = attempts.filter(|it| it.number == attempt);
    ended.find_map(|it| it.end.as_mut())
}

fn open_attempt(packed: &PackedAttempt<'_>, created: WallMs) -> Result<Attempt, Error> {
    let assigned = time(created, packed.assigned);
    Ok(Attempt {
        number: packed.number,
        fence: packed.fence,
        worker: WorkerName::new(packed.worker).map_err(broken)?,
        process: ProcessId(u64::from_le_bytes(packed.process)),
        assigned,
        started: packed.started.map(|at| time(assigned, at)),
        end: packed.end.as_ref().map(|end| AttemptEnd {
            outcome: end.outcome,
            at: time(assigned, end.at),
            duration_ms: end.duration_ms,
            exit_code: end.exit_code,
            signal: end.signal,
            http_status: None,
            verdict: None,
            cpu_ms: end.cpu_ms,
            peak_memory_bytes: end.peak_memory_bytes,
            error: end.error.map(str::to_owned),
            log: end.log.as_ref().map(|log| LogLocator {
                file: log.file,
                offset: log.offset,
                bytes: log.bytes,
                truncated: log.truncated,
                home: None,
            }),
        }),
    })
}

/// What retention needs of a finished run, without the rest.
pub struct Gone {
    pub namespace: String,
    pub created: WallMs,
    pub params_aside: bool,
    pub result_aside: bool,
}

pub fn open_gone(id: RunId, blob: &[u8]) -> Result<Gone, Error> {
    let packed: Packed<'_> = codec::open(blob)?;
    Ok(Gone {
        namespace: packed.namespace.to_owned(),
        created: time(id.created(), packed.created),
        params_aside: packed.params == Payload::Aside,
        result_aside: packed.result == Payload::Aside,
    })
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Corrupt(format!("a packed run holds a bad name: {error}"))
}
