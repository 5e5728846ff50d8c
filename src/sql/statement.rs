//! What a statement says, as parsed: names are not yet resolved, types not yet checked.

use sqlparser::ast::{Expr, Ident, ObjectName, Query};

use crate::error::Span;
use crate::types::SqlType;

/// A statement with its place in the script.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// What it says.
    pub statement: Statement,
    /// Where it stands in the script.
    pub span: Span,
    /// The first `!=` in it, which Flink's SQL spells `<>`.
    pub bang: Option<Span>,
}

/// What a statement says.
#[derive(Debug, Clone)]
#[expect(clippy::enum_variant_names, reason = "a statement set is what SQL calls it")]
pub enum Statement {
    /// `CREATE TABLE`
    CreateTable(Box<CreateTable>),
    /// `CREATE VIEW`
    CreateView(Box<CreateView>),
    /// `CREATE DATABASE`
    CreateDatabase {
        /// Its name.
        name: ObjectName,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// `COMMENT '…'`
        comment: Option<String>,
        /// `WITH (…)`
        options: Vec<OptionEntry>,
    },
    /// `CREATE CATALOG`
    CreateCatalog {
        /// Its name.
        name: ObjectName,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// `COMMENT '…'`
        comment: Option<String>,
        /// `WITH (…)`
        options: Vec<OptionEntry>,
    },
    /// `CREATE FUNCTION f(a INT) AS expression`
    CreateFunction(Box<CreateFunction>),
    /// `ALTER TABLE`
    AlterTable(Box<AlterTable>),
    /// `ALTER VIEW`
    AlterView {
        /// The view.
        name: ObjectName,
        /// `IF EXISTS`
        if_exists: bool,
        /// What is to change.
        change: ViewChange,
    },
    /// `ALTER DATABASE db SET (…)`
    AlterDatabase {
        /// The database.
        name: ObjectName,
        /// The options.
        options: Vec<OptionEntry>,
    },
    /// `DROP …`
    Drop {
        /// What kind of thing.
        object: ObjectKind,
        /// Its name.
        name: ObjectName,
        /// `IF EXISTS`
        if_exists: bool,
        /// `TEMPORARY`
        temporary: bool,
        /// `CASCADE`: a database with what is in it.
        cascade: bool,
    },
    /// `SELECT …`, `VALUES …`, `WITH …`
    Query(Box<Query>),
    /// `INSERT INTO …`
    Insert(Box<Insert>),
    /// `EXECUTE STATEMENT SET BEGIN … END`
    StatementSet(Vec<Insert>),
    /// `EXPLAIN [details] statement`
    Explain {
        /// `CHANGELOG_MODE`, `ESTIMATED_COST`, `ANALYZE`, …, as written, upper case; empty for plain `EXPLAIN`.
        details: Vec<String>,
        /// A query, insert or statement set.
        statement: Box<Statement>,
    },
    /// `SET 'key' = 'value'`; without both: show all
    Set {
        /// The pair.
        entry: Option<(String, String)>,
    },
    /// `RESET 'key'`; without: all
    Reset {
        /// The key.
        key: Option<String>,
    },
    /// `SHOW TABLES | VIEWS | DATABASES | FUNCTIONS | JOBS | CATALOGS | CURRENT DATABASE | CURRENT CATALOG | COLUMNS …`
    Show(Show),
    /// `DESCRIBE t`
    Describe {
        /// The table or view.
        name: ObjectName,
    },
    /// `DESCRIBE {CATALOG | DATABASE} name`
    DescribeSpace {
        /// Whether it names a catalog.
        catalog: bool,
        /// The name.
        name: ObjectName,
        /// `EXTENDED`
        extended: bool,
    },
    /// `DESCRIBE JOB 'name'`
    DescribeJob {
        /// The job.
        name: String,
    },
    /// `STOP JOB 'name' [WITH SAVEPOINT] [WITH DRAIN]`
    StopJob(StopJob),
    /// `USE [CATALOG] name`
    Use {
        /// Whether it names a catalog.
        catalog: bool,
        /// The name.
        name: ObjectName,
    },
    /// `HELP`, `CLEAR`, `QUIT`, `EXIT`: for shells only.
    Client(ClientCommand),
    /// Parses, but cannot be run yet; says so by its name.
    Unsupported {
        /// For the message: "`MATCH_RECOGNIZE`", "`CREATE CATALOG`".
        what: String,
        /// Where.
        span: Option<Span>,
    },
}

