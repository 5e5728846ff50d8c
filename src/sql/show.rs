//! `SHOW …` and `DESCRIBE …`.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::cursor::{Parse, accept, accept_one, at, at_end, object_name, string, word_at};
use super::diagnose::{expected, refuse};
use super::lexer::Piece;
use super::statement::{Pattern, Show, Statement};
use super::statements::unsupported;
use crate::error::nearest;

/// What can be shown, longest first; `true` if a name of an object must follow directly.
const SHOWN: &[(&[&str], bool)] = &[
    (&["CREATE", "TABLE"], true),
    (&["CREATE", "VIEW"], true),
    (&["CREATE", "CATALOG"], true),
    (&["CURRENT", "CATALOG"], false),
    (&["CURRENT", "DATABASE"], false),
    (&["USER", "FUNCTIONS"], false),
    (&["CATALOGS"], false),
    (&["DATABASES"], false),
    (&["TABLES"], false),
    (&["VIEWS"], false),
    (&["FUNCTIONS"], false),
    (&["COLUMNS"], false),
    (&["PARTITIONS"], true),
    (&["JOBS"], false),
    (&["FULL", "MODULES"], false),
    (&["MODULES"], false),
];

/// What Flink can show and we have not.
const NOT_SHOWN: &[&[&str]] = &[
    &["CREATE", "MATERIALIZED", "TABLE"],
    &["CREATE", "MODEL"],
    &["MATERIALIZED", "TABLES"],
    &["PROCEDURES"],
    &["MODELS"],
    &["JARS"],
];

/// `SHOW what [name] [{FROM | IN} name] [[NOT] {LIKE | ILIKE} 'pattern']`; the word SHOW is behind us.
pub(super) fn show(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    if let Some(words) = NOT_SHOWN.iter().find(|words| at(parser, words)) {
        return Ok(unsupported(parser, &format!("SHOW {}", words.join(" ")), piece));
    }
    let Some((words, named)) = SHOWN.iter().find(|(words, _)| accept(parser, words)) else {
        let near = word_at(parser, 0).and_then(|word| nearest(word, SHOWN.iter().map(|(words, _)| words[0])));
        return Err(match near {
            Some(near) => refuse(
                parser.peek_token_ref(),
                format!("there is no SHOW {}", parser.peek_token_ref()),
                &format!("did you mean SHOW {near}?"),
            ),
            None => expected(parser, "TABLES, VIEWS, DATABASES, FUNCTIONS, COLUMNS or CREATE TABLE after SHOW"),
        });
    };
    let what = words.join(" ");
    let mut name = None;
    if *named || accept_one(parser, &["FROM", "IN"]).is_some() {
        name = Some(object_name(parser, "a name")?);
    } else if what == "COLUMNS" {
        return Err(expected(parser, "FROM after SHOW COLUMNS"));
    }
    let pattern = if at_end(parser) { None } else { Some(pattern(parser)?) };
    Ok(Statement::Show(Show { what, name, pattern }))
}

fn pattern(parser: &mut Parser) -> Parse<Pattern> {
    let negated = accept(parser, &["NOT"]);
    match accept_one(parser, &["LIKE", "ILIKE"]) {
        Some(operator) => {
            let pattern = string(parser, "the pattern in quotes")?;
            Ok(Pattern { negated, ignore_case: operator == "ILIKE", pattern })
        }
        None => Err(expected(parser, "LIKE or the end of the statement")),
    }
}

/// `[EXTENDED] name`; the word DESCRIBE is behind us.
pub(super) fn describe(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    let more = !matches!(parser.peek_nth_token_ref(1).token, Token::EOF | Token::Period);
    for (kind, catalog) in [("CATALOG", true), ("DATABASE", false)] {
        if more && accept(parser, &[kind]) {
            let extended = accept(parser, &["EXTENDED"]);
            let name = object_name(parser, "a name")?;
            return Ok(Statement::DescribeSpace { catalog, name, extended });
        }
    }
    if more && accept(parser, &["JOB"]) {
        return Ok(Statement::DescribeJob { name: string(parser, "the name of the job in quotes")? });
    }
    for kind in ["FUNCTION", "MODEL"] {
        if more && at(parser, &[kind]) {
            return Ok(unsupported(parser, &format!("DESCRIBE {kind}"), piece));
        }
    }
    // There is nothing more to tell: DESCRIBE tells all.
    let _ = more && accept(parser, &["EXTENDED"]);
    Ok(Statement::Describe { name: object_name(parser, "the name of a table or view")? })
}
