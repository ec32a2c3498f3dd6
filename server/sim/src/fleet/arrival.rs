//! When a host is there: an endless list of stays, made as it is needed.

use super::{
    check::beyond,
    day_time::hours,
    files::Files,
    quantity::{float, whole},
    scenario::{HostGroup, Trace},
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;

/// One stay of a host, in microseconds of virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) from: u64,
    /// `u64::MAX`: for good.
    pub(crate) to: u64,
}

/// The machine that takes the place of a host that has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back {
    /// The same machine comes back, with its disk.
    Itself,
    /// Another machine stands in its place.
    Another,
}

const DAY: u64 = 86_400_000_000;
/// No stay is shorter: a host that comes and goes at one instant is none.
const MIN_STAY: u64 = 1;

/// Where a host's stays come from.
#[derive(Debug)]
enum Process {
    Always,
    /// From, how long, and what the time of day was at the start.
    Hours {
        from: u64,
        lasts: u64,
        begun: u64,
    },
    Exponential {
        up: f64,
        down: f64,
        chance: ChaCha8Rng,
    },
    Spot {
        mean: f64,
        back: u64,
        chance: ChaCha8Rng,
    },
    /// The earliest last.
    List(Vec<Stay>),
}

/// The stays of one host.
#[derive(Debug)]
pub(crate) struct Stays {
    process: Process,
    pub(crate) back: Back,
    /// How long before it goes a host hears of it.
    pub(crate) notice: Option<u64>,
    last: u64,
}

impl Stays {
    /// The stays of the host with this number in its group. `begun`: the time of day at which all begins.
    pub(crate) fn new(
        group: &HostGroup,
        traced: &[Traced],
        n: u32,
        seed: [u64; 3],
        begun: u64,
    ) -> Self {
        let chance = || seeds::stream("sim-arrival", &seed);
        let mut back = match group.preempted {
            Some(preempted) if preempted.another => Back::Another,
            _ => Back::Itself,
        };
        let process = if let Some((from, to)) = group.hours.as_deref().and_then(|h| hours(h).ok()) {
            let lasts = if to > from { to - from } else { to + DAY - from };
            Process::Hours { from, lasts, begun }
        } else if let Some(times) = group.exponential {
            let (up, down) = (float(times.up.0), float(times.down.0));
            Process::Exponential { up, down, chance: chance() }
        } else if let Some(spot) = group.spot.filter(|spot| spot.losses_per_hour > 0.0) {
            back = Back::Another;
            // So that this share of many hosts is gone after an hour.
            let mean = -3600e6 / libm::log1p(-spot.losses_per_hour);
            Process::Spot { mean, back: spot.back.0, chance: chance() }
        } else if traced.iter().any(|traced| traced.host == n) {
            let own = traced.iter().filter(|traced| traced.host == n);
            let mut stays: Vec<Stay> = own.map(|traced| traced.stay).collect();
            stays.sort_by_key(|stay| std::cmp::Reverse(stay.from));
            Process::List(stays)
        } else {
            Process::Always
        };
        Self { process, back, notice: group.warned_before(), last: 0 }
    }

    /// The next stay, after the last one.
    pub(crate) fn next(&mut self) -> Option<Stay> {
        let first = self.last == 0;
        let last = self.last;
        let stay = match &mut self.process {
            Process::Always => first.then_some(Stay { from: 0, to: u64::MAX }),
            Process::Hours { from, lasts, begun } => {
                // In time that has its zero at a midnight before the start.
                let at = last + DAY + *begun;
                let days = (at - *from) / DAY;
                let mut from_at = days * DAY + *from;
                if from_at + *lasts <= at {
                    from_at += DAY;
                }
                let zero = DAY + *begun;
                let from = from_at.saturating_sub(zero);
                Some(Stay { from: from.max(last), to: from_at + *lasts - zero })
            }
            Process::Exponential { up, down, chance } => {
                // At the start a host is there as often as it is later on.
                let there = seeds::unit_f64(chance) < *up / (*up + *down);
                let waits = if first && there { 0 } else { exponential(chance, *down) };
                let from = last + waits;
                Some(Stay { from, to: from + exponential(chance, *up).max(MIN_STAY) })
            }
            Process::Spot { mean, back, chance } => {
                let from = if first { 0 } else { last + *back };
                Some(Stay { from, to: from + exponential(chance, *mean).max(MIN_STAY) })
            }
            Process::List(stays) => stays.pop(),
        }?;
        self.last = stay.to.max(1);
        Some(stay)
    }
}

