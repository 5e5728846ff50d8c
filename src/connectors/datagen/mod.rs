//! The `datagen` connector: rows made up, the same every time.
//!
//! The value of a field is a function of the seed, the field and the number of the row, so a restart goes on with the
//! very rows that an undisturbed run would have made. Only points in time are counted from the present. Subtask `s` of
//! `p` makes the rows `s, s + p, s + 2p, …`; the layout travels in the names of the splits (`0/2`), so it survives a
//! restart at another parallelism.

mod generate;
mod reader;

use std::sync::Arc;

use super::{Connector, ConnectorContext, Source, SourceReader, SplitPosition};
use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use arrow::datatypes::SchemaRef;
use generate::Generator;

const fn option(
    name: &'static str,
    kind: OptionKind,
    default: Option<&'static str>,
    help: &'static str,
) -> DeclaredOption {
    DeclaredOption { name, kind, default, required: false, help }
}

/// Its line in the list.
pub(super) const CONNECTOR: Connector = Connector {
    name: "datagen",
    options: &[
        option("rows-per-second", OptionKind::Integer, Some("10000"), "The pace; 0 is as fast as rows are taken."),
        option("number-of-rows", OptionKind::Integer, None, "How many rows; without it there is no end."),
        option("seed", OptionKind::Integer, Some("0"), "Another seed gives other random values."),
        option(
            "fields.*",
            OptionKind::Text,
            None,
            "fields.<column>.kind (random or sequence), .min, .max, .start, .end, .length, .null-rate, .var-len, .max-past.",
        ),
    ],
    takes_format: false,
    source: Some(|context| Ok(Arc::new(Datagen::new(context)?))),
    sink: None,
};

/// A pace beyond this is no pace: the clock would only cost.
const UNLIMITED: i64 = 100_000_000;

struct Datagen {
    schema: SchemaRef,
    options: Options,
    seed: u64,
    /// Rows a second of the whole table.
    rate: Option<f64>,
    /// Rows of the whole table.
    total: Option<u64>,
}

impl Datagen {
    fn new(context: &ConnectorContext) -> Result<Datagen> {
        let options = context.table.options.clone();
        let schema = context.table.scan_schema();
        if schema != context.table.physical_schema() {
            return Err(Error::sql("datagen tables have no metadata columns"));
        }
        let rate = options.integer("rows-per-second")?.unwrap_or(10_000);
        let number = options.integer("number-of-rows")?;
        let seed = options.integer("seed")?.unwrap_or(0);
        if rate < 0 || number.is_some_and(|number| number < 0) {
            return Err(Error::sql("'rows-per-second' and 'number-of-rows' must not be negative"));
        }
        check_fields(&options, &schema)?;
        let mut total = number.map(|number| number as u64);
        // Every column counts, also those that are not read: the shortest sequence ends the table.
        for field in schema.fields() {
            if let Some(length) = Generator::new(field, &options, seed as u64)?.length() {
                total = Some(total.map_or(length, |total| total.min(length)));
            }
        }
        let rate = (rate > 0 && rate < UNLIMITED).then_some(rate as f64);
        Ok(Datagen { schema, options, seed: seed as u64, rate, total })
    }
}

/// Checks that every `fields.…` option names a column and a property.
fn check_fields(options: &Options, schema: &SchemaRef) -> Result<()> {
    const PROPERTIES: [&str; 9] = ["kind", "min", "max", "start", "end", "length", "null-rate", "var-len", "max-past"];
    for name in options.0.keys().filter_map(|name| name.strip_prefix("fields.")) {
        let known = PROPERTIES.iter().find_map(|property| name.strip_suffix(property)?.strip_suffix('.'));
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        match known {
            // `fields.tags.element.length` and the like reach into a collection.
            Some(column) if names().any(|field| column == field || column.starts_with(&format!("{field}."))) => {}
            Some(column) => {
                let error = Error::sql(format!("'fields.{name}': there is no column '{column}'"));
                return Err(match crate::error::nearest(column, names()) {
                    Some(near) => error.hint(format!("did you mean 'fields.{near}.…'?")),
                    None => error,
                });
            }
            None => {
                return Err(Error::sql(format!("'fields.{name}' is not an option"))
                    .hint(format!("a column's options are: {}", PROPERTIES.join(", "))));
            }
        }
    }
    Ok(())
}

impl Source for Datagen {
    fn mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    fn bounded(&self) -> bool {
        self.total.is_some()
    }

    fn open(
        &self,
        subtask: usize,
        parallelism: usize,
        projection: &[usize],
        restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>> {
        let schema: SchemaRef = Arc::new(self.schema.project(projection)?);
        let generators = schema
            .fields()
            .iter()
            .map(|field| Generator::new(field, &self.options, self.seed))
            .collect::<Result<Vec<_>>>()?;
        let splits = match restored {
            None => vec![reader::Split { index: subtask as u64, of: parallelism.max(1) as u64, made: 0 }],
            Some(saved) => saved
                .iter()
                .map(reader::Split::restore)
                .filter(|split| split.as_ref().map_or(true, |split| split.index as usize % parallelism == subtask))
                .collect::<Result<_>>()?,
        };
        Ok(Box::new(reader::DatagenReader::new(schema, generators, splits, self.rate, self.total)))
    }
}
