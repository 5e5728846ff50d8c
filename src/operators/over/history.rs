//! The rows before: what of a partition's past is still in a frame or can be looked back to.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{FieldRef, SchemaRef};

use crate::changelog::{ChangeBatch, Kind};
use crate::error::Result;
use crate::operators::event_time::row_times;
use crate::state::{KeyTable, Position, Restored, SortedRows, TableDelta};
use crate::types::{OverCall, OverFrame, SortColumn};

/// The table of kept rows in a snapshot.
const KEPT: &str = "kept";

/// The kept rows of all partitions.
pub(super) struct History {
    schema: SchemaRef,
    keys: KeyTable,
    kept: SortedRows,
    time: Option<usize>,
    frame: OverFrame,
    /// How many rows before a row are looked back to.
    back: u64,
}

/// A partition's part in a batch.
struct Partition {
    slot: u32,
    /// Its rows in order, as places in [`Frames::rows`]: kept ones, then new ones.
    places: Vec<u32>,
    /// How many of them were kept already.
    kept: usize,
    /// The first of them in the frame of the last row seen.
    start: usize,
    positions: Vec<Position>,
}

/// New rows with their past: rows, and which of them each new row's frame takes in and lets go.
pub(super) struct Frames {
    /// The kept rows of the partitions at hand, then the new ones.
    rows: RecordBatch,
    /// Milliseconds.
    times: Vec<i64>,
    /// Where the new rows begin.
    first: usize,
    partitions: Vec<Partition>,
    /// For each new row its partition, and its place among the partition's rows.
    members: Vec<(usize, usize)>,
    /// For each new row the place among its partition's rows of the last row of its frame.
    ends: Vec<usize>,
    /// Which rows enter and leave the aggregates, in order.
    changes: Vec<(u32, Kind)>,
    /// For each new row the change with which it enters.
    entered: Vec<u32>,
    /// For each new row the change after which its frame is complete.
    complete: Vec<u32>,
}

impl History {
    pub fn new(
        input: &SchemaRef,
        partition: Vec<FieldRef>,
        order: &[SortColumn],
        frame: OverFrame,
        calls: &[OverCall],
    ) -> Result<History> {
        let back = calls.iter().map(|call| match call {
            OverCall::Lag { offset, .. } => *offset,
            OverCall::Aggregate(_) | OverCall::RowNumber(_) => 0,
        });
        Ok(History {
            schema: Arc::clone(input),
            keys: KeyTable::new(partition)?,
            kept: SortedRows::new(input, order, false, false)?,
            time: order.first().map(|order| order.column),
            frame,
            back: back.max().unwrap_or(0),
        })
    }

    /// Lines new rows up behind those that are kept of their partitions.
    ///
    /// # Errors
    /// If a partition key has no row form.
    pub fn frames(&mut self, new: &RecordBatch, partition: &[ArrayRef], times: &Int64Array) -> Result<Frames> {
        let mut slots = Vec::new();
        self.keys.slots_of(partition, new.num_rows(), &mut slots)?;
        self.keys.touch(&slots);
        self.kept.grow(self.keys.capacity());
        let mut by_slot: HashMap<u32, usize> = HashMap::new();
        let mut partitions: Vec<Partition> = Vec::new();
        let mut rows = Vec::new();
        for slot in &slots {
            by_slot.entry(*slot).or_insert_with(|| {
                let from = rows.len() as u32;
                let positions: Vec<Position> = self.kept.iter(*slot).map(|(position, _)| position.clone()).collect();
                rows.extend(self.kept.iter(*slot).map(|(_, row)| Arc::clone(row)));
                let places: Vec<u32> = (from..rows.len() as u32).collect();
                partitions.push(Partition { slot: *slot, kept: places.len(), places, start: 0, positions });
                partitions.len() - 1
            });
        }
        let first = rows.len();
        let old = RecordBatch::try_new(Arc::clone(&self.schema), self.kept.decode(rows.iter())?)?;
        let mut all_times = match self.time {
            Some(time) => row_times(&old, time)?.values().to_vec(),
            None => vec![0; first],
        };
        all_times.extend(times.values());
        for partition in &mut partitions {
            partition.start = self.frame_start(partition, &all_times);
        }
        let members = slots.iter().enumerate().map(|(row, slot)| {
            let partition = by_slot[slot];
            partitions[partition].places.push((first + row) as u32);
            (partition, partitions[partition].places.len() - 1)
        });
        let members: Vec<(usize, usize)> = members.collect();
        let rows = concat_batches(&self.schema, [&old, new])?;
        let (ends, changes, entered, complete) = Default::default();
        let mut frames =
            Frames { rows, times: all_times, first, partitions, members, ends, changes, entered, complete };
        frames.settle(self.frame, self.time.is_some());
        Ok(frames)
    }

    /// Where the frame of the last kept row begins; kept rows before it are only looked back to.
    fn frame_start(&self, partition: &Partition, times: &[i64]) -> usize {
        match self.frame {
            OverFrame::Rows(Some(rows)) => {
                partition.kept.saturating_sub(usize::try_from(rows).unwrap_or(usize::MAX).saturating_add(1))
            }
            OverFrame::Range(Some(length)) => {
                let time = |place: &u32| times[*place as usize];
                let Some(last) = partition.places.last().map(time) else { return 0 };
                let from = last.saturating_sub(i64::try_from(length).unwrap_or(i64::MAX));
                partition.places.partition_point(|place| time(place) < from)
            }
            OverFrame::Rows(None) | OverFrame::Range(None) => partition.kept,
        }
    }

