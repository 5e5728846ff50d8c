//! Why does nothing come out? A running job is looked at from its sinks upwards, and what keeps the rows is named.
//!
//! ```text
//! Source(clicks) ─▶ WatermarkAssigner ─▶ WindowAggregate ─▶ Collect
//!  4 rows out        4 in, 4 out          4 in, 0 out        0 in
//!                    newest row 12:04     waits for 12:10    → the window that ends at 12:10 is open
//! ```
//!
//! The walk stops where rows have come in and none has gone out. If that is an operator that waits for event time, what
//! holds event time back is looked for among the splits below it ([`event_time`]).

mod event_time;
mod places;
mod text;

pub use places::Places;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use self::places::{Part, Place};
use self::text::{moment, rows, span};
use super::metrics::{Registry, Role, SubtaskMetrics};
use super::time_metrics::TimeState;

/// Waiting for room for so many milliseconds is back-pressure, and not just a full channel.
const BLOCKED_MS: i64 = 1_000;

/// What a running job is doing, and why it shows no (more) rows.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// What kind of reason it is.
    pub cause: Cause,
    /// The reason as a sentence, with what to do about it.
    pub sentence: String,
    /// Its operators, in the order of the plan.
    pub operators: Vec<OperatorDiagnosis>,
}

/// Kinds of reasons for which a job shows no rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// No row has come from a source, or none ever will.
    NoInput,
    /// A condition lets no row pass.
    Filtered,
    /// A table has no watermark, and event time does not move without one.
    NoWatermark,
    /// The rows have no event time.
    NullEventTime,
    /// A split without rows holds event time back.
    IdleSplit,
    /// A row from the future has moved event time too far.
    FutureTimestamp,
    /// All rows came after their windows had closed.
    Late,
    /// The watermark is so far behind the rows that no window is over.
    WatermarkDelay,
    /// No window is over yet.
    OpenWindow,
    /// Somebody does not take rows as fast as they come.
    BackPressure,
    /// The rows are written, and become visible with a checkpoint.
    Checkpoint,
    /// An operator has taken rows and has nothing to tell.
    Quiet,
    /// Rows come out.
    None,
}

/// One operator of a running job.
#[derive(Debug, Clone)]
pub struct OperatorDiagnosis {
    /// Its uid.
    pub uid: String,
    /// What it is.
    pub description: String,
    /// Rows that came.
    pub rows_in: u64,
    /// Rows that went.
    pub rows_out: u64,
    /// How far event time has come, in milliseconds since the epoch; `None` before the first watermark.
    pub watermark: Option<i64>,
    /// The split that holds event time back, and since when it has had no rows.
    pub held_back_by: Option<String>,
    /// The event time that closes its next window.
    pub next_close: Option<i64>,
    /// Rows that it dropped as late.
    pub late_rows: u64,
}

/// What is known about checkpoints.
#[derive(Debug, Clone, Default)]
pub struct Publishing {
    /// Sinks, by uid, whose rows become visible with a checkpoint.
    pub sinks: Vec<String>,
    /// Rows that each had been given when the last checkpoint completed.
    pub published: HashMap<String, u64>,
    /// How often one is taken.
    pub interval: Option<Duration>,
}

/// An operator as it is seen.
struct Seen<'a> {
    place: &'a Place,
    description: String,
    rows_in: u64,
    rows_out: u64,
    watermarks: Vec<Option<i64>>,
    times: Vec<TimeState>,
    counters: Vec<(String, u64)>,
}

impl Seen<'_> {
    /// The least watermark of its subtasks.
    fn watermark(&self) -> Option<i64> {
        self.watermarks.iter().copied().min().flatten()
    }

    fn ended(&self) -> bool {
        self.times.iter().all(|time| time.ended)
    }

    fn next_close(&self) -> Option<i64> {
        self.times.iter().filter_map(|time| time.report.next_close).min()
    }

    fn late_rows(&self) -> u64 {
        self.times.iter().map(|time| time.report.lateness.rows()).sum()
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count)
    }
}

