//! Which rows a change touches, and which rows are needed to compute them.

use std::ops::Bound;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};

use crate::error::{Error, Result};
use crate::state::{Encoded, Position, Row, SortedRows};
use crate::types::{Frame, FrameBound, FrameCall, FrameFunction, FrameUnits, SortColumn};

/// How far to look in one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    /// To the partition's edge.
    all: bool,
    /// So many rows.
    rows: u64,
    /// To the edge of the rows of the same value.
    peers: bool,
    /// So many units of the order's value.
    units: Option<u64>,
}

impl Extent {
    const ALL: Extent = Extent { all: true, rows: 0, peers: false, units: None };

    fn and(self, other: Extent) -> Extent {
        Extent {
            all: self.all || other.all,
            rows: self.rows.max(other.rows),
            peers: self.peers || other.peers,
            units: self.units.max(other.units),
        }
    }

    fn rows(rows: u64) -> Extent {
        Extent { rows, ..Extent::default() }
    }
}

/// How far a change reaches, for one order, frame and set of functions.
pub struct Reach {
    /// Rows before and behind a change whose results may change.
    back: Extent,
    ahead: Extent,
    /// Rows before the first and behind the last of these that are needed beside.
    more_back: Extent,
    more_ahead: Extent,
    /// The order's column, where distances are measured in its values.
    measured: Option<SortColumn>,
}

/// The keys at which the reach of each row of a batch ends, if it is measured in values: for the results that may
/// change, and for the rows needed beside.
pub struct BatchBounds(Option<[Encoded; 4]>);

/// The keys of one row.
pub struct Bounds<'a>(Option<[&'a [u8]; 4]>);

/// The rows around a change, the changed row among them.
pub struct Touched {
    positions: Vec<(Position, Row)>,
    /// Which of them may have other results.
    region: std::ops::Range<usize>,
    /// Which is the changed row.
    place: usize,
    /// Rows of the partition before these.
    before: u64,
    /// Values of the order before the first of these.
    values_before: u64,
    /// Rows of the partition, the changed one among them.
    total: u64,
}

impl Touched {
    /// The rows around, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.positions.iter().map(|(_, row)| row)
    }

    /// How many rows there are around, the changed one among them.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// The changed row among the rows around.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The changed row among those that may have other results.
    pub fn place_in_region(&self) -> usize {
        self.place - self.region.start
    }

    /// How many rows may have other results, the changed one among them.
    pub fn region_len(&self) -> usize {
        self.region.len()
    }

    /// Which rows may have other results.
    pub fn region(&self) -> std::ops::Range<usize> {
        self.region.clone()
    }

    /// Whether two of the rows are of one value.
    pub fn peers(&self, left: usize, right: usize) -> bool {
        self.positions[left].0.key == self.positions[right].0.key
    }

    /// Rows, and values of the order, of the partition before these; and all its rows with the changed one.
    pub fn surroundings(&self) -> (u64, u64, u64) {
        (self.before, self.values_before, self.total)
    }
}

