//! TLS on the one port: whom commands and workers believe, and what they are told when they do not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use drumtower_e2e::{Authority, Cli, Issued, Process, Site, drumtower, eventually, free_port};

const FAR: i32 = 2090;
const PAST: i32 = 2002;

/// A server over TLS, asked through the command line.
struct Secret {
    process: Process,
    site: Site,
    cli: Cli,
    port: u16,
}

impl Secret {
    #[track_caller]
    fn start(site: Site, arguments: &[&str]) -> Self {
        let port = free_port();
        let mut command = std::process::Command::new(drumtower());
        command
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(site.data())
            .args(arguments);
        let process = Process::spawn(command, &site.path().join("server.log"));
        let cli = Cli::new(site.path()).env("DRUMTOWER_DATA", site.data().display().to_string());
        let mut server = Self {
            process,
            site,
            cli,
            port,
        };
        eventually("the server answers over TLS", || {
            if let Some(status) = server.process.ended() {
                panic!("ended with {status}:\n{}", server.process.log());
            }
            (server.cli.run(&["worker", "list"]).code == 0).then_some(())
        });
        server
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}", self.port)
    }

    /// What a command elsewhere is told: it has neither the data directory nor its token.
    fn elsewhere(&self, url: &str, ca: Option<&Path>) -> (i32, String) {
        let cli = Cli::new(self.site.path());
        let mut arguments = vec!["job", "list", "--url", url, "--token", "drt_none"];
        let ca = ca.map(|ca| ca.display().to_string());
        arguments.extend(ca.iter().flat_map(|ca| ["--ca", ca.as_str()]));
        let done = cli.run(&arguments);
        (done.code, done.stderr)
    }

    fn token(&self, name: &str) -> String {
        let arguments = ["token", "create", name, "--role", "worker"];
        self.cli.ok(&arguments).trim().to_owned()
    }

    fn worker(&self, name: &str, arguments: &[&str]) -> Process {
        let mut command = Cli::new(self.site.path()).command(&["work", "--name", name]);
        command
            .arg("--scratch")
            .arg(self.site.path().join(format!("{name}.scratch")))
            .args(arguments)
            .env("DRUMTOWER_URL", self.url("127.0.0.1"))
            .env("DRUMTOWER_TOKEN", self.token(name));
        Process::spawn(command, &self.site.path().join(format!("{name}.log")))
    }

    #[track_caller]
    fn joined(&self, name: &str, process: &Process) {
        eventually("the worker has joined", || {
            let workers = self.cli.json(&["worker", "list"]);
            let workers = workers.as_array().expect("a list");
            let found = workers.iter().any(|worker| worker["name"] == name);
            assert!(!process.log().contains("panicked"), "{}", process.log());
            found.then_some(())
        });
    }
}

fn own(issued: &Issued) -> [String; 4] {
    [
        "--tls-cert".to_owned(),
        issued.cert.display().to_string(),
        "--tls-key".to_owned(),
        issued.key.display().to_string(),
    ]
}

