//! The results of the rows around a change, with or without the changed row among them.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::{cast, interleave, take};

use super::OverTableParameters;
use super::aggregates::Aggregates;
use super::reach::Touched;
use crate::error::{Error, Result};
use crate::types::{Frame, FrameBound, FrameCall, FrameFunction, FrameUnits};

/// The rows around a change, with the changed row or without it.
pub struct Side<'a> {
    touched: &'a Touched,
    /// Where each row stands among all rows looked at.
    rows: Vec<u32>,
    /// Those whose results are computed.
    region: Range<usize>,
    /// For each row the first row of its value, and the one behind the last.
    peers: Vec<Range<usize>>,
    /// The order's values, of all rows looked at.
    numbers: Option<&'a Int64Array>,
    frame: Frame,
    calls: &'a [FrameCall],
    total: u64,
}

impl<'a> Side<'a> {
    /// `first`: where the rows around begin among all rows looked at.
    pub fn new(
        touched: &'a Touched,
        first: usize,
        with: bool,
        parameters: &'a OverTableParameters,
        numbers: Option<&'a Int64Array>,
    ) -> Side<'a> {
        let left_out = if with { None } else { Some(touched.place()) };
        let places: Vec<usize> = (0..touched.len()).filter(|place| Some(*place) != left_out).collect();
        let mut region = touched.region();
        if !with {
            region.end -= 1;
        }
        let mut peers: Vec<Range<usize>> = Vec::with_capacity(places.len());
        let mut start = 0;
        for end in 1..=places.len() {
            if end == places.len() || !touched.peers(places[start], places[end]) {
                peers.extend(std::iter::repeat_n(start..end, end - start));
                start = end;
            }
        }
        let total = touched.surroundings().2 - u64::from(!with);
        let rows = places.iter().map(|place| (first + place) as u32).collect();
        Side { touched, rows, region, peers, numbers, frame: parameters.frame, calls: &parameters.calls, total }
    }

    /// The rows of a row's frame.
    fn frame(&self, row: usize) -> Range<usize> {
        let count = self.rows.len();
        let clamp = |distance: u64| usize::try_from(distance).unwrap_or(usize::MAX);
        let (start, end) = match self.frame.units {
            FrameUnits::Rows => (
                match self.frame.start {
                    FrameBound::UnboundedPreceding => 0,
                    FrameBound::Preceding(rows) => row.saturating_sub(clamp(rows)),
                    FrameBound::CurrentRow => row,
                    FrameBound::Following(rows) => row.saturating_add(clamp(rows)),
                    FrameBound::UnboundedFollowing => count,
                },
                match self.frame.end {
                    FrameBound::UnboundedPreceding => 0,
                    FrameBound::Preceding(rows) => (row + 1).saturating_sub(clamp(rows)),
                    FrameBound::CurrentRow => row + 1,
                    FrameBound::Following(rows) => (row + 1).saturating_add(clamp(rows)),
                    FrameBound::UnboundedFollowing => count,
                },
            ),
            FrameUnits::Range => (
                match self.frame.start {
                    FrameBound::UnboundedPreceding => 0,
                    FrameBound::Preceding(units) => self.first_within(row, i128::from(units)),
                    FrameBound::CurrentRow => self.peers[row].start,
                    FrameBound::Following(units) => self.first_within(row, -i128::from(units)),
                    FrameBound::UnboundedFollowing => count,
                },
                match self.frame.end {
                    FrameBound::UnboundedPreceding => 0,
                    FrameBound::Preceding(units) => self.last_within(row, -i128::from(units)),
                    FrameBound::CurrentRow => self.peers[row].end,
                    FrameBound::Following(units) => self.last_within(row, i128::from(units)),
                    FrameBound::UnboundedFollowing => count,
                },
            ),
        };
        let end = end.min(count);
        start.min(end)..end
    }

    fn number(&self, row: usize) -> Option<i128> {
        let at = self.rows[row] as usize;
        self.numbers.filter(|numbers| numbers.is_valid(at)).map(|numbers| i128::from(numbers.value(at)))
    }

    /// The rows that have a value: NULLs stand at one end.
    fn valued(&self) -> Range<usize> {
        let count = self.rows.len();
        let null = |row: &usize| self.number(*row).is_none();
        let start = (0..count).take_while(null).count();
        let end = count - (start..count).rev().take_while(null).count();
        start..end
    }

    /// The first row whose value is at most so much before the row's; of a NULL, the first NULL.
    fn first_within(&self, row: usize, distance: i128) -> usize {
        let Some(number) = self.number(row) else { return self.peers[row].start };
        self.partition(|other| other < number - distance)
    }

    /// Behind the last row whose value is at most so much behind the row's; of a NULL, behind the last NULL.
    fn last_within(&self, row: usize, distance: i128) -> usize {
        let Some(number) = self.number(row) else { return self.peers[row].end };
        self.partition(|other| other <= number + distance)
    }

    /// The first row with a value of which this is not true.
    fn partition(&self, holds: impl Fn(i128) -> bool) -> usize {
        let Range { mut start, mut end } = self.valued();
        while start < end {
            let middle = start + (end - start) / 2;
            if self.number(middle).is_some_and(&holds) { start = middle + 1 } else { end = middle }
        }
        start
    }
}

