//! A page and its translation have the same headings and the same code blocks.
//!
//! Prose may differ in every word; levels and count of headings, and every fenced block with its language,
//! may not: a command that changes in one language and not in the other misleads half of the readers.

use super::Finding;
use super::markdown::{Block, Page};
use crate::tree::File;

/// Each page with its translation.
const PAIRS: &[(&str, &str)] = &[("README.md", "README.zh-CN.md")];

pub fn check(files: &[File]) -> Vec<Finding> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let mut findings = Vec::new();
    for (original, translation) in PAIRS {
        match (find(original), find(translation)) {
            (Some(left), Some(right)) => findings.extend(compare(left, right)),
            (None, None) => {}
            (Some(_), None) => findings.push(Finding::new(
                translation,
                0,
                format!("missing beside {original}"),
            )),
            (None, Some(_)) => findings.push(Finding::new(
                original,
                0,
                format!("missing beside {translation}"),
            )),
        }
    }
    findings
}

fn compare(original: &File, translation: &File) -> Vec<Finding> {
    let (left, right) = (Page::parse(&original.text), Page::parse(&translation.text));
    let headings = headings_differ(&left, &right);
    let blocks = blocks_differ(&left.blocks, &right.blocks);
    let findings = headings.into_iter().chain(blocks);
    findings
        .map(|(line, message)| {
            Finding::new(
                &translation.path,
                line,
                format!("{message} ({})", original.path),
            )
        })
        .collect()
}

fn headings_differ(left: &Page, right: &Page) -> Option<(usize, String)> {
    for (ours, theirs) in left.headings.iter().zip(&right.headings) {
        if ours.level != theirs.level {
            let message = format!(
                "heading {:?} has level {}, its original {:?} has {}",
                theirs.text, theirs.level, ours.text, ours.level
            );
            return Some((theirs.line, message));
        }
    }
    let (expected, found) = (left.headings.len(), right.headings.len());
    (expected != found).then(|| (0, format!("{found} headings, the original has {expected}")))
}

fn blocks_differ(left: &[Block], right: &[Block]) -> Option<(usize, String)> {
    for (ours, theirs) in left.iter().zip(right) {
        if (&ours.language, &ours.text) != (&theirs.language, &theirs.text) {
            return Some((
                theirs.line,
                format!(
                    "this code block differs from its original on line {}",
                    ours.line
                ),
            ));
        }
    }
    let (expected, found) = (left.len(), right.len());
    (expected != found).then(|| {
        (
            0,
            format!("{found} code blocks, the original has {expected}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &str = "# A\n\n## B\n\n```sh\nls\n```\n";

    fn complaints(translation: &str) -> usize {
        check(&[
            File::new("README.md", ORIGINAL),
            File::new("README.zh-CN.md", translation),
        ])
        .len()
    }

    #[test]
    fn differences_are_found() {
        for translation in [
            "# 甲\n\n### 乙\n\n```sh\nls\n```\n",
            "# 甲\n\n```sh\nls\n```\n",
            "# 甲\n\n## 乙\n\n```sh\nls -l\n```\n",
            "# 甲\n\n## 乙\n\n```console\nls\n```\n",
            "# 甲\n\n## 乙\n",
        ] {
            assert_eq!(complaints(translation), 1, "{translation}");
        }
    }

    #[test]
    fn a_faithful_translation_passes() {
        assert_eq!(complaints("# 甲\n\n文字\n\n## 乙\n\n```sh\nls\n```\n"), 0);
    }

    #[test]
    fn both_or_neither() {
        assert_eq!(check(&[File::new("README.md", ORIGINAL)]).len(), 1);
        assert_eq!(check(&[File::new("README.zh-CN.md", ORIGINAL)]).len(), 1);
        assert!(check(&[]).is_empty());
    }
}
