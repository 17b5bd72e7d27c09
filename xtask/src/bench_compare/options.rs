//! What was asked for, and what is passed on to `drumtower bench throughput`.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub commit: String,
    pub rounds: u32,
    pub seconds: u32,
    /// Runs a second to offer; by default more than two cores take.
    pub rate: u32,
    /// `batch` or `schedule`.
    pub path: String,
    /// The least median ratio of throughput, new over old.
    pub at_least: Option<f64>,
}

impl Options {
    /// Reads the command's own arguments: options with their values, and the commit.
    pub fn parse(own: &[String]) -> Result<Self> {
        let mut options = Self {
            commit: String::new(),
            rounds: 5,
            seconds: 15,
            rate: 150_000,
            path: "batch".to_owned(),
            at_least: None,
        };
        let mut words = own.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map_or("", String::as_str);
            match word.as_str() {
                "--rounds" => options.rounds = number(word, value(), 1)?,
                "--seconds" => options.seconds = number(word, value(), 1)?,
                "--rate" => options.rate = number(word, value(), 1)?,
                "--path" => options.path = path(value())?,
                "--at-least" => options.at_least = Some(ratio(value())?),
                commit => options.commit = commit.to_owned(),
            }
        }
        if options.commit.is_empty() || options.commit.starts_with('-') {
            bail!(
                "name the commit to compare with, such as `cargo xtask bench-compare HEAD~1 --rounds 5`"
            );
        }
        Ok(options)
    }

    /// The arguments of one bench. With a room, its store is made there.
    pub fn bench_arguments(&self, room: Option<&Path>) -> Vec<String> {
        let mut arguments: Vec<String> = ["bench", "throughput", "--output", "json"]
            .map(str::to_owned)
            .into();
        arguments.extend(["--rate".to_owned(), self.rate.to_string()]);
        arguments.extend(["--duration".to_owned(), format!("{}s", self.seconds)]);
        arguments.extend(["--path".to_owned(), self.path.clone()]);
        if let Some(room) = room {
            let store = format!("sqlite:{}", room.display());
            arguments.extend(["--store".to_owned(), store]);
        }
        arguments
    }
}

fn number(name: &str, text: &str, least: u32) -> Result<u32> {
    let number = u32::from_str(text).ok().filter(|given| *given >= least);
    number.ok_or_else(|| anyhow!("{name} {text}: give a whole number of at least {least}"))
}

fn path(text: &str) -> Result<String> {
    match text {
        "batch" | "schedule" => Ok(text.to_owned()),
        _ => bail!("--path {text}: give `batch` or `schedule`"),
    }
}

fn ratio(text: &str) -> Result<f64> {
    let ratio = f64::from_str(text).ok();
    let sensible = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    sensible.ok_or_else(|| anyhow!("--at-least {text}: give a ratio such as 0.9"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn defaults_hold_where_nothing_is_given() {
        let options = parse("1fcc9ec").unwrap();
        assert_eq!((options.rounds, options.seconds), (5, 15));
        assert_eq!(
            (options.commit.as_str(), options.at_least),
            ("1fcc9ec", None)
        );
    }

    #[test]
    fn what_is_given_reaches_the_bench() {
        let options =
            parse("--seconds 7 HEAD~1 --rate 900 --path schedule --at-least 0.9").unwrap();
        assert_eq!(
            (options.commit.as_str(), options.at_least),
            ("HEAD~1", Some(0.9))
        );
        let arguments = options.bench_arguments(Some(Path::new("/x"))).join(" ");
        assert_eq!(
            arguments,
            "bench throughput --output json --rate 900 --duration 7s --path schedule --store sqlite:/x"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (text, named) in [
            ("", "name the commit"),
            ("--rounds 0 HEAD", "--rounds 0"),
            ("--seconds x HEAD", "--seconds x"),
            ("--path both HEAD", "--path both"),
            ("--at-least NaN HEAD", "--at-least NaN"),
        ] {
            let refused = parse(text).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }
}
