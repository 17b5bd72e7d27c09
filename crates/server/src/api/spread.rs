//! Carries out many small things that one request asks for, each where what it is about is owned.
//!
//! Things go in rounds: those that the view says are another server's are asked of that one in a request of their own, all
//! servers at once, and the rest is done here. What nobody took, because it moved meanwhile, goes into the next round, until
//! the bound on waiting for an owner. Each thing is done once: only what was refused as another's is tried again, and what is
//! recognised where it was done before.

use std::collections::BTreeMap;

use axum::body::{self, Bytes};
use axum::http::StatusCode;
use drumtower_core::model::SegmentId;
use futures_util::future::{join, join_all};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

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
}

impl<T> Settled<T> {
    /// As `problem` says, in the words of `told`.
    pub fn refused(problem: Problem, told: impl FnOnce(Problem) -> T) -> Self {
        match problem.elsewhere {
            Some(_) => Self::Elsewhere(told(problem)),
            None => Self::Done(told(problem)),
        }
    }
}

impl<T> Settled<T> {
    fn told(self) -> T {
        match self {
            Self::Done(told) | Self::Elsewhere(told) | Self::Unanswered(told) => told,
        }
    }

    /// That nobody took it this time does not undo what may have been done before.
    fn after(self, before: Option<Self>) -> Self {
        match (self, before) {
            (Self::Elsewhere(_), Some(Self::Unanswered(told))) => Self::Unanswered(told),
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
            let answer = body::to_bytes(response.into_body(), ANSWER_BYTES).await;
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
                Err(problem) => all(&|place| Settled::Done(work.failed(place, problem.clone()))),
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

/// What another server told of one thing. One that it refused as another's may be tried again.
pub fn settled<T>(told: T, problem: impl FnOnce(&T) -> Option<&Value>) -> Settled<T> {
    let code = problem(&told).and_then(|problem| problem["code"].as_str());
    let moved = code.and_then(Kind::of_code) == Some(Kind::NotReady);
    match moved {
        true => Settled::Elsewhere(told),
        false => Settled::Done(told),
    }
}
