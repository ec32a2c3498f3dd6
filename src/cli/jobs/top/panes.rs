//! Jobs, trials, hosts and events: each a title and lines, of which those around the selected one are drawn.

use super::{
    columns::{Cell, Columns, number, visible},
    view::{Detail, Pane, Scope, View},
};
use crate::cli::{
    render::text,
    terminal::screen::{self, bar},
};
use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Rect},
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::{Paragraph, Widget},
};
use sojourn_protocol::{
    quantity::{mul_div, to_u64},
    sentence,
    view::{EventView, HostState, HostView, JobState, JobView},
};

/// Narrower screens have fewer columns.
const NARROW: u16 = 60;
/// Characters of a job's hops.
const HOPS: u16 = 11;

/// The height that a pane would have with all its lines.
pub(super) fn wanted(view: &View, pane: Pane, width: u16) -> u16 {
    let notes = notes(view, pane, width).len();
    let (_, lines) = view.position(pane);
    // Its title, and the names of the columns.
    let names = usize::from(lines > 0 && pane != Pane::Events);
    u16::try_from(notes + lines + names + 1).unwrap_or(u16::MAX)
}

/// Draws a pane.
pub(super) fn pane(view: &View, pane: Pane, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let is_in_keys = view.pane == pane;
    let mark = if is_in_keys { "▸ " } else { "" };
    let title = Span::from(format!("{mark}{}", title(view, pane)));
    let title = if is_in_keys { title.fg(Color::Cyan) } else { title };
    let mut inside = screen::section(title, area, buffer);
    let (at, lines) = view.position(pane);
    // The selected line has room before all that is said of it.
    let room = usize::from(inside.height).saturating_sub(lines.min(1));
    for note in notes(view, pane, area.width).into_iter().take(room) {
        Paragraph::new(note).render(Rect { height: 1, ..inside }, buffer);
        inside.y = inside.y.saturating_add(1);
        inside.height -= 1;
    }
    if lines == 0 {
        return;
    }
    let is_narrow = area.width < NARROW;
    let mut columns = Columns::new(&widths(pane, is_narrow), inside);
    // In one line the selected one is of more use than the names.
    if pane != Pane::Events && inside.height > 1 {
        columns.head(&names(view, pane, is_narrow), buffer);
    }
    for line in visible(at, lines, columns.room()) {
        let style = if is_in_keys && line == at { Style::new().reversed() } else { Style::new() };
        let style = if pane == Pane::Jobs && line == at { style.bold() } else { style };
        let Some(cells) = cells(view, pane, line, is_narrow) else { return };
        columns.line(cells, style, buffer);
    }
}

fn title(view: &View, pane: Pane) -> String {
    let count = |count: usize| text::count(to_u64(count));
    let of_job = view.job().map(|job| format!("job {} `{}`", job.job, job.name));
    match pane {
        Pane::Jobs if view.scope != Scope::Server => of_job.unwrap_or_else(|| "job".to_owned()),
        Pane::Jobs if view.snapshot.is_none() => "jobs".to_owned(),
        Pane::Hosts if view.snapshot.is_none() => "hosts".to_owned(),
        Pane::Jobs => {
            let running = view.jobs().iter().filter(|job| job.state == JobState::Running).count();
            format!("jobs: {}, {} running", count(view.jobs().len()), count(running))
        }
        Pane::Trials => match (of_job, view.job()) {
            (Some(of_job), Some(job)) => {
                let trials = text::counted(job.trials.into(), "trial");
                format!("leading of {trials} of {of_job}")
            }
            _ => "trials".to_owned(),
        },
        Pane::Hosts => {
            let hosts = view.hosts();
            let live: Vec<_> = hosts.iter().filter(|of| of.state == HostState::Live).collect();
            let slots: u64 = live.iter().map(|host| u64::from(host.slots)).sum();
            let busy: usize = live.iter().map(|host| busy(host)).sum();
            let which = match view.scope {
                Scope::Server => "hosts".to_owned(),
                Scope::Job(job) => format!("hosts with a lease of job {job}"),
            };
            format!(
                "{which}: {}, {} live, {} of {} busy",
                count(hosts.len()),
                count(live.len()),
                count(busy),
                text::counted(slots, "slot")
            )
        }
        Pane::Events => of_job.map_or("events".to_owned(), |job| format!("events of {job}")),
    }
}

