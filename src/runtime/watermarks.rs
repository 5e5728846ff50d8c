//! Event time of a task with several inputs: the minimum over those that are active.
//!
//! An idle input is left out. When it comes back with a watermark behind what was already promised, it stays left out
//! until it has caught up, since the promise cannot be taken back. Ended inputs no longer hold anything back.

use crate::changelog::{Event, Watermark};

/// The inputs' watermarks.
#[derive(Debug)]
pub struct WatermarkMerger {
    inputs: Vec<Input>,
    merged: Watermark,
    idle: bool,
}

#[derive(Debug, Clone, Copy)]
struct Input {
    watermark: Watermark,
    idle: bool,
    ended: bool,
    /// Whether it takes part: it has not fallen behind while it was idle.
    caught_up: bool,
}

impl WatermarkMerger {
    /// For so many inputs.
    pub fn new(inputs: usize) -> WatermarkMerger {
        let input = Input { watermark: Watermark::MIN, idle: false, ended: false, caught_up: true };
        WatermarkMerger { inputs: vec![input; inputs], merged: Watermark::MIN, idle: false }
    }

    /// Rows came on an input: it is not idle. Says whether the task as a whole has become active again.
    pub fn active(&mut self, input: usize) {
        let state = &mut self.inputs[input];
        if state.idle {
            state.idle = false;
            state.caught_up = state.watermark >= self.merged;
        }
        self.idle = false;
    }

    /// An input's watermark has moved. Gives what to pass on.
    pub fn watermark(&mut self, input: usize, mark: Watermark) -> Option<Event> {
        let state = &mut self.inputs[input];
        state.watermark = state.watermark.max(mark);
        state.idle = false;
        state.caught_up = state.watermark >= self.merged;
        self.idle = false;
        self.merge()
    }

    /// An input has nothing at present. Gives what to pass on.
    pub fn idle(&mut self, input: usize) -> Option<Event> {
        self.inputs[input].idle = true;
        self.merge()
    }

    /// An input has ended. Gives what to pass on; the watermark after the last end is the task's business.
    pub fn end(&mut self, input: usize) -> Option<Event> {
        self.inputs[input].ended = true;
        self.merge()
    }

    fn merge(&mut self) -> Option<Event> {
        let open = || self.inputs.iter().filter(|input| !input.ended);
        let active = || open().filter(|input| !input.idle);
        let next = if active().next().is_some() {
            active().filter(|input| input.caught_up).map(|input| input.watermark).min()
        } else {
            // Nobody holds anything back: event time has come as far as the furthest input.
            open().map(|input| input.watermark).max()
        };
        if let Some(next) = next.filter(|next| *next > self.merged) {
            self.merged = next;
            return Some(Event::Watermark(next));
        }
        let all_idle = open().next().is_some() && active().next().is_none();
        (all_idle && !std::mem::replace(&mut self.idle, true)).then_some(Event::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(event: Option<Event>) -> Option<i64> {
        match event {
            Some(Event::Watermark(mark)) => Some(mark.0),
            Some(Event::Idle) => Some(-1),
            _ => None,
        }
    }

    #[test]
    fn the_minimum_over_active_inputs_counts() {
        let mut merger = WatermarkMerger::new(2);
        assert_eq!(mark(merger.watermark(0, Watermark(10))), None);
        assert_eq!(mark(merger.watermark(1, Watermark(5))), Some(5));
        assert_eq!(mark(merger.idle(1)), Some(10));
        assert_eq!(mark(merger.watermark(0, Watermark(20))), Some(20));
        // Back, but behind: it holds nothing back until it has caught up.
        assert_eq!(mark(merger.watermark(1, Watermark(7))), None);
        assert_eq!(mark(merger.watermark(0, Watermark(30))), Some(30));
        assert_eq!(mark(merger.watermark(1, Watermark(31))), None);
        assert_eq!(mark(merger.watermark(0, Watermark(40))), Some(31));
    }

    #[test]
    fn all_idle_is_said_once_and_ended_inputs_do_not_count() {
        let mut merger = WatermarkMerger::new(2);
        assert_eq!(mark(merger.idle(0)), None);
        assert_eq!(mark(merger.idle(1)), Some(-1));
        assert_eq!(mark(merger.idle(1)), None);
        merger.active(0);
        assert_eq!(mark(merger.idle(0)), Some(-1));

        let mut merger = WatermarkMerger::new(2);
        assert_eq!(mark(merger.watermark(0, Watermark(3))), None);
        assert_eq!(mark(merger.end(1)), Some(3));
        assert_eq!(mark(merger.end(0)), None);
    }
}
