//! Output of one attempt that lies with several servers: whose files may hold some of it, and how the rest is fetched.
//!
//! An attempt's output is written by whoever owns its segment at the time, so it can lie with each server that did between
//! the attempt's beginning and its end. Sessions that owned something are remembered with when they did, and the place of an
//! attempt's end names the files that it is in. Most attempts lie with one server: then that one alone is asked, or nobody.
//! Chunks are numbered by their worker, over all servers, so parts are put together by those numbers.

use axum::response::{IntoResponse, Response};
use drumtower_core::model::{Attempt, AttemptOutcome, Home, Run, SessionRow, WallMs};

use super::problem::{Kind, Problem};
use super::{Edge, internal};
use crate::cluster::InTheNameOf;
use crate::logs::{Part, Place, Source};

/// How far the clocks of servers and database may lie apart.
const CLOCKS_MS: i64 = 1_000;

/// What is known of where a run's output lies.
#[derive(Clone)]
pub struct Parts {
    /// Sessions that may have written some of it.
    tenures: Vec<SessionRow>,
    /// In whose name others are asked.
    shown: InTheNameOf,
}

/// Somebody else's files that may hold part of an attempt's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    home: Home,
    /// The server's name and address when it was last there.
    server: String,
    /// Where it is reached; `None` when it is not there.
    address: Option<String>,
}

impl Holder {
    pub fn is_there(&self) -> bool {
        self.address.is_some()
    }

    /// Words that tell people what to do.
    fn absent(&self, why: &str) -> String {
        format!(
            "output of this attempt lies, or may lie, with {}, which {why}: start that server with its data directory, and read again",
            self.server
        )
    }
}

impl Parts {
    /// `None` where the store has one server.
    pub async fn of(
        edge: &Edge,
        run: &Run,
        shown: Option<InTheNameOf>,
    ) -> Result<Option<Self>, Problem> {
        let Some(shown) = shown.filter(|_| edge.logs.home().is_some()) else {
            return Ok(None);
        };
        let since = run.created.plus(-CLOCKS_MS);
        let tenures = edge.read(move |store| store.tenures(since)).await?;
        Ok(Some(Self { tenures, shown }))
    }

    /// Who else may have output of an attempt.
    pub fn holders(&self, edge: &Edge, attempt: &Attempt) -> Vec<Holder> {
        let live = edge.cluster.view().map(|view| view.servers);
        let live = live.unwrap_or_default().into_iter();
        let live: Vec<Home> = live.filter_map(|server| server.member.home).collect();
        let homes = homes(&self.tenures, attempt, &live);
        let others = homes.into_iter().filter(|it| Some(*it) != edge.logs.home());
        others.map(|home| self.holder(edge, home)).collect()
    }

    fn holder(&self, edge: &Edge, home: Home) -> Holder {
        let there = edge.cluster.at_home(home).map(|server| server.member);
        let former = || {
            let mut rows = self.tenures.iter().rev();
            rows.find(|row| row.member.home == Some(home))
                .map(|row| row.member.clone())
        };
        let address = there.as_ref().and_then(|member| member.address.clone());
        let server = match there.or_else(former) {
            None => format!("a server whose files are called {:016x}", home.0),
            Some(member) => match member.address {
                Some(address) => format!("server `{}` ({address})", member.server.0),
                None => format!("server `{}`", member.server.0),
            },
        };
        Holder {
            home,
            server,
            address,
        }
    }

    /// What another server has of an attempt, or words about why that is missing.
    pub async fn fetch(
        &self,
        edge: &Edge,
        holder: &Holder,
        source: Source,
    ) -> Result<Part, String> {
        let Some(address) = &holder.address else {
            return Err(holder.absent("is not there"));
        };
        let told = edge.cluster.part(address, source, &self.shown).await;
        let bytes = told.map_err(|why| holder.absent(&format!("cannot be asked ({why})")))?;
        let part = Part::decode(source, &bytes);
        part.ok_or_else(|| holder.absent("sent something else"))
    }

    /// Refuses where output is known to lie with others, none of whom is there. `attempts` have no output here.
    pub fn refuse_if_away<'a>(
        &self,
        edge: &Edge,
        run: &Run,
        attempts: impl Iterator<Item = &'a Attempt>,
    ) -> Result<(), Problem> {
        let named = attempts.filter_map(|attempt| attempt.end.as_ref()?.log?.home);
        let holders: Vec<Holder> = named.map(|home| self.holder(edge, home)).collect();
        match holders.first() {
            Some(first) if holders.iter().all(|it| it.address.is_none()) => {
                let detail = format!(
                    "the output of {} lies with {}, which is not there: start that server with its data directory, and read again",
                    run.id, first.server
                );
                Err(Problem::new(Kind::OutputAway, detail))
            }
            _ => Ok(()),
        }
    }
}

