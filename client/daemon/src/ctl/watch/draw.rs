//! The screen, from what it shows: pure, and as much of it as there is room for.
//!
//! ```text
//! head         who it is, and whether it computes
//! units        what each unit is at
//! transfers    where there are some
//! limits       cache and limits, with what is used of them
//! log          its end, in what room is left
//! keys         or a question
//! ```

use crate::ctl::{
    show::{self, DRAINING},
    watch::view::{Question, View},
};
use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::{Paragraph, Row, Table, Widget},
};
use sojourn_client::{
    control::{Direction, Status, UnitStatus},
    limits::{Fact, Reason},
};
use sojourn_programs::screen::{bar, packed, section, wrapped};
use sojourn_protocol::figures;

/// Narrower screens show no speeds.
const NARROW: u16 = 60;
/// Wider screens show bars.
const WIDE: u16 = 100;
/// Lines that limits take at most.
const LIMITS: usize = 3;

/// Draws all of it.
pub(super) fn draw(view: &View, area: Rect, buffer: &mut Buffer) {
    let head = head(view, area.width);
    let units = units(&view.status, area.width);
    let transfers = transfers(&view.status, area.width);
    let limits = packed(limits(&view.status), "   ", area.width).into_iter().take(LIMITS);
    let limits: Vec<Line<'_>> = limits.map(Line::from).collect();
    let [at_head, at_units, at_transfers, at_limits, at_log, at_keys] = {
        let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let mut left = area.height;
        let mut take = |wanted: u16| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let head = take(lines(head.len()));
        let keys = take(1);
        let rest = area.height.saturating_sub(head + keys);
        // With a line for its title, and not for that alone.
        let mut section = |count: usize, most: u16| match count {
            0 => 0,
            count => match take(lines(count).saturating_add(1).min(most.max(2))) {
                1 => 0,
                taken => taken,
            },
        };
        let units = section(units.len().max(1), rest / 2);
        let limits = section(limits.len(), u16::MAX);
        let transfers = section(transfers.len(), rest / 4);
        let heights = [head, units, transfers, limits].map(Constraint::Length);
        let [head, units, transfers, limits] = heights;
        let (log, keys) = (Constraint::Fill(1), Constraint::Length(keys));
        Layout::vertical([head, units, transfers, limits, log, keys]).areas(area)
    };
    Paragraph::new(head).render(at_head, buffer);
    let inside = section("units".into(), at_units, buffer);
    if units.is_empty() {
        Line::from("none").dim().render(inside, buffer);
    } else {
        table(units, unit_widths(area.width), inside, buffer);
    }
    let inside = section(transfers_title(&view.status).into(), at_transfers, buffer);
    table(transfers, transfer_widths(area.width), inside, buffer);
    let inside = section("cache and limits".into(), at_limits, buffer);
    Paragraph::new(limits).render(inside, buffer);
    log(view, at_log, buffer);
    keys(view).render(at_keys, buffer);
}

fn head(view: &View, width: u16) -> Vec<Line<'static>> {
    let status = &view.status;
    let whose = format!("host {} of {}", status.host, status.server);
    let mut lines = styled(&whose, Style::new().bold(), width);
    if status.server_away {
        let away = "the server doesn't answer; what is held goes on";
        lines.extend(styled(away, Color::Red.into(), width));
    }
    let style = if status.paused.is_some() { Color::Yellow.into() } else { Style::new() };
    lines.extend(styled(&show::slots(status), style, width));
    if status.draining {
        lines.extend(styled(DRAINING, Color::Yellow.into(), width));
    }
    for unknown in show::unknown(status) {
        lines.extend(styled(&unknown, Color::Yellow.into(), width));
    }
    if let Some(problem) = &view.problem {
        lines.extend(styled(problem, Color::Red.into(), width));
    }
    lines
}

/// A text in as many lines as it needs.
fn styled(text: &str, style: Style, width: u16) -> Vec<Line<'static>> {
    wrapped(text, width).into_iter().map(|line| Line::styled(line, style)).collect()
}

fn table<const N: usize>(
    rows: Vec<[String; N]>,
    widths: Vec<Constraint>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let room = usize::from(area.height);
    let hidden = if rows.len() > room { rows.len() - room.saturating_sub(1) } else { 0 };
    let shown = rows.len() - hidden;
    let shown = rows.into_iter().take(shown).map(Row::new);
    let more = (hidden > 0).then(|| Row::new([format!("and {hidden} more")]).dim());
    Table::new(shown.chain(more), widths).column_spacing(2).render(area, buffer);
}

fn units(status: &Status, width: u16) -> Vec<[String; 4]> {
    let row = |unit: &UnitStatus| {
        let name = unit.work.as_ref();
        let name = name.map(if width < NARROW { show::trial } else { show::work });
        let name = name.unwrap_or_else(|| format!("unit {}", unit.lease));
        let mut state = show::state(unit);
        if let Some(progress) = unit.state.progress()
            && width >= WIDE
        {
            state = format!("{} {state}", bar(progress.done.into(), progress.of.into()));
        }
        let left = show::unit_left(status, unit).map(|left| format!("{left} left"));
        [name, state, show::pace(unit).unwrap_or_default(), left.unwrap_or_default()]
    };
    status.units.iter().map(row).collect()
}

