//! `CREATE TABLE`, `CREATE VIEW`, `CREATE DATABASE`.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::cursor::{
    Parse, accept, accept_one, at, at_end, list, name, new_name, object_name, require, require_token, string, token_at,
    word_at,
};
use super::diagnose::{expected, refuse, span_between};
use super::lexer::Piece;
use super::statement::*;
use super::statements::{expression, next_index, query, unsupported};
use super::type_syntax::parse_type;

/// What stands between `CREATE` and the kind of thing.
#[derive(Clone, Copy)]
struct Prefix {
    or_replace: bool,
    temporary: bool,
}

/// `CREATE …`; the word itself is behind us.
pub(super) fn create(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    let or_replace = accept(parser, &["OR", "REPLACE"]);
    let temporary = accept(parser, &["TEMPORARY"]);
    let prefix = Prefix { or_replace, temporary };
    if accept(parser, &["TABLE"]) {
        return create_table(parser, prefix);
    }
    if accept(parser, &["VIEW"]) {
        return create_view(parser, piece, prefix);
    }
    if !or_replace && !temporary && accept(parser, &["DATABASE"]) {
        return create_database(parser);
    }
    if !or_replace && !temporary && accept(parser, &["CATALOG"]) {
        return create_catalog(parser);
    }
    accept(parser, &["OR", "ALTER"]);
    accept(parser, &["SYSTEM"]);
    let kinds = ["CATALOG", "FUNCTION", "MODEL", "CONNECTION", "MATERIALIZED"];
    match accept_one(parser, &kinds) {
        Some("FUNCTION") => create_function(parser, piece, prefix),
        Some("MATERIALIZED") => Ok(unsupported(parser, "CREATE MATERIALIZED TABLE", piece)),
        Some(kind) => Ok(unsupported(parser, &format!("CREATE {kind}"), piece)),
        None => Err(expected(parser, "TABLE, VIEW or DATABASE after CREATE")),
    }
}

fn create_database(parser: &mut Parser) -> Parse<Statement> {
    let if_not_exists = accept(parser, &["IF", "NOT", "EXISTS"]);
    let name = object_name(parser, "the name of the database")?;
    let comment = comment(parser)?;
    Ok(Statement::CreateDatabase { name, if_not_exists, comment, options: options(parser)? })
}

fn create_catalog(parser: &mut Parser) -> Parse<Statement> {
    let if_not_exists = accept(parser, &["IF", "NOT", "EXISTS"]);
    let name = object_name(parser, "the name of the catalog")?;
    let comment = comment(parser)?;
    Ok(Statement::CreateCatalog { name, if_not_exists, comment, options: options(parser)? })
}

/// A body in quotes is the name of a Java class, as Flink has it: there is no JVM here that could load it.
fn create_function(parser: &mut Parser, piece: &Piece, prefix: Prefix) -> Parse<Statement> {
    let if_not_exists = accept(parser, &["IF", "NOT", "EXISTS"]);
    let name = object_name(parser, "the name of the function")?;
    let mut parameters = Vec::new();
    let named = token_at(parser, 0, &Token::LParen);
    if named && token_at(parser, 1, &Token::RParen) {
        parser.advance_token();
        parser.advance_token();
    } else if named {
        parameters = list(parser, |parser| Ok((new_name(parser, "a parameter")?, parse_type(parser)?.0)))?;
    }
    let returns = if accept(parser, &["RETURNS"]) { Some(parse_type(parser)?.0) } else { None };
    require(parser, &["AS"])?;
    if matches!(parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
        return Ok(unsupported(parser, "CREATE FUNCTION", piece));
    }
    if !named {
        let message = "a function whose body is an expression has parameters";
        return Err(refuse(parser.peek_token_ref(), message, "CREATE FUNCTION f(a INT) AS a + 1, or f() for none"));
    }
    let body = expression(parser)?;
    let Prefix { temporary, .. } = prefix;
    let function = CreateFunction { name, temporary, if_not_exists, parameters, returns, body };
    Ok(Statement::CreateFunction(Box::new(function)))
}

