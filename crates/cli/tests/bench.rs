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
fn schedules_fire_and_are_audited() {
    let report = throughput("schedule");
    assert_eq!(report["offered_per_s"], 200.0, "{report}");
    assert!(report["completed"].as_u64() > Some(0), "{report}");
    assert_eq!(
        (&report["lost"], &report["duplicated"]),
        (&0.into(), &0.into())
    );
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
fn the_wheel_is_compared_with_the_others() {
    let home = tempfile::tempdir().expect("a directory");
    let report = bench(home.path(), &["wheel", "--timers", "1000", "--rounds", "1"]);
    let subjects = report["measured"][0]["subjects"].as_array();
    assert_eq!(subjects.map(Vec::len), Some(4), "{report}");
}
