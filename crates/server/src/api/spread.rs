//! Carries out many small things that one request asks for, each where what it is about is owned.
//!
//! Things go in rounds: those that the view says are another server's are asked of that one in a request of their own, all
//! servers at once, and the rest is done here. What nobody took, because it moved meanwhile, goes into the next round, until
//! the bound on waiting for an owner. Each thing is done once: only what was refused as another's is tried again, and what is
//! recognised where it was done before.

use std::collections::BTreeMap;

use axum::body::{Bytes, to_bytes};
use axum::http::StatusCode;
use drumtower_core::model::SegmentId;
use futures_util::future::{join, join_all};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::body::BATCH;
use super::problem::{Kind, Problem};
use super::{Edge, internal};
use crate::cluster::{self, Errand, Held, Next, OWNER_WITHIN, Said};

/// More than any answer about the things of one request takes.
const ANSWER_BYTES: usize = 32 << 20;

/// What came of one thing.
pub enum Settled<T> {
    Done(T),
    /// Another server owns what it is about; this is told if none takes it.
    Elsewhere(T),
    /// Another server may have done it, and would know it again; this is told if none says so.
    Unanswered(T),
    /// Nothing was done this time, and it is not worth another: this server ends or has too much to do.
    Undone(T),
}

impl<T> Settled<T> {
    /// As `problem` of this server says, in the words of `told`.
    pub fn refused(problem: Problem, told: impl FnOnce(Problem) -> T) -> Self {
        match problem.kind {
            _ if problem.elsewhere.is_some() => Self::Elsewhere(told(problem)),
            // Its segments are on the move, or another server is about to take them.
            Kind::NotReady => Self::Elsewhere(told(problem)),
            Kind::Stopping | Kind::Overloaded => Self::Undone(told(problem)),
            _ => Self::Done(told(problem)),
        }
    }

    /// As a problem of that kind says that another server told, in the words of `told`. One that ends leaves its segments to
    /// the next.
    fn refused_there(kind: Option<Kind>, told: T) -> Self {
        match kind {
            Some(Kind::NotReady | Kind::Stopping) => Self::Elsewhere(told),
            Some(Kind::Overloaded) => Self::Undone(told),
            _ => Self::Done(told),
        }
    }
}

impl<T> Settled<T> {
    fn told(self) -> T {
        match self {
            Self::Done(told)
            | Self::Elsewhere(told)
            | Self::Unanswered(told)
            | Self::Undone(told) => told,
        }
    }

    /// That nobody did it this time does not undo what may have been done before.
    fn after(self, before: Option<Self>) -> Self {
        match (self, before) {
            (Self::Elsewhere(_), Some(Self::Unanswered(told))) => Self::Unanswered(told),
            (Self::Undone(_), Some(Self::Unanswered(told))) => Self::Done(told),
            (Self::Undone(told), _) => Self::Done(told),
            (settled, _) => settled,
        }
    }
}

/// Things of one kind, by their places in the request.
pub trait Work: Sync {
    type Outcome: Send;

    fn segment(&self, place: usize) -> SegmentId;

    /// Does these here: an outcome for each, in their order.
    fn here(&self, places: &[usize]) -> impl Future<Output = Vec<Settled<Self::Outcome>>> + Send;

    /// The request that asks another server for these.
    fn part(&self, errand: &Errand, places: &[usize]) -> Result<Part, Problem>;

    /// What the other's answer says of each of them.
    fn read(
        &self,
        answer: &Bytes,
        places: &[usize],
    ) -> Result<Vec<Settled<Self::Outcome>>, Problem>;

    /// What is told of one that came to nothing.
    fn failed(&self, place: usize, problem: Problem) -> Self::Outcome;
}

pub struct Part {
    pub held: Held,
    /// Whether to be carried out twice is as good as once.
    pub again: bool,
}

/// An outcome for each of `places`, in their order. Without an errand everything is done here or refused.
pub async fn spread<W: Work>(
    edge: &Edge,
    errand: Option<&Errand>,
    work: &W,
    places: Vec<usize>,
) -> Vec<W::Outcome> {
    let until = Instant::now() + OWNER_WITHIN;
    let mut outcomes: BTreeMap<usize, Settled<W::Outcome>> = BTreeMap::new();
    let mut open = places.clone();
    loop {
        let (mut own, mut others) = (Vec::new(), BTreeMap::<String, Vec<usize>>::new());
        for place in &open {
            match errand.map(|_| edge.cluster.owner(work.segment(*place))) {
                Some(Next::At(address)) => others.entry(address).or_default().push(*place),
                // The view may be older than the truth, which this server's own engine tells.
                None | Some(Next::Here | Next::Nobody) => own.push(*place),
            }
        }
        let asked = others.iter().map(async |(address, places)| match errand {
            Some(errand) => ask(edge, errand, work, address, places).await,
            None => Vec::new(),
        });
        let here = async {
            match own.is_empty() {
                true => Vec::new(),
                false => work.here(&own).await,
            }
        };
        let (done, told) = join(here, join_all(asked)).await;
        let told = others
            .values()
            .flatten()
            .copied()
            .zip(told.into_iter().flatten());
        for (place, settled) in own.iter().copied().zip(done).chain(told) {
            let before = outcomes.remove(&place);
            outcomes.insert(place, settled.after(before));
        }
        open.retain(|place| !matches!(outcomes.get(place), Some(Settled::Done(_))));
        if open.is_empty() || errand.is_none() || Instant::now() >= until {
            break;
        }
        edge.cluster.pause().await;
    }
    let outcome = |place: usize| match outcomes.remove(&place) {
        Some(settled) => settled.told(),
        None => work.failed(place, internal(&"a part of a request was left unanswered")),
    };
    places.into_iter().map(outcome).collect()
}

