//! What a command is given before it starts: its directory, its script, its input, the user it becomes, its limits.
//!
//! Everything that can be found out, and can fail, happens before the fork, so that the words of an error are at hand. What is
//! left for the child ([`Surroundings::enter`]) is system calls on values that are ready.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use super::sys::{self, CpuSet, User};
use super::wire::{Limits, Start};

/// Made before the fork.
pub struct Surroundings {
    pub cwd: PathBuf,
    pub stdin: Option<File>,
    /// Put before the environment of the attempt, which wins.
    pub env: Vec<(&'static str, String)>,
    user: Option<User>,
    rlimits: Vec<(sys::Resource, u64)>,
    cpus: Option<CpuSet>,
}

pub fn script_path(scratch: &Path) -> PathBuf {
    scratch.join(".drumtower-script")
}

impl Surroundings {
    /// `grouped` says that a control group holds the command to its limits. The scratch directory is there already.
    pub fn prepare(start: &Start, grouped: bool) -> Result<Self, String> {
        let user = start.user.as_deref().map(become_of).transpose()?.flatten();
        if let Some(user) = &user {
            open_path(&start.scratch, user)?;
        }
        let told = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("cannot write {what}: {error}")
        };
        if let Some(body) = &start.script {
            write_script(start, body, user.as_ref()).map_err(told("the script"))?;
        }
        let stdin = start.stdin.as_deref().map(|text| input(start, text));
        let mut env = Vec::new();
        if let Some(name) = &start.user {
            let home = match &user {
                Some(user) => user.home.clone(),
                None => start.scratch.to_string_lossy().into_owned(),
            };
            env.push(("HOME", home));
            env.push(("USER", name.clone()));
            env.push(("LOGNAME", name.clone()));
        }
        Ok(Self {
            cwd: directory(start)?,
            stdin: stdin.transpose().map_err(told("standard input"))?,
            env,
            user,
            rlimits: rlimits(&start.limits, grouped),
            cpus: start
                .limits
                .cpu_milli
                .filter(|_| !grouped)
                .and_then(|milli| CpuSet::of(milli.div_ceil(1000))),
        })
    }

    /// Called in the child. Async-signal-safe.
    pub fn enter(&self) -> io::Result<()> {
        if let Some(cpus) = &self.cpus {
            cpus.apply();
        }
        for (resource, most) in &self.rlimits {
            sys::limit(*resource, *most)?;
        }
        match &self.user {
            Some(user) => user.switch(),
            None => Ok(()),
        }
    }
}

/// `None` when this process is that user already.
fn become_of(name: &str) -> Result<Option<User>, String> {
    let user = User::find(name)
        .map_err(|error| format!("cannot look user `{name}` up: {error}"))?
        .ok_or_else(|| {
            format!(
                "there is no user `{name}` on this machine: name one that the worker's machine has"
            )
        })?;
    let own = sys::effective_user();
    if user.uid == own {
        return Ok(None);
    }
    if own != 0 {
        return Err(format!(
            "cannot become user `{name}`: the worker runs as user {own} and only root can change users; run the worker as root, or as `{name}`"
        ));
    }
    Ok(Some(user))
}

/// Gives the scratch directory to the user, who must be able to come there.
fn open_path(scratch: &Path, user: &User) -> Result<(), String> {
    for above in scratch.ancestors().skip(1) {
        let about = fs::metadata(above)
            .map_err(|error| format!("cannot look at {}: {error}", above.display()))?;
        let open = about.mode() & 0o001 != 0
            || (about.uid() == user.uid && about.mode() & 0o100 != 0)
            || (user.has_group(about.gid()) && about.mode() & 0o010 != 0);
        if !open {
            return Err(format!(
                "user `{}` cannot reach the working directory: {} is closed to it; start the worker with --scratch elsewhere, such as /var/lib/drumtower-scratch",
                user.name,
                above.display()
            ));
        }
    }
    chown(scratch, Some(user.uid), Some(user.gid)).map_err(|error| {
        format!(
            "cannot give {} to `{}`: {error}",
            scratch.display(),
            user.name
        )
    })
}

fn write_script(start: &Start, body: &str, user: Option<&User>) -> io::Result<()> {
    let path = script_path(&start.scratch);
    let mut file = private(&path, 0o500)?;
    file.write_all(body.as_bytes())?;
    match user {
        Some(user) => chown(&path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

/// A file without a name: it can be read again from its beginning and nobody else finds it.
fn input(start: &Start, text: &str) -> io::Result<File> {
    let path = start.scratch.join(".drumtower-stdin");
    private(&path, 0o400)?.write_all(text.as_bytes())?;
    let file = File::open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn private(path: &Path, mode: u32) -> io::Result<File> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

fn directory(start: &Start) -> Result<PathBuf, String> {
    let Some(cwd) = &start.cwd else {
        return Ok(start.scratch.clone());
    };
    match fs::metadata(cwd) {
        Ok(about) if about.is_dir() => Ok(cwd.clone()),
        Ok(_) => Err(format!(
            "the working directory {} is not a directory",
            cwd.display()
        )),
        Err(error) => Err(format!(
            "cannot use the working directory {}: {error}",
            cwd.display()
        )),
    }
}

fn rlimits(limits: &Limits, grouped: bool) -> Vec<(sys::Resource, u64)> {
    let memory = limits.memory_bytes.filter(|_| !grouped);
    let memory = memory.map(|bytes| (sys::Resource::Data, bytes));
    let files = limits.open_files;
    let files = files.map(|count| (sys::Resource::OpenFiles, count));
    memory.into_iter().chain(files).collect()
}
