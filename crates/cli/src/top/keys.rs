//! What keys do.

use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::feed::Question;
use super::model::Model;
use crate::failure::Result;

/// The longest filter.
const FILTER_CHARS: usize = 100;

pub enum Next {
    Stay,
    Ask(Question),
    Leave,
}

/// Waits for a key at most `wait`. A new size of the terminal only wakes it.
pub fn read(model: &mut Model, wait: Duration) -> Result<Next> {
    if !event::poll(wait)? {
        return Ok(Next::Stay);
    }
    match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Ok(pressed(model, key)),
        _ => Ok(Next::Stay),
    }
}

fn pressed(model: &mut Model, key: KeyEvent) -> Next {
    // A raw terminal sends no signal for it.
    if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
        return Next::Leave;
    }
    if model.typing {
        typed(model, key.code);
        return Next::Stay;
    }
    match key.code {
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') if model.popup.is_some() => {
            model.popup = None;
        }
        KeyCode::Char('q') => return Next::Leave,
        KeyCode::Esc => model.filter.clear(),
        KeyCode::Tab => model.next_pane(),
        KeyCode::Up | KeyCode::Char('k') => model.choose(-1),
        KeyCode::Down | KeyCode::Char('j') => model.choose(1),
        KeyCode::PageUp => model.choose(-10),
        KeyCode::PageDown => model.choose(10),
        KeyCode::Char('s') => model.sort_by_next(),
        KeyCode::Char('p') => model.held = !model.held,
        KeyCode::Char('/') => model.typing = true,
        KeyCode::Enter => return model.question().map_or(Next::Stay, Next::Ask),
        _ => {}
    }
    Next::Stay
}

fn typed(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Enter => model.typing = false,
        KeyCode::Esc => {
            model.typing = false;
            model.filter.clear();
        }
        KeyCode::Backspace => {
            model.filter.pop();
        }
        KeyCode::Char(letter) if model.filter.chars().count() < FILTER_CHARS => {
            model.filter.push(letter);
        }
        _ => {}
    }
    model.chosen = [0; 3];
}
