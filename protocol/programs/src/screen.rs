//! The whole terminal as a screen: opened, drawn and given back; and the parts that every screen is made of.

pub use crate::columns::{packed, wrapped};

use crate::{columns::DEFAULT_COLUMNS, output};
use ratatui::{
    DefaultTerminal, TerminalOptions, Viewport,
    buffer::Buffer,
    crossterm::{
        event::{self, Event},
        execute,
        terminal::{self, EnterAlternateScreen},
    },
    layout::Rect,
    style::{Style, Stylize},
    text::Span,
    widgets::{Block, Borders, Widget},
};
use sojourn_protocol::quantity::mul_div;
use std::io;

/// The height of a terminal that doesn't say its own.
const DEFAULT_LINES: u16 = 24;
/// Cells of a bar.
const BAR: u64 = 10;

/// The terminal as it is while this lives. It is given back as it was, also where the program panics.
pub struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Where there is none, or it can't be controlled; it is then as it was.
    pub fn open() -> io::Result<Self> {
        open().map(Self).inspect_err(|_| {
            // Undoes the part that was done.
            let _ = ratatui::try_restore();
        })
    }

    /// Draws all of it anew.
    ///
    /// # Errors
    /// Where the terminal can't be written to.
    pub fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        self.0.draw(|frame| draw(frame.area(), frame.buffer_mut())).map(drop)
    }
}

fn open() -> io::Result<DefaultTerminal> {
    let (columns, lines) = terminal::size()?;
    if columns > 0 && lines > 0 {
        return ratatui::try_init();
    }
    // A terminal that doesn't say its size would get nothing to see.
    let area = Rect::new(0, 0, DEFAULT_COLUMNS, DEFAULT_LINES);
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    let terminal = ratatui::try_init_with_options(options)?;
    execute!(io::stdout(), EnterAlternateScreen)?;
    Ok(terminal)
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Is stdout a terminal that can be drawn on?
#[must_use]
pub fn is_possible() -> bool {
    output::is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Reads keys and changes of the terminal's size until `take` wants no more or the terminal is gone, which it is told.
/// Blocks: for a thread of its own.
pub fn read_events(mut take: impl FnMut(io::Result<Event>) -> bool) {
    loop {
        let read = event::read();
        let is_last = read.is_err();
        if !take(read) || is_last {
            return;
        }
    }
}

/// Draws a section's title; gives the place below it.
pub fn section(title: Span<'_>, area: Rect, buffer: &mut Buffer) -> Rect {
    let block = Block::new().borders(Borders::TOP).border_style(Style::new().dim());
    let block = block.title(Span::styled(format!(" {} ", title.content), title.style).bold());
    let inside = block.inner(area);
    // A title without a line below it says nothing.
    if area.height > 1 {
        block.render(area, buffer);
    }
    inside
}

/// A share of a whole in ten cells: `████░░░░░░`.
#[must_use]
pub fn bar(done: u64, of: u64) -> String {
    let full = mul_div(done.min(of), BAR, of.max(1));
    (0..BAR).map(|cell| if cell < full { '█' } else { '░' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_at_the_end_and_no_sooner() {
        assert_eq!(bar(0, 0), "░".repeat(10));
        assert_eq!(bar(999, 1000), format!("{}░", "█".repeat(9)));
        assert_eq!(bar(u64::MAX, 7), "█".repeat(10));
    }
}
