//! The figures of a demo: the leader board, the counts, and whether each promise was kept.

use crate::{
    cli::{
        render::{
            tables::{Column, Grid},
            text,
        },
        terminal::exit::Failure,
    },
    replay::{Replayed, Verdict, trial::verdict_text},
};
use serde::Serialize;
use serde_json::Value;
use sojourn_protocol::{
    digest::Digest,
    ids::TrialId,
    quantity::to_u64,
    spec::Goal,
    view::{EventView, JobState, JobView, TrialView},
};
use std::{collections::BTreeSet, path::PathBuf, time::Instant};

/// The accuracy that the best trial must reach.
const MIN_ACCURACY: f64 = 0.95;
/// Trials that the leader board shows.
const BOARD: usize = 12;

/// All that was seen.
pub(crate) struct Figures {
    pub(crate) view: JobView,
    pub(crate) trials: Vec<TrialView>,
    pub(crate) events: Vec<EventView>,
    pub(crate) replayed: Replayed,
    /// The checkpoint of the best epoch, as the job file alone makes it.
    pub(crate) alone: Option<Digest>,
    pub(crate) file: PathBuf,
    pub(crate) clients: usize,
    pub(crate) clients_killed: u64,
    pub(crate) server_restarts: u64,
    pub(crate) transferred: u64,
    /// From the submission to the last result.
    pub(crate) search_seconds: f64,
    /// From the first process to the verdict.
    pub(crate) seconds: f64,
}

/// The object that `--json` prints.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    trials: u32,
    hops: u64,
    hops_expected: u64,
    leases_expired: u64,
    clients_killed: u64,
    server_restarts: u64,
    superseded: u64,
    best: Best,
    replay: Replay,
    /// The checkpoint of the best epoch, as the job file alone makes it.
    alone_sha256: Option<Digest>,
    seconds: f64,
    #[serde(skip)]
    view: Option<Box<JobView>>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Clone, Serialize)]
struct Best {
    trial: TrialId,
    accuracy: f64,
    /// The recorded checkpoint of the best epoch.
    sha256: Digest,
}

#[derive(Debug, Clone, Serialize)]
struct Replay {
    /// The checkpoint of the same epoch, as the replay made it.
    sha256: Option<Digest>,
    verdict: Verdict,
}

impl Summary {
    pub(super) fn of(figures: Figures) -> Result<Self, Failure> {
        let text = text(&figures);
        let Figures { view, trials, replayed, .. } = figures;
        let best = view.best.clone().ok_or_else(|| Failure::work("no trial was evaluated"))?;
        // Versions are numbered from 1 by the hops that made them; the epochs before make the same many.
        let shards = view.hops_expected
            / u64::from(view.trials.max(1))
            / trials.first().map_or(1, |trial| u64::from(trial.epochs.max(1)));
        let version = (u64::from(best.epoch.0) + 1) * shards;
        let index = usize::try_from(version).ok().and_then(|version| version.checked_sub(1));
        let sha256 = index.and_then(|index| replayed.made.get(index)).copied();
        Ok(Self {
            trials: view.trials,
            hops: view.hops,
            hops_expected: view.hops_expected,
            leases_expired: view.leases_expired,
            clients_killed: figures.clients_killed,
            server_restarts: figures.server_restarts,
            superseded: view.superseded,
            best: Best { trial: best.trial, accuracy: best.value, sha256: best.checkpoint.sha256 },
            replay: Replay { sha256, verdict: replayed.verdict },
            alone_sha256: figures.alone,
            seconds: (figures.seconds * 10.0).round() / 10.0,
            view: Some(Box::new(view)),
            text,
        })
    }

