//! The groups of open windows: a table for each, which rows go into which, and how all are saved as one.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

use super::aggregate::GroupTable;
use super::lateness::Lateness;
use super::window::{Placement, Window};
use crate::changelog::{ChangeBatch, Kinds};
use crate::error::{Error, Result};
use crate::state::{Restored, Scope, TableDelta};

/// Rows of deltas after which the tables are written anew, beside twice their own size.
const DELTA_ROWS: usize = 100_000;

/// The columns of a window in saved rows, behind the key group.
const WINDOW_COLUMNS: [&str; 2] = ["window_end", "window_start"];

/// The rows of each window that `passed` has not closed; late rows are counted and in none.
pub(super) fn assign(
    rows: usize,
    mut placement: Placement,
    passed: i64,
    late: &mut Lateness,
) -> BTreeMap<Window, Vec<u32>> {
    let mut assigned: BTreeMap<Window, Vec<u32>> = BTreeMap::new();
    // Rows come mostly in order, so most stand in the window of the row before.
    let (mut current, mut run): (Option<Window>, Vec<u32>) = (None, Vec::new());
    for row in 0..rows {
        let (mut last_moment, mut open) = (None, false);
        placement.for_each(row, |window| {
            last_moment = last_moment.max(Some(window.end - 1));
            if window.end - 1 <= passed {
                return;
            }
            open = true;
            if current != Some(window)
                && let Some(last) = current.replace(window)
            {
                append(&mut assigned, last, &mut run);
            }
            run.push(row as u32);
        });
        if let (Some(last_moment), false) = (last_moment, open) {
            late.record(passed, last_moment);
        }
    }
    if let Some(last) = current {
        append(&mut assigned, last, &mut run);
    }
    assigned
}

/// Moves a run of rows to the window's others.
fn append(assigned: &mut BTreeMap<Window, Vec<u32>>, window: Window, run: &mut Vec<u32>) {
    let rows = assigned.entry(window).or_default();
    if rows.is_empty() {
        *rows = std::mem::take(run);
    } else {
        rows.append(run);
    }
}

/// The rows `rows` of a batch.
pub(super) fn pick(batch: &ChangeBatch, rows: Vec<u32>) -> Result<ChangeBatch> {
    if rows.len() == batch.len() {
        return Ok(batch.clone());
    }
    let kinds = match batch.kinds() {
        Kinds::AllInsert => None,
        Kinds::Each(kinds) => Some(rows.iter().map(|row| kinds[*row as usize]).collect()),
    };
    let picked = take_record_batch(batch.rows(), &UInt32Array::from(rows))?;
    match kinds {
        None => Ok(ChangeBatch::inserts(picked)),
        Some(kinds) => ChangeBatch::new(picked, kinds),
    }
}

/// What snapshots hold of the tables of windows.
#[derive(Default)]
pub(super) struct SavedTables {
    saved: bool,
    /// Of windows that are gone since the last snapshot.
    forgotten: Vec<TableDelta>,
    delta_rows: usize,
}

impl SavedTables {
    /// A window is gone.
    ///
    /// # Errors
    /// Only by a bug.
    pub(super) fn forget(&mut self, window: Window, table: GroupTable) -> Result<()> {
        if self.saved {
            for delta in table.forget()? {
                self.forgotten.push(in_window(window, delta)?);
            }
        }
        Ok(())
    }

    /// What has changed since the last snapshot in all tables; `empty` is one without groups, of whose kind they are.
    ///
    /// # Errors
    /// Only by a bug.
    pub(super) fn snapshot<'a>(
        &mut self,
        mut empty: GroupTable,
        tables: impl Iterator<Item = (Window, &'a mut GroupTable)>,
    ) -> Result<Vec<TableDelta>> {
        let tables: Vec<(Window, &mut GroupTable)> = tables.collect();
        let groups: usize = tables.iter().map(|(_, table)| table.keys.len()).sum();
        let base = !self.saved || self.delta_rows > DELTA_ROWS + 2 * groups;
        let mut parts: BTreeMap<String, Parts> = BTreeMap::new();
        for delta in empty.snapshot(true, true)? {
            parts.entry(delta.table).or_default();
        }
        let mut written = 0;
        let mut add = |delta: TableDelta| {
            let part = parts.entry(delta.table).or_default();
            let rows = [&delta.upserts, &delta.deletes].into_iter().flatten().map(RecordBatch::num_rows);
            written += rows.sum::<usize>();
            part.upserts.extend(delta.upserts);
            part.deletes.extend(delta.deletes.filter(|_| !base));
        };
        self.forgotten.drain(..).for_each(&mut add);
        for (window, table) in tables {
            for delta in table.snapshot(base, base)? {
                add(in_window(window, delta)?);
            }
        }
        self.delta_rows = if base { 0 } else { self.delta_rows + written };
        self.saved = true;
        let whole = |(table, part): (String, Parts)| {
            Ok(TableDelta {
                table,
                scope: Scope::Keyed,
                base,
                upserts: together(&part.upserts)?,
                deletes: together(&part.deletes)?,
            })
        };
        parts.into_iter().map(whole).collect()
    }
}