/// What is said above a pane's lines, or instead of them.
fn notes(view: &View, pane: Pane, width: u16) -> Vec<Line<'static>> {
    let warning = |note: &str| {
        let lines = screen::wrapped(note, width).into_iter();
        lines.map(|line| Line::styled(line, Color::Yellow)).collect::<Vec<_>>()
    };
    let (_, lines) = view.position(pane);
    let mut notes = Vec::new();
    if pane == Pane::Jobs && !view.facts().is_empty() {
        let facts = screen::packed(view.facts().to_vec(), "; ", width).into_iter();
        notes.push(facts.map(Line::from).collect());
    }
    if pane == Pane::Trials {
        let waiting = view.job().and_then(|job| job.waiting.as_deref());
        notes.extend(waiting.map(|reason| warning(&format!("the job waits: {reason}"))));
        let problem = view.detail().and_then(|detail| detail.problem.as_deref());
        notes.extend(problem.map(warning));
    }
    if notes.is_empty() && lines == 0 {
        notes.push(vec![nothing(view, pane)]);
    }
    notes.concat()
}

/// A pane that is empty says whether there is nothing, or nothing is known.
fn nothing(view: &View, pane: Pane) -> Line<'static> {
    let is_of_job = matches!(pane, Pane::Trials | Pane::Events) && view.job().is_some();
    let is_known = view.snapshot.is_some() && (!is_of_job || view.detail().is_some());
    let is_now = pane == Pane::Hosts && view.scope != Scope::Server;
    let none = if is_now { "none now" } else { "none yet" };
    Line::from(if is_known { none } else { "not known yet" }).dim()
}

fn widths(pane: Pane, is_narrow: bool) -> Vec<Constraint> {
    use Constraint::{Fill, Length};
    match (pane, is_narrow) {
        (Pane::Jobs, true) => vec![Length(4), Fill(1), Length(9), Length(5), Length(8)],
        (Pane::Jobs, false) => vec![
            Length(5),
            Fill(1),
            Length(9),
            Length(10),
            Length(HOPS),
            Length(8),
            Length(6),
            Fill(1),
        ],
        (Pane::Trials, true) => vec![Length(5), Fill(1), Length(8), Length(8)],
        (Pane::Trials, false) => {
            vec![Length(5), Fill(3), Length(7), Length(8), Length(16), Fill(2)]
        }
        (Pane::Hosts, true) => vec![Length(4), Fill(1), Length(8), Length(7)],
        (Pane::Hosts, false) => vec![Length(5), Fill(1), Length(8), Length(7), Fill(3)],
        (Pane::Events, _) => vec![Length(8), Fill(1)],
    }
}

/// The names of a pane's columns; true for numbers.
fn names(view: &View, pane: Pane, is_narrow: bool) -> Vec<(&str, bool)> {
    let metric = view.job().map_or("BEST", |job| job.metric.as_str());
    // `accuracy` of `valid/accuracy`: there is room for that.
    let metric = metric.rsplit('/').next().unwrap_or(metric);
    match (pane, is_narrow) {
        (Pane::Jobs, true) => {
            vec![("JOB", true), ("NAME", false), ("STATE", false), ("HOPS", true), ("BEST", false)]
        }
        (Pane::Jobs, false) => vec![
            ("JOB", true),
            ("NAME", false),
            ("STATE", false),
            ("HOPS", false),
            ("", false),
            ("BEST", false),
            ("LEASES", true),
            ("WAITS", false),
        ],
        (Pane::Trials, true) => {
            vec![("TRIAL", true), ("NAME", false), (metric, false), ("CURVE", false)]
        }
        (Pane::Trials, false) => vec![
            ("TRIAL", true),
            ("NAME", false),
            ("EPOCH", false),
            (metric, false),
            ("CURVE", false),
            ("STATE", false),
        ],
        (Pane::Hosts, true) => {
            vec![("HOST", true), ("NAME", false), ("STATE", false), ("BUSY", false)]
        }
        (Pane::Hosts, false) => vec![
            ("HOST", true),
            ("NAME", false),
            ("STATE", false),
            ("BUSY", false),
            ("RUNS", false),
        ],
        (Pane::Events, _) => Vec::new(),
    }
}

