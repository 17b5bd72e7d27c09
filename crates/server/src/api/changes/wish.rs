//! What a caller wants to hear, and where it wants to begin.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, Uri};
use drumtower_core::model::{NamespaceName, RunState};

use super::super::problem::{Kind, Problem};
use super::super::query::Parameters;
use super::id::{Ids, Known};
use crate::auth::Principal;
use crate::driver::tap::{Fact, Interest};

/// Names of jobs that one caller may list.
const JOBS: usize = 1000;
/// Messages a second unless the caller says otherwise, and at most.
const RATE: u32 = 200;
const HIGHEST_RATE: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    Run,
    Job,
    Worker,
    Calendar,
    Queue,
    Backfill,
    Breaker,
}

impl About {
    const ALL: [(&str, Self); 7] = [
        ("run", Self::Run),
        ("job", Self::Job),
        ("worker", Self::Worker),
        ("calendar", Self::Calendar),
        ("queue", Self::Queue),
        ("backfill", Self::Backfill),
        ("breaker", Self::Breaker),
    ];

    /// What a caller may ask for.
    pub fn words() -> [&'static str; 7] {
        Self::ALL.map(|(word, _)| word)
    }
}

#[derive(Debug)]
pub struct Wish {
    namespace: Option<NamespaceName>,
    jobs: BTreeSet<String>,
    states: BTreeSet<RunState>,
    kinds: BTreeSet<About>,
    /// Messages a second at most.
    pub rate: u32,
}

impl Wish {
    pub fn read(uri: &Uri, principal: &Principal) -> Result<Self, Problem> {
        let parameters = Parameters::read(uri, &["namespace", "job", "state", "kind", "max_rate"])?;
        let namespace = principal.narrow(parameters.one("namespace")?)?;
        let jobs: BTreeSet<String> = parameters.all("job").map(str::to_owned).collect();
        if jobs.len() > JOBS {
            return Err(Problem::parameter(
                "job",
                format!(
                    "job: {} names are more than {JOBS}: leave it out and pick what you need",
                    jobs.len()
                ),
            ));
        }
        let states = parameters
            .all("state")
            .map(state)
            .collect::<Result<BTreeSet<_>, _>>()?;
        let mut kinds = parameters
            .all("kind")
            .map(about)
            .collect::<Result<BTreeSet<_>, _>>()?;
        if kinds.is_empty() {
            kinds.insert(About::Run);
            if states.is_empty() {
                kinds.extend([About::Job, About::Backfill, About::Breaker]);
            }
            if states.is_empty() && jobs.is_empty() {
                kinds.extend([About::Worker, About::Calendar, About::Queue]);
            }
        }
        Ok(Self {
            namespace,
            jobs,
            states,
            kinds,
            rate: rate(&parameters)?,
        })
    }

    pub fn interest(&self) -> Interest {
        if self.kinds.contains(&About::Worker) {
            Interest::CommittedAndWorkers
        } else {
            Interest::Committed
        }
    }

    pub fn wants(&self, fact: &Fact) -> bool {
        let kind = match fact {
            Fact::Run(_) | Fact::Unfired(_) => About::Run,
            Fact::Job(_) => About::Job,
            Fact::Worker(_) => About::Worker,
            Fact::Calendar(_) => About::Calendar,
            Fact::Queue(_) => About::Queue,
            Fact::Backfill(_) => About::Backfill,
            Fact::Breaker(_) => About::Breaker,
        };
        self.kinds.contains(&kind) && self.sees(fact) && self.means(fact)
    }

    /// Workers that serve every namespace belong to none, and everyone sees them.
    fn sees(&self, fact: &Fact) -> bool {
        let Some(wanted) = &self.namespace else {
            return true;
        };
        fact.namespace().is_none_or(|namespace| namespace == wanted)
    }

    fn means(&self, fact: &Fact) -> bool {
        let job = match fact {
            Fact::Run(run) => {
                if !self.states.is_empty() && !self.states.contains(&run.state) {
                    return false;
                }
                &run.job.name
            }
            Fact::Unfired(_) if !self.states.is_empty() => return false,
            Fact::Unfired(unfired) => &unfired.job.name,
            Fact::Job(job) => &job.job.name,
            Fact::Backfill(backfill) => &backfill.job,
            Fact::Breaker(breaker) => &breaker.job.name,
            Fact::Worker(_) | Fact::Calendar(_) | Fact::Queue(_) => return true,
        };
        self.jobs.is_empty() || self.jobs.contains(job.as_str())
    }
}

