//! A submission's data and graphs are checked against their blobs, and job files are checked at a rate.

use crate::{
    folder,
    host_page::{Browser, text},
    world::{Answer, World},
};
use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    api::SubmitRequest,
    digest::BlobRef,
    dtype::Dtype,
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    spec::{ExportedGraph, Graph, GraphColumn, GraphRole, GraphTensor, JobSpec, ModelSpace, Start},
};

const MLP: &str = "arch = \"mlp\"\nhidden = [3]";

fn spec(model: &str, metric: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\n{model}\n[training]\nepochs = 1\n\
         batch_size = 4\n[search]\nmetric = \"{metric}\"\n"
    );
    jobfile::parse(&text).unwrap()
}

/// A shard of ten rows of two features, with these labels.
async fn shard(world: &World, features: u64, labels: [i64; 10]) -> Shard {
    let numbers = u16::try_from(features * 10).unwrap();
    let x: Vec<f32> = (0..numbers).map(f32::from).collect();
    let tensors = [Tensor::f32("x", [10, features], &x), Tensor::i64("y", [10u64], &labels)];
    Shard { blob: world.publish(&encode(&tensors).unwrap()).await, rows: 10 }
}

fn manifest(train: Vec<Shard>, valid: Vec<Shard>) -> DataManifest {
    DataManifest {
        columns: Vec::new(),
        shape: vec![2],
        features: vec!["a".to_owned(), "b".to_owned()],
        labels: Labels::Classes(vec!["no".to_owned(), "yes".to_owned()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train,
        valid,
        test: Vec::new(),
    }
}

async fn submit(world: &World, spec: JobSpec, data: DataManifest) -> Answer {
    let request = SubmitRequest { spec, data, again: false, nonce: None };
    world.post("/v1/jobs", &world.admin, &request).await
}

#[tokio::test]
async fn a_manifest_that_its_shards_contradict_is_refused() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let (good, ten) = (
        shard(&world, 2, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]).await,
        shard(&world, 2, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).await,
    );
    let wide = shard(&world, 3, [0; 10]).await;
    let no_shard = Shard { blob: world.publish(b"no shard at all").await, rows: 10 };
    let rows = Shard { rows: 11, ..good };
    let wrong = [
        (vec![good, ten], vec![good], "training shard 1: a label is class 2"),
        (vec![good], vec![ten], "validation shard 0: a label is class 2"),
        (vec![wide], vec![good], "training shard 0: the shard has 3 features, the unit says 2"),
        (vec![good, rows], vec![good], "training shard 1: the shard has 10 rows, the unit says 11"),
        (vec![no_shard], vec![good], "training shard 0"),
    ];
    for (train, valid, said) in wrong {
        let answer = submit(&world, spec(MLP, "valid/loss"), manifest(train, valid)).await;
        assert_eq!(answer.status, 400, "{}", text(&answer));
        assert!(text(&answer).contains(said), "{}", text(&answer));
    }
    let numbers = DataManifest { labels: Labels::Number, ..manifest(vec![good], vec![good]) };
    let mut regression = spec(MLP, "valid/loss");
    regression.training.loss = sojourn_protocol::spec::Loss::Mse;
    let answer = submit(&world, regression, numbers).await;
    assert!(answer.status == 400 && text(&answer).contains("classes"), "{}", text(&answer));
    let answer =
        submit(&world, spec(MLP, "valid/loss"), manifest(vec![good, good], vec![good])).await;
    assert_eq!(answer.status, 200, "{}", text(&answer));
    world.server.stop().await;
}

