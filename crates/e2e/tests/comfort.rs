//! What makes the command line pleasant: logs read in part, a live view, completions, pages for `man`, a doctor.

use std::process::{Command, Stdio};

use drumtower_e2e::{Cli, Server, Site, Terminal, Worker, drumtower, eventually};
use serde_json::Value;

const TALKS: &str = "
kind: Job
name: talks
task:
  exec:
    shell: |
      for i in 1 2 3 4 5; do echo \"line $i\"; done
      printf '\\033[31mred words\\033[0m\\n'
      echo 'Oh Dear' >&2
---
kind: Job
name: fails
task: {exec: {argv: ['false']}}
---
kind: Job
name: mails
task: {handler: {name: send-mail}}
";

struct World {
    site: Site,
    server: Server,
    cli: Cli,
}

fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    let file = site.file("jobs.yaml", TALKS);
    cli.ok(&["apply", "-f", file.to_str().unwrap()]);
    World { site, server, cli }
}

#[test]
fn a_log_is_read_in_part() {
    let world = world();
    let cli = &world.cli;
    let _worker = Worker::start(&world.site, &world.server, "w1");
    let run = cli.ok(&["job", "trigger", "talks", "--wait"]);
    let run = run
        .split_whitespace()
        .find(|it| it.starts_with("run_"))
        .unwrap();
    let run = run.trim_end_matches(':');
    let logs = |flags: &[&str]| cli.run(&[&["run", "logs", run], flags].concat());
    let out = |flags: &[&str]| logs(flags).stdout;
    assert_eq!(
        out(&["--tail", "2", "--stream", "stdout"]),
        "line 5\nred words\n"
    );
    assert_eq!(out(&["--grep", "line [12]"]), "line 1\nline 2\n");
    assert_eq!(out(&["--grep", "LINE 3", "-i"]), "line 3\n");
    assert_eq!(
        out(&["--grep", "red words", "--ansi", "always"]),
        "\u{1b}[31mred words\u{1b}[0m\n"
    );
    assert_eq!(logs(&["--grep", "dear", "-i"]).stderr, "Oh Dear\n");
    assert_eq!(out(&["--since", "+1h"]), "");
    assert_eq!(
        out(&["--since", "-1h", "--stream", "stdout"])
            .lines()
            .count(),
        6
    );
    let stamped = out(&["--tail", "1", "--stream", "stdout", "--timestamps"]);
    let (stamp, words) = stamped.split_once(' ').unwrap();
    assert!(stamp.parse::<jiff::Timestamp>().is_ok(), "{stamped}");
    assert_eq!(words, "red words\n");
    let said = logs(&["--grep", "("]).failed(4);
    assert!(said.contains("grep: the pattern cannot be read"), "{said}");
    logs(&["--tail", "10001"]).failed(4);

    let mut terminal = Terminal::start(cli.command(&["run", "logs", run]));
    assert!(terminal.ends().success());
    terminal.sees("\u{1b}[31mOh Dear\u{1b}[0m");
    terminal.sees("\u{1b}[31mred words\u{1b}[0m");
}

#[test]
fn top_draws_reacts_and_leaves_the_terminal_as_it_was() {
    let mut world = world();
    let _worker = Worker::start(&world.site, &world.server, "busy-bee");
    world.cli.ok(&["job", "trigger", "mails"]);
    let start = || Terminal::start(world.cli.command(&["top", "--every", "200ms"]));

    let mut terminal = start();
    for word in ["busy-bee", "handler:send-mail", "failing", "WAITING"] {
        terminal.sees(word);
    }
    assert!(!terminal.is_cooked(), "keys come one by one");
    terminal.types("p");
    terminal.sees("[paused]");
    terminal.types("p/zzz");
    terminal.sees("z_");
    terminal.forget();
    terminal.types("\u{1b}");
    // The line of help is back: the key was heard. One that comes together with a new size may wait for the next key.
    terminal.sees("quit");
    terminal.forget();
    terminal.resize(40, 120);
    terminal.sees("busy-bee");
    terminal.forget();
    terminal.types("\r");
    terminal.sees("Esc closes");
    terminal.types("qq");
    left_clean(&mut terminal, 0);

    let mut terminal = start();
    terminal.sees("busy-bee");
    terminal.types("\u{3}");
    left_clean(&mut terminal, 0);

    let mut terminal = start();
    terminal.sees("busy-bee");
    world.server.kill();
    terminal.sees("lost:");
    assert!(
        terminal.drawn().contains("busy-bee"),
        "the last figures stay"
    );
    terminal.types("q");
    left_clean(&mut terminal, 0);
    world.cli.fails(5, &["top", "--once"]);
}

