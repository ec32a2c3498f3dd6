//! `[[model]]`: the architectures and their own dimensions.

use super::{
    dimension,
    element::{Bounds, Element},
    method::Method,
};
use crate::spec::{
    CnnSpace, Dimension, GraphSpace, InitialWeights, MAX_SUM_NAME, MlpSpace, ModelSpace, Resnet,
    ResnetSpace, Setting,
};
use sojourn_forms::{Node, Table};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arch {
    Mlp,
    Cnn,
    Resnet,
    Graph,
}

/// The architectures by their words.
pub(super) const ARCHS: &[(&str, Arch)] =
    &[("mlp", Arch::Mlp), ("cnn", Arch::Cnn), ("resnet", Arch::Resnet), ("graph", Arch::Graph)];

/// The most keys that a user's own model may have.
const MAX_OWN_KEYS: usize = 64;
/// The keys of such a model that aren't its own.
const GRAPH_KEYS: &[&str] = &["arch", "entry", "init", "initial"];

const INITIAL_WEIGHTS: &[(&str, InitialWeights)] =
    &[("recipes", InitialWeights::Recipes), ("given", InitialWeights::Given)];

/// The keys that not every architecture has, and those that have them.
const KEYS: &[(&str, &[&str])] = &[
    ("entry", &["graph"]),
    ("initial", &["graph"]),
    ("hidden", &["mlp", "cnn"]),
    ("channels", &["cnn"]),
    ("pool", &["cnn"]),
    ("pool_every", &["cnn"]),
    ("batch_norm", &["mlp", "cnn"]),
    ("dropout", &["mlp", "cnn"]),
    ("depth", &["resnet"]),
    ("width", &["resnet"]),
];

/// The space of one `[[model]]`.
pub(super) fn space(
    section: Table<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
) -> Option<ModelSpace> {
    let arch = section.required("arch", "`mlp`, `cnn`, `resnet` or `graph`")?.word(ARCHS)?;
    let name = ARCHS.iter().find(|(_, other)| *other == arch).map_or("", |(name, _)| *name);
    let table = ModelTable { section, method };
    if arch == Arch::Graph {
        return table.graph().map(ModelSpace::Graph);
    }
    let mine = table.refuse_foreign(name);
    let space = match arch {
        Arch::Mlp => table.mlp().map(ModelSpace::Mlp),
        Arch::Cnn => table.cnn().map(ModelSpace::Cnn),
        Arch::Resnet => table.resnet().map(ModelSpace::Resnet),
        Arch::Graph => return None,
    };
    if arch != Arch::Mlp
        && let Some(shape) = shape
        && shape.is_none_or(|shape| shape.len() != 3)
    {
        let text = format!("is `\"{name}\"`, which needs `data.shape = [channels, height, width]`");
        return table.section.refuse("arch", text);
    }
    mine.and(space)
}

/// Is it a user's own model? Reports nothing.
pub(super) fn is_graph(section: &Table<'_>) -> bool {
    section.optional("arch").is_some_and(|arch| arch.as_string() == Some("graph"))
}

/// One `[[model]]`.
struct ModelTable<'a> {
    section: Table<'a>,
    method: Option<Method>,
}