/// Whose files may hold output of an attempt; `live` are those of the servers that are there.
fn homes(tenures: &[SessionRow], attempt: &Attempt, live: &[Home]) -> Vec<Home> {
    let end = attempt.end.as_ref();
    let from = attempt.assigned.plus(-CLOCKS_MS);
    let to = end.map_or(WallMs(i64::MAX), |end| end.at.plus(CLOCKS_MS));
    let during = tenures
        .iter()
        .filter(|row| row.took.is_some_and(|took| took <= to) && row.expires >= from);
    let mut during: Vec<Home> = during.filter_map(|row| row.member.home).collect();
    during.sort_unstable();
    during.dedup();
    let log = end.and_then(|end| end.log);
    let lost = |outcome| matches!(outcome, AttemptOutcome::Lost | AttemptOutcome::Undelivered);
    let reported = end.is_some_and(|end| !lost(end.outcome));
    match log {
        // It ended with the one server that it began with, which wrote down where, or that there was nothing.
        Some(log) if during.len() <= 1 && log.home.is_some() => log.home.into_iter().collect(),
        None if during.len() == 1 && reported => Vec::new(),
        Some(log) => {
            // A place that was written before places had names may be with anybody.
            during.extend(log.home.map_or(live.to_vec(), |home| vec![home]));
            during.sort_unstable();
            during.dedup();
            during
        }
        None => during,
    }
}

/// Answers another server with what lies in this one's files.
pub async fn own(edge: &Edge, run: &Run, attempt: Option<u32>) -> Result<Response, Problem> {
    let mut attempts = run.attempts.iter();
    let Some(attempt) = attempts.find(|it| Some(it.number) == attempt) else {
        return Ok(Part::default().encode(source_of(run, 0)).into_response());
    };
    let source = source_of(run, attempt.number);
    let (known, since) = (end_here(edge, source, attempt), attempt.assigned);
    let logs = edge.logs.clone();
    let read = move || {
        let end = match known {
            Some((end, _)) => Some(end),
            None => logs.search(source, since.plus(-CLOCKS_MS))?,
        };
        end.map_or(Ok(Part::default()), |end| {
            Part::read(&mut logs.chain(source), end)
        })
    };
    let part = tokio::task::spawn_blocking(read).await;
    let part = part.map_err(|error| internal(&error))?;
    let part = part.map_err(|error| internal(&error))?;
    Ok(part.encode(source).into_response())
}

fn source_of(run: &Run, attempt: u32) -> Source {
    Source {
        run: run.id,
        attempt,
    }
}

/// Whether the last of the attempt's output is known to be in this server's files.
pub fn ended_here(edge: &Edge, attempt: &Attempt) -> bool {
    let log = attempt.end.as_ref().and_then(|end| end.log);
    log.is_some_and(|log| log.home == edge.logs.home())
}

/// Where the attempt's output ends in this server's files, and whether some was dropped. An attempt that was lost with its
/// worker, or that went to another server, has no place of ours in its run's row, but maybe a tail.
pub fn end_here(edge: &Edge, source: Source, attempt: &Attempt) -> Option<(Place, bool)> {
    let stored = attempt.end.as_ref().and_then(|end| end.log);
    let ours = stored.filter(|log| log.home.is_none() || log.home == edge.logs.home());
    let locator = ours.or_else(|| edge.logs.locator(source))?;
    let place = Place {
        file: locator.file,
        offset: locator.offset,
    };
    Some((place, stored.unwrap_or(locator).truncated))
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::{
        AttemptEnd, Fence, LogLocator, Member, ProcessId, SessionId, WorkerName,
    };

    use super::*;

    fn tenure(home: u64, took: i64, expires: i64) -> SessionRow {
        SessionRow {
            id: SessionId(home),
            member: Member {
                home: Some(Home(home)),
                ..Member::alone("a")
            },
            seq: 1,
            expires: WallMs(expires),
            revoked: true,
            took: Some(WallMs(took)),
        }
    }

    fn attempt(assigned: i64, end: Option<(i64, AttemptOutcome, Option<Option<u64>>)>) -> Attempt {
        let end = end.map(|(at, outcome, log)| AttemptEnd {
            outcome,
            at: WallMs(at),
            duration_ms: 0,
            exit_code: None,
            signal: None,
            http_status: None,
            verdict: None,
            cpu_ms: 0,
            peak_memory_bytes: 0,
            error: None,
            log: log.map(|home| LogLocator {
                file: 1,
                offset: 0,
                bytes: 1,
                truncated: false,
                home: home.map(Home),
            }),
        });
        Attempt {
            number: 1,
            fence: Fence(1),
            worker: WorkerName::new("w").unwrap(),
            process: ProcessId(1),
            assigned: WallMs(assigned),
            started: None,
            end,
        }
    }

    #[test]
    fn whoever_may_have_some_of_it_is_asked_and_nobody_else() {
        use AttemptOutcome::{Lost, Succeeded};
        let tenures = [tenure(1, 10_000, 50_000), tenure(2, 60_000, 90_000)];
        let live = [Home(2), Home(3)];
        let asked = |assigned, end| {
            let homes = homes(&tenures, &attempt(assigned, end), &live);
            homes.iter().map(|home| home.0).collect::<Vec<_>>()
        };
        // Within one tenure the row tells all.
        assert_eq!(asked(20_000, Some((30_000, Succeeded, Some(Some(1))))), [1]);
        assert_eq!(asked(20_000, Some((30_000, Succeeded, None))), [0; 0]);
        // What was lost with its worker may have said something before.
        assert_eq!(asked(20_000, Some((30_000, Lost, None))), [1]);
        // Over a take-over both may have some of it.
        assert_eq!(
            asked(40_000, Some((70_000, Succeeded, Some(Some(2))))),
            [1, 2]
        );
        assert_eq!(asked(40_000, Some((70_000, Succeeded, None))), [1, 2]);
        assert_eq!(asked(40_000, None), [1, 2]);
        assert_eq!(asked(70_000, None), [2]);
        // Before places had names: whoever is there.
        assert_eq!(asked(1_000, Some((2_000, Succeeded, Some(None)))), [2, 3]);
    }
}
