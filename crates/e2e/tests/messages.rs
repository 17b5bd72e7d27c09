//! What people are told when things go wrong at the start, word for word, and the exit code.
//!
//! One test a situation. What differs from run to run is replaced: the directory of the test by SITE, ports by PORT. A
//! change of words here is a change that users see: make it on purpose.

use std::net::TcpListener;

use drumtower_e2e::{Cli, Done, Server, ServerOptions, Site, Worker, eventually};

struct Place {
    site: Site,
    cli: Cli,
}

impl Place {
    fn new() -> Self {
        let site = Site::new();
        let cli = Cli::new(site.path()).env("DRUMTOWER_DATA", site.data().display().to_string());
        Self { site, cli }
    }

    /// Checks the exit code and what stands on standard error.
    #[track_caller]
    fn expect(&self, done: &Done, code: i32, said: &str) {
        assert_eq!(
            (done.code, self.settled(&done.stderr).as_str()),
            (code, said)
        );
    }

    fn settled(&self, text: &str) -> String {
        let text = text.replace(&self.site.path().display().to_string(), "SITE");
        let mut settled = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find("127.0.0.1:") {
            let end = at + "127.0.0.1:".len();
            settled.push_str(&rest[..end]);
            rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_digit());
            settled.push_str("PORT");
        }
        settled + rest
    }
}

#[test]
fn a_bad_token() {
    let place = Place::new();
    let server = Server::start(&place.site);
    let cli = Cli::new(place.site.path());
    let done = cli.run(&[
        "job",
        "list",
        "--url",
        &server.url(),
        "--token",
        "drt_wrong",
    ]);
    place.expect(
        &done,
        4,
        "error: the token is not known here, or was revoked: ask an admin for another one\n  \
         try: ask an administrator for a valid token: `drumtower token create`\n",
    );
    let done = cli.run(&["job", "list", "--url", &server.url()]);
    place.expect(
        &done,
        4,
        "error: this needs a token: send `Authorization: Bearer drt_…`\n  \
         try: give a token with --token or DRUMTOWER_TOKEN, or --data DIR of a server on this machine\n",
    );
    let done = cli.run(&["work", "--url", &server.url(), "--token", "drt_wrong"]);
    place.expect(
        &done,
        4,
        "error: the server does not accept the token (the token is not known here, or was revoked: ask an admin for another one): give one with the role worker\n  \
         try: beside the server `drumtower token create NAME --role worker > worker.token`, then here --token-file worker.token\n",
    );
}

#[test]
fn a_port_in_use() {
    let place = Place::new();
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let done = place.cli.run(&["serve", "--listen", &address]);
    place.expect(
        &done,
        5,
        "error: 127.0.0.1:PORT is in use: stop what listens there, or choose another address with --listen\n",
    );
}

#[test]
fn an_unreachable_server() {
    let place = Place::new();
    let cli = Cli::new(place.site.path());
    // Nobody listens on port 1.
    let done = cli.run(&["job", "list", "--url", "http://127.0.0.1:1"]);
    place.expect(
        &done,
        5,
        "error: no answer from http://127.0.0.1:PORT: io: Connection refused (os error 111)\n  \
         try: start a server with `drumtower dev` or `drumtower serve`, or name another with --url or DRUMTOWER_URL\n",
    );
    // A manifest is not to blame for that.
    place.site.file(
        "job.yaml",
        "kind: Job\nname: a\ntask: {exec: {argv: [\"true\"]}}\n",
    );
    for verb in ["apply", "diff"] {
        let done = cli.run(&[verb, "-f", "job.yaml", "--url", "http://127.0.0.1:1"]);
        assert_eq!(done.code, 5);
        assert!(done.stderr.starts_with("error: no answer from"), "{done:?}");
    }
    let done = place.cli.run(&["job", "list"]);
    place.expect(
        &done,
        5,
        "error: no server runs from SITE/data\n  \
         try: start one with `drumtower serve --data SITE/data`, or give its address with --url\n",
    );
}

#[test]
fn a_name_that_is_not_there() {
    let place = Place::new();
    let _server = Server::start(&place.site);
    let done = place.cli.run(&["job", "show", "helo"]);
    place.expect(
        &done,
        3,
        "error: there is no job `helo` in namespace `default`\n  \
         try: `drumtower job list` shows the jobs with their namespaces; -n names one\n",
    );
    let done = place.cli.run(&["notify", "show"]);
    place.expect(
        &done,
        3,
        "error: setting `notify` is not set here\n  \
         try: `drumtower notify set -f FILE` sets who is told, as docs/notifications.md shows; -n names a namespace\n",
    );
}

