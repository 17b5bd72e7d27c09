//! Backfills of real jobs: what a pause left out is made up for beside the live schedule, and a server that dies in the
//! middle neither loses nor doubles a time.

use std::collections::BTreeMap;
use std::path::Path;

use drumtower_audit::Options;
use drumtower_core::model::{Origin, Run, WallMs};
use drumtower_e2e::{Books, Cli, Server, Site, Worker, eventually, once, shell};
use serde_json::{Value, json};

fn cli(site: &Site, server: &Server) -> Cli {
    Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string())
}

/// A job whose runs note the time that they stand for.
fn noting(site: &Site, schedule: Value) -> Value {
    let notes = site.path().join("notes");
    let script = format!("echo $DRUMTOWER_NOMINAL_MS >> {}", notes.display());
    let mut job = once(shell("tick", &script));
    job["schedule"] = schedule;
    job["overlap"] = json!("allow");
    job
}

/// How often each time was noted by a task.
fn noted(site: &Site) -> BTreeMap<String, usize> {
    let notes = std::fs::read_to_string(site.path().join("notes")).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for line in notes.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

fn audit(data: &Path) -> Vec<Run> {
    let books = Books::open(data);
    let report = books.audit(None, &Options::default());
    assert!(report.is_clean(), "{:#?}", report.violations);
    books.fires("tick")
}

#[test]
fn what_a_pause_left_out_is_made_while_the_schedule_goes_on() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let _worker = Worker::start(&site, &server, "agent");
    let (api, cli) = (server.api(), cli(&site, &server));
    api.put_job(&noting(&site, json!([{"every": "1s"}])));
    eventually("the schedule fires", || {
        (noted(&site).len() > 1).then_some(())
    });
    cli.ok(&["job", "pause", "tick"]);
    let paused: WallMs = wall(&api.job("tick")["paused"]["at"]);
    eventually("some times have passed", || {
        (now().since(paused) > 4_000).then_some(())
    });
    cli.ok(&["job", "resume", "tick"]);
    let resumed = now();
    let before = noted(&site).len();
    eventually("the schedule fires again", || {
        (noted(&site).len() > before).then_some(())
    });
    let (from, to) = (rfc(paused), rfc(resumed));
    let foreseen = cli.json(&[
        "backfill",
        "create",
        "tick",
        "--from",
        &from,
        "--to",
        &to,
        "--dry-run",
    ]);
    let missing = foreseen["runs"].as_u64().expect("a number");
    assert!(missing >= 3, "{foreseen:#}");
    let told = cli.json(&[
        "backfill",
        "create",
        "tick",
        "--from",
        &from,
        "--to",
        &to,
        "--max-active",
        "2",
        "--wait",
    ]);
    assert_eq!(told["state"], "COMPLETED", "{told:#}");
    assert_eq!(told["completed"].as_u64(), Some(missing), "{told:#}");
    let id = told["id"].as_str().expect("an id");
    let listed = cli.json(&["run", "list", "--backfill", id]);
    assert_eq!(listed.as_array().map(Vec::len), Some(missing as usize));
    let after = noted(&site).len();
    eventually("the schedule still fires", || {
        (noted(&site).len() > after).then_some(())
    });
    server.stop();
    let runs = audit(server.data());
    let inside = |run: &&Run| run.nominal.is_some_and(|at| at >= paused && at < resumed);
    let made: Vec<&Run> = runs.iter().filter(inside).collect();
    let backfilled = made.iter().filter(|run| run.origin == Origin::Backfill);
    assert_eq!(backfilled.count() as u64, missing);
    let mut times: Vec<WallMs> = made.iter().filter_map(|run| run.nominal).collect();
    times.dedup();
    assert_eq!(times.len(), made.len(), "each time has one run");
    assert!(noted(&site).values().all(|count| *count == 1));
}

#[test]
fn a_server_that_dies_in_the_middle_loses_and_doubles_nothing() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let _worker = Worker::start(&site, &server, "agent");
    server
        .api()
        .put_job(&noting(&site, json!([{"cron": "0 * * * *"}])));
    let id = cli(&site, &server).ok(&[
        "backfill",
        "create",
        "tick",
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2026-01-04T00:00:00Z",
        "--max-active",
        "3",
        "--order",
        "newest_first",
    ]);
    let path = format!("/api/v1/backfills/{}", id.trim());
    for death in 1..=4 {
        eventually("it goes on", || {
            (noted(&site).len() > death * 10).then_some(())
        });
        server.kill();
        server.restart();
    }
    let api = server.api();
    let over = eventually("it is over", || {
        let shown = api.get(&path);
        (shown["state"] == "COMPLETED").then_some(shown)
    });
    assert_eq!(over["made"], 72, "{over:#}");
    assert_eq!(over["completed"], 72, "{over:#}");
    server.stop();
    let runs = audit(server.data());
    let mut times: Vec<_> = runs.iter().filter_map(|run| run.nominal).collect();
    let made = times.len();
    times.dedup();
    assert_eq!((made, times.len()), (72, 72), "each time has one run");
    assert_eq!(noted(&site).len(), 72);
}

fn now() -> WallMs {
    WallMs(jiff::Timestamp::now().as_millisecond())
}

fn wall(text: &Value) -> WallMs {
    let text = text.as_str().expect("an instant");
    let at: jiff::Timestamp = text.parse().expect("an instant");
    WallMs(at.as_millisecond())
}

fn rfc(at: WallMs) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).expect("an instant");
    at.to_string()
}
