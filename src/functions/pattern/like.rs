//! LIKE and SIMILAR TO. Without ESCAPE no character escapes another.

use arrow::array::ArrayRef;

use super::java::Compiled;
use crate::error::{Error, Result};
use crate::functions::column::booleans;
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Text};
use crate::types::SqlType;

/// The entries of this file: `like(text, pattern[, escape])` and `similar(text, pattern[, escape])`.
pub(super) fn entries() -> Vec<Entry> {
    const FORMS: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Text]];
    vec![
        Entry::new(&["like"], FORMS, Typing::Fixed(SqlType::Boolean), like),
        Entry::new(&["similar"], FORMS, Typing::Fixed(SqlType::Boolean), similar),
    ]
}

/// One element of a LIKE pattern.
#[derive(Debug, Clone, PartialEq)]
enum Element {
    Character(char),
    /// `_`: one character, but no line feed.
    One,
    /// `%`: any characters.
    Any,
}

/// A compiled LIKE pattern; the common shapes need no search character by character.
#[derive(Debug, PartialEq)]
enum Like {
    Equal(String),
    Starts(String),
    Ends(String),
    Contains(String),
    General(Vec<Element>),
}

fn elements(pattern: &str, escape: Option<char>, escaped: impl Fn(char) -> bool) -> Result<Vec<Element>> {
    let mut result = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        result.push(if Some(character) == escape {
            match characters.next() {
                Some(next) if escaped(next) || Some(next) == escape => Element::Character(next),
                _ => {
                    return Err(Error::sql(format!(
                        "the pattern '{pattern}' has a '{character}' that escapes nothing"
                    ))
                    .hint("it may stand before %, _ or itself"));
                }
            }
        } else {
            match character {
                '%' => Element::Any,
                '_' => Element::One,
                other => Element::Character(other),
            }
        });
    }
    Ok(result)
}

impl Like {
    fn compile(pattern: &str, escape: Option<char>) -> Result<Like> {
        let elements = elements(pattern, escape, |c| matches!(c, '%' | '_'))?;
        let plain = |part: &[Element]| -> Option<String> {
            part.iter().map(|e| if let Element::Character(c) = e { Some(*c) } else { None }).collect()
        };
        let (starts, ends) = (elements.first() == Some(&Element::Any), elements.last() == Some(&Element::Any));
        let inner = &elements[usize::from(starts)..elements.len() - usize::from(ends && elements.len() > 1)];
        Ok(match (plain(inner), starts, ends) {
            (Some(text), false, false) => Like::Equal(text),
            (Some(text), false, true) => Like::Starts(text),
            (Some(text), true, false) => Like::Ends(text),
            (Some(text), true, true) => Like::Contains(text),
            (None, ..) => Like::General(elements),
        })
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Like::Equal(whole) => text == whole,
            Like::Starts(part) => text.starts_with(part.as_str()),
            Like::Ends(part) => text.ends_with(part.as_str()),
            Like::Contains(part) => text.contains(part.as_str()),
            Like::General(elements) => general(elements, text),
        }
    }
}

/// Goes along both; on a mismatch the last `%` takes one character more.
fn general(elements: &[Element], text: &str) -> bool {
    let (mut element, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let character = text[at..].chars().next();
        let fits = match (elements.get(element), character) {
            (Some(Element::Any), _) => {
                element += 1;
                retry = Some((element, at));
                continue;
            }
            (Some(Element::One), Some(c)) => c != '\n',
            (Some(Element::Character(wanted)), Some(c)) => *wanted == c,
            (None, None) => return true,
            _ => false,
        };
        if let (true, Some(character)) = (fits, character) {
            element += 1;
            at += character.len_utf8();
            continue;
        }
        let Some((after, from)) = retry else { return false };
        let Some(skipped) = text[from..].chars().next() else { return false };
        at = from + skipped.len_utf8();
        element = after;
        retry = Some((after, at));
    }
}

