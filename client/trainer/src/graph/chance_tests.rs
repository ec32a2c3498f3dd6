//! Every operator with arguments by chance: whatever a graph says, the worst is a refusal in words.
//!
//! A crash of libtorch would end the process, here and on hosts. `SOJOURN_GRAPH_CALLS` asks for more calls of each operator,
//! `SOJOURN_GRAPH_SEED` for others; `SOJOURN_GRAPH_SAY=1` says each before it is made.

use super::{Program, Tensors};
use crate::{
    batch::{Batch, X, Y},
    fixture::TORCH_RNG,
};
use rand_core::Rng as _;
use serde_json::{Value, json};
use sojourn_codec::{Tensor as Stored, encode};
use sojourn_graph::{Graph, Kind as Takes, Operator, Parameter, Returns};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    seeds,
    spec::Precision,
};
use std::env;
use tch::{Device, Kind, Tensor};

/// Calls of each operator.
const CALLS: u64 = 6;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// Nodes that make tensors of several shapes and types, from `w` (a parameter, `[2, 3, 4]`), `x` and `y`.
fn makers() -> Vec<Value> {
    let node = |op: &str, args: Value| json!({"op": op, "args": args});
    vec![
        node("aten.mul.Tensor", json!([{"t": "w"}, 0.5])),
        node("aten.flatten.using_ints", json!([{"n": 0}, 1])),
        node("aten.sum.default", json!([{"t": "w"}])),
        node("aten.gt.Scalar", json!([{"c": "x"}, 0.3])),
        node("aten.unsqueeze.default", json!([{"c": "x"}, 0])),
        node("aten.select.int", json!([{"t": "w"}, 0, 0])),
        node("aten.zeros.default", json!([[0, 3]])),
        node("aten.view.default", json!([{"t": "w"}, [1, 2, 3, 4]])),
        node("aten.view.default", json!([{"t": "w"}, [24]])),
    ]
}

/// Arguments by chance.
struct Chance(Box<dyn FnMut() -> u32>);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        (self.0)() as usize % bound
    }

    fn one_of(&mut self, values: &[Value]) -> Value {
        values[self.below(values.len())].clone()
    }

    fn tensor(&mut self) -> Value {
        match self.below(makers().len() + 4) {
            0 => json!({"c": "x"}),
            1 => json!({"c": "y"}),
            2 => json!({"t": "w"}),
            3 => json!({"t": "count"}),
            n => json!({"n": n - 4}),
        }
    }

    fn whole(&mut self) -> Value {
        let usual = [-1, 0, 1, 1, 2, 2, 3, 4].map(Value::from);
        let odd = [-3, 5, 8, -1 << 40, 1 << 40, i64::MAX, i64::MIN].map(Value::from);
        if self.below(8) == 0 { self.one_of(&odd) } else { self.one_of(&usual) }
    }

    fn real(&mut self) -> Value {
        let usual = [0.0, 0.1, 0.5, 1.0, 2.0, -1.0, 1e30, 1e-30].map(Value::from);
        let words = ["inf", "-inf", "nan"].map(|word| json!({"float": word}));
        if self.below(8) == 0 { self.one_of(&words) } else { self.one_of(&usual) }
    }

    fn list(&mut self, most: usize, of: fn(&mut Self) -> Value) -> Value {
        let count = self.below(most + 1);
        (0..count).map(|_| of(self)).collect::<Vec<_>>().into()
    }

    fn text(&mut self) -> Value {
        let words = [
            "none",
            "tanh",
            "mean",
            "constant",
            "reflect",
            "replicate",
            "circular",
            "same",
            "valid",
            "floor",
            "trunc",
            "",
            "abc,abc->ab",
            "ab,bc->ac",
            "abc->",
            "...a,a->...",
            "ij,jk",
            "aa->a",
            "a,b->ab",
        ];
        json!({"text": words[self.below(words.len())]})
    }

    fn argument(&mut self, parameter: &Parameter) -> Value {
        if parameter.optional && self.below(2) == 0 {
            return Value::Null;
        }
        match parameter.kind {
            Takes::Tensor => self.tensor(),
            Takes::Tensors { some: true } => self
                .list(3, |chance| if chance.below(3) == 0 { Value::Null } else { chance.tensor() }),
            Takes::Tensors { some: false } => self.list(9, Self::tensor),
            Takes::Number if self.below(2) == 0 => self.real(),
            Takes::Number | Takes::Whole => self.whole(),
            Takes::Real => self.real(),
            Takes::Flag => self.one_of(&[true, false].map(Value::from)),
            Takes::Wholes(Some(_)) if self.below(2) == 0 => self.whole(),
            Takes::Wholes(_) => self.list(4, Self::whole),
            Takes::Reals => self.list(3, Self::real),
            Takes::Dtype => {
                let words = ["F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL"];
                json!({"dtype": words[self.below(words.len())]})
            }
            Takes::Memory => {
                let words = ["contiguous", "channels_last", "preserve"];
                json!({"memory": words[self.below(words.len())]})
            }
            Takes::Text => self.text(),
        }
    }

    /// A call of an operator; what has a default is often left out.
    fn call(&mut self, operator: &Operator) -> Value {
        let (mut args, mut kwargs) = (Vec::new(), serde_json::Map::new());
        let mut by_name = false;
        for parameter in &operator.parameters {
            if parameter.default.is_some() && self.below(2) == 0 {
                by_name = true;
            } else if by_name || parameter.by_name {
                kwargs.insert(parameter.name.clone(), self.argument(parameter));
            } else {
                args.push(self.argument(parameter));
            }
        }
        json!({"op": operator.name, "args": args, "kwargs": kwargs, "no_grad": self.below(16) == 0})
    }
}

