//! A private PostgreSQL server on loopback, with a port and a data directory of its own.
//!
//! It is started from the programs that Debian's package `postgresql` installs, as a user without rights when the caller is
//! root, because the server refuses to run as root. A small shell stands between: it holds a pipe from this process, and
//! when the pipe closes, however this process ends, it stops the server by its data directory and removes that.

mod programs;

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

pub use programs::{Programs, find};

/// The role that owns every database of the server.
pub const ROLE: &str = "drumtower";
const PASSWORD: &str = "let me in";

/// What a server is for decides how it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing is synced: the machine does not lose power within a test.
    Test,
    /// As an administrator would have it.
    Bench,
}

/// A server that ends with this value.
pub struct Cluster {
    programs: Programs,
    directory: PathBuf,
    port: u16,
    databases: AtomicU64,
    keeper: Mutex<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Ok(keeper) = self.keeper.get_mut() else {
            return;
        };
        drop(keeper.stdin.take());
        let _ = keeper.wait();
    }
}

impl Cluster {
    /// Starts a server below the system's directory for temporary files.
    pub fn start(purpose: Purpose) -> io::Result<Self> {
        Self::start_below(&std::env::temp_dir(), purpose, &[])
    }

    /// Starts a server in a new directory below `place`, with further lines of its configuration.
    pub fn start_below(place: &Path, purpose: Purpose, settings: &[&str]) -> io::Result<Self> {
        let programs = find()?;
        let directory = make_directory(place, &programs)?;
        let keeper = keep(&programs, &directory)?;
        // A port that is free may be taken before the server gets to it; then another one is tried.
        let mut last = io::Error::other("no port is free");
        let mut cluster = Self {
            programs,
            directory,
            port: 0,
            databases: AtomicU64::new(0),
            keeper: Mutex::new(keeper),
        };
        cluster.init()?;
        for _ in 0..5 {
            cluster.port = free_port()?;
            cluster.configure(purpose, settings)?;
            match cluster.pg_ctl(&["start", "-w"]) {
                Ok(()) => return Ok(cluster),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The server that the tests of this process share.
    pub fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Purpose::Test).expect("a PostgreSQL server starts"))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Makes an empty database and gives its address.
    pub fn database(&self) -> io::Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(self.url(&name))
    }

    /// Removes a database, whoever is connected to it: hundreds of empty ones are gigabytes.
    pub fn remove(&self, url: &str) -> io::Result<()> {
        let name = url.rsplit('/').next().unwrap_or_default();
        let statement = format!("DROP DATABASE {name} WITH (FORCE)");
        self.sql("postgres", &statement).map(drop)
    }

    pub fn url(&self, database: &str) -> String {
        self.url_at(self.port, ROLE, PASSWORD, database)
    }

    /// The address as another role, or through another port.
    pub fn url_at(&self, port: u16, role: &str, password: &str, database: &str) -> String {
        let password = password.replace(' ', "%20");
        format!("postgres://{role}:{password}@127.0.0.1:{port}/{database}")
    }

    /// Runs statements in a database and gives what they print, columns between bars.
    pub fn sql(&self, database: &str, statements: &str) -> io::Result<String> {
        let mut psql = self.programs.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-U", ROLE, "-d", database])
            .args(["-p", &self.port.to_string(), "-c", statements])
            .env("PGPASSWORD", PASSWORD);
        let output = finish(psql)?;
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    }

    /// Stops the server as a crash would, and starts it again.
    pub fn crash_and_restart(&self) -> io::Result<()> {
        self.pg_ctl(&["restart", "-w", "-m", "immediate"])
    }

    pub fn stop(&self) -> io::Result<()> {
        self.pg_ctl(&["stop", "-w", "-m", "immediate"])
    }

    pub fn start_again(&self) -> io::Result<()> {
        self.pg_ctl(&["start", "-w"])
    }

    /// Has the server encrypt, with a certificate and key in PEM.
    pub fn use_tls(&self, certificate: &str, key: &str) -> io::Result<()> {
        let data = self.data();
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            self.write_private(&data.join(name), text)?;
        }
        self.add_settings("ssl = on\n")?;
        self.pg_ctl(&["restart", "-w", "-m", "fast"])
    }

    fn add_settings(&self, lines: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(self.data().join("postgresql.conf"))?;
        file.write_all(lines.as_bytes())
    }

    fn write_private(&self, path: &Path, text: &str) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        self.programs.give(path)
    }

    fn init(&self) -> io::Result<()> {
        let password = self.directory.join("password");
        self.write_private(&password, PASSWORD)?;
        let mut initdb = self.programs.command("initdb");
        initdb
            .args(["-U", ROLE, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"])
            .arg("--no-sync")
            .arg(format!("--pwfile={}", password.display()))
            .arg("-D")
            .arg(self.data());
        finish(initdb)?;
        // The owner comes in as it is, because a test connects often; every other role needs its password.
        let rules = format!(
            "host all {ROLE} 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        );
        self.write_private(&self.data().join("pg_hba.conf"), &rules)
    }

    fn configure(&self, purpose: Purpose, settings: &[&str]) -> io::Result<()> {
        let mut lines = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\nmax_connections = 300\n",
            self.port
        );
        if purpose == Purpose::Test {
            lines.push_str("fsync = off\nfull_page_writes = off\nshared_buffers = 32MB\n");
            lines.push_str("max_wal_size = 128MB\n");
        }
        for line in settings {
            lines.push_str(line);
            lines.push('\n');
        }
        self.add_settings(&lines)
    }

    fn pg_ctl(&self, arguments: &[&str]) -> io::Result<()> {
        let mut pg_ctl = self.programs.command("pg_ctl");
        pg_ctl
            .args(arguments)
            .arg("-s")
            .arg("-D")
            .arg(self.data())
            .arg("-l")
            .arg(self.directory.join("log"));
        finish(pg_ctl).map(drop)
    }
}

fn make_directory(place: &Path, programs: &Programs) -> io::Result<PathBuf> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let directory = place.join(format!("drumtower-pg-{:016x}", u64::from_le_bytes(bytes)));
    fs::create_dir(&directory)?;
    programs.give(&directory)?;
    Ok(directory)
}

/// The shell that outlives this process by as long as it takes to stop the server.
fn keep(programs: &Programs, directory: &Path) -> io::Result<Child> {
    let script = "trap '' INT TERM HUP; cat >/dev/null; \"$0\" stop -s -m immediate -D \"$1/data\" 2>/dev/null; rm -rf \"$1\"";
    let mut shell = programs.unprivileged("sh");
    shell
        .arg("-c")
        .arg(script)
        .arg(programs.path("pg_ctl"))
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Signals to this process's group are not meant for it.
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.spawn()
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

fn finish(mut command: Command) -> io::Result<Output> {
    // A server started by pg_ctl keeps what it inherits, so output is taken from files that it never holds.
    let output = command.stdin(Stdio::null());
    let is_server = output.get_program().to_string_lossy().ends_with("pg_ctl");
    let output = if is_server {
        let status = output
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Output {
            status,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    } else {
        output.output()?
    };
    if output.status.success() {
        return Ok(output);
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!(
        "{program} ended with {}: {said}",
        output.status
    )))
}