fn unit_widths(width: u16) -> Vec<Constraint> {
    if width < NARROW {
        return vec![Constraint::Fill(2), Constraint::Fill(3)];
    }
    let ends = [Constraint::Length(7), Constraint::Length(12)];
    // Most names, of which a longer one is cut in a terminal of 80.
    let name = if width < WIDE { Constraint::Length(33) } else { Constraint::Fill(1) };
    [name, Constraint::Fill(1)].into_iter().chain(ends).collect()
}

fn transfers(status: &Status, width: u16) -> Vec<[String; 5]> {
    let rows = status.transfers.iter().map(|transfer| {
        let rate = transfer.bytes_per_second.map(figures::bytes_per_second).unwrap_or_default();
        let left = show::transfer_left(transfer).map(|left| format!("{left} left"));
        let what = show::what(transfer);
        let what = if width < NARROW { what.replace("checkpoint of ", "") } else { what };
        [
            show::way(transfer).to_owned(),
            what,
            show::so_far(transfer),
            rate,
            left.unwrap_or_default(),
        ]
    });
    rows.collect()
}

fn transfer_widths(width: u16) -> Vec<Constraint> {
    let way = Constraint::Length(4);
    if width < NARROW {
        return vec![way, Constraint::Fill(1), Constraint::Fill(1)];
    }
    let ends = [Constraint::Length(9), Constraint::Length(13)];
    [way, Constraint::Fill(1), Constraint::Length(18)].into_iter().chain(ends).collect()
}

fn transfers_title(status: &Status) -> String {
    let (down, up) = (rate(status, Direction::Down), rate(status, Direction::Up));
    format!(
        "transfers: {} down, {} up",
        figures::bytes_per_second(down),
        figures::bytes_per_second(up)
    )
}

/// Bytes in a second.
fn rate(status: &Status, direction: Direction) -> f64 {
    let transfers = status.transfers.iter().filter(|transfer| transfer.direction == direction);
    transfers.filter_map(|transfer| transfer.bytes_per_second).sum()
}

/// The cache and each limit, with what is used of it now.
fn limits(status: &Status) -> Vec<String> {
    let cache = format!("cache {}", show::cache(status.cache));
    let limits = show::pairs(&status.limits).into_iter().map(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        match used(status, key) {
            Some(used) => format!("{pair} ({used})"),
            None => pair,
        }
    });
    std::iter::once(cache).chain(limits).collect()
}

fn used(status: &Status, limit: &str) -> Option<String> {
    let reason = status.paused.as_ref().map(|paused| &paused.reason);
    if matches!(
        (limit, reason),
        ("hours", Some(Reason::Hours | Reason::Unknown(Fact::TimeZone)))
            | ("idle_minutes", Some(Reason::InUse(_) | Reason::Unknown(Fact::LastUse)))
            | ("not_on_battery", Some(Reason::Battery | Reason::Unknown(Fact::Battery)))
            | ("pause_while", Some(Reason::Program(_) | Reason::Unknown(Fact::Programs)))
    ) {
        return Some("pauses it now".to_owned());
    }
    match limit {
        "cpu" | "gpu" if status.paused.is_none() => Some(format!("now {} %", status.pace)),
        "disk" => {
            let (used, of) = (status.cache.used, status.cache.limit.max(1));
            Some(format!("{} % used", used.saturating_mul(100) / of))
        }
        "disk_reserve" => {
            let disk = status.disk?;
            Some(format!("{} free", figures::bytes(disk.free)))
        }
        "monthly" => {
            let month = status.month.as_ref()?;
            Some(format!("{} in {}", figures::bytes(month.bytes), month.month))
        }
        "download" => {
            Some(format!("now {}", figures::bytes_per_second(rate(status, Direction::Down))))
        }
        "upload" => Some(format!("now {}", figures::bytes_per_second(rate(status, Direction::Up)))),
        "slots" => {
            let in_slots = |unit: &&UnitStatus| unit.state.progress().is_some();
            Some(format!("{} in use", status.units.iter().filter(in_slots).count()))
        }
        _ => None,
    }
}

fn log(view: &View, area: Rect, buffer: &mut Buffer) {
    let inside = section("log".into(), area, buffer);
    let room = usize::from(inside.height);
    let shown = view.log.iter().skip(view.log.len().saturating_sub(room));
    let lines: Vec<Line<'_>> = shown
        .map(|line| {
            let level = Span::from(format!("{:<5}", line.level()));
            let level = match line.level() {
                "ERROR" => level.fg(Color::Red),
                "WARN" => level.fg(Color::Yellow),
                _ => level,
            };
            let time = Span::from(line.time().to_owned()).dim();
            Line::from(vec![time, " ".into(), level, " ".into(), line.text().into()])
        })
        .collect();
    Paragraph::new(lines).render(inside, buffer);
}

fn keys(view: &View) -> Line<'static> {
    match view.question {
        Some(Question::Drain) => {
            let question = "drain: finish what runs, take nothing new, and end?";
            Line::from(vec![
                question.fg(Color::Yellow),
                "  ".into(),
                "y".bold(),
                " yes  ".into(),
                "n".bold(),
                " no".into(),
            ])
        }
        None => Line::from(vec![
            "q".bold(),
            " quit  ".into(),
            "p".bold(),
            " pause  ".into(),
            "r".bold(),
            " resume  ".into(),
            "d".bold(),
            " drain".into(),
        ]),
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
