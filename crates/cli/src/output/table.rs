//! Rows and columns.

use anstyle::Style;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::{Cell, View};

/// A heading, and how to read its cell from an item of a listing.
pub struct Column {
    pub head: &'static str,
    pub cell: fn(&Value) -> Cell,
}

/// The whole table, each line with its end.
pub fn render(items: &[Value], columns: &[Column], view: View) -> String {
    let rows: Vec<Vec<Cell>> = items
        .iter()
        .map(|item| columns.iter().map(|column| (column.cell)(item)).collect())
        .collect();
    if !view.terminal {
        let plain = |row: &Vec<Cell>| {
            row.iter()
                .map(|cell| {
                    let style = if view.color {
                        cell.style()
                    } else {
                        Style::new()
                    };
                    format!("{style}{}{style:#}", cell.words(view))
                })
                .collect::<Vec<_>>()
                .join("\t")
        };
        return rows.iter().map(|row| plain(row) + "\n").collect();
    }
    let head: Vec<(String, Style)> = columns
        .iter()
        .map(|column| (column.head.to_owned(), Style::new().bold()))
        .collect();
    let body = rows.iter().map(|row| {
        row.iter()
            .map(|cell| (cell.words(view), cell.style()))
            .collect()
    });
    let lines: Vec<Vec<(String, Style)>> = std::iter::once(head).chain(body).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            lines
                .iter()
                .map(|line| line[at].0.width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    lines
        .iter()
        .map(|line| aligned(line, &widths, view.color))
        .collect()
}

fn aligned(line: &[(String, Style)], widths: &[usize], color: bool) -> String {
    let mut text = String::new();
    for (index, ((words, style), width)) in line.iter().zip(widths).enumerate() {
        let style = if color { *style } else { Style::new() };
        text.push_str(&format!("{style}{words}{style:#}"));
        // The last column ends where its words end.
        if index + 1 < line.len() {
            text.push_str(&" ".repeat(width.saturating_sub(words.width()) + 2));
        }
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: &[Column] = &[
        Column {
            head: "NAME",
            cell: |item| Cell::text(item, "name"),
        },
        Column {
            head: "STATE",
            cell: |item| Cell::state(item, "state"),
        },
        Column {
            head: "WHEN",
            cell: |item| Cell::time(item, "at"),
        },
        Column {
            head: "WORDS",
            cell: |item| Cell::text(item, "error"),
        },
    ];

    fn items() -> Vec<Value> {
        vec![
            json!({"name": "hello", "state": "COMPLETED", "at": "2026-01-01T00:00:00.000Z", "error": null}),
            json!({"name": "时间表", "state": "FAILED", "at": null, "error": "a\tb\u{1b}[31m"}),
        ]
    }

    fn view(terminal: bool, color: bool) -> View {
        View {
            terminal,
            color,
            now_ms: 1_767_225_690_000,
        }
    }

    #[test]
    fn a_terminal_gets_headings_columns_and_relative_times() {
        let expected = "NAME    STATE      WHEN       WORDS\nhello   COMPLETED  1m30s ago\n时间表  FAILED     -          a b [31m\n";
        assert_eq!(render(&items(), COLUMNS, view(true, false)), expected);
    }

    #[test]
    fn a_pipe_gets_tabs_and_full_times() {
        let expected = "hello\tCOMPLETED\t2026-01-01T00:00:00.000Z\t\n时间表\tFAILED\t\ta b [31m\n";
        assert_eq!(render(&items(), COLUMNS, view(false, false)), expected);
    }

    #[test]
    fn colour_follows_the_state_and_changes_no_column() {
        let colored = render(&items(), COLUMNS, view(true, true));
        assert!(
            colored.contains("\u{1b}[32mCOMPLETED\u{1b}[0m  1m30s ago"),
            "{colored:?}"
        );
        assert!(
            colored.contains("\u{1b}[31mFAILED\u{1b}[0m     -"),
            "{colored:?}"
        );
    }
}
