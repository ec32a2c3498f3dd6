//! Jobs with users' own models: what is refused, who gets their units, and what their evaluations may report.

use crate::support::{Bench, HOST, JOB, data, demand, done, inventory, request};
use sojourn_core::{Answer, Command, ReplyTo};
use sojourn_protocol::{
    api::{ReportAnswer, WorkRequest},
    digest::{BlobRef, Digest},
    dtype::Dtype,
    engine::Engine,
    error::{ApiError, ErrorKind},
    inventory::{CPU, Device},
    jobfile,
    manifest::{DataManifest, Targets},
    report::{Outcome, Report, ReportEnd, ReportState},
    spec::{ExportedGraph, Graph, GraphRole, GraphTensor, JobSpec, ModelSpace, Setting, Start},
    unit::{Lease, Unit},
};

fn file(width: i64) -> BlobRef {
    BlobRef { sha256: Digest::of(&width.to_le_bytes()), bytes: 100 }
}

/// The graph of a linear layer from the data's four features.
fn exported(width: i64) -> Graph {
    let tensor = GraphTensor {
        name: "net.weight".into(),
        dtype: Dtype::F32,
        shape: vec![u64::try_from(width).unwrap(), 4],
        role: GraphRole::Parameter,
        start: Some(Start::FanIn(4)),
    };
    let sums = ["loss", "accuracy", "hits"].map(str::to_owned).to_vec();
    let tensors = vec![tensor].into();
    let exported = ExportedGraph { file: file(width), tensors, flops_per_row: 8, widest: 4, sums };
    Graph {
        entry: "model.py:Net".into(),
        values: [("width".to_owned(), Setting::Whole(width))].into(),
        exported: Some(exported),
    }
}

fn spec(widths: &[i64], metric: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"graph\"\nentry = \"model.py:Net\"\n\
         width = {{ choice = [2, 3] }}\n[training]\nepochs = 1\nbatch_size = 8\n[search]\nmetric = \"{metric}\"\ngoal = \"max\"\n"
    );
    let mut spec = jobfile::parse(&text).unwrap();
    let Some(ModelSpace::Graph(space)) = spec.models.first_mut() else { panic!("no graph") };
    space.exported = widths.iter().map(|width| exported(*width)).collect();
    spec
}

/// With the data and both graphs.
fn bench() -> Bench {
    let mut bench = Bench::new();
    for blob in data().blobs().chain([file(2), file(3)]) {
        bench.apply(Command::Published { to: ReplyTo(1), blob });
    }
    bench
}

fn submit(bench: &mut Bench, spec: JobSpec, data: DataManifest) -> Result<Answer, ApiError> {
    let (to, spec, data) = (ReplyTo(1), Box::new(spec), Box::new(data));
    bench.answer(Command::Submit { to, spec, data, again: false, nonce: None })
}

/// An ask of a machine whose trainer knows these models.
fn asking(models: &[&str]) -> WorkRequest {
    let models = models.iter().map(|model| (*model).to_owned()).collect();
    let engine = Engine { name: "sojourn-trainer".into(), framework: "libtorch".into(), models };
    let device = Device { engines: vec![engine], ..Device::new(CPU, Digest::of(b"class"), 1e9) };
    let mut known = inventory("class");
    known.devices = vec![device];
    WorkRequest { demand: vec![demand(1, 1, 1)], inventory: Some(known), ..request(0, Vec::new()) }
}

/// The report of a host that did all of it, with these sums of the model's own.
fn report(lease: &Lease, named: &[(&str, f64)]) -> Report {
    let mut report = done(lease);
    match &mut report.outcome {
        Outcome::Trained(trained) => trained.sums.correct = None,
        Outcome::Evaluated(evaluated) => {
            for sums in &mut evaluated.shards {
                sums.correct = None;
                sums.named = named.iter().map(|(name, sum)| ((*name).to_owned(), *sum)).collect();
            }
        }
        Outcome::Failed(_) => {}
    }
    report
}

