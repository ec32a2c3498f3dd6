//! From a constraint's text to its expression, by recursive descent.
//!
//! ```text
//!   any        = all {"or" all}
//!   all        = not {"and" not}
//!   not        = "not" not | comparison
//!   comparison = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
//!   sum        = product {("+" | "-") product}
//!   product    = value {("*" | "/" | "%") value}
//!   value      = "-" value | "(" any ")" | number | "text" | 'text' | "true" | "false" | name
//! ```

use super::{
    MAX_CONSTRAINT_CHARS,
    expression::{Expression, Sign},
};
use std::iter::Peekable;

/// Parentheses and signs in each other.
const MAX_DEPTH: u32 = 32;
/// Characters of what is shown of a text.
const SHOWN: usize = 20;

/// Why a text is no constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ConstraintError {
    #[error("has {is} characters; at most {MAX_CONSTRAINT_CHARS} are taken")]
    TooLong { is: usize },
    #[error("has over {MAX_DEPTH} parentheses, `-` and `not` in each other")]
    TooDeep,
    /// `at`: characters before what was found, and one.
    #[error("has {found} at character {at}; {wanted}")]
    Unexpected { found: String, at: usize, wanted: &'static str },
}

/// Reads a constraint.
pub(super) fn expression(text: &str) -> Result<Expression<String>, ConstraintError> {
    let is = text.chars().count();
    if is > MAX_CONSTRAINT_CHARS {
        return Err(ConstraintError::TooLong { is });
    }
    let mut parser = Parser { tokens: tokens(text)?.into_iter().peekable(), depth: 0 };
    let expression = parser.any()?;
    match parser.next() {
        Token { kind: Lexeme::End, .. } => Ok(expression),
        token => Err(token.refuse("a sign such as `<`, `+` or `and` is wanted")),
    }
}

struct Token {
    kind: Lexeme,
    /// The place of the token's first character, counted from 1.
    at: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Lexeme {
    Number(f64),
    Text(String),
    Word(String),
    Sign(Sign),
    Open,
    Close,
    End,
}

impl Token {
    fn refuse(&self, wanted: &'static str) -> ConstraintError {
        let found = match &self.kind {
            Lexeme::Number(number) => format!("the number {number}"),
            Lexeme::Text(text) => format!("the text \"{}\"", shown(text)),
            Lexeme::Word(word) => format!("`{}`", shown(word)),
            Lexeme::Sign(sign) => {
                let word = Sign::ALL.iter().find(|(_, other)| other == sign);
                format!("`{}`", word.map_or("", |(word, _)| word))
            }
            Lexeme::Open => "`(`".to_owned(),
            Lexeme::Close => "`)`".to_owned(),
            Lexeme::End => "its end".to_owned(),
        };
        ConstraintError::Unexpected { found, at: self.at, wanted }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// The tokens of a text, the end among them.
fn tokens(text: &str) -> Result<Vec<Token>, ConstraintError> {
    let mut tokens = Vec::new();
    let (mut rest, mut at) = (text, 1);
    while let Some(letter) = rest.chars().next() {
        let length = if letter.is_ascii_whitespace() {
            1
        } else {
            let (kind, length) = lexeme(rest, letter).map_err(|wanted| {
                let found = match letter.is_control() {
                    true => format!("`{}`", letter.escape_default()),
                    false => format!("`{letter}`"),
                };
                ConstraintError::Unexpected { found, at, wanted }
            })?;
            tokens.push(Token { kind, at });
            length
        };
        let (taken, left) = rest.split_at_checked(length).unwrap_or((rest, ""));
        at += taken.chars().count();
        rest = left;
    }
    tokens.push(Token { kind: Lexeme::End, at });
    Ok(tokens)
}

/// The lexeme that a text begins with, and its bytes; else what is wanted. `letter` is the text's first character.
fn lexeme(text: &str, letter: char) -> Result<(Lexeme, usize), &'static str> {
    match letter {
        '(' => Ok((Lexeme::Open, 1)),
        ')' => Ok((Lexeme::Close, 1)),
        '"' | '\'' => {
            let inner = text.strip_prefix(letter).and_then(|rest| rest.split_once(letter));
            let (inner, _) = inner.ok_or("the same sign ends a text")?;
            Ok((Lexeme::Text(inner.to_owned()), inner.len() + 2))
        }
        '0'..='9' => {
            let number = number_of(text);
            let value = number.parse().ok().filter(|value: &f64| value.is_finite());
            Ok((Lexeme::Number(value.ok_or("a finite number is wanted")?), number.len()))
        }
        _ if letter.is_ascii_alphabetic() || letter == '_' => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
            let word = text.split(|c| !is_part(c)).next().unwrap_or_default();
            let sign = Sign::ALL.iter().find(|(name, _)| *name == word);
            let kind = sign.map_or(Lexeme::Word(word.to_owned()), |(_, sign)| Lexeme::Sign(*sign));
            Ok((kind, word.len()))
        }
        _ => match Sign::ALL.iter().find(|(sign, _)| text.starts_with(sign)) {
            Some((word, sign)) => Ok((Lexeme::Sign(*sign), word.len())),
            None => Err(match letter {
                '=' => "`==` compares",
                '&' => "`and` joins comparisons",
                '|' => "`or` joins comparisons",
                '!' => "`not` is the opposite",
                _ => "there is no such sign",
            }),
        },
    }
}

/// The number that a text begins with: `1`, `0.5`, `1e-4`.
fn number_of(text: &str) -> &str {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let after = |length: usize| text.get(length..).unwrap_or_default();
    let mut length = digits(text);
    if let Some(rest) = after(length).strip_prefix('.') {
        length += 1 + digits(rest);
    }
    if let Some(rest) = after(length).strip_prefix(['e', 'E']) {
        let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        length += 1 + (rest.len() - unsigned.len()) + digits(unsigned);
    }
    text.get(..length).unwrap_or(text)
}

struct Parser {
    tokens: Peekable<std::vec::IntoIter<Token>>,
    depth: u32,
}

type Read = Result<Expression<String>, ConstraintError>;

impl Parser {
    fn next(&mut self) -> Token {
        self.tokens.next().unwrap_or(Token { kind: Lexeme::End, at: 0 })
    }

