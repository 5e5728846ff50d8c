//! What holds event time back below an operator that waits for it.

use super::places::Part;
use super::text::{moment, rows, span};
use super::{Cause, Finding, View};

/// An event time so far ahead of the clock, in milliseconds, is no clock that goes wrong by a little.
const FAR_AHEAD_MS: u64 = 60_000;

/// A split, seen at the operator that derives its watermarks.
#[derive(Debug, Clone)]
pub(super) struct SplitTime {
    table: String,
    names: Vec<String>,
    subtask: usize,
    subtasks: usize,
    watermark: Option<i64>,
    last_rows: Option<i64>,
    newest: Option<i64>,
}

impl SplitTime {
    /// Which split it is, how far it is, and since when it has brought nothing.
    pub fn in_words(&self, now: i64) -> String {
        let table = &self.table;
        let name = match self.names.as_slice() {
            _ if self.subtasks == 1 => format!("table '{table}'"),
            [] => format!("reader {} of table '{table}', which has no split", self.subtask + 1),
            [only] => format!("split '{only}' of table '{table}'"),
            [first, ..] => format!("'{first}' and {} more splits of table '{table}'", self.names.len() - 1),
        };
        match self.last_rows {
            None => format!("{name}, which has brought no row yet"),
            Some(at) => format!("{name}, whose last row came {} ago", span(now.saturating_sub(at))),
        }
    }
}

impl View<'_> {
    /// The splits of each watermark below an operator.
    fn splits_below(&self, id: usize) -> Vec<SplitTime> {
        let assigners = self.above(id).into_iter().filter(|id| matches!(self.seen[*id].place.part, Part::Watermarks));
        assigners.flat_map(|assigner| self.splits_of(assigner)).collect()
    }

    /// Those that are still read and not idle.
    fn splits_of(&self, assigner: usize) -> Vec<SplitTime> {
        let seen = &self.seen[assigner];
        let sources: Vec<usize> =
            self.above(assigner).into_iter().filter(|id| self.seen[*id].place.inputs.is_empty()).collect();
        let Some(source) = sources.first().map(|source| &self.seen[*source]) else { return Vec::new() };
        let Part::Source { table } = &source.place.part else { return Vec::new() };
        let subtasks = seen.times.len();
        let split = |subtask: usize| {
            let own = &seen.times[subtask];
            let reader = source.times.get(subtask);
            // An operator in another task than its source's has its rows from all of them.
            let reader = reader.filter(|_| source.times.len() == subtasks);
            let ended = own.ended || reader.map_or(source.ended(), |reader| reader.ended);
            (!ended && !own.idle).then(|| SplitTime {
                table: table.clone(),
                names: reader.map(|reader| reader.splits.clone()).unwrap_or_default(),
                subtask,
                subtasks,
                watermark: seen.watermarks[subtask],
                last_rows: reader.and_then(|reader| reader.last_rows),
                newest: own.report.newest,
            })
        };
        (0..subtasks).filter_map(split).collect()
    }

    /// The split whose event time is least far.
    pub(super) fn slowest_split(&self, id: usize) -> Option<SplitTime> {
        self.splits_below(id).into_iter().min_by_key(|split| split.watermark)
    }

    /// A source from which rows come to an operator without any watermark.
    fn without_watermark(&self, id: usize) -> Option<String> {
        let mut next = self.seen[id].place.inputs.clone();
        while let Some(id) = next.pop() {
            let seen = &self.seen[id];
            match &seen.place.part {
                Part::Watermarks => {}
                Part::Source { table } if !seen.ended() => return Some(table.clone()),
                _ => next.extend(&seen.place.inputs),
            }
        }
        None
    }

    /// Of an operator that derives watermarks and lets no row pass: why.
    pub(super) fn without_event_time(&self, assigner: usize) -> Option<Finding> {
        let seen = &self.seen[assigner];
        let (nulls, ahead) = (seen.counter("null_event_times"), seen.counter("rows_ahead_of_the_clock"));
        if nulls > 0 && nulls >= ahead {
            let sentence = format!(
                "{} had NULL as event time and were dropped ('table.exec.event-time.null-policy' is DROP)",
                rows(nulls)
            );
            return Some((Cause::NullEventTime, sentence));
        }
        (ahead > 0).then(|| {
            let sentence = format!(
                "{} were too far ahead of the clock and were dropped ('table.exec.event-time.max-ahead')",
                rows(ahead)
            );
            (Cause::FutureTimestamp, sentence)
        })
    }

    /// Why an operator that waits for event time tells nothing; `None` if it has nothing to tell.
    pub(super) fn event_time(&self, id: usize) -> Option<Finding> {
        let seen = &self.seen[id];
        if let Some(table) = self.without_watermark(id) {
            let sentence = format!(
                "table '{table}' has no watermark, and event time does not move without one; declare WATERMARK FOR its time"
            );
            return Some((Cause::NoWatermark, sentence));
        }
        let ahead = self.above(id).into_iter().flat_map(|id| &self.seen[id].times).max_by_key(|t| t.report.ahead_ms);
        let late = seen.late_rows();
        if late > 0
            && let Some(time) = ahead
            && time.report.ahead_ms > FAR_AHEAD_MS
            && let Some(newest) = time.report.newest
        {
            let ahead = span(i64::try_from(time.report.ahead_ms).unwrap_or(i64::MAX));
            let sentence = format!(
                "a row of {}, {ahead} ahead of the clock, has moved event time, and {} that came after it were late; \
                 SET 'table.exec.event-time.max-ahead' = '1 h' drops such rows",
                moment(newest),
                rows(late)
            );
            return Some((Cause::FutureTimestamp, sentence));
        }
        let Some(close) = seen.next_close() else {
            return (late > 0 && seen.rows_out == 0).then(|| {
                let sentence =
                    format!("{} came after their windows had closed: the watermark waits too short", rows(late));
                (Cause::Late, sentence)
            });
        };
        let splits = self.splits_below(id);
        let slowest = splits.iter().min_by_key(|split| split.watermark)?;
        let fastest = splits.iter().filter_map(|split| split.watermark).max();
        if slowest.watermark.is_none_or(|mark| mark < close) && fastest.is_some_and(|mark| mark >= close) {
            let at = slowest.watermark.map_or("before its first row".into(), |mark| format!("at {}", moment(mark)));
            let sentence = format!(
                "event time is held {at} by {}, while others have passed {}; SET 'table.exec.source.idle-timeout' = '10 s' \
                 leaves out splits without rows",
                slowest.in_words(self.now),
                moment(close)
            );
            return Some((Cause::IdleSplit, sentence));
        }
        let newest = splits.iter().filter_map(|split| split.newest).max();
        let Some(newest) = newest else {
            let sentence = format!("event time has not begun: {}", slowest.in_words(self.now));
            return Some((Cause::IdleSplit, sentence));
        };
        if newest >= close {
            let delay = slowest.watermark.map(|mark| span(newest.saturating_sub(mark)));
            let delay = delay.map_or("has not begun".into(), |delay| format!("is {delay} behind it"));
            let sentence = format!(
                "the watermark waits: the newest row is of {}, and the watermark {delay}, so the window that closes at {} is \
                 still open; a smaller delay in WATERMARK FOR closes it sooner",
                moment(newest),
                moment(close)
            );
            return Some((Cause::WatermarkDelay, sentence));
        }
        let sentence = format!(
            "no window is over: the next one closes when the watermark passes {}, and the newest row is of {}",
            moment(close),
            moment(newest)
        );
        Some((Cause::OpenWindow, sentence))
    }
}
