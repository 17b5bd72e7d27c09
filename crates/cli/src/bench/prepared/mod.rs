//! A data directory with many jobs in it, made before a server is started on it.
//!
//! Layout: `DIR/data` is the server's, `DIR/prepared.json` says what is in it. That file is written last, so a directory
//! that has it is whole; one whose making failed is removed. The same plan finds the same directory again.

mod past;
mod plan;
mod put;

use std::path::{Path, PathBuf};
use std::time::Instant;

use drumtower_core::model::WallMs;
use drumtower_sdk::tls::Trust;
use drumtower_server::driver::wall_now;
use serde::{Deserialize, Serialize};

use plan::IDLE_FOR_MS;

use super::part;
use crate::connect::Target;
use crate::failure::{Failure, Result};

pub use past::Past;
pub use plan::{Plan, instant, job_name, manifest};
pub use put::put_all;

const FILE: &str = "prepared.json";

/// What was put in, and the key of a worker to it.
#[derive(Debug, Serialize, Deserialize)]
struct Contents {
    plan: Plan,
    at: WallMs,
    /// Opens a store of empty jobs on this machine's loopback, and nothing else.
    worker_token: String,
}

#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    /// The server's data directory.
    pub data: PathBuf,
    worker_token: String,
    /// How long it took; `None` when it was there already.
    pub took_s: Option<f64>,
}

impl Prepared {
    /// Finds the directory of this plan below `inside`, or makes it.
    pub fn find_or_make(inside: &Path, plan: Plan) -> Result<Self> {
        let dir = inside.join(format!("jobs-{}-{}", plan.jobs, plan.active));
        let data = dir.join("data");
        if let Some(contents) = read(&dir)? {
            if contents.plan != plan {
                let message = format!("{} holds other jobs: {:?}", dir.display(), contents.plan);
                return Err(Failure::usage(message).remedy("name another directory with --data"));
            }
            warn_if_old(&contents);
            return Ok(Self {
                plan,
                data,
                worker_token: contents.worker_token,
                took_s: None,
            });
        }
        if dir.exists() {
            let message = format!("{} is there but was not finished", dir.display());
            return Err(Failure::usage(message).remedy("remove it, and it is made anew"));
        }
        part(&format!("preparing {} jobs", plan.jobs));
        let began = Instant::now();
        let made = make(&dir, &data, &plan);
        let worker_token = made.inspect_err(|_| {
            let _ = std::fs::remove_dir_all(&dir);
        })?;
        Ok(Self {
            plan,
            data,
            worker_token,
            took_s: Some(began.elapsed().as_secs_f64()),
        })
    }

    /// Copies it to a directory that is not there yet, which a server may then change as it likes.
    pub fn copy_to(&self, data: &Path) -> Result<()> {
        copy(&self.data, data)
    }

    /// How a worker reaches a server on this directory that listens on `port`.
    pub fn worker_target(&self, port: u16) -> Target {
        Target {
            url: format!("http://127.0.0.1:{port}"),
            token: Some(self.worker_token.clone()),
            trust: Trust::default(),
        }
    }
}

fn make(dir: &Path, data: &Path, plan: &Plan) -> Result<String> {
    std::fs::create_dir_all(data).map_err(|error| Failure::file(data, &error))?;
    let at = wall_now();
    let worker_token = put_all(data, at, plan.jobs, |number| plan.manifest(number, at))?;
    let contents = Contents {
        plan: plan.clone(),
        at,
        worker_token,
    };
    let text = serde_json::to_string_pretty(&contents)
        .map_err(|error| Failure::failed(format!("the plan has no form in JSON: {error}")))?;
    let file = dir.join(FILE);
    std::fs::write(&file, text).map_err(|error| Failure::file(&file, &error))?;
    Ok(contents.worker_token)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|error| Failure::file(to, &error))?;
    let wrong = |error: std::io::Error| Failure::file(from, &error);
    for entry in std::fs::read_dir(from).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            std::fs::copy(&source, &target).map_err(|error| Failure::file(&source, &error))?;
        }
    }
    Ok(())
}

fn read(dir: &Path) -> Result<Option<Contents>> {
    let file = dir.join(FILE);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::file(&file, &error)),
    };
    let contents = serde_json::from_str(&text);
    contents
        .map(Some)
        .map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}

fn warn_if_old(contents: &Contents) {
    let idle = contents.plan.jobs > contents.plan.active;
    if idle && wall_now().since(contents.at) > IDLE_FOR_MS {
        part(
            "these jobs were prepared more than two hours ago: those that were to wait come due meanwhile, and the figures count that too",
        );
    }
}
