//! A real mail server on a port of its own: aiosmtpd, which keeps each mail as a file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Process;
use crate::wait::eventually;
use crate::{Issued, Site, free_port};

const SCRIPT: &str = include_str!("mail.py");
/// The system's own, for which the package is installed.
const PYTHON: &str = "/usr/bin/python3";

pub const USER: &str = "drumtower";
pub const PASSWORD: &str = "open sesame";

pub struct Mail {
    pub port: u16,
    directory: PathBuf,
    _process: Process,
}

impl Mail {
    /// Takes mail from anyone, in the clear.
    #[track_caller]
    pub fn start(site: &Site) -> Self {
        Self::launch(site, None)
    }

    /// Insists on STARTTLS with this certificate, and on a login.
    #[track_caller]
    pub fn start_guarded(site: &Site, certificate: &Issued) -> Self {
        Self::launch(site, Some(certificate))
    }

    #[track_caller]
    fn launch(site: &Site, certificate: Option<&Issued>) -> Self {
        let (directory, port) = (site.dir("mail"), free_port());
        let script = site.path().join("mail.py");
        std::fs::write(&script, SCRIPT).expect("written");
        let mut command = Command::new(PYTHON);
        command.arg(&script).arg(port.to_string()).arg(&directory);
        if let Some(Issued { cert, key }) = certificate {
            command.arg(cert).arg(key).args([USER, PASSWORD]);
        }
        let mut process = Process::spawn(command, &site.path().join("mail.log"));
        eventually("the mail server listens", || {
            if let Some(status) = process.ended() {
                panic!("the mail server ended with {status}: {}", process.log());
            }
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Self {
            port,
            directory,
            _process: process,
        }
    }

    /// Every mail as it came, with its envelope before it, oldest first.
    pub fn all(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.directory).expect("a directory");
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|it| it == "eml"));
        paths.sort();
        paths.iter().map(|path| read(path)).collect()
    }
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("a mail");
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}
