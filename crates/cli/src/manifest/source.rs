//! The files that a user names: one, all of a directory, or standard input.

use std::collections::BTreeSet;
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
/// name, with those of the directories inside it. Links are followed, and what is reached twice is read once. Nothing that
/// could be a manifest is passed over in silence: what no file names may be deleted.
pub fn collect(names: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut seen = BTreeSet::new();
    for name in names {
        if name.as_os_str() == "-" {
            sources.push(Source {
                name: "(standard input)".to_owned(),
                text: bounded(name, std::io::stdin().lock())?,
            });
        } else if name.is_dir() {
            directory(name, &mut seen, &mut sources)?;
        } else {
            sources.push(file(name)?);
        }
    }
    Ok(sources)
}

/// What was read already, by its real path.
type Seen = BTreeSet<PathBuf>;

fn directory(dir: &Path, seen: &mut Seen, sources: &mut Vec<Source>) -> Result<()> {
    let before = sources.len();
    walk(dir, seen, sources)?;
    if sources.len() == before {
        return Err(Failure::usage(format!(
            "{}: there is no .yaml or .yml file in it",
            dir.display()
        )));
    }
    Ok(())
}

fn walk(dir: &Path, seen: &mut Seen, sources: &mut Vec<Source>) -> Result<()> {
    let failed = |error| Failure::file(dir, &error);
    // A link may lead back here, or to what another one leads to.
    if !seen.insert(dir.canonicalize().map_err(failed)?) {
        return Ok(());
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    for path in paths {
        // An editor's mark that a file is open: a link to nothing, by design.
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b".#") {
            continue;
        }
        let real = path
            .canonicalize()
            .map_err(|error| Failure::file(&path, &error).remedy("mend the link, or remove it"))?;
        if real.is_dir() {
            walk(&path, seen, sources)?;
        } else if is_yaml(&path) && seen.insert(real.clone()) {
            if !real.is_file() {
                let message = format!("{}: this is no regular file", path.display());
                return Err(Failure::usage(message));
            }
            sources.push(file(&path)?);
        }
    }
    Ok(())
}

fn is_yaml(path: &Path) -> bool {
    let is = |extension: &std::ffi::OsStr| {
        extension.eq_ignore_ascii_case("yaml") || extension.eq_ignore_ascii_case("yml")
    };
    path.extension().is_some_and(is)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Result<Vec<String>> {
        let sources = collect(&[dir.to_owned()])?;
        let within = |source: &Source| {
            let path = Path::new(&source.name).strip_prefix(dir);
            path.map(|path| path.display().to_string())
                .unwrap_or_default()
        };
        Ok(sources.iter().map(within).collect())
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once_and_those_to_nothing_are_told() {
        use std::os::unix::fs::symlink;
        let here = tempfile::tempdir().expect("a directory");
        let other = tempfile::tempdir().expect("a directory");
        let write = |path: PathBuf| std::fs::write(path, "kind: Job\n").expect("written");
        write(here.path().join("a.YAML"));
        write(here.path().join("b.txt"));
        write(other.path().join("c.yml"));
        symlink(other.path(), here.path().join("linked")).expect("a link");
        symlink(other.path(), here.path().join("again")).expect("a link");
        symlink(here.path(), here.path().join("round")).expect("a link");
        symlink("nobody@host.1", here.path().join(".#a.YAML")).expect("a link");
        assert_eq!(
            names(here.path()).expect("files"),
            ["a.YAML", "again/c.yml"]
        );
        symlink("gone.yaml", here.path().join("d.yaml")).expect("a link");
        let failure = names(here.path()).expect_err("a link to nothing");
        assert!(failure.message().contains("d.yaml"), "{failure}");
    }
}
