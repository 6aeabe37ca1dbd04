//! The small languages of a plan: texts with names in braces, values out of data, and conditions.

use std::collections::HashMap;

use serde_json::Value;

use super::shape::Shape;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Number(f64),
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The names that are known at some place.
pub(crate) type Scope = HashMap<String, Scalar>;

/// A text with `{names}`; `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Plain(String),
    Name(String),
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let name = rest.split_once('}').filter(|_| brace == "{");
            let Some((name, after)) = name else { return Err(format!("a {brace} stands alone in {text:?}")) };
            if !plain.is_empty() {
                pieces.push(Piece::Plain(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Name(name.trim().to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        Ok(Self(pieces))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Name(name) => Some(name.as_str()),
            Piece::Plain(_) => None,
        })
    }

    /// The text with what its names stand for. A checked plan has no other ones.
    pub(crate) fn fill(&self, scope: &Scope) -> String {
        let fill = |piece: &Piece| match piece {
            Piece::Plain(text) => text.clone(),
            Piece::Name(name) => scope.get(name).map(Scalar::to_string).unwrap_or_default(),
        };
        self.0.iter().map(fill).collect()
    }
}

/// A value out of the data of an artifact: `ARTIFACT.MEMBER`, `count ARTIFACT.MEMBER`, or
/// `count ARTIFACT.MEMBER where MEMBER = WORD`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub artifact: String,
    path: Vec<String>,
    counts: bool,
    only: Option<(String, String)>,
}

impl Reading {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (counts, place, only) = match words.as_slice() {
            [place] => (false, *place, None),
            ["count", place] => (true, *place, None),
            ["count", place, "where", member, "=", word] => (true, *place, Some(((*member).into(), (*word).into()))),
            _ => {
                return Err(format!(
                    "{text:?} is neither ARTIFACT.MEMBER nor count ARTIFACT.MEMBER where MEMBER = WORD"
                ));
            }
        };
        let mut place = place.split('.').map(str::to_owned);
        let artifact = place.next().unwrap_or_default();
        Ok(Self { artifact, path: place.collect(), counts, only })
    }

    fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Checks it against the shape of the artifact.
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), String> {
        let place = format!("{}.{}", self.artifact, self.path.join("."));
        let found = shape.at(&self.path()).ok_or_else(|| format!("the shape of the skill has no {place}"))?;
        match (self.counts, found) {
            (true, Shape::List(item)) => match &self.only {
                Some((member, word)) => match item.at(&[member]) {
                    Some(Shape::OneOf(words)) if !words.contains(word) => {
                        Err(format!("{member} is never {word}, but one of {}", words.join(", ")))
                    }
                    Some(Shape::OneOf(_) | Shape::Text) => Ok(()),
                    Some(_) => Err(format!("{member} of {place} is no text")),
                    None => Err(format!("the items of {place} have no {member}")),
                },
                None => Ok(()),
            },
            (true, _) => Err(format!("{place} is no list that could be counted")),
            (false, Shape::List(_) | Shape::Object(_)) => Err(format!("{place} is no single value")),
            (false, _) => Ok(()),
        }
    }

    /// The value in data of the right shape.
    pub(crate) fn of(&self, data: &Value) -> Scalar {
        let found = self.path.iter().fold(data, |data, name| &data[name.as_str()]);
        match found {
            Value::Array(items) => {
                let wanted =
                    |item: &&Value| self.only.as_ref().is_none_or(|(member, word)| item[member] == word.as_str());
                Scalar::Number(items.iter().filter(wanted).count() as f64)
            }
            Value::Number(number) => Scalar::Number(number.as_f64().unwrap_or_default()),
            Value::String(text) => Scalar::Text(text.clone()),
            other => Scalar::Text(other.to_string()),
        }
    }
}

/// `NAME = VALUE`, or with `!=`, `<`, `>`, `<=`, `>=`; the last four are for numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub name: String,
    comparison: Comparison,
    value: Scalar,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Is,
    IsNot,
    Less,
    More,
    AtMost,
    AtLeast,
}

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [name, comparison, value] = words.as_slice() else {
            return Err(format!("{text:?} is no condition such as \"failed > 0\""));
        };
        let comparison = match *comparison {
            "=" => Comparison::Is,
            "!=" => Comparison::IsNot,
            "<" => Comparison::Less,
            ">" => Comparison::More,
            "<=" => Comparison::AtMost,
            ">=" => Comparison::AtLeast,
            other => return Err(format!("{other:?} compares nothing; =, !=, <, >, <= and >= do")),
        };
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        let orders = !matches!(comparison, Comparison::Is | Comparison::IsNot);
        if orders && number.is_none() {
            return Err(format!("{value:?} is no number, and only numbers are more or less"));
        }
        let value = number.map_or_else(|| Scalar::Text((*value).to_owned()), Scalar::Number);
        Ok(Self { name: (*name).to_owned(), comparison, value })
    }

    /// Whether it holds. What is no number is neither more nor less than one.
    pub(crate) fn holds(&self, scope: &Scope) -> bool {
        let Some(found) = scope.get(&self.name) else { return false };
        let order = match (found, &self.value) {
            (Scalar::Number(found), Scalar::Number(value)) => found.partial_cmp(value),
            _ => None,
        };
        match self.comparison {
            Comparison::Is => found.to_string() == self.value.to_string(),
            Comparison::IsNot => found.to_string() != self.value.to_string(),
            Comparison::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Comparison::More => order.is_some_and(std::cmp::Ordering::is_gt),
            Comparison::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
            Comparison::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, Scalar, Scope, Template};

    #[test]
    fn conditions_hold_for_numbers_and_words() {
        let scope = Scope::from([("n".into(), Scalar::Number(2.0)), ("w".into(), Scalar::Text("low".into()))]);
        let held = ["n = 2", "n != 3", "n > 1", "n >= 2", "n <= 2", "n < 2.5", "w = low", "w != high", "n != low"];
        for held in held {
            assert!(Condition::parse(held).unwrap().holds(&scope), "{held}");
        }
        for not in ["n = 3", "n != 2", "n > 2", "n < 2", "w = high", "w != low", "w > 0", "w < 9", "n = low", "x = 1"] {
            assert!(!Condition::parse(not).unwrap().holds(&scope), "{not}");
        }
        for wrong in ["n", "n >", "n ~ 2", "n > low", "n > NaN", "n = 1 2"] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_filled_in_and_doubled_braces_are_braces() {
        let scope = Scope::from([("a.b".into(), Scalar::Number(13.0))]);
        assert_eq!(Template::parse("{{x}} {a.b}/{ a.b }!").unwrap().fill(&scope), "{x} 13/13!");
        for wrong in ["{", "a } b", "{a"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
