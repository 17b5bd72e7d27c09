//! The servers that share the store, and who owns which segment: as the store says it when it is asked.
//!
//! Every server answers, also one that stands by, so the answer shows what the asked one sees. What only a server itself
//! knows (when it started, how far its clock is off, how late it is, how long its commits take) each of them is asked for,
//! and it is `null` for those that do not answer in time.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine;
use drumtower_core::model::{Epoch, SegmentRow, SegmentSet, SessionId, SessionRow, WallMs};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::problem::Problem;
use super::query::Parameters;
use super::time::{self, Time};
use super::{Edge, sum};
use crate::cluster::Errand;
use crate::metrics::Histogram;

#[derive(Serialize, JsonSchema)]
pub struct Cluster {
    store: StoreKind,
    database: Database,
    /// By session.
    servers: Vec<Server>,
    segments: Segments,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StoreKind {
    /// Embedded: no other server can have it open.
    Sqlite,
    /// Shared by all servers that name the same database.
    Postgresql,
}

/// How the store answers the server that was asked.
#[derive(Serialize, JsonSchema)]
struct Database {
    /// Its clock, by which sessions end.
    now: Time,
    /// How long it took to read this answer.
    read_ms: f64,
    /// Since the server started.
    commits: u64,
    /// Commits that had to be sent again.
    commit_failures: u64,
    /// Half of the commits took no longer; `null` before the first one, or when it is beyond what is measured.
    commit_p50_ms: Option<f64>,
    commit_p99_ms: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ClusterServer")]
struct Server {
    /// The number of its session, drawn anew at each start.
    session: u64,
    name: String,
    /// The URL by which other servers reach it; `null` where there are no others.
    address: Option<String>,
    version: String,
    state: ServerState,
    /// Whether it is the one that answered.
    here: bool,
    /// Whether it told its own part, within two seconds. If not, the rest is what the database says of it.
    answered: bool,
    /// Told by itself.
    started: Option<Time>,
    /// When it last renewed its session, by the database's clock.
    last_seen: Time,
    /// How far its clock is ahead of the database's, to half the time that reading took. Told by itself.
    skew_ms: Option<i64>,
    /// How long the oldest has waited of what is due there: a job that has not fired, or a run that no limit holds back
    /// and that no worker has been given. Told by itself.
    lag_ms: Option<u64>,
    /// Half of its commits took no longer; `null` before the first one, or when it is beyond what is measured. Told by
    /// itself.
    commit_p50_ms: Option<f64>,
    commit_p99_ms: Option<f64>,
    /// How many segments it owns.
    segments: usize,
    /// Those of them that stay together, because jobs share a queue or a calendar or follow each other; `null` with an
    /// embedded store, where all of them do.
    tied: Option<usize>,
}

/// What only a server itself can tell.
const OWN: [&str; 5] = [
    "started",
    "skew_ms",
    "lag_ms",
    "commit_p50_ms",
    "commit_p99_ms",
];

/// The engine answers between two steps; one that does not is not waited for.
const ENGINE_MAY_TAKE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ServerState {
    /// Owns segments and works on them.
    Active,
    /// Owns none: it has just joined, or is about to leave.
    Standby,
    /// Its session has ended: another takes its segments over.
    Gone,
}

#[derive(Serialize, JsonSchema)]
struct Segments {
    count: usize,
    /// Those that no server owns whose session holds.
    unowned: usize,
    /// All segments in order; neighbours with the same owner and epoch are one range.
    ranges: Vec<Range>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "SegmentRange")]
struct Range {
    first: u16,
    last: u16,
    /// The owner's session; `null` when it was revoked and nobody has taken over yet.
    session: Option<u64>,
    /// The fence of the owner, raised each time that the segment is taken over.
    epoch: u64,
}

pub async fn show(
    State(edge): State<Edge>,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let Some(Extension(errand)) = errand else {
        return Ok(Json(own_part(&edge).await?).into_response());
    };
    // First, so that what the store says is as it stands when it is told, however long one of them took.
    let parts = sum::same(&edge, Some(&errand)).await;
    let own = sum::value(&own_part(&edge).await?)?;
    Ok(Json(merged(own, &parts.told)).into_response())
}

/// Adds to what the store says of each server what it told of itself.
fn merged(mut cluster: Value, parts: &[Value]) -> Value {
    let servers = cluster["servers"].as_array_mut();
    for server in servers.into_iter().flatten() {
        let told = parts.iter().filter_map(|part| part["servers"].as_array());
        let is_it = |row: &&Value| row["here"] == true && row["session"] == server["session"];
        let Some(own) = told.flatten().find(is_it) else {
            continue;
        };
        server["answered"] = Value::from(true);
        for key in OWN {
            server[key] = own[key].clone();
        }
    }
    cluster
}

/// What the store says, with what this server knows of itself.
async fn own_part(edge: &Edge) -> Result<Cluster, Problem> {
    let asked = Instant::now();
    let read = |reader: &dyn drumtower_store::Read| {
        Ok((reader.sessions()?, reader.segments()?, reader.ties()?))
    };
    let ((now, sessions), segments, ties) = edge.read(read).await?;
    let (took, read_at) = (asked.elapsed(), time::now());
    let figures = tokio::time::timeout(ENGINE_MAY_TAKE, edge.handle.figures()).await;
    let lag_ms = figures.ok().and_then(|told| Some(told.ok()?.0.lag_ms));
    let vitals = edge.handle.vitals().read();
    let is_shared = edge.cluster.view().is_some();
    let own = own_session(&sessions, &edge.server, edge.cluster.own_address());
    let half_ms = i64::try_from(took.as_millis() / 2).unwrap_or(i64::MAX);
    let (commit_p50_ms, commit_p99_ms) = (
        quantile_ms(&vitals.seconds, 0.5),
        quantile_ms(&vitals.seconds, 0.99),
    );
    let seen = Seen {
        now,
        // The database's clock was read somewhere in between.
        skew_ms: (read_at.0 - half_ms).saturating_sub(now.0),
        uptime_ms: i64::try_from(edge.metrics.uptime().as_millis()).unwrap_or(i64::MAX),
        is_shared,
        own,
        lag_ms,
        commits: (commit_p50_ms, commit_p99_ms),
        ties,
    };
    Ok(Cluster {
        store: match is_shared {
            true => StoreKind::Postgresql,
            false => StoreKind::Sqlite,
        },
        database: Database {
            now: now.into(),
            read_ms: took.as_secs_f64() * 1000.0,
            commits: vitals.seconds.count(),
            commit_failures: vitals.failures,
            commit_p50_ms,
            commit_p99_ms,
        },
        segments: seen.segments(&sessions, &segments),
        servers: sessions
            .into_iter()
            .map(|row| seen.server(row, &segments))
            .collect(),
    })
}

/// The session of the server that was asked: the last one under its name and address.
fn own_session(sessions: &[SessionRow], name: &str, address: Option<&str>) -> Option<SessionId> {
    let is_own = |row: &&SessionRow| {
        let at = row.member.address.as_deref();
        *row.member.server.0 == *name && (address.is_none() || at == address)
    };
    sessions.iter().filter(is_own).map(|row| row.id).max()
}

/// What the asked server knows of itself, and when.
struct Seen {
    now: WallMs,
    skew_ms: i64,
    uptime_ms: i64,
    is_shared: bool,
    own: Option<SessionId>,
    lag_ms: Option<u64>,
    /// The bounds of half of its commits, and of all but a hundredth.
    commits: (Option<f64>, Option<f64>),
    /// What stays together, whoever owns it.
    ties: SegmentSet,
}

impl Seen {
    /// An embedded store has one server, which renews its session only when it has something to commit.
    fn holds(&self, row: &SessionRow) -> bool {
        !self.is_shared || row.expires > self.now
    }

