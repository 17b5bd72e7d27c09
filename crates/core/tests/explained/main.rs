//! The words of `run explain`, whole texts at a time: each situation against the file in `golden/` that has its name.
//!
//! `DRUMTOWER_GOLDEN=write cargo test -p drumtower-core --test explained` writes the files anew; read the difference as
//! somebody would who was woken up by the run.

mod life;
mod situations;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drumtower_core::explain::run::{Account, Cause};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explained/golden")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the texts are files so that they can be read"
)]
fn held_against_its_file(name: &str, account: &Account) -> Result<(), String> {
    let (file, text) = (golden().join(format!("{name}.txt")), account.text());
    if std::env::var_os("DRUMTOWER_GOLDEN").is_some() {
        return std::fs::write(&file, text).map_err(|error| error.to_string());
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    match text == expected {
        true => Ok(()),
        false => Err(format!(
            "== {name} is told as\n{text}\n== and should be\n{expected}"
        )),
    }
}

#[test]
fn every_situation_is_told_as_its_file_says() {
    let mut wrong = Vec::new();
    for (name, account) in situations::all() {
        wrong.extend(held_against_its_file(name, &account).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_left_over() {
    let situations = situations::all();
    let names: BTreeSet<String> = situations
        .iter()
        .map(|(name, _)| format!("{name}.txt"))
        .collect();
    assert_eq!(names.len(), situations.len(), "two situations of one name");
    for file in golden().read_dir().expect("golden") {
        let name = file.expect("a file").file_name();
        assert!(names.contains(&*name.to_string_lossy()), "{name:?}");
    }
}

#[test]
fn sentences_end_and_somebody_is_told_what_to_do() {
    for (name, account) in situations::all() {
        assert!(!account.advice.is_empty(), "{name}");
        let texts = account.timeline.iter().map(|event| &event.text);
        for text in texts.chain([&account.headline.text, &account.subject]) {
            assert!(
                text.ends_with('.') && !text.contains(".."),
                "{name}: {text}"
            );
            assert!(!text.contains("  "), "{name}: {text}");
        }
        let mut times = account.timeline.iter().map(|event| event.at);
        assert!(times.clone().is_sorted(), "{name}: {:?}", times.next());
    }
}

#[test]
fn every_cause_has_a_situation() {
    let told: BTreeSet<Cause> = situations::all()
        .iter()
        .map(|(_, account)| account.headline.code)
        .collect();
    for cause in Cause::ALL {
        assert!(told.contains(&cause), "{cause:?}");
    }
}