/// A time with this mean.
fn exponential(chance: &mut ChaCha8Rng, mean: f64) -> u64 {
    let uniform = 1.0 - seeds::unit_f64(chance);
    whole(-mean * libm::log(uniform)).unwrap_or(u64::MAX / 4)
}

/// A stay that a trace gives a host of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traced {
    /// The host's number in the group, from 0.
    pub(crate) host: u32,
    pub(crate) stay: Stay,
}

/// A trace's stays, for a group of `count` hosts; those that it doesn't name are always there.
///
/// # Errors
/// Why it can't be read.
pub(crate) fn traced(
    trace: &Trace,
    count: u32,
    files: &mut Files<'_>,
) -> Result<Vec<Traced>, String> {
    let list = match trace {
        Trace::List(list) => list.clone(),
        Trace::File(path) => table(path, &files(path)?)?,
    };
    let micros = |seconds: f64| whole(seconds * 1e6);
    let stays = list.iter().map(|(host, from, to)| {
        if *host >= count {
            return Err(format!("a trace {}", beyond(*host, count)));
        }
        let to_micros = if *to == f64::INFINITY { Some(u64::MAX) } else { micros(*to) };
        let stay = micros(*from).zip(to_micros).filter(|(from, to)| to > from);
        let (from, to) = stay.ok_or_else(|| {
            format!(
                "a trace has host {host} there from {from} to {to}: seconds from 0 are wanted, and an end after \
                 the beginning (`inf`: for good)"
            )
        })?;
        Ok(Traced { host: *host, stay: Stay { from, to } })
    });
    stays.collect()
}

