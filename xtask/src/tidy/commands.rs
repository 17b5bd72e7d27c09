//! Commands that the docs tell a reader to type exist: each verb and each flag, by the binary's own `--help`.
//!
//! Fenced blocks in `sh` are read whole, those in `console` by their `$ ` lines. `cargo xtask` is checked
//! against its table and needs no binary.

use super::Finding;
use super::help::Help;
use super::markdown::{Block, Page};
use super::shell;
use crate::command;
use crate::tree::File;

/// Programs that run the program named after them.
const PREFIXES: &[&str] = &["sudo", "time", "nohup", "exec", "env"];

/// Gives the help page of a verb path, or says why there is none.
pub type Ask<'a> = &'a dyn Fn(&[String]) -> Result<String, String>;

#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// How many `drumtower` commands were checked; with no binary, how many were not.
    pub checked: usize,
    pub unchecked: usize,
}

/// `ask` is absent when there is no binary to ask.
pub fn check(files: &[File], ask: Option<Ask<'_>>) -> Report {
    let mut report = Report::default();
    for file in files.iter().filter(|file| file.has_extension(&["md"])) {
        for block in Page::parse(&file.text).blocks {
            for words in typed_commands(&block) {
                match judge(&words, ask) {
                    Verdict::NotOurs => {}
                    Verdict::Unchecked => report.unchecked += 1,
                    Verdict::Good => report.checked += 1,
                    Verdict::Bad(why) => {
                        let message = format!("`{}`: {why}", words.join(" "));
                        report
                            .findings
                            .push(Finding::new(&file.path, block.line, message));
                    }
                }
            }
        }
    }
    report
}

fn typed_commands(block: &Block) -> Vec<Vec<String>> {
    let script = match block.language.as_str() {
        "sh" | "bash" | "shell" => block.text.clone(),
        "console" => shell::typed(&block.text),
        _ => return Vec::new(),
    };
    shell::commands(&script)
        .into_iter()
        .map(strip_prefixes)
        .collect()
}

/// Drops assignments and programs that only run the next word.
fn strip_prefixes(words: Vec<String>) -> Vec<String> {
    let is_assignment = |word: &str| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && !name.contains('-'))
    };
    let is_prefix = |word: &String| is_assignment(word) || PREFIXES.contains(&word.as_str());
    words.into_iter().skip_while(is_prefix).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    NotOurs,
    Unchecked,
    Good,
    Bad(String),
}

fn judge(words: &[String], ask: Option<Ask<'_>>) -> Verdict {
    let program = words.first().and_then(|word| word.rsplit('/').next());
    let arguments = match (program, words.get(1).map(String::as_str)) {
        (Some("drumtower"), _) => words[1..].to_vec(),
        (Some("cargo"), Some("xtask")) => match door(&words[2..]) {
            Ok(Some(passed)) => passed,
            Ok(None) => return Verdict::Good,
            Err(why) => return Verdict::Bad(why),
        },
        _ => return Verdict::NotOurs,
    };
    let Some(ask) = ask else {
        return Verdict::Unchecked;
    };
    match walk(&arguments, ask) {
        Ok(()) => Verdict::Good,
        Err(why) => Verdict::Bad(why),
    }
}

/// Checks a command of `cargo xtask` and returns what it would ask of `drumtower`, if anything.
fn door(words: &[String]) -> Result<Option<Vec<String>>, String> {
    let Some((name, rest)) = words.split_first() else {
        return Ok(None);
    };
    if name == "--help" || name == "help" {
        return Ok(None);
    }
    let command =
        command::find(name).ok_or_else(|| format!("cargo xtask has no command {name:?}"))?;
    if rest.first().is_some_and(|word| word == "--help") {
        return Ok(None);
    }
    let (_, passed) = command.split(rest)?;
    Ok(command.passes_to.map(|verbs| {
        verbs
            .iter()
            .map(|verb| (*verb).to_owned())
            .chain(passed)
            .collect()
    }))
}

