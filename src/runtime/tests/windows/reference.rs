//! What the queries give over rows at rest, computed in the plainest way.

use std::collections::{BTreeMap, BTreeSet};

use super::super::algebra::query::{Row, Value};
use super::query::{Call, Cut, Query, TimedRow};

/// A table's rows as they come, with the watermark that each of them meets.
pub struct Stream {
    rows: Vec<(TimedRow, i64)>,
}

/// Start and end.
type Window = (i64, i64);

impl Stream {
    /// The watermark is the greatest time so far less the delay, and nothing up to 1970; with `late` it counts.
    pub fn new(rows: &[TimedRow], delay: i64, late: bool) -> Stream {
        let mut mark = i64::MIN;
        let met = rows.iter().map(|row| {
            let before = mark;
            if late && row.time - delay > 0 {
                mark = mark.max(row.time - delay);
            }
            (*row, before)
        });
        Stream { rows: met.collect() }
    }

    fn all(&self) -> impl Iterator<Item = &TimedRow> {
        self.rows.iter().map(|(row, _)| row)
    }

    /// The rows of each window that meet it open.
    fn windows(&self, cut: Cut, keep: impl Fn(&TimedRow) -> bool) -> BTreeMap<Window, Vec<TimedRow>> {
        let mut windows: BTreeMap<Window, Vec<TimedRow>> = BTreeMap::new();
        for (row, mark) in self.rows.iter().filter(|(row, _)| keep(row)) {
            for window in around(cut, row.time) {
                if window.1 - 1 > *mark {
                    windows.entry(window).or_default().push(*row);
                }
            }
        }
        windows
    }

    /// The rows of each session, of all rows or of each key.
    fn sessions(&self, gap: i64, keyed: bool, keep: impl Fn(&TimedRow) -> bool) -> Vec<(Window, Vec<TimedRow>)> {
        let mut by_key: BTreeMap<Option<i64>, Vec<TimedRow>> = BTreeMap::new();
        for row in self.all().filter(|row| keep(row)) {
            by_key.entry(row.key.filter(|_| keyed)).or_default().push(*row);
        }
        let mut sessions: Vec<(Window, Vec<TimedRow>)> = Vec::new();
        for mut rows in by_key.into_values() {
            rows.sort_by_key(|row| row.time);
            let mut last: Option<(Window, Vec<TimedRow>)> = None;
            for row in rows {
                match &mut last {
                    // Sessions that touch are one.
                    Some(((_, end), members)) if row.time <= *end => {
                        *end = row.time + gap;
                        members.push(row);
                    }
                    _ => sessions.extend(last.replace(((row.time, row.time + gap), vec![row]))),
                }
            }
            sessions.extend(last);
        }
        sessions
    }
}

/// The windows around a time: of all that could be, those in which it lies.
fn around(cut: Cut, time: i64) -> Vec<Window> {
    let starts = |every: i64, offset: i64, size: i64| {
        let first = (time - size - offset).div_euclid(every) - 1;
        let last = (time - offset).div_euclid(every) + 1;
        (first..=last).map(move |number| number * every + offset)
    };
    let candidates: Vec<Window> = match cut {
        Cut::Tumble { size, offset } => starts(size, offset, size).map(|start| (start, start + size)).collect(),
        Cut::Hop { slide, size, offset } => starts(slide, offset, size).map(|start| (start, start + size)).collect(),
        Cut::Cumulate { step, size, offset } => starts(size, offset, size)
            .flat_map(|start| (1..=size / step).map(move |steps| (start, start + steps * step)))
            .collect(),
        Cut::Session { .. } => unreachable!("a session is not of one row"),
    };
    candidates.into_iter().filter(|(start, end)| (*start..*end).contains(&time)).collect()
}

fn cell(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Int)
}

fn value(call: Call, rows: &[TimedRow]) -> Value {
    let values = || rows.iter().filter_map(|row| row.value);
    let total = |values: Vec<i64>| if values.is_empty() { Value::Null } else { Value::Int(values.iter().sum()) };
    match call {
        Call::CountRows => Value::Int(rows.len() as i64),
        Call::Count => Value::Int(values().count() as i64),
        Call::CountDistinct => Value::Int(values().collect::<BTreeSet<_>>().len() as i64),
        Call::Sum => total(values().collect()),
        Call::Min => cell(values().min()),
        Call::Max => cell(values().max()),
        Call::SumOfLater => total(rows.iter().filter(|row| row.id > 10).filter_map(|row| row.value).collect()),
    }
}

/// Rows by key, or all together under none.
fn by_key(rows: Vec<TimedRow>, keyed: bool) -> BTreeMap<Option<Option<i64>>, Vec<TimedRow>> {
    let mut groups: BTreeMap<Option<Option<i64>>, Vec<TimedRow>> = BTreeMap::new();
    for row in rows {
        groups.entry(keyed.then_some(row.key)).or_default().push(row);
    }
    groups
}

