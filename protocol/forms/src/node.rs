//! A value with its path: typed getters, each with the message for any other value.

use crate::{
    Table,
    problems::Problems,
    words::{list, nearest},
};
use std::{fmt::Display, str::FromStr};
use toml::de::DeValue;

/// A value with its path.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    problems: &'a Problems<'a>,
    value: &'a DeValue<'a>,
    path: String,
    offset: usize,
}

impl<'a> Node<'a> {
    pub(crate) const fn new(
        problems: &'a Problems<'a>,
        value: &'a DeValue<'a>,
        path: String,
        offset: usize,
    ) -> Self {
        Self { problems, value, path, offset }
    }

    /// The path, e.g. `training.optimizer.lr`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reports a problem of this value; always `None`.
    pub fn refuse<T>(&self, message: impl AsRef<str>) -> Option<T> {
        self.problems.add(self.offset, &self.path, message.as_ref());
        None
    }

    /// Reports that the value is of another type than the wanted one; always `None`.
    pub fn wrong_type<T>(&self, wanted: &str) -> Option<T> {
        self.refuse(format!("is {}; {wanted} is wanted", self.describe()))
    }

    /// The value that is there, for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.value {
            DeValue::String(text) => {
                let short: String = text.chars().take(40).collect();
                format!("a string (`\"{short}\"`)")
            }
            DeValue::Integer(number) => format!("a whole number (`{number}`)"),
            DeValue::Float(number) => format!("a number (`{number}`)"),
            DeValue::Boolean(value) => format!("a boolean (`{value}`)"),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    /// Whether the value is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    /// Whether the value is a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// Whether the value is a text.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.value.is_str()
    }

    /// Whether the value is a boolean.
    #[must_use]
    pub fn is_boolean(&self) -> bool {
        self.value.is_bool()
    }

    /// Whether the value is a whole number.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.value.is_integer()
    }

    /// The text, where it is one; reports nothing.
    #[must_use]
    pub fn as_string(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// A text.
    #[must_use]
    pub fn string(&self, wanted: &str) -> Option<&'a str> {
        self.value.as_str().or_else(|| self.wrong_type(wanted))
    }

    /// A text that stands for something else: a length of time, an amount of money.
    #[must_use]
    pub fn parsed<T: FromStr<Err: Display>>(&self, wanted: &str) -> Option<T> {
        let text = self.string(wanted)?;
        text.parse().map_or_else(|error| self.refuse(format!("is {text}; {error}")), Some)
    }

    /// `true` or `false`.
    #[must_use]
    pub fn boolean(&self) -> Option<bool> {
        self.value.as_bool().or_else(|| self.wrong_type("`true` or `false`"))
    }

    /// The whole number, where it is one of this type; reports nothing.
    #[must_use]
    pub fn as_integer<T: TryFrom<i128>>(&self) -> Option<T> {
        let DeValue::Integer(number) = self.value else { return None };
        // Underscores were taken out by the parser; the numbers that fail here have too many digits.
        i128::from_str_radix(number.as_str(), number.radix()).ok()?.try_into().ok()
    }

    /// A whole number in `low..=high`.
    #[must_use]
    pub fn integer<T: TryFrom<i128> + TryInto<i128> + Copy>(&self, low: T, high: T) -> Option<T> {
        let (low, high) = low.try_into().ok().zip(high.try_into().ok())?;
        let wanted = match (low, high) {
            (low, high) if high >= i128::from(u32::MAX) => {
                format!("a whole number, at least {low},")
            }
            (low, high) => format!("a whole number from {low} to {high}"),
        };
        let DeValue::Integer(number) = self.value else {
            return self.wrong_type(&wanted);
        };
        match self.as_integer() {
            Some(value) if (low..=high).contains(&value) => T::try_from(value).ok(),
            Some(value) if value > high => {
                self.refuse(format!("is {number}; at most {high} is possible"))
            }
            _ => self.refuse(format!("is {number}; {wanted} is wanted")),
        }
    }

    /// A finite number, whole or not.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return self.wrong_type("a number"),
        };
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Some(value),
            _ => self.refuse(format!("is {text}; a finite number is wanted")),
        }
    }

    /// The elements of a list.
    #[must_use]
    pub fn list(&self, wanted: &str) -> Option<Vec<Node<'a>>> {
        let Some(array) = self.value.as_array() else {
            return self.wrong_type(wanted);
        };
        let nodes = array.iter().enumerate().map(|(index, element)| {
            let path = format!("{}[{index}]", self.path);
            Node::new(self.problems, element.get_ref(), path, element.span().start)
        });
        Some(nodes.collect())
    }

    /// The table, where it is one; reports nothing.
    #[must_use]
    pub fn peek(&self) -> Option<Table<'a>> {
        let table = self.value.as_table()?;
        Some(Table::new(Some(table), self.problems, self.path.clone(), self.offset))
    }

    /// The table, whose keys aren't looked at.
    #[must_use]
    pub fn table(&self) -> Option<Table<'a>> {
        self.peek().or_else(|| self.wrong_type("a table"))
    }

    /// One of some words, and the value that each stands for.
    #[must_use]
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let text = self.string(&format!("one of {}", list(&names)))?;
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let near =
            if self.problems.is_full() { None } else { nearest(text, names.iter().copied()) };
        let hint = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        self.refuse(format!("is `\"{text}\"`; {hint}one of {} is wanted", list(&names)))
    }
}