#[test]
fn a_job_whose_graphs_are_not_all_there_is_refused() {
    let mut bench = bench();
    let refused = |bench: &mut Bench, spec| submit(bench, spec, data()).unwrap_err();
    let told = refused(&mut bench, spec(&[2], "valid/hits"));
    assert_eq!(told.kind, ErrorKind::Invalid);
    assert!(told.message.contains("has not been exported"), "{}", told.message);
    let told = refused(&mut bench, spec(&[2, 3], "valid/misses"));
    assert!(told.message.contains("needs the sum `misses`"), "{}", told.message);
    let mut weighted = data();
    weighted.targets = Targets::Weighted(vec![1.0, 2.0]);
    let told = submit(&mut bench, spec(&[2, 3], "valid/hits"), weighted).unwrap_err();
    assert!(told.message.contains("whose loss is its own"), "{}", told.message);
    let mut other = spec(&[2, 3], "valid/hits");
    let Some(ModelSpace::Graph(space)) = other.models.first_mut() else { panic!("no graph") };
    let lost = space.exported[0].exported.as_mut().unwrap();
    lost.file = BlobRef { sha256: Digest::of(b"nowhere"), bytes: 1 };
    let told = refused(&mut bench, other);
    assert!(told.message.contains("upload it first"), "{}", told.message);
    assert!(submit(&mut bench, spec(&[2, 3], "valid/hits"), data()).is_ok());
}

#[test]
fn only_machines_that_train_graphs_get_them_and_the_file_is_part_of_the_unit() {
    let mut bench = bench();
    submit(&mut bench, spec(&[2, 3], "valid/hits"), data()).unwrap();
    let answer = bench.ask(HOST, asking(&["mlp", "cnn"]));
    assert!(answer.leases.is_empty(), "{answer:?}");
    let answer = bench.ask(HOST, asking(&["mlp", "graph"]));
    let [lease] = answer.leases.as_slice() else { panic!("{answer:?}") };
    let Unit::Train(hop) = &lease.unit else { panic!("{lease:?}") };
    let graph = hop.context.config.model.exported().unwrap().file;
    assert!(lease.unit.blobs().contains(&graph), "the host may fetch it");
}

/// A job that has come to an evaluation.
fn to_evaluation() -> (Bench, Lease) {
    let mut bench = bench();
    submit(&mut bench, spec(&[2, 3], "valid/hits"), data()).unwrap();
    loop {
        let answer = bench.ask(HOST, asking(&["graph"]));
        let [lease] = answer.leases.as_slice() else { panic!("{answer:?}") };
        if matches!(lease.unit, Unit::Evaluate(_)) {
            return (bench, lease.clone());
        }
        bench.report(HOST, report(lease, &[])).unwrap();
        bench.assimilate();
    }
}

fn end(bench: &mut Bench, report: Report) -> ReportEnd {
    match bench.report(HOST, report) {
        Ok(Answer::Report(ReportAnswer { state: ReportState::Ended(end), .. })) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_evaluation_gives_the_sums_of_the_model_and_no_others() {
    for wrong in [vec![], vec![("accuracy", 1.0)], vec![("accuracy", 1.0), ("hits", f64::MAX)]] {
        let (mut bench, evaluation) = to_evaluation();
        let rejected = end(&mut bench, report(&evaluation, &wrong));
        let ReportEnd::Rejected { reason } = &rejected else { panic!("{rejected:?}") };
        assert!(reason.contains("sum"), "{reason}");
    }
    let (mut bench, evaluation) = to_evaluation();
    let taken = end(&mut bench, report(&evaluation, &[("accuracy", 3.0), ("hits", 2.0)]));
    assert!(matches!(taken, ReportEnd::Assimilated { .. }), "{taken:?}");
    let trials = &bench.core.state().jobs[&JOB].trials;
    let best = trials.iter().find_map(|trial| trial.best.as_ref()).unwrap();
    let valid = data().valid;
    let rows: u32 = valid.iter().map(|shard| shard.rows).sum();
    let shards = u32::try_from(valid.len()).unwrap();
    assert_eq!(best.value, f64::from(2 * shards) / f64::from(rows));
}
