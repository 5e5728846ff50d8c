//! One subtask of `datagen`: makes batches at the pace asked for.

use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::generate::Generator;
use crate::changelog::ChangeBatch;
use crate::connectors::{SourceEvent, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;

/// The rows `index, index + of, index + 2·of, …`, of which `made` are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    pub index: u64,
    pub of: u64,
    pub made: u64,
}

impl Split {
    /// # Errors
    /// If the position is not one this connector has written.
    pub(super) fn restore(saved: &SplitPosition) -> Result<Split> {
        let read = || {
            let (index, of) = saved.split.split_once('/')?;
            let (index, of) = (index.parse().ok()?, of.parse().ok().filter(|of| *of > 0)?);
            Some(Split { index, of, made: saved.position["rows"].as_u64()? })
        };
        read()
            .ok_or_else(|| Error::state(format!("the checkpoint's position of split '{}' cannot be read", saved.split)))
    }

    /// Rows of this split in a table of `total`.
    fn length(&self, total: u64) -> u64 {
        (total + self.of - 1).saturating_sub(self.index) / self.of
    }
}

/// Makes rows.
pub(super) struct DatagenReader {
    schema: SchemaRef,
    generators: Vec<Generator>,
    splits: Vec<Split>,
    /// Rows a second of this subtask.
    rate: Option<f64>,
    total: Option<u64>,
    /// When the pace began, and the rows made since.
    began: Option<(Instant, u64)>,
    /// The split whose turn it is.
    turn: usize,
}

impl DatagenReader {
    pub(super) fn new(
        schema: SchemaRef,
        generators: Vec<Generator>,
        splits: Vec<Split>,
        rate: Option<f64>,
        total: Option<u64>,
    ) -> DatagenReader {
        let share: f64 = splits.iter().map(|split| 1.0 / split.of as f64).sum();
        DatagenReader { schema, generators, splits, rate: rate.map(|rate| rate * share), total, began: None, turn: 0 }
    }