/// A job at a moment.
struct View<'a> {
    seen: Vec<Seen<'a>>,
    publishing: &'a Publishing,
    now: i64,
}

/// A reason.
type Finding = (Cause, String);

/// Looks at a job.
pub fn diagnose(places: &Places, registry: &Registry, publishing: &Publishing, now: i64) -> Diagnosis {
    let counts = registry.operators();
    let seen = places.0.iter().zip(counts).zip(registry.subtasks());
    let seen = seen.map(|((place, counts), subtasks)| {
        let watermark = |subtask: &std::sync::Arc<SubtaskMetrics>| {
            Some(subtask.watermark.load(Ordering::Relaxed)).filter(|mark| *mark != i64::MIN)
        };
        Seen {
            place,
            description: counts.description,
            rows_in: counts.rows_in,
            rows_out: counts.rows_out,
            watermarks: subtasks.iter().map(watermark).collect(),
            times: subtasks.iter().map(|subtask| subtask.time.state()).collect(),
            counters: counts.counters,
        }
    });
    let view = View { seen: seen.collect(), publishing, now };
    let (cause, sentence) = view.cause();
    let operators = (0..view.seen.len()).map(|id| view.operator(id)).collect();
    Diagnosis { cause, sentence, operators }
}

impl View<'_> {
    fn operator(&self, id: usize) -> OperatorDiagnosis {
        let seen = &self.seen[id];
        let waits = matches!(seen.place.part, Part::Waits) && !seen.ended();
        OperatorDiagnosis {
            uid: seen.place.uid.clone(),
            description: seen.description.clone(),
            rows_in: seen.rows_in,
            rows_out: seen.rows_out,
            watermark: seen.watermark(),
            held_back_by: waits.then(|| self.slowest_split(id)).flatten().map(|split| split.in_words(self.now)),
            next_close: seen.next_close(),
            late_rows: seen.late_rows(),
        }
    }

    /// Why nothing comes out: of several sinks, for the first that got nothing.
    fn cause(&self) -> Finding {
        if let Some(found) = self.back_pressure() {
            return found;
        }
        let sinks = || (0..self.seen.len()).filter(|id| self.role(*id) == Role::Sink);
        let Some(sink) = sinks().find(|sink| self.seen[*sink].rows_in == 0).or_else(|| sinks().next()) else {
            return (Cause::None, "the job has no output".into());
        };
        if let Some(found) = self.unpublished(sink) {
            return found;
        }
        self.upwards(sink)
    }

    fn role(&self, id: usize) -> Role {
        match self.seen[id].place.part {
            Part::Source { .. } => Role::Source,
            Part::Sink { .. } | Part::Collect => Role::Sink,
            _ => Role::Inner,
        }
    }

    /// Whoever does not take rows: the user of the last operator that waits for room.
    fn back_pressure(&self) -> Option<Finding> {
        let blocked = |id: &usize| {
            let since = self.seen[*id].times.iter().filter_map(|time| time.blocked_since).min()?;
            (self.now.saturating_sub(since) >= BLOCKED_MS).then_some((*id, since))
        };
        let (id, since) = (0..self.seen.len()).rev().find_map(|id| blocked(&id))?;
        let since = span(self.now.saturating_sub(since));
        let user = (0..self.seen.len()).find(|user| self.seen[*user].place.inputs.contains(&id));
        let slow = &self.seen[user.unwrap_or(id)];
        let sentence = match &slow.place.part {
            Part::Collect => format!("whoever reads the result has taken no rows for {since}: the query waits for it"),
            Part::Sink { table } => format!("table '{table}' has taken no rows for {since}: everything waits for it"),
            _ => format!(
                "{} [{}] has taken no rows for {since}: everything before it waits",
                slow.description, slow.place.uid
            ),
        };
        Some((Cause::BackPressure, sentence))
    }

    /// Rows that have been written and are not visible.
    fn unpublished(&self, sink: usize) -> Option<Finding> {
        let seen = &self.seen[sink];
        let published = self.publishing.published.get(&seen.place.uid).copied().unwrap_or(0);
        let waiting = seen.rows_in.checked_sub(published).filter(|waiting| *waiting > 0)?;
        let Part::Sink { table } = &seen.place.part else { return None };
        if !self.publishing.sinks.contains(&seen.place.uid) || seen.ended() {
            return None;
        }
        let when = match self.publishing.interval {
            Some(interval) => format!("the next checkpoint ('execution.checkpointing.interval' is {interval:?})"),
            None => "a checkpoint, and none is taken before the job ends or is stopped; SET \
                     'execution.checkpointing.dir' and 'execution.checkpointing.interval'"
                .into(),
        };
        let are = if waiting == 1 { "is" } else { "are" };
        let sentence = format!("{} {are} written to table '{table}' and become visible with {when}", rows(waiting));
        Some((Cause::Checkpoint, sentence))
    }

    /// From an operator to where the rows have stayed.
    fn upwards(&self, from: usize) -> Finding {
        let seen = &self.seen[from];
        match &seen.place.part {
            Part::Source { table } => return self.source(seen, table),
            _ if seen.rows_in == 0 => {
                // Of several inputs one without rows says most; all of them are without.
                let next = seen.place.inputs.iter().copied().min_by_key(|input| self.seen[*input].rows_out);
                return next.map_or((Cause::NoInput, "there is no input".into()), |input| self.upwards(input));
            }
            Part::Sink { .. } | Part::Collect => {
                let waits = self.above(from).into_iter().find(|id| matches!(self.seen[*id].place.part, Part::Waits));
                let found = waits.filter(|id| !self.seen[*id].ended()).and_then(|id| self.event_time(id));
                return found.unwrap_or_else(|| (Cause::None, format!("{} came out so far", rows(seen.rows_in))));
            }
            _ if seen.rows_out > 0 => {}
            Part::Filter { condition } => {
                let sentence = format!("the condition {condition} has let none of {} pass", rows(seen.rows_in));
                return (Cause::Filtered, sentence);
            }
            Part::Waits => {
                if let Some(found) = self.event_time(from) {
                    return found;
                }
            }
            Part::Watermarks => {
                if let Some(found) = self.without_event_time(from) {
                    return found;
                }
            }
            Part::NeedsBoth => {
                let empty = seen.place.inputs.iter().copied().find(|input| self.seen[*input].rows_out == 0);
                if let Some(input) = empty {
                    return self.upwards(input);
                }
            }
            Part::Other => {}
        }
        let sentence = format!(
            "{} [{}] has taken {} and has nothing to tell",
            seen.description,
            seen.place.uid,
            rows(seen.rows_in)
        );
        (Cause::Quiet, sentence)
    }

    fn source(&self, seen: &Seen<'_>, table: &str) -> Finding {
        let sentence = match (seen.rows_out, seen.ended()) {
            (0, true) => format!("table '{table}' has been read to its end, and no row was in it"),
            (0, false) => format!("no row has come from table '{table}' yet"),
            (count, _) => format!("{} came from table '{table}', and are on their way", rows(count)),
        };
        (Cause::NoInput, sentence)
    }

    /// All operators above one, the nearest first.
    fn above(&self, from: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut next = self.seen[from].place.inputs.clone();
        while let Some(id) = next.pop() {
            if !found.contains(&id) {
                found.push(id);
                next.extend(&self.seen[id].place.inputs);
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for operator in &self.operators {
            write!(
                f,
                "{} [{}]: {} in, {} out",
                operator.description, operator.uid, operator.rows_in, operator.rows_out
            )?;
            if let Some(mark) = operator.watermark {
                write!(f, "; watermark {}", moment(mark))?;
            }
            if let Some(close) = operator.next_close {
                write!(f, "; the next window closes when it passes {}", moment(close))?;
            }
            if let Some(split) = &operator.held_back_by {
                write!(f, "; held back by {split}")?;
            }
            if operator.late_rows > 0 {
                write!(f, "; {} came late", rows(operator.late_rows))?;
            }
            writeln!(f)?;
        }
        write!(f, "=> {}", self.sentence)
    }
}
