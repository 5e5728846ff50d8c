//! SQL/JSON paths: `lax $.a[0].b`, `strict $['a'][*]`, `$..b`.

use serde_json::Value;

use crate::error::{Error, Result};

/// A compiled path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    /// Whether a missing part is an error.
    pub strict: bool,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Member(String),
    Element(i64),
    AnyMember,
    AnyElement,
    Descendants(String),
}

/// What a path leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// One place.
    One(&'a Value),
    /// The places of a path with `*` or `..`, possibly none.
    Many(Vec<&'a Value>),
    /// Nothing.
    Nothing,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// Kind `Sql` if the text is no path.
    pub fn compile(text: &str) -> Result<Path> {
        let wrong = || {
            Error::sql(format!("'{text}' is no JSON path"))
                .hint("paths look like '$.name[0]', after 'lax' or 'strict' if wanted")
        };
        let trimmed = text.trim();
        let (strict, rest) = match trimmed.split_once(char::is_whitespace) {
            Some((mode, rest)) if mode.eq_ignore_ascii_case("strict") => (true, rest.trim_start()),
            Some((mode, rest)) if mode.eq_ignore_ascii_case("lax") => (false, rest.trim_start()),
            _ => (false, trimmed),
        };
        let mut rest = rest.strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, behind) = step(rest).ok_or_else(wrong)?;
            steps.push(step);
            rest = behind;
        }
        Ok(Path { strict, steps })
    }

    /// Follows the path.
    pub fn find<'a>(&self, root: &'a Value) -> Found<'a> {
        let mut places = vec![root];
        let mut many = false;
        for step in &self.steps {
            let one = matches!(step, Step::Member(_) | Step::Element(_));
            if !one && !many && places.is_empty() {
                // The way to where the choice begins is not there.
                return Found::Nothing;
            }
            many |= !one;
            let mut next = Vec::with_capacity(places.len());
            for place in places {
                follow(place, step, &mut next);
            }
            places = next;
        }
        match (many, places.as_slice()) {
            (true, _) => Found::Many(places),
            (false, [one]) => Found::One(one),
            (false, _) => Found::Nothing,
        }
    }
}

fn step(text: &str) -> Option<(Step, &str)> {
    if let Some(rest) = text.strip_prefix("..") {
        let (name, rest) = name(rest)?;
        return Some((Step::Descendants(name), rest));
    }
    if let Some(rest) = text.strip_prefix('.') {
        if let Some(rest) = rest.strip_prefix('*') {
            return Some((Step::AnyMember, rest));
        }
        let (name, rest) = name(rest)?;
        return Some((Step::Member(name), rest));
    }
    let inside = text.strip_prefix('[')?.trim_start();
    if let Some(rest) = inside.strip_prefix('*') {
        return Some((Step::AnyElement, rest.trim_start().strip_prefix(']')?));
    }
    if let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let (name, rest) = inside[1..].split_once(quote)?;
        return Some((Step::Member(name.to_string()), rest.trim_start().strip_prefix(']')?));
    }
    let (index, rest) = inside.split_once(']')?;
    Some((Step::Element(index.trim().parse().ok()?), rest))
}

fn name(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, rest) = quoted.split_once('"')?;
        return Some((name.to_string(), rest));
    }
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let name = text[..end].trim_end();
    (!name.is_empty()).then(|| (name.to_string(), &text[end..]))
}

fn follow<'a>(place: &'a Value, step: &Step, to: &mut Vec<&'a Value>) {
    match (step, place) {
        (Step::Member(name), Value::Object(members)) => to.extend(members.get(name)),
        (Step::Element(index), Value::Array(elements)) => {
            let at = if *index < 0 { elements.len() as i64 + index } else { *index };
            to.extend(usize::try_from(at).ok().and_then(|at| elements.get(at)));
        }
        (Step::AnyMember, Value::Object(members)) => to.extend(members.values()),
        (Step::AnyMember | Step::AnyElement, Value::Array(elements)) => to.extend(elements),
        (Step::AnyElement, Value::Object(members)) => to.extend(members.values()),
        (Step::Descendants(name), Value::Object(members)) => {
            to.extend(members.get(name));
            members.values().for_each(|member| follow(member, step, to));
        }
        (Step::Descendants(_), Value::Array(elements)) => elements.iter().for_each(|element| follow(element, step, to)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_one_place_or_many() {
        let root = serde_json::json!({"a": [{"b": 1}, {"b": 2}], "c d": {"b": 3}});
        let find = |path: &str| match Path::compile(path).unwrap().find(&root) {
            Found::One(value) => value.to_string(),
            Found::Many(values) => format!("{values:?}").len().to_string(),
            Found::Nothing => "nothing".into(),
        };
        assert_eq!(find("$.a[1].b"), "2");
        assert_eq!(find("lax $['c d'].b"), "3");
        assert_eq!(find("$.a[5]"), "nothing");
        assert!(matches!(Path::compile("$..b").unwrap().find(&root), Found::Many(found) if found.len() == 3));
        assert!(matches!(Path::compile("$.a[*].b").unwrap().find(&root), Found::Many(found) if found.len() == 2));
        assert_eq!(find("$.x[*].b"), "nothing");
        assert!(Path::compile("strict $.a").unwrap().strict);
        assert!(Path::compile("a.b").is_err());
        assert!(Path::compile("$.").is_err());
    }
}
