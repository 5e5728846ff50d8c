//! `ALTER TABLE`, `ALTER VIEW`, `ALTER DATABASE`.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::create::{blank_table, option_entry, table_element};
use super::cursor::{Parse, accept, accept_one, at, list, name, new_name, object_name, require, string, token_at};
use super::diagnose::expected;
use super::lexer::Piece;
use super::statement::*;
use super::statements::{next_index, query, unsupported};

/// `ALTER …`; the word itself is behind us.
pub(super) fn alter(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    match accept_one(parser, &["TABLE", "VIEW", "DATABASE", "FUNCTION", "CATALOG", "MODEL", "MATERIALIZED"]) {
        Some("TABLE") => alter_table(parser, piece),
        Some("VIEW") => alter_view(parser, piece),
        Some("DATABASE") => {
            let name = object_name(parser, "the name of the database")?;
            require(parser, &["SET"])?;
            Ok(Statement::AlterDatabase { name, options: list(parser, option_entry)? })
        }
        Some("MATERIALIZED") => Ok(unsupported(parser, "ALTER MATERIALIZED TABLE", piece)),
        Some(kind) => Ok(unsupported(parser, &format!("ALTER {kind}"), piece)),
        None => Err(expected(parser, "TABLE, VIEW or DATABASE after ALTER")),
    }
}

fn alter_view(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    let if_exists = accept(parser, &["IF", "EXISTS"]);
    let name = object_name(parser, "the name of the view")?;
    let change = if accept(parser, &["RENAME", "TO"]) {
        ViewChange::Rename(object_name(parser, "the new name")?)
    } else if accept(parser, &["AS"]) {
        let start = next_index(parser);
        let query = query(parser)?;
        ViewChange::Query(query, piece.text_between(start, parser.get_current_index() + 1).to_string())
    } else {
        return Err(expected(parser, "RENAME TO or AS"));
    };
    Ok(Statement::AlterView { name, if_exists, change })
}

fn alter_table(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    let if_exists = accept(parser, &["IF", "EXISTS"]);
    let table = object_name(parser, "the name of the table")?;
    let partition = ["ADD", "DROP"].iter().any(|word| at(parser, &[word, "PARTITION"]) || at(parser, &[word, "IF"]));
    if partition || at(parser, &["PARTITION"]) {
        return Ok(unsupported(parser, "ALTER TABLE … PARTITION", piece));
    }
    let change = match accept_one(parser, &["ADD", "MODIFY", "DROP", "RENAME", "SET", "RESET"]) {
        Some("ADD") => TableChange::Add(elements(parser, &table)?),
        Some("MODIFY") => TableChange::Modify(elements(parser, &table)?),
        Some("DROP") => drop_element(parser)?,
        Some("RENAME") if accept(parser, &["TO"]) => TableChange::Rename(object_name(parser, "the new name")?),
        Some("RENAME") => {
            let from = name(parser, "a column")?;
            require(parser, &["TO"])?;
            TableChange::RenameColumn(from, new_name(parser, "a column's name")?)
        }
        Some("SET") => TableChange::Set(list(parser, option_entry)?),
        Some(_) => TableChange::Reset(list(parser, |parser| string(parser, "the key of an option in quotes"))?),
        None => return Err(expected(parser, "ADD, MODIFY, DROP, RENAME, SET or RESET")),
    };
    Ok(Statement::AlterTable(Box::new(AlterTable { name: table, if_exists, change })))
}

/// One element, or several in parentheses.
fn elements(parser: &mut Parser, name: &ObjectName) -> Parse<TableElements> {
    let mut table = blank_table(name.clone());
    let mut places: Vec<Option<ColumnPlace>> = Vec::new();
    let mut one = |parser: &mut Parser| {
        let column = !matches!(parser.peek_nth_token_ref(1).token, Token::Comma | Token::RParen);
        if column {
            accept(parser, &["COLUMN"]);
        }
        table_element(parser, &mut table)?;
        let place = place(parser)?;
        places.resize(table.columns.len(), None);
        if let (Some(place), Some(last)) = (place, places.last_mut()) {
            *last = Some(place);
        }
        Ok(())
    };
    if token_at(parser, 0, &Token::LParen) {
        list(parser, one)?;
    } else {
        one(parser)?;
    }
    Ok(TableElements {
        columns: table.columns.into_iter().zip(places).collect(),
        watermark: table.watermark,
        primary_key: table.primary_key,
        primary_key_name: table.primary_key_name,
    })
}

fn place(parser: &mut Parser) -> Parse<Option<ColumnPlace>> {
    if accept(parser, &["FIRST"]) {
        return Ok(Some(ColumnPlace::First));
    }
    if accept(parser, &["AFTER"]) {
        return Ok(Some(ColumnPlace::After(name(parser, "a column")?)));
    }
    Ok(None)
}

fn drop_element(parser: &mut Parser) -> Parse<TableChange> {
    if accept(parser, &["PRIMARY", "KEY"]) {
        return Ok(TableChange::DropPrimaryKey(None));
    }
    if accept(parser, &["CONSTRAINT"]) {
        return Ok(TableChange::DropPrimaryKey(Some(name(parser, "the name of the constraint")?)));
    }
    if accept(parser, &["WATERMARK"]) {
        return Ok(TableChange::DropWatermark);
    }
    accept(parser, &["COLUMN"]);
    let column = |parser: &mut Parser| -> Parse<Ident> { name(parser, "a column") };
    if token_at(parser, 0, &Token::LParen) {
        return Ok(TableChange::DropColumns(list(parser, column)?));
    }
    Ok(TableChange::DropColumns(vec![column(parser)?]))
}