#[track_caller]
fn left_clean(terminal: &mut Terminal, code: i32) {
    assert_eq!(terminal.ends().code(), Some(code), "{}", terminal.drawn());
    terminal.sees("\u{1b}[?1049l");
    terminal.sees("\u{1b}[?25h");
    assert!(
        terminal.is_cooked(),
        "lines are edited and keys echoed again"
    );
}

#[test]
fn top_prints_once_in_a_pipe() {
    let world = world();
    let _worker = Worker::start(&world.site, &world.server, "w1");
    world.cli.ok(&["job", "trigger", "mails"]);
    let done = world.cli.run(&["job", "trigger", "fails", "--wait"]);
    assert_eq!(done.code, 1);
    let words = eventually("the failure is counted", || {
        let words = world.cli.ok(&["top", "--every", "200ms"]);
        words.contains("failing jobs").then_some(words)
    });
    for expected in ["1 waiting", "handler:send-mail", "w1", "ONLINE", "fails"] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    assert!(!words.contains('\u{1b}'), "{words}");
    let value = world.cli.json(&["top", "--once"]);
    assert_eq!(value["lines"][0]["need"], "handler:send-mail");
    assert_eq!(value["counters"]["failed"], 1);
    assert!(value["rates"]["started"].is_number(), "{value}");
}

