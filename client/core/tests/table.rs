//! Each row of the table of transitions, and that there are no others.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this whole crate is a test: what isn't there fails it"
)]

use sojourn_client_core::{
    Delivery, ReleaseReason, ResultFacts, SlotId, UnitError,
    lease::{
        Acknowledged, Blocked, Fetching, InSlot, LeaseAction, LeaseEvent, LeaseState, Next, Queued,
        Ready, Releasing, Reporting, Running, Stored, Uploading,
    },
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    time::{Millis, UnixMillis},
    trainer::Progress,
    unit::{Base, Hop, Lease, TrialContext, Unit},
};
use std::collections::{BTreeMap, BTreeSet};

/// From, event, to, actions. A lease that isn't held begins as `Queued`, or as `Reporting` where its result was found
/// on disk; one that was held before is given back without a state.
const ROWS: &str = "
Queued | TooLarge | Releasing | Cooldown Release
Queued | FetchStarted | Fetching | Fetch
Queued | Dropped | Closed | Abort
Queued | Withdrawn | Closed | Abort ReleaseWithOthers
Fetching | FirstBlobsReady | Ready | FetchRest
Fetching | FetchFailed | Releasing | Cooldown Release
Fetching | Dropped | Closed | Abort
Fetching | Withdrawn | Closed | Abort ReleaseWithOthers
Ready | SlotAssigned | Running | Start
Ready | FetchFailed | Releasing | Cooldown Release
Ready | Dropped | Closed | Abort
Ready | Withdrawn | Closed | Abort ReleaseWithOthers
Running | Progress | Running |
Running | ShardMissing | Blocked |
Running | PartSaved | Running |
Running | StopAsked | Running | StopAfterBatch
Running | UnitEnded | Stored | Deliver
Running | HostFaultWithPart | Stored | Deliver
Running | HostFault | Releasing | Cooldown Release
Running | Dropped | Closed | Abort DeleteResult
Running | Withdrawn | Closed | Abort ReleaseWithOthers
Blocked | ShardReady | Running | HandOver
Blocked | PartSaved | Blocked |
Blocked | StopAsked | Blocked | StopAfterBatch
Blocked | UnitEnded | Stored | Deliver
Blocked | HostFaultWithPart | Stored | Deliver
Blocked | HostFault | Releasing | Cooldown Release
Blocked | Dropped | Closed | Abort DeleteResult
Blocked | Withdrawn | Closed | Abort ReleaseWithOthers
Stored | UploadStarted | Uploading | Upload
Stored | NothingToUpload | Reporting | Report
Stored | NotWanted | Releasing | DeleteResult Release
Stored | FileLost | Releasing | DeleteResult Release
Stored | ReportEnded | Closed | DeleteResult
Stored | Dropped | Closed | DeleteResult
Uploading | Uploaded | Reporting | Report
Uploading | UploadFailed | Stored | Retry
Uploading | NotWanted | Releasing | DeleteResult Release
Uploading | FileLost | Releasing | DeleteResult Release
Uploading | ReportEnded | Closed | DeleteResult
Uploading | Dropped | Closed | DeleteResult
Reporting | NoAnswer | Stored | Retry
Reporting | UploadMissing | Stored | Retry
Reporting | NotWanted | Releasing | DeleteResult Release
Reporting | Acknowledged | Acknowledged |
Reporting | ReportEnded | Closed | DeleteResult
Reporting | Dropped | Reporting |
Acknowledged | ReportEnded | Closed | DeleteResult
Acknowledged | DroppedAsReported | Closed | DeleteResult
Acknowledged | Dropped | Acknowledged |
Releasing | Dropped | Closed |
Releasing | Withdrawn | Closed | ReleaseWithOthers
Releasing | Released | Closed |
";

struct Row {
    from: &'static str,
    event: &'static str,
    to: &'static str,
    actions: Vec<&'static str>,
}

fn rows() -> Vec<Row> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let actions = cells[3].split_whitespace().collect();
        Row { from: cells[0], event: cells[1], to: cells[2], actions }
    };
    ROWS.lines().filter(|line| !line.is_empty()).map(row).collect()
}

fn lease() -> Box<Lease> {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::Mse, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: Architecture::mlp([]), training },
        columns: Vec::new(),
        shape: vec![1],
        outputs: 1,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 9,
        pinned_threads: None,
    };
    let blob = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    let unit = Unit::Train(Hop {
        job: JobId(1),
        trial: TrialId(0),
        base: Base::Initial { seed: 1 },
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: Shard { blob, rows: 36 },
        seed: 1,
        context: context.into(),
        then: Vec::new(),
        until: None,
    });
    Box::new(Lease {
        id: LeaseId(1),
        unit,
        device: "cpu".into(),
        renew_by: UnixMillis(0),
        heartbeat_every: Millis(1000),
        upload_bytes: 5,
        instructions: None,
        cpu_shares: None,
    })
}

const SLOT: SlotId = SlotId { device: 0, number: 0 };
const BEGUN: Progress = Progress { done: 0, of: 9 };

fn states() -> Vec<LeaseState> {
    let unit = InSlot { slot: Some(SLOT), progress: BEGUN, is_stopping: false, has_part: false };
    let (result, delivery) = (ResultFacts::default(), Delivery::default());
    let releasing = Releasing {
        reason: ReleaseReason::Stopping,
        is_unit_fault: false,
        retry_at: None,
        attempts: 0,
    };
    vec![
        LeaseState::Queued(Queued { lease: lease() }),
        LeaseState::Fetching(Fetching { lease: lease() }),
        LeaseState::Ready(Ready { lease: lease(), turn: 1 }),
        LeaseState::Running(Running { unit }),
        LeaseState::Blocked(Blocked { unit, shard: Digest::of(b"later") }),
        LeaseState::Stored(Stored { result, delivery }),
        LeaseState::Uploading(Uploading { result, delivery }),
        LeaseState::Reporting(Reporting { result, delivery }),
        LeaseState::Acknowledged(Acknowledged { result }),
        LeaseState::Releasing(releasing),
    ]
}