fn escape_character(text: &str) -> Result<char> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(escape), None) => Ok(escape),
        _ => Err(Error::sql(format!("ESCAPE takes one character, not '{text}'"))),
    }
}

/// Calls `test` for rows without NULLs, with text, pattern and escape character.
fn tested(call: &Call<'_>, mut test: impl FnMut(&str, &str, Option<char>) -> Result<bool>) -> Result<ArrayRef> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let escape = call.has(2).then(|| call.text(2)).transpose()?;
    let mut failure = None;
    let result = booleans(call, |row| {
        let (text, pattern) = (text.get(row)?, pattern.get(row)?);
        let escape = match &escape {
            Some(escape) => Some(escape.get(row)?),
            None => None,
        };
        let tested = escape.map(escape_character).transpose().and_then(|escape| test(text, pattern, escape));
        tested.map_err(|error| failure.get_or_insert(error).clone()).ok()
    })?;
    failure.map_or(Ok(result), Err)
}

fn like(call: &Call<'_>) -> Result<ArrayRef> {
    let mut last: Option<(String, Option<char>, Like)> = None;
    tested(call, |text, pattern, escape| {
        let known = last.as_ref().is_some_and(|(known, by, _)| known == pattern && *by == escape);
        if !known {
            last = Some((pattern.to_string(), escape, Like::compile(pattern, escape)?));
        }
        Ok(last.as_ref().is_some_and(|(.., like)| like.matches(text)))
    })
}

/// As in Flink, SQL's own `%` and `_` aside, the pattern is a regular expression (a dot matches any character).
fn similar_expression(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut result = String::from("^(?s:");
    for element in elements(pattern, escape, |_| true)?.into_iter().zip(marks(pattern, escape)) {
        match element {
            (Element::Any, _) => result.push_str(".*"),
            (Element::One, _) => result.push('.'),
            (Element::Character(c), true) => result.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            (Element::Character(c), false) => result.push(c),
        }
    }
    result.push_str(")$");
    Ok(result)
}

/// For each element whether it was escaped.
fn marks(pattern: &str, escape: Option<char>) -> Vec<bool> {
    let mut marks = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let escaped = Some(character) == escape;
        if escaped {
            characters.next();
        }
        marks.push(escaped);
    }
    marks
}

fn similar(call: &Call<'_>) -> Result<ArrayRef> {
    let mut last: Option<(String, Option<char>, String)> = None;
    let mut compiled = Compiled::default();
    tested(call, |text, pattern, escape| {
        if last.as_ref().is_none_or(|(known, by, _)| known != pattern || *by != escape) {
            last = Some((pattern.to_string(), escape, similar_expression(pattern, escape)?));
        }
        let expression = last.as_ref().map_or("", |(.., expression)| expression.as_str());
        match compiled.get(expression)? {
            Some(regex) => Ok(regex.is_match(text)),
            None => Err(Error::sql(format!("'{pattern}' is no pattern for SIMILAR TO"))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        let fast = Like::compile(pattern, None).unwrap().matches(text);
        assert_eq!(fast, general(&elements(pattern, None, |_| true).unwrap(), text), "{text} LIKE {pattern}");
        fast
    }

    #[test]
    fn every_shape_of_like_agrees_with_the_general_one() {
        for (text, pattern) in [
            ("abc", "abc"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "%b%"),
            ("abc", "a_c"),
            ("abc", "%%%"),
            ("", ""),
            ("", "%"),
            ("日本", "__"),
            ("aXbXc", "a%X_"),
        ] {
            assert!(like(text, pattern), "{text} LIKE {pattern}");
        }
        for (text, pattern) in
            [("abc", "_"), ("ABC", "abc"), ("", "_"), ("a\nb", "a_b"), ("abc", ""), ("aab", "a%a"), ("ab", "%b_")]
        {
            assert!(!like(text, pattern), "{text} LIKE {pattern}");
        }
        assert!(Like::compile("100!%", Some('!')).unwrap().matches("100%"));
        assert!(Like::compile("a!", Some('!')).is_err());
    }
}