impl Query {
    /// The rows of the result.
    pub fn evaluate(&self, tables: &[Stream; 2]) -> Vec<Row> {
        let mut result: Vec<Row> = Vec::new();
        match self {
            Query::Aggregate { cut, keyed, at_least, calls, .. } => {
                let keep = |row: &TimedRow| at_least.is_none_or(|least| row.value.is_some_and(|value| value >= least));
                let windows: Vec<(Window, Vec<TimedRow>)> = match *cut {
                    Cut::Session { gap, keyed } => tables[0].sessions(gap, keyed, keep),
                    cut => tables[0].windows(cut, keep).into_iter().collect(),
                };
                for ((start, end), rows) in windows {
                    for (key, rows) in by_key(rows, *keyed) {
                        let mut row: Row = key.into_iter().map(cell).collect();
                        row.extend([Value::Int(start), Value::Int(end)]);
                        row.extend(calls.iter().map(|call| value(*call, &rows)));
                        result.push(row);
                    }
                }
            }
            Query::Top { cut, keyed, wanted } => {
                for ((start, end), rows) in tables[0].windows(*cut, |_| true) {
                    for (_, mut rows) in by_key(rows, *keyed) {
                        // NULL is the smallest value.
                        rows.sort_by_key(|row| (std::cmp::Reverse(row.value), row.id));
                        for (rank, row) in rows.iter().take(*wanted as usize).enumerate() {
                            result.push([start, end, row.id, rank as i64 + 1].map(Value::Int).to_vec());
                        }
                    }
                }
            }
            Query::Edge { cut, last } => {
                for ((start, end), rows) in tables[0].windows(*cut, |_| true) {
                    for (key, rows) in by_key(rows, true) {
                        let times = || rows.iter().map(|row| row.time);
                        let time = if *last { times().max() } else { times().min() };
                        let mut row: Row = key.into_iter().map(cell).collect();
                        row.extend([Value::Int(start), Value::Int(end), cell(time)]);
                        result.push(row);
                    }
                }
            }
            Query::Join { cut, kind } => {
                let [left, right] = [0, 1].map(|table| tables[table].windows(*cut, |_| true));
                let windows: BTreeSet<Window> = left.keys().chain(right.keys()).copied().collect();
                for window in windows {
                    let rows = |side: &BTreeMap<Window, Vec<TimedRow>>| side.get(&window).cloned().unwrap_or_default();
                    join(
                        kind,
                        &rows(&left),
                        &rows(&right),
                        |_, _| true,
                        |a, b| {
                            let mut row = vec![cell(a.map(|row| row.id))];
                            if ["SEMI", "ANTI"].contains(kind) {
                                row.push(Value::Int(window.0));
                            } else {
                                row.push(cell(b.map(|row| row.id)));
                                row.push(cell(a.map(|_| window.0)));
                                row.push(cell(b.map(|_| window.1)));
                            }
                            result.push(row);
                        },
                    );
                }
            }
            Query::Interval { kind, before, after } => {
                let [left, right]: [Vec<TimedRow>; 2] = [0, 1].map(|table| tables[table].all().copied().collect());
                let close = |a: &TimedRow, b: &TimedRow| (a.time - before..=a.time + after).contains(&b.time);
                join(kind, &left, &right, close, |a, b| {
                    result.push(vec![cell(a.map(|row| row.id)), cell(b.map(|row| row.id))]);
                });
            }
            Query::Cascade { inner, size } => {
                let mut outer: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
                for ((_, end), rows) in tables[0].windows(*inner, |_| true) {
                    for (_, rows) in by_key(rows, true) {
                        let start = (end - 1).div_euclid(*size) * size;
                        let (count, sum) = outer.entry(start).or_default();
                        *count += 1;
                        *sum += rows.len() as i64;
                    }
                }
                let rows = outer.into_iter().map(|(start, (count, sum))| [start, count, sum].map(Value::Int).to_vec());
                result.extend(rows);
            }
        }
        result
    }
}

/// Rows of equal keys that match, and those without a match as the kind of join has them.
fn join(
    kind: &str,
    left: &[TimedRow],
    right: &[TimedRow],
    matches: impl Fn(&TimedRow, &TimedRow) -> bool,
    mut tell: impl FnMut(Option<&TimedRow>, Option<&TimedRow>),
) {
    let matches = |a: &TimedRow, b: &TimedRow| a.key.is_some() && a.key == b.key && matches(a, b);
    for a in left {
        let partners: Vec<&TimedRow> = right.iter().filter(|b| matches(a, b)).collect();
        match (kind, partners.is_empty()) {
            ("SEMI", false) | ("ANTI" | "LEFT JOIN" | "FULL JOIN", true) => tell(Some(a), None),
            ("SEMI" | "ANTI", _) | (_, true) => {}
            (_, false) => partners.into_iter().for_each(|b| tell(Some(a), Some(b))),
        }
    }
    if kind == "FULL JOIN" {
        right.iter().filter(|b| !left.iter().any(|a| matches(a, b))).for_each(|b| tell(None, Some(b)));
    }
}