/// A graph that trains on the sum of what a call gives; `then_changes` it before that, if asked to.
fn graph(operator: &Operator, call: Value, then_changes: bool) -> Vec<u8> {
    let mut nodes = makers();
    nodes.push(call);
    let at = nodes.len() - 1;
    let given = match operator.returns {
        Returns::Tensor => json!({"n": at}),
        Returns::Tensors(_) | Returns::List => json!({"n": at, "i": 0}),
        Returns::Whole => json!({"t": "w"}),
    };
    nodes.push(
        json!({"op": "aten.sum.default", "args": [given], "kwargs": {"dtype": {"dtype": "F32"}}}),
    );
    if then_changes {
        let change = json!({"op": "aten.fill_.Scalar", "args": [given, 7], "no_grad": true});
        nodes.insert(at + 1, change);
    }
    let loss = json!({"n": nodes.len() - 1});
    let json = json!({
        "graph": 1, "torch": "2.11.0",
        "columns": {"x": ["F32", [4]], "y": ["I64", []]},
        "tensors": [
            {"name": "w", "dtype": "F32", "shape": [2, 3, 4], "role": "parameter", "start": "ones"},
            {"name": "count", "dtype": "I64", "shape": [], "role": "buffer", "start": "ones"}
        ],
        "train": [{"nodes": nodes, "loss": loss}],
        "evaluate": {"nodes": makers(), "sums": {"loss": {"n": 2}}}
    });
    let json = serde_json::to_vec(&json).unwrap();
    encode(&[Stored::u8("graph", [json.len() as u64], &json)]).unwrap()
}

fn labelled(x: &Tensor, y: &Tensor) -> Batch {
    let names = [X.to_owned(), Y.to_owned()];
    Batch::new(names.into(), vec![x.shallow_clone(), y.shallow_clone()], y.size1().unwrap())
}

/// Runs a graph forward and back; true where it was taken.
fn runs(file: &[u8]) -> bool {
    let Ok(graph) = Graph::read(file) else { return false };
    let exported = graph.summary(BlobRef { sha256: Digest::of(file), bytes: 0 }, 0, 0);
    let program = Program::prepare(file, &exported, Device::Cpu).unwrap();
    let w = Tensor::linspace(-1.0, 1.0, 24, (Kind::Float, Device::Cpu)).view([2, 3, 4]);
    let parameters = [w.set_requires_grad(true)];
    let buffers = [Tensor::from(1i64)];
    let tensors = Tensors { parameters: &parameters, buffers: &buffers, precision: Precision::F32 };
    let x = Tensor::linspace(0.0, 1.0, 12, (Kind::Float, Device::Cpu)).view([3, 4]);
    let y = Tensor::from_slice(&[0i64, 2, 1]);
    let before = [&parameters[0], &x, &y].map(|tensor| tensor.detach().copy());
    let ran = match program.loss(0, tensors, &labelled(&x, &y)) {
        Ok(loss) => Tensor::f_run_backward(&[&loss], &parameters, false, false).is_ok(),
        Err(_) => false,
    };
    for (tensor, before) in [&parameters[0], &x, &y].into_iter().zip(before) {
        assert!(tensor.equal(&before), "a parameter or a column was changed");
    }
    ran
}

#[test]
fn a_call_by_chance_is_refused_in_words_at_worst() {
    let (calls, seed) = (number("SOJOURN_GRAPH_CALLS", CALLS), number("SOJOURN_GRAPH_SEED", 1));
    let says = env::var_os("SOJOURN_GRAPH_SAY").is_some();
    let _alone = TORCH_RNG.lock();
    tch::set_num_threads(1);
    let mut taken = 0;
    for (index, name) in (0..).zip(sojourn_graph::operators()) {
        let operator = sojourn_graph::operator(name).unwrap();
        let mut rng = seeds::stream("graph-calls", &[seed, index]);
        let mut chance = Chance(Box::new(move || rng.next_u32()));
        for _ in 0..calls {
            let call = chance.call(operator);
            if says {
                eprintln!("{call}");
            }
            taken += u64::from(runs(&graph(operator, call.clone(), false)));
            runs(&graph(operator, call, true));
        }
    }
    assert!(taken > 0, "no call was taken");
    println!("{taken} calls were taken");
}
