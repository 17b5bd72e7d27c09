//! The style of the repository, held by tests: one a rule, each rule proven on bad samples beside its code
//! in `xtask/src/tidy`.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::cargo::binary_under_test;
use xtask::generators::{GENERATORS, types_from};
use xtask::tidy::{self, Finding};
use xtask::tree::{self, File};
use xtask::typescript;

fn files() -> Vec<File> {
    tree::files(&tree::root())
}

#[track_caller]
fn expect_none(findings: Vec<Finding>) {
    let listed: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(
        listed.is_empty(),
        "{} found:\n  {}",
        listed.len(),
        listed.join("\n  ")
    );
}

/// The built `drumtower`, or a loud word that a check goes without it.
fn binary(check: &str) -> Option<PathBuf> {
    let binary = binary_under_test().expect("the binary to ask");
    if binary.is_none() {
        eprintln!(
            "SKIPPED {check}: drumtower is not built; run `cargo build -p drumtower` or `cargo xtask test`"
        );
    }
    binary
}

fn help_page(binary: &Path, verbs: &[String]) -> Result<String, String> {
    let output = Command::new(binary)
        .args(verbs)
        .arg("--help")
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() || output.stdout.is_empty() {
        return Err(format!(
            "{} {} --help prints no page",
            binary.display(),
            verbs.join(" ")
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn crates_use_only_what_the_code_map_allows() {
    expect_none(tidy::edges::check(&files()));
}

#[test]
fn files_stay_short() {
    let report = tidy::sizes::check(&files());
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    expect_none(report.findings);
}

#[test]
fn core_has_its_own_lint_configuration() {
    expect_none(tidy::purity::check_config(&files()));
}

#[test]
fn core_names_no_clock_thread_or_async() {
    expect_none(tidy::purity::check_sources(&files()));
}

#[test]
fn relative_links_in_the_docs_resolve() {
    let root = tree::root();
    expect_none(tidy::links::check(&files(), &|path| {
        root.join(path).exists()
    }));
}

#[test]
fn commands_in_the_docs_exist() {
    let binary = binary("commands in the docs");
    let ask = binary.map(|path| move |verbs: &[String]| help_page(&path, verbs));
    let report = match &ask {
        Some(ask) => tidy::commands::check(&files(), Some(ask)),
        None => tidy::commands::check(&files(), None),
    };
    eprintln!(
        "{} commands checked, {} not checked",
        report.checked, report.unchecked
    );
    expect_none(report.findings);
}

#[test]
fn translated_pages_match_their_originals() {
    expect_none(tidy::parity::check(&files()));
}

#[test]
fn generated_files_are_fresh() {
    let Some(binary) = binary("generated files") else {
        return;
    };
    let print = |generator: &xtask::generators::Generator| {
        generator
            .print(&binary)
            .map_err(|error| format!("{error:#}"))
    };
    expect_none(tidy::fresh::check(&files(), GENERATORS, &print));
}

#[test]
fn the_console_calls_the_api_by_its_own_description() {
    let files = files();
    let read = |path: &str| files.iter().find(|file| file.path == path);
    let document = read(typescript::DOCUMENT).expect("the description of the API");
    let expected = types_from(&document.text).expect("a description that can be read");
    let kept = read(typescript::TYPES).map(|file| file.text.as_str());
    assert!(
        kept == Some(expected.as_str()),
        "{} is stale; run `cargo xtask codegen`",
        typescript::TYPES
    );
}

#[test]
fn nothing_is_left_lying_about() {
    expect_none(tidy::leftovers::check(&files()));
}

#[test]
fn module_names_say_something() {
    expect_none(tidy::names::check(&files()));
}

#[test]
fn no_file_names_a_package_registry() {
    expect_none(tidy::registries::check(&files()));
}

#[test]
fn every_module_opens_with_what_it_owns() {
    expect_none(tidy::headers::check(&files()));
}
