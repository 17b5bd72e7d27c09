//! What a command is given before it starts: its directory, its script, its input, the user it becomes, its limits.
//!
//! Everything that can be found out, and can fail, happens before the fork, so that the words of an error are at hand. What is
//! left for the child ([`Surroundings::enter`]) is system calls on values that are ready.
//!
//! The supervisor may be root and the user of the command anybody, who may have processes already. So the scratch directory
//! is given away last: until then nobody else can put anything in it, and afterwards nothing in it is touched by its name.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use super::resume_files;
use super::sys::{self, CpuSet, User};
use super::wire::{Limits, Start};

/// Made before the fork.
pub struct Surroundings {
    pub cwd: PathBuf,
    pub stdin: Option<File>,
    /// Put before the environment of the attempt, which wins.
    pub env: Vec<(&'static str, String)>,
    user: Option<User>,
    /// How many files may be open unless the command asks for more, as before the worker raised that for itself.
    open_files: Option<u64>,
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
            check_path(&start.scratch, user)?;
        }
        let told = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("cannot write {what}: {error}")
        };
        if let Some(body) = &start.script {
            write_script(start, body, user.as_ref()).map_err(told("the script"))?;
        }
        if start.resume {
            place_checkpoint(start, user.as_ref()).map_err(told("the former checkpoint"))?;
        }
        let stdin = start.stdin.as_deref();
        let stdin = stdin.map(|text| input(start, text, user.as_ref()));
        let stdin = stdin.transpose().map_err(told("standard input"))?;
        if let Some(user) = &user {
            hand_over(&start.scratch, user)?;
        }
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
            stdin,
            env,
            user,
            open_files: start.open_files,
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
        if let Some(open_files) = self.open_files {
            sys::soften_open_files(open_files)?;
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

/// The user must be able to come to the scratch directory.
fn check_path(scratch: &Path, user: &User) -> Result<(), String> {
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
    Ok(())
}

fn hand_over(scratch: &Path, user: &User) -> Result<(), String> {
    let directory = File::options()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(scratch);
    directory
        .and_then(|directory| give(&directory, Some(user)))
        .map_err(|error| {
            format!(
                "cannot give {} to `{}`: {error}",
                scratch.display(),
                user.name
            )
        })
}

fn give(file: &File, user: Option<&User>) -> io::Result<()> {
    match user {
        Some(user) => fchown(file, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

fn write_script(start: &Start, body: &str, user: Option<&User>) -> io::Result<()> {
    let mut file = private(&script_path(&start.scratch), 0o500)?;
    file.write_all(body.as_bytes())?;
    give(&file, user)
}

/// It is ours until here: nobody else could put anything in its place.
fn place_checkpoint(start: &Start, user: Option<&User>) -> io::Result<()> {
    let path = resume_files::resume(&start.scratch);
    fs::rename(resume_files::given(&start.scratch), &path)?;
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)?;
    give(&file, user)
}

/// A file without a name: nobody else finds it, and the command can read it again from its beginning.
fn input(start: &Start, text: &str, user: Option<&User>) -> io::Result<File> {
    let path = start.scratch.join(".drumtower-stdin");
    let mut file = private(&path, 0o600)?;
    fs::remove_file(&path)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    give(&file, user)?;
    Ok(file)
}

/// Made here and now: what is there already, a link above all, is an error.
fn private(path: &Path, mode: u32) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_NOFOLLOW)
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