fn rate(parameters: &Parameters) -> Result<u32, Problem> {
    let rate = parameters.one("max_rate")?.unwrap_or(RATE);
    if (1..=HIGHEST_RATE).contains(&rate) {
        Ok(rate)
    } else {
        Err(Problem::parameter(
            "max_rate",
            format!("max_rate: `{rate}` is not between 1 and {HIGHEST_RATE} messages a second"),
        ))
    }
}

fn state(text: &str) -> Result<RunState, Problem> {
    let given = text.to_ascii_uppercase();
    let mut all = RunState::ALL.into_iter();
    all.find(|state| state.as_str() == given).ok_or_else(|| {
        let known = RunState::ALL.map(RunState::as_str).join(", ");
        let text: String = text.chars().take(64).collect();
        Problem::parameter("state", format!("state: `{text}` is none of {known}"))
    })
}

fn about(text: &str) -> Result<About, Problem> {
    let mut all = About::ALL.into_iter();
    let found = all.find(|(word, _)| *word == text);
    found.map(|(_, about)| about).ok_or_else(|| {
        let text: String = text.chars().take(64).collect();
        let known = About::words().join(", ");
        Problem::parameter("kind", format!("kind: `{text}` is none of {known}"))
    })
}

/// Where a caller begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    Now,
    /// After this fact.
    After(u64),
    /// What the caller knows is of another life of the server.
    OtherLife,
}

impl Resume {
    pub fn read(headers: &HeaderMap, ids: &Ids) -> Result<Self, Problem> {
        let Some(given) = headers.get("last-event-id") else {
            return Ok(Self::Now);
        };
        match given.to_str().ok().and_then(|text| ids.open(text)) {
            Some(Known::Place(seq)) => Ok(Self::After(seq)),
            Some(Known::OtherLife) => Ok(Self::OtherLife),
            None => Err(Problem {
                field: Some("Last-Event-ID".to_owned()),
                ..Problem::new(
                    Kind::InvalidHeader,
                    "Last-Event-ID: this is not an id of this stream: send the last one that you got, or none",
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_core::model::{Actor, Role};

    fn wish(query: &str) -> Result<Wish, Problem> {
        let principal = Principal {
            actor: Actor::new("test"),
            role: Role::Viewer,
            namespace: None,
            token: None,
        };
        Wish::read(&format!("/x?{query}").parse().unwrap(), &principal)
    }

    #[test]
    fn filters_choose_the_kinds_that_they_speak_of() {
        let kinds = |query: &str| wish(query).unwrap().kinds.into_iter().collect::<Vec<_>>();
        assert_eq!(kinds("").len(), About::ALL.len());
        let of_a_job = [About::Run, About::Job, About::Backfill, About::Breaker];
        assert_eq!(
            kinds("job=a"),
            BTreeSet::from(of_a_job).into_iter().collect::<Vec<_>>()
        );
        assert_eq!(kinds("state=failed"), [About::Run]);
        assert_eq!(kinds("state=failed&kind=worker"), [About::Worker]);
        for query in [
            "state=ill",
            "kind=event",
            "max_rate=0",
            "max_rate=1001",
            "jobs=a",
        ] {
            assert!(wish(query).is_err(), "{query}");
        }
    }

    #[test]
    fn only_ids_of_this_life_are_places_in_it() {
        let (ids, others) = (Ids::new().unwrap(), Ids::new().unwrap());
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", text.parse().unwrap());
            Resume::read(&headers, &ids)
        };
        assert_eq!(Resume::read(&HeaderMap::new(), &ids), Ok(Resume::Now));
        assert_eq!(read(&ids.seal(7)), Ok(Resume::After(7)));
        assert_eq!(read(&others.seal(7)), Ok(Resume::OtherLife));
        for text in ["", "7", "0123abcd-", "0123abcd-7", "zzzzzzzz-1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
