//! Which crate may depend on which: the walls of the code map.
//!
//! The table is a ceiling. A crate that is missing from it, or a row without a crate, is a finding too, so
//! that the table stays the truth.

use super::Finding;
use super::toml::{Entry, entries};
use crate::tree::File;

struct Crate {
    /// The directory below the root.
    directory: &'static str,
    /// Crates of this workspace it may use.
    may_use: &'static [&'static str],
    /// Foreign crates it must not name, each a wall that the code map promises.
    must_not_use: &'static [&'static str],
}

const DATABASES: &[&str] = &[
    "rusqlite",
    "libsqlite3-sys",
    "tokio-postgres",
    "mysql_async",
];
const NETWORK: &[&str] = &[
    "axum",
    "hyper",
    "hyper-util",
    "http",
    "tonic",
    "ureq",
    "tower-http",
];

const CRATES: &[Crate] = &[
    Crate {
        directory: "crates/core",
        may_use: &[],
        must_not_use: &[],
    },
    Crate {
        directory: "crates/outbound",
        may_use: &[],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/proto",
        may_use: &[],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/testpg",
        may_use: &[],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/store",
        may_use: &["core", "testpg"],
        must_not_use: NETWORK,
    },
    Crate {
        directory: "crates/sdk",
        may_use: &["core", "proto"],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/worker",
        may_use: &["core", "outbound", "proto", "sdk"],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/server",
        may_use: &["core", "outbound", "proto", "store"],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/audit",
        may_use: &["core", "store"],
        must_not_use: NETWORK,
    },
    Crate {
        directory: "crates/sim",
        may_use: &["audit", "core", "proto", "sdk", "server", "store"],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/cli",
        may_use: &["audit", "core", "proto", "sdk", "server", "store", "worker"],
        must_not_use: DATABASES,
    },
    Crate {
        directory: "crates/e2e",
        may_use: &["audit", "core", "proto", "sdk", "store", "testpg"],
        must_not_use: &[],
    },
    Crate {
        directory: "xtask",
        may_use: &[],
        must_not_use: DATABASES,
    },
];

/// Everything foreign that `core` may name: parsing, hashing, civil time. No runtime, no randomness, no I/O.
const CORE_MAY_NAME: &[&str] = &[
    "jiff",
    "postcard",
    "regex",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "strsim",
    "thiserror",
    "xxhash-rust",
];

/// What the tests of `core` may name besides.
const CORE_TESTS_MAY_NAME: &[&str] = &["proptest", "serde-saphyr"];

/// Compares every `Cargo.toml` of a crate with the table.
pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let manifests: Vec<(&str, &File)> = files
        .iter()
        .filter_map(|file| {
            file.path
                .strip_suffix("/Cargo.toml")
                .map(|directory| (directory, file))
        })
        .filter(|(directory, _)| directory.starts_with("crates/") || *directory == "xtask")
        .collect();
    for (directory, file) in &manifests {
        match CRATES.iter().find(|it| it.directory == *directory) {
            Some(allowed) => findings.extend(check_one(allowed, file)),
            None => findings.push(Finding::new(
                &file.path,
                0,
                "this crate has no row in the table of allowed edges (xtask/src/tidy/edges.rs); add one",
            )),
        }
    }
    for row in CRATES {
        if !manifests
            .iter()
            .any(|(directory, _)| *directory == row.directory)
        {
            let message = "the table of allowed edges has a row for this crate, which does not exist; drop it";
            findings.push(Finding::new(row.directory, 0, message));
        }
    }
    findings
}

fn check_one(allowed: &Crate, file: &File) -> Vec<Finding> {
    let dependencies = entries(&file.text)
        .into_iter()
        .filter(|it| it.table.ends_with("dependencies"));
    dependencies
        .filter_map(|entry| {
            refuse(allowed, &entry).map(|why| Finding::new(&file.path, entry.line, why))
        })
        .collect()
}

fn refuse(allowed: &Crate, entry: &Entry) -> Option<String> {
    let (directory, key) = (allowed.directory, entry.key.as_str());
    let own = key == "drumtower" || key == "xtask" || key.starts_with("drumtower-");
    if own {
        let name = key.strip_prefix("drumtower-").unwrap_or(key);
        let listed = allowed.may_use.join(", ");
        return (!allowed.may_use.contains(&name)).then(|| {
            format!("{directory} may not use {key}; of this workspace it may use: [{listed}]")
        });
    }
    if directory == "crates/core" {
        let in_tests =
            entry.table.ends_with("dev-dependencies") && CORE_TESTS_MAY_NAME.contains(&key);
        return (!CORE_MAY_NAME.contains(&key) && !in_tests).then(|| {
            format!(
                "crates/core may not name {key}; it may name: {}",
                CORE_MAY_NAME.join(", ")
            )
        });
    }
    // A test may look behind a wall, for example to open a database file by itself.
    let in_tests = entry.table.ends_with("dev-dependencies");
    (!in_tests && allowed.must_not_use.contains(&key)).then(|| {
        format!("{directory} may not name {key}: the code map puts it behind another crate")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let found = check(&[File::new(path, text)]);
        found
            .into_iter()
            .filter(|it| it.path == path)
            .map(|it| it.message)
            .collect()
    }

    #[test]
    fn an_edge_outside_the_table_is_found() {
        let found = complaints(
            "crates/store/Cargo.toml",
            "[dependencies]\ndrumtower-server = { workspace = true }\n",
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("may not use drumtower-server"),
            "{found:?}"
        );
    }

    #[test]
    fn a_test_dependency_is_an_edge_as_well() {
        let text = "[dev-dependencies]\ndrumtower-store = { workspace = true }\n";
        assert_eq!(complaints("crates/core/Cargo.toml", text).len(), 1);
    }

    #[test]
    fn core_names_nothing_that_runs_or_rolls_dice() {
        for name in [
            "tokio",
            "axum",
            "rusqlite",
            "rand",
            "getrandom",
            "crossbeam-channel",
            "proptest",
        ] {
            let text = format!("[dependencies]\n{name} = \"1\"\n");
            assert_eq!(
                complaints("crates/core/Cargo.toml", &text).len(),
                1,
                "{name}"
            );
        }
        assert!(
            complaints(
                "crates/core/Cargo.toml",
                "[dev-dependencies]\nproptest = \"1\"\n"
            )
            .is_empty()
        );
    }

    #[test]
    fn walls_hold_for_foreign_crates() {
        assert_eq!(
            complaints(
                "crates/sdk/Cargo.toml",
                "[dependencies.rusqlite]\nversion = \"1\"\n"
            )
            .len(),
            1
        );
        assert_eq!(
            complaints("crates/store/Cargo.toml", "[dependencies]\naxum = \"1\"\n").len(),
            1
        );
    }

    #[test]
    fn the_table_and_the_crates_must_match() {
        let found = complaints("crates/stray/Cargo.toml", "[dependencies]\n");
        assert!(found[0].contains("no row"), "{found:?}");
        assert_eq!(
            check(&[]).len(),
            CRATES.len(),
            "every row without a crate is a finding"
        );
    }

    #[test]
    fn allowed_edges_pass() {
        let text = "[dependencies]\ndrumtower-core = { workspace = true }\nrusqlite = { workspace = true }\n";
        assert!(complaints("crates/store/Cargo.toml", text).is_empty());
    }
}
