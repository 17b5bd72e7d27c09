//! Words that people bring along from other tools: the usual error, with the command that does what they mean.
//!
//! Mistyped words are clap's; these are words that are spelled well and mean nothing here.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};

/// The verbs above a word, the word, and what to type.
const WORDS: &[(&str, &[&str], &str)] = &[
    ("", &["ls", "list", "get", "jobs"], "drumtower job list"),
    (
        "",
        &["describe", "show", "inspect", "status"],
        "drumtower job show NAME",
    ),
    (
        "",
        &["create", "add", "new", "cron", "schedule", "every"],
        "drumtower job create NAME --every 10s -- COMMAND",
    ),
    ("", &["edit", "update"], "drumtower job edit NAME"),
    ("", &["delete", "rm", "remove"], "drumtower job delete NAME"),
    (
        "",
        &["pause", "suspend", "disable"],
        "drumtower job pause NAME",
    ),
    ("", &["resume", "enable"], "drumtower job resume NAME"),
    (
        "",
        &["trigger", "exec", "fire"],
        "drumtower job trigger NAME",
    ),
    ("", &["next", "preview"], "drumtower job next NAME"),
    ("", &["logs", "log", "tail"], "drumtower run logs RUN"),
    ("", &["ps", "runs", "history"], "drumtower run list"),
    (
        "",
        &["cancel", "kill", "stop", "abort"],
        "drumtower run cancel RUN",
    ),
    ("", &["wait"], "drumtower run wait RUN"),
    ("", &["workers", "nodes", "agents"], "drumtower worker list"),
    ("", &["agent"], "drumtower work"),
    (
        "",
        &["start", "up", "server", "run-server"],
        "drumtower dev",
    ),
    (
        "",
        &["login", "auth"],
        "drumtower token create NAME --role ROLE",
    ),
    ("", &["tokens"], "drumtower token list"),
    ("", &["calendars"], "drumtower calendar list"),
    ("", &["queues"], "drumtower queue list"),
    (
        "job",
        &["run", "start", "exec", "fire", "execute"],
        "drumtower job trigger NAME",
    ),
    ("job", &["ls", "get", "all"], "drumtower job list"),
    ("job", &["rm", "remove", "del"], "drumtower job delete NAME"),
    (
        "job",
        &["describe", "info", "inspect", "cat", "get-yaml"],
        "drumtower job show NAME",
    ),
    (
        "job",
        &["new", "add"],
        "drumtower job create NAME --every 10s -- COMMAND",
    ),
    (
        "job",
        &["update", "set", "change", "patch"],
        "drumtower job edit NAME",
    ),
    (
        "job",
        &["suspend", "disable", "stop"],
        "drumtower job pause NAME",
    ),
    (
        "job",
        &["unpause", "unsuspend", "enable"],
        "drumtower job resume NAME",
    ),
    ("job", &["runs", "history"], "drumtower run list --job NAME"),
    ("job", &["logs", "log"], "drumtower run logs RUN"),
    ("job", &["kill", "cancel"], "drumtower run cancel RUN"),
    ("job", &["preview", "times"], "drumtower job next NAME"),
    ("job", &["why"], "drumtower job explain NAME"),
    ("job", &["export", "dump"], "drumtower export"),
    ("run", &["ls", "get", "ps"], "drumtower run list"),
    (
        "run",
        &["describe", "info", "inspect"],
        "drumtower run show RUN",
    ),
    ("run", &["why"], "drumtower run explain RUN"),
    (
        "run",
        &["kill", "stop", "abort", "delete", "rm"],
        "drumtower run cancel RUN",
    ),
    (
        "run",
        &["retry", "restart", "again", "repeat"],
        "drumtower run rerun RUN",
    ),
    (
        "job",
        &["log-versions", "revisions"],
        "drumtower job versions NAME",
    ),
    (
        "job",
        &["rollback", "undo", "revert"],
        "drumtower job restore NAME --version VERSION",
    ),
    ("", &["rerun", "retry"], "drumtower run rerun RUN"),
    (
        "run",
        &["tail", "follow", "output"],
        "drumtower run logs -f RUN",
    ),
    (
        "run",
        &["start", "trigger", "create", "new"],
        "drumtower job trigger NAME",
    ),
    ("calendar", &["ls", "get"], "drumtower calendar list"),
    (
        "calendar",
        &["rm", "remove"],
        "drumtower calendar delete NAME",
    ),
    (
        "calendar",
        &["describe", "info"],
        "drumtower calendar show NAME",
    ),
    (
        "calendar",
        &["create", "new", "add", "edit"],
        "drumtower calendar apply -f FILE",
    ),
    ("queue", &["ls", "get"], "drumtower queue list"),
    ("queue", &["rm", "remove"], "drumtower queue delete NAME"),
    ("queue", &["describe", "info"], "drumtower queue show NAME"),
    (
        "queue",
        &["create", "new", "add", "edit"],
        "drumtower queue apply -f FILE",
    ),
    ("worker", &["ls", "get", "ps"], "drumtower worker list"),
    ("worker", &["start", "run"], "drumtower work"),
    ("token", &["ls", "get"], "drumtower token list"),
    (
        "token",
        &["rm", "remove", "delete"],
        "drumtower token revoke NAME",
    ),
    (
        "token",
        &["new", "add"],
        "drumtower token create NAME --role ROLE",
    ),
    (
        "import",
        &["cron", "cronjob", "crond"],
        "drumtower import crontab FILE",
    ),
    (
        "import",
        &["k8s", "kubernetes"],
        "drumtower import k8s-cronjob FILE",
    ),
];