/// A line of a pane; none where it isn't there.
fn cells(view: &View, pane: Pane, line: usize, is_narrow: bool) -> Option<Vec<Cell>> {
    Some(match pane {
        Pane::Jobs => job(view.jobs().get(line)?, is_narrow),
        Pane::Trials => trial(view.detail()?, line, is_narrow)?,
        Pane::Hosts => host(view.hosts().get(line)?, is_narrow),
        Pane::Events => event(view.detail()?.events.get(line)?),
    })
}

fn job(job: &JobView, is_narrow: bool) -> Vec<Cell> {
    let best = job.best.as_ref().map_or_else(|| "-".to_owned(), |best| text::metric(best.value));
    let mut cells = vec![number(job.job.to_string()), job.name.clone().into(), state(job)];
    if is_narrow {
        cells.extend([number(percent(job)), best.into()]);
        return cells;
    }
    let hops = format!("{}/{}", job.hops, job.hops_expected);
    // Half a number would be another number.
    let hops = if hops.len() > usize::from(HOPS) { percent(job) } else { hops };
    let waiting = text::first_line(job.waiting.as_deref().unwrap_or_default());
    cells.extend([
        bar(job.hops, job.hops_expected).into(),
        hops.into(),
        best.into(),
        number(job.leases_live.to_string()),
        waiting.into(),
    ]);
    cells
}

fn percent(job: &JobView) -> String {
    let expected = job.hops_expected.max(1);
    format!("{} %", mul_div(job.hops.min(expected), 100, expected))
}

fn state(job: &JobView) -> Cell {
    let name = Line::from(job.state.name());
    Cell::Text(match job.state {
        JobState::Running => name.fg(Color::Green),
        JobState::Paused => name.fg(Color::Yellow),
        JobState::Failed => name.fg(Color::Red),
        JobState::Finished | JobState::Cancelled => name,
    })
}

fn trial(detail: &Detail, line: usize, is_narrow: bool) -> Option<Vec<Cell>> {
    let of = detail.leaders.get(line)?;
    let (id, name) = (number(of.trial.to_string()), of.name.clone().into());
    let best: Cell = of.best.map_or_else(|| "-".to_owned(), text::metric).into();
    let curve = Cell::Curve(of.values.clone());
    Some(if is_narrow {
        vec![id, name, best, curve]
    } else {
        vec![id, name, of.epochs.clone().into(), best, curve, of.state.clone().into()]
    })
}

/// Slots of a host that compute.
fn busy(host: &HostView) -> usize {
    host.leases.iter().filter(|lease| lease.running).count()
}

fn host(host: &HostView, is_narrow: bool) -> Vec<Cell> {
    let state = Line::from(host.status());
    let state = if host.state == HostState::Live { state.fg(Color::Green) } else { state.dim() };
    let mut cells = vec![
        number(host.host.to_string()),
        host.name.clone().into(),
        Cell::Text(state),
        format!("{}/{}", busy(host), host.slots).into(),
    ];
    if !is_narrow {
        let running = host.leases.iter().filter(|lease| lease.running);
        let running = running
            .map(|lease| format!("job {}, trial {}: {}", lease.job, lease.trial, lease.unit));
        let runs = running.collect::<Vec<_>>().join("; ");
        cells.push(match &host.waiting {
            Some(reason) if runs.is_empty() => {
                Cell::Text(Line::from(text::first_line(reason)).fg(Color::Yellow))
            }
            _ => runs.into(),
        });
    }
    cells
}

fn event(event: &EventView) -> Vec<Cell> {
    let timestamp = text::timestamp(event.at);
    // The time of day, of a date and a time.
    let time = timestamp.split('T').nth(1).and_then(|time| time.split('.').next());
    let time = Line::from(time.unwrap_or_default().to_owned()).dim();
    vec![Cell::Text(time), sentence::of_event(event).into()]
}