fn create_view(parser: &mut Parser, piece: &Piece, prefix: Prefix) -> Parse<Statement> {
    let if_not_exists = accept(parser, &["IF", "NOT", "EXISTS"]);
    let name = object_name(parser, "the name of the view")?;
    let mut columns = Vec::new();
    if token_at(parser, 0, &Token::LParen) {
        columns = list(parser, |parser| {
            let column = new_name(parser, "a column's name")?;
            comment(parser)?;
            Ok(column)
        })?;
    }
    let comment = comment(parser)?;
    require(parser, &["AS"])?;
    let start = next_index(parser);
    let query = query(parser)?;
    let query_text = piece.text_between(start, parser.get_current_index() + 1).to_string();
    let Prefix { or_replace, temporary } = prefix;
    let view = CreateView { name, columns, query, query_text, comment, temporary, if_not_exists, or_replace };
    Ok(Statement::CreateView(Box::new(view)))
}

fn create_table(parser: &mut Parser, prefix: Prefix) -> Parse<Statement> {
    let if_not_exists = accept(parser, &["IF", "NOT", "EXISTS"]);
    let mut table = blank_table(object_name(parser, "the name of the table")?);
    table.temporary = prefix.temporary;
    table.if_not_exists = if_not_exists;
    table.or_replace = prefix.or_replace;
    let names_only = matches!(parser.peek_nth_token_ref(1).token, Token::Word(_))
        && matches!(parser.peek_nth_token_ref(2).token, Token::Comma | Token::RParen);
    let start = parser.peek_nth_token_ref(1).clone();
    if token_at(parser, 0, &Token::LParen) && names_only {
        table.column_order = list(parser, |parser| name(parser, "a column of the query"))?;
    } else if token_at(parser, 0, &Token::LParen) {
        list(parser, |parser| table_element(parser, &mut table))?;
    }
    table.comment = comment(parser)?;
    if at(parser, &["DISTRIBUTED"]) {
        return Err(refuse(parser.peek_token_ref(), "DISTRIBUTED is not supported: no connector has buckets", ""));
    }
    if accept(parser, &["PARTITIONED", "BY"]) {
        table.partitioned_by = list(parser, |parser| name(parser, "a column"))?;
    }
    table.options = options(parser)?;
    if accept(parser, &["LIKE"]) {
        table.like = Some(like(parser)?);
    } else if accept(parser, &["AS"]) {
        table.query = Some(query(parser)?);
    }
    if !at_end(parser) {
        return Err(misplaced_clause(parser));
    }
    if names_only && table.query.is_none() {
        return Err(refuse(&start, format!("column '{start}' has no type"), "name TYPE, or: name AS expression"));
    }
    Ok(Statement::CreateTable(Box::new(table)))
}

/// A table of which nothing but the name is known.
pub(super) fn blank_table(name: ObjectName) -> CreateTable {
    CreateTable {
        name,
        temporary: false,
        if_not_exists: false,
        or_replace: false,
        columns: vec![],
        column_order: vec![],
        watermark: None,
        primary_key: vec![],
        primary_key_name: None,
        comment: None,
        partitioned_by: vec![],
        options: vec![],
        like: None,
        query: None,
    }
}

fn misplaced_clause(parser: &Parser) -> sqlparser::parser::ParserError {
    let clauses = ["COMMENT", "PARTITIONED", "WITH"];
    match clauses.iter().find(|clause| at(parser, &[clause])) {
        Some(clause) => {
            let hint = "the order is (columns) COMMENT … PARTITIONED BY … WITH … LIKE or AS …";
            refuse(parser.peek_token_ref(), format!("{clause} is out of place here"), hint)
        }
        None => expected(parser, "end of statement"),
    }
}

/// A column, the watermark or a constraint.
pub(super) fn table_element(parser: &mut Parser, table: &mut CreateTable) -> Parse<()> {
    if accept(parser, &["WATERMARK", "FOR"]) {
        return watermark(parser, table);
    }
    let constraint =
        at(parser, &["CONSTRAINT"]) && word_at(parser, 2).is_some_and(|word| is_constraint(word, parser, 3));
    if constraint {
        parser.advance_token();
        table.primary_key_name = Some(name(parser, "the name of the constraint")?);
        return table_constraint(parser, table);
    }
    if word_at(parser, 0).is_some_and(|word| is_constraint(word, parser, 1)) {
        return table_constraint(parser, table);
    }
    column(parser, table)
}

