//! Charts of hosts x time: trials as colours, hops labelled where there is room.

use super::{
    plan::Plan,
    quantity::float,
    tally::{Bar, Came},
};
use sojourn_protocol::quantity::{SaturatingFrom as _, to_u64, to_usize};
use sojourn_workgen::plan::Schedule;
use std::fmt::Write;

/// The chart of one run.
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    rows: Vec<String>,
    /// The first row of each host.
    first: Vec<u32>,
    jobs: Vec<String>,
    bars: Vec<Bar>,
    end: u64,
    of: Of,
}

/// The subject of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Hosts that train, in microseconds.
    Fleet,
    /// The machines of an open shop, in whatever its file counts.
    Shop,
}

const LEFT: f64 = 150.0;
const WIDTH: f64 = 1400.0;
const TOP: f64 = 46.0;
/// Rows that are drawn: a page with more is of no use to anybody.
const MAX_ROWS: usize = 400;
/// Narrower bars are drawn as if they were so wide, and only where the one before ends.
const NARROW: f64 = 0.25;

impl Chart {
    pub(crate) fn new(plan: &Plan, title: String, mut bars: Vec<Bar>) -> Self {
        bars.sort_by_key(|bar| (bar.host, bar.slot, bar.from));
        let (mut rows, mut first) = (Vec::new(), Vec::new());
        for (n, place) in plan.hosts.iter().enumerate() {
            first.push(u32::saturating_from(rows.len()));
            let kind = plan.kinds.get(place.kind).map_or_else(String::new, |kind| plan.named(kind));
            let slots = plan.slots(*place);
            rows.extend((0..slots).map(|slot| match slots {
                1 => format!("host {n}, {kind}"),
                _ => format!("host {n}.{slot}, {kind}"),
            }));
        }
        let jobs = plan.jobs.iter().map(|job| job.name.clone()).collect();
        let end = bars.iter().map(|bar| bar.to).max().unwrap_or(1).max(1);
        Self { title, rows, first, jobs, bars, end, of: Of::Fleet }
    }

    /// Of an open shop's schedule: machines x time, jobs as colours.
    #[must_use]
    pub fn of_open_shop(title: String, machines: usize, schedule: &Schedule) -> Self {
        let mut bars: Vec<Bar> = schedule
            .steps
            .iter()
            .map(|step| Bar {
                host: step.machine,
                slot: 0,
                job: 0,
                trial: step.trial,
                epoch: step.epoch,
                shard: Some(step.shard),
                from: step.start,
                to: step.end,
                came: Came::Whole,
            })
            .collect();
        bars.sort_by_key(|bar| (bar.host, bar.slot, bar.from));
        let rows = (0..machines).map(|machine| format!("machine {machine}")).collect();
        let first = (0u32..).take(machines).collect();
        let end = schedule.makespan.max(1);
        Self { title, rows, first, jobs: Vec::new(), bars, end, of: Of::Shop }
    }

