//! Jobs whose graph every trainer refuses, beside a job that is sound: they end, no host rests for them, and the other job goes on.

use crate::{http::poll, site::Site};
use serde_json::Value;
use sojourn_codec::{Tensor, encode};
use sojourn_graph::Graph as GraphFile;
use sojourn_protocol::{
    api::SubmitRequest,
    spec::{Goal, Graph, GraphSpace, InitialWeights, JobSpec, Metric, ModelSpace},
    view::JobDetail,
};

/// A graph whose nodes are all in the table of operators, and whose layer takes rows of another width than the data has.
fn refused_graph() -> Vec<u8> {
    let nodes = serde_json::json!([
        {"op": "aten.linear.default", "args": [{"c": "x"}, {"t": "w"}]},
        {"op": "aten.sum.default", "args": [{"n": 0}]}
    ]);
    let json = serde_json::json!({
        "graph": 1, "torch": "2.11.0",
        "columns": {"x": ["F32", [1, 8, 8]], "y": ["I64", []]},
        "tensors": [
            {"name": "w", "dtype": "F32", "shape": [2, 3], "role": "parameter", "start": {"fan_in": 3}}
        ],
        "train": [{"nodes": nodes, "loss": {"n": 1}, "moves": ["w"]}],
        "evaluate": {"nodes": nodes, "sums": {"loss": {"n": 1}}}
    });
    let json = serde_json::to_vec(&json).unwrap();
    encode(&[Tensor::u8("graph", [json.len() as u64], &json)]).unwrap()
}

/// A job of one trial of this graph, over the data of another job.
fn wrong_job(good: &JobDetail, graph: &Graph, number: usize) -> SubmitRequest {
    let mut spec: JobSpec = good.spec.clone();
    spec.name = format!("wrong-{number}");
    let exported = vec![graph.clone()];
    let entry = graph.entry.clone();
    let space =
        GraphSpace { entry, values: [].into(), initial: InitialWeights::default(), exported };
    spec.models = vec![ModelSpace::Graph(space)];
    spec.training.optimizer.lr = 0.01.into();
    (spec.search.metric, spec.search.goal) = (Metric::Loss, Goal::Min);
    SubmitRequest { spec, data: good.data.clone(), again: true, nonce: None }
}

#[test]
fn six_wrong_jobs_rest_no_host_and_stop_no_other_job() {
    let site = Site::start();
    let _clients = [site.client("one"), site.client("two")];
    // More epochs than are trained before the wrong jobs have ended.
    let good = site.submit(3, 2_000);
    let hops = |view: &Value| view["hops"].as_u64().unwrap();
    site.wait(&good, |view| hops(view) >= 8);

    let detail: JobDetail = serde_json::from_value(site.get(&format!("jobs/{good}"))).unwrap();
    let bytes = refused_graph();
    let file = site.publish(&bytes);
    let summary = GraphFile::read(&bytes).unwrap().summary(file, 8, 64);
    let (entry, values) = ("model.py:Net".to_owned(), [].into());
    let graph = Graph { entry, values, exported: Some(summary) };
    let submit = |number: usize| {
        let request = wrong_job(&detail, &graph, number);
        let answer = site.post("jobs", &serde_json::to_value(&request).unwrap());
        answer["job"].to_string()
    };
    let mut wrong: Vec<String> = (0..6).map(submit).collect();

    let before = hops(&site.job(&good));
    let ended = poll(|| {
        let hosts = site.json(&["hosts"]);
        for host in hosts.as_array().unwrap() {
            assert!(host["state"]["resting"].is_null(), "a host rests: {host}");
        }
        let is_over = |job: &String| site.job(job)["state"] == "failed";
        let now = hops(&site.job(&good));
        match wrong.iter().all(is_over) {
            true if now > before => return Some(now),
            // They ended within a hop: the next one is there while the good job goes on.
            true => wrong.push(submit(wrong.len())),
            false => {}
        }
        None
    });
    let ended = ended.expect("the wrong jobs end, and the good one goes on");
    for job in &wrong {
        let trials = site.trials(job);
        let error = trials[0]["state"]["failed"]["error"].as_str().unwrap();
        assert!(error.contains("aten.linear.default"), "{error}");
        let events = String::from_utf8(site.run(&["events", job]).stdout).unwrap();
        let failures = events.matches("aten.linear.default").count();
        assert!(failures <= 8, "it was tried too often: {events}");
    }
    // Both hosts still work.
    site.wait(&good, |view| hops(view) > ended + 4);
}