/// Results of rows, as far as they can be told before the aggregates have run.
pub struct Evaluated<'a> {
    rows: &'a RecordBatch,
    /// Each evaluated row among all rows looked at.
    sources: Vec<u32>,
    /// By call.
    results: Vec<Results>,
    /// The image that holds the row's aggregates.
    images: Vec<u32>,
}

enum Results {
    Aggregate,
    Numbers(Vec<i64>),
    Shares(Vec<f64>),
    /// A row looked at; `None`: the default.
    Picks(Vec<Option<u32>>),
}

impl<'a> Evaluated<'a> {
    /// None yet.
    pub fn new(calls: &[FrameCall], rows: &'a RecordBatch) -> Evaluated<'a> {
        let results = calls.iter().map(|call| match &call.function {
            FrameFunction::Aggregate(_) => Results::Aggregate,
            FrameFunction::PercentRank | FrameFunction::CumeDist => Results::Shares(Vec::new()),
            FrameFunction::Shift { .. } | FrameFunction::First(_) | FrameFunction::Last(_) | FrameFunction::Nth(..) => {
                Results::Picks(Vec::new())
            }
            _ => Results::Numbers(Vec::new()),
        });
        Evaluated { rows, sources: Vec::new(), results: results.collect(), images: Vec::new() }
    }

    /// Each evaluated row among all rows looked at.
    pub fn sources(&self) -> UInt32Array {
        UInt32Array::from(self.sources.clone())
    }

    /// The results as columns.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn columns(&self, calls: &[FrameCall], rows: &RecordBatch, images: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let mut images = images.iter();
        let of_rows = UInt32Array::from(self.images.clone());
        let columns = calls.iter().zip(&self.results).map(|(call, results)| {
            let column: ArrayRef = match (results, &call.function) {
                (Results::Aggregate, _) => {
                    let images = images.next().ok_or_else(|| Error::bug("an aggregate without images"))?;
                    take(images, &of_rows, None)?
                }
                (Results::Numbers(numbers), _) => std::sync::Arc::new(Int64Array::from(numbers.clone())),
                (Results::Shares(shares), _) => std::sync::Arc::new(Float64Array::from(shares.clone())),
                (Results::Picks(picks), FrameFunction::Shift { column, default: Some(default), .. }) => {
                    self.with_default(rows.column(*column), rows.column(*default), picks)?
                }
                (
                    Results::Picks(picks),
                    FrameFunction::Shift { column, .. }
                    | FrameFunction::First(column)
                    | FrameFunction::Last(column)
                    | FrameFunction::Nth(column, _),
                ) => take(rows.column(*column), &UInt32Array::from(picks.clone()), None)?,
                (Results::Picks(_), _) => return Err(Error::bug("a function that picks rows without a column")),
            };
            let fits = column.data_type() == call.output.data_type();
            if fits { Ok(column) } else { Ok(cast(&column, call.output.data_type())?) }
        });
        columns.collect()
    }

    fn with_default(&self, values: &ArrayRef, default: &ArrayRef, picks: &[Option<u32>]) -> Result<ArrayRef> {
        if picks.is_empty() {
            return Ok(new_null_array(values.data_type(), 0));
        }
        let default = cast(default, values.data_type())?;
        let picks = picks.iter().zip(&self.sources);
        let picks: Vec<(usize, usize)> =
            picks.map(|(pick, own)| pick.map_or((1, *own as usize), |pick| (0, pick as usize))).collect();
        Ok(interleave(&[values.as_ref(), default.as_ref()], &picks)?)
    }
}

