//! Workers: `drumtower work`, and programs built with the SDK.

use std::path::PathBuf;
use std::process::Command;

use crate::process::Process;
use crate::{Server, Site, drumtower};

#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// Another program than `drumtower work`. It reads DRUMTOWER_URL and DRUMTOWER_TOKEN.
    pub program: Option<PathBuf>,
    pub arguments: Vec<String>,
    pub env: Vec<(String, String)>,
}

pub struct Worker {
    process: Process,
    pub name: String,
    command: Box<dyn Fn() -> Command>,
    log: PathBuf,
}

impl Worker {
    /// Starts an agent with a token of its own and waits until the server knows it.
    #[track_caller]
    pub fn start(site: &Site, server: &Server, name: &str) -> Self {
        Self::start_with(site, server, name, WorkerOptions::default())
    }

    #[track_caller]
    pub fn start_with(site: &Site, server: &Server, name: &str, options: WorkerOptions) -> Self {
        Self::start_by(site, server, &server.url(), name, options)
    }

    /// As [`Worker::start_with`], over another way to the server.
    #[track_caller]
    pub fn start_by(
        site: &Site,
        server: &Server,
        url: &str,
        name: &str,
        options: WorkerOptions,
    ) -> Self {
        let token = server.token(&format!("{name}-token"), "worker");
        let worker = Self::spawn(site, url, token, name, options);
        server.api().worker(name);
        worker
    }

    /// Starts it without waiting for anything.
    pub fn spawn(
        site: &Site,
        url: &str,
        token: String,
        name: &str,
        options: WorkerOptions,
    ) -> Self {
        let (url, worker) = (url.to_owned(), name.to_owned());
        let scratch = site.path().join(format!("{name}.scratch"));
        let command = move || {
            let mut command = match &options.program {
                Some(program) => Command::new(program),
                None => {
                    let mut command = Command::new(drumtower());
                    command
                        .args(["work", "--name", &worker])
                        .arg("--scratch")
                        .arg(&scratch);
                    command
                }
            };
            command
                .args(&options.arguments)
                .env("DRUMTOWER_URL", &url)
                .env("DRUMTOWER_TOKEN", &token);
            command.envs(options.env.iter().map(|(name, value)| (name, value)));
            command
        };
        let log = site.path().join(format!("{name}.log"));
        Self {
            process: Process::spawn(command(), &log),
            name: name.to_owned(),
            command: Box::new(command),
            log,
        }
    }

    /// Starts it again after it ended.
    pub fn respawn(&mut self) {
        assert!(
            self.process.ended().is_some(),
            "worker {} still runs",
            self.name
        );
        self.process = Process::spawn((self.command)(), &self.log);
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }
}
