//! What is left lying about: unfinished code, notes to self, tests that are switched off.

use super::{Finding, numbered};
use crate::tree::File;

const SOURCES: &[&str] = &["rs", "ts", "tsx", "py", "proto", "sql", "toml"];

/// Put together from pieces, so that this file does not object to itself.
const NEEDLES: &[(&str, &str)] = &[
    (concat!("to", "do!("), "finish it or leave it out"),
    (concat!("TO", "DO"), "finish it or leave it out"),
    (concat!("FIX", "ME"), "fix it"),
    (concat!("dbg", "!("), "remove the debugging output"),
    (
        concat!("#[", "ignore"),
        "a test that does not run proves nothing; gate soak sizes on DRUMTOWER_LONG",
    ),
];

pub fn check(files: &[File]) -> Vec<Finding> {
    let sources = files.iter().filter(|file| file.has_extension(SOURCES));
    sources
        .flat_map(|file| numbered(file).filter_map(|(line, text)| complain(file, line, text)))
        .collect()
}

fn complain(file: &File, line: usize, text: &str) -> Option<Finding> {
    let (needle, remedy) = NEEDLES.iter().find(|(needle, _)| text.contains(needle))?;
    Some(Finding::new(
        &file.path,
        line,
        format!("{needle:?} is a leftover; {remedy}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leftover_is_found() {
        for (needle, _) in NEEDLES {
            let file = File::new("a.rs", format!("fn a() {{}}\n    {needle}\n"));
            let found = check(&[file]);
            assert_eq!(found.len(), 1, "{needle}");
            assert_eq!(found[0].line, 2);
        }
    }

    #[test]
    fn clean_code_and_prose_pass() {
        let prose = File::new("STYLE.md", format!("no `{}`", NEEDLES[0].0));
        assert!(check(&[File::new("a.rs", "fn a() {}\n"), prose]).is_empty());
    }
}
