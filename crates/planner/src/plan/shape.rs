//! The shape of an agent's data, and whether data has it.

use serde_json::Value;

/// What data must look like. In a plan: `"whole"`, `"number"`, `"text"`, `"flag"`, a list of words of which it must be
/// one, `[SHAPE]` for a list, or a table for an object, which may have more members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A whole number that is not negative, also one that was carried as a double, as whatever goes through protobuf's
    /// `Struct` is: `13.0`.
    Whole,
    Number,
    Text,
    Flag,
    OneOf(Vec<String>),
    List(Box<Shape>),
    Object(Vec<(String, Shape)>),
}

impl Shape {
    /// Reads a shape out of a plan. The error says what is none.
    pub(crate) fn of(value: &toml::Value) -> Result<Self, String> {
        let words = |items: &[toml::Value]| items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        match value {
            toml::Value::String(word) => match word.as_str() {
                "whole" => Ok(Self::Whole),
                "number" => Ok(Self::Number),
                "text" => Ok(Self::Text),
                "flag" => Ok(Self::Flag),
                other => Err(format!("{other:?} is no shape; whole, number, text and flag are")),
            },
            toml::Value::Array(items) => match (items.as_slice(), words(items)) {
                ([_, _, ..], Some(words)) => Ok(Self::OneOf(words)),
                ([item], _) => Ok(Self::List(Box::new(Self::of(item)?))),
                _ => Err("a list is one shape, or two words and more".to_owned()),
            },
            toml::Value::Table(members) => {
                let members = members.iter().map(|(name, shape)| Ok((name.clone(), Self::of(shape)?)));
                Ok(Self::Object(members.collect::<Result<_, String>>()?))
            }
            other => Err(format!("{other} is no shape")),
        }
    }

    /// What is expected, in words.
    fn words(&self) -> String {
        match self {
            Self::Whole => "a whole number".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }

    /// Checks data. The error names the first place that is missing or wrong.
    pub(crate) fn check(&self, data: &Value, place: &str) -> Result<(), String> {
        let fits = match (self, data) {
            (Self::Whole, Value::Number(_)) => {
                data.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
            }
            (Self::Number, Value::Number(_)) | (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => true,
            (Self::OneOf(words), Value::String(word)) => words.contains(word),
            (Self::List(item), Value::Array(items)) => {
                let mut items = items.iter().enumerate();
                return items.try_for_each(|(at, data)| item.check(data, &format!("{place}[{at}]")));
            }
            (Self::Object(members), Value::Object(data)) => {
                return members.iter().try_for_each(|(name, shape)| {
                    let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                    let data = data.get(name).ok_or_else(|| format!("{place} is missing"))?;
                    shape.check(data, &place)
                });
            }
            _ => false,
        };
        let place = if place.is_empty() { "it" } else { place };
        let start: String = data.to_string().chars().take(40).collect();
        if fits { Ok(()) } else { Err(format!("{place} is {start}, and {} is expected", self.words())) }
    }

    /// The shape of a member, through objects.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        match (path, self) {
            ([], shape) => Some(shape),
            ([name, rest @ ..], Self::Object(members)) => {
                members.iter().find(|(known, _)| known == name).and_then(|(_, shape)| shape.at(rest))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Shape;

    #[test]
    fn what_is_missing_or_wrong_is_named_with_its_place() {
        let shape = "a = { passed = 'whole', findings = [{ severity = ['low', 'high'] }], by = 'text', ok = 'flag' }";
        let shape: toml::Table = shape.parse().unwrap();
        let shape = Shape::of(&shape["a"]).unwrap();
        let right =
            json!({"passed": 13.0, "findings": [{"severity": "low", "more": 1}], "by": "x", "ok": true, "z": []});
        assert_eq!(shape.check(&right, ""), Ok(()));
        for (member, wrong, why) in [
            ("passed", json!(1.5), "passed is 1.5, and a whole number is expected"),
            ("passed", json!(-1), "passed is -1, and a whole number is expected"),
            ("passed", json!("13"), "passed is \"13\", and a whole number is expected"),
            ("findings", json!({}), "findings is {}, and a list is expected"),
            ("findings", json!([{"severity": "low"}, {}]), "findings[1].severity is missing"),
            (
                "findings",
                json!([{"severity": "dire"}]),
                "findings[0].severity is \"dire\", and one of low, high is expected",
            ),
            ("by", json!(null), "by is null, and text is expected"),
            ("ok", json!(1), "ok is 1, and true or false is expected"),
        ] {
            let mut data = right.clone();
            data[member] = wrong;
            assert_eq!(shape.check(&data, ""), Err(why.to_owned()));
        }
        assert_eq!(shape.check(&json!([]), ""), Err("it is [], and an object is expected".to_owned()));
    }
}
