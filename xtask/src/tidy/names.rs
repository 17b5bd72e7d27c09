//! Names of modules that say nothing about what is inside.

use super::{Finding, numbered};
use crate::tree::File;

const SOURCES: &[&str] = &["rs", "ts", "tsx", "py"];

const SAY_NOTHING: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "manager", "managers",
];

pub fn check(files: &[File]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.has_extension(SOURCES))
        .flat_map(check_one)
        .collect()
}

fn check_one(file: &File) -> Vec<Finding> {
    let stem = |part: &str| part.split('.').next().unwrap_or_default().to_owned();
    let in_path = file.path.split('/').map(stem).map(|name| (0, name));
    let inline = numbered(file).filter_map(|(line, text)| Some((line, module_opened(text)?)));
    in_path
        .chain(inline)
        .filter(|(_, name)| says_nothing(name))
        .map(|(line, name)| {
            Finding::new(
                &file.path,
                line,
                format!("{name:?} says nothing; name the module after what it owns"),
            )
        })
        .collect()
}

/// The name in `mod name {`; a `mod name;` is judged by the file it names.
fn module_opened(line: &str) -> Option<String> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub"));
    let name = (words.next()? == "mod").then(|| words.next())??;
    (words.next() == Some("{")).then(|| name.to_owned())
}

fn says_nothing(name: &str) -> bool {
    let last = name.rsplit(['_', '-']).next().unwrap_or(name);
    SAY_NOTHING.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_in_paths_and_inline_modules() {
        for (path, text) in [
            ("crates/core/src/util.rs", ""),
            ("crates/e2e/tests/common/mod.rs", ""),
            ("crates/server/src/session_manager.rs", ""),
            ("console/src/helpers.ts", ""),
            ("crates/core/src/lib.rs", "pub(crate) mod utils {\n}\n"),
        ] {
            assert_eq!(check(&[File::new(path, text)]).len(), 1, "{path}");
        }
    }

    #[test]
    fn telling_names_pass() {
        let file = File::new(
            "crates/core/src/engine/fire_job.rs",
            "mod tests {\n}\nmod wheel;\n",
        );
        assert!(check(&[file, File::new("docs/common.md", "")]).is_empty());
    }
}
