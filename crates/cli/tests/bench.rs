//! The benches work, on real processes and in small: what they measure here says nothing, what the audit says does.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

fn bench(home: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_drumtower"))
        .arg("bench")
        .args(arguments)
        .args(["-o", "json"])
        .env_clear()
        .env("HOME", home)
        .env("TMPDIR", home)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Runs a throughput bench whose store and journals lie in `home`, and sees that it leaves nothing there.
fn throughput(path: &str) -> Value {
    let home = tempfile::tempdir().expect("a directory");
    let journals = home.path().to_str().expect("a name");
    let size = ["--rate", "200", "--duration", "2s", "--jobs", "3"];
    let arguments = [
        &["throughput", "--path", path, "--journals", journals],
        &size[..],
    ];
    let report = bench(home.path(), &arguments.concat());
    let left: Vec<_> = home.path().read_dir().expect("a listing").collect();
    assert!(left.is_empty(), "{left:?}");
    report
}

#[test]
fn batches_are_carried_out_and_audited() {
    let report = throughput("batch");
    assert_eq!(report["completed"], 400, "{report}");
    assert_eq!(report["audit"]["checked"], 400, "{report}");
    assert_eq!(
        (&report["lost"], &report["duplicated"]),
        (&0.into(), &0.into())
    );
    assert!(report["start_delay_ms"]["p99"].is_number(), "{report}");
    assert!(report["end_to_end_ms"]["p99"].is_number(), "{report}");
    assert!(report["fsync_per_s"].as_f64() > Some(0.0), "{report}");
}

#[test]
fn single_triggers_are_carried_out_and_audited() {
    let report = throughput("single");
    assert_eq!(report["completed"], 400, "{report}");
    assert_eq!(report["audit"]["checked"], 400, "{report}");
    assert_eq!(
        (&report["lost"], &report["duplicated"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn one_process_hosts_many_workers_while_runs_are_listed() {
    let home = tempfile::tempdir().expect("a directory");
    let size = ["--rate", "200", "--duration", "2s", "--workers", "30"];
    let more = ["--processes", "2", "--lists", "5"];
    let report = bench(home.path(), &[&["throughput"], &size[..], &more].concat());
    assert_eq!(report["completed"], 400, "{report}");
    assert_eq!(report["workers_seen"]["known"], 30, "{report}");
    assert_eq!(report["workers_seen"]["losses"], 0, "{report}");
    assert!(report["lists"]["asked"].as_u64() > Some(0), "{report}");
    assert!(report["lists"]["delay_ms"]["p99"].is_number(), "{report}");
}

#[test]
fn an_idle_system_is_triggered_run_by_run() {
    let home = tempfile::tempdir().expect("a directory");
    let report = bench(
        home.path(),
        &["latency", "--runs", "5", "--warm-up", "1", "--pause", "1ms"],
    );
    for delay in ["answer_ms", "start_delay_ms", "end_to_end_ms"] {
        assert!(report[delay]["p99"].is_number(), "{report}");
    }
    assert_eq!(report["audit"]["checked"], 6, "{report}");
}

#[test]
fn each_thing_there_can_be_more_of_is_compared() {
    let home = tempfile::tempdir().expect("a directory");
    let size = ["--jobs", "10,40", "--runs", "3000", "--workers", "1,5"];
    let load = ["--rate", "100", "--duration", "1s", "--warm-up", "1s"];
    let report = bench(home.path(), &[&["growth"], &size[..], &load].concat());
    let pairs = report["pairs"].as_array().expect("a list");
    let grown: Vec<_> = pairs.iter().map(|pair| &pair["grown"]).collect();
    assert_eq!(grown, ["jobs", "runs", "workers"]);
    let rounds = report["rounds"].as_array().expect("a list");
    assert_eq!(rounds.len(), 4, "{report}");
    for round in rounds {
        let past = round["finished_runs"].as_u64().expect("a count");
        assert_eq!(round["audit"]["checked"], past + 200, "{report}");
        assert!(round["start_delay_ms"]["p50"].is_number(), "{report}");
    }
    let left: Vec<_> = home.path().read_dir().expect("a listing").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn as_much_leaves_the_history_of_a_soak_as_comes() {
    let home = tempfile::tempdir().expect("a directory");
    let size = ["--rate", "100", "--duration", "3s", "--every", "1s"];
    let report = bench(home.path(), &[&["soak"], &size[..]].concat());
    assert_eq!(
        report["lines"].as_array().map(Vec::len),
        Some(3),
        "{report}"
    );
    assert_eq!(report["put"], 300, "{report}");
    assert!(report["pruned"].as_u64() > Some(0), "{report}");
    assert!(report["drift"]["store"].is_number(), "{report}");
    assert_eq!(
        (&report["lost"], &report["duplicated"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn a_server_that_is_killed_under_load_comes_back_and_loses_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let size = ["--jobs", "50", "--rate", "200", "--rounds", "1"];
    let times = ["--load", "1s", "--down", "300ms"];
    let arguments = [&["start", "--kill"], &size[..], &times].concat();
    let report = bench(home.path(), &arguments);
    let round = &report["rounds"][0];
    for figure in ["ready_ms", "first_start_ms", "silent_ms"] {
        assert!(round[figure].as_f64() > Some(0.0), "{report}");
    }
    assert!(round["unanswered"].as_u64() > Some(0), "{report}");
    assert_eq!(
        (&round["lost"], &round["duplicated"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn schedules_fire_and_are_audited() {
    let report = throughput("schedule");
    assert_eq!(report["offered_per_s"], 200.0, "{report}");
    assert!(report["completed"].as_u64() > Some(0), "{report}");
    assert_eq!(
        (&report["lost"], &report["duplicated"]),
        (&0.into(), &0.into())
    );
}

/// Everything that a due time can come to, besides its one start.
fn assert_nothing_lost(measured: &Value) {
    for field in ["lost", "duplicated", "early"] {
        assert_eq!(measured[field], 0, "{field}: {measured}");
    }
    assert!(measured["start_delay_ms"]["p99"].is_number(), "{measured}");
}

#[test]
fn due_times_are_measured_with_few_jobs_and_with_more() {
    let home = tempfile::tempdir().expect("a directory");
    let size = ["--jobs", "5,300", "--duration", "2s", "--warm-up", "1s"];
    let report = bench(home.path(), &[&["precision"], &size[..]].concat());
    let measured = report["measured"].as_array().expect("a list");
    assert_eq!(measured.len(), 2, "{report}");
    for (one, jobs) in measured.iter().zip([5, 300]) {
        assert_eq!(
            (&one["jobs"], &one["active"]),
            (&jobs.into(), &5.into()),
            "{report}"
        );
        assert!(one["due"].as_u64() >= Some(5), "{report}");
        assert_nothing_lost(one);
    }
    assert!(report["ratio"]["p99"].is_number(), "{report}");
    assert_eq!(report["storm"], Value::Null);
    let left: Vec<_> = home.path().read_dir().expect("a listing").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_storm_starts_every_job_once() {
    let home = tempfile::tempdir().expect("a directory");
    let report = bench(home.path(), &["precision", "--storm", "50"]);
    let storm = &report["storm"];
    assert_nothing_lost(storm);
    assert!(storm["all_started_ms"].is_number(), "{report}");
    assert!(storm["inverted_pairs"].is_number(), "{report}");
    let priorities = storm["priorities"].as_array().expect("a list");
    let started: Vec<_> = priorities.iter().map(|row| &row["started"]).collect();
    assert_eq!(started, [&Value::from(5); 10], "{report}");
    assert_eq!(report["measured"], Value::Array(Vec::new()));
    let left: Vec<_> = home.path().read_dir().expect("a listing").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_server_is_started_twice_on_jobs_that_stay() {
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("prepared");
    let data = data.to_str().expect("a name");
    let size = ["--jobs", "200", "--due", "3", "--settle", "1s"];
    let start = |rounds: &str| {
        let arguments = ["start", "--data", data, "--rounds", rounds];
        bench(home.path(), &[&arguments, &size[..]].concat())
    };
    let first = start("2");
    assert_eq!(first["rounds"].as_array().map(Vec::len), Some(2), "{first}");
    for figure in ["ready_ms", "first_fire_ms"] {
        assert!(first["worst"][figure].as_f64() > Some(0.0), "{first}");
    }
    assert!(first["prepared_s"].is_number(), "{first}");
    let second = start("1");
    assert_eq!(second["prepared_s"], Value::Null, "{second}");
}

#[test]
fn a_store_that_holds_something_is_left_alone() {
    let home = tempfile::tempdir().expect("a directory");
    let kept = home.path().join("kept");
    std::fs::write(&kept, "mine").expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_drumtower"))
        .args(["bench", "throughput", "--store"])
        .arg(format!("sqlite:{}", home.path().display()))
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(kept).expect("still there"), "mine");
}

#[test]
fn several_servers_need_a_database_that_they_share() {
    let output = Command::new(env!("CARGO_BIN_EXE_drumtower"))
        .args(["bench", "throughput", "--servers", "2"])
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("--store postgres://"), "{words}");
}

#[test]
fn the_wheel_is_compared_with_the_others() {
    let home = tempfile::tempdir().expect("a directory");
    let report = bench(home.path(), &["wheel", "--timers", "1000", "--rounds", "1"]);
    let subjects = report["measured"][0]["subjects"].as_array();
    assert_eq!(subjects.map(Vec::len), Some(4), "{report}");
}
