//! Late rows on their way to a table of their own: `table.exec.late-data.table`.
//!
//! ```text
//! WatermarkAssigner ─▶ LateMark ─▶ Calc(where not late) ─▶ WindowTableFunction …
//!                          └─────▶ Calc(where late) ─▶ Sink
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{Column, DFSchema};
use datafusion_expr::Expr;

use super::{Facts, Translation, forward};
use crate::catalog::TableDefinition;
use crate::error::{Error, Result};
use crate::plan::error::unwrap;
use crate::plan::stream::{NodeId, NodeKind, StateBound};
use crate::types::{SqlType, WindowSpec, WindowTime};

/// The column of the mark; no column of a table has such a name.
const LATE: &str = "$late";

impl Translation<'_> {
    /// The rows of `input` that are on time for the window; the others go to the table for late rows, if there is one.
    ///
    /// # Errors
    /// If late rows cannot be told, or do not fit the table.
    pub(super) fn without_late_rows(
        &mut self,
        input: NodeId,
        time: usize,
        window: WindowSpec,
        moment: WindowTime,
        schema: &DFSchema,
    ) -> Result<NodeId> {
        let Some(table) = self.late_table.clone() else { return Ok(input) };
        if moment == WindowTime::Processing || !self.node(input).rowtime.contains(&time) {
            return Ok(input);
        }
        if let Some((.., on_time)) = self.on_time.iter().find(|(from, spec, _)| *from == input && *spec == window) {
            return Ok(*on_time);
        }
        let refused = match window {
            WindowSpec::Session { .. } => Some("sessions: whether a row is late depends on those that are open"),
            _ if !self.node(input).mode.is_append_only() => Some("rows that change: they have no row of their own"),
            _ => None,
        };
        if let Some(what) = refused {
            return Err(Error::sql(format!("late rows cannot be set aside for {what}"))
                .hint("RESET 'table.exec.late-data.table'"));
        }
        let mut fields: Vec<_> =
            schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
        fields.push((None, Arc::new(Field::new(LATE, DataType::Boolean, false))));
        let marked = DFSchema::new_with_metadata(fields, HashMap::new()).map_err(unwrap)?;
        let marked = Arc::new(marked);
        let mut facts = Facts::like(self.node(input));
        facts.schema = Arc::clone(marked.inner());
        facts.state = StateBound::Bounded("one watermark a subtask".into());
        let mark = self.add(NodeKind::LateMark { time, window }, vec![forward(input)], facts);
        let late = Expr::Column(Column::from_name(LATE));
        let own = schema.columns().into_iter().map(Expr::Column).collect();
        let condition = Some(late.clone().is_not_true());
        let on_time = self.add_calc(mark, Arc::clone(&marked), condition, own, Arc::clone(schema.inner()))?;
        let values = late_columns(&table, schema)?;
        let rows = self.add_calc(mark, marked, Some(late), values, table.sink_schema())?;
        // Fails where the table can only be read.
        self.facts.sink_accepts(&table)?;
        self.sink(rows, &table);
        self.on_time.push((input, window, on_time));
        Ok(on_time)
    }
}

/// The columns of the table, each the one of the input that has its name and type.
fn late_columns(table: &TableDefinition, schema: &DFSchema) -> Result<Vec<Expr>> {
    let value = |field: &Arc<Field>| {
        let same = schema.iter().filter(|(_, own)| own.name() == field.name()).collect::<Vec<_>>();
        let [(qualifier, own)] = same.as_slice() else {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            return Err(Error::sql(format!(
                "table '{}' for late rows has a column '{}', and the rows of the window do not",
                table.name,
                field.name()
            ))
            .hint(format!("its columns can be: {}", names.join(", "))));
        };
        let column = Expr::Column(Column::new(qualifier.cloned(), own.name()));
        if own.data_type() == field.data_type() {
            return Ok(column);
        }
        let (from, to) = (SqlType::of_field(own), SqlType::of_field(field));
        Err(Error::sql(format!(
            "column '{}' of table '{}' for late rows is {to}, and that of the rows is {from}",
            field.name(),
            table.name
        )))
    };
    table.sink_schema().fields().iter().map(value).collect()
}
