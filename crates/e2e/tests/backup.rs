//! A backup under load, the loss of everything, and the way back.

use std::collections::BTreeSet;
use std::path::PathBuf;

use drumtower_audit::Options;
use drumtower_e2e::{Api, Books, Cli, Server, Site, Worker, await_calm, eventually, shell, within};
use serde_json::{Value, json};
use ureq::http::Method;

fn minutes(count: u64) -> std::time::Duration {
    std::time::Duration::from_secs(60 * count)
}

/// A job that fires every second and writes the id and the fence of each run down.
fn ticking(notes: &std::path::Path) -> Value {
    let mut job = shell(
        "ticking",
        &format!(
            "echo \"$DRUMTOWER_RUN $DRUMTOWER_FENCE\" >> {}",
            notes.display()
        ),
    );
    job["schedule"] = json!([{"every": "1s"}]);
    job["misfire"] = json!({"policy": "latest"});
    job
}

fn cli(site: &Site) -> Cli {
    Cli::new(site.dir("home"))
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("text")
}

#[test]
fn everything_comes_back_from_a_backup_that_was_made_under_load() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let mut worker = Worker::start(&site, &server, "agent");
    let api = server.api();
    let notes = site.path().join("notes");
    api.put_job(&ticking(&notes));
    api.put_job(&shell("asked", "echo said"));
    let first = keyed(&api, "before");
    api.ended(&first);
    let (cli, data) = (cli(&site), text(site.data()));
    let shelf = text(site.dir("shelf"));
    let made = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            (0..200)
                .map(|_| api.trigger("asked", &json!({})))
                .collect::<Vec<_>>()
        });
        let made = cli.json(&["backup", &shelf, "--data", &data, "--with-logs"]);
        load.join().expect("the load ends");
        made
    });
    let path = made["path"].as_str().expect("a path").to_owned();
    assert_eq!(made["counts"]["jobs"], 2, "{made:#}");
    cli.ok(&["backup", "verify", &path]);
    let listed = cli.json(&["backup", "list", &shelf]);
    assert_eq!(listed, json!([made]));
    eventually("the schedule goes on after the backup", || {
        let fired = std::fs::read_to_string(&notes).unwrap_or_default();
        (fired.lines().count() >= 3).then_some(())
    });
    let lost = keyed(&api, "after");
    api.ended(&lost);
    let before = ids(&api.runs("job=asked&namespace=default"));
    let refusal = cli.fails(5, &["restore", &path, "--data", &data, "--replace"]);
    assert!(refusal.contains("in use"), "{refusal}");

    server.kill();
    std::fs::remove_dir_all(site.data()).expect("everything is lost");
    let restored = cli.json(&["restore", &path, "--data", &data]);
    assert_eq!(restored["replaced"], Value::Null, "{restored:#}");
    let seen = fences(&notes);
    server.restart();
    let api = server.api();
    api.worker("agent");
    assert_eq!(api.run(&first)["state"], "COMPLETED");
    assert_eq!(api.output(&first), "said\n", "its output came back");
    eventually("the schedule goes on after the restore", || {
        (fences(&notes).len() > seen.len() + 1).then_some(())
    });
    // What came after the backup is not known, and no number of it is given to anything else.
    let kept = ids(&api.runs("job=asked&namespace=default"));
    assert!(!kept.contains(&lost));
    assert!(kept.is_subset(&before));
    let again = keyed(&api, "after");
    assert!(!before.contains(&again), "{again} was given away before");
    let repeated = keyed(&api, "before");
    assert_eq!(repeated, first, "the key is from before the backup");
    let highest = seen.iter().max().copied().unwrap_or(0);
    let fresh: Vec<u64> = fences(&notes).difference(&seen).copied().collect();
    assert!(fresh.iter().all(|fence| *fence > highest), "{fresh:?}");
    pause(&api, "ticking");
    await_calm(&api, minutes(3));
    worker.process().stop();
    server.stop();
    let report = Books::open(&site.data()).audit(
        None,
        &Options {
            settled: true,
            ..Options::default()
        },
    );
    assert_eq!(report.violations, [], "{report:#?}");
}

/// Triggers the job under an idempotency key.
fn keyed(api: &Api, key: &str) -> String {
    let path = "/api/v1/namespaces/default/jobs/asked/runs";
    let header = [("idempotency-key", key)];
    let answer = api.call_with(Method::POST, path, Some(&json!({})), &header);
    let answer = answer.expect("an answer");
    assert!(answer.is_success(), "{answer:?}");
    answer.body["id"].as_str().expect("an id").to_owned()
}