/// The error with a hint, if the words on the command line call for one.
pub fn hinted(error: Error) -> Error {
    hint(error, &std::env::args().skip(1).collect::<Vec<_>>())
}

fn hint(mut error: Error, arguments: &[String]) -> Error {
    let hint = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let suggested = error.get(ContextKind::SuggestedSubcommand).is_some();
            meant(arguments, suggested)
        }
        ErrorKind::UnknownArgument => {
            command_without_dashes(arguments).or_else(|| schedule_without_quotes(arguments))
        }
        _ => None,
    };
    if let Some(hint) = hint {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
    error
}

/// What to type instead of the first word that is no verb: a word of another tool's, else the nearest verb unless one was
/// `suggested` already.
fn meant(arguments: &[String], suggested: bool) -> Option<String> {
    let root = crate::Cli::command();
    let mut command: &Command = &root;
    let mut path = Vec::new();
    for word in arguments.iter().filter(|word| !word.starts_with('-')) {
        let Some(below) = command.find_subcommand(word) else {
            let path = path.join(" ");
            let known = WORDS
                .iter()
                .find(|(above, words, _)| *above == path && words.contains(&word.as_str()));
            return match known {
                Some((.., command)) => Some(format!("`{command}` does that")),
                None if suggested => None,
                None => nearest(command, word),
            };
        };
        command = below;
        path.push(word.as_str());
    }
    None
}

/// Letters that changed places make a word that looks like none to clap.
fn nearest(command: &Command, word: &str) -> Option<String> {
    let names = command.get_subcommands().map(Command::get_name);
    let (distance, name) = names
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .min()?;
    (distance <= 1 + word.chars().count() / 4)
        .then(|| format!("a similar subcommand exists: '{name}'"))
}

/// `job create` takes the program after `--`, and forgetting that is easy.
fn command_without_dashes(arguments: &[String]) -> Option<String> {
    let [job, create, rest @ ..] = arguments else {
        return None;
    };
    let creates = job == "job" && create == "create" && !rest.iter().any(|word| word == "--");
    creates
        .then(|| "put `--` before the program and its arguments, as in `-- echo hello`".to_owned())
}

/// A schedule is one word, which the shell splits and fills with the names of files unless it is told not to.
fn schedule_without_quotes(arguments: &[String]) -> Option<String> {
    let [job, next, first, ..] = arguments else {
        return None;
    };
    let begins = |c: char| c.is_ascii_digit() || c == '*';
    (job == "job" && next == "next" && (first == "every" || first.starts_with(begins)))
        .then(|| "put the schedule in quotes, as in '30 2 * * *'".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_schedule_without_quotes_is_recognized() {
        for line in ["job next 30 2 a.txt b.txt", "job next every 5m"] {
            assert!(said(line).contains("put the schedule in quotes"), "{line}");
        }
        assert!(!said("job next report other").contains("quotes"));
    }

    fn said(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let all = std::iter::once("drumtower".to_owned()).chain(words.clone());
        let error = crate::Cli::try_parse_from(all).expect_err(line);
        hint(error, &words).to_string()
    }

    #[test]
    fn every_word_has_a_command_that_exists_and_is_none_itself() {
        let root = crate::Cli::command();
        for (above, words, command) in WORDS {
            let mut at = &root;
            for word in above.split(' ').filter(|word| !word.is_empty()) {
                at = at.find_subcommand(word).expect("a verb");
            }
            for word in *words {
                assert!(
                    at.find_subcommand(word).is_none(),
                    "{above} {word} is a verb"
                );
            }
            let mut at = &root;
            for word in command.split(' ').skip(1) {
                match at.find_subcommand(word) {
                    Some(below) => at = below,
                    None => break,
                }
            }
            assert!(!at.has_subcommands(), "`{command}` is not a whole command");
        }
    }

    #[test]
    fn words_of_other_tools_lead_to_ours() {
        for (line, expected) in [
            ("job run hello", "`drumtower job trigger NAME` does that"),
            ("ls", "`drumtower job list` does that"),
            ("logs -f x", "`drumtower run logs RUN` does that"),
            ("job rm x", "`drumtower job delete NAME` does that"),
            ("token rm x", "`drumtower token revoke NAME` does that"),
            (
                "job create x --every 5s echo",
                "put `--` before the program",
            ),
        ] {
            let said = said(line);
            assert!(said.contains(expected), "{line}: {said}");
        }
    }

    #[test]
    fn mistyped_words_lead_to_the_nearest() {
        for (line, expected) in [
            ("jbo list", "'job'"),
            ("job tirgger x", "'trigger'"),
            ("job create x --evry 5s -- a", "'--every'"),
            ("job create x --overlap skp -- a", "'skip'"),
            ("run list --state faild", "'failed'"),
            ("job list -o jsn", "'json'"),
            ("import crontb x", "'crontab'"),
        ] {
            let said = said(line);
            assert!(
                said.contains("tip: ") && said.contains(expected),
                "{line}: {said}"
            );
        }
    }
}