/// Whether this word, and the token after it, begin a constraint of the table.
fn is_constraint(word: &str, parser: &Parser, next: usize) -> bool {
    let followed_by = |expected: &str| word_at(parser, next).is_some_and(|word| word.eq_ignore_ascii_case(expected));
    match word.to_ascii_uppercase().as_str() {
        "PRIMARY" | "FOREIGN" => followed_by("KEY"),
        "UNIQUE" | "CHECK" => token_at(parser, next, &Token::LParen),
        _ => false,
    }
}

fn watermark(parser: &mut Parser, table: &mut CreateTable) -> Parse<()> {
    let start = parser.get_previous_token().clone();
    let column = name(parser, "the column of the watermark")?;
    if token_at(parser, 0, &Token::Period) {
        let message = "a watermark is for a column of the table, not for a field inside one";
        return Err(refuse(parser.peek_token_ref(), message, "add a computed column: ts AS row_column.ts"));
    }
    require(parser, &["AS"])?;
    let expression = expression(parser)?;
    if table.watermark.is_some() {
        return Err(refuse(&start, "a table has one watermark at most", ""));
    }
    table.watermark = Some(WatermarkDeclaration { column, expression });
    Ok(())
}

fn table_constraint(parser: &mut Parser, table: &mut CreateTable) -> Parse<()> {
    let start = parser.peek_token_ref().clone();
    if !accept(parser, &["PRIMARY", "KEY"]) {
        return Err(refuse_constraint(parser));
    }
    let columns = list(parser, |parser| name(parser, "a column of the primary key"))?;
    not_enforced(parser)?;
    set_primary_key(table, columns, &start)
}

fn set_primary_key(
    table: &mut CreateTable,
    columns: Vec<Ident>,
    start: &sqlparser::tokenizer::TokenWithSpan,
) -> Parse<()> {
    if !table.primary_key.is_empty() {
        return Err(refuse(start, "a table has one primary key at most", "PRIMARY KEY (a, b) NOT ENFORCED"));
    }
    table.primary_key = columns;
    Ok(())
}

fn not_enforced(parser: &mut Parser) -> Parse<()> {
    if accept(parser, &["NOT", "ENFORCED"]) {
        return Ok(());
    }
    let message = "a primary key is a promise about the data that is never checked, and has to say so";
    Err(refuse(parser.get_current_token(), message, "write PRIMARY KEY … NOT ENFORCED"))
}

/// The next word begins a constraint that Flink does not have.
fn refuse_constraint(parser: &Parser) -> sqlparser::parser::ParserError {
    let token = parser.peek_token_ref();
    let word = token.to_string().to_ascii_uppercase();
    let hint = match word.as_str() {
        "GENERATED" => "a computed column is written: name AS expression",
        "UNIQUE" => "the only key is PRIMARY KEY (…) NOT ENFORCED",
        _ => "the only constraints are NOT NULL and PRIMARY KEY (…) NOT ENFORCED",
    };
    refuse(token, format!("{word} is not supported in CREATE TABLE"), hint)
}

/// `name TYPE …`, `name TYPE METADATA …` or `name AS expression`.
fn column(parser: &mut Parser, table: &mut CreateTable) -> Parse<()> {
    let start = parser.peek_token_ref().clone();
    let column_name = new_name(parser, "a column's name")?;
    if table.columns.iter().any(|column| column.name.value == column_name.value) {
        return Err(refuse(&start, format!("column '{}' is declared twice", column_name.value), ""));
    }
    let kind = if accept(parser, &["AS"]) {
        DeclaredColumn::Computed { expression: expression(parser)? }
    } else {
        if matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen) {
            let message = format!("column '{}' has no type", column_name.value);
            return Err(refuse(&start, message, "name TYPE, or: name AS expression"));
        }
        physical_or_metadata(parser, &column_name, table)?
    };
    let comment = comment(parser)?;
    let refused = ["DEFAULT", "UNIQUE", "CHECK", "REFERENCES", "GENERATED"];
    if refused.iter().any(|word| at(parser, &[word])) {
        return Err(refuse_constraint(parser));
    }
    table.columns.push(ColumnDeclaration { name: column_name, kind, comment });
    Ok(())
}

