//! Programs that the test suite calls and a fresh machine may lack.
//!
//! On Debian and its kin, as root, they are installed; elsewhere the message names the package and stops, so
//! that nobody takes a skipped proof for a passed one.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, run};

struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
    /// A module of Python that the package brings; the program alone is not enough.
    module: Option<&'static str>,
}

impl Need {
    fn is_there(&self) -> bool {
        on_path(self.program) && self.module.is_none_or(|module| self.imports(module))
    }

    fn imports(&self, module: &str) -> bool {
        let mut probe = Command::new(self.program);
        probe.args(["-c", &format!("import {module}")]);
        probe.output().is_ok_and(|output| output.status.success())
    }
}

const PROGRAMS: &[Need] = &[
    Need {
        program: "strace",
        package: "strace",
        why: "the durability test watches the server's fdatasync calls with it",
        module: None,
    },
    Need {
        program: "prometheus",
        package: "prometheus",
        why: "a test lets it scrape a server and take the shipped rules and dashboard",
        module: None,
    },
    Need {
        program: "pg_ctlcluster",
        package: "postgresql",
        why: "tests of the shared store start servers of their own with its programs",
        module: None,
    },
    Need {
        program: "nginx",
        package: "nginx",
        why: "a test puts it in front of several servers, with the shipped configuration",
        module: None,
    },
    Need {
        program: "faketime",
        package: "faketime",
        why: "tests set the clock of a running server with its library",
        module: None,
    },
    Need {
        program: "ip",
        package: "iproute2",
        why: "a test lets a worker join from a network of its own",
        module: None,
    },
    Need {
        program: "npm",
        package: "npm",
        why: "the web console is built with it",
        module: None,
    },
    Need {
        program: "chromium",
        package: "chromium",
        why: "tests of the web console drive it",
        module: None,
    },
    Need {
        program: "groff",
        package: "groff",
        why: "a test has it render the manual pages without a warning",
        module: None,
    },
    Need {
        program: "python3",
        package: "python3-venv",
        why: "schemathesis, which tries the HTTP API, is written in it",
        module: Some("ensurepip"),
    },
    Need {
        program: "python3",
        package: "python3-yaml",
        why: "a test reads the shipped compose file with it",
        module: Some("yaml"),
    },
    Need {
        program: "aiosmtpd",
        package: "python3-aiosmtpd",
        why: "tests of notifications send mail to it",
        module: None,
    },
];

/// Subcommands of cargo that a minimal toolchain leaves out.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Makes sure that everything the suite calls is there.
pub fn provide() -> Result<()> {
    provide_components()?;
    // The tests that call them exist on Linux only; other systems have nothing to install for them.
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let missing: Vec<&Need> = PROGRAMS.iter().filter(|need| !need.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !on_path("apt-get") || !is_root() {
        bail!("{}", ask_for(&missing));
    }
    apt(&["update"])?;
    for need in missing {
        eprintln!("installing {}: {}", need.package, need.why);
        apt(&["install", "-y", need.package])?;
    }
    Ok(())
}

fn provide_components() -> Result<()> {
    for (subcommand, component) in COMPONENTS {
        let mut probe = cargo();
        probe.args([subcommand, "--version"]);
        let present = probe.output().is_ok_and(|output| output.status.success());
        if present {
            continue;
        }
        if !on_path("rustup") {
            bail!("cargo {subcommand} is missing; install the toolchain's {component} component");
        }
        let mut add = Command::new("rustup");
        add.args(["component", "add", component]);
        run(add)?;
    }
    Ok(())
}

fn ask_for(missing: &[&Need]) -> String {
    let mut lines = vec![
        "missing on this machine, and only root on a Debian system can have it installed here:"
            .to_owned(),
    ];
    for need in missing {
        lines.push(format!(
            "  package {} ({}): {}",
            need.package, need.program, need.why
        ));
    }
    lines.push("install it with the system's package tool and run the command again".to_owned());
    lines.join("\n")
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    run(command).context("cannot install what the tests need")
}

pub(crate) fn on_path(program: &str) -> bool {
    let Some(path) = env::var_os("PATH") else {
        return false;
    };
    env::split_paths(&path).any(|directory| is_executable(&directory.join(program)))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

fn is_root() -> bool {
    // `id` spares a dependency on libc for one number.
    let answer = Command::new("id").arg("-u").output();
    answer.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package_and_reason() {
        let text = ask_for(&[&PROGRAMS[0]]);
        assert!(
            text.contains("package strace (strace): the durability test"),
            "{text}"
        );
    }

    #[test]
    fn the_path_is_searched() {
        assert!(on_path("cargo") || env::var_os("CARGO").is_some());
        assert!(!on_path("no-such-program-anywhere"));
    }
}
