//! Query parameters: each name is known, and given once unless it may be repeated.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::Query;
use axum::http::Uri;
use drumtower_core::model::{Limits, WallMs};

use super::problem::{Kind, Problem};
use super::time;

const DEFAULT_PAGE_ROWS: usize = 100;

pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the query of `uri`; a name outside `known` is refused with the nearest known one.
    pub fn read(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|error| {
            Problem::new(
                Kind::InvalidParameter,
                format!("the query cannot be read: {error}"),
            )
        })?;
        match pairs
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            None => Ok(Self(pairs)),
            Some((name, _)) => Err(unknown(name, known)),
        }
    }

    /// Everything that was given, as it was given.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The texts of a parameter that may be repeated.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(given, _)| given == name)
            .map(|(_, text)| text.as_str())
    }

    /// The text of a parameter that is given at most once.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut texts = self
            .0
            .iter()
            .filter(|(given, _)| given == name)
            .map(|(_, text)| text.as_str());
        let first = texts.next();
        match texts.next() {
            None => Ok(first),
            Some(_) => Err(Problem::parameter(
                name,
                format!("`{name}` is given twice: give it once"),
            )),
        }
    }

    /// The parsed value of a parameter that is given at most once.
    pub fn one<T>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T: FromStr,
        T::Err: Display,
    {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|error| Problem::parameter(name, format!("{name}: {error}")))
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        match self.text(name)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(text) => Err(Problem::parameter(
                name,
                format!("{name}: `{text}` is neither `true` nor `false`"),
            )),
        }
    }

    /// The instant that a parameter names.
    pub fn instant(&self, name: &str) -> Result<Option<WallMs>, Problem> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        time::instant(name, text)
            .map(Some)
            .map_err(|problem| Problem::parameter(name, problem.detail))
    }

    /// How many rows the caller wants on a page.
    pub fn limit(&self) -> Result<usize, Problem> {
        let limit = self.one("limit")?.unwrap_or(DEFAULT_PAGE_ROWS);
        if (1..=Limits::PAGE_ROWS).contains(&limit) {
            Ok(limit)
        } else {
            Err(Problem::parameter(
                "limit",
                format!(
                    "limit: `{limit}` is not between 1 and {}",
                    Limits::PAGE_ROWS
                ),
            ))
        }
    }
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let name: String = name.chars().take(64).collect();
    let remedy = match (super::nearest(&name, known.iter().copied()), known) {
        (Some(nearest), _) => format!("did you mean `{nearest}`?"),
        (None, []) => "there are none here".to_owned(),
        (None, known) => format!("there are {}", known.join(", ")),
    };
    let problem = Problem::new(
        Kind::UnknownParameter,
        format!("there is no query parameter `{name}`: {remedy}"),
    );
    Problem {
        field: Some(name),
        ..problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, known: &[&str]) -> Result<Parameters, Problem> {
        Parameters::read(&format!("/x?{query}").parse().unwrap(), known)
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        let problem = read("limt=3", &["limit", "cursor"]).err().unwrap();
        assert_eq!(problem.kind, Kind::UnknownParameter);
        assert!(
            problem.detail.contains("did you mean `limit`?"),
            "{}",
            problem.detail
        );
        let problem = read("x=3", &[]).err().unwrap();
        assert!(problem.detail.contains("none here"), "{}", problem.detail);
    }

    #[test]
    fn values_are_decoded_and_checked() {
        let parameters = read(
            "label=a%3Db&label=c=d&limit=7",
            &["label", "limit", "paused"],
        )
        .unwrap();
        assert_eq!(parameters.all("label").collect::<Vec<_>>(), ["a=b", "c=d"]);
        assert_eq!(parameters.limit(), Ok(7));
        assert_eq!(parameters.flag("paused"), Ok(None));
        assert!(parameters.text("label").is_err(), "given twice");
        for query in ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit="] {
            assert!(read(query, &["limit"]).unwrap().limit().is_err(), "{query}");
        }
    }
}
