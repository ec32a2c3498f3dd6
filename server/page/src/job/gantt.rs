//! The Gantt chart of a job's leases: hosts from top to bottom, time from left to right.
//!
//! ```text
//!            10 min before         5 min before
//!   lab-7    [ 3      ][ 0  ]  [ 3         ]      a lane for each lease that a host has at the same time
//!                 [ 1            ]
//!   lab-8    [ 2           ]      [ 2    ]        in a bar: its trial
//! ```
//!
//! The chart is SVG without style attributes, which the page's policy forbids. Places from left to right are per cent of its
//! width. So the chart is as wide as the page, and its text keeps its size.

use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    ids::{HostId, LeaseId, TrialId},
    quantity::{SaturatingFrom as _, to_u64},
    residency::MoveKind,
    time::UnixMillis,
    view::CpuShareView,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// Lanes at most.
const MAX_LANES: usize = 200;
/// Bars at most: the last ones.
const MAX_BARS: usize = 2_000;
/// Marks of the time at most.
const MAX_TICKS: u64 = 8;
/// Trials of this many numbers in a row have different colours.
const COLOURS: u32 = 8;
/// Height of a lane, of a bar in it, and of the axis above; in pixels.
const LANE: u64 = 20;
const BAR: u64 = 16;
const AXIS: u64 = 20;
/// The whole width, that of the hosts' names, of the narrowest bar, and of one that shows its trial; in thousandths of a per cent.
const WIDTH: u64 = 100_000;
const NAMES: u64 = 14_000;
const MIN_BAR: u64 = 150;
const LABELLED_BAR: u64 = 2_500;
/// Lengths of time between two marks, in milliseconds: seconds, minutes, hours, days.
const STEPS: [u64; 17] = [
    1_000,
    2_000,
    5_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    1_800_000,
    3_600_000,
    7_200_000,
    21_600_000,
    43_200_000,
    86_400_000,
    604_800_000,
    2_592_000_000,
];

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseBarEnd {
    /// The lease is live.
    Live,
    /// With a result.
    Reported,
    /// With a trainer error.
    Failed,
    /// The lease's host wasn't heard of, or made no progress, in time.
    Expired,
    /// The lease's host gave it back.
    Returned,
    /// Another result settled the lease's unit, its trial ended, or its host was revoked.
    Revoked,
}

impl LeaseBarEnd {
    /// The end's class in the chart.
    const fn class(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Reported => "reported",
            Self::Failed | Self::Expired => "lost",
            Self::Returned | Self::Revoked => "returned",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Reported => "reported",
            Self::Failed => "failed",
            Self::Expired => "ran out",
            Self::Returned => "given back",
            Self::Revoked => "revoked",
        }
    }
}

/// A lease, from its grant to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseBar {
    /// The lease.
    pub lease: LeaseId,
    /// The lease's host.
    pub host: HostId,
    /// The lease's trial.
    pub trial: TrialId,
    /// The lease's unit, in words.
    pub unit: String,
    /// When it was granted.
    pub from: UnixMillis,
    /// When it ended; of a live one, when that was known.
    pub to: UnixMillis,
    /// How it ended.
    pub end: LeaseBarEnd,
    /// The CPU share that it has now, where it runs and its job has a policy for that.
    pub cpu_share: Option<CpuShareView>,
    /// Why its trial has come to the host, where this is the first lease after a move.
    pub moved: Option<MoveKind>,
}

/// The content of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Where it begins.
    pub from: UnixMillis,
    /// Where it ends.
    pub until: UnixMillis,
    /// Has the job ended? Then times are counted from the beginning on, else back from the end.
    pub ended: bool,
    /// The names of hosts.
    pub names: BTreeMap<HostId, String>,
    /// Leases, in any order. Those outside the time are left out.
    pub leases: Vec<LeaseBar>,
}

/// A lane: one host's leases, one after the other.
#[derive(Debug)]
struct Lane<'a> {
    host: HostId,
    /// Whether the lane is its host's first.
    is_first: bool,
    bars: Vec<&'a LeaseBar>,
}

impl Timeline {
    /// The leases that overlap the time, the last ones if they are too many, in the order of their grants.
    fn shown(&self) -> Vec<&LeaseBar> {
        let overlaps = |bar: &&LeaseBar| bar.to >= self.from && bar.from <= self.until;
        let mut shown: Vec<&LeaseBar> = self.leases.iter().filter(overlaps).collect();
        shown.sort_by_key(|bar| Reverse((bar.from, bar.lease)));
        shown.truncate(MAX_BARS);
        shown.reverse();
        shown
    }

    /// The place of a time from the left, in thousandths of a per cent.
    fn place(&self, at: UnixMillis) -> u64 {
        let at = at.clamp(self.from, self.until.max(self.from)) - self.from;
        let span = (self.until - self.from).0.max(1);
        NAMES + at.0.saturating_mul(WIDTH - NAMES) / span
    }

    /// Marks of the time: places and words.
    fn ticks(&self) -> Vec<(u64, String)> {
        let span = (self.until - self.from).0;
        let step = STEPS.into_iter().find(|step| span / step <= MAX_TICKS);
        let step = step.unwrap_or_else(|| span.div_ceil(MAX_TICKS)).max(1);
        let ticks = (1..=span / step).map(|count| {
            let length = step.saturating_mul(count);
            let (at, sign) = match self.ended {
                true => (self.from.0.saturating_add(length), "+"),
                false => (self.until.0.saturating_sub(length), "−"),
            };
            (self.place(UnixMillis(at)), format!("{sign}{}", figures::duration(length)))
        });
        ticks.collect()
    }
}

