//! A worker on another machine: a network of its own, joined over TLS with a token that is bound to a namespace.
//!
//! Two network namespaces with a pair of virtual interfaces between them stand for two machines; nothing of this
//! machine's own network is touched. That takes the rights of root on Linux.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use drumtower_e2e::{Authority, Clock, Done, Process, Site, drumtower, eventually};

const SERVER: &str = "10.213.77.1";
const WORKER: &str = "10.213.77.2";
const URL: &str = "https://10.213.77.1:7070";

/// Two namespaces, gone with the test.
struct Network {
    names: [String; 2],
}

impl Network {
    #[track_caller]
    fn new() -> Self {
        let id = std::process::id();
        let network = Self {
            names: [format!("dt-{id}-server"), format!("dt-{id}-worker")],
        };
        let [server, worker] = &network.names;
        ip(&["netns", "add", server]);
        ip(&["netns", "add", worker]);
        ip(&[
            "-n", server, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
            worker,
        ]);
        for (name, address) in [(server, SERVER), (worker, WORKER)] {
            ip(&[
                "-n",
                name,
                "address",
                "add",
                &format!("{address}/30"),
                "dev",
                "eth0",
            ]);
            ip(&["-n", name, "link", "set", "eth0", "up"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        network
    }

    /// The program on one of the machines, in a clean environment.
    fn on(&self, machine: usize, home: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.names[machine]])
            .arg(drumtower())
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .current_dir(home);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).output();
    let done = done.expect("`ip` of iproute2 is installed");
    assert!(
        done.status.success(),
        "ip {}: {} (this test needs root: it makes network namespaces)",
        arguments.join(" "),
        String::from_utf8_lossy(&done.stderr)
    );
}

struct World {
    network: Network,
    site: Site,
    server: Process,
}

impl World {
    #[track_caller]
    fn start() -> Self {
        let (network, site) = (Network::new(), Site::new());
        let listen = format!("{SERVER}:7070");
        let mut command = network.on(0, site.path(), &["serve", "--tls-dev", "--listen", &listen]);
        command.env("DRUMTOWER_DATA", site.data());
        let server = Process::spawn(command, &site.path().join("server.log"));
        let mut world = Self {
            network,
            site,
            server,
        };
        eventually("the server answers", || {
            assert!(world.server.ended().is_none(), "{}", world.server.log());
            (world.admin(&["worker", "list"]).code == 0).then_some(())
        });
        world
    }

    /// A command beside the server.
    fn admin(&self, arguments: &[&str]) -> Done {
        let mut command = self.network.on(0, self.site.path(), arguments);
        command.env("DRUMTOWER_DATA", self.site.data());
        Done::of(&mut command, arguments)
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let done = self.admin(arguments);
        assert_eq!(done.code, 0, "{done:?}");
        done.stdout
    }

    /// What the worker's machine has: a home of its own with a copy of the authority's certificate and the token.
    fn worker_command(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut all = vec!["work", "--url", URL, "--name", "far"];
        all.extend(arguments);
        self.network.on(1, home, &all)
    }
}

#[test]
fn a_worker_joins_from_another_machine_and_gets_runs_of_its_namespace_only() {
    let world = World::start();
    let home = world.site.dir("far");
    std::fs::copy(world.site.data().join("tls/ca.pem"), home.join("ca.pem")).expect("copied");
    let token = world.ok(&[
        "token",
        "create",
        "far",
        "--role",
        "worker",
        "--namespace",
        "billing",
    ]);
    std::fs::write(home.join("worker.token"), &token).expect("written");

    for (namespace, name) in [("billing", "mine"), ("default", "theirs")] {
        let text = format!(
            "kind: Job\nnamespace: {namespace}\nname: {name}\ntask:\n  exec:\n    argv: [\"echo\", \"from afar\"]\n"
        );
        world.site.file(&format!("{name}.yaml"), &text);
        world.ok(&["job", "apply", "-f", &format!("{name}.yaml")]);
    }
    let theirs = world.ok(&["job", "trigger", "theirs"]);

    refusals(&world, &home);

    let good = [
        "--ca",
        "ca.pem",
        "--token-file",
        "worker.token",
        "--scratch",
        "scratch",
    ];
    let mut worker = Process::spawn(
        world.worker_command(&home, &good),
        &world.site.path().join("far.log"),
    );
    let done = world.admin(&["job", "trigger", "mine", "-n", "billing", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}\n{}", worker.log());
    let shown = world.ok(&["run", "show", theirs.trim(), "-o", "json"]);
    assert!(shown.contains("\"PENDING\""), "{shown}");

    // The token of a worker opens the worker's door and no other.
    let asked = [
        "job",
        "list",
        "--url",
        URL,
        "--ca",
        "ca.pem",
        "--token",
        token.trim(),
    ];
    let done = Done::of(&mut world.network.on(1, &home, &asked), &asked);
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stderr.contains("role worker"), "{done:?}");
    assert!(worker.stop().success(), "{}", worker.log());
    for log in [world.server.log(), worker.log()] {
        assert!(!log.contains(token.trim()), "a token stands in the log");
    }
}

/// What a worker is told that is not let in.
fn refusals(world: &World, home: &Path) {
    let stranger = Authority::new(home, "stranger");
    let said = |arguments: &[&str], clock: Option<&Clock>, words: &str| {
        let mut command = world.worker_command(home, arguments);
        if let Some(clock) = clock {
            clock.apply(&mut command);
        }
        let name = words.replace([' ', '`'], "-");
        let worker = Process::spawn(command, &world.site.path().join(format!("{name}.log")));
        eventually(words, || worker.log().contains(words).then_some(()));
    };
    let stranger = stranger.file.display().to_string();
    let token = ["--token-file", "worker.token"];
    said(
        &[&["--ca", &stranger], &token[..]].concat(),
        None,
        "an authority that is not trusted here",
    );
    said(&["--ca", "ca.pem"], None, "this needs a token");
    said(
        &["--ca", "ca.pem", "--token", "drt_wrong"],
        None,
        "the token is not known here",
    );
    match Clock::at(&world.site, "2060-01-01T00:00:00Z") {
        Some(clock) => said(
            &[&["--ca", "ca.pem"], &token[..]].concat(),
            Some(&clock),
            "has expired",
        ),
        None => eprintln!("SKIPPED: an expired certificate needs libfaketime"),
    }
}