    fn server(&self, row: SessionRow, segments: &[SegmentRow]) -> Server {
        let owned = segments.iter().filter(|it| it.owner == row.id);
        let tied = owned.clone().filter(|it| self.ties.contains(it.id)).count();
        let owned = owned.count();
        let here = self.own == Some(row.id);
        let renewed = row.expires.0 - engine::Options::default().session_ms;
        let started = WallMs(time::now().0 - self.uptime_ms);
        Server {
            session: row.id.0,
            state: match (self.holds(&row), owned) {
                (false, _) => ServerState::Gone,
                (true, 0) => ServerState::Standby,
                (true, _) => ServerState::Active,
            },
            here,
            answered: here,
            started: here.then_some(started.into()),
            last_seen: match self.is_shared {
                true => WallMs(renewed.min(self.now.0)).into(),
                false => self.now.into(),
            },
            skew_ms: (here && self.is_shared).then_some(self.skew_ms),
            lag_ms: self.lag_ms.filter(|_| here),
            commit_p50_ms: self.commits.0.filter(|_| here),
            commit_p99_ms: self.commits.1.filter(|_| here),
            segments: owned,
            tied: self.is_shared.then_some(tied),
            name: row.member.server.0.to_string(),
            address: row.member.address,
            version: match row.member.version.is_empty() && here {
                true => env!("CARGO_PKG_VERSION").to_owned(),
                false => row.member.version,
            },
        }
    }