#[test]
fn an_address_of_other_machines_without_tls() {
    let place = Place::new();
    let done = place.cli.run(&["serve", "--listen", "0.0.0.0:7070"]);
    place.expect(
        &done,
        2,
        "error: 0.0.0.0:7070 can be reached from other machines, and what they send would not be encrypted: give a certificate with --tls-cert and --tls-key, have one made with --tls-dev, listen on 127.0.0.1, or accept it with --insecure\n",
    );
}

#[test]
fn a_server_of_many_that_does_not_say_where_it_is() {
    let place = Place::new();
    let store = "postgres://drumtower:secret@127.0.0.1:1/drumtower?sslmode=disable";
    let done = place.cli.run(&[
        "serve",
        "--store",
        store,
        "--listen",
        "0.0.0.0:7070",
        "--insecure",
    ]);
    place.expect(
        &done,
        2,
        "error: advertise: it is not given, and `listen` (0.0.0.0:7070) is no address by which others reach this server, so each would take itself for all: servers that share a database find each other by it; give each server the URL by which the others reach it, such as https://drumtower-1.example:7070, with --advertise or the key `advertise`\n",
    );
}

#[test]
fn a_certificate_that_is_not_there() {
    let place = Place::new();
    let done = place.cli.run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        "no.pem",
        "--tls-key",
        "no.key",
    ]);
    place.expect(
        &done,
        2,
        "error: no.pem: No such file or directory (os error 2)\n",
    );
    let done = place
        .cli
        .run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "no.pem"]);
    place.expect(&done, 2, "error: tls.cert needs tls.key: give its key\n");
}

#[test]
fn an_address_without_a_port() {
    let place = Place::new();
    let done = place.cli.run(&["serve", "--listen", "127.0.0.1"]);
    place.expect(
        &done,
        2,
        "error: invalid value '127.0.0.1' for '--listen <ADDRESS>': give an IP address and a port, such as 127.0.0.1:PORT or [::1]:7070\n\n\
         For more information, try '--help'.\n",
    );
}

#[test]
fn a_wrong_configuration() {
    let place = Place::new();
    place.site.dir("data");
    place.site.file(
        "data/drumtower.toml",
        "lisen = \"127.0.0.1:0\"\n[log]\nformat = \"xml\"\n",
    );
    let done = place.cli.run(&["serve"]);
    place.expect(
        &done,
        2,
        "error: SITE/data/drumtower.toml:1:1: unknown key `lisen`: did you mean `listen`?\n\
         error: SITE/data/drumtower.toml:3:10: log.format: unknown value `xml`: there is text, json\n  \
         try: docs/reference/configuration.md says what the file may hold\n",
    );
}

#[test]
fn a_store_that_is_none() {
    let place = Place::new();
    place.site.dir("data");
    place
        .site
        .file("data/drumtower.db", &"not a database ".repeat(1000));
    let done = place.cli.run(&["serve", "--listen", "127.0.0.1:0"]);
    place.expect(
        &done,
        1,
        "error: the store is damaged: SITE/data/drumtower.db is not a Drumtower store (file is not a database): choose another directory with --data\n  \
         try: `drumtower restore BACKUP --data DIR` puts a backup in its place\n",
    );
}

#[test]
fn a_corrupt_store() {
    let place = Place::new();
    Server::start(&place.site).stop();
    let file = place.site.data().join("drumtower.db");
    let mut bytes = std::fs::read(&file).expect("read");
    // The first page names the tables; it stays, and all that follows is noise.
    for (at, byte) in bytes.iter_mut().enumerate().skip(1024) {
        *byte = (at * 31 % 251) as u8;
    }
    std::fs::write(&file, bytes).expect("written");
    let done = place.cli.run(&["serve", "--listen", "127.0.0.1:0"]);
    place.expect(
        &done,
        1,
        "error: the store is damaged: database disk image is malformed\n  \
         try: `drumtower restore BACKUP --data DIR` puts a backup in its place\n",
    );
}

#[test]
fn a_store_of_a_newer_version() {
    let place = Place::new();
    Server::start(&place.site).stop();
    let file = place.site.data().join("drumtower.db");
    let newer = rusqlite::Connection::open(file).expect("opened");
    newer
        .pragma_update(None, "user_version", 99)
        .expect("written");
    drop(newer);
    let done = place.cli.run(&["serve", "--listen", "127.0.0.1:0"]);
    let known = done
        .stderr
        .split("this program knows ")
        .nth(1)
        .unwrap_or_default();
    let known: String = known.chars().take_while(char::is_ascii_digit).collect();
    let said = format!(
        "error: the store has schema version 99, this program knows {known}: start a newer drumtower, or go back with `drumtower restore DIR/backups/before-upgrade-…`\n"
    );
    place.expect(&done, 1, &said);
}