fn physical_or_metadata(parser: &mut Parser, column: &Ident, table: &mut CreateTable) -> Parse<DeclaredColumn> {
    let (sql_type, mut nullable) = parse_type(parser)?;
    if accept(parser, &["METADATA"]) {
        let key = if accept(parser, &["FROM"]) { Some(string(parser, "the metadata key in quotes")?) } else { None };
        let is_virtual = accept(parser, &["VIRTUAL"]);
        return Ok(DeclaredColumn::Metadata { sql_type, nullable, key, is_virtual });
    }
    let start = parser.peek_token_ref().clone();
    if at(parser, &["CONSTRAINT"]) {
        parser.advance_token();
        table.primary_key_name = Some(name(parser, "the name of the constraint")?);
    }
    if accept(parser, &["PRIMARY", "KEY"]) {
        not_enforced(parser)?;
        set_primary_key(table, vec![column.clone()], &start)?;
        if accept(parser, &["NOT", "NULL"]) {
            nullable = false;
        }
    }
    Ok(DeclaredColumn::Physical { sql_type, nullable })
}

/// `COMMENT 'text'`.
fn comment(parser: &mut Parser) -> Parse<Option<String>> {
    Ok(if accept(parser, &["COMMENT"]) { Some(string(parser, "the comment in quotes")?) } else { None })
}

/// `WITH ('key' = 'value', …)`; empty if there is none.
fn options(parser: &mut Parser) -> Parse<Vec<OptionEntry>> {
    if !accept(parser, &["WITH"]) {
        return Ok(vec![]);
    }
    if token_at(parser, 0, &Token::LParen) && token_at(parser, 1, &Token::RParen) {
        parser.advance_token();
        parser.advance_token();
        return Ok(vec![]);
    }
    list(parser, option_entry)
}

/// `'key' = 'value'`.
pub(super) fn option_entry(parser: &mut Parser) -> Parse<OptionEntry> {
    let start = parser.peek_token_ref().clone();
    if matches!(start.token, Token::Word(_)) {
        return Err(refuse(&start, "the key of an option stands in quotes", "'connector' = 'filesystem'"));
    }
    let key = string(parser, "an option: 'key' = 'value'")?;
    require_token(parser, &Token::Eq)?;
    let value_token = parser.peek_token_ref().clone();
    if matches!(value_token.token, Token::Number(..) | Token::Word(_)) {
        let hint = format!("write '{key}' = '{value_token}'");
        return Err(refuse(&value_token, "the value of an option stands in quotes", &hint));
    }
    let value = string(parser, "the value in quotes")?;
    Ok(OptionEntry { key, value, span: Some(span_between(start.span, value_token.span)) })
}

/// `source [(INCLUDING ALL EXCLUDING OPTIONS …)]`; the word LIKE is behind us.
fn like(parser: &mut Parser) -> Parse<Like> {
    let source = object_name(parser, "the table to be like")?;
    let mut options = Vec::new();
    if parser.consume_token(&Token::LParen) {
        while !parser.consume_token(&Token::RParen) {
            let Some(strategy) = accept_one(parser, &["INCLUDING", "EXCLUDING", "OVERWRITING"]) else {
                return Err(expected(parser, "INCLUDING, EXCLUDING or OVERWRITING"));
            };
            let features =
                ["ALL", "CONSTRAINTS", "DISTRIBUTION", "PARTITIONS", "GENERATED", "METADATA", "OPTIONS", "WATERMARKS"];
            let Some(feature) = accept_one(parser, &features) else {
                return Err(expected(parser, &format!("one of {} after {strategy}", features.join(", "))));
            };
            if strategy == "OVERWRITING" && !matches!(feature, "GENERATED" | "METADATA" | "OPTIONS" | "WATERMARKS") {
                let message = format!("{feature} cannot be overwritten");
                return Err(refuse(parser.get_current_token(), message, "use INCLUDING or EXCLUDING"));
            }
            options.push((strategy.to_string(), feature.to_string()));
            let _optional_comma = parser.consume_token(&Token::Comma);
        }
    }
    Ok(Like { source, options })
}