/// Evaluates the rows of a side, and gives where their results stand. With `after`, this is how it is after the change,
/// otherwise before it: aggregates that are kept go from the one to the other.
pub fn evaluate(side: &Side, into: &mut Evaluated, aggregates: &mut Aggregates, after: bool) -> Range<u32> {
    let first = into.sources.len() as u32;
    let (before, values_before, _) = side.touched.surroundings();
    let mut value = values_before;
    for row in 0..side.rows.len() {
        value += u64::from(side.peers[row].start == row);
        if !side.region.contains(&row) {
            continue;
        }
        into.sources.push(side.rows[row]);
        let rank = before + side.peers[row].start as u64 + 1;
        let total = side.total;
        for (call, results) in side.calls.iter().zip(&mut into.results) {
            match (&call.function, results) {
                (FrameFunction::RowNumber, Results::Numbers(numbers)) => numbers.push((before + row as u64 + 1) as i64),
                (FrameFunction::Rank, Results::Numbers(numbers)) => numbers.push(rank as i64),
                (FrameFunction::DenseRank, Results::Numbers(numbers)) => numbers.push(value as i64),
                (FrameFunction::Ntile(parts), Results::Numbers(numbers)) => {
                    numbers.push(part(before + row as u64, total, *parts) as i64);
                }
                (FrameFunction::PercentRank, Results::Shares(shares)) => {
                    shares.push(if total > 1 { (rank - 1) as f64 / (total - 1) as f64 } else { 0.0 });
                }
                (FrameFunction::CumeDist, Results::Shares(shares)) => {
                    shares.push((before + side.peers[row].end as u64) as f64 / total as f64);
                }
                (FrameFunction::Shift { rows, .. }, Results::Picks(picks)) => {
                    let at = i64::try_from(row).unwrap_or(i64::MAX).saturating_add(*rows);
                    picks.push(usize::try_from(at).ok().and_then(|at| side.rows.get(at)).copied());
                }
                (FrameFunction::First(column), Results::Picks(picks)) => {
                    let values = into.rows.column(*column);
                    let mut frame = side.rows[side.frame(row)].iter();
                    picks.push(frame.find(|row| values.is_valid(**row as usize)).copied());
                }
                (FrameFunction::Last(column), Results::Picks(picks)) => {
                    let values = into.rows.column(*column);
                    let mut frame = side.rows[side.frame(row)].iter().rev();
                    picks.push(frame.find(|row| values.is_valid(**row as usize)).copied());
                }
                (FrameFunction::Nth(_, number), Results::Picks(picks)) => {
                    let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
                    picks.push(side.rows[side.frame(row)].get(at).copied());
                }
                _ => {}
            }
        }
    }
    let has_aggregates = into.results.iter().any(|results| matches!(results, Results::Aggregate));
    match (has_aggregates, aggregates.kept(), after) {
        (false, ..) => into.images.resize(into.sources.len(), 0),
        (true, false, _) => slide(side, aggregates, &mut into.images),
        (true, true, false) => walk_back(side, aggregates, &mut into.images),
        (true, true, true) => walk_on(side, aggregates, &mut into.images),
    }
    first..into.sources.len() as u32
}

/// Which part the row is in when the partition is cut into so many, the first ones a row longer where it does not go up.
fn part(row: u64, total: u64, parts: u64) -> u64 {
    let (length, longer) = (total / parts, total % parts);
    let in_longer = longer * (length + 1);
    if row < in_longer { row / (length + 1) + 1 } else { longer + (row - in_longer) / length.max(1) + 1 }
}

/// Rows enter and leave as the frame moves over them; at the end none is left.
fn slide(side: &Side, aggregates: &mut Aggregates, images: &mut Vec<u32>) {
    let (mut start, mut end) = (0, 0);
    let mut last = None;
    for row in side.region.clone() {
        let frame = side.frame(row);
        if start == end {
            // Nothing is in between: what lies before the frame need not enter at all.
            (start, end) = (frame.start, frame.start);
        }
        while end < frame.end {
            last = Some(aggregates.enter(side.rows[end]));
            end += 1;
        }
        while start < frame.start {
            last = Some(aggregates.leave(side.rows[start]));
            start += 1;
        }
        let step = last.unwrap_or_else(|| {
            // The aggregates of nothing: those after a row has come and gone.
            aggregates.enter(side.rows[row]);
            aggregates.leave(side.rows[row])
        });
        last = Some(step);
        images.push(step * 2 + 1);
    }
    for row in start..end {
        aggregates.leave(side.rows[row]);
    }
}

/// The rows leave from the last on: before a row leaves, its frame is whole.
fn walk_back(side: &Side, aggregates: &mut Aggregates, images: &mut Vec<u32>) {
    let mut steps = vec![0; side.region.len()];
    for row in side.region.clone().rev() {
        steps[row - side.region.start] = aggregates.leave(side.rows[row]);
    }
    images.extend(side.region.clone().map(|row| steps[last_of_frame(side, row) - side.region.start] * 2));
}

/// The rows enter again: once the last of a row's frame has, the frame is whole.
fn walk_on(side: &Side, aggregates: &mut Aggregates, images: &mut Vec<u32>) {
    let steps: Vec<u32> = side.region.clone().map(|row| aggregates.enter(side.rows[row])).collect();
    images.extend(side.region.clone().map(|row| steps[last_of_frame(side, row) - side.region.start] * 2 + 1));
}

fn last_of_frame(side: &Side, row: usize) -> usize {
    match side.frame.units {
        FrameUnits::Rows => row,
        FrameUnits::Range => side.peers[row].end - 1,
    }
}