/// Takes back what [`SavedTables::snapshot`] gave.
///
/// # Errors
/// If the saved rows do not fit.
pub(super) fn restore(
    from: &Restored,
    new_table: &dyn Fn() -> Result<GroupTable>,
) -> Result<BTreeMap<Window, GroupTable>> {
    let mut by_window: BTreeMap<Window, Restored> = BTreeMap::new();
    for delta in from.deltas.iter().filter(|delta| delta.scope == Scope::Keyed) {
        for (rows, upserts) in [(&delta.deletes, false), (&delta.upserts, true)] {
            let Some(rows) = rows else { continue };
            for (window, rows) in by_windows(&delta.table, rows)? {
                let (upserts, deletes) = if upserts { (Some(rows), None) } else { (None, Some(rows)) };
                let part = TableDelta { upserts, deletes, ..delta.clone() };
                by_window.entry(window).or_default().deltas.push(part);
            }
        }
    }
    let mut tables = BTreeMap::new();
    for (window, part) in by_window {
        let mut table = new_table()?;
        table.restore(&part)?;
        if table.keys.len() > 0 {
            tables.insert(window, table);
        }
    }
    Ok(tables)
}

/// A table's rows of several windows.
#[derive(Default)]
struct Parts {
    upserts: Vec<RecordBatch>,
    deletes: Vec<RecordBatch>,
}

fn together(parts: &[RecordBatch]) -> Result<Option<RecordBatch>> {
    match parts {
        [] => Ok(None),
        [first, ..] => Ok(Some(concat_batches(&first.schema(), parts)?)),
    }
}

/// A delta of one window's table as one of all windows': the window stands behind the key group.
fn in_window(window: Window, delta: TableDelta) -> Result<TableDelta> {
    let mut delta = delta.widened()?;
    for rows in [&mut delta.upserts, &mut delta.deletes].into_iter().flatten() {
        let mut fields = rows.schema().fields().to_vec();
        let mut columns = rows.columns().to_vec();
        for (place, (name, value)) in WINDOW_COLUMNS.into_iter().zip([window.end, window.start]).enumerate() {
            fields.insert(place + 1, Arc::new(Field::new(name, DataType::Int64, false)));
            columns.insert(place + 1, Arc::new(Int64Array::from(vec![value; rows.num_rows()])) as ArrayRef);
        }
        *rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    }
    Ok(delta)
}

/// The inverse of [`in_window`] over rows of many windows.
fn by_windows(table: &str, rows: &RecordBatch) -> Result<Vec<(Window, RecordBatch)>> {
    let whole = |place: usize| rows.columns().get(place).and_then(|column| column.as_primitive_opt::<Int64Type>());
    let (Some(ends), Some(starts)) = (whole(1), whole(2)) else {
        return Err(Error::state(format!("saved state table '{table}' has no windows")));
    };
    let mut places: BTreeMap<Window, Vec<u32>> = BTreeMap::new();
    for (row, (end, start)) in ends.values().iter().zip(starts.values()).enumerate() {
        places.entry(Window { end: *end, start: *start }).or_default().push(row as u32);
    }
    let columns: Vec<usize> = (0..rows.num_columns()).filter(|column| !(1..=2).contains(column)).collect();
    let narrow = rows.project(&columns)?;
    let parts = places.into_iter();
    parts.map(|(window, rows)| Ok((window, take_record_batch(&narrow, &UInt32Array::from(rows))?))).collect()
}