/// Descends the verbs page by page; at each page, its flags.
fn walk(arguments: &[String], ask: Ask<'_>) -> Result<(), String> {
    let mut path: Vec<String> = Vec::new();
    let mut page = Help::parse(&ask(&path)?);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        } else if word.starts_with('-') && word.len() > 1 {
            let takes = page
                .consumes_next(word)
                .map_err(|flag| format!("{} has no flag {flag}", shown(&path)))?;
            if takes {
                words.next();
            }
        } else if word == "help" && page.verbs.contains(word) {
            // `help` has no page of its own: the verbs after it are looked up from here.
        } else if page.verbs.contains(word) {
            path.push(word.clone());
            page = Help::parse(&ask(&path)?);
        } else if !page.verbs.is_empty() && !page.takes_words {
            let verbs = page
                .verbs
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            return Err(format!(
                "{} has no verb {word:?}; it has: {verbs}",
                shown(&path)
            ));
        }
    }
    Ok(())
}

fn shown(path: &[String]) -> String {
    std::iter::once("drumtower")
        .chain(path.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Help pages of a small program with the shape of ours.
    fn ask(path: &[String]) -> Result<String, String> {
        let page = match path.join(" ").as_str() {
            "" => {
                "Commands:\n  job   Jobs\n  backup  Copies\n  dev   Everything\n\nOptions:\n      --data <DIR>  Where\n  -h, --help  Print help\n"
            }
            "job" => {
                "Commands:\n  apply  Apply\n  help  Explain\n\nOptions:\n  -h, --help  Print help\n"
            }
            "job apply" => "Options:\n  -f, --file <FILE>  What\n  -h, --help  Print help\n",
            "backup" => "Commands:\n  list  List\n\nArguments:\n  [DIR]  Where\n",
            "backup list" => "Options:\n  -h, --help  Print help\n",
            "dev" => "Options:\n      --demo  With jobs\n      --listen <ADDRESS>  Where\n",
            other => return Err(format!("no page for {other}")),
        };
        Ok(page.to_owned())
    }

    fn report(block: &str) -> Report {
        check(
            &[File::new("README.md", format!("# A\n\n{block}\n"))],
            Some(&ask),
        )
    }

    #[test]
    fn what_does_not_exist_is_found() {
        for command in [
            "drumtower jobs list",
            "drumtower job list",
            "drumtower job help list",
            "drumtower job apply --fail x.yaml",
            "drumtower job apply -x",
            "DRUMTOWER_URL=http://127.0.0.1 ./target/release/drumtower job aply",
            "curl x | drumtower job nothing",
            "cargo xtask tests",
            "cargo xtask test --short",
            "cargo xtask dev --lisen 127.0.0.1:1",
        ] {
            let report = report(&format!("```sh\n{command}\n```"));
            assert_eq!(report.findings.len(), 1, "{command}: {:?}", report.findings);
        }
    }

    #[test]
    fn what_exists_passes() {
        for command in [
            "drumtower --data jobs job apply -f job.yaml",
            "drumtower job apply -f - <<EOF\ndrumtower nonsense\nEOF",
            "drumtower job apply --file=x.yaml --help",
            "drumtower dev --demo # drumtower nonsense",
            "drumtower job help apply",
            "drumtower backup /mnt/backups",
            "drumtower backup list",
            "cargo xtask dev --debug --listen 127.0.0.1:1",
            "cargo xtask test --long",
            "cargo xtask --help",
        ] {
            let report = report(&format!("```sh\n{command}\n```"));
            assert!(
                report.findings.is_empty(),
                "{command}: {:?}",
                report.findings
            );
            assert!(report.checked >= 1, "{command}");
        }
    }

    #[test]
    fn transcripts_are_read_by_their_prompts() {
        let report = report(
            "```console\n$ drumtower job apply -f a\ndrumtower nonsense is what it answers\n$ drumtower nope\n```",
        );
        assert_eq!((report.checked, report.findings.len()), (1, 1));
        assert_eq!(report.findings[0].line, 3);
    }

    #[test]
    fn other_languages_and_programs_are_left_alone() {
        let report = report("```text\ndrumtower nope\n```\n\n```sh\nls drumtower nope\n```");
        assert_eq!((report.checked, report.findings.len()), (0, 0));
    }

    #[test]
    fn without_a_binary_the_count_of_what_was_not_checked_is_kept() {
        let file = File::new(
            "README.md",
            "```sh\ndrumtower nope\ncargo xtask nope\n```\n",
        );
        let report = check(&[file], None);
        assert_eq!((report.unchecked, report.findings.len()), (1, 1));
    }
}