/// `STOP JOB`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopJob {
    /// The job.
    pub name: String,
    /// `WITH SAVEPOINT`
    pub savepoint: bool,
    /// `WITH DRAIN`
    pub drain: bool,
}

/// Kinds of named things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ObjectKind {
    Table,
    View,
    Database,
    Function,
    Catalog,
}

/// Commands that only a shell understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ClientCommand {
    Help,
    Why,
    Clear,
    Quit,
}

/// `CREATE TABLE`.
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// Its name.
    pub name: ObjectName,
    /// `TEMPORARY`
    pub temporary: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `OR REPLACE`
    pub or_replace: bool,
    /// Columns in order.
    pub columns: Vec<ColumnDeclaration>,
    /// `(a, b)` before `AS query`: the query's columns by their names, in the order wanted; empty if none are given.
    pub column_order: Vec<Ident>,
    /// `WATERMARK FOR column AS expression`
    pub watermark: Option<WatermarkDeclaration>,
    /// `PRIMARY KEY (…) NOT ENFORCED`, on a column or apart; empty if none.
    pub primary_key: Vec<Ident>,
    /// `CONSTRAINT name PRIMARY KEY …`
    pub primary_key_name: Option<Ident>,
    /// `COMMENT '…'`
    pub comment: Option<String>,
    /// `PARTITIONED BY (…)`
    pub partitioned_by: Vec<Ident>,
    /// `WITH (…)`
    pub options: Vec<OptionEntry>,
    /// `LIKE source (…)`
    pub like: Option<Like>,
    /// `AS query`
    pub query: Option<Box<Query>>,
}

/// `CREATE FUNCTION` with an expression for a body.
#[derive(Debug, Clone)]
pub struct CreateFunction {
    /// Its name.
    pub name: ObjectName,
    /// `TEMPORARY`
    pub temporary: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `(a INT, b STRING)`; empty if there are none.
    pub parameters: Vec<(Ident, SqlType)>,
    /// `RETURNS type`
    pub returns: Option<SqlType>,
    /// The body.
    pub body: Expr,
}

/// `ALTER TABLE`.
#[derive(Debug, Clone)]
pub struct AlterTable {
    /// The table.
    pub name: ObjectName,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// What is to change.
    pub change: TableChange,
}

/// What `ALTER TABLE` changes.
#[derive(Debug, Clone)]
pub enum TableChange {
    /// `ADD (…)`
    Add(TableElements),
    /// `MODIFY (…)`
    Modify(TableElements),
    /// `DROP (a, b)`
    DropColumns(Vec<Ident>),
    /// `DROP PRIMARY KEY`, or `DROP CONSTRAINT name`
    DropPrimaryKey(Option<Ident>),
    /// `DROP WATERMARK`
    DropWatermark,
    /// `RENAME a TO b`
    RenameColumn(Ident, Ident),
    /// `RENAME TO name`
    Rename(ObjectName),
    /// `SET (…)`
    Set(Vec<OptionEntry>),
    /// `RESET ('key', …)`
    Reset(Vec<String>),
}

/// Columns, watermark and key of `ALTER TABLE … ADD` and `MODIFY`.
#[derive(Debug, Clone)]
pub struct TableElements {
    /// Columns, each with its place if one is given.
    pub columns: Vec<(ColumnDeclaration, Option<ColumnPlace>)>,
    /// `WATERMARK FOR column AS expression`
    pub watermark: Option<WatermarkDeclaration>,
    /// `PRIMARY KEY (…) NOT ENFORCED`; empty if none.
    pub primary_key: Vec<Ident>,
    /// `CONSTRAINT name`
    pub primary_key_name: Option<Ident>,
}

/// Where `ALTER TABLE` puts a column.
#[derive(Debug, Clone)]
pub enum ColumnPlace {
    /// `FIRST`
    First,
    /// `AFTER column`
    After(Ident),
}