/// Puts leases, which are in the order of their grants, into lanes: each into its host's first lane that is free by then (greedy
/// interval partitioning, which needs as few lanes as possible). Lanes are in the order of their hosts.
fn pack<'a>(shown: &[&'a LeaseBar]) -> Vec<Lane<'a>> {
    let mut lanes: BTreeMap<HostId, Vec<Lane<'a>>> = BTreeMap::new();
    for bar in shown {
        let of_host = lanes.entry(bar.host).or_default();
        let is_free =
            |lane: &&mut Lane<'_>| lane.bars.last().is_none_or(|last| last.to <= bar.from);
        match of_host.iter_mut().find(is_free) {
            Some(lane) => lane.bars.push(bar),
            None => {
                let is_first = of_host.is_empty();
                of_host.push(Lane { host: bar.host, is_first, bars: vec![bar] });
            }
        }
    }
    lanes.into_values().flatten().collect()
}

/// The part of a job's page that shows its leases.
#[must_use]
pub fn gantt(timeline: &Timeline) -> Markup {
    let shown = timeline.shown();
    if shown.is_empty() {
        return html! { p.hint { "No leases in this time." } };
    }
    let mut lanes = pack(&shown);
    let all = lanes.len();
    lanes.truncate(MAX_LANES);
    let height = AXIS + LANE * to_u64(lanes.len());
    let hosts = lanes.iter().filter(|lane| lane.is_first).count();
    let bars: usize = lanes.iter().map(|lane| lane.bars.len()).sum();
    let (from, until) = (figures::timestamp(timeline.from), figures::timestamp(timeline.until));
    let counts = format!(
        "{} on {}",
        figures::counted(to_u64(bars), "lease"),
        figures::counted(to_u64(hosts), "host")
    );
    html! {
        p.hint {
            (counts) ", " (figures::duration((timeline.until - timeline.from).0)) " until "
            time { (until) }
            @if lanes.len() < all { "; " (all - lanes.len()) " more lanes aren't shown" }
        }
        ul.legend {
            li { "A number is a trial." }
            li { span.sign.outlined { "live" } }
            li { span.sign.dashed { "failed or ran out" } }
            li { span.sign.pale { "given back or revoked" } }
            @if shown.iter().any(|bar| bar.moved.is_some()) {
                li { "M and R: the trial has moved there, as it seemed to have converged, or to rebalance the hosts." }
            }
        }
        div.wide tabindex="0" role="region" aria-label="Leases by hosts and time" {
            svg.gantt width="100%" height=(height) role="img" aria-label={ (counts) ", from " (from) " to " (until) } {
                @for (place, words) in timeline.ticks() {
                    line.grid x1=(percent(place)) x2=(percent(place)) y1=(AXIS - 4) y2=(height) { }
                    text.tick x=(percent(place)) y=(AXIS - 8) text-anchor="middle" { (words) }
                }
                @for (number, lane) in lanes.iter().enumerate() { (lane_of(timeline, lane, AXIS + LANE * to_u64(number))) }
            }
        }
    }
}

fn lane_of(timeline: &Timeline, lane: &Lane<'_>, top: u64) -> Markup {
    let name = timeline.names.get(&lane.host);
    let name = name.map_or_else(|| format!("host {}", lane.host), Clone::clone);
    html! {
        @if lane.is_first {
            line.grid x1="0" x2="100%" y1=(top) y2=(top) { }
            // A long name is cut off at the edge of its own SVG.
            svg x="0" y=(top) width=(percent(NAMES - 500)) height=(LANE) {
                text.host x="2" y=(LANE - 5) { title { (name) ", host " (lane.host) } (name) }
            }
        }
        @for bar in &lane.bars { (bar_of(timeline, &name, bar, top + (LANE - BAR) / 2)) }
    }
}

fn bar_of(timeline: &Timeline, host: &str, bar: &LeaseBar, top: u64) -> Markup {
    let from = timeline.place(bar.from);
    let width = timeline.place(bar.to).saturating_sub(from).max(MIN_BAR);
    let colour = u32::saturating_from(bar.trial.0 % COLOURS);
    html! {
        g #{ "lease-" (bar.lease) } class={ "bar " (bar.end.class()) " colour-" (colour) } {
            title {
                "trial " (bar.trial) ": " (bar.unit) ", on " (host) ", " (figures::duration((bar.to - bar.from).0)) ", "
                (bar.end.words()) @if let Some(cpu_share) = bar.cpu_share { ", " (cpu_share) } @if let Some(moved) = bar.moved { ", " (moved.words()) } " (lease " (bar.lease) ")"
            }
            rect x=(percent(from)) y=(top) width=(percent(width)) height=(BAR) rx="2" { }
            @if width >= LABELLED_BAR {
                text x=(percent(from + width / 2)) y=(top + BAR - 4) text-anchor="middle" {
                    (bar.trial) @if let Some(moved) = bar.moved { " " (moved.letter()) }
                }
            }
        }
    }
}

/// `12.345%`, of thousandths.
fn percent(thousandths: u64) -> String {
    format!("{}.{:03}%", thousandths / 1000, thousandths % 1000)
}

#[cfg(test)]
mod tests;
