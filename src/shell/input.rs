//! Whether what was typed so far is a whole statement.

/// Words that are statements without a semicolon, if they stand alone.
const COMMANDS: [&str; 4] = ["quit", "exit", "help", "clear"];

/// Whether the text ends a statement: with `;` outside quotes and comments, and if it opens a statement set, with its
/// `END;`.
pub fn is_complete(text: &str) -> bool {
    let trimmed = text.trim();
    if COMMANDS.iter().any(|command| trimmed.eq_ignore_ascii_case(command)) {
        return true;
    }
    let words = words(text);
    if words.last().map(String::as_str) != Some(";") {
        return false;
    }
    let opened = words.windows(3).filter(|three| three[0] == "STATEMENT" && three[1] == "SET" && three[2] == "BEGIN");
    // The older spelling: BEGIN STATEMENT SET; … END;
    let opened_old =
        words.windows(3).filter(|three| three[0] == "BEGIN" && three[1] == "STATEMENT" && three[2] == "SET");
    let closed = words.windows(2).filter(|two| two[0] == "END" && two[1] == ";");
    closed.count() >= opened.count() + opened_old.count()
}

/// Whether there is nothing but blanks and comments.
pub fn is_blank(text: &str) -> bool {
    words(text).is_empty()
}

/// Upper-case words and semicolons outside quotes and comments; an open quote or comment ends with the word `?`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' | '`' => match rest[1..].find(first) {
                Some(end) => {
                    words.push("QUOTED".to_string());
                    end + 2
                }
                None => return unfinished(words),
            },
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => match rest.find("*/") {
                Some(end) => end + 2,
                None => return unfinished(words),
            },
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                words.push(rest[..end].to_uppercase());
                end
            }
            c => {
                if !c.is_whitespace() {
                    words.push(c.to_string());
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    words
}

fn unfinished(mut words: Vec<String>) -> Vec<String> {
    words.push("?".into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_ends_a_statement_only_outside_quotes_and_comments() {
        assert!(is_complete("SELECT 1;"));
        assert!(is_complete("SELECT 1; -- done"));
        assert!(is_complete("quit"));
        assert!(!is_complete("SELECT 1"));
        assert!(!is_complete("SELECT ';"));
        assert!(!is_complete("SELECT 'it''s ;"));
        assert!(!is_complete("SELECT 1 -- ;"));
        assert!(!is_complete("SELECT 1 /* ;"));
        assert!(is_complete("SELECT `a;b` FROM \"t;\";"));
    }

    #[test]
    fn a_statement_set_ends_with_its_end() {
        assert!(!is_complete("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;"));
        assert!(is_complete("EXECUTE STATEMENT SET\nBEGIN INSERT INTO a SELECT 1;\nEND;"));
        assert!(is_complete("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN b THEN 1 END; END;"));
    }

    #[test]
    fn comments_alone_are_nothing() {
        assert!(is_blank("  -- nothing\n /* at all */ "));
        assert!(!is_blank("x"));
    }
}