/// What `ALTER VIEW` changes.
#[derive(Debug, Clone)]
pub enum ViewChange {
    /// `RENAME TO name`
    Rename(ObjectName),
    /// `AS query`, and the query's text as written.
    Query(Box<Query>, String),
}

/// `LIKE source (INCLUDING ALL, EXCLUDING OPTIONS, …)`.
#[derive(Debug, Clone)]
pub struct Like {
    /// The table to be like.
    pub source: ObjectName,
    /// `(strategy, feature)`, upper case, in order: `("EXCLUDING", "OPTIONS")`.
    pub options: Vec<(String, String)>,
}

/// `'key' = 'value'` and where it stands.
#[derive(Debug, Clone)]
pub struct OptionEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The place of the whole entry.
    pub span: Option<Span>,
}

/// A column of `CREATE TABLE`.
#[derive(Debug, Clone)]
pub struct ColumnDeclaration {
    /// Its name.
    pub name: Ident,
    /// What follows.
    pub kind: DeclaredColumn,
    /// `COMMENT '…'`
    pub comment: Option<String>,
}

/// What a column of `CREATE TABLE` is.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a table has few columns, and they are not copied about")]
pub enum DeclaredColumn {
    /// `name TYPE [NOT NULL]`
    Physical {
        /// The type.
        sql_type: SqlType,
        /// Whether NULL is allowed.
        nullable: bool,
    },
    /// `name TYPE METADATA [FROM 'key'] [VIRTUAL]`
    Metadata {
        /// The type.
        sql_type: SqlType,
        /// Whether NULL is allowed.
        nullable: bool,
        /// `FROM 'key'`
        key: Option<String>,
        /// `VIRTUAL`
        is_virtual: bool,
    },
    /// `name AS expression`
    Computed {
        /// The expression.
        expression: Expr,
    },
}

/// `WATERMARK FOR column AS expression`.
#[derive(Debug, Clone)]
pub struct WatermarkDeclaration {
    /// The column.
    pub column: Ident,
    /// The expression.
    pub expression: Expr,
}

/// `CREATE VIEW`.
#[derive(Debug, Clone)]
pub struct CreateView {
    /// Its name.
    pub name: ObjectName,
    /// Column names; empty if none are given.
    pub columns: Vec<Ident>,
    /// The query.
    pub query: Box<Query>,
    /// The query's text as written.
    pub query_text: String,
    /// `COMMENT '…'`
    pub comment: Option<String>,
    /// `TEMPORARY`
    pub temporary: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `OR REPLACE`
    pub or_replace: bool,
}

/// `INSERT INTO target …`.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table to write.
    pub target: ObjectName,
    /// `(a, b, …)`; empty if none are given.
    pub columns: Vec<Ident>,
    /// `PARTITION (key = value, …)`
    pub partition: Vec<(Ident, Expr)>,
    /// `INSERT OVERWRITE`
    pub overwrite: bool,
    /// What is written.
    pub source: Box<Query>,
    /// `ON CONFLICT DO { DEDUPLICATE | ERROR | NOTHING }`, the last word upper case.
    pub on_conflict: Option<String>,
    /// `/*+ OPTIONS('key' = 'value') */` behind the target.
    pub hints: Vec<OptionEntry>,
}

/// `SHOW …`.
#[derive(Debug, Clone)]
pub struct Show {
    /// What, upper case: `TABLES`, `VIEWS`, `DATABASES`, `CURRENT DATABASE`, `CREATE TABLE`, `COLUMNS`, `FUNCTIONS`, …
    pub what: String,
    /// `SHOW CREATE TABLE x`, `SHOW COLUMNS FROM x`, `SHOW TABLES FROM db`
    pub name: Option<ObjectName>,
    /// `[NOT] LIKE 'pattern'` or `ILIKE`
    pub pattern: Option<Pattern>,
}

/// `[NOT] {LIKE|ILIKE} 'pattern'`.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// `NOT`
    pub negated: bool,
    /// `ILIKE`
    pub ignore_case: bool,
    /// With `%` and `_`.
    pub pattern: String,
}
