//! A plan for people.

use anstyle::{AnsiColor, Style};
use drumtower_core::model::Change;

use super::change;
use super::plan::{Action, Step};
use crate::output::{View, tame};

/// One line a step, one line below it for each key that changes, and the sum.
pub fn plan(steps: &[Step], view: View) -> String {
    let mut text = String::new();
    for step in steps {
        let sign = match step.action {
            Action::Create => '+',
            Action::Change => '~',
            Action::Unchanged => '=',
            Action::Delete => '-',
        };
        let style = style(step.action, view);
        text.push_str(&format!("{style}{sign} {}{style:#}\n", tame(&step.title())));
        for change in &step.changes {
            text.push_str(&format!("    {}\n", tame(&change::words(change))));
        }
    }
    text.push_str(&format!("plan: {}\n", sum(steps)));
    text
}

/// The changes alone, one a line.
pub fn changes(changes: &[Change]) -> String {
    let lines = changes
        .iter()
        .map(|change| tame(&change::words(change)) + "\n");
    lines.collect()
}

fn sum(steps: &[Step]) -> String {
    let count = |action| steps.iter().filter(|step| step.action == action).count();
    format!(
        "{} to create, {} to change, {} to delete, {} unchanged",
        count(Action::Create),
        count(Action::Change),
        count(Action::Delete),
        count(Action::Unchanged)
    )
}

fn style(action: Action, view: View) -> Style {
    let style = match action {
        Action::Create => AnsiColor::Green.on_default(),
        Action::Change => AnsiColor::Yellow.on_default(),
        Action::Delete => AnsiColor::Red.on_default(),
        Action::Unchanged => Style::new().dimmed(),
    };
    if view.color { style } else { Style::new() }
}