async fn ask<W: Work>(
    edge: &Edge,
    errand: &Errand,
    work: &W,
    address: &str,
    places: &[usize],
) -> Vec<Settled<W::Outcome>> {
    let all = |told: &dyn Fn(usize) -> Settled<W::Outcome>| {
        let told = places.iter().map(|place| told(*place));
        told.collect::<Vec<_>>()
    };
    let Part { held, again } = match work.part(errand, places) {
        // Said in full it may be more than a request may hold.
        Ok(part) if part.held.body_bytes() > BATCH && places.len() > 1 => {
            let (some, others) = places.split_at(places.len() / 2);
            let mut told = Box::pin(ask(edge, errand, work, address, some)).await;
            told.extend(Box::pin(ask(edge, errand, work, address, others)).await);
            return told;
        }
        Ok(part) => part,
        Err(problem) => {
            return all(&|place| Settled::Done(work.failed(place, problem.clone())));
        }
    };
    let unanswered = |place| Settled::Unanswered(work.failed(place, cluster::unanswered()));
    let why = match held.send(&edge.cluster, address, again).await {
        Said::NotMine(_) => format!("{address} does not own what this is about: try again"),
        Said::Nothing(why) => format!("{why}: try again"),
        Said::CutOff(_) => return all(&unanswered),
        Said::Answer(response) => {
            let status = response.status();
            let answer = to_bytes(response.into_body(), ANSWER_BYTES).await;
            let read = match answer {
                Ok(answer) if status.is_success() => work.read(&answer, places),
                Ok(answer) => Err(refusal(status, &answer)),
                Err(_) if again => return all(&unanswered),
                Err(_) => Err(cluster::unanswered()),
            };
            return match read {
                Ok(told) if told.len() == places.len() => told,
                Ok(_) => all(&|place| {
                    let problem = internal(&"another server told of other things than asked for");
                    Settled::Done(work.failed(place, problem))
                }),
                Err(problem) => all(&|place| {
                    let told = work.failed(place, problem.clone());
                    Settled::refused_there(Some(problem.kind), told)
                }),
            };
        }
    };
    let problem = Problem::new(Kind::NotReady, why);
    all(&|place| Settled::Elsewhere(work.failed(place, problem.clone())))
}

/// The problem that another server answered a part with.
fn refusal(status: StatusCode, answer: &Bytes) -> Problem {
    #[derive(serde::Deserialize)]
    struct Told {
        code: String,
        detail: String,
        field: Option<String>,
    }
    let told: Option<Told> = serde_json::from_slice(answer).ok();
    let known = told.and_then(|told| Some((Kind::of_code(&told.code)?, told.detail, told.field)));
    match known {
        Some((kind, detail, field)) => Problem {
            field,
            ..Problem::new(kind, detail)
        },
        None => internal(&format!("another server answered with {status}")),
    }
}

/// What another server answered.
pub fn parse<T: DeserializeOwned>(answer: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(answer).map_err(|error| {
        internal(&format!(
            "another server answered with something else: {error}"
        ))
    })
}

/// What another server told of one thing, with the problem in it if it came to nothing. One that it refused as another's may
/// be tried again.
pub fn settled<T>(told: T, problem: Option<&Value>) -> Settled<T> {
    let code = problem.and_then(|problem| problem["code"].as_str());
    let kind = code.and_then(Kind::of_code);
    Settled::refused_there(kind, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(settled: Settled<&str>) -> (bool, &str) {
        (matches!(settled, Settled::Done(_)), settled.told())
    }

    #[test]
    fn what_may_have_been_done_is_not_told_as_undone() {
        let before = || Some(Settled::Unanswered("unknown"));
        assert_eq!(
            told(Settled::Elsewhere("not mine").after(before())),
            (false, "unknown")
        );
        assert_eq!(
            told(Settled::Undone("stopping").after(before())),
            (true, "unknown")
        );
        assert_eq!(told(Settled::Done("made").after(before())), (true, "made"));
        assert_eq!(
            told(Settled::Undone("stopping").after(None)),
            (true, "stopping")
        );
    }

    #[test]
    fn who_is_not_ready_or_ends_leaves_it_to_another() {
        let there = |kind| Settled::refused_there(Some(kind), ());
        for kind in [Kind::NotReady, Kind::Stopping] {
            assert!(matches!(there(kind), Settled::Elsewhere(())), "{kind:?}");
        }
        assert!(matches!(there(Kind::NoSuchJob), Settled::Done(())));
        let here = |kind| Settled::refused(Problem::new(kind, "why"), drop);
        assert!(matches!(here(Kind::NotReady), Settled::Elsewhere(())));
        assert!(matches!(here(Kind::Stopping), Settled::Undone(())));
    }
}
