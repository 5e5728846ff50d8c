//! The functions of grouped windows in their old form: `TUMBLE(t, size)` and its kin in GROUP BY, and `TUMBLE_START(…)`
//! and its kin that read the window's bounds. The planner replaces the grouping by a window operator that gives a row
//! of `window_start`, `window_end` and `window_time`; the readers take it apart.
//!
//! Also the functions that the planner replaces by what only operators know: CURRENT_WATERMARK, SOURCE_WATERMARK.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::function::{Arguments, Call, Entry, Typing};
use super::parameter::Parameter::{self, Interval, Row, Temporal};
use crate::error::{Error, Result};
use crate::types::{RowField, SqlType};

/// The columns of a window's row.
const COLUMNS: [&str; 3] = ["window_start", "window_end", "window_time"];

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const TWO: &[&[Parameter]] = &[&[Temporal, Interval], &[Temporal, Interval, Interval]];
    const THREE: &[&[Parameter]] = &[&[Temporal, Interval, Interval], &[Temporal, Interval, Interval, Interval]];
    const WINDOW: &[&[Parameter]] = &[&[Row]];
    const TIME: &[&[Parameter]] = &[&[Temporal]];
    let group = |names, forms| Entry::new(names, forms, Typing::By(window_type), outside_group);
    let start = |names| Entry::new(names, WINDOW, Typing::By(|a| bound_type(a, 0)), |call| bound(call, 0));
    let end = |names| Entry::new(names, WINDOW, Typing::By(|a| bound_type(a, 1)), |call| bound(call, 1));
    let time = |names| Entry::new(names, WINDOW, Typing::By(|a| bound_type(a, 2)), |call| bound(call, 2));
    let clock = |names| Entry::new(names, WINDOW, Typing::By(clock_type), processing_time);
    vec![
        group(&["tumble"], TWO),
        group(&["hop"], THREE),
        group(&["session"], TWO),
        start(&["tumble_start"]),
        start(&["hop_start"]),
        start(&["session_start"]),
        end(&["tumble_end"]),
        end(&["hop_end"]),
        end(&["session_end"]),
        time(&["tumble_rowtime"]),
        time(&["hop_rowtime"]),
        time(&["session_rowtime"]),
        clock(&["tumble_proctime"]),
        clock(&["hop_proctime"]),
        clock(&["session_proctime"]),
        Entry::new(&["current_watermark"], TIME, Typing::By(watermark_type), outside_plan).volatile(),
        Entry::new(&["source_watermark"], &[&[]], Typing::Nullable(SqlType::TimestampLtz(3)), outside_plan).volatile(),
    ]
}

fn window_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let time = match arguments.sql_type(0) {
        SqlType::TimestampLtz(_) => SqlType::TimestampLtz(3),
        SqlType::Timestamp(_) => SqlType::Timestamp(3),
        other => {
            return Err(Error::sql(format!("{} needs a time attribute, not {other}", arguments.name))
                .hint("declare one with WATERMARK FOR, or as PROCTIME()"));
        }
    };
    let types = [SqlType::Timestamp(3), SqlType::Timestamp(3), time];
    // The window's time may be NULL as far as its type goes if the attribute may, as in Flink.
    let nullable = [false, false, arguments.nullable()];
    let field = |((name, sql_type), nullable): ((&&str, SqlType), bool)| RowField {
        name: name.to_string(),
        sql_type,
        nullable,
    };
    Ok((SqlType::Row(COLUMNS.iter().zip(types).zip(nullable).map(field).collect()), false))
}

/// The bounds of a window are local times of three digits; its time keeps the type of the time attribute.
fn bound_type(arguments: &Arguments<'_>, index: usize) -> Result<(SqlType, bool)> {
    match arguments.sql_type(0) {
        SqlType::Row(fields) if fields.len() == COLUMNS.len() => {
            Ok((fields[index].sql_type.clone(), fields[index].nullable))
        }
        other => Err(Error::sql(format!("{} needs the window of GROUP BY, not {other}", arguments.name))
            .hint("repeat the call of TUMBLE, HOP or SESSION as it stands in GROUP BY")),
    }
}

/// The processing time of a window; NULL if its time is no instant, which that of the clock always is.
fn clock_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    bound_type(arguments, 2)?;
    Ok((SqlType::TimestampLtz(3), true))
}

fn processing_time(call: &Call<'_>) -> Result<ArrayRef> {
    match call.column(0)?.data_type() {
        DataType::Struct(fields) if matches!(fields[2].data_type(), DataType::Timestamp(_, Some(_))) => bound(call, 2),
        _ => Ok(new_null_array(call.result.data_type(), call.column(0)?.len())),
    }
}

fn bound(call: &Call<'_>, index: usize) -> Result<ArrayRef> {
    let column = call.column(0)?;
    let DataType::Struct(_) = column.data_type() else {
        return Err(Error::bug(format!("a window came as {}", column.data_type())));
    };
    let bound = column.as_struct().column(index);
    Ok(if bound.data_type() == call.result.data_type() { bound.clone() } else { cast(bound, call.result.data_type())? })
}

fn watermark_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((arguments.sql_type(0), true))
}

fn outside_group(call: &Call<'_>) -> Result<ArrayRef> {
    Err(Error::sql(format!("{} must stand in GROUP BY", call.name)))
}

fn outside_plan(call: &Call<'_>) -> Result<ArrayRef> {
    Err(Error::sql(format!("{} has no meaning here", call.name)))
}

/// Puts a window's three columns into the row that `TUMBLE(…)` in `GROUP BY` stands for, of type `row`.
pub fn pack_window(row: DataType) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(PackWindow {
        row,
        signature: Signature::any(COLUMNS.len(), Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PackWindow {
    row: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for PackWindow {
    fn name(&self) -> &str {
        "pack_window"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> datafusion_common::Result<DataType> {
        Ok(self.row.clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> datafusion_common::Result<Arc<Field>> {
        Ok(Arc::new(Field::new(self.name(), self.row.clone(), false)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> datafusion_common::Result<ColumnarValue> {
        let DataType::Struct(fields) = &self.row else {
            return datafusion_common::internal_err!("a window is packed into {}", self.row);
        };
        let columns = arguments.args.iter().zip(fields).map(|(column, field)| {
            let column = column.to_array(arguments.number_rows)?;
            Ok(if column.data_type() == field.data_type() { column } else { cast(&column, field.data_type())? })
        });
        let columns = columns.collect::<datafusion_common::Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(Arc::new(StructArray::try_new(fields.clone(), columns, None)?)))
    }
}
