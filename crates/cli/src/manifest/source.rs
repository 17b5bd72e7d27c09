//! The files that a user names: one, all of a directory, or standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// A manifest is written by people; beyond this it is something else.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Source {
    /// As the user would name it.
    pub name: String,
    pub text: String,
}

/// Reads what the names stand for. `-` is standard input; a directory gives its `.yaml` and `.yml` files, in order of
/// name, with those of the directories inside it.
pub fn collect(names: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for name in names {
        if name.as_os_str() == "-" {
            sources.push(Source {
                name: "(standard input)".to_owned(),
                text: bounded(name, std::io::stdin().lock())?,
            });
        } else if name.is_dir() {
            directory(name, &mut sources)?;
        } else {
            sources.push(file(name)?);
        }
    }
    Ok(sources)
}

fn directory(dir: &Path, sources: &mut Vec<Source>) -> Result<()> {
    let before = sources.len();
    walk(dir, sources)?;
    if sources.len() == before {
        return Err(Failure::usage(format!(
            "{}: there is no .yaml or .yml file in it",
            dir.display()
        )));
    }
    Ok(())
}

fn walk(dir: &Path, sources: &mut Vec<Source>) -> Result<()> {
    let failed = |error| Failure::file(dir, &error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    for path in paths {
        let yaml = path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        // A link to a directory could lead back here.
        if path.is_dir() && !path.is_symlink() {
            walk(&path, sources)?;
        } else if yaml && path.is_file() {
            sources.push(file(&path)?);
        }
    }
    Ok(())
}

fn file(path: &Path) -> Result<Source> {
    let opened = std::fs::File::open(path).map_err(|error| Failure::file(path, &error))?;
    Ok(Source {
        name: path.display().to_string(),
        text: bounded(path, opened)?,
    })
}

fn bounded(path: &Path, reader: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    reader
        .take(FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::file(path, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        Failure::usage(format!(
            "{}:{line}: the text is not UTF-8: save the file as UTF-8",
            path.display()
        ))
    })?;
    if text.len() as u64 > FILE_BYTES {
        return Err(Failure::usage(format!(
            "{}: a manifest may have {FILE_BYTES} bytes",
            path.display()
        )));
    }
    Ok(text)
}