    async fn make(&mut self) -> Result<SourceEvent> {
        let Some((turn, left)) = self.next_split() else { return Ok(SourceEvent::End) };
        let mut count = left.min(BATCH_ROWS as u64);
        if let Some(rate) = self.rate {
            // Ten batches a second, or a row at a time if the pace is slower than that.
            count = count.min(((rate / 10.0) as u64).max(1));
            let (began, made) = *self.began.get_or_insert_with(|| (Instant::now(), 0));
            tokio::time::sleep_until(began + Duration::from_secs_f64(made as f64 / rate)).await;
        }
        let split = &mut self.splits[turn];
        let (first, step) = (split.index + split.made * split.of, split.of);
        let rows: Vec<u64> = (0..count).map(|row| first + row * step).collect();
        let now = chrono::Utc::now();
        let columns =
            self.generators.iter().map(|generator| generator.column(&rows, now)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        split.made += count;
        self.turn = turn + 1;
        if let Some((_, made)) = &mut self.began {
            *made += count;
        }
        Ok(SourceEvent::Changes(ChangeBatch::inserts(batch)))
    }

    /// The next split that has rows left, and how many.
    fn next_split(&self) -> Option<(usize, u64)> {
        let count = self.splits.len();
        (0..count).map(|step| (self.turn + step) % count).find_map(|index| {
            let split = &self.splits[index];
            let left = self.total.map_or(u64::MAX, |total| split.length(total).saturating_sub(split.made));
            (left > 0).then_some((index, left))
        })
    }
}

impl SourceReader for DatagenReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        self.make().boxed()
    }

    fn positions(&self) -> Vec<SplitPosition> {
        let position = |split: &Split| SplitPosition {
            split: format!("{}/{}", split.index, split.of),
            position: serde_json::json!({ "rows": split.made }),
        };
        self.splits.iter().map(position).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::{Column, ColumnKind, Options, TableDefinition};
    use crate::connectors::{ConnectorContext, Console, Source};
    use crate::error::Error;
    use crate::types::{RowField, SqlType};

    struct NoConsole;

    impl Console for NoConsole {
        fn write(&self, _: bool, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }

        fn input(&self) -> Box<dyn std::io::Read + Send> {
            Box::new(std::io::empty())
        }
    }

    fn source(columns: &[(&str, SqlType)], given: &[(&str, &str)]) -> Result<Arc<dyn Source>, Error> {
        let column = |(name, sql_type): &(&str, SqlType)| Column {
            name: name.to_string(),
            sql_type: sql_type.clone(),
            nullable: true,
            kind: ColumnKind::Physical,
            comment: None,
        };
        let table = TableDefinition {
            name: "t".to_string(),
            columns: columns.iter().map(column).collect(),
            watermark: None,
            primary_key: Vec::new(),
            primary_key_name: None,
            partitioned_by: Vec::new(),
            options: Options(given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()),
            comment: None,
            temporary: false,
            span: None,
        };
        let context = ConnectorContext {
            table: Arc::new(table),
            console: Arc::new(NoConsole),
            batch: false,
            zone: crate::types::TimeZone::UTC,
            in_order: false,
        };
        (super::super::CONNECTOR.source.unwrap())(&context)
    }

    async fn rows(reader: &mut dyn SourceReader, most: usize) -> Vec<String> {
        let mut rows = Vec::new();
        while rows.len() < most {
            match reader.next().await.unwrap() {
                SourceEvent::Changes(batch) => {
                    let columns = batch.rows().columns();
                    rows.extend((0..batch.len()).map(|row| {
                        let cell = |column: &arrow::array::ArrayRef| {
                            arrow::util::display::array_value_to_string(column, row).unwrap()
                        };
                        columns.iter().map(cell).collect::<Vec<_>>().join("|")
                    }));
                }
                _ => break,
            }
        }
        rows
    }

    #[tokio::test]
    async fn a_restart_goes_on_with_the_same_rows() {
        let columns = [("n", SqlType::BigInt), ("r", SqlType::Int), ("s", SqlType::Varchar(6))];
        let given = [
            ("rows-per-second", "0"),
            ("number-of-rows", "20001"),
            ("fields.n.kind", "sequence"),
            ("fields.n.start", "5"),
            ("fields.n.end", "900000"),
            ("fields.r.min", "1"),
            ("fields.r.max", "3"),
            ("fields.s.null-rate", "0.5"),
        ];
        let source = source(&columns, &given).unwrap();
        assert!(source.bounded());
        let straight = rows(&mut *source.open(0, 1, &[0, 1, 2], None).unwrap(), usize::MAX).await;
        assert_eq!(straight.len(), 20_001);
        assert!(straight[0].starts_with("5|"));
        assert!((1..=3).all(|value| straight.iter().any(|row| row.contains(&format!("|{value}|")))));
        let mut parts = Vec::new();
        let mut saved = Vec::new();
        for subtask in 0..2 {
            let mut reader = source.open(subtask, 2, &[0, 1, 2], None).unwrap();
            parts.extend(rows(&mut *reader, 1).await);
            saved.extend(reader.positions());
        }
        parts.extend(rows(&mut *source.open(0, 1, &[0, 1, 2], Some(&saved)).unwrap(), usize::MAX).await);
        parts.sort();
        let mut sorted = straight;
        sorted.sort();
        assert_eq!(parts, sorted);
    }

    #[tokio::test]
    async fn every_type_is_made() {
        let field = |sql_type| RowField::unnamed(sql_type, true);
        let columns = [
            ("a", SqlType::Boolean),
            ("b", SqlType::TinyInt),
            ("c", SqlType::Decimal(5, 2)),
            ("d", SqlType::Double),
            ("e", SqlType::Float),
            ("f", SqlType::Date),
            ("g", SqlType::Time(0)),
            ("h", SqlType::Timestamp(6)),
            ("i", SqlType::TimestampLtz(3)),
            ("j", SqlType::BYTES),
            ("k", SqlType::Char(5)),
            ("l", SqlType::Array(Box::new(field(SqlType::Int)))),
            ("m", SqlType::Map(Box::new(field(SqlType::STRING)), Box::new(field(SqlType::Int)))),
            ("n", SqlType::Row(vec![RowField { name: "x".into(), ..field(SqlType::SmallInt) }])),
        ];
        let source = source(&columns, &[("number-of-rows", "3")]).unwrap();
        let projection: Vec<usize> = (0..columns.len()).collect();
        assert_eq!(rows(&mut *source.open(0, 1, &projection, None).unwrap(), usize::MAX).await.len(), 3);
        assert_eq!(rows(&mut *source.open(0, 1, &[], None).unwrap(), usize::MAX).await.len(), 3);
    }

    #[test]
    fn options_must_fit() {
        let columns = [("n", SqlType::BigInt), ("d", SqlType::Date)];
        for (name, value) in [
            ("fields.m.min", "1"),
            ("fields.n.mim", "1"),
            ("fields.n.min", "x"),
            ("fields.n.kind", "sequence"),
            ("fields.d.kind", "sequence"),
            ("fields.n.null-rate", "2"),
            ("rows-per-second", "-1"),
        ] {
            assert!(source(&columns, &[(name, value)]).is_err(), "{name} = {value}");
        }
        let endless = source(&columns, &[("fields.n.min", "3"), ("fields.n.max", "3")]).unwrap();
        assert!(!endless.bounded());
    }
}