impl ModelTable<'_> {
    fn refuse_foreign(&self, arch: &str) -> Option<()> {
        let mut mine = Some(());
        for (key, archs) in KEYS.iter().filter(|(_, archs)| !archs.contains(&arch)) {
            if let Some(node) = self.section.optional(key) {
                let archs: Vec<String> =
                    archs.iter().map(|arch| format!("`arch = \"{arch}\"`")).collect();
                mine = node.refuse(format!("is a key of {}", archs.join(" and ")));
            }
        }
        mine
    }

    fn mlp(&self) -> Option<MlpSpace> {
        let what = "the units of each hidden layer, e.g. `[64]`";
        let hidden = self.required("hidden", what);
        let batch_norm = self.or("batch_norm", Bounds::NotNegative, Dimension::default());
        let dropout = self.or("dropout", Bounds::ZeroToBelowOne, Dimension::default());
        Some(MlpSpace { hidden: hidden?, batch_norm: batch_norm?, dropout: dropout? })
    }

    fn cnn(&self) -> Option<CnnSpace> {
        let what = "the channels of each convolution, e.g. `[16, 32]`";
        let channels: Option<Dimension<Vec<u32>>> = self.required("channels", what);
        let pool = self.or("pool", Bounds::NotNegative, Dimension::default());
        let pool_every = self.or("pool_every", Bounds::AtLeastOne, 1.into());
        let hidden = self.or("hidden", Bounds::AtLeastOne, Dimension::default());
        let batch_norm = self.or("batch_norm", Bounds::NotNegative, Dimension::default());
        let dropout = self.or("dropout", Bounds::ZeroToBelowOne, Dimension::default());
        let channels = channels?;
        if channels.values().into_iter().any(Vec::is_empty) {
            let text = "has an empty list; a `cnn` needs at least one convolution";
            return self.section.refuse("channels", text);
        }
        Some(CnnSpace {
            channels,
            pool: pool?,
            pool_every: pool_every?,
            hidden: hidden?,
            batch_norm: batch_norm?,
            dropout: dropout?,
        })
    }

    fn resnet(&self) -> Option<ResnetSpace> {
        let what = "9n + 2: 11, 20, 29, and so on";
        let depth: Option<Dimension<u32>> = self.required("depth", what);
        let width = self.or("width", Bounds::AtLeastOne, Resnet::WIDTH.into());
        let depth = depth?;
        if depth.range().is_some() {
            let text = "can't be a range: it must be 9n + 2; `choice` is the way to search over it";
            return self.section.refuse("depth", text);
        }
        let width = width?;
        for depth in depth.values().into_iter().copied() {
            let resnet = Resnet { depth, width: Resnet::WIDTH };
            if resnet.blocks().is_none() {
                let text = format!("is {depth}; 9n + 2 is wanted: 11, 20, 29, and so on");
                return self.section.refuse("depth", text);
            }
        }
        Some(ResnetSpace { depth, width })
    }

    fn graph(&self) -> Option<GraphSpace> {
        let what = "where its code is, e.g. `\"model.py:Cnn\"`";
        let entry = self.section.required("entry", what).and_then(|node| entry(&node));
        let initial = match self.section.optional("initial") {
            None => Some(InitialWeights::default()),
            Some(node) => node.word(INITIAL_WEIGHTS),
        };
        let own = self.section.entries().filter(|(key, _)| !GRAPH_KEYS.contains(key));
        let values: Vec<Option<(String, Dimension<Setting>)>> =
            own.map(|(key, node)| self.own_key(key, &node)).collect();
        if values.len() > MAX_OWN_KEYS {
            let text = format!("has more than {MAX_OWN_KEYS} keys of its own");
            return self.section.refuse("entry", text);
        }
        let values = values.into_iter().collect::<Option<_>>();
        let (entry, initial, values) = (entry?, initial?, values?);
        Some(GraphSpace { entry, values, initial, exported: Vec::new() })
    }

    /// One of the keys of a user's own model, which its code reads as `c.key`.
    fn own_key(&self, key: &str, node: &Node<'_>) -> Option<(String, Dimension<Setting>)> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let starts = key.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        if !starts || !key.chars().all(is_word) || key.len() > MAX_SUM_NAME {
            return node
                .refuse("can't be a name in Python: letters, digits and `_`, a letter first");
        }
        Some((key.to_owned(), dimension::read(node, Bounds::Any, self.method, None)?))
    }

    fn required<T: Element>(&self, key: &str, what: &str) -> Option<Dimension<T>> {
        let node = self.section.required(key, what)?;
        dimension::read(&node, Bounds::AtLeastOne, self.method, None)
    }

    fn or<T: Element>(
        &self,
        key: &str,
        bounds: Bounds,
        default: Dimension<T>,
    ) -> Option<Dimension<T>> {
        match self.section.optional(key) {
            None => Some(default),
            Some(node) => {
                dimension::read(&node, bounds, self.method, default.values().first().copied())
            }
        }
    }
}

/// Reads `entry`: a file and what is defined in it.
fn entry(node: &Node<'_>) -> Option<String> {
    let text = node.string("a file and a name in it, e.g. `\"model.py:Cnn\"`,")?;
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_numeric())
    };
    match text.rsplit_once(':') {
        Some((file, name)) if file.ends_with(".py") && is_name(name) && text.len() <= 1000 => {
            Some(text.to_owned())
        }
        _ => node.refuse(format!(
            "is {}; a Python file and what is defined in it is wanted, e.g. `\"model.py:Cnn\"`",
            node.describe()
        )),
    }
}