fn events() -> BTreeMap<&'static str, LeaseEvent> {
    let facts = ResultFacts::default();
    let reason = || ReleaseReason::Fault("as told".to_owned());
    let error = || UnitError::Unit("as told".to_owned());
    BTreeMap::from([
        ("TooLarge", LeaseEvent::TooLarge(ReleaseReason::MonthlyBudget)),
        ("FetchStarted", LeaseEvent::FetchStarted),
        ("FirstBlobsReady", LeaseEvent::FirstBlobsReady(1)),
        ("FetchFailed", LeaseEvent::FetchFailed(error())),
        ("SlotAssigned", LeaseEvent::SlotAssigned(SLOT, BEGUN)),
        ("Progress", LeaseEvent::Progress(Progress { done: 1, of: 9 })),
        ("ShardMissing", LeaseEvent::ShardMissing(Digest::of(b"later"))),
        ("ShardReady", LeaseEvent::ShardReady(Digest::of(b"later"))),
        ("PartSaved", LeaseEvent::PartSaved),
        ("StopAsked", LeaseEvent::StopAsked),
        ("UnitEnded", LeaseEvent::UnitEnded(facts)),
        ("HostFaultWithPart", LeaseEvent::HostFaultWithPart(facts)),
        ("HostFault", LeaseEvent::HostFault(error())),
        ("UploadStarted", LeaseEvent::UploadStarted),
        ("NothingToUpload", LeaseEvent::NothingToUpload),
        ("Uploaded", LeaseEvent::Uploaded),
        ("UploadFailed", LeaseEvent::UploadFailed(Delivery::default())),
        ("NoAnswer", LeaseEvent::NoAnswer(Delivery::default())),
        ("UploadMissing", LeaseEvent::UploadMissing(Delivery::default())),
        ("NotWanted", LeaseEvent::NotWanted(reason())),
        ("FileLost", LeaseEvent::FileLost(reason())),
        ("Acknowledged", LeaseEvent::Acknowledged),
        ("ReportEnded", LeaseEvent::ReportEnded),
        ("Dropped", LeaseEvent::Dropped),
        ("DroppedAsReported", LeaseEvent::DroppedAsReported),
        ("Withdrawn", LeaseEvent::Withdrawn),
        ("Released", LeaseEvent::Released),
    ])
}

fn name(action: &LeaseAction) -> String {
    let name = format!("{action:?}");
    name.split(['(', ' ']).next().unwrap().to_owned()
}

#[test]
fn every_row_leads_where_the_table_says_and_every_other_event_changes_nothing() {
    let rows = rows();
    for state in states() {
        for (event, payload) in events() {
            let row = rows.iter().find(|row| (row.from, row.event) == (state.name(), event));
            let step = state.clone().step(payload);
            let actions: Vec<String> = step.actions.iter().flatten().map(name).collect();
            let to = match &step.next {
                Next::State(state) | Next::Ignored(state) => state.name(),
                Next::Closed => "Closed",
            };
            let from = state.name();
            match row {
                Some(row) => {
                    assert_eq!((to, actions), (row.to, own(&row.actions)), "{from} {event}")
                }
                None => {
                    assert!(matches!(step.next, Next::Ignored(_)), "{from} {event}");
                    assert_eq!((to, actions), (from, Vec::new()), "{from} {event}");
                }
            }
        }
    }
}

fn own(actions: &[&str]) -> Vec<String> {
    actions.iter().map(|action| (*action).to_owned()).collect()
}

#[test]
fn the_table_has_no_dead_end_and_keeps_results_until_they_may_go() {
    let rows = rows();
    assert_eq!(rows.len(), 53);
    let pairs: BTreeSet<_> = rows.iter().map(|row| (row.from, row.event)).collect();
    assert_eq!(pairs.len(), rows.len(), "no pair has two rows");
    let mut ends = BTreeSet::from(["Closed"]);
    loop {
        let more = rows.iter().filter(|row| ends.contains(row.to)).map(|row| row.from);
        let more: Vec<&str> = more.filter(|from| !ends.contains(from)).collect();
        if more.is_empty() {
            break;
        }
        ends.extend(more);
    }
    let states: BTreeSet<&str> = rows.iter().flat_map(|row| [row.from, row.to]).collect();
    assert_eq!((states.len(), &ends), (11, &states));
    let on_disk = ["Stored", "Uploading", "Reporting", "Acknowledged"];
    for row in &rows {
        let leaves = on_disk.contains(&row.from) && !on_disk.contains(&row.to);
        let part = ["Running", "Blocked"].contains(&row.from) && row.event == "Dropped";
        assert_eq!(
            row.actions.contains(&"DeleteResult"),
            leaves || part,
            "{} {}",
            row.from,
            row.event
        );
        assert!(!row.actions.contains(&"Start") || row.from == "Ready");
    }
}

#[test]
fn a_unit_is_asked_to_stop_once() {
    let unit = InSlot { slot: Some(SLOT), progress: BEGUN, is_stopping: true, has_part: false };
    let step = LeaseState::Running(Running { unit }).step(LeaseEvent::StopAsked);
    assert!(matches!(step.next, Next::Ignored(_)));
}
