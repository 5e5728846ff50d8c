//! SQL/JSON: reading with paths (JSON_VALUE, JSON_QUERY, JSON_EXISTS, IS JSON) and writing (JSON_OBJECT, JSON_ARRAY,
//! JSON_STRING, JSON_QUOTE).
//!
//! The clauses of SQL arrive as plain arguments, which the planner makes: `JSON_VALUE(j, '$.a' DEFAULT 'x' ON EMPTY)` is
//! `json_value(j, '$.a', 'DEFAULT', 'x', 'NULL', NULL)`. A function that gives JSON marks its field with
//! [`JSON_KEY`], so that JSON_OBJECT and JSON_ARRAY take it in as it is instead of as a text.

mod build;
mod path;
mod query;
mod text;
mod write;

use super::function::Entry;

/// Metadata key of a field whose texts are JSON.
pub(super) const JSON_KEY: &str = "ebbflow.json";

/// The functions whose results are marked as JSON.
pub(super) fn gives_json(name: &str) -> bool {
    matches!(name, "json_object" | "json_array" | "json")
}

/// The entries of this folder.
pub(super) fn entries() -> Vec<Entry> {
    let mut all = build::entries();
    all.extend(query::entries());
    all.extend(text::entries());
    all
}
