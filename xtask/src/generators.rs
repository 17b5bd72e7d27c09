//! Files that a program writes and git keeps.
//!
//! One row a file: which arguments make the `drumtower` binary print it. `cargo xtask codegen` writes them,
//! the tidy test compares them; a new generated file is a new row. The console's types of the API are made from one of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{Profile, binary_path, build_binary, run, shown};
use crate::typescript;

pub struct Generator {
    /// Where the file lives, relative to the root.
    pub path: &'static str,
    /// What `drumtower` is asked to print it.
    pub arguments: &'static [&'static str],
}

pub const GENERATORS: &[Generator] = &[
    Generator {
        path: "docs/reference/job.schema.json",
        arguments: &["schema", "job"],
    },
    Generator {
        path: "docs/reference/calendar.schema.json",
        arguments: &["schema", "calendar"],
    },
    Generator {
        path: "docs/reference/queue.schema.json",
        arguments: &["schema", "queue"],
    },
    Generator {
        path: "docs/reference/openapi.json",
        arguments: &["schema", "openapi"],
    },
    Generator {
        path: "docs/state-machine.md",
        arguments: &["schema", "states"],
    },
];

impl Generator {
    /// What the file should contain, by the word of this binary.
    pub fn print(&self, binary: &Path) -> Result<String> {
        let mut command = Command::new(binary);
        command.args(self.arguments);
        let output = command
            .output()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!(
                "{} ended with {}: {}",
                shown(&command),
                output.status,
                complaint.trim()
            );
        }
        if output.stdout.trim_ascii().is_empty() {
            bail!("{} printed nothing", shown(&command));
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("{} did not print UTF-8", shown(&command)))
    }
}

/// Builds the binary and writes every generated file that differs.
pub fn write_all() -> Result<()> {
    run(build_binary(Profile::Debug))?;
    let root = crate::tree::root();
    for generator in GENERATORS {
        let text = generator.print(&binary_path(Profile::Debug))?;
        write(&root, generator.path, &text)?;
    }
    let document = fs::read_to_string(root.join(typescript::DOCUMENT))
        .with_context(|| format!("cannot read {}", typescript::DOCUMENT))?;
    write(&root, typescript::TYPES, &types_from(&document)?)
}

/// The types that the console calls the API with, from the text of its description.
pub fn types_from(document: &str) -> Result<String> {
    let document = serde_json::from_str(document)
        .with_context(|| format!("{} is not JSON", typescript::DOCUMENT))?;
    Ok(typescript::types(&document))
}

fn write(root: &Path, name: &str, text: &str) -> Result<()> {
    let path = root.join(name);
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        eprintln!("{name}: fresh");
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{name}: written");
    Ok(())
}
