//! The table `hops`: a row for each result that is in its trial's model. A lease of several hops in a row has one result.

use super::table::{Column, Table};
use crate::cli::model::export::{
    answers::{AcceptedHop, Answers},
    journal::{TrainingLease, TrainingReport},
};
use sojourn_protocol::ids::TrialId;

/// A row: a hop with its lease, where the journal has that.
struct Row<'a> {
    trial: TrialId,
    hop: &'a AcceptedHop,
    lease: Option<&'a TrainingLease>,
}

impl Row<'_> {
    fn report(&self) -> Option<TrainingReport> {
        self.lease?.reported
    }

    /// Each batch is a step.
    fn batches(&self) -> Option<u64> {
        self.report()?.last_step.checked_sub(self.hop.first_step?)
    }

    /// `3`, or `3 1 2` of several in a row.
    fn shards(&self) -> String {
        let shards: Vec<String> = self.hop.record.shards().map(|shard| shard.to_string()).collect();
        shards.join(" ")
    }
}

/// Rows are in the order of trials, and of the versions that the results made.
pub(super) fn table(answers: &Answers) -> Table {
    let trials = answers.trials.iter().map(|trial| trial.trial);
    let records = trials.filter_map(|trial| Some((trial, answers.records.get(&trial)?)));
    let rows: Vec<Row<'_>> = records
        .flat_map(|(trial, record)| record.hops.iter().map(move |hop| (trial, hop)))
        .map(|(trial, hop)| Row { trial, hop, lease: answers.journal.training(hop.record.lease) })
        .collect();
    let rows = || rows.iter();
    let host = |row: &Row<'_>| answers.hosts.get(&row.hop.record.host);
    let device = |lease: &TrainingLease| Some(lease.device.clone()).filter(|name| !name.is_empty());
    let columns = vec![
        Column::whole("trial", rows().map(|row| Some(row.trial.0))),
        Column::whole("version", rows().map(|row| Some(row.hop.record.version.0))),
        Column::whole("epoch", rows().map(|row| Some(row.hop.record.epoch().next().0))),
        Column::whole("shard", rows().map(|row| Some(row.hop.record.start.shard.0))),
        Column::text("shards", rows().map(|row| Some(row.shards()))),
        Column::whole("lease", rows().map(|row| Some(row.hop.record.lease.0))),
        Column::whole("host", rows().map(|row| Some(row.hop.record.host.0))),
        Column::text("host_name", rows().map(host)),
        Column::text("device", rows().map(|row| row.lease.and_then(device))),
        Column::time("begun", rows().map(|row| Some(row.lease?.granted_at))),
        Column::time("ended", rows().map(|row| Some(row.report()?.at))),
        Column::whole("rows", rows().map(|row| Some(row.report()?.rows))),
        Column::whole("batches", rows().map(Row::batches)),
        Column::real("train_seconds", rows().map(|row| Some(row.report()?.time.as_secs_f64()))),
        Column::whole("staleness", rows().map(|row| Some(row.hop.record.merged?.staleness))),
        Column::text("checkpoint_sha256", rows().map(|row| Some(row.hop.record.checkpoint.sha256))),
        Column::whole("checkpoint_bytes", rows().map(|row| Some(row.hop.record.checkpoint.bytes))),
    ];
    Table { name: "hops", columns }
}