#[test]
fn a_wrong_manifest() {
    let place = Place::new();
    place.site.file(
        "job.yaml",
        "kind: Job\nname: nightly\nschedul:\n  - cron: \"0 3 * * *\"\ntask:\n  exec:\n    argv: [\"true\"]\n",
    );
    let done = place.cli.run(&["apply", "-f", "job.yaml"]);
    place.expect(
        &done,
        2,
        "error: job.yaml:3:1: unknown key `schedul`: did you mean `schedule`?\n  \
         try: `drumtower schema job`, `schema calendar` and `schema queue` say what a manifest may hold\n",
    );
    place
        .site
        .file("tab.yaml", "kind: Job\nname: nightly\ntask:\n\texec:\n");
    let done = place.cli.run(&["apply", "-f", "tab.yaml"]);
    place.expect(
        &done,
        2,
        "error: tab.yaml:4:1: a tab: indent with spaces\n  \
         try: `drumtower schema job`, `schema calendar` and `schema queue` say what a manifest may hold\n",
    );
}

/// Nobody registered the handler that a job names: wherever people look, they are told so.
#[test]
fn no_worker_for_a_handler() {
    const WHY: &str = "no worker offers the handler `count-words`: start the program that registers it, as docs/workers.md shows, or correct the name in the job";
    let place = Place::new();
    let server = Server::start(&place.site);
    let _worker = Worker::start(&place.site, &server, "one");
    place
        .cli
        .ok(&["job", "create", "count", "--handler", "count-words"]);
    let run = place.cli.ok(&["job", "trigger", "count"]);
    let run = run.trim();
    let shown = place.cli.ok(&["run", "show", run]);
    assert!(shown.contains(WHY), "{shown}");
    let done = place.cli.run(&["run", "wait", run, "--timeout", "1ms"]);
    place.expect(
        &done,
        1,
        &format!("error: {run} is still PENDING after the time given: {WHY}\n"),
    );
    let done = place.cli.run(&["job", "explain", "count"]);
    place.expect(&done, 0, &format!("warning: {WHY}\n"));
}

/// A file system of its own, gone with the test.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// `None` when we may not mount.
    fn mount(path: std::path::PathBuf, size: &str) -> Option<Self> {
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&path)
            .output();
        let mounted = mount.is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!(
                "SKIPPED: a full disk needs a small file system, and this user may not mount one"
            );
        }
        mounted.then_some(Self(path))
    }

    /// More than fits; what fits stays.
    fn fill(&self) {
        for ballast in ["ballast", "more"] {
            let _ = std::fs::write(self.0.join(ballast), vec![0; 16 << 20]);
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn a_full_disk_at_start() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(place.site.dir("disk"), "64k") else {
        return;
    };
    disk.fill();
    let data = place.site.path().join("disk/data").display().to_string();
    let done = place
        .cli
        .run(&["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    place.expect(
        &done,
        1,
        "error: there is no room on the disk of the data directory: database or disk is full\n  \
         try: free some space, then start again; or choose another directory with --data\n",
    );
}

#[test]
fn a_full_disk_at_a_later_start() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(place.site.dir("disk"), "8m") else {
        return;
    };
    let data = place.site.path().join("disk/data");
    let log = place.site.path().join("server.log");
    let mut server = Server::launch(&data, &log, &ServerOptions::default());
    server.await_ready();
    server.stop();
    disk.fill();
    let data = data.display().to_string();
    let done = place.cli.env("DRUMTOWER_LOG", "error").run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        &data,
    ]);
    let last = done.stderr.lines().rev().take(2).collect::<Vec<_>>();
    assert_eq!(
        (done.code, last.as_slice()),
        (
            1,
            [
                "  try: free some space, then start again; or choose another directory with --data",
                "error: there is no room on the disk of the data directory: database or disk is full",
            ]
            .as_slice()
        )
    );
}

#[test]
fn a_full_disk_while_running() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(place.site.dir("disk"), "8m") else {
        return;
    };
    let data = place.site.path().join("disk/data");
    let log = place.site.path().join("server.log");
    let mut server = Server::launch(&data, &log, &ServerOptions::default());
    server.await_ready();
    let cli = Cli::new(place.site.path()).env("DRUMTOWER_DATA", data.display().to_string());
    cli.ok(&["job", "create", "order", "--handler", "nobody"]);
    disk.fill();
    // What was allocated before may take a few more.
    let params = format!("{{\"filler\": \"{}\"}}", "x".repeat(20_000));
    eventually("a trigger is refused", || {
        let done = cli.run(&["job", "trigger", "order", "--params", &params]);
        (done.code != 0).then_some(())
    });
    eventually("the server says that it is impaired", || {
        (!server.api().is_ready()).then_some(())
    });
    let done = cli.run(&["job", "trigger", "order"]);
    place.expect(
        &done,
        5,
        "error: the server is not ready: the store's disk is full: database or disk is full; free some space, writing goes on by itself\n",
    );
}
