//! Operators' schemas, read from PyTorch's own notation.
//!
//! `add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`: what comes behind `*` is given by name
//! only; `(a)` says that the result may share memory with the argument, `(a!)` that the argument is changed.

use crate::argument::{Argument, Memory, Whole};

/// An operator that nodes may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// The operator's name with its overload: `aten.add.Tensor`.
    pub name: String,
    /// The operator's parameters, in the order of its schema.
    pub parameters: Vec<Parameter>,
    /// The values that the operator returns.
    pub returns: Returns,
}

/// One parameter of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The parameter's name.
    pub name: String,
    /// The kind of argument that the parameter takes.
    pub kind: Kind,
    /// May it be `null`?
    pub optional: bool,
    /// Is it given by name only?
    pub by_name: bool,
    /// The argument where none is given; none where one must be given.
    pub default: Option<Argument>,
    /// May the result share memory with it?
    pub shared: bool,
    /// Is it changed?
    pub changed: bool,
}

/// The kind of argument that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tensor.
    Tensor,
    /// Several tensors; some of them may be `null`.
    Tensors {
        /// May some be `null`?
        some: bool,
    },
    /// A number of any kind.
    Number,
    /// A whole number.
    Whole,
    /// A real number.
    Real,
    /// Yes or no.
    Flag,
    /// Several whole numbers; where a length is given, one stands for as many equal ones.
    Wholes(Option<usize>),
    /// Several real numbers.
    Reals,
    /// A type of elements.
    Dtype,
    /// An order in memory.
    Memory,
    /// A word.
    Text,
}

/// The values that an operator returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// A tensor.
    Tensor,
    /// So many tensors.
    Tensors(usize),
    /// Several tensors, how many depends on the arguments.
    List,
    /// A whole number.
    Whole,
}

/// The operator of a schema in the given namespace; nothing where the notation isn't understood.
pub(crate) fn parse(namespace: &str, text: &str) -> Option<Operator> {
    let (head, returns) = text.split_once(") -> ")?;
    let (name, parameters) = head.split_once('(')?;
    let overload = if name.contains('.') || namespace == "sym" { "" } else { ".default" };
    let mut by_name = false;
    let mut parsed = Vec::new();
    for part in parameters.split(", ").filter(|part| !part.is_empty()) {
        if part == "*" {
            by_name = true;
        } else {
            parsed.push(parameter(part, by_name)?);
        }
    }
    let name = format!("{namespace}.{name}{overload}");
    Some(Operator { name, parameters: parsed, returns: parse_returns(returns)? })
}

fn parse_returns(text: &str) -> Option<Returns> {
    Some(match text {
        "int" => Returns::Whole,
        _ if text.starts_with('(') => Returns::Tensors(text.split(", ").count()),
        _ if text.ends_with("[]") => Returns::List,
        _ if text.starts_with("Tensor") => Returns::Tensor,
        _ => return None,
    })
}

fn parameter(text: &str, by_name: bool) -> Option<Parameter> {
    let (described, default) = match text.split_once('=') {
        Some((described, default)) => (described, Some(default)),
        None => (text, None),
    };
    let (word, name) = described.rsplit_once(' ')?;
    let (word, marked) = match word.split_once('(') {
        Some((before, rest)) => {
            let (mark, after) = rest.split_once(')')?;
            (format!("{before}{after}"), Some(mark))
        }
        None => (word.to_owned(), None),
    };
    let optional = word.ends_with('?');
    let kind = kind(word.trim_end_matches('?'))?;
    let default = match default {
        Some(default) => Some(value(kind, default)?),
        None => None,
    };
    Some(Parameter {
        name: name.to_owned(),
        kind,
        optional,
        by_name,
        default,
        shared: marked.is_some_and(|mark| mark.starts_with('a')),
        changed: marked.is_some_and(|mark| mark.ends_with('!')),
    })
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "Tensor" => Kind::Tensor,
        "Tensor[]" => Kind::Tensors { some: false },
        "Tensor?[]" => Kind::Tensors { some: true },
        "Scalar" => Kind::Number,
        "int" => Kind::Whole,
        "float" => Kind::Real,
        "bool" => Kind::Flag,
        "float[]" => Kind::Reals,
        "ScalarType" => Kind::Dtype,
        "MemoryFormat" => Kind::Memory,
        "str" => Kind::Text,
        "int[]" => Kind::Wholes(None),
        _ => {
            let length = word.strip_prefix("int[")?.strip_suffix(']')?;
            Kind::Wholes(Some(length.parse().ok()?))
        }
    })
}

fn value(kind: Kind, text: &str) -> Option<Argument> {
    if text == "None" {
        return Some(Argument::Nothing);
    }
    Some(match kind {
        Kind::Flag => Argument::Flag(text == "True"),
        Kind::Whole => Argument::Whole(Whole::Number(text.parse().ok()?)),
        Kind::Real => Argument::Real(text.parse().ok()?),
        Kind::Number => match text.parse() {
            Ok(whole) => Argument::Whole(Whole::Number(whole)),
            Err(_) => Argument::Real(text.parse().ok()?),
        },
        Kind::Text => Argument::Text(text.trim_matches('"').to_owned()),
        Kind::Memory => Argument::Memory(Memory::Contiguous),
        Kind::Wholes(_) if text == "[]" => Argument::Wholes(Vec::new()),
        Kind::Wholes(length) => {
            Argument::Wholes(vec![Whole::Number(text.parse().ok()?); length.unwrap_or(1)])
        }
        Kind::Tensor | Kind::Tensors { .. } | Kind::Reals | Kind::Dtype => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_read_as_it_is_meant() {
        let add = parse(
            "aten",
            "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        );
        let add = add.unwrap();
        assert_eq!((add.name.as_str(), add.returns), ("aten.add_.Tensor", Returns::Tensor));
        let [of, other, alpha] = add.parameters.as_slice() else { panic!("{add:?}") };
        assert!(of.changed && of.shared && !other.changed && !other.shared && alpha.by_name);
        assert_eq!(alpha.default, Some(Argument::Whole(Whole::Number(1))));

        let pool = "max(Tensor self, int[2] size, int[2]? by=1) -> (Tensor, Tensor)";
        let pool = parse("aten", pool).unwrap();
        assert_eq!((pool.name.as_str(), pool.returns), ("aten.max.default", Returns::Tensors(2)));
        assert_eq!(pool.parameters[1].kind, Kind::Wholes(Some(2)));
        let ones = Argument::Wholes(vec![Whole::Number(1); 2]);
        assert_eq!(pool.parameters[2].default, Some(ones));
        assert!(pool.parameters[2].optional);
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        for text in ["", "add", "add(Tensor self)", "add(Device d) -> Tensor", "add(int n) -> str"]
        {
            assert_eq!(parse("aten", text), None, "{text}");
        }
    }
}
