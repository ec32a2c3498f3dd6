//! Jobs with users' own models: what is refused, who gets their units, and what their evaluations may report.

use crate::support::{Bench, HOST, JOB, data, demand, done, evaluation, inventory, request};
use sojourn_core::{Answer, Command, Query, ReplyTo};
use sojourn_protocol::{
    api::{ReportAnswer, WorkRequest},
    column::Column,
    digest::{BlobRef, Digest},
    dtype::Dtype,
    engine::Engine,
    error::{ApiError, ErrorKind},
    ids::TrialId,
    inventory::{CPU, Device},
    jobfile,
    manifest::{DataManifest, DataSplit, Labels, Targets},
    metrics::{ByClass, ClassTotals},
    report::{Evaluated, Outcome, Report, ReportEnd, ReportState},
    spec::{
        Dimension, ExportedGraph, Graph, GraphColumn, GraphRole, GraphTensor, JobSpec, Loss,
        MetricRule, ModelSpace, OwnMetric, Setting, Start,
    },
    sum_array::SumArray,
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
    let file = file(width);
    let columns = [("x", Dtype::F32, vec![4]), ("y", Dtype::I64, vec![])];
    let columns =
        columns.map(|(name, dtype, shape)| (name.to_owned(), GraphColumn { dtype, shape }));
    let exported = ExportedGraph {
        tensors,
        columns: columns.into(),
        flops_per_row: 8,
        widest: 4,
        sums,
        ..ExportedGraph::of_file(file)
    };
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
    to_evaluation_of(spec(&[2, 3], "valid/hits"))
}

fn end(bench: &mut Bench, report: Report) -> ReportEnd {
    match bench.report(HOST, report) {
        Ok(Answer::Report(ReportAnswer { state: ReportState::Ended(end), .. })) => end,
        other => panic!("{other:?}"),
    }
}

/// A job that is compared by a metric of an array.
fn spec_of_arrays() -> JobSpec {
    let mut job = spec(&[2, 3], "valid/f1");
    job.search.target = Some(0.9);
    job.training.epochs = 2;
    for (name, of, rule) in [
        ("f1", "pairs", MetricRule::MacroF1),
        ("pairs", "pairs", MetricRule::Confusion),
        ("auc", "scores", MetricRule::Auc),
    ] {
        job.search.metrics.insert(name.into(), OwnMetric { of: of.into(), rule });
    }
    let Some(ModelSpace::Graph(space)) = job.models.first_mut() else { panic!("no graph") };
    for exported in space.exported.iter_mut().filter_map(|graph| graph.exported.as_mut()) {
        exported.sums.extend(["pairs".into(), "scores".into()]);
        exported.arrays = [("pairs".into(), vec![2, 2]), ("scores".into(), vec![2, 3])].into();
    }
    job
}

/// The report of an evaluation whose arrays have these numbers.
fn with_arrays(lease: &Lease, pairs: [f64; 4], scores: [f64; 6]) -> Report {
    let array = |shape: [u64; 2], numbers: &[f64]| SumArray {
        shape: shape.to_vec(),
        numbers: numbers.to_vec(),
    };
    let mut report = report(lease, &[("accuracy", 3.0), ("hits", 2.0)]);
    let Outcome::Evaluated(evaluated) = &mut report.outcome else { panic!("{report:?}") };
    evaluated.arrays =
        [("pairs".into(), array([2, 2], &pairs)), ("scores".into(), array([2, 3], &scores))].into();
    report
}

const PAIRS: [f64; 4] = [3.0, 1.0, 0.0, 4.0];
const SCORES: [f64; 6] = [1.0, 2.0, 0.0, 0.0, 1.0, 1.0];

fn to_evaluation_of(spec: JobSpec) -> (Bench, Lease) {
    let mut bench = bench();
    submit(&mut bench, spec, data()).unwrap();
    let lease = next_evaluation(&mut bench);
    (bench, lease)
}

fn next_evaluation(bench: &mut Bench) -> Lease {
    loop {
        let answer = bench.ask(HOST, asking(&["graph"]));
        let [lease] = answer.leases.as_slice() else { panic!("{answer:?}") };
        if matches!(lease.unit, Unit::Evaluate(_)) {
            return lease.clone();
        }
        bench.report(HOST, report(lease, &[])).unwrap();
        bench.assimilate();
    }
}