    /// The leader board and the counts, for people.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Were the promises kept?
    pub(super) fn check(&self) -> Result<(), Failure> {
        let finished = self.view.as_ref().is_some_and(|view| {
            view.state == JobState::Finished && view.trials_finished == view.trials
        });
        let wrong = [
            (
                self.clients_killed != 1,
                "the search ended before a client was killed: `--epochs` makes it longer",
            ),
            (
                self.server_restarts != 1,
                "the search ended before the server was killed: `--epochs` makes it longer",
            ),
            (self.best.accuracy < MIN_ACCURACY, "the best accuracy is too low"),
            (!finished, "not every trial finished"),
            (self.hops != self.hops_expected, "hops were lost or done twice"),
            (self.leases_expired == 0, "no lease ran out though a client was killed"),
            (self.replay.verdict != Verdict::Identical, "the replay is not identical"),
            (self.replay.sha256 != Some(self.best.sha256), "the best model isn't the replay's"),
            (self.alone_sha256 != Some(self.best.sha256), "the job file alone makes another model"),
        ];
        let wrong: Vec<&str> =
            wrong.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Failure::work(format!("{}\n{}", self.text, wrong.join("; "))))
    }
}

/// A line with the seconds since the demo began.
pub(super) fn stamped(begun: Instant, text: &str) -> String {
    format!("[{:5.1} s] {text}", begun.elapsed().as_secs_f64())
}

/// The text beside the count of the progress bar.
pub(super) fn progress(view: &JobView) -> String {
    match &view.best {
        Some(best) => format!("hops; best {} (trial {})", text::metric(best.value), best.trial),
        None => "hops".into(),
    }
}

fn text(figures: &Figures) -> String {
    let view = &figures.view;
    let mut lines = vec![board(&figures.trials, view), String::new()];
    let granted = unit_names(&figures.events);
    let distinct: BTreeSet<&String> = granted.iter().collect();
    let redone = granted.len() - distinct.len();
    #[expect(clippy::cast_precision_loss, reason = "microseconds of minutes")]
    let busy = view.train_micros as f64 / 1e6;
    #[expect(clippy::cast_precision_loss, reason = "three clients")]
    let slots = figures.clients as f64;
    let utilisation = 100.0 * busy / (slots * figures.search_seconds.max(0.001));
    lines.push(format!("best model     {}", figures.file.display()));
    lines.push(format!(
        "hops           {} of {}, each once; {} evaluations",
        view.hops, view.hops_expected, view.evaluations
    ));
    lines.push(format!(
        "leases         {} ran out, {} came back unused; {} handed out again",
        view.leases_expired,
        view.leases_returned,
        text::counted(to_u64(redone), "unit"),
    ));
    lines
        .push(format!("results        {} superseded, {} rejected", view.superseded, view.rejected));
    lines.push(format!("bytes moved    {}", text::bytes(figures.transferred)));
    lines.push(format!(
        "utilisation    {utilisation:.0} % of {} slots x {:.1} s trained or evaluated, on {} cores with the server",
        figures.clients,
        figures.search_seconds,
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    ));
    lines.push(verdict_text(&figures.replayed));
    let best = figures.view.best.as_ref().map(|best| best.checkpoint.sha256);
    if figures.alone.is_some() && figures.alone == best {
        lines.push(
        "fixed visits: job file, data and seed decide the model, whatever machines train it; trained from them alone, without a \
         server, it is the same, byte for byte"
            .to_owned(),
        );
    }
    lines.join("\n")
}

fn board(trials: &[TrialView], view: &JobView) -> String {
    let mut ranked: Vec<&TrialView> = trials.iter().collect();
    ranked.sort_by(|a, b| TrialView::leader_board(Goal::Max, a, b));
    let mut grid = Grid::new(&[
        ("", Column::Number),
        ("trial", Column::Number),
        (&view.metric, Column::Number),
        ("epoch", Column::Number),
        ("model", Column::Text),
        ("choices", Column::Text),
    ]);
    for (place, trial) in (1..).zip(ranked.iter().take(BOARD)) {
        let best = trial.best.as_ref();
        let row = [
            format!("{place}"),
            trial.trial.to_string(),
            best.map_or_else(|| "-".into(), |best| text::metric(best.value)),
            best.map_or_else(|| "-".into(), |best| (best.epoch.0 + 1).to_string()),
            trial.arch.clone(),
            text::choices(&trial.choices),
        ];
        if place == 1 { grid.bold_row(row) } else { grid.row(row) }
    }
    grid.text()
}

/// The unit of each grant, in order, as text.
fn unit_names(events: &[EventView]) -> Vec<String> {
    let grants = events.iter().filter(|event| event.kind == "lease-granted");
    let units = grants.filter_map(|event| event.event.pointer("/unit"));
    units.map(Value::to_string).collect()
}
