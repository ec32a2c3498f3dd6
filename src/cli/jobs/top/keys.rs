//! The effect of each key.

use super::view::{Pane, View};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Lines that a page up or down moves by.
const PAGE: usize = 10;

/// The keys, as the help shows them.
pub(super) const HELP: [(&str, &str); 7] = [
    ("up, down, k, j", "select a job; in another pane, a line"),
    ("page up, page down", "ten lines at once"),
    ("home, end", "the first line, the last"),
    ("tab, shift-tab", "the next pane, the one before: it gets the room"),
    ("?", "show or hide this help"),
    ("q, Esc, ctrl-C", "leave; Esc leaves the help first"),
    ("", "curves are between a trial's own lowest and highest value"),
];

/// The consequence of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Leave,
}

impl View {
    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        if key.is_release() {
            return Next::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Next::Leave } else { Next::Stay };
        }
        let (at, lines) = self.position(self.pane);
        match key.code {
            KeyCode::Char('q' | 'Q') => return Next::Leave,
            KeyCode::Esc if !self.help => return Next::Leave,
            KeyCode::Esc => self.help = false,
            KeyCode::Char('?') => self.help = !self.help,
            KeyCode::Up | KeyCode::Char('k') => self.move_to(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.move_to(at.saturating_add(1)),
            KeyCode::PageUp => self.move_to(at.saturating_sub(PAGE)),
            KeyCode::PageDown => self.move_to(at.saturating_add(PAGE)),
            KeyCode::Home => self.move_to(0),
            KeyCode::End => self.move_to(lines),
            KeyCode::Tab => self.pane = after(Pane::ALL.into_iter(), self.pane),
            KeyCode::BackTab => self.pane = after(Pane::ALL.into_iter().rev(), self.pane),
            _ => {}
        }
        Next::Stay
    }
}

/// The pane that comes after this one, in a ring.
fn after(panes: impl Iterator<Item = Pane> + Clone, pane: Pane) -> Pane {
    panes.cycle().skip_while(|other| *other != pane).nth(1).unwrap_or(pane)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