#[test]
fn metrics_follow_from_arrays_and_end_a_trial_at_the_target() {
    let (mut bench, lease) = to_evaluation_of(spec_of_arrays());
    let trial = evaluation(&lease).trial;
    assert!(matches!(
        end(&mut bench, with_arrays(&lease, PAIRS, SCORES)),
        ReportEnd::Assimilated { .. }
    ));
    // F1 of the classes: 6/7 and 8/9. Of six pairs of scores four are in order and two tied.
    let f1 = (6.0 / 7.0 + 8.0 / 9.0) / 2.0;
    let own = [("auc".to_owned(), 5.0 / 6.0), ("f1".to_owned(), f1)].into();
    let of = |bench: &mut Bench, trial: TrialId| {
        bench.trials().into_iter().find(|view| view.trial == trial).unwrap()
    };
    let view = of(&mut bench, trial);
    assert_eq!((view.best.unwrap().value, &view.stopped), (f1, &None));
    assert_eq!((&view.curve[0].point.own, view.curve[0].point.f1), (&own, None));
    let lease = next_evaluation(&mut bench);
    let trial = evaluation(&lease).trial;
    end(&mut bench, with_arrays(&lease, [4.0, 0.0, 0.0, 4.0], SCORES));
    let view = of(&mut bench, trial);
    assert_eq!(view.best.unwrap().value, 1.0);
    assert!(view.stopped.unwrap().starts_with("reached"), "after the first of two epochs");

    let (to, split) = (ReplyTo(1), DataSplit::Valid);
    bench.answer(Command::Evaluate { to, job: JOB, trial, split }).unwrap();
    let lease = next_evaluation(&mut bench);
    end(&mut bench, with_arrays(&lease, PAIRS, SCORES));
    let query = Query::Evaluations { job: JOB, trial };
    let answer = bench.answer(Command::Query { to, query });
    let Ok(Answer::Evaluations(views)) = answer else { panic!("{answer:?}") };
    let result = views[0].result().unwrap();
    assert_eq!(result.metrics.own["f1"], f1);
    assert_eq!(result.metrics.own["hits"], 4.0 / 15.0);
    assert!(!result.metrics.own.contains_key("pairs"), "a matrix is no number");
    assert_eq!(result.arrays["pairs"].numbers, PAIRS);
    assert!(views[0].clone().brief().result().unwrap().arrays.is_empty(), "lists are short");
}

#[test]
fn arrays_that_are_not_the_models_are_refused() {
    type Change = fn(&mut Evaluated);
    let changes: [(Change, &str); 7] = [
        (|evaluated| evaluated.arrays.clear(), "the arrays aren't those"),
        (|evaluated| drop(evaluated.arrays.remove("pairs")), "the arrays aren't those"),
        (
            |evaluated| {
                let array = evaluated.arrays["pairs"].clone();
                evaluated.arrays.insert("more".into(), array);
            },
            "the arrays aren't those",
        ),
        (
            |evaluated| evaluated.arrays.get_mut("pairs").unwrap().shape = vec![4],
            "isn't one of shape [2, 2]",
        ),
        (
            |evaluated| evaluated.arrays.get_mut("pairs").unwrap().numbers.truncate(3),
            "isn't one of shape [2, 2]",
        ),
        (
            |evaluated| evaluated.arrays.get_mut("scores").unwrap().numbers[5] = f64::INFINITY,
            "the array `scores` can't have inf",
        ),
        (
            |evaluated| {
                evaluated.by_class = Some(ByClass::Totals(ClassTotals::default()));
            },
            "counted by class of built-in models",
        ),
    ];
    for (change, told) in changes {
        let (mut bench, lease) = to_evaluation_of(spec_of_arrays());
        let mut report = with_arrays(&lease, PAIRS, SCORES);
        let Outcome::Evaluated(evaluated) = &mut report.outcome else { panic!("{report:?}") };
        change(evaluated);
        let rejected = end(&mut bench, report);
        let ReportEnd::Rejected { reason } = &rejected else { panic!("{rejected:?}") };
        assert!(reason.contains(told), "{reason}");
    }
    // Nor are there any where the model gives none.
    let (mut bench, lease) = to_evaluation();
    let rejected = end(&mut bench, with_arrays(&lease, PAIRS, SCORES));
    let ReportEnd::Rejected { reason } = &rejected else { panic!("{rejected:?}") };
    assert!(reason.contains("the arrays aren't those"), "{reason}");
}