impl Reach {
    /// `kept`: the aggregates of the whole partition are at hand, so that rows before a change are not needed for them.
    ///
    /// # Errors
    /// If the frame measures in values of an order that cannot be measured.
    pub fn new(
        input: &SchemaRef,
        order: &[SortColumn],
        frame: Frame,
        calls: &[FrameCall],
        kept: bool,
    ) -> Result<Reach> {
        let (mut back, mut ahead) = (Extent::default(), Extent::default());
        let (mut more_back, mut more_ahead) = (Extent::default(), Extent::default());
        for call in calls {
            let framed = match &call.function {
                FrameFunction::RowNumber => {
                    ahead = ahead.and(Extent::ALL);
                    false
                }
                FrameFunction::Rank | FrameFunction::DenseRank => {
                    back.peers = true;
                    ahead = ahead.and(Extent::ALL);
                    more_back.peers = true;
                    false
                }
                FrameFunction::Ntile(_) | FrameFunction::PercentRank | FrameFunction::CumeDist => {
                    (back, ahead) = (Extent::ALL, Extent::ALL);
                    false
                }
                FrameFunction::Shift { rows, .. } => {
                    let distance = Extent::rows(rows.unsigned_abs());
                    if *rows < 0 {
                        (ahead, more_back) = (ahead.and(distance), more_back.and(distance));
                    } else {
                        (back, more_ahead) = (back.and(distance), more_ahead.and(distance));
                    }
                    false
                }
                FrameFunction::Aggregate(_) => true,
                FrameFunction::First(_) | FrameFunction::Last(_) | FrameFunction::Nth(..) => true,
            };
            if framed {
                // A row's frame that begins so far before it holds changes that lie so far before: those behind the
                // change, so far, are touched.
                ahead = ahead.and(backward(frame.units, frame.start));
                back = back.and(forward(frame.units, frame.end));
                let kept = kept && matches!(call.function, FrameFunction::Aggregate(_));
                if !kept {
                    more_back = more_back.and(backward(frame.units, frame.start));
                    more_ahead = more_ahead.and(forward(frame.units, frame.end));
                }
            }
        }
        let in_units = [back, ahead, more_back, more_ahead].iter().any(|extent| extent.units.is_some());
        let measured = match (in_units, order) {
            (false, _) => None,
            (true, [only]) if is_measurable(input.field(only.column).data_type()) => Some(*only),
            (true, _) => {
                return Err(Error::sql(
                    "a RANGE of so much before or after needs ORDER BY one whole number or timestamp",
                ));
            }
        };
        Ok(Reach { back, ahead, more_back, more_ahead, measured })
    }

    /// The order's values as numbers that grow in the order's direction, where they are needed.
    pub fn numbers(&self, rows: &RecordBatch) -> Result<Option<Int64Array>> {
        let Some(order) = self.measured else { return Ok(None) };
        let numbers = cast(rows.column(order.column), &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        Ok(Some(if order.descending { numbers.unary(|number| number.saturating_neg()) } else { numbers.clone() }))
    }

    /// Where the reach of each row ends.
    pub fn bounds(&self, rows: &SortedRows, batch: &RecordBatch) -> Result<BatchBounds> {
        let Some(order) = self.measured else { return Ok(BatchBounds(None)) };
        let units = |extent: Extent| extent.units.unwrap_or(0);
        let back = units(self.back);
        let ahead = units(self.ahead);
        let distances = [
            (true, back),
            (false, ahead),
            (true, back.saturating_add(units(self.more_back))),
            (false, ahead.saturating_add(units(self.more_ahead))),
        ];
        let keys = distances.map(|(back, distance)| {
            let moved = moved(batch.column(order.column), distance, back != order.descending)?;
            let mut columns = batch.columns().to_vec();
            columns[order.column] = moved;
            rows.encode_keys(&columns)
        });
        let [a, b, c, d] = keys;
        Ok(BatchBounds(Some([a?, b?, c?, d?])))
    }

    /// The rows around a row that is in its place; `values`: how many values of the order the partition has.
    pub fn around(&self, rows: &SortedRows, slot: u32, at: &Position, bounds: &Bounds, values: u64) -> Touched {
        let key = |which: usize| bounds.0.map(|keys| keys[which]);
        let region = (
            lower(rows, slot, at, self.back, key(0)).unwrap_or_else(|| at.clone()),
            upper(rows, slot, at, self.ahead, key(1)).unwrap_or_else(|| at.clone()),
        );
        let from = match lower(rows, slot, &region.0, self.more_back, key(2)) {
            Some(lower) => Bound::Included(lower.min(region.0.clone())),
            None => Bound::Included(region.0.clone()),
        };
        let to = match upper(rows, slot, &region.1, self.more_ahead, key(3)) {
            Some(upper) => Bound::Included(upper.max(region.1.clone())),
            None => Bound::Included(region.1.clone()),
        };
        let positions: Vec<(Position, Row)> =
            rows.between(slot, (from, to)).map(|(position, row)| (position.clone(), Arc::clone(row))).collect();
        let first = positions.partition_point(|(position, _)| *position < region.0);
        let end = positions.partition_point(|(position, _)| *position <= region.1);
        let place = positions.partition_point(|(position, _)| position < at);
        let total = rows.len(slot) as u64;
        // Where it matters, the rows around go to the partition's end.
        let before = total - positions.len() as u64;
        let around = positions.chunk_by(|(left, _), (right, _)| left.key == right.key).count() as u64;
        let values_before = values.saturating_sub(around);
        Touched { positions, region: first..end, place, before, values_before, total }
    }
}

impl BatchBounds {
    /// Those of a row.
    pub fn row(&self, row: usize) -> Bounds<'_> {
        Bounds(self.0.as_ref().map(|keys| [keys[0].get(row), keys[1].get(row), keys[2].get(row), keys[3].get(row)]))
    }
}

