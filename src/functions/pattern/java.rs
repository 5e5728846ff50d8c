//! Java's regular expressions on the `regex` crate: the classes `\d \w \s` know ASCII only, an empty match may follow a
//! match, and what the crate lacks (look-around, back-references, possessive repetition) is refused by name.

use regex::{Captures, Regex};

use crate::error::{Error, Result};

/// The compiled form of the pattern last asked for; neighbouring rows mostly share theirs.
#[derive(Default)]
pub(super) struct Compiled {
    last: Option<(String, Option<Regex>)>,
}

impl Compiled {
    /// The expression; nothing if the text is none.
    ///
    /// # Errors
    /// Kind `Sql` if it is one that Java knows and this engine does not.
    pub fn get(&mut self, pattern: &str) -> Result<Option<&Regex>> {
        if self.last.as_ref().is_none_or(|(known, _)| known != pattern) {
            let regex = Regex::new(&translate(pattern)?).ok();
            self.last = Some((pattern.to_string(), regex));
        }
        Ok(self.last.as_ref().and_then(|(_, regex)| regex.as_ref()))
    }
}

/// Writes a Java expression as one of the `regex` crate.
fn translate(pattern: &str) -> Result<String> {
    let refuse = |what: &str| {
        Error::sql(format!("the regular expression '{pattern}' uses {what}, which is not supported"))
            .hint("groups, classes, alternatives and lazy or greedy repetition are")
    };
    let mut result = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut class_depth = 0_usize;
    let mut repeated = false;
    while let Some(character) = rest.chars().next() {
        let behind = &rest[character.len_utf8()..];
        if class_depth == 0
            && character == '('
            && ["?=", "?!", "?<=", "?<!", "?>"].iter().any(|p| behind.starts_with(p))
        {
            return Err(refuse("look-around or an atomic group"));
        }
        let quantifier = class_depth == 0 && matches!(character, '*' | '+' | '?' | '}');
        if quantifier && repeated && character == '+' {
            return Err(refuse("possessive repetition"));
        }
        repeated = quantifier && !(repeated && character == '?');
        match character {
            '\\' => {
                rest = escape(behind, &mut result).ok_or_else(|| refuse("a back-reference"))?;
                continue;
            }
            '[' => class_depth += 1,
            ']' => class_depth = class_depth.saturating_sub(1),
            _ => {}
        }
        result.push(character);
        rest = behind;
    }
    Ok(result)
}

/// Writes what follows a backslash; gives the rest, or nothing for a back-reference.
fn escape<'a>(text: &'a str, to: &mut String) -> Option<&'a str> {
    if let Some(quoted) = text.strip_prefix('Q') {
        let (literal, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
        to.push_str(&regex::escape(literal));
        return Some(rest);
    }
    let Some(letter) = text.chars().next() else {
        to.push('\\');
        return Some("");
    };
    match letter {
        'd' => to.push_str("[0-9]"),
        'D' => to.push_str("[^0-9]"),
        'w' => to.push_str("[a-zA-Z0-9_]"),
        'W' => to.push_str("[^a-zA-Z0-9_]"),
        's' => to.push_str(r"[ \t\n\x0B\f\r]"),
        'S' => to.push_str(r"[^ \t\n\x0B\f\r]"),
        'Z' => to.push_str(r"(?:\n?\z)"),
        'k' | '1'..='9' => return None,
        'e' => to.push_str(r"\x1B"),
        letter if letter.is_ascii_alphanumeric() => {
            to.push('\\');
            to.push(letter);
        }
        // Java lets any other character be escaped.
        other => to.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
    }
    Some(&text[letter.len_utf8()..])
}

/// Calls `each` with the matches in a text, as Java's `Matcher.find` gives them: an empty match may stand directly
/// behind another match.
pub(super) fn matches<'t>(regex: &Regex, text: &'t str, mut each: impl FnMut(Captures<'t>)) {
    let mut from = 0;
    while from <= text.len() {
        let Some(captures) = regex.captures_at(text, from) else { return };
        let Some(whole) = captures.get(0) else { return };
        from = if whole.is_empty() {
            whole.end() + text[whole.end()..].chars().next().map_or(1, char::len_utf8)
        } else {
            whole.end()
        };
        each(captures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_expressions_are_translated_or_refused() {
        assert_eq!(translate(r"(\d+)-[\w.]+\.").unwrap(), r"([0-9]+)-[[a-zA-Z0-9_].]+\.");
        assert_eq!(translate(r"\Qa.b\E+?").unwrap(), r"a\.b+?");
        assert!(translate("a(?=b)").is_err());
        assert!(translate(r"(a)\1").is_err());
        assert!(translate("a*+").is_err());
        let mut compiled = Compiled::default();
        assert!(compiled.get("(").unwrap().is_none());
    }

    #[test]
    fn an_empty_match_may_follow_a_match() {
        let mut found = Vec::new();
        matches(&Regex::new("a*").unwrap(), "aaa", |c| found.push(c.get(0).unwrap().range()));
        assert_eq!(found, [0..3, 3..3]);
    }
}