/// The rows of a trace's file, with a line of names above them or without.
fn table(path: &str, text: &str) -> Result<Vec<(u32, f64, f64)>, String> {
    const NAMES: [&str; 3] = ["host", "from", "to"];
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.trim(csv::Trim::All).has_headers(false).flexible(true);
    let mut reader = reader.from_reader(text.as_bytes());
    let (mut list, mut columns) = (Vec::new(), [0, 1, 2]);
    for (n, record) in reader.records().enumerate() {
        let record = record.map_err(|error| format!("the trace `{path}`: {error}"))?;
        let is_number = |field: &str| field.parse::<f64>().is_ok();
        if n == 0 && !record.iter().any(is_number) {
            let column = |name: &str| record.iter().position(|of| of.eq_ignore_ascii_case(name));
            if let [Some(host), Some(from), Some(to)] = NAMES.map(column) {
                columns = [host, from, to];
            }
            continue;
        }
        let line = record.position().map_or(0, csv::Position::line);
        let row = || {
            let [host, from, to] = columns.map(|column| record.get(column));
            let host = host?.parse().ok()?;
            Some((host, from?.parse().ok()?, to?.parse().ok()?))
        };
        let row = row().ok_or_else(|| {
            format!(
                "line {line} of the trace `{path}` is no host,from,to: three numbers are wanted"
            )
        })?;
        list.push(row);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::quantity::Span;
    use crate::fleet::scenario::{Exponential, Spot};

    fn stays(group: &HostGroup, n: u32, begun: u64, count: usize) -> Vec<(u64, u64)> {
        let traced =
            group.trace.as_ref().map(|trace| traced(trace, 9, &mut |_| Err("no".into())).unwrap());
        let mut stays = Stays::new(group, &traced.unwrap_or_default(), n, [1, 0, n.into()], begun);
        (0..count).map_while(|_| stays.next()).map(|stay| (stay.from, stay.to)).collect()
    }

    const HOUR: u64 = 3_600_000_000;

    #[test]
    fn hours_come_every_day() {
        let night = HostGroup { hours: Some("22:00-07:00".into()), ..HostGroup::default() };
        let at_midnight = vec![(0, 7 * HOUR), (22 * HOUR, 31 * HOUR), (46 * HOUR, 55 * HOUR)];
        assert_eq!(stays(&night, 0, 0, 3), at_midnight);
        assert_eq!(
            stays(&night, 0, 12 * HOUR, 2),
            [(10 * HOUR, 19 * HOUR), (34 * HOUR, 43 * HOUR)]
        );
        let day = HostGroup { hours: Some("08:00-18:30".into()), ..HostGroup::default() };
        assert_eq!(stays(&day, 0, 9 * HOUR, 1), [(0, 9 * HOUR + HOUR / 2)]);
    }

    #[test]
    fn chance_keeps_to_its_means() {
        let times = Exponential { up: Span(3 * HOUR), down: Span(HOUR) };
        let group = HostGroup { exponential: Some(times), ..HostGroup::default() };
        let there: Vec<_> = (0..400).flat_map(|n| stays(&group, n, 0, 20)).collect();
        let up: u64 = there.iter().map(|(from, to)| to - from).sum::<u64>() / 8000;
        assert!((28 * HOUR / 10..32 * HOUR / 10).contains(&up), "{up}");
        assert!(there.iter().all(|(from, to)| from < to));

        let spot = Spot { losses_per_hour: 0.5, back: Span(60_000_000) };
        let group = HostGroup { spot: Some(spot), ..HostGroup::default() };
        let lost = (0..1000).filter(|n| stays(&group, *n, 0, 1)[0].1 < HOUR).count();
        assert!((450..550).contains(&lost), "{lost} of 1000 in an hour");
        let none = HostGroup { spot: Some(Spot::default()), ..HostGroup::default() };
        assert_eq!(stays(&none, 0, 0, 2), [(0, u64::MAX)]);
    }

    #[test]
    fn a_trace_names_hosts_that_are_not_always_there() {
        let trace = Trace::List(vec![(1, 100.0, f64::INFINITY), (1, 0.0, 50.0)]);
        let group = HostGroup { trace: Some(trace), ..HostGroup::default() };
        assert_eq!(stays(&group, 0, 0, 2), [(0, u64::MAX)]);
        assert_eq!(stays(&group, 1, 0, 3), [(0, 50_000_000), (100_000_000, u64::MAX)]);
        let mut files = |_: &str| Ok("host,from,to\n0, 1.5, 2\n".to_owned());
        let read = traced(&Trace::File("t.csv".into()), 1, &mut files).unwrap();
        assert_eq!(read, [Traced { host: 0, stay: Stay { from: 1_500_000, to: 2_000_000 } }]);
        assert!(traced(&Trace::List(vec![(0, 2.0, 1.0)]), 1, &mut files).is_err());
    }
    #[test]
    fn a_trace_has_a_line_of_names_or_none() {
        let read = |text: &str, count| {
            traced(&Trace::File("t.csv".into()), count, &mut |_| Ok(text.to_owned()))
        };
        let both = [(0, 1_000_000, 2_000_000), (1, 3_000_000, u64::MAX)];
        for text in [
            "0,1,2\n1,3,inf\n",
            "host,from,to\n0,1,2\n1,3,inf\n",
            "a, b, c\n0, 1, 2\n1, 3, inf",
            "To,Host,From\n2,0,1\n\ninf,1,3\n",
        ] {
            let stays = read(text, 2).unwrap();
            let stays: Vec<_> =
                stays.iter().map(|of| (of.host, of.stay.from, of.stay.to)).collect();
            assert_eq!(stays, both, "{text}");
        }
        for (text, wanted) in [
            ("0,1,x\n", "line 1 of the trace `t.csv` is no host,from,to"),
            ("host,from,to\n0,1\n", "line 2 of the trace `t.csv` is no host,from,to"),
            ("2,0,1\n", "a trace names host 2, and the group has the hosts 0 to 1"),
            ("0,-1,1\n", "a trace has host 0 there from -1 to 1: seconds from 0 are wanted"),
        ] {
            let error = read(text, 2).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