#[test]
fn a_certificate_made_at_the_start_serves_commands_and_workers() {
    let server = Secret::start(
        Site::new(),
        &["--tls-dev", "--tls-name", "scheduler.example"],
    );
    let ca = server.site.data().join("tls/ca.pem");
    let log = server.process.log();
    assert!(
        log.contains("SHA-256") && log.contains(&ca.display().to_string()),
        "{log}"
    );
    // A wrong token is an answer of the server, so TLS was fine.
    for host in ["127.0.0.1", "localhost"] {
        let (code, said) = server.elsewhere(&server.url(host), Some(&ca));
        assert_eq!(code, 4, "{said}");
    }
    let (code, said) = server.elsewhere(&server.url("127.0.0.1"), None);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("--ca"), "{said}");
    let worker = server.worker("w1", &["--ca", &ca.display().to_string()]);
    server.joined("w1", &worker);
    server.site.file(
        "job.yaml",
        "kind: Job\nname: greet\ntask:\n  exec:\n    argv: [\"echo\", \"over TLS\"]\n",
    );
    server.cli.ok(&["job", "apply", "-f", "job.yaml"]);
    let done = server.cli.run(&["job", "trigger", "greet", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn certificates_that_cannot_be_believed_are_told_apart_and_renewed_ones_count() {
    let site = Site::new();
    let authority = Authority::new(site.path(), "right");
    let stranger = Authority::new(site.path(), "wrong");
    let issue = |names: &[&str], until| authority.issue(site.path(), "server", names, until);
    let issued = issue(&["127.0.0.1"], FAR);
    let arguments = own(&issued);
    let directory = site.path().to_owned();
    let mut server = Secret::start(site, &arguments.each_ref().map(String::as_str));
    let url = server.url("127.0.0.1");
    let (code, said) = server.elsewhere(&url, Some(&authority.file));
    assert_eq!(code, 4, "{said}");
    let (code, said) = server.elsewhere(&url, Some(&stranger.file));
    assert_eq!(code, 5);
    assert!(
        said.contains("an authority that is not trusted here"),
        "{said}"
    );

    let mut renew = |names: &[&str], until, words: &str| {
        authority.issue(&directory, "server", names, until);
        server.process.signal(libc::SIGHUP);
        eventually(words, || {
            let (_, said) = server.elsewhere(&url, Some(&authority.file));
            said.contains(words).then_some(())
        });
        // A command on the server's machine knows the certificate itself.
        eventually("the local command goes on", || {
            (server.cli.run(&["worker", "list"]).code == 0).then_some(())
        });
    };
    renew(&["127.0.0.1"], PAST, "has expired");
    renew(
        &["scheduler.example"],
        FAR,
        "is not for `127.0.0.1` but for scheduler.example",
    );
    renew(&["127.0.0.1"], FAR, "the token is not known here");
    assert!(server.process.log().contains("has expired: renew it"));
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_and_the_former_one_stays() {
    let site = Site::new();
    let authority = Authority::new(site.path(), "right");
    let issued = authority.issue(site.path(), "server", &["127.0.0.1"], FAR);
    let arguments = own(&issued);
    let mut server = Secret::start(site, &arguments.each_ref().map(String::as_str));
    std::fs::write(&issued.cert, "no certificate").expect("written");
    server.process.signal(libc::SIGHUP);
    eventually("the fault is logged", || {
        server
            .process
            .log()
            .contains("the former one stays in force")
            .then_some(())
    });
    let (code, said) = server.elsewhere(&server.url("127.0.0.1"), Some(&authority.file));
    assert_eq!(code, 4, "{said}");
}

#[test]
fn workers_need_a_certificate_where_the_server_asks_for_one() {
    let site = Site::new();
    let workers = Authority::new(site.path(), "workers");
    let mine = workers.issue(site.path(), "mine", &["w1"], FAR);
    let old = workers.issue(site.path(), "old", &["w1"], PAST);
    let client_ca = workers.file.display().to_string();
    let server = Secret::start(site, &["--tls-dev", "--tls-client-ca", &client_ca]);
    let ca = server.site.data().join("tls/ca.pem").display().to_string();

    let mut without = server.worker("without", &["--ca", &ca]);
    assert_eq!(without.wait().code(), Some(4), "{}", without.log());
    assert!(
        without.log().contains("--cert and --key"),
        "{}",
        without.log()
    );

    let shown = |issued: &Issued| {
        [
            "--ca".to_owned(),
            ca.clone(),
            "--cert".to_owned(),
            issued.cert.display().to_string(),
            "--key".to_owned(),
            issued.key.display().to_string(),
        ]
    };
    let expired = server.worker("expired", &shown(&old).each_ref().map(String::as_str));
    eventually("the expired certificate is refused", || {
        expired
            .log()
            .contains("the server does not accept our certificate")
            .then_some(())
    });
    let with = server.worker("with", &shown(&mine).each_ref().map(String::as_str));
    server.joined("with", &with);
}

#[test]
fn plain_http_on_a_port_with_tls_is_told_so() {
    let server = Secret::start(Site::new(), &["--tls-dev"]);
    let mut socket = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    socket
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("this port speaks TLS"), "{answer}");
    let (code, said) = server.elsewhere(&format!("http://127.0.0.1:{}", server.port), None);
    assert_eq!(code, 5);
    assert!(said.contains("use https://"), "{said}");
    let worker = server.worker(
        "plain",
        &["--url", &format!("http://127.0.0.1:{}", server.port)],
    );
    eventually("the worker is told", || {
        worker.log().contains("use https:// instead").then_some(())
    });
}
