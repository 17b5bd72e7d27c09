//! What people are told when things go wrong at the start, word for word, and the exit code.
//!
//! One test a situation. What differs from run to run is replaced: the directory of the test by SITE, ports by PORT. A
//! change of words here is a change that users see: make it on purpose.

use std::net::TcpListener;

use drumtower_e2e::{Cli, Done, Server, Site};

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
        "error: the server does not accept the token (the token is not known here, or was revoked: ask an admin for another one): give one with the role worker\n",
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
         try: start a server with `drumtower serve`, or name another with --url or DRUMTOWER_URL\n",
    );
    let done = place.cli.run(&["job", "list"]);
    place.expect(
        &done,
        5,
        "error: no server runs from SITE/data\n  \
         try: start one with `drumtower serve --data SITE/data`, or give its address with --url\n",
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

/// A file system of its own, gone with the test.
struct FullDisk(std::path::PathBuf);

impl FullDisk {
    /// `None` when we may not mount.
    fn mount(path: std::path::PathBuf) -> Option<Self> {
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(&path)
            .output();
        let disk = mount
            .is_ok_and(|output| output.status.success())
            .then_some(Self(path))?;
        // More than fits; what fits stays.
        let _ = std::fs::write(disk.0.join("ballast"), vec![0; 1 << 20]);
        Some(disk)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn a_full_disk() {
    let place = Place::new();
    let Some(_disk) = FullDisk::mount(place.site.dir("disk")) else {
        eprintln!(
            "SKIPPED: a full disk needs a small file system, and this user may not mount one"
        );
        return;
    };
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
