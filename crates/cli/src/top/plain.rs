//! The figures as text, once.

use super::model::{Model, Pane};
use crate::output::{View, text};

/// The line of totals and rates.
pub fn summary(model: &Model) -> Vec<String> {
    let rates = &model.rates;
    let now = &model.now;
    let made = rates
        .made
        .map_or_else(|| "-".to_owned(), |made| format!("{made:.1}"));
    let bound = |bound: Option<super::model::Bound>| bound.map_or("-".to_owned(), |it| it.words());
    let or_dash = |field: &str| Some(text(now, field)).filter(|it| !it.is_empty());
    vec![
        format!(
            "runs: {} live, {} waiting, {} parked   workers: {}",
            or_dash("runs.live").unwrap_or("-".to_owned()),
            text(now, "runs.waiting"),
            or_dash("runs.parked").unwrap_or("-".to_owned()),
            text(now, "workers_total"),
        ),
        format!(
            "a second: {made} made, {:.1} started, {:.1} completed, {:.1} failed   start delay: p50 {}, p99 {}",
            rates.started,
            rates.completed,
            rates.failed,
            bound(rates.p50_s),
            bound(rates.p99_s),
        ),
    ]
}

pub fn words(model: &Model, _view: View) -> String {
    let mut out = summary(model).join("\n") + "\n";
    for pane in Pane::ALL {
        let rows = model.rows(pane);
        if rows.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", pane.title()));
        let heads = pane.heads().iter().map(|head| (*head).to_owned()).collect();
        let lines: Vec<Vec<String>> = std::iter::once(heads)
            .chain(rows.into_iter().map(|row| row.cells))
            .collect();
        for line in &lines {
            let cells: Vec<String> = line
                .iter()
                .enumerate()
                .map(|(at, cell)| {
                    let width = lines.iter().map(|it| it[at].chars().count()).max();
                    format!("{cell:<width$}", width = width.unwrap_or(0))
                })
                .collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
    }
    out
}
