//! Calendars, next times and explanations on the command line, against a real server.

use drumtower_e2e::{Cli, Server, Site, Terminal, eventually};
use serde_json::Value;

const FILE: &str = "
kind: Job
name: settle
schedule:
  - cron: '0 9 * * *'
calendar: {minus: [holidays]}
task: {exec: {argv: ['true']}}
---
kind: Calendar
name: holidays
include: [2030-05-01]
";

fn world() -> (Site, Server, Cli) {
    let site = Site::new();
    let server = Server::start(&site);
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    (site, server, cli)
}

fn columns(line: &str) -> Vec<&str> {
    line.split('\t').collect()
}

#[test]
fn a_calendar_is_applied_before_the_job_that_names_it() {
    let (site, _server, cli) = world();
    let file = site.file("both.yaml", FILE);
    let file = file.to_str().expect("a path in text");
    assert_eq!(
        cli.ok(&["job", "apply", "-f", file]),
        "calendar default/holidays created\njob default/settle created\n"
    );
    assert_eq!(
        cli.ok(&["calendar", "apply", "-f", file]),
        "calendar default/holidays unchanged\njob default/settle unchanged\n"
    );
    let listed = cli.ok(&["calendar", "list"]);
    assert_eq!(
        columns(&listed)[..4],
        ["default", "holidays", "2030-05-01", "1"]
    );
    let said = cli.fails(4, &["calendar", "delete", "holidays"]);
    assert!(said.contains("is used by job `settle`"), "{said}");
    cli.fails(3, &["calendar", "show", "no-such"]);

    site.file("both.yaml", &FILE.replace("05-01", "05-02"));
    assert_eq!(
        cli.ok(&["calendar", "apply", "-f", file]),
        "calendar default/holidays changed\njob default/settle unchanged\n"
    );
    let shown = eventually("the job is planned anew", || {
        let shown = cli.json(&["calendar", "show", "holidays"]);
        shown["replan"]["finished"].is_string().then_some(shown)
    });
    assert_eq!(shown["jobs"], 1);
    let shown = cli.ok(&["calendar", "show", "holidays"]);
    assert!(shown.contains("1 jobs looked at"), "{shown}");
    let versions = cli.ok(&["calendar", "versions", "holidays"]);
    assert_eq!(versions.lines().count(), 2, "{versions}");

    cli.ok(&["job", "delete", "settle"]);
    assert_eq!(
        cli.ok(&["calendar", "delete", "holidays"]),
        "calendar default/holidays deleted\n"
    );
    assert_eq!(cli.ok(&["calendar", "list"]), "");
}

#[test]
fn a_job_says_when_and_why() {
    let (site, _server, cli) = world();
    let file = site.file("both.yaml", FILE);
    cli.ok(&["job", "apply", "-f", file.to_str().expect("a path in text")]);
    let shown = cli.ok(&["job", "show", "settle"]);
    for words in ["every day at 09:00", "minus holidays", "priority: 5"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    let interval = ["--from", "2030-04-30T00:00:00Z"];
    let next = cli.ok(&[&["job", "next", "settle", "-n", "2"][..], &interval].concat());
    let times: Vec<&str> = next.lines().map(|line| columns(line)[0]).collect();
    assert_eq!(times, ["2030-04-30T09:00:00Z", "2030-05-02T09:00:00Z"]);

    let explain = ["job", "explain", "settle", "--to", "2030-05-03T00:00:00Z"];
    let explain = [&explain[..], &interval].concat();
    let told = cli.ok(&explain);
    let fates: Vec<(&str, &str)> = told
        .lines()
        .map(|line| (columns(line)[0], columns(line)[3]))
        .collect();
    assert_eq!(
        fates,
        [
            ("2030-04-30T09:00:00Z", "planned"),
            ("2030-05-01T09:00:00Z", "excluded"),
            ("2030-05-02T09:00:00Z", "planned"),
        ]
    );
    let json: Value = cli.json(&explain);
    assert_eq!(json["rows"][1]["calendar"], "holidays");
    let first = cli.json(&[&explain[..], &["--limit", "1"]].concat());
    assert_eq!(first["rows"].as_array().map(Vec::len), Some(1));
    assert!(first["next"].is_string(), "{first}");
    let past = [
        "--from",
        "2020-01-01T00:00:00Z",
        "--to",
        "2020-02-01T00:00:00Z",
    ];
    let mut terminal =
        Terminal::start(cli.command(&[&["job", "explain", "settle"][..], &past].concat()));
    assert!(terminal.ends().success());
    terminal.sees("the job was made at ");
    cli.fails(3, &["job", "explain", "no-such"]);
    cli.fails(3, &["job", "next", "no-such"]);
}