    /// Keeps what later rows may need.
    ///
    /// # Errors
    /// If a row has no row form.
    pub fn keep(&mut self, frames: Frames) -> Result<()> {
        let bounded = matches!(self.frame, OverFrame::Rows(Some(_)) | OverFrame::Range(Some(_)));
        let back = usize::try_from(self.back).unwrap_or(usize::MAX);
        let sort_keys = self.kept.encode_keys(frames.rows.columns())?;
        let encoded = self.kept.encode_rows(frames.rows.columns())?;
        for partition in &frames.partitions {
            let all = partition.places.len();
            let in_frame = if bounded { partition.start } else { all };
            let from = in_frame.min(all.saturating_sub(back));
            for position in &partition.positions[..from.min(partition.kept)] {
                self.kept.remove(partition.slot, position);
            }
            for place in &partition.places[from.max(partition.kept)..] {
                let row = *place as usize;
                self.kept.insert(partition.slot, sort_keys.get(row), encoded.get(row).into());
            }
            if self.kept.len(partition.slot) == 0 {
                self.keys.remove(partition.slot);
            }
        }
        Ok(())
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.kept.bytes()
    }

    /// Gives back the memory of many partitions that are all gone.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn shrink(&mut self) -> Result<()> {
        if self.keys.shrink()? {
            self.kept.shrink();
        }
        Ok(())
    }

    /// Forgets the rows of these partitions.
    ///
    /// # Errors
    /// If a partition key has no row form.
    pub fn forget(&mut self, partitions: &[ArrayRef], count: usize) -> Result<()> {
        let mut slots = Vec::new();
        self.keys.slots_of(partitions, count, &mut slots)?;
        self.keys.touch(&slots);
        self.kept.grow(self.keys.capacity());
        for slot in slots {
            self.kept.take(slot).for_each(drop);
            self.keys.remove(slot);
        }
        Ok(())
    }

    pub fn snapshot(&mut self, base: bool) -> Result<TableDelta> {
        let kept = self.kept.snapshot(KEPT, &self.keys, base)?;
        self.keys.finish_snapshot();
        Ok(kept)
    }

    pub fn restore(&mut self, from: &Restored) -> Result<()> {
        self.kept.restore(KEPT, &mut self.keys, from)
    }
}

impl Frames {
    /// Finds the end of each new row's frame, and the changes that complete it.
    fn settle(&mut self, frame: OverFrame, by_time: bool) {
        let peers = by_time && matches!(frame, OverFrame::Range(_));
        for row in 0..self.members.len() {
            let (index, place) = self.members[row];
            let time = self.times[self.first + row];
            while self.leaves(frame, index, place, time) {
                let gone = self.partitions[index].places[self.partitions[index].start];
                self.changes.push((gone, Kind::Delete));
                self.partitions[index].start += 1;
            }
            self.changes.push(((self.first + row) as u32, Kind::Insert));
            self.entered.push(self.changes.len() as u32 - 1);
            self.ends.push(place);
        }
        self.complete = self.entered.clone();
        if !peers {
            return;
        }
        // Rows of one time in a partition share the frame of the last of them.
        let mut last: Vec<Option<usize>> = vec![None; self.partitions.len()];
        for row in (0..self.members.len()).rev() {
            let (index, _) = self.members[row];
            match last[index].filter(|other| self.times[self.first + other] == self.times[self.first + row]) {
                Some(other) => (self.ends[row], self.complete[row]) = (self.ends[other], self.complete[other]),
                None => last[index] = Some(row),
            }
        }
    }

    /// Whether the first row of the frame is not in that of the row at `place`.
    fn leaves(&self, frame: OverFrame, partition: usize, place: usize, time: i64) -> bool {
        let Partition { places, start, .. } = &self.partitions[partition];
        match frame {
            OverFrame::Rows(Some(rows)) => (place - start) as u64 > rows,
            OverFrame::Range(Some(length)) => {
                let from = time.saturating_sub(i64::try_from(length).unwrap_or(i64::MAX));
                *start < place && self.times[places[*start] as usize] < from
            }
            OverFrame::Rows(None) | OverFrame::Range(None) => false,
        }
    }

    /// All rows at hand.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// What enters and leaves the aggregates.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn changes(&self) -> Result<ChangeBatch> {
        let places = UInt32Array::from_iter_values(self.changes.iter().map(|(place, _)| *place));
        ChangeBatch::new(take_record_batch(&self.rows, &places)?, self.changes.iter().map(|(_, kind)| *kind).collect())
    }

    /// For each new row the place, among the images before and after each change, of its aggregates.
    pub fn images(&self) -> UInt32Array {
        UInt32Array::from_iter_values(self.complete.iter().map(|change| change * 2 + 1))
    }

    /// The same, of its aggregates before the rows behind it of equal time.
    pub fn own_images(&self) -> UInt32Array {
        UInt32Array::from_iter_values(self.entered.iter().map(|change| change * 2 + 1))
    }

    /// For each new row the row so many before the end of its frame, and the end.
    pub fn look_back(&self, offset: u64) -> Vec<(Option<u32>, u32)> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.members.iter().zip(&self.ends).map(|((partition, _), end)| {
            let places = &self.partitions[*partition].places;
            (end.checked_sub(offset).map(|place| places[place]), places[*end])
        });
        found.collect()
    }
}
