//! The metrics of what the core counts.

use sojourn_core::{
    Figures,
    figures::{
        HostStatus, JobFigures, JobStatus, LeaseEndReason, LeaseStage, NoWorkReason, ResultEnd,
        TrialStatus, UnitKind,
    },
};
use sojourn_programs::metrics::{Labels, MetricWriter, label, millionths};
use std::{fmt, time::Duration};

/// A sample for each label of a kind, also where there is none of it.
macro_rules! each {
    ($name:literal, $kind:ty, $counts:expr) => {
        <$kind>::ALL.iter().map(|of| (label($name, of.name()), $counts.of(of)))
    };
}

/// The server itself.
pub(super) fn server(writer: &mut MetricWriter<'_>, figures: &Figures) -> fmt::Result {
    let version = label("version", env!("CARGO_PKG_VERSION"));
    writer.gauges("build_info", "The server's version. Always 1.", [(version, 1_u64)])?;
    let started = Duration::from_millis(figures.started_at.0).as_secs_f64();
    let help = "When this server began to decide, in seconds since the Unix epoch.";
    writer.gauge("start_time_seconds", help, started)?;
    let help = "Events in the journal since its beginning, across restarts.";
    writer.counter("journal_events", help, figures.position.0)
}

/// The metrics of the work that there is to do.
pub(super) fn work(writer: &mut MetricWriter<'_>, figures: &Figures) -> fmt::Result {
    writer.gauges("jobs", "Jobs by state.", each!("state", JobStatus, figures.jobs))?;
    let help = "Trials of all jobs by state. Held ones wait for their search.";
    writer.gauges("trials", help, each!("state", TrialStatus, figures.trials))?;
    let help = "Units that could be granted now, of jobs that aren't paused.";
    writer.gauge("ready_units", help, figures.ready_units)?;
    let help = "Plans that the scheduler asked for, since the server's start.";
    writer.counter("plans_requested", help, figures.plans.requested)?;
    let plans = [("followed", figures.plans.followed), ("dropped", figures.plans.dropped)];
    writer.counters(
        "plans_made",
        "Plans that were made, by whether they are followed, since the server's start.",
        plans.map(|(outcome, count)| (label("outcome", outcome), count)),
    )?;
    writer.gauge("blobs", "Blobs in the store.", figures.blobs)?;
    let help = "Blobs that are needed and that the store has lost.";
    writer.gauge("lost_blobs", help, figures.lost_blobs)
}

/// Hosts and their slots.
pub(super) fn fleet(writer: &mut MetricWriter<'_>, figures: &Figures) -> fmt::Result {
    let help = "Enrolled hosts by state. Away: not heard of for longer than a lease lasts.";
    writer.gauges("hosts", help, each!("state", HostStatus, figures.hosts))?;
    let help = "Hosts in contact that get nothing though there may be work, by reason.";
    let reasons = each!("reason", NoWorkReason, figures.without_work);
    writer.gauges("hosts_without_work", help, reasons)?;
    let slots = [("busy", figures.slots.busy), ("idle", figures.slots.idle)];
    writer.gauges(
        "slots",
        "Slots that the hosts in contact offer, by whether a unit runs there.",
        slots.map(|(state, count)| (label("state", state), count)),
    )?;
    let help = "Floating-point operations per second of all these slots in training, as measured or estimated.";
    writer.gauge("training_flops", help, figures.slots.flops)?;
    let help = "What all bought machines have cost, across restarts.";
    writer.counter("machine_cost_dollars", help, millionths(figures.spent.0))
}

/// Leases, live and ended.
pub(super) fn leases(writer: &mut MetricWriter<'_>, figures: &Figures) -> fmt::Result {
    let kinds = UnitKind::ALL.iter().flat_map(|kind| {
        LeaseStage::ALL.iter().map(|stage| {
            let labels = vec![("kind", kind.name().to_owned()), ("state", stage.name().to_owned())];
            (labels, figures.leases.of(&(*kind, *stage)))
        })
    });
    writer.gauges("leases", "Live leases by kind of unit and state.", kinds)?;
    let help = "Live leases that duplicate another one.";
    writer.gauge("speculative_leases", help, figures.speculative_leases)?;
    let totals = &figures.totals;
    let help = "Leases that were granted, since the server's start.";
    writer.counters("leases_granted", help, each!("kind", UnitKind, totals.granted))?;
    let help = "Leases that were granted to duplicate another one, since the server's start.";
    writer.counter("speculative_leases_granted", help, totals.granted_speculative)?;
    let help = "Leases that ended without a report, since the server's start.";
    writer.counters("leases_ended", help, each!("reason", LeaseEndReason, totals.ended))
}

/// Results, from their report to the new version.
pub(super) fn results(writer: &mut MetricWriter<'_>, figures: &Figures) -> fmt::Result {
    let totals = &figures.totals;
    let help = "Reports of hosts that were acknowledged, since the server's start.";
    writer.counter("reports", help, totals.reports)?;
    let help = "Reported results by what became of them, since the server's start.";
    writer.counters("results", help, each!("outcome", ResultEnd, totals.results))?;
    let help = "Rows that were trained, as hosts report them, since the server's start.";
    writer.counter("trained_rows", help, totals.trained_rows)?;
    let help =
        "Time in which slots trained or evaluated, as hosts report it, since the server's start.";
    writer.counter("slot_seconds", help, millionths(totals.slot_micros))?;
    let queue = &figures.assimilation;
    let states = [("waiting", queue.waiting), ("claimed", queue.taken), ("blocked", queue.behind)];
    writer.gauges(
        "assimilation_results",
        "Results that aren't assimilated yet. Blocked ones come after another of their trial.",
        states.map(|(state, count)| (label("state", state), count)),
    )?;
    let lag = Duration::from_millis(queue.lag.0).as_secs_f64();
    let help = "How long the oldest result has waited to be assimilated.";
    writer.gauge("assimilation_lag_seconds", help, lag)?;
    let help = "Results that assimilators have ended, since the server's start.";
    writer.counter("assimilated_results", help, queue.ended)
}

/// Jobs that run, by id.
pub(super) fn jobs(writer: &mut MetricWriter<'_>, figures: &Figures) -> fmt::Result {
    let jobs = &figures.running_jobs;
    let of_job = |job: &JobFigures| -> Labels { label("job", job.job.to_string()) };
    let help = "Live leases of a job. Of the running jobs the 50 oldest have metrics of their own.";
    writer.gauges("job_leases", help, jobs.iter().map(|job| (of_job(job), job.leases)))?;
    let help = "Hops that a running job's trials have.";
    writer.gauges("job_hops", help, jobs.iter().map(|job| (of_job(job), job.hops)))?;
    let help = "Hops that a running job's trials are expected to have in the end.";
    let expected = jobs.iter().map(|job| (of_job(job), job.expected_hops));
    writer.gauges("job_expected_hops", help, expected)?;
    let budgets = jobs.iter().filter_map(|job| Some((of_job(job), millionths(job.budget?.0))));
    writer.gauges("job_budget_dollars", "The budget of a running job that has one.", budgets)?;
    let spent = jobs.iter().map(|job| (of_job(job), millionths(job.spent.0)));
    let help = "What a running job has cost on bought machines.";
    writer.gauges("job_spent_dollars", help, spent)
}
