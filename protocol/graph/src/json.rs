//! A graph's JSON as it is written: nothing is checked here but its form.

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use sojourn_protocol::{dtype::Dtype, spec::GraphTensor};
use std::{collections::BTreeMap, fmt, marker::PhantomData};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) graph: u64,
    pub(crate) torch: String,
    pub(crate) columns: Unique<(Dtype, Vec<u64>)>,
    pub(crate) tensors: Vec<GraphTensor>,
    pub(crate) train: Vec<Stage>,
    pub(crate) evaluate: Evaluate,
    #[serde(default)]
    pub(crate) predict: Option<Predict>,
}

/// A stage of a training step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stage {
    pub(crate) nodes: Vec<Node>,
    pub(crate) loss: Argument,
    #[serde(default)]
    pub(crate) moves: Option<Vec<String>>,
}

/// The nodes of an evaluation, and the sums that it adds up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evaluate {
    pub(crate) nodes: Vec<Node>,
    pub(crate) sums: Unique<Argument>,
    #[serde(default)]
    pub(crate) shapes: Unique<Vec<u64>>,
}

/// The nodes of a prediction, and its outputs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Predict {
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Argument,
}

/// The call of an operator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    pub(crate) op: String,
    pub(crate) args: Vec<Argument>,
    #[serde(default)]
    pub(crate) kwargs: Unique<Argument>,
    #[serde(default)]
    pub(crate) no_grad: bool,
}

/// An argument of an operator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Null,
    Flag(bool),
    Whole(i64),
    Real(f64),
    List(Vec<Argument>),
    Node { node: usize, item: Option<usize> },
    Tensor(String),
    Column(String),
    Dtype(Dtype),
    Memory(String),
    Text(String),
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentVisitor)
    }
}

struct ArgumentVisitor;

impl<'de> Visitor<'de> for ArgumentVisitor {
    type Value = Argument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument")
    }

    fn visit_unit<E>(self) -> Result<Argument, E> {
        Ok(Argument::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Argument, E> {
        Ok(Argument::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Argument, E> {
        Ok(Argument::Whole(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Argument, E> {
        let value = i64::try_from(value).map_err(|_| E::custom("a whole number over 2^63"))?;
        Ok(Argument::Whole(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Argument, E> {
        Ok(Argument::Real(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Argument, A::Error> {
        let mut arguments = Vec::new();
        while let Some(argument) = list.next_element()? {
            if matches!(argument, Argument::List(_)) {
                return Err(A::Error::custom("a list in a list"));
            }
            arguments.push(argument);
        }
        Ok(Argument::List(arguments))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Argument, A::Error> {
        let key = map.next_key::<Key>()?.ok_or_else(|| A::Error::custom("an empty argument"))?;
        let argument = match key {
            Key::N => {
                let node = map.next_value()?;
                let item = map.next_key::<Key>()?.map(|key| other_key(&mut map, key, &Key::I));
                Argument::Node { node, item: item.transpose()? }
            }
            Key::I => {
                let item = Some(map.next_value()?);
                let key = map.next_key()?.ok_or_else(|| A::Error::custom("an `i` without `n`"))?;
                Argument::Node { node: other_key(&mut map, key, &Key::N)?, item }
            }
            Key::T => Argument::Tensor(map.next_value()?),
            Key::C => Argument::Column(map.next_value()?),
            Key::Dtype => Argument::Dtype(map.next_value()?),
            Key::Memory => Argument::Memory(map.next_value()?),
            Key::Float => Argument::Real(map.next_value::<RealWord>()?.value()),
            Key::Text => Argument::Text(map.next_value()?),
        };
        if map.next_key::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom("an argument with too many keys"));
        }
        Ok(argument)
    }
}

/// The value of the second of two keys.
fn other_key<'de, A: MapAccess<'de>>(map: &mut A, key: Key, must: &Key) -> Result<usize, A::Error> {
    if key == *must { map.next_value() } else { Err(A::Error::custom("an argument of two kinds")) }
}

/// The keys of arguments that are objects.
#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Key {
    N,
    I,
    T,
    C,
    Dtype,
    Memory,
    Float,
    Text,
}

/// Numbers that JSON has no word for.
#[derive(Deserialize)]
enum RealWord {
    #[serde(rename = "inf")]
    Infinity,
    #[serde(rename = "-inf")]
    MinusInfinity,
    #[serde(rename = "nan")]
    NotANumber,
}

impl RealWord {
    const fn value(&self) -> f64 {
        match self {
            RealWord::Infinity => f64::INFINITY,
            RealWord::MinusInfinity => f64::NEG_INFINITY,
            RealWord::NotANumber => f64::NAN,
        }
    }
}

/// An object in which no key is there twice.
#[derive(Debug)]
pub(crate) struct Unique<T>(pub(crate) BTreeMap<String, T>);

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Unique<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Unique<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique<T>, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((key, value)) = map.next_entry()? {
                    if entries.insert(key, value).is_some() {
                        return Err(A::Error::custom("a key that is there twice"));
                    }
                }
                Ok(Unique(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}