/// How far before a row its frame begins.
fn backward(units: FrameUnits, start: FrameBound) -> Extent {
    match (units, start) {
        (_, FrameBound::UnboundedPreceding) => Extent::ALL,
        (FrameUnits::Rows, FrameBound::Preceding(rows)) => Extent::rows(rows),
        (FrameUnits::Range, FrameBound::Preceding(units)) => {
            Extent { units: Some(units), peers: true, ..Extent::default() }
        }
        (FrameUnits::Range, FrameBound::CurrentRow) => Extent { peers: true, ..Extent::default() },
        // Not before it at all; the values behind it that are skipped are still of the order that is measured.
        (FrameUnits::Range, FrameBound::Following(_)) => Extent { units: Some(0), peers: true, ..Extent::default() },
        _ => Extent::default(),
    }
}

/// How far behind a row its frame ends.
fn forward(units: FrameUnits, end: FrameBound) -> Extent {
    match (units, end) {
        (_, FrameBound::UnboundedFollowing) => Extent::ALL,
        (FrameUnits::Rows, FrameBound::Following(rows)) => Extent::rows(rows),
        (FrameUnits::Range, FrameBound::Following(units)) => {
            Extent { units: Some(units), peers: true, ..Extent::default() }
        }
        (FrameUnits::Range, FrameBound::CurrentRow) => Extent { peers: true, ..Extent::default() },
        (FrameUnits::Range, FrameBound::Preceding(_)) => Extent { units: Some(0), peers: true, ..Extent::default() },
        _ => Extent::default(),
    }
}

/// Where the reach before a row ends; `None`: at the row.
fn lower(rows: &SortedRows, slot: u32, at: &Position, extent: Extent, key: Option<&[u8]>) -> Option<Position> {
    if extent.all {
        return rows.iter(slot).next().map(|(first, _)| first.clone());
    }
    let by_rows = match usize::try_from(extent.rows).unwrap_or(usize::MAX) {
        0 => None,
        count => rows.before(slot, at).take(count).last().map(|(position, _)| position.clone()),
    };
    let first = |key: &[u8]| Position { key: key.into(), sequence: i64::MIN };
    let peers = extent.peers.then(|| first(&at.key));
    let by_units = extent.units.and(key).map(first);
    [by_rows, peers, by_units].into_iter().flatten().min()
}

/// Where the reach behind a row ends; `None`: at the row.
fn upper(rows: &SortedRows, slot: u32, at: &Position, extent: Extent, key: Option<&[u8]>) -> Option<Position> {
    if extent.all {
        return rows.last(slot).map(|(last, _)| last.clone());
    }
    let by_rows = match usize::try_from(extent.rows).unwrap_or(usize::MAX) {
        0 => None,
        count => rows.after(slot, at).take(count).last().map(|(position, _)| position.clone()),
    };
    let last = |key: &[u8]| Position { key: key.into(), sequence: i64::MAX };
    let peers = extent.peers.then(|| last(&at.key));
    let by_units = extent.units.and(key).map(last);
    [by_rows, peers, by_units].into_iter().flatten().max()
}

fn is_measurable(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Timestamp(..))
}

/// The values so far down or up; they stop at the type's ends.
fn moved(column: &ArrayRef, distance: u64, down: bool) -> Result<ArrayRef> {
    let distance = i64::try_from(distance).unwrap_or(i64::MAX);
    let numbers = cast(column, &DataType::Int64)?;
    let moved: Int64Array = numbers
        .as_primitive::<Int64Type>()
        .unary(|number| if down { number.saturating_sub(distance) } else { number.saturating_add(distance) });
    let (least, greatest) = match column.data_type() {
        DataType::Int8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let moved: Int64Array = moved.unary(|number| number.clamp(least, greatest));
    Ok(cast(&moved, column.data_type())?)
}