/// What bash offers for the last word of a line.
fn offered(world: &World, line: &[&str]) -> String {
    let words = line.iter().map(|word| format!("'{word}'"));
    let words = words.collect::<Vec<_>>().join(" ");
    let script = format!(
        "source <(drumtower completions bash)
         f=$(complete -p drumtower | sed 's/.*-F \\([^ ]*\\).*/\\1/')
         COMP_WORDS=({words}); COMP_CWORD={}; COMP_LINE=\"${{COMP_WORDS[*]}}\"; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9
         $f drumtower '{}' ''
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        line.len() - 1,
        line[line.len() - 1],
    );
    let bin = drumtower();
    let path = format!(
        "{}:{}",
        bin.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("bash")
        .args(["--norc", "-c", &script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", world.site.path())
        .env("DRUMTOWER_DATA", world.server.data())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{script}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn bash_completes_verbs_flags_and_names() {
    let world = world();
    let verbs = offered(&world, &["drumtower", "job", "tri"]);
    assert_eq!(verbs.trim(), "trigger");
    let flags = offered(&world, &["drumtower", "run", "logs", "--timest"]);
    assert_eq!(flags.trim(), "--timestamps");
    let names = offered(&world, &["drumtower", "job", "trigger", "ta"]);
    assert_eq!(names.trim(), "talks");
    world.cli.ok(&["job", "trigger", "mails"]);
    let runs = offered(&world, &["drumtower", "run", "show", "run_"]);
    assert!(runs.trim().starts_with("run_"), "{runs}");
    for shell in ["zsh", "fish", "powershell"] {
        let script = world.cli.ok(&["completions", shell]);
        assert!(script.contains("drumtower"), "{shell}: {script}");
    }
    world.cli.fails(2, &["completions", "tcsh"]);
}

#[test]
fn manual_pages_are_whole_and_render_without_a_warning() {
    let site = Site::new();
    let cli = Cli::new(site.dir("home"));
    let page = cli.ok(&["man"]);
    assert!(page.contains(".TH") && page.contains("doctor"), "{page}");
    let pages = site.path().join("man1");
    cli.ok(&["man", pages.to_str().unwrap()]);
    let mut count = 0;
    for entry in std::fs::read_dir(&pages).unwrap() {
        let path = entry.unwrap().path();
        let output = Command::new("groff")
            .args(["-k", "-man", "-Tutf8", "-ww"])
            .arg(&path)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("groff runs: see `cargo xtask`");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, "", "{}", path.display());
        count += 1;
    }
    assert!(
        pages.join("drumtower-run-logs.1").is_file() && count > 40,
        "{count} pages"
    );
}

/// The state of one check of the doctor.
fn state<'a>(findings: &'a Value, check: &str) -> &'a str {
    let all = findings["findings"].as_array().unwrap();
    let found = all.iter().find(|it| it["check"] == check);
    found.and_then(|it| it["state"].as_str()).unwrap_or("none")
}

#[test]
fn the_doctor_tells_what_is_wrong_and_what_to_do() {
    let mut world = world();
    let _worker = Worker::start(&world.site, &world.server, "w1");
    let well = world.cli.json(&["doctor"]);
    assert_eq!(well["ok"], true, "{well:#}");
    for check in [
        "server", "ready", "tls", "token", "version", "clock", "workers", "waiting", "data",
        "config",
    ] {
        assert_eq!(state(&well, check), "ok", "{check}: {well:#}");
    }
    assert_eq!(state(&well, "backup"), "warn", "there is none");

    world.cli.ok(&["job", "trigger", "mails"]);
    let done = world.cli.run(&["doctor"]);
    assert_eq!((done.code, done.stderr.as_str()), (1, ""), "{done:?}");
    let line = "1 of default for `handler:send-mail`";
    assert!(
        done.stdout.contains("FAIL  waiting") && done.stdout.contains(line),
        "{done:?}"
    );
    assert!(
        done.stdout
            .contains("  try: start a worker with that handler"),
        "{done:?}"
    );

    let url = world.server.url();
    let stranger = Cli::new(world.site.dir("stranger")).env("DRUMTOWER_TOKEN", "drt_wrong");
    let said = stranger.run(&["doctor", "--url", &url]);
    assert!(
        said.code == 1 && said.stdout.contains("FAIL  token"),
        "{said:?}"
    );

    let deep = world.cli.run(&["doctor", "--offline", "--deep"]);
    assert!(
        deep.code == 0 && deep.stdout.contains("warn  database"),
        "{deep:?}"
    );
    world.server.kill();
    let deep = world.cli.run(&["doctor", "--offline", "--deep"]);
    assert!(
        deep.code == 0 && deep.stdout.contains("ok    database"),
        "{deep:?}"
    );
    let gone = world.cli.run(&["doctor"]);
    assert!(
        gone.code == 1 && gone.stdout.contains("FAIL  server"),
        "{gone:?}"
    );

    let store = world.server.data().join("drumtower.db");
    let mut bytes = std::fs::read(&store).expect("the store");
    for byte in bytes.iter_mut().skip(4096 * 3).take(4096 * 8) {
        *byte ^= 0xa5;
    }
    std::fs::write(&store, bytes).expect("damage");
    let damaged = world.cli.run(&["doctor", "--offline", "--deep"]);
    assert!(
        damaged.code == 1 && damaged.stdout.contains("drumtower restore"),
        "{damaged:?}"
    );
}

#[test]
fn colours_are_a_matter_of_choice() {
    let world = world();
    let plain = world.cli.ok(&["job", "list"]);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let painted = world.cli.ok(&["--color", "always", "job", "list"]);
    assert!(painted.contains("\u{1b}[32mactive\u{1b}[0m"), "{painted:?}");
    let mut terminal = Terminal::start(world.cli.command(&["job", "list", "--color", "never"]));
    assert!(terminal.ends().success());
    terminal.sees("talks");
    assert!(
        !terminal.drawn().contains("\u{1b}["),
        "{}",
        terminal.drawn()
    );
}
