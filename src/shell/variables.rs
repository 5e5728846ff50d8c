//! `${NAME}` in a script, given by `--var NAME=VALUE`.

use ebbflow::{Error, Result, Span};

/// Puts the values in place. `${` that no name and brace follow is left alone, so that regular expressions stay whole.
///
/// # Errors
/// On a name without a value.
pub fn substitute(text: &str, variables: &[(String, String)]) -> Result<String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, found) = rest.split_at(at);
        result.push_str(before);
        let Some(name) = name_at(&found[2..]) else {
            result.push_str("${");
            rest = &found[2..];
            continue;
        };
        match variables.iter().rev().find(|(key, _)| key == name) {
            Some((_, value)) => result.push_str(value),
            None => return Err(unknown(name, text, text.len() - found.len())),
        }
        rest = &found[name.len() + 3..];
    }
    result.push_str(rest);
    Ok(result)
}

/// The name in `NAME}…`.
fn name_at(text: &str) -> Option<&str> {
    let name = &text[..text.find('}')?];
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some(name)
}

fn unknown(name: &str, text: &str, at: usize) -> Error {
    let before = &text[..at];
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
    let span = Span { line, column, end_line: line, end_column: column + name.chars().count() as u64 + 3 };
    Error::setup(format!("the variable '{name}' has no value"))
        .at(Some(span))
        .hint(format!("give it one with --var {name}=…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<String> {
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        substitute(text, &[pair("DIR", "/data"), pair("n", "3")])
    }

    #[test]
    fn values_take_the_place_of_names() {
        assert_eq!(check("'path' = '${DIR}/x', ${n}${n}").unwrap(), "'path' = '/data/x', 33");
        assert_eq!(check("no variable").unwrap(), "no variable");
        assert_eq!(check("'${1}' '${' '${a b}' '$DIR'").unwrap(), "'${1}' '${' '${a b}' '$DIR'");
    }

    #[test]
    fn an_unknown_name_is_an_error_that_says_where() {
        let error = check("SELECT 1;\nSELECT ${nope}").unwrap_err();
        assert_eq!(error.message(), "the variable 'nope' has no value");
        assert_eq!(error.span().map(|span| (span.line, span.column, span.end_column)), Some((2, 8, 15)));
    }
}