    /// An SVG picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let shown = self.rows.len().min(MAX_ROWS);
        let height = row_height(shown);
        let bottom = TOP + height * number(shown);
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"8\" y=\"18\" font-size=\"14\">{}</text>\n",
            LEFT + WIDTH + 20.0,
            bottom + 20.0,
            escaped(&self.title),
        );
        for (n, row) in self.rows.iter().take(shown).enumerate() {
            if height >= 9.0 || n.is_multiple_of(10) {
                let y = TOP + height * number(n) + height * 0.75;
                let _ = writeln!(out, "<text x=\"8\" y=\"{y:.1}\">{}</text>", escaped(row));
            }
        }
        self.axis(&mut out, bottom);
        let mut last = (u32::MAX, 0.0);
        for (n, bar) in self.bars.iter().enumerate() {
            let Some(row) = self.row_of(bar).filter(|row| *row < shown) else { continue };
            let (from, to) = (self.x(bar.from), self.x(bar.to));
            let width = (to - from).max(NARROW);
            if last == (bar.host * 1024 + bar.slot, to) || (to - from < NARROW && last.1 >= to) {
                continue;
            }
            last = (bar.host * 1024 + bar.slot, from + width);
            let y = TOP + height * number(row);
            let (fill, opacity) = colour(bar);
            let _ = write!(
                out,
                "<rect x=\"{from:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{:.1}\" \
                 fill=\"{fill}\" fill-opacity=\"{opacity}\" data-n=\"{n}\"><title>{}</title></rect>",
                (height - 1.0).max(1.0),
                escaped(&self.words(bar)),
            );
            let label = self.label(bar);
            if height >= 10.0 && width > 7.0 * number(label.len()) {
                let (x, y) = (from + 3.0, y + height * 0.72);
                let _ = write!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" pointer-events=\"none\">{label}</text>"
                );
            }
            out.push('\n');
        }
        if shown < self.rows.len() {
            let more = self.rows.len() - shown;
            let _ =
                writeln!(out, "<text x=\"8\" y=\"{:.1}\">and {more} more</text>", bottom + 14.0);
        }
        out.push_str("</svg>\n");
        out
    }

    /// A page of its own, in which a unit under the pointer says what it is.
    #[must_use]
    pub fn html(&self) -> String {
        format!(
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{}</title>\n<style>\
             body{{margin:0;font-family:sans-serif}}\
             #tip{{position:fixed;background:#222;color:#fff;padding:4px 8px;font-size:12px;\
             border-radius:3px;pointer-events:none;display:none}}\
             rect[data-n]:hover{{stroke:#000;stroke-width:1.5}}</style>\n{}<div id=\"tip\"></div>\n\
             <script>\nconst tip = document.getElementById('tip');\n\
             document.querySelectorAll('title').forEach(t => {{\n  const r = t.parentNode;\n  \
             if (!r.dataset || r.dataset.n === undefined) return;\n  r.dataset.words = t.textContent;\n  \
             t.remove();\n}});\n\
             document.addEventListener('mousemove', e => {{\n  const words = e.target.dataset && \
             e.target.dataset.words;\n  tip.style.display = words ? 'block' : 'none';\n  \
             if (!words) return;\n  tip.textContent = words;\n  \
             tip.style.left = Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 8) + 'px';\n  \
             tip.style.top = (e.clientY + 14) + 'px';\n}});\n</script>\n",
            escaped(&self.title),
            self.svg(),
        )
    }

    fn axis(&self, out: &mut String, bottom: f64) {
        let end = match self.of {
            Of::Fleet => float(self.end) / 1e6,
            Of::Shop => float(self.end),
        };
        let step = nice(end / 10.0);
        let mut at = 0.0;
        while at <= end {
            let x = LEFT + at / end * WIDTH;
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#ccc\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                TOP - 4.0,
                TOP - 8.0,
                match self.of {
                    Of::Fleet => seconds(at),
                    Of::Shop => at.to_string(),
                },
            );
            at += step;
        }
    }

    fn x(&self, at: u64) -> f64 {
        LEFT + float(at) / float(self.end) * WIDTH
    }

    fn row_of(&self, bar: &Bar) -> Option<usize> {
        let first = self.first.get(usize::try_from(bar.host).ok()?)?;
        usize::try_from(first + bar.slot).ok()
    }

    /// The description of a bar, in words.
    fn words(&self, bar: &Bar) -> String {
        if self.of == Of::Shop {
            let Bar { trial, host, from, to, .. } = bar;
            return format!("job {trial}, machine {host}: {from} to {to}");
        }
        let job = self.jobs.get(to_usize(bar.job));
        let job = job.filter(|_| self.jobs.len() > 1).map(|name| format!("{name}, "));
        let what = match bar.shard {
            Some(shard) => format!("shard {shard}"),
            None => "evaluation".to_owned(),
        };
        let came = match bar.came {
            Came::Whole => "",
            Came::Part => ", a part",
            Came::Lost => ", lost",
        };
        let (from, to) = (float(bar.from) / 1e6, float(bar.to) / 1e6);
        format!(
            "{}trial {}, epoch {}, {what}: {from:.1} s to {to:.1} s{came}",
            job.unwrap_or_default(),
            bar.trial,
            bar.epoch,
        )
    }

    fn label(&self, bar: &Bar) -> String {
        match bar.shard {
            _ if self.of == Of::Shop => bar.trial.to_string(),
            Some(shard) => format!("{}.{shard}", bar.trial),
            None => format!("{} eval", bar.trial),
        }
    }
}

/// Neighbouring trials get colours that are far apart: by the golden angle round the circle.
fn colour(bar: &Bar) -> (String, &'static str) {
    let hue = (f64::from(bar.trial) * 137.508 + f64::from(bar.job) * 50.0) % 360.0;
    let lightness = 55 + bar.epoch % 3 * 8;
    let opacity = match bar.came {
        Came::Whole | Came::Part => "1",
        Came::Lost => "0.3",
    };
    (format!("hsl({hue:.0},60%,{lightness}%)"), opacity)
}

fn row_height(rows: usize) -> f64 {
    (900.0 / number(rows.max(1))).clamp(3.0, 22.0)
}

fn number(count: usize) -> f64 {
    float(to_u64(count))
}

/// 1, 2 or 5 times a power of ten, at least so large.
fn nice(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(step.max(1e-9))));
    [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|n| *n >= step).unwrap_or(step)
}

fn seconds(at: f64) -> String {
    match at {
        at if at < 10.0 => format!("{at:.1} s"),
        at if at < 600.0 => format!("{at:.0} s"),
        at if at < 7200.0 => format!("{:.0} min", at / 60.0),
        at => format!("{:.1} h", at / 3600.0),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
