//! The table of states, written down a second time.
//!
//! The engine has its own. A run whose history the two do not agree on is a finding, whichever of them is wrong.

use drumtower_core::model::{Run, RunState};

/// The first thing that is wrong with the path of a run, in words.
pub(super) fn fault(run: &Run) -> Option<String> {
    let mut path = run.transitions.iter();
    let Some(first) = path.next() else {
        return Some("it has no transitions at all".to_owned());
    };
    if first.to != RunState::Pending {
        return Some(format!("it begins as {}", first.to.as_str()));
    }
    let mut state = first.to;
    for step in path {
        if !follows(state, step.to) {
            return Some(format!(
                "{} was followed by {}",
                state.as_str(),
                step.to.as_str()
            ));
        }
        state = step.to;
    }
    (state != run.state).then(|| {
        format!(
            "its path ends in {} and its row says {}",
            state.as_str(),
            run.state.as_str()
        )
    })
}

/// How many terminal states the path holds, the row's own included.
pub(super) fn terminal_states(run: &Run) -> usize {
    let ended = run.transitions.iter().filter(|step| ends(step.to)).count();
    let row_disagrees = ends(run.state)
        && run
            .transitions
            .last()
            .is_none_or(|last| last.to != run.state);
    ended + usize::from(row_disagrees)
}

pub(super) fn ends(state: RunState) -> bool {
    match state {
        RunState::Completed | RunState::Failed | RunState::Cancelled => true,
        RunState::Pending | RunState::Scheduled | RunState::Running => false,
    }
}

fn follows(state: RunState, next: RunState) -> bool {
    let allowed: &[RunState] = match state {
        RunState::Pending => &[RunState::Scheduled, RunState::Failed, RunState::Cancelled],
        RunState::Scheduled => &[
            RunState::Running,
            RunState::Completed,
            RunState::Failed,
            RunState::Cancelled,
            RunState::Pending,
        ],
        RunState::Running => &[
            RunState::Completed,
            RunState::Failed,
            RunState::Cancelled,
            RunState::Pending,
        ],
        RunState::Completed | RunState::Failed | RunState::Cancelled => &[],
    };
    allowed.contains(&next)
}
