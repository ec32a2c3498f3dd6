//! `arch = "graph"`: users' own models, their keys and their metrics.

use super::*;
use crate::{
    digest::{BlobRef, Digest},
    spec::{
        Architecture, ExportedGraph, Graph, GraphSpace, InitialWeights, MetricRule, OwnMetric,
        Real, Setting, dimension::FirstValues,
    },
};
use std::collections::BTreeMap;

fn graph(lines: &str) -> String {
    let table = format!("arch = \"graph\"\nentry = \"model.py:Cnn\"\n{lines}");
    SMALL.replace("arch = \"mlp\"\nhidden = [8]", &table)
}

#[test]
fn a_models_own_keys_are_read_as_they_are() {
    let text = graph(
        "hidden = [16, 32]
dropout = { uniform = [0, 0.5], points = 3 }
width = { int = [8, 9] }
kind = { choice = [\"gru\", \"lstm\"] }
tied = true
rate = 1.0",
    );
    let job = parse(&text).unwrap();
    let [ModelSpace::Graph(space)] = job.models.as_slice() else { panic!("{:?}", job.models) };
    let GraphSpace { entry, values, initial, exported } = space;
    assert_eq!((entry.as_str(), exported.len(), values.len()), ("model.py:Cnn", 0, 6));
    assert_eq!(*initial, InitialWeights::Recipes);
    let numbers = Setting::List(vec![Setting::Whole(16), Setting::Whole(32)]);
    assert_eq!(values["hidden"], Dimension::Fixed(numbers));
    assert_eq!(values["rate"], Dimension::Fixed(Setting::Real(Real(1.0))));
    let mut first = FirstValues::default();
    let closed = job.models[0].close("model", &mut first).unwrap();
    assert_eq!(first.names, ["model.dropout", "model.kind", "model.width"]);
    let Architecture::Graph(closed) = closed else { panic!("{closed:?}") };
    assert_eq!(closed.exported, None);
    let chosen: Vec<(&str, String)> =
        closed.values.iter().map(|(key, value)| (key.as_str(), value.to_string())).collect();
    let expected = ["0", "[16, 32]", "gru", "1", "true", "8"];
    assert_eq!(chosen.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), expected);
    assert_eq!(closed.values["dropout"], Setting::Real(Real(0.0)));
    assert_eq!(closed.values["width"], Setting::Whole(8));
    // Trials are compared by the loss: what else the model gives isn't known yet.
    assert_eq!((job.search.metric, job.search.goal), (Metric::Loss, Goal::Min));
}

#[test]
fn initial_weights_are_recipes_or_given_and_no_key_of_the_model() {
    let space = |line: &str| {
        let mut models = parse(&graph(line)).unwrap().models;
        let Some(ModelSpace::Graph(space)) = models.pop() else { panic!("no graph") };
        space
    };
    let (given, plain) = (space("initial = \"given\""), space(""));
    assert_eq!((given.initial, given.values.len()), (InitialWeights::Given, 0));
    assert_eq!(plain, space("initial = \"recipes\""));
    let json = serde_json::to_value(&given).unwrap();
    assert_eq!(json, serde_json::json!({"entry": "model.py:Cnn", "initial": "given"}));
    let json = serde_json::to_value(&plain).unwrap();
    assert_eq!(json.get("initial"), None, "such jobs are written as ever");
    assert_eq!(
        errors_of(&graph("initial = \"gven\"")),
        "8: `model[0].initial` is `\"gven\"`; did you mean `given`? one of `recipes`, `given` is wanted"
    );
    assert_eq!(
        errors_with("hidden = [8]", "hidden = [8]\ninitial = \"given\""),
        "8: `model[0].initial` is a key of `arch = \"graph\"`"
    );
    assert_eq!(
        errors_of(&graph("initial = \"given\"\ninit = \"own.safetensors\"")),
        "8: `model[0].initial` can't go with `init`, whose file has the weights to begin with"
    );
}

#[test]
fn own_metrics_are_named_and_have_rules() {
    let search = "[search]\nmetric = \"valid/perplexity\"\ngoal = \"min\"\n";
    let metrics = "[metrics]\nperplexity = { of = \"loss\", as = \"exp_mean\" }\n";
    let job = parse(&format!("{}{search}{metrics}", graph(""))).unwrap();
    assert_eq!(job.search.metric, Metric::Own("valid/perplexity".into()));
    let rule = OwnMetric { of: "loss".into(), rule: MetricRule::ExpMean };
    assert_eq!(job.search.metrics, [("perplexity".to_owned(), rule)].into());
    assert_eq!(job.search.own_sum(), Some("loss"));
    assert_eq!(
        errors_of(&format!("{}[search]\nmetric = \"valid/bits\"\n", graph(""))),
        "11: `search.goal` is missing: `\"min\"` or `\"max\"`, whichever is better of `valid/bits`"
    );
    assert_eq!(
        errors_of(&format!("{SMALL}{metrics}")),
        "10: `metrics` goes with `arch = \"graph\"`: built-in models have their own metrics"
    );
    let wrong = "[metrics]\n\"a b\" = { of = \"loss\" }\nc = { of = \"\", as = \"sum\" }\n";
    assert_eq!(
        errors_of(&format!("{}{wrong}", graph(""))),
        "12: `metrics.a b` has a name with other characters than letters, digits, `_`, `-`, `.`\n\
         13: `metrics.c.of` can't be a sum's name\n\
         13: `metrics.c.as` is `\"sum\"`; one of `mean`, `root_mean`, `exp_mean`, `macro_f1`, `confusion`, `auc` is wanted"
    );
}

#[test]
fn metrics_of_arrays_need_no_goal_and_may_have_the_names_of_built_in_ones() {
    let metrics = "[metrics]
f1 = { of = \"pairs\", as = \"macro_f1\" }\nauc = { of = \"scores\", as = \"auc\" }\n\
                   pairs = { of = \"pairs\", as = \"confusion\" }\n";
    let text = |search: &str| format!("{}[search]\nmetric = {search}\n{metrics}", graph(""));
    for (search, metric, own) in [
        ("\"valid/f1\"", Metric::F1, "f1"),
        ("\"valid/auc\"\ngoal = \"max\"\ntarget = 0.9", Metric::Own("valid/auc".into()), "auc"),
    ] {
        let job = parse(&text(search)).unwrap();
        assert_eq!((job.search.own(), job.search.goal), (Some(own), Goal::Max));
        assert_eq!(job.search.metric, metric);
    }
    let numbers = text("\"valid/f1\"").replace("epochs = 2", "epochs = 2\nloss = \"mse\"");
    assert_eq!(parse(&numbers).unwrap().search.own(), Some("f1"), "labels don't matter");
    assert_eq!(
        errors_of(&text("\"valid/pairs\"\ngoal = \"max\"")),
        "12: `search.metric` is a matrix, and no number to compare by"
    );
    assert_eq!(
        errors_of(&text("\"valid/auc\"\ngoal = \"min\"\ntarget = 2")),
        "13: `search.goal` would choose the worst trial: of `valid/auc` more is better\n\
         14: `search.target` is 2; of `valid/auc` a number from 0 to 1 is wanted"
    );
}

#[test]
fn rules_must_fit_the_sums_that_the_graphs_give() {
    let job = |metrics: &str, metric: &str| {
        let search = format!("[search]\nmetric = \"valid/{metric}\"\ngoal = \"max\"\n");
        let mut job = parse(&format!("{}{search}[metrics]\n{metrics}\n", graph(""))).unwrap();
        let exported = ExportedGraph {
            sums: ["hits", "loss", "pairs", "scores"].map(str::to_owned).to_vec(),
            arrays: [("pairs".into(), vec![3, 3]), ("scores".into(), vec![2, 100])].into(),
            ..ExportedGraph::of_file(BlobRef { sha256: Digest::of(b"graph"), bytes: 1 })
        };
        let graph = Graph {
            entry: "model.py:Cnn".into(),
            values: BTreeMap::new(),
            exported: Some(exported),
        };
        let [ModelSpace::Graph(space)] = job.models.as_mut_slice() else { panic!("no graph") };
        space.exported = vec![graph];
        job
    };
    let check = |metrics: &str, metric: &str| job(metrics, metric).check_metric_of_graphs();
    assert_eq!(check("f1 = { of = \"pairs\", as = \"macro_f1\" }", "f1"), Ok(()));
    assert_eq!(check("auc = { of = \"scores\", as = \"auc\" }", "hits"), Ok(()));
    for (metrics, metric, told) in [
        (
            "",
            "pairs",
            "metric `valid/pairs` is an array, and no number to compare by: `[metrics]` makes numbers of arrays",
        ),
        (
            "a = { of = \"pairs\" }",
            "hits",
            "`metrics.a` takes a number, and no array; `pairs` is [3, 3]",
        ),
        (
            "a = { of = \"hits\", as = \"auc\" }",
            "a",
            "`metrics.a` takes an array of shape [2, bins]; `hits` is a number",
        ),
        (
            "a = { of = \"scores\", as = \"macro_f1\" }",
            "a",
            "`metrics.a` takes an array of shape [classes, classes]; `scores` is [2, 100]",
        ),
        (
            "a = { of = \"other\" }",
            "hits",
            "`metrics.a` needs the sum `other`, which no model's `evaluate` gives",
        ),
    ] {
        assert_eq!(check(metrics, metric), Err(told.into()));
    }
    assert_eq!(
        check("", "f1"),
        Err("metric `valid/f1` is none of a graph's: the model's `evaluate` gives `hits`, `loss`, `pairs`, `scores`".into())
    );
    let mut many = job("", "other");
    let [ModelSpace::Graph(space)] = many.models.as_mut_slice() else { panic!("no graph") };
    let exported = space.exported[0].exported.as_mut().unwrap();
    exported.sums = (0..12).map(|sum| format!("s{sum}")).collect();
    exported.arrays.clear();
    let told = many.check_metric_of_graphs().unwrap_err();
    assert!(
        told.ends_with(
            "it gives `s0`, `s1`, `s2`, `s3`, `s4`, `s5`, `s6`, `s7`, `s8`, `s9` and 2 more"
        ),
        "{told}"
    );
    let mut vast = job("", "hits");
    let [ModelSpace::Graph(space)] = vast.models.as_mut_slice() else { panic!("no graph") };
    let exported = space.exported[0].exported.as_mut().unwrap();
    exported.arrays.insert("hits".into(), vec![u64::MAX, 2]);
    let told = vast.check_metric_of_graphs().unwrap_err();
    assert!(told.contains("`hits` is too large"), "{told}");
}

#[test]
fn graphs_that_can_not_be_are_refused() {
    assert_eq!(
        errors_with("arch = \"mlp\"\nhidden = [8]", "arch = \"graph\""),
        "5: `model[0].entry` is missing: where its code is, e.g. `\"model.py:Cnn\"`"
    );
    for entry in ["model.py", "model:Cnn", "model.py:", "model.py:a b", "model.py:1"] {
        let text = graph("").replace("model.py:Cnn", entry);
        let told = errors_of(&text);
        assert!(told.contains("a Python file and what is defined in it is wanted"), "{told}");
    }
    assert_eq!(
        errors_of(&graph("\"a-b\" = 1")),
        "8: `model[0].a-b` can't be a name in Python: letters, digits and `_`, a letter first"
    );
    assert_eq!(
        errors_with("hidden = [8]", "hidden = [8]\nentry = \"model.py:Cnn\""),
        "8: `model[0].entry` is a key of `arch = \"graph\"`"
    );
    for line in [
        "loss = \"mse\"",
        "label_smoothing = 0",
        "class_weights = \"balanced\"",
        "label_smoothing = 0.1",
    ] {
        let text = graph("").replace("epochs = 2", &format!("epochs = 2\n{line}"));
        let refused = parse(&text).err().map(|error| error.to_string());
        // A loss says what labels are.
        let allowed = ["loss = \"mse\"", "label_smoothing = 0"].contains(&line);
        assert_eq!(refused.is_none(), allowed, "{refused:?}");
        if let Some(refused) = refused {
            assert!(refused.contains("whose loss is the model's own"), "{refused}");
        }
    }
    let scaled = graph("").replace("label = \"y\"", "label = \"y\"\nscale_label = \"standard\"");
    let scaled = scaled.replace("epochs = 2", "epochs = 2\nloss = \"mse\"");
    assert!(errors_of(&scaled).contains("whose loss is the model's own"));
}

#[test]
fn metrics_of_built_in_models_are_not_asked_of_graphs() {
    let job = SMALL
        .replace("epochs = 2", "epochs = 2\nloss = \"mse\"\n[search]\nmetric = \"valid/rmse\"");
    assert_eq!(parse(&job).unwrap().check_metric_of_graphs(), Ok(()));
    let search = "[search]\nmetric = \"valid/f1\"\n";
    let own = parse(&format!("{}{search}", graph(""))).unwrap();
    assert_eq!(own.check_metric_of_graphs(), Err("metric `valid/f1` is none of a graph's".into()));
}
