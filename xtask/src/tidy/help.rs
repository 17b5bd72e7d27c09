//! What a `--help` page offers: the verbs below it and the flags it takes.

use std::collections::{BTreeMap, BTreeSet};

/// One page, as the command-line parser prints it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Help {
    pub verbs: BTreeSet<String>,
    /// Each flag, and whether a value follows it.
    pub flags: BTreeMap<String, bool>,
    /// Whether words that are no verbs have a meaning.
    pub takes_words: bool,
}

impl Help {
    pub fn parse(text: &str) -> Help {
        let mut help = Help::default();
        let mut in_commands = false;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let content = line.trim();
            if indent == 0 && !content.is_empty() {
                in_commands = content == "Commands:";
                help.takes_words |= content == "Arguments:";
            } else if in_commands && indent == 2 {
                help.verbs
                    .extend(content.split_whitespace().next().map(str::to_owned));
            } else if content.starts_with('-') {
                help.read_flag(content);
            }
        }
        help
    }

    /// Reads `-o, --output <FORMAT>  How to print`.
    fn read_flag(&mut self, content: &str) {
        let definition = content.split("  ").next().unwrap_or_default();
        let takes_value = definition.contains('<') || definition.contains('[');
        let names = definition
            .split([' ', ',', '=', '['])
            .filter(|word| is_flag(word));
        self.flags
            .extend(names.map(|name| (name.to_owned(), takes_value)));
    }

    /// Whether the flag in `word` takes the next word as its value; an error if it is no flag of this page.
    pub fn consumes_next(&self, word: &str) -> Result<bool, String> {
        if word.starts_with("--") {
            let (name, attached) = match word.split_once('=') {
                Some((name, _)) => (name, true),
                None => (word, false),
            };
            let takes_value = self.flags.get(name).ok_or_else(|| name.to_owned())?;
            return Ok(*takes_value && !attached);
        }
        // `-ojson` is `-o json`; `-fx` may be two flags, of which the first is checked.
        let name: String = word.chars().take(2).collect();
        let takes_value = self.flags.get(&name).ok_or(name)?;
        Ok(*takes_value && word.chars().count() == 2)
    }
}

fn is_flag(word: &str) -> bool {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
    name.is_some_and(|name| name.starts_with(|it: char| it.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Runs things\n\nUsage: x [OPTIONS] <COMMAND>\n\nCommands:\n  job   Jobs\n          wrapped\n  run   Runs\n\n\
                        Options:\n  -o, --output <FORMAT>\n          How to print\n\n          Possible values:\n          - table: a table\n      --demo         With demo jobs\n  -h, --help         Print help\n";

    #[test]
    fn verbs_and_flags_are_read() {
        let help = Help::parse(PAGE);
        assert_eq!(
            help.verbs.iter().map(String::as_str).collect::<Vec<_>>(),
            ["job", "run"]
        );
        let flags: Vec<(&str, bool)> = help
            .flags
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        assert_eq!(
            flags,
            [
                ("--demo", false),
                ("--help", false),
                ("--output", true),
                ("-h", false),
                ("-o", true)
            ]
        );
    }

    #[test]
    fn values_are_told_from_words() {
        let help = Help::parse(PAGE);
        assert_eq!(help.consumes_next("--output"), Ok(true));
        assert_eq!(help.consumes_next("--output=json"), Ok(false));
        assert_eq!(help.consumes_next("-ojson"), Ok(false));
        assert_eq!(help.consumes_next("--demo"), Ok(false));
        assert_eq!(help.consumes_next("--no"), Err("--no".to_owned()));
        assert_eq!(help.consumes_next("-x"), Err("-x".to_owned()));
    }
}