    fn takes(&mut self, signs: &[Sign]) -> Option<Sign> {
        let is_one =
            |token: &Token| matches!(token.kind, Lexeme::Sign(sign) if signs.contains(&sign));
        match self.tokens.next_if(is_one)?.kind {
            Lexeme::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    /// Operands with any of these signs between them, from left to right.
    fn chain(&mut self, signs: &[Sign], operand: fn(&mut Self) -> Read) -> Read {
        let mut left = operand(self)?;
        while let Some(sign) = self.takes(signs) {
            let right = operand(self)?;
            left = Expression::Pair(Box::new(left), sign, Box::new(right));
        }
        Ok(left)
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Read) -> Read {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ConstraintError::TooDeep);
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn any(&mut self) -> Read {
        self.chain(&[Sign::Or], Self::all)
    }

    fn all(&mut self) -> Read {
        self.chain(&[Sign::And], Self::not)
    }

    fn not(&mut self) -> Read {
        let is_not = |token: &Token| token.kind == Lexeme::Word("not".into());
        if self.tokens.next_if(is_not).is_some() {
            return self.deeper(Self::not).map(|of| Expression::Not(Box::new(of)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Read {
        const SIGNS: &[Sign] =
            &[Sign::Less, Sign::AtMost, Sign::More, Sign::AtLeast, Sign::Same, Sign::Different];
        let left = self.sum()?;
        let Some(sign) = self.takes(SIGNS) else { return Ok(left) };
        let right = self.sum()?;
        match self.tokens.peek() {
            Some(token) if matches!(token.kind, Lexeme::Sign(sign) if SIGNS.contains(&sign)) => {
                Err(token.refuse("one comparison compares two values; `and` joins several"))
            }
            _ => Ok(Expression::Pair(Box::new(left), sign, Box::new(right))),
        }
    }

    fn sum(&mut self) -> Read {
        self.chain(&[Sign::Plus, Sign::Minus], Self::product)
    }

    fn product(&mut self) -> Read {
        self.chain(&[Sign::Times, Sign::Over, Sign::Modulo], Self::value)
    }

    fn value(&mut self) -> Read {
        let token = self.next();
        Ok(match &token.kind {
            Lexeme::Number(number) => Expression::Number(*number),
            Lexeme::Text(text) => Expression::Text(text.clone()),
            Lexeme::Word(word) => match word.as_str() {
                "true" => Expression::Truth(true),
                "false" => Expression::Truth(false),
                "not" => return Err(token.refuse("before `not` a parenthesis is wanted")),
                _ if word.split('.').any(str::is_empty) => {
                    return Err(token.refuse("a key is wanted, e.g. `lr` or `optimizer.lr`"));
                }
                _ => Expression::Key(word.clone()),
            },
            Lexeme::Sign(Sign::Minus) => {
                return self.deeper(Self::value).map(|of| Expression::Negative(Box::new(of)));
            }
            Lexeme::Open => {
                let inner = self.deeper(Self::any)?;
                match self.next() {
                    Token { kind: Lexeme::Close, .. } => inner,
                    token => return Err(token.refuse("`)` or a sign such as `<` is wanted")),
                }
            }
            Lexeme::Sign(_) | Lexeme::Close | Lexeme::End => {
                return Err(token.refuse("a number, a key or `(` is wanted"));
            }
        })
    }
}
