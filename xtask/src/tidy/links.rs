//! Relative links in the docs lead somewhere, down to the heading. Links to other hosts are not followed.

use std::collections::BTreeMap;

use super::Finding;
use super::markdown::{Link, Page};
use crate::tree::File;

/// `exists` answers for a path relative to the root, file or directory.
pub fn check(files: &[File], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let pages: BTreeMap<&str, Page> = files
        .iter()
        .filter(|file| file.has_extension(&["md"]))
        .map(|file| (file.path.as_str(), Page::parse(&file.text)))
        .collect();
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| is_local(&link.target)) {
            let complaint = follow(path, link, &pages, exists).err();
            findings.extend(complaint.map(|message| Finding::new(path, link.line, message)));
        }
    }
    findings
}

fn is_local(target: &str) -> bool {
    let scheme = target.split(['/', '#', '?']).next().unwrap_or_default();
    !scheme.contains(':') && !target.starts_with("//")
}

fn follow(
    from: &str,
    link: &Link,
    pages: &BTreeMap<&str, Page>,
    exists: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    let (file, anchor) = match link.target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (link.target.as_str(), None),
    };
    let target = if file.is_empty() {
        from.to_owned()
    } else {
        resolve(from, file)?
    };
    if !exists(&target) {
        return Err(format!(
            "link to {:?}: {target} does not exist",
            link.target
        ));
    }
    let Some(anchor) = anchor else { return Ok(()) };
    // An anchor into a source file (a line number) is the viewer's business.
    let Some(page) = pages.get(target.as_str()) else {
        return Ok(());
    };
    let anchors = page.anchors();
    if anchors.iter().any(|it| it == anchor) {
        return Ok(());
    }
    Err(format!(
        "link to {:?}: {target} has no heading #{anchor}; it has: {}",
        link.target,
        anchors.join(", ")
    ))
}

/// The path relative to the root that a link means.
fn resolve(from: &str, target: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = match target.starts_with('/') {
        true => Vec::new(),
        false => from.split('/').collect(),
    };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts
                    .pop()
                    .ok_or_else(|| format!("link to {target:?} leaves the repository"))?;
            }
            name => parts.push(name),
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let files = [
            File::new("docs/a.md", text),
            File::new("README.md", "# Top\n\n## Try it\n"),
            File::new("docs/adr/1.md", "# One\n"),
        ];
        let exists = |path: &str| {
            files.iter().any(|it| it.path == path) || path == "docs/adr" || path == "docs/x.png"
        };
        check(&files, &exists)
            .into_iter()
            .map(|it| it.to_string())
            .collect()
    }

    #[test]
    fn dead_links_are_found() {
        for text in [
            "[x](b.md)",
            "![x](missing.png)",
            "[x](../README.md#nowhere)",
            "[x](#nowhere)",
            "[x](../../outside.md)",
            "text\n\n[x]: adr/2.md",
            "[x](/docs/b.md)",
        ] {
            let found = complaints(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].starts_with("docs/a.md:"), "{found:?}");
        }
    }

    #[test]
    fn live_and_foreign_links_pass() {
        for text in [
            "[x](adr/1.md#one)",
            "[x](../README.md#try-it) and [y](../README.md)",
            "# Here\n[x](#here)",
            "[x](adr/) ![p](x.png)",
            "[x](https://example.org/a#b) [m](mailto:a@example.org)",
            "`[x](gone.md)`",
            "```\n[x](gone.md)\n```",
            "[x](/docs/adr/1.md)",
        ] {
            let found = complaints(text);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }
}
