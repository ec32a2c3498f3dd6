//! `[[model]]`: the architectures and their own dimensions.

use super::{
    dimension::{self, Bounds, Element},
    reader::Section,
    search::Method,
};
use crate::spec::{CnnSpace, Dimension, MlpSpace, ModelSpace, Resnet, ResnetSpace};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arch {
    Mlp,
    Cnn,
    Resnet,
}

/// The architectures by their words.
pub(super) const ARCHS: &[(&str, Arch)] =
    &[("mlp", Arch::Mlp), ("cnn", Arch::Cnn), ("resnet", Arch::Resnet)];

/// The keys that not every architecture has, and those that have them.
const KEYS: &[(&str, &[&str])] = &[
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
    section: Section<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
) -> Option<ModelSpace> {
    let arch = section.required("arch", "`mlp`, `cnn` or `resnet`")?.word(ARCHS)?;
    let name = ARCHS.iter().find(|(_, other)| *other == arch).map_or("", |(name, _)| *name);
    let table = Table { section, method };
    let mine = table.refuse_foreign(name);
    let space = match arch {
        Arch::Mlp => table.mlp().map(ModelSpace::Mlp),
        Arch::Cnn => table.cnn().map(ModelSpace::Cnn),
        Arch::Resnet => table.resnet().map(ModelSpace::Resnet),
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

/// One `[[model]]`.
struct Table<'a> {
    section: Section<'a>,
    method: Option<Method>,
}

impl Table<'_> {
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
        if channels.values().iter().any(Vec::is_empty) {
            let text = "has an empty list; a `cnn` needs at least one convolution";
            return self.section.refuse("channels", text.to_owned());
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
        if matches!(depth, Dimension::Range(_)) {
            let text = "can't be a range: it must be 9n + 2; `choice` is the way to search over it";
            return self.section.refuse("depth", text.to_owned());
        }
        let width = width?;
        for depth in depth.values().iter().copied() {
            let resnet = Resnet { depth, width: Resnet::WIDTH };
            if resnet.blocks().is_none() {
                let text = format!("is {depth}; 9n + 2 is wanted: 11, 20, 29, and so on");
                return self.section.refuse("depth", text);
            }
        }
        Some(ResnetSpace { depth, width })
    }

    fn required<T: Element>(&self, key: &str, what: &str) -> Option<Dimension<T>> {
        let node = self.section.required(key, what)?;
        dimension::read(&node, Bounds::AtLeastOne, self.method)
    }

    fn or<T: Element>(
        &self,
        key: &str,
        bounds: Bounds,
        default: Dimension<T>,
    ) -> Option<Dimension<T>> {
        match self.section.optional(key) {
            None => Some(default),
            Some(node) => dimension::read(&node, bounds, self.method),
        }
    }
}
