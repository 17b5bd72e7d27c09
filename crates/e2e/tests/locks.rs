//! Locks around commands: one at a time, and stopped when the lock is lost.

#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use drumtower_e2e::{Cli, Server, Site, eventually};

struct World {
    site: Site,
    server: Server,
    cli: Cli,
}

fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    World { site, server, cli }
}

#[test]
fn commands_run_one_after_the_other_and_say_how_they_ended() {
    let world = world();
    let log = world.site.dir("home").join("log");
    // Whoever comes while another is inside finds its mark.
    let inside = "test ! -e inside && touch inside && echo $DRUMTOWER_LOCK_FENCE >> log && sleep 0.1 && rm inside";
    let arguments = [
        "lock", "run", "import", "--wait", "2m", "--", "sh", "-c", inside,
    ];
    let many: Vec<_> = (0..5)
        .map(|_| world.cli.command(&arguments).spawn().expect("it starts"))
        .collect();
    for mut one in many {
        assert!(one.wait().expect("it ends").success());
    }
    let fences: Vec<u64> = std::fs::read_to_string(log)
        .expect("they wrote")
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert!(fences.len() == 5 && fences.is_sorted(), "{fences:?}");
    let done = world
        .cli
        .run(&["lock", "run", "import", "--", "sh", "-c", "exit 7"]);
    assert_eq!(done.code, 7, "{done:?}");
    assert_eq!(world.cli.ok(&["lock", "list", "-o", "json"]).trim(), "[]");
    world
        .cli
        .fails(2, &["lock", "run", "import", "--", "/no/such/program"]);
    assert_eq!(world.cli.ok(&["lock", "list", "-o", "json"]).trim(), "[]");
}

#[test]
fn a_lock_that_another_holds_is_refused_with_its_owner() {
    let world = world();
    let fence = world
        .cli
        .ok(&["lock", "acquire", "import", "--owner", "me"]);
    let refused = world.cli.fails(4, &["lock", "run", "import", "--", "true"]);
    assert!(refused.contains("held by `me`"), "{refused}");
    world.cli.ok(&[
        "lock",
        "renew",
        "import",
        "--fence",
        fence.trim(),
        "--ttl",
        "1h",
    ]);
    assert_eq!(
        world.cli.json(&["lock", "show", "import"])["ttl_ms"],
        3_600_000
    );
    world.cli.ok(&["lock", "release", "import", "--force"]);
    world
        .cli
        .fails(4, &["lock", "release", "import", "--fence", fence.trim()]);
    world.cli.fails(3, &["lock", "show", "import"]);
    let told = world.cli.ok(&["audit", "log", "--kind", "lock"]);
    assert!(told.contains("deleted\tlock default/import"), "{told}");
}

#[test]
fn a_command_does_not_outlive_its_lock() {
    let mut world = world();
    let (home, pid) = (world.site.dir("home"), world.site.dir("home").join("pid"));
    let stubborn = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done";
    let start = |cli: &Cli| {
        let mut command = cli.command(&[
            "lock", "run", "import", "--ttl", "2s", "--wait", "1m", "--", "sh", "-c", stubborn,
        ]);
        command.stderr(Stdio::null()).spawn().expect("it starts")
    };
    let running = || {
        let pid = std::fs::read_to_string(&pid).unwrap_or_default();
        !pid.trim().is_empty() && std::path::Path::new("/proc").join(pid.trim()).exists()
    };
    let mut first = start(&world.cli);
    eventually("it runs", || running().then_some(()));
    world.server.kill();
    let ended = first.wait().expect("it ends");
    assert_eq!(ended.code(), Some(1), "nobody renews its lock");
    assert!(!running(), "{}", home.display());
    std::fs::remove_file(&pid).expect("the mark of the first");

    let server = Server::start(&world.site);
    let mut second = start(&world.cli);
    eventually("it runs", || running().then_some(()));
    second.kill().expect("it is killed");
    second.wait().expect("it is dead");
    eventually("its command is gone with it", || (!running()).then_some(()));
    drop(server);
}

/// As under `nohup`: what was ignored before stays ignored, while it waits and while the command runs.
#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let world = world();
    let fence = world
        .cli
        .ok(&["lock", "acquire", "import", "--owner", "me"]);
    let run = world.cli.command(&[
        "lock",
        "run",
        "import",
        "--wait",
        "4m",
        "--",
        "sh",
        "-c",
        "kill -HUP $$; exit 7",
    ]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    shell
        .arg(run.get_program())
        .args(run.get_args())
        .env_clear();
    shell.current_dir(world.site.dir("home"));
    for (key, value) in run.get_envs() {
        match value {
            Some(value) => shell.env(key, value),
            None => shell.env_remove(key),
        };
    }
    let mut waiting = shell.spawn().expect("it starts");
    one_waits(&world);
    let id = libc::pid_t::try_from(waiting.id()).expect("a process");
    // SAFETY: no memory is passed; the process is our child and has not been waited for.
    unsafe { libc::kill(id, libc::SIGHUP) };
    world
        .cli
        .ok(&["lock", "release", "import", "--fence", fence.trim()]);
    assert_eq!(waiting.wait().expect("it ends").code(), Some(7));
}

/// One caller waits for the lock.
fn one_waits(world: &World) {
    eventually("it waits", || {
        let shown = world.cli.ok(&["lock", "show", "import", "-o", "json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        (shown["waiting"] == 1).then_some(())
    });
}

#[test]
fn a_signal_ends_the_wait_and_the_place_in_line() {
    let world = world();
    let fence = world
        .cli
        .ok(&["lock", "acquire", "import", "--owner", "me"]);
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let waits = [
            "lock", "run", "import", "--ttl", "24h", "--wait", "4m", "--", "true",
        ];
        let mut command = world.cli.command(&waits);
        // SAFETY: between fork and exec it calls nothing but signal(2). Whoever runs the tests may have it ignored.
        unsafe {
            command.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            })
        };
        let mut waiting = command.spawn().expect("it starts");
        one_waits(&world);
        let id = libc::pid_t::try_from(waiting.id()).expect("a process");
        // SAFETY: no memory is passed; the process is our child and has not been waited for.
        unsafe { libc::kill(id, signal) };
        let ended = waiting.wait().expect("it ends");
        assert_eq!(ended.code(), Some(code));
    }
    world
        .cli
        .ok(&["lock", "release", "import", "--fence", fence.trim()]);
    // Nobody holds it for a day.
    let arguments = ["lock", "run", "import", "--wait", "30s", "--", "true"];
    world.cli.ok(&arguments);
}