fn ids(runs: &[Value]) -> BTreeSet<String> {
    let id = |run: &Value| run["id"].as_str().expect("an id").to_owned();
    runs.iter().map(id).collect()
}

/// The fences that tasks were given so far.
fn fences(notes: &std::path::Path) -> BTreeSet<u64> {
    let text = std::fs::read_to_string(notes).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split(' ').nth(1)?.parse().ok())
        .collect()
}

fn pause(api: &Api, job: &str) {
    api.post(
        &format!("/api/v1/namespaces/default/jobs/{job}/pause"),
        &json!({}),
    );
}

#[test]
fn a_server_that_is_asked_backs_itself_up_and_one_that_is_stopped_can_be() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let (cli, data) = (cli(&site), text(site.data()));
    let token = server.token("root", "admin");
    let remote = cli
        .clone()
        .env("DRUMTOWER_URL", server.url())
        .env("DRUMTOWER_TOKEN", token);
    let asked = remote.json(&["backup"]);
    assert_eq!(remote.json(&["backup", "list"]), json!([asked]));
    server.stop();
    let path = cli.ok(&["backup", "--data", &data]);
    cli.ok(&["backup", "verify", path.trim()]);
    assert_eq!(
        cli.json(&["backup", "list", "--data", &data])
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    let refusal = cli.fails(2, &["restore", path.trim(), "--data", &data]);
    assert!(refusal.contains("--replace"), "{refusal}");
    let restored = cli.json(&["restore", path.trim(), "--data", &data, "--replace"]);
    let aside = PathBuf::from(restored["replaced"].as_str().expect("a path"));
    assert!(aside.join("drumtower.db").is_file());
    server.restart();
    server.stop();
    let refusal = cli.fails(2, &["backup", "verify", &text(site.dir("home"))]);
    assert!(refusal.contains("not a backup"), "{refusal}");
}

#[test]
fn a_process_that_dies_while_it_backs_up_or_restores_leaves_nothing_that_looks_whole() {
    let site = Site::new();
    let mut server = Server::start(&site);
    server.api().put_job(&shell("asked", "true"));
    server.stop();
    let (cli, data) = (cli(&site), text(site.data()));
    let shelf = text(site.dir("shelf"));
    for passage in 1..=2 {
        let dying = cli
            .clone()
            .env("DRUMTOWER_FAILPOINT", format!("in_backup:{passage}"));
        assert_eq!(dying.run(&["backup", &shelf, "--data", &data]).code, -1);
        assert_eq!(cli.json(&["backup", "list", &shelf]), json!([]));
    }
    let path = cli.ok(&["backup", &shelf, "--data", &data]);
    let (path, target) = (path.trim(), text(site.path().join("target")));
    for passage in 1..=2 {
        let dying = cli
            .clone()
            .env("DRUMTOWER_FAILPOINT", format!("in_restore:{passage}"));
        assert_eq!(dying.run(&["restore", path, "--data", &target]).code, -1);
        let refusal = cli.fails(1, &["serve", "--data", &target, "--listen", "127.0.0.1:0"]);
        assert!(refusal.contains("interrupted"), "{refusal}");
    }
    cli.ok(&["restore", path, "--data", &target]);
    cli.ok(&["token", "list", "--data", &target]);
}

#[test]
fn a_data_directory_is_named_and_emptied_but_not_under_a_server() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let (cli, data) = (cli(&site), text(site.data()));
    assert_eq!(cli.ok(&["data", "path", "--data", &data]).trim(), data);
    let home = text(site.path().join("home/.local/share/drumtower"));
    assert_eq!(cli.ok(&["data", "path"]).trim(), home);
    let refusal = cli.fails(5, &["data", "reset", "--data", &data, "--yes"]);
    assert!(refusal.contains("in use"), "{refusal}");
    // Nobody is asked what would be refused anyway.
    cli.fails(5, &["data", "reset", "--data", &data]);
    server.stop();
    let made = cli.ok(&["backup", "--data", &data]);
    let shelf = text(site.data().join("backups"));
    let refusal = cli.fails(2, &["backup", "verify", &shelf]);
    let newest = format!("the newest backup in it is {}", made.trim());
    assert!(refusal.contains(&newest), "{refusal}");
    let refusal = cli.fails(2, &["data", "reset", "--data", &data]);
    assert!(refusal.contains("--yes"), "{refusal}");
    let said = cli.ok(&["data", "reset", "--data", &data, "--yes"]);
    assert!(said.contains("left there: backups"), "{said}");
    assert!(!site.data().join("drumtower.db").exists());
    within(minutes(1), "it starts anew", || {
        server.restart();
        Some(())
    });
    let jobs = server.api().get("/api/v1/jobs");
    assert_eq!(jobs["items"], json!([]));
}