#[test]
fn a_job_whose_rules_do_not_fit_its_sums_is_refused() {
    let mut bench = bench();
    let mut number = spec_of_arrays();
    number.search.metrics.get_mut("f1").unwrap().of = "hits".into();
    let told = submit(&mut bench, number, data()).unwrap_err();
    assert!(told.message.contains("takes an array of shape [classes, classes]"), "{told:?}");
    let mut vast = spec_of_arrays();
    let Some(ModelSpace::Graph(space)) = vast.models.first_mut() else { panic!("no graph") };
    let exported = space.exported[0].exported.as_mut().unwrap();
    exported.arrays.insert("hits".into(), vec![u64::MAX, 4]);
    let told = submit(&mut bench, vast, data()).unwrap_err();
    assert!(told.message.contains("`hits` is too large"), "{told:?}");
    let mut matrix = spec_of_arrays();
    matrix.search.metrics.get_mut("f1").unwrap().rule = MetricRule::Confusion;
    let told = submit(&mut bench, matrix, data()).unwrap_err();
    assert!(told.message.contains("is a matrix"), "{told:?}");
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

/// Data with a column of windows of eight tokens.
fn windows() -> DataManifest {
    let tokens = Column {
        name: "tokens".into(),
        dtype: Dtype::U8,
        shape: vec![9],
        longest: None,
        values: Some(256),
        classes: Vec::new(),
        windows: true,
    };
    let (columns, labels) = (vec![tokens], Labels::None);
    DataManifest { columns, shape: Vec::new(), features: Vec::new(), labels, ..data() }
}

/// A job of the graph with windows of this length.
fn over_columns(window: Option<i64>) -> JobSpec {
    let mut spec = spec(&[2, 3], "valid/hits");
    spec.training.loss = Loss::Own;
    spec.data.label = None;
    let Some(ModelSpace::Graph(space)) = spec.models.first_mut() else { panic!("no graph") };
    let tokens = |window: i64| {
        let shape = vec![u64::try_from(window + 1).unwrap()];
        [("tokens".to_owned(), GraphColumn { dtype: Dtype::U8, shape })].into()
    };
    if let Some(window) = window {
        space.values.insert("window".into(), Dimension::Fixed(Setting::Whole(window)));
        for graph in &mut space.exported {
            graph.values.insert("window".into(), Setting::Whole(window));
            graph.exported.as_mut().unwrap().columns = tokens(window);
        }
    }
    spec
}

#[test]
fn units_over_columns_bring_their_description() {
    for window in [8, 4, 2] {
        let mut bench = bench();
        submit(&mut bench, over_columns(Some(window)), windows()).unwrap();
        let leases = bench.ask(HOST, asking(&["graph"])).leases;
        let context = leases[0].unit.context();
        assert_eq!(context.columns, windows().columns);
        assert_eq!((context.shape.len(), context.config.training.loss), (0, Loss::Own));
    }
}

#[test]
fn columns_that_graphs_do_not_find_are_refused_before_any_host_trains() {
    let refused = |spec: JobSpec, data: DataManifest| {
        let error = submit(&mut bench(), spec, data).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        error.message
    };
    let mut columns = windows().columns;
    columns[0].name = "text".into();
    let told = refused(over_columns(Some(4)), DataManifest { columns, ..windows() });
    assert_eq!(
        told,
        "trial 0: the graph takes `tokens`, U8 with rows of shape [5], and the data has no such column; it has text"
    );
    let mut columns = windows().columns;
    columns[0].dtype = Dtype::I64;
    let told = refused(over_columns(Some(8)), DataManifest { columns, ..windows() });
    assert!(told.ends_with("and that of the data is I64 with rows of shape [9]"), "{told}");
    let told =
        refused(over_columns(None), DataManifest { columns: windows().columns, ..windows() });
    assert!(told.contains("there is no `window`"), "{told}");
    // Rows of numbers: four features are wanted, as a row or in any shape of that size.
    let others = DataManifest { shape: vec![5], ..data() };
    let told = refused(spec(&[2], "valid/hits"), others);
    assert!(told.ends_with("and rows of the data are F32 of shape [5]"), "{told}");
}

#[test]
fn names_of_classes_stay_with_the_data() {
    let mut bench = bench();
    let mut columns = windows().columns;
    columns[0].values = Some(2);
    columns[0].classes = ["a", "b"].map(str::to_owned).to_vec();
    submit(&mut bench, over_columns(Some(8)), DataManifest { columns, ..windows() }).unwrap();
    let leases = bench.ask(HOST, asking(&["graph"])).leases;
    assert!(leases[0].unit.context().columns[0].classes.is_empty());
    let job = &bench.core.state().jobs[&JOB];
    assert_eq!(job.data.columns[0].classes, ["a", "b"]);
}

#[test]
fn columns_that_do_not_fit_the_job_are_refused_with_the_reason() {
    let refused = |spec: JobSpec, data: DataManifest| {
        let error = submit(&mut bench(), spec, data).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        error.message
    };
    let good = || over_columns(Some(8));
    let told = refused(over_columns(Some(3)), windows());
    assert!(told.contains("windows of 3 can't be cut of windows of 8"), "{told}");
    let told = refused(over_columns(None), windows());
    assert!(told.contains("there is no `window`"), "{told}");
    let told = refused(good(), DataManifest { labels: Labels::Number, ..windows() });
    assert!(told.contains("columns by name go with the loss `own`"), "{told}");
    let told = refused(good(), DataManifest { columns: Vec::new(), ..windows() });
    assert!(told.contains("data without labels has columns by name"), "{told}");
    let told = refused(good(), DataManifest { shape: vec![9], ..windows() });
    assert!(told.contains("have no shape of a row"), "{told}");
    let twice = [windows().columns, windows().columns].concat();
    let told = refused(good(), DataManifest { columns: twice, ..windows() });
    assert!(told.contains("column `tokens` is there twice"), "{told}");
    let mut labelled = good();
    labelled.training.loss = Loss::CrossEntropy;
    let told = refused(labelled, windows());
    assert!(told.contains("columns by name go with the loss `own`"), "{told}");
    let built_in = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n";
    let mut built_in = jobfile::parse(built_in).unwrap();
    built_in.training.loss = Loss::Own;
    built_in.search.metric = sojourn_protocol::spec::Metric::Loss;
    let told = refused(built_in, windows());
    assert!(told.contains("trial 0: "), "{told}");
}
