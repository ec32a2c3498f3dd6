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
    view::{EventView, HeldView, HostState, HostView, JobState, JobView},
};

/// Narrower screens have fewer columns.
const NARROW: u16 = 60;
/// Wider ones have more.
const WIDE: u16 = 100;
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

/// How many columns there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Little,
    Enough,
    Much,
}

impl Room {
    const fn of(width: u16) -> Self {
        match width {
            ..NARROW => Self::Little,
            NARROW..WIDE => Self::Enough,
            WIDE.. => Self::Much,
        }
    }
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
    let has = Room::of(area.width);
    let mut columns = Columns::new(&widths(pane, has), inside);
    // In one line the selected one is of more use than the names.
    if pane != Pane::Events && inside.height > 1 {
        columns.head(&names(view, pane, has), buffer);
    }
    for line in visible(at, lines, columns.room()) {
        let style = if is_in_keys && line == at { Style::new().reversed() } else { Style::new() };
        let style = if pane == Pane::Jobs && line == at { style.bold() } else { style };
        let Some(cells) = cells(view, pane, line, has) else { return };
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

/// The notes above a pane's lines, or instead of them.
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

fn widths(pane: Pane, room: Room) -> Vec<Constraint> {
    use Constraint::{Fill, Length};
    match (pane, room) {
        (Pane::Jobs, Room::Little) => vec![Length(4), Fill(1), Length(9), Length(5), Length(8)],
        (Pane::Jobs, _) => vec![
            Length(5),
            Fill(1),
            Length(9),
            Length(10),
            Length(HOPS),
            Length(8),
            Length(6),
            Fill(1),
        ],
        (Pane::Trials, Room::Little) => vec![Length(5), Fill(1), Length(8), Length(8)],
        (Pane::Trials, _) => {
            vec![Length(5), Fill(3), Length(7), Length(8), Length(16), Fill(2)]
        }
        (Pane::Hosts, Room::Little) => vec![Length(4), Fill(1), Length(8), Length(7)],
        (Pane::Hosts, Room::Enough) => vec![Length(5), Fill(1), Length(8), Length(7), Fill(3)],
        (Pane::Hosts, Room::Much) => {
            vec![Length(5), Fill(1), Length(8), Length(7), Length(5), Length(6), Fill(3)]
        }
        (Pane::Events, _) => vec![Length(8), Fill(1)],
    }
}

/// The names of a pane's columns; true for numbers.
fn names(view: &View, pane: Pane, room: Room) -> Vec<(&str, bool)> {
    let metric = view.job().map_or("BEST", |job| job.metric.as_str());
    // `accuracy` of `valid/accuracy`: there is room for that.
    let metric = metric.rsplit('/').next().unwrap_or(metric);
    match (pane, room) {
        (Pane::Jobs, Room::Little) => {
            vec![("JOB", true), ("NAME", false), ("STATE", false), ("HOPS", true), ("BEST", false)]
        }
        (Pane::Jobs, _) => vec![
            ("JOB", true),
            ("NAME", false),
            ("STATE", false),
            ("HOPS", false),
            ("", false),
            ("BEST", false),
            ("LEASES", true),
            ("WAITS", false),
        ],
        (Pane::Trials, Room::Little) => {
            vec![("TRIAL", true), ("NAME", false), (metric, false), ("CURVE", false)]
        }
        (Pane::Trials, _) => vec![
            ("TRIAL", true),
            ("NAME", false),
            ("EPOCH", false),
            (metric, false),
            ("CURVE", false),
            ("STATE", false),
        ],
        (Pane::Hosts, Room::Little) => {
            vec![("HOST", true), ("NAME", false), ("STATE", false), ("BUSY", false)]
        }
        (Pane::Hosts, Room::Much) => vec![
            ("HOST", true),
            ("NAME", false),
            ("STATE", false),
            ("BUSY", false),
            ("CORES", true),
            ("MEMORY", true),
            ("RUNS", false),
        ],
        (Pane::Hosts, Room::Enough) => vec![
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
fn cells(view: &View, pane: Pane, line: usize, room: Room) -> Option<Vec<Cell>> {
    Some(match pane {
        Pane::Jobs => job(view.jobs().get(line)?, room),
        Pane::Trials => trial(view.detail()?, line, room)?,
        Pane::Hosts => host(view.hosts().get(line)?, room),
        Pane::Events => event(view.detail()?.events.get(line)?),
    })
}

fn job(job: &JobView, room: Room) -> Vec<Cell> {
    let best = job.best.as_ref().map_or_else(|| "-".to_owned(), |best| text::metric(best.value));
    let mut cells = vec![number(job.job.to_string()), job.name.clone().into(), state(job)];
    if room == Room::Little {
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

fn trial(detail: &Detail, line: usize, room: Room) -> Option<Vec<Cell>> {
    let of = detail.leaders.get(line)?;
    let (id, name) = (number(of.trial.to_string()), of.name.clone().into());
    let best: Cell = of.best.map_or_else(|| "-".to_owned(), text::metric).into();
    let curve = Cell::Curve(of.values.clone());
    Some(if room == Room::Little {
        vec![id, name, best, curve]
    } else {
        vec![id, name, of.epochs.clone().into(), best, curve, of.state.clone().into()]
    })
}

/// Slots of a host that compute.
fn busy(host: &HostView) -> usize {
    host.leases.iter().filter(|lease| lease.running).count()
}

fn host(host: &HostView, room: Room) -> Vec<Cell> {
    let state = Line::from(host.status());
    let state = if host.state == HostState::Live { state.fg(Color::Green) } else { state.dim() };
    let mut cells = vec![
        number(host.host.to_string()),
        host.name.clone().into(),
        Cell::Text(state),
        format!("{}/{}", busy(host), host.slots).into(),
    ];
    if room == Room::Much {
        cells.extend(taken(host));
    }
    if room != Room::Little {
        let running = host.leases.iter().filter(|lease| lease.running);
        let runs = running.map(|lease| runs(lease, room)).collect::<Vec<_>>().join("; ");
        cells.push(match &host.waiting {
            Some(reason) if runs.is_empty() => {
                Cell::Text(Line::from(text::first_line(reason)).fg(Color::Yellow))
            }
            _ => runs.into(),
        });
    }
    cells
}

/// Cores that the units of a host keep busy and their memory, as far as it has said so.
fn taken(host: &HostView) -> [Cell; 2] {
    let usages = || host.leases.iter().filter_map(|lease| lease.usage);
    if usages().next().is_none() {
        return ["-", "-"].map(|none| number(none.to_owned()));
    }
    let cores: f64 = usages().map(|usage| usage.cores).sum();
    let memory = usages().map(|usage| usage.memory).fold(0, u64::saturating_add);
    [number(format!("{cores:.1}")), number(text::bytes(memory))]
}

/// The unit in a slot: `job 3, trial 1: train epoch 2, shard 3, share 25 %`. Where there is little room, without the CPU share.
fn runs(lease: &HeldView, room: Room) -> String {
    let cpu_share = lease.cpu_share.filter(|_| room == Room::Much);
    let cpu_share = cpu_share.map(|cpu_share| format!(", {cpu_share}")).unwrap_or_default();
    format!("job {}, trial {}: {}{cpu_share}", lease.job, lease.trial, lease.unit)
}

fn event(event: &EventView) -> Vec<Cell> {
    let timestamp = text::timestamp(event.at);
    // The time of day, of a date and a time.
    let time = timestamp.split('T').nth(1).and_then(|time| time.split('.').next());
    let time = Line::from(time.unwrap_or_default().to_owned()).dim();
    vec![Cell::Text(time), event.sentence().into_owned().into()]
}