/// A graph of a linear layer whose first node calls this operator.
fn graph(operator: &str) -> Vec<u8> {
    let nodes = serde_json::json!([
        {"op": operator, "args": [{"c": "x"}, {"t": "w"}]},
        {"op": "aten.cross_entropy_loss.default", "args": [{"n": 0}, {"c": "y"}]}
    ]);
    let json = serde_json::json!({
        "graph": 1, "torch": "2.11.0",
        "columns": {"x": ["F32", [2]], "y": ["I64", []]},
        "tensors": [
            {"name": "w", "dtype": "F32", "shape": [2, 2], "role": "parameter", "start": {"fan_in": 2}}
        ],
        "train": [{"nodes": nodes, "loss": {"n": 1}, "moves": ["w"]}],
        "evaluate": {"nodes": nodes, "sums": {"loss": {"n": 1}}}
    });
    let json = serde_json::to_vec(&json).unwrap();
    encode(&[Tensor::u8("graph", [json.len() as u64], &json)]).unwrap()
}

fn with_graph(file: BlobRef, width: u64) -> JobSpec {
    let mut spec = spec("arch = \"graph\"\nentry = \"model.py:Net\"", "valid/loss");
    let Some(ModelSpace::Graph(space)) = spec.models.first_mut() else { panic!("no graph") };
    let tensor = GraphTensor {
        name: "w".into(),
        dtype: Dtype::F32,
        shape: vec![width, 2],
        role: GraphRole::Parameter,
        start: Some(Start::FanIn(2)),
    };
    let columns = [("x", Dtype::F32, vec![2]), ("y", Dtype::I64, vec![])];
    let columns =
        columns.map(|(name, dtype, shape)| (name.to_owned(), GraphColumn { dtype, shape }));
    let exported = ExportedGraph {
        tensors: vec![tensor].into(),
        columns: columns.into(),
        flops_per_row: 8,
        widest: 4,
        sums: vec!["loss".to_owned()],
        ..ExportedGraph::of_file(file)
    };
    let (entry, values) = ("model.py:Net".to_owned(), [].into());
    space.exported = vec![Graph { entry, values, exported: Some(exported) }];
    spec
}

#[tokio::test]
async fn a_graph_that_no_trainer_takes_is_refused() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let good = shard(&world, 2, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]).await;
    let data = || manifest(vec![good], vec![good]);
    let sound = world.publish(&graph("aten.linear.default")).await;
    let strange = world.publish(&graph("aten.as_strided.default")).await;
    let nothing = world.publish(b"no graph at all").await;
    let wrong = [
        (with_graph(strange, 2), "is no operator that graphs may have"),
        (with_graph(nothing, 2), "the graph's file can't be read"),
        (with_graph(sound, 5), "isn't the same in the unit and in the file"),
    ];
    for (spec, said) in wrong {
        // A graph that was refused isn't remembered as sound.
        for _ in 0..2 {
            let answer = submit(&world, spec.clone(), data()).await;
            assert_eq!(answer.status, 400, "{}", text(&answer));
            assert!(text(&answer).contains(said), "{}", text(&answer));
        }
    }
    for submitted in ["new", "existing"] {
        let answer = submit(&world, with_graph(sound, 2), data()).await;
        assert!(text(&answer).contains(submitted), "{}", text(&answer));
    }
    world.server.stop().await;
}

#[tokio::test]
async fn job_files_are_checked_at_a_rate_and_within_the_bounds_of_requests() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let user = Browser::sign_in(&world, "submit").await;
    let layers = vec!["8"; 5_000].join(", ");
    let file = format!(
        "name = \"t\"\n[[model]]\narch = \"mlp\"\nhidden = [{layers}]\n[training]\nepochs = 1\n"
    );
    let encoded: String = file.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let body = format!("over={job}&text={encoded}");
    let check = || user.post("/jobs/new?part=check", &body);
    let answer = check().await;
    assert!(text(&answer).contains("has 5000 entries"), "{}", text(&answer));
    let mut refused = 0;
    for _ in 0..60 {
        let answer = check().await;
        if answer.status == 429 {
            refused += 1;
            assert!(answer.head.to_lowercase().contains("retry-after"), "{}", answer.head);
        }
    }
    assert!(refused > 0, "60 checks at once are taken");
    world.server.stop().await;
}
