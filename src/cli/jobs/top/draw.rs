//! The screen, from what it shows: pure.
//!
//! ```text
//! head       server, its storage, and whether it answers
//! jobs       a line each
//! trials     the leading ones of the selected job
//! hosts      a line each
//! events     the last ones of the selected job
//! keys
//! ```

use super::{
    keys::HELP,
    panes::{pane, wanted},
    view::{Pane, View},
};
use crate::cli::{render::text, terminal::screen};
use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::{Paragraph, Widget},
};
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    storage::{Storage, StorageLevel},
};
use std::time::Duration;

/// Columns of the text where there is no terminal.
const TEXT_WIDTH: u16 = 120;
/// Lines of it at most.
const MAX_TEXT_HEIGHT: u16 = 1000;
/// A server that hasn't answered for so long is said to be slow.
const SLOW: Duration = Duration::from_secs(3);
/// Below so many lines only the pane is shown that keys move in.
const MIN_SHARED: u16 = 8;

/// Draws all of it.
pub(super) fn draw(view: &View, area: Rect, buffer: &mut Buffer) {
    let [body, keys] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
    draw_body(view, body, buffer);
    keys_line().render(keys, buffer);
}

/// The same as text, without keys, and as high as it needs to be.
pub(super) fn text(view: &View) -> String {
    let panes = Pane::ALL.map(|pane| wanted(view, pane, TEXT_WIDTH)).into_iter();
    let head = lines(head(view, TEXT_WIDTH).len());
    let height = panes.fold(head, u16::saturating_add).min(MAX_TEXT_HEIGHT);
    let area = Rect::new(0, 0, TEXT_WIDTH, height);
    let mut buffer = Buffer::empty(area);
    draw_body(view, area, &mut buffer);
    let lines = buffer.content().chunks(usize::from(TEXT_WIDTH)).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn draw_body(view: &View, area: Rect, buffer: &mut Buffer) {
    let head = head(view, area.width);
    let [at_head, rest] =
        Layout::vertical([Constraint::Length(lines(head.len())), Constraint::Fill(1)]).areas(area);
    Paragraph::new(head).render(at_head, buffer);
    if view.help {
        let inside = screen::section("help".into(), rest, buffer);
        Paragraph::new(help(inside.width)).render(inside, buffer);
        return;
    }
    let heights = heights(view, rest);
    let mut at = rest;
    for (which, height) in Pane::ALL.into_iter().zip(heights) {
        at.height = height;
        pane(view, which, at, buffer);
        at.y = at.y.saturating_add(height);
    }
}

/// The heights of the panes: each has a fourth at most, and what is left goes to the pane that keys move in, then to the others.
fn heights(view: &View, area: Rect) -> [u16; 4] {
    let wanted = Pane::ALL.map(|pane| wanted(view, pane, area.width));
    let fourth = if area.height < MIN_SHARED { 0 } else { area.height / 4 };
    let mut heights = wanted.map(|wanted| wanted.min(fourth));
    let mut left = area.height - heights.iter().sum::<u16>();
    let in_keys = Pane::ALL.map(|pane| pane == view.pane);
    for first in [true, false] {
        for ((height, wanted), is_first) in heights.iter_mut().zip(wanted).zip(in_keys) {
            let more = (wanted - *height).min(left);
            // A title without a line below it says nothing.
            if is_first == first && *height + more > 1 {
                *height += more;
                left -= more;
            }
        }
    }
    heights
}

fn head(view: &View, width: u16) -> Vec<Line<'static>> {
    let health = view.snapshot.as_ref().map(|snapshot| &snapshot.health);
    let version = health.map(|health| format!(", sojourn {}", health.version));
    let title = format!("{}{}", view.server, version.unwrap_or_default());
    let mut head = styled(&title, Style::new().bold(), width);
    let (connection, colour) = connection(view);
    match (health.map(|health| storage(health.storage)), colour) {
        // Both in a line where nothing is wrong.
        (Some((storage, None)), None) => {
            head.extend(styled(&format!("{connection}; {storage}"), Style::new(), width));
        }
        (storage, colour) => {
            for (text, colour) in std::iter::once((connection, colour)).chain(storage) {
                head.extend(styled(&text, colour.map_or(Style::new(), Style::from), width));
            }
        }
    }
    head
}

/// Whether the server answers, with a colour where it doesn't.
fn connection(view: &View) -> (String, Option<Color>) {
    let silence = text::duration(u64::saturating_from(view.silence.as_millis()));
    match &view.problem {
        Some(problem) => {
            (format!("no answer for {silence}: {problem}; asking again"), Some(Color::Red))
        }
        None if view.silence >= SLOW => {
            (format!("no answer for {silence}; still asking"), Some(Color::Yellow))
        }
        None if view.snapshot.is_none() => ("asking the server".to_owned(), None),
        None => ("connected".to_owned(), None),
    }
}

fn storage(storage: Storage) -> (String, Option<Color>) {
    let (free, reserve) = (text::bytes(storage.free), text::bytes(storage.reserve));
    match storage.level {
        // A store in the network has no such figure.
        StorageLevel::Enough if storage.free == 0 => ("storage enough".to_owned(), None),
        StorageLevel::Enough => (format!("storage enough, {free} free"), None),
        StorageLevel::Low => (
            format!("storage low: {free} free of {reserve} to keep; no new work is given out"),
            Some(Color::Yellow),
        ),
        StorageLevel::Full => (
            format!("storage full: {free} free of {reserve} to keep; no checkpoints are taken"),
            Some(Color::Red),
        ),
    }
}

fn help(width: u16) -> Vec<Line<'static>> {
    let texts = HELP.iter().flat_map(|(keys, effect)| {
        let of = if keys.is_empty() { String::new() } else { format!("{keys}: ") };
        screen::wrapped(&format!("{of}{effect}"), width)
    });
    texts.map(Line::from).collect()
}

fn keys_line() -> Line<'static> {
    let keys = [("q", "quit"), ("↑↓", "select"), ("tab", "next pane"), ("?", "help")];
    let spans = keys
        .into_iter()
        .flat_map(|(key, effect)| [Span::from(key).bold(), Span::from(format!(" {effect}  "))]);
    spans.collect()
}

fn styled(text: &str, style: Style, width: u16) -> Vec<Line<'static>> {
    let lines = screen::wrapped(text, width).into_iter();
    lines.map(|line| Line::styled(line, style)).collect()
}

/// A number of lines as a height.
fn lines(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
