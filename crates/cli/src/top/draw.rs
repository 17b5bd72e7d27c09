//! The picture: totals, three tables, a line of help, and details above them.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, TableState};
use unicode_width::UnicodeWidthStr;

use super::model::{Model, Pane};
use super::plain;
use crate::output::{duration, text};

const HELP: &str = "q quit  Tab table  ↑↓ choose  Enter details  s sort  / filter  p pause";

pub fn all(frame: &mut Frame<'_>, model: &mut Model) {
    let area = frame.area();
    let parts = Layout::vertical([
        Constraint::Length(3),
        Constraint::Fill(2),
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(1),
    ])
    .split(area);
    frame.render_widget(head(model), parts[0]);
    for (pane, part) in Pane::ALL.into_iter().zip([parts[1], parts[2], parts[3]]) {
        table(frame, model, pane, part);
    }
    frame.render_widget(foot(model), parts[4]);
    if let Some(lines) = &model.popup {
        popup(frame, lines, area);
    }
}

fn head(model: &Model) -> Paragraph<'static> {
    let up = model
        .now
        .get("uptime_ms")
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0);
    let mut title = format!(
        "drumtower {}  up {}",
        text(&model.now, "version"),
        duration(up)
    );
    if model.held {
        title.push_str("  [paused]");
    }
    let mut lines = vec![Line::styled(
        title,
        Style::new().add_modifier(Modifier::BOLD),
    )];
    lines.extend(plain::summary(model).into_iter().map(Line::raw));
    Paragraph::new(lines)
}

fn foot(model: &Model) -> Line<'static> {
    if let Some(why) = &model.lost {
        let words = format!("lost: {why}; asking again");
        return Line::styled(words, Style::new().fg(Color::Red));
    }
    if model.typing {
        return Line::raw(format!("/{}_", model.filter));
    }
    if model.filter.is_empty() {
        Line::raw(HELP)
    } else {
        Line::raw(format!("filter: {} (Esc clears)  {HELP}", model.filter))
    }
}

fn table(frame: &mut Frame<'_>, model: &Model, pane: Pane, area: Rect) {
    let rows = model.rows(pane);
    let focused = model.pane == pane;
    let sorted = model.sorted[pane as usize];
    let heads = pane.heads().iter().enumerate().map(|(at, head)| {
        if at == sorted {
            format!("{head}▾")
        } else {
            (*head).to_owned()
        }
    });
    let widths = (0..pane.heads().len()).map(|at| {
        let widest = rows.iter().map(|row| row.cells[at].width()).max();
        let head = pane.heads()[at].len() + 1;
        Constraint::Length(u16::try_from(widest.unwrap_or(0).max(head)).unwrap_or(u16::MAX))
    });
    let widths: Vec<Constraint> = widths.collect();
    let count = rows.len();
    let body = rows.into_iter().map(|row| {
        let style = state_style(&row.cells);
        Row::new(row.cells).style(style)
    });
    let title = format!(" {} ({count}) ", pane.title());
    let border = if focused {
        Style::new().fg(Color::Cyan)
    } else {
        Style::new()
    };
    let table = Table::new(body, widths)
        .header(Row::new(heads).style(Style::new().add_modifier(Modifier::BOLD)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .column_spacing(2)
        .block(Block::bordered().border_style(border).title(title));
    let mut state = TableState::default();
    if focused && count > 0 {
        state.select(Some(model.chosen[pane as usize].min(count - 1)));
    }
    frame.render_stateful_widget(table, area, &mut state);
}

fn state_style(cells: &[String]) -> Style {
    match cells.get(1).map(String::as_str) {
        Some("OFFLINE" | "FAULTY") => Style::new().fg(Color::Red),
        Some("MAINTENANCE") => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

fn popup(frame: &mut Frame<'_>, lines: &[String], area: Rect) {
    let inner = Rect {
        x: area.x + area.width / 10,
        y: area.y + area.height / 10,
        width: area.width - area.width / 5,
        height: area.height - area.height / 5,
    };
    let text: Vec<Line<'_>> = lines.iter().map(|line| Line::raw(line.as_str())).collect();
    let block = Block::bordered().title(" details (Esc closes) ");
    frame.render_widget(Clear, inner);
    frame.render_widget(Paragraph::new(text).block(block), inner);
}