    fn segments(&self, sessions: &[SessionRow], rows: &[SegmentRow]) -> Segments {
        let known = |id: SessionId| sessions.iter().find(|row| row.id == id);
        let is_owned = |row: &&SegmentRow| known(row.owner).is_some_and(|owner| self.holds(owner));
        Segments {
            count: rows.len(),
            unowned: rows.len() - rows.iter().filter(is_owned).count(),
            ranges: ranges(rows, |id| known(id).is_some()),
        }
    }
}

/// Neighbours with the same owner and epoch as one.
fn ranges(rows: &[SegmentRow], is_known: impl Fn(SessionId) -> bool) -> Vec<Range> {
    let same = |a: &SegmentRow, b: &SegmentRow| (a.owner, a.epoch) == (b.owner, b.epoch);
    let range = |chunk: &[SegmentRow]| {
        let (first, last) = (chunk.first()?, chunk.last()?);
        let Epoch(epoch) = first.epoch;
        Some(Range {
            first: first.id.0,
            last: last.id.0,
            session: is_known(first.owner).then_some(first.owner.0),
            epoch,
        })
    };
    rows.chunk_by(same).filter_map(range).collect()
}

/// The bound below which that share of the observations lies.
fn quantile_ms(histogram: &Histogram, share: f64) -> Option<f64> {
    let wanted = (histogram.count() as f64 * share).ceil();
    let mut bounds = histogram.cumulative();
    let (bound, _) = bounds.find(|(_, below)| *below > 0 && *below as f64 >= wanted)?;
    Some(bound * 1000.0)
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::{Member, SegmentId};
    use serde_json::json;

    use super::*;

    fn segment(id: u16, owner: u64, epoch: u64) -> SegmentRow {
        SegmentRow {
            id: SegmentId(id),
            owner: SessionId(owner),
            epoch: Epoch(epoch),
            id_mark: 0,
        }
    }

    fn session(id: u64, name: &str, expires: i64) -> SessionRow {
        SessionRow {
            id: SessionId(id),
            member: Member {
                address: Some(format!("http://{name}")),
                ..Member::alone(name)
            },
            seq: 1,
            expires: WallMs(expires),
            revoked: false,
            took: None,
        }
    }

    fn seen(is_shared: bool) -> Seen {
        Seen {
            now: WallMs(10_000),
            skew_ms: 5,
            uptime_ms: 60_000,
            is_shared,
            own: Some(SessionId(2)),
            lag_ms: Some(40),
            commits: (Some(2.5), None),
            ties: [SegmentId(1)].into_iter().collect(),
        }
    }

    #[test]
    fn neighbours_of_one_owner_and_epoch_are_one_range() {
        let rows = [
            segment(0, 1, 4),
            segment(1, 1, 4),
            segment(2, 1, 5),
            segment(3, 2, 5),
            segment(4, 9, 1),
        ];
        let found = ranges(&rows, |id| id.0 < 9);
        let range = |first, last, session, epoch| Range {
            first,
            last,
            session,
            epoch,
        };
        let expected = [
            range(0, 1, Some(1), 4),
            range(2, 2, Some(1), 5),
            range(3, 3, Some(2), 5),
            range(4, 4, None, 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_server_whose_session_ended_is_gone_and_its_segments_are_nobodys() {
        let sessions = [session(1, "one", 9_000), session(2, "two", 12_000)];
        let rows = [segment(0, 1, 1), segment(1, 2, 1)];
        let state = |id: usize| seen(true).server(sessions[id].clone(), &rows).state;
        assert_eq!(state(0), ServerState::Gone);
        assert_eq!(state(1), ServerState::Active);
        assert_eq!(seen(true).segments(&sessions, &rows).unowned, 1);
        let idle = seen(true).server(session(3, "three", 12_000), &rows);
        assert_eq!(idle.state, ServerState::Standby);
        assert_eq!((idle.here, idle.skew_ms), (false, None));
        let two = seen(true).server(sessions[1].clone(), &rows);
        assert_eq!((two.lag_ms, two.commit_p50_ms), (Some(40), Some(2.5)));
        assert_eq!((two.segments, two.tied), (1, Some(1)));
        assert_eq!(seen(true).server(sessions[0].clone(), &rows).tied, Some(0));
        // The only server of an embedded store is there, however long ago it had something to write.
        let alone = seen(false).server(sessions[0].clone(), &rows);
        assert_eq!(alone.state, ServerState::Active);
        assert_eq!(seen(false).segments(&sessions, &rows).unowned, 0);
    }

    #[test]
    fn what_a_server_tells_of_itself_stands_in_its_own_row() {
        let row = |session: u64, here: bool, lag: Value| {
            json!({"session": session, "here": here, "answered": here, "started": null, "skew_ms": null,
                "lag_ms": lag, "commit_p50_ms": null, "commit_p99_ms": null, "segments": 7})
        };
        let own = json!({"servers": [row(1, true, json!(5)), row(2, false, json!(null)), row(3, false, json!(null))]});
        // It sees one more that has left since, and knows nothing of the first.
        let other = json!({"servers": [row(1, false, json!(null)), row(2, true, json!(9)), row(4, false, json!(null))]});
        let seen = merged(own, &[other]);
        let told = seen["servers"].as_array().unwrap().iter();
        let told: Vec<_> = told.map(|it| (&it["answered"], &it["lag_ms"])).collect();
        assert_eq!(
            told,
            [
                (&json!(true), &json!(5)),
                (&json!(true), &json!(9)),
                (&json!(false), &Value::Null),
            ]
        );
    }

    #[test]
    fn of_two_sessions_under_one_name_the_last_at_the_address_is_the_servers_own() {
        let mut elsewhere = session(7, "one", 9_000);
        elsewhere.member.address = Some("http://elsewhere".to_owned());
        let sessions = [session(1, "one", 1), session(5, "one", 9_000), elsewhere];
        let own = |address| own_session(&sessions, "one", address);
        assert_eq!(own(Some("http://one")), Some(SessionId(5)));
        assert_eq!(own(None), Some(SessionId(7)));
        assert_eq!(own_session(&sessions, "two", None), None);
    }

    #[test]
    fn a_quantile_is_the_bound_above_it() {
        let mut histogram = Histogram::new(&[0.001, 0.01, 0.1]);
        assert_eq!(quantile_ms(&histogram, 0.5), None);
        for value in [0.0005, 0.005, 0.005, 9.0] {
            histogram.observe(value);
        }
        assert_eq!(quantile_ms(&histogram, 0.5), Some(10.0));
        assert_eq!(quantile_ms(&histogram, 0.99), None);
    }
}
