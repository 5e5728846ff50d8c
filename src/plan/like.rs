//! `CREATE TABLE … LIKE`: which parts of another table a declaration begins with, and which of them it may replace.

use sqlparser::ast::Spanned;

use super::name::qualify;
use crate::catalog::{Catalog, Column, ColumnKind, Relation, TableDefinition};
use crate::error::{Error, Result, Span};
use crate::sql::{Like, OptionEntry};

/// What happens to a part of the base table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// It is taken over; declaring it again is an error.
    Including,
    /// It is left out.
    Excluding,
    /// It is taken over unless it is declared again.
    Overwriting,
}

/// What a declaration may do with the parts it has taken over. By default: nothing was taken over.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    columns: usize,
    strategies: Vec<(String, Strategy)>,
    watermark: bool,
    primary_key: bool,
    partitions: bool,
    options: bool,
}

impl Inherited {
    /// Puts the wanted parts of the base table into `definition`, which has nothing yet.
    ///
    /// # Errors
    /// If there is no such table, or it is a view.
    pub(super) fn take(like: &Like, catalog: &Catalog, definition: &mut TableDefinition) -> Result<Inherited> {
        let base = base_table(like, catalog)?;
        let mut rules = Inherited::default();
        for (strategy, feature) in &like.options {
            let strategy = match strategy.as_str() {
                "INCLUDING" => Strategy::Including,
                "EXCLUDING" => Strategy::Excluding,
                _ => Strategy::Overwriting,
            };
            rules.strategies.push((feature.clone(), strategy));
        }
        let keeps = |feature: &str| rules.strategy(feature) != Strategy::Excluding;
        let kept = base.columns.iter().filter(|column| match &column.kind {
            ColumnKind::Physical => true,
            ColumnKind::Computed { .. } => keeps("GENERATED"),
            ColumnKind::Metadata { .. } => keeps("METADATA"),
        });
        definition.columns = kept.cloned().collect();
        let (watermark, key) = (keeps("WATERMARKS"), keeps("CONSTRAINTS"));
        let (partitions, options) = (keeps("PARTITIONS"), keeps("OPTIONS"));
        if watermark {
            definition.watermark.clone_from(&base.watermark);
        }
        if key {
            definition.primary_key.clone_from(&base.primary_key);
            definition.primary_key_name.clone_from(&base.primary_key_name);
        }
        if partitions {
            definition.partitioned_by.clone_from(&base.partitioned_by);
        }
        if options {
            definition.options.clone_from(&base.options);
        }
        rules.columns = definition.columns.len();
        rules.watermark = definition.watermark.is_some();
        rules.primary_key = !definition.primary_key.is_empty();
        rules.partitions = !definition.partitioned_by.is_empty();
        rules.options = options;
        Ok(rules)
    }

    fn strategy(&self, feature: &str) -> Strategy {
        let named = |wanted: &str| self.strategies.iter().rev().find(|(feature, _)| feature == wanted);
        match named(feature).or_else(|| named("ALL")) {
            Some((_, strategy)) => *strategy,
            None if feature == "OPTIONS" => Strategy::Overwriting,
            None => Strategy::Including,
        }
    }

    /// Whether the column, declared again, takes the place of the inherited one at `index`.
    ///
    /// # Errors
    /// If the inherited one may not be replaced.
    pub(super) fn replaces(&self, index: usize, present: &Column, declared: &Column) -> Result<bool> {
        if index >= self.columns {
            return Ok(false);
        }
        let (feature, noun) = match (&present.kind, &declared.kind) {
            (ColumnKind::Computed { .. }, ColumnKind::Computed { .. }) => ("GENERATED", "computed "),
            (ColumnKind::Metadata { .. }, ColumnKind::Metadata { .. }) => ("METADATA", "metadata "),
            _ => return Err(Error::sql(format!("the base table has a column '{}' already", declared.name))),
        };
        if self.strategy(feature) == Strategy::Overwriting {
            return Ok(true);
        }
        Err(Error::sql(format!("the base table has a {noun}column '{}' already", declared.name))
            .hint(format!("LIKE … (OVERWRITING {feature}) or (EXCLUDING {feature})")))
    }

    /// # Errors
    /// If a watermark was inherited that may not be replaced.
    pub(super) fn check_watermark(&self) -> Result<()> {
        let replaceable = !self.watermark || self.strategy("WATERMARKS") == Strategy::Overwriting;
        refuse_unless(replaceable, "a watermark", "(OVERWRITING WATERMARKS) or (EXCLUDING WATERMARKS)")
    }

    /// # Errors
    /// If a primary key was inherited.
    pub(super) fn check_primary_key(&self) -> Result<()> {
        refuse_unless(!self.primary_key, "a primary key", "(EXCLUDING CONSTRAINTS)")
    }

    /// # Errors
    /// If partition columns were inherited.
    pub(super) fn check_partitions(&self) -> Result<()> {
        refuse_unless(!self.partitions, "partition columns", "(EXCLUDING PARTITIONS)")
    }

    /// # Errors
    /// If the option was inherited and may not be replaced.
    pub(super) fn check_option(&self, definition: &TableDefinition, entry: &OptionEntry) -> Result<()> {
        let inherited = self.options && definition.options.get(&entry.key).is_some();
        let replaceable = !inherited || self.strategy("OPTIONS") == Strategy::Overwriting;
        let what = format!("the option '{}'", entry.key);
        refuse_unless(replaceable, &what, "(OVERWRITING OPTIONS) or (EXCLUDING OPTIONS)")
            .map_err(|error| error.at(entry.span))
    }
}

fn refuse_unless(allowed: bool, what: &str, way_out: &str) -> Result<()> {
    if allowed {
        return Ok(());
    }
    Err(Error::sql(format!("the base table has {what} already")).hint(format!("LIKE … {way_out}")))
}

fn base_table<'a>(like: &Like, catalog: &'a Catalog) -> Result<&'a TableDefinition> {
    let span = Span::from_ast(like.source.span());
    let name = qualify(catalog, &like.source)?;
    match catalog.get(&name) {
        Some(Relation::Table(table)) => Ok(table),
        Some(Relation::View(_)) => Err(Error::sql(format!("'{}' is a view, and LIKE takes a table", name.object))
            .at(span)
            .hint("CREATE TABLE … AS SELECT * FROM it makes a table with its columns")),
        None => Err(catalog.not_found(&name).at(span)),
    }
}
