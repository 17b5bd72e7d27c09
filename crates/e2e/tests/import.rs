//! Jobs of other schedulers, imported and run.

use drumtower_e2e::{Cli, Server, Site, Worker};
use serde_json::json;

struct World {
    _worker: Worker,
    _server: Server,
    cli: Cli,
    _site: Site,
}

fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let worker = Worker::start(&site, &server, "agent");
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    World {
        _worker: worker,
        _server: server,
        cli,
        _site: site,
    }
}

const CRONTAB: &str = "\
MAILTO=ops@example.com
GREETING=hello
# Greets.
30 2 * * * cat; echo $GREETING%from cron
@reboot /usr/bin/agent
";

#[test]
fn a_crontab_becomes_jobs_that_do_the_same() {
    let world = world();
    let import = |more: &[&str]| {
        let arguments = [
            &["import", "crontab", "-", "--timezone", "Europe/Berlin"],
            more,
        ]
        .concat();
        world.cli.run_with_input(&arguments, CRONTAB)
    };
    let printed = import(&[]);
    assert_eq!(printed.code, 0, "{printed:?}");
    for said in [
        "(standard input):1: MAILTO is not carried over",
        "(standard input):5: @reboot makes no job",
        "dst_gap: at_transition",
    ] {
        assert!(printed.stderr.contains(said), "{said}: {}", printed.stderr);
    }
    let diff = world
        .cli
        .run_with_input(&["diff", "-f", "-"], &printed.stdout);
    let first = diff.stdout.lines().next();
    assert_eq!(
        (diff.code, first),
        (1, Some("+ job default/cat")),
        "{diff:?}"
    );
    let applied = import(&["--apply"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert!(
        applied.stdout.ends_with("job default/cat created\n"),
        "{applied:?}"
    );
    assert_eq!(
        world
            .cli
            .run_with_input(&["diff", "-f", "-"], &printed.stdout)
            .code,
        0
    );
    let again = import(&["--apply"]);
    assert!(again.stdout.starts_with("= job default/cat\n"), "{again:?}");
    let run = world.cli.ok(&["job", "trigger", "cat"]).trim().to_owned();
    world.cli.ok(&["run", "wait", &run]);
    assert_eq!(world.cli.ok(&["run", "logs", &run]), "from cron\nhello\n");
    let refused = import(&["--apply", "--timeout", "1h"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.stderr.contains("there is already job default/cat"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("--replace"), "{refused:?}");
    assert_eq!(import(&["--apply", "--timeout", "1h", "--replace"]).code, 0);
    let broken = world
        .cli
        .run_with_input(&["import", "crontab", "-"], "61 * * * * true\n");
    let said = broken.failed(2);
    assert!(
        said.contains(":1: cron `61 * * * *`: minute field"),
        "{said}"
    );
}

const CRON_JOB: &str = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: '* * * * *'
  timeZone: Etc/UTC
  suspend: true
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      backoffLimit: 0
      activeDeadlineSeconds: 60
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: c, image: busybox, command: [sh, -c], args: ['echo $DAY'], env: [{name: DAY, value: monday}]}
";

#[test]
fn a_suspended_cron_job_becomes_a_job_that_is_paused_from_the_start() {
    let world = world();
    let import = ["import", "k8s-cronjob", "-"];
    let done = world
        .cli
        .run_with_input(&[&import[..], &["--apply"]].concat(), CRON_JOB);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stderr
            .contains("report: image \"busybox\" is not carried over"),
        "{done:?}"
    );
    let job = world.cli.json(&["job", "show", "report"]);
    assert!(job["paused"].is_object(), "{job}");
    assert_eq!(job["fires"], 0);
    assert_eq!(job["spec"]["schedule"], json!([{"cron": "* * * * *"}]));
    let run = world
        .cli
        .ok(&["job", "trigger", "report"])
        .trim()
        .to_owned();
    world.cli.ok(&["run", "wait", &run]);
    assert_eq!(world.cli.ok(&["run", "logs", &run]), "monday\n");
    let replaced = CRON_JOB.replace("Forbid", "Replace");
    let carried = world.cli.run_with_input(&import, &replaced);
    assert_eq!(carried.code, 0, "{carried:?}");
    assert!(
        carried.stdout.contains("overlap: cancel_old"),
        "{carried:?}"
    );
}

#[test]
fn a_suspended_cron_job_pauses_the_job_that_is_there() {
    let world = world();
    let import = |text: &str, more: &[&str]| {
        let arguments = [&["import", "k8s-cronjob", "-", "--apply"], more].concat();
        world.cli.run_with_input(&arguments, text)
    };
    let active = CRON_JOB.replace("suspend: true", "suspend: false");
    assert_eq!(import(&active, &[]).code, 0);
    assert!(world.cli.json(&["job", "show", "report"])["paused"].is_null());
    // The same definition: that it stops firing is a change, and is made only on purpose.
    let refused = import(CRON_JOB, &[]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.stdout.contains("paused: false → true"),
        "{refused:?}"
    );
    let done = import(CRON_JOB, &["--replace"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(world.cli.json(&["job", "show", "report"])["paused"].is_object());
    // Another definition.
    world.cli.ok(&["job", "resume", "report"]);
    let other = CRON_JOB.replace("activeDeadlineSeconds: 60", "activeDeadlineSeconds: 90");
    assert_eq!(import(&other, &["--replace"]).code, 0);
    let job = world.cli.json(&["job", "show", "report"]);
    assert!(job["paused"].is_object(), "{job}");
    assert_eq!(job["spec"]["timeout"], "90s");
    let again = import(&other, &[]);
    assert!(
        again.stdout.starts_with("= job default/report\n"),
        "{again:?}"
    );
}

#[test]
fn a_line_that_is_not_understood_does_not_keep_the_rest() {
    let world = world();
    let text = "61 * * * * broken\n*/15 2 * * * good\n";
    let arguments = [
        "import",
        "crontab",
        "-",
        "--apply",
        "--timezone",
        "Europe/Berlin",
    ];
    let done = world.cli.run_with_input(&arguments, text);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains(":1: cron `61 * * * *`"), "{done:?}");
    assert!(
        done.stderr.contains("left out; the rest was taken"),
        "{done:?}"
    );
    world.cli.ok(&["job", "show", "good"]);
    world.cli.fails(3, &["job", "show", "broken"]);
}

#[test]
fn a_habit_does_not_move_what_has_its_place() {
    let world = world();
    let cli = world.cli.clone().env("DRUMTOWER_NAMESPACE", "habit");
    let placed = CRON_JOB.replace("{name: report}", "{name: report, namespace: billing}");
    let both = format!("{placed}---\n{CRON_JOB}");
    let done = cli.run_with_input(&["import", "k8s-cronjob", "-", "-o", "json"], &both);
    let jobs: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    let named: Vec<_> = [&jobs[0], &jobs[1]]
        .map(|job| (&job["namespace"], &job["name"]))
        .into();
    assert_eq!(
        named,
        [
            (&json!("billing"), &json!("report")),
            (&json!("habit"), &json!("report"))
        ]
    );
}
