//! Graphs: users' models as plain data.

use crate::expect::is_said;
use sojourn_codec::{Tensor, encode};
use sojourn_graph::{Argument, Graph, NodeList, Source, Whole};
use sojourn_protocol::{error::error_chain, quantity::to_u64};

/// Reads a graph's file; and the input as the JSON of one, which a change seldom leaves whole in a file.
pub(crate) fn graph(input: &[u8]) -> bool {
    let wrapped = encode(&[Tensor::u8("graph", [to_u64(input.len())], input)]);
    assert!(wrapped.is_ok(), "{:?}", wrapped.err());
    let mut taken = false;
    for file in [input, &wrapped.unwrap_or_default()] {
        match Graph::read(file) {
            Ok(graph) => {
                refers_to_what_is_there(&graph);
                taken = true;
            }
            Err(error) => is_said(&error_chain(&error), input),
        }
    }
    taken
}

fn refers_to_what_is_there(graph: &Graph) {
    let stages = graph.train.iter().map(|stage| (&stage.list, vec![stage.loss]));
    let sums = graph.evaluate.sums.values().copied().collect();
    let predict = graph.predict.iter().map(|predict| (&predict.list, vec![predict.outputs]));
    for (list, results) in stages.chain([(&graph.evaluate.list, sums)]).chain(predict) {
        is_in_order(graph, list);
        let nodes = list.nodes.len();
        assert!(results.iter().all(|result| is_there(graph, nodes, *result)), "{results:?}");
    }
}

/// Each node takes as many arguments as its operator has parameters, and nothing of later nodes.
fn is_in_order(graph: &Graph, list: &NodeList) {
    for (at, node) in list.nodes.iter().enumerate() {
        assert_eq!(node.arguments.len(), node.operator.parameters.len(), "{node:?}");
        let before = |whole: &Whole| !matches!(whole, Whole::Node(node) if *node >= at);
        let there = |source: &Source| is_there(graph, at, *source);
        let sound = |argument: &Argument| match argument {
            Argument::Tensor(source) => there(source),
            Argument::Tensors(sources) => sources.iter().flatten().all(there),
            Argument::AllOf(node) => *node < at,
            Argument::Whole(whole) => before(whole),
            Argument::Wholes(wholes) => wholes.iter().all(before),
            _ => true,
        };
        assert!(node.arguments.iter().all(sound), "node {at} isn't in order: {node:?}");
    }
}

fn is_there(graph: &Graph, nodes: usize, source: Source) -> bool {
    match source {
        Source::Node(node) | Source::Item { node, .. } => node < nodes,
        Source::Tensor(index) => index < graph.tensors.len(),
        Source::Column(index) => index < graph.columns.len(),
    }
}
