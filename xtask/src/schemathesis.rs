//! The HTTP API, tried with data made from its own description.
//!
//! Schemathesis is installed into a virtual environment under the target directory, at the versions of its requirements
//! file, once for each change of that file. The server is the debug build, alone in a directory of its own with a port of
//! its own, and a worker that finds one harmless program: random jobs name random programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cargo::{Profile, binary_path, build_test_binary, run as run_command};
use crate::tree::root;

/// The course of random data that CI follows.
const SEED: u64 = 318;
/// How often chains of requests are begun anew. A chain whose repetition finds the server as the first left it cannot be
/// followed further, so each course ends after a few dozen of them.
const CHAINS: u64 = 12;
/// Only a server that hangs takes so long to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same as a step of another command: on the debug build that is there, on the course of CI.
pub fn step() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["schemathesis", "--built"]);
    Ok(command)
}

pub fn run(flags: &[String]) -> Result<()> {
    let given = flags.iter().skip_while(|flag| *flag != "--seed").nth(1);
    let seed: u64 = match given.map(|given| (given, given.parse())) {
        None => SEED,
        Some((_, Ok(seed))) => seed,
        Some((given, Err(_))) => bail!("--seed {given}: give a whole number"),
    };
    if !flags.iter().any(|flag| flag == "--built") {
        run_command(build_test_binary())?;
    }
    let home = target().join("schemathesis");
    let program = install(&home)?;
    let server = Server::start(&home.join(format!("run-{}", std::process::id())))?;
    server.seed()?;
    server.try_phases(&program, "examples,coverage,fuzzing", seed, &home)?;
    for chain in 0..CHAINS {
        server.try_phases(&program, "stateful", seed.wrapping_add(chain), &home)?;
    }
    Ok(())
}

fn target() -> PathBuf {
    let debug = binary_path(Profile::Debug);
    let target = debug.parent().and_then(Path::parent);
    target.map_or_else(|| root().join("target"), Path::to_path_buf)
}

fn ours(name: &str) -> PathBuf {
    root().join("xtask/schemathesis").join(name)
}

/// Installs what the requirements ask for, unless it is there. A copy of them says what is.
fn install(home: &Path) -> Result<PathBuf> {
    let (venv, marker) = (home.join("venv"), home.join("installed.txt"));
    let wanted = fs::read_to_string(ours("requirements.txt"))?;
    let program = venv.join("bin/st");
    if program.is_file() && fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(program);
    }
    fs::create_dir_all(home)?;
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&venv);
    run_command(make).context("python3 with its module venv is needed")?;
    let mut fetch = Command::new(venv.join("bin/pip"));
    fetch
        .args(["install", "--quiet", "--requirement"])
        .arg(ours("requirements.txt"));
    run_command(fetch)?;
    fs::write(&marker, wanted)?;
    Ok(program)
}

/// Ends with this value, and its directory with it.
struct Server {
    process: Child,
    directory: PathBuf,
    url: String,
    token: String,
}

impl Server {
    fn start(directory: &Path) -> Result<Self> {
        let programs = directory.join("programs");
        fs::create_dir_all(&programs)?;
        fs::copy("/bin/echo", programs.join("echo")).context("/bin/echo cannot be copied")?;
        let log = fs::File::create(directory.join("server.log"))?;
        let data = directory.join("data");
        let process = Command::new(binary_path(Profile::Debug))
            .args(["dev", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .current_dir(directory)
            .env_clear()
            .env("PATH", &programs)
            .env("HOME", directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("the debug build of drumtower cannot be started")?;
        let mut server = Self {
            process,
            directory: directory.to_owned(),
            url: String::new(),
            token: String::new(),
        };
        server.url = server.word(&data.join("server.url"))?;
        server.token = server.word(&data.join("local.token"))?;
        Ok(server)
    }

    /// What the server writes there when it is up.
    fn word(&mut self, file: &Path) -> Result<String> {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(file).unwrap_or_default();
            if text.ends_with('\n') {
                return Ok(text.trim().to_owned());
            }
            if let Some(status) = self.process.try_wait()? {
                let log = fs::read_to_string(self.directory.join("server.log"))?;
                bail!("the server ended with {status}:\n{log}");
            }
            if began.elapsed() > PATIENCE {
                bail!("the server did not write {}", file.display());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Applies what random requests can refer to.
    fn seed(&self) -> Result<()> {
        let mut apply = Command::new(binary_path(Profile::Debug));
        apply
            .args(["apply", "--file"])
            .arg(ours("seed.yaml"))
            .env("DRUMTOWER_URL", &self.url)
            .env("DRUMTOWER_TOKEN", &self.token);
        run_command(apply)
    }

    /// Runs some phases of schemathesis against it.
    fn try_phases(&self, program: &Path, phases: &str, seed: u64, home: &Path) -> Result<()> {
        let mut command = Command::new(program);
        command
            .arg("--config-file")
            .arg(ours("schemathesis.toml"))
            .args(["run", "--no-color", "--phases", phases])
            .args(["--seed", &seed.to_string(), "--url", &self.url])
            .arg("--header")
            .arg(format!("Authorization: Bearer {}", self.token))
            .arg(format!("{}/api/openapi.json", self.url))
            .env("SCHEMATHESIS_HOOKS", "hooks")
            .env("PYTHONPATH", ours(""))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&self.directory);
        // Not by `run`, whose message would show the token.
        let status = command.status().context("schemathesis cannot be started")?;
        if !status.success() {
            let log = self.keep_log(home)?;
            bail!(
                "schemathesis ended with {status}: see above; `cargo xtask schemathesis --seed {seed}` repeats it, {} is \
                 the server's log",
                log.display()
            );
        }
        Ok(())
    }

    fn keep_log(&self, home: &Path) -> Result<PathBuf> {
        let kept = home.join("server.log");
        fs::copy(self.directory.join("server.log"), &kept)?;
        Ok(kept)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
