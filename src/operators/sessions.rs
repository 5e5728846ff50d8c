//! Open sessions by key: windows that a row opens, stretches or joins, and that the passing of time closes.
//!
//! A row at time `t` has the window `[t, t + gap)`. It becomes part of the sessions of its key that it overlaps or
//! touches, which thereby become one. With a gap of 10:
//!
//! ```text
//! 00 → [00, 10)     25 → [25, 35)     12 → [12, 22)     20 → [12, 35), out of two
//! ```
//!
//! A row is late if it touches no open session and its own window has been passed. Sessions of a key are at least a
//! moment apart, so their order by start is their order by end, and a row joins at most two.
//!
//! Most keys have one open session: it stands in the key's entry itself. Timers are lazy: a session has one, set when
//! it opens, and one that rings too early because rows have stretched the session is set again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::window::Window;

/// A session's number, from when it opens until it closes or merges; then it is given to another.
pub(super) type SessionId = u32;

const NONE: SessionId = SessionId::MAX;

/// A session of a key.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: i64,
    end: i64,
    id: SessionId,
}

const NO_SESSION: Open = Open { start: 0, end: 0, id: NONE };

impl Open {
    fn touches(&self, window: Window) -> bool {
        window.start <= self.end && window.end >= self.start
    }

    fn stretch(&mut self, window: Window) {
        self.start = self.start.min(window.start);
        self.end = self.end.max(window.end);
    }
}

/// The sessions of a key, by start.
#[derive(Debug, Clone)]
struct OfKey {
    /// All but the last.
    earlier: Vec<Open>,
    /// The last; without a number if there is none.
    last: Open,
}

/// What is known of a session beside its bounds.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// The slot of its key.
    key: u32,
    /// When its timer rings; others with its number are of former sessions.
    timer: i64,
    /// Whether it may survive a merge with an older one: not if nothing is kept for it yet.
    fresh: bool,
    /// The session it has become part of within this batch.
    merged_into: SessionId,
    /// By order of opening.
    number: i64,
}

/// A session that time has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed {
    pub id: SessionId,
    pub key: u32,
    pub window: Window,
    /// Whether its key has no other open session.
    pub last_of_key: bool,
}

/// Open sessions by key; keys are slots of a table of keys.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    keys: Vec<OfKey>,
    records: Vec<Record>,
    free: Vec<SessionId>,
    timers: BinaryHeap<Reverse<(i64, SessionId)>>,
    open: usize,
    next: i64,
    /// Sessions opened in this batch with the row that did it, those merged away since included.
    fresh: Vec<(SessionId, u32)>,
    /// Sessions merged in this batch: which, into which; in order.
    merged: Vec<(SessionId, SessionId)>,
}

impl Sessions {
    /// Makes room for keys below `keys`.
    pub(super) fn grow(&mut self, keys: usize) {
        if self.keys.len() < keys {
            self.keys.resize(keys, OfKey { earlier: Vec::new(), last: NO_SESSION });
        }
    }

    /// Number of open sessions.
    pub(super) fn len(&self) -> usize {
        self.open
    }

    /// One more than the greatest number ever given.
    pub(super) fn capacity(&self) -> usize {
        self.records.len()
    }

    /// Whether a key has no open session.
    pub(super) fn is_idle(&self, key: u32) -> bool {
        self.keys[key as usize].last.id == NONE
    }

    /// The session that the window of `row` opens or joins; `None` if it is late: alone, and passed already. The number
    /// stands for [`Sessions::current`] of it at the end of the batch.
    #[inline]
    pub(super) fn place(&mut self, key: u32, window: Window, passed: i64, row: u32) -> Option<SessionId> {
        let sessions = &mut self.keys[key as usize];
        let alone = sessions.earlier.last().is_none_or(|before| before.end < window.start);
        if sessions.last.id != NONE && alone && sessions.last.touches(window) {
            sessions.last.stretch(window);
            return Some(sessions.last.id);
        }
        self.place_among(key, window, passed, row)
    }

    fn place_among(&mut self, key: u32, window: Window, passed: i64, row: u32) -> Option<SessionId> {
        let mut all = self.take_all(key);
        // Those that end before the window does not touch, then those that it touches.
        let from = all.partition_point(|session| session.end < window.start);
        let touched = all[from..].iter().take_while(|session| session.touches(window)).count();
        let id = match touched {
            0 if window.end - 1 <= passed => None,
            0 => {
                let id = self.open(key, window, row);
                all.insert(from, Open { start: window.start, end: window.end, id });
                Some(id)
            }
            touched => {
                let mut session = all[from];
                session.stretch(window);
                for other in all.drain(from + 1..from + touched) {
                    session.stretch(Window { start: other.start, end: other.end });
                    session.id = self.merge(session.id, other.id);
                }
                all[from] = session;
                Some(session.id)
            }
        };
        self.put_all(key, all);
        id
    }

    fn take_all(&mut self, key: u32) -> Vec<Open> {
        let sessions = &mut self.keys[key as usize];
        let mut all = std::mem::take(&mut sessions.earlier);
        let last = std::mem::replace(&mut sessions.last, NO_SESSION);
        if last.id != NONE {
            all.push(last);
        }
        all
    }

    fn put_all(&mut self, key: u32, mut all: Vec<Open>) {
        let last = all.pop().unwrap_or(NO_SESSION);
        self.keys[key as usize] = OfKey { earlier: all, last };
    }

    fn open(&mut self, key: u32, window: Window, row: u32) -> SessionId {
        let record = Record { key, timer: window.end, fresh: true, merged_into: NONE, number: self.next };
        self.next += 1;
        self.open += 1;
        let id = match self.free.pop() {
            Some(id) => {
                self.records[id as usize] = record;
                id
            }
            None => {
                self.records.push(record);
                self.records.len() as SessionId - 1
            }
        };
        self.timers.push(Reverse((window.end, id)));
        self.fresh.push((id, row));
        id
    }

    /// Makes one session of two and says whose number it has: one for which something is kept, then the older.
    fn merge(&mut self, left: SessionId, right: SessionId) -> SessionId {
        let age = |id: SessionId| {
            let record = self.records[id as usize];
            (record.fresh, record.number)
        };
        let (into, from) = if age(left) <= age(right) { (left, right) } else { (right, left) };
        let record = &mut self.records[from as usize];
        record.merged_into = into;
        record.timer = i64::MIN;
        self.merged.push((from, into));
        self.open -= 1;
        into
    }

    /// What a session has become by the end of the batch.
    #[inline]
    pub(super) fn current(&self, id: SessionId) -> SessionId {
        let mut id = id;
        loop {
            let record = &self.records[id as usize];
            if record.merged_into == NONE {
                return id;
            }
            id = record.merged_into;
        }
    }

    /// Whether a session was merged away in this batch.
    pub(super) fn has_merged(&self) -> bool {
        !self.merged.is_empty()
    }

    /// The sessions that this batch has opened, each with its number by order of opening and the row that opened it.
    pub(super) fn opened(&self) -> impl Iterator<Item = (SessionId, i64, u32)> {
        let kept = self.fresh.iter().filter(|(id, _)| self.records[*id as usize].merged_into == NONE);
        kept.map(|(id, row)| (*id, self.records[*id as usize].number, *row))
    }

    /// The merges of this batch between sessions for which something is kept from before it: which, into which.
    pub(super) fn merges(&self) -> impl Iterator<Item = (SessionId, SessionId)> {
        self.merged.iter().copied().filter(|(from, _)| !self.records[*from as usize].fresh)
    }

    /// The batch is done: its sessions are no longer fresh, and merged ones are gone.
    pub(super) fn finish_batch(&mut self) {
        for (id, _) in self.fresh.drain(..) {
            self.records[id as usize].fresh = false;
        }
        self.free.extend(self.merged.drain(..).map(|(from, _)| from));
    }

    /// Takes the sessions that end no later than the moment after `passed`, by end, then by opening.
    pub(super) fn close(&mut self, passed: i64) -> Vec<Closed> {
        let mut closed = Vec::new();
        while let Some(Reverse((timer, id))) = self.timers.peek().copied()
            && timer - 1 <= passed
        {
            self.timers.pop();
            let record = self.records[id as usize];
            if record.timer != timer {
                continue;
            }
            let key = record.key;
            let Some(end) = self.find(key, id).map(|session| session.end) else { continue };
            if end - 1 > passed {
                self.records[id as usize].timer = end;
                self.timers.push(Reverse((end, id)));
                continue;
            }
            closed.extend(self.take(key, id));
        }
        closed.sort_unstable_by_key(|session| (session.window.end, self.records[session.id as usize].number));
        closed
    }

    fn find(&self, key: u32, id: SessionId) -> Option<&Open> {
        let sessions = &self.keys[key as usize];
        if sessions.last.id == id { Some(&sessions.last) } else { sessions.earlier.iter().find(|open| open.id == id) }
    }

    fn take(&mut self, key: u32, id: SessionId) -> Option<Closed> {
        let sessions = &mut self.keys[key as usize];
        let taken = if sessions.last.id == id {
            let before = sessions.earlier.pop().unwrap_or(NO_SESSION);
            std::mem::replace(&mut sessions.last, before)
        } else {
            let place = sessions.earlier.iter().position(|open| open.id == id)?;
            sessions.earlier.remove(place)
        };
        let last_of_key = sessions.last.id == NONE;
        self.open -= 1;
        self.records[id as usize].timer = i64::MIN;
        self.free.push(id);
        Some(Closed { id, key, window: Window { start: taken.start, end: taken.end }, last_of_key })
    }

    /// The last moment of the last open session.
    pub(super) fn last_moment(&self) -> Option<i64> {
        self.keys.iter().filter(|sessions| sessions.last.id != NONE).map(|sessions| sessions.last.end - 1).max()
    }

    /// The bounds of a session.
    pub(super) fn window(&self, id: SessionId) -> Option<Window> {
        let session = self.find(self.records[id as usize].key, id)?;
        Some(Window { start: session.start, end: session.end })
    }

    /// Takes back a session of a key; `number` is its place in the order of opening.
    pub(super) fn restore(&mut self, key: u32, window: Window, number: i64) -> SessionId {
        self.next = number;
        let id = self.open(key, window, 0);
        self.fresh.clear();
        self.records[id as usize].fresh = false;
        let mut all = self.take_all(key);
        let place = all.partition_point(|session| session.start < window.start);
        all.insert(place, Open { start: window.start, end: window.end, id });
        self.put_all(key, all);
        id
    }

    /// No session opened from now on has a number below `next`.
    pub(super) fn number_from(&mut self, next: i64) {
        self.next = self.next.max(next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn window(start: i64, end: i64) -> Window {
        Window { start, end }
    }

    #[test]
    fn a_row_opens_stretches_or_joins_sessions_and_touching_counts() {
        let mut sessions = Sessions::default();
        sessions.grow(1);
        let first = sessions.place(0, window(0, 10), -1, 0).unwrap();
        let second = sessions.place(0, window(25, 35), -1, 1).unwrap();
        assert_ne!(first, second);
        assert_eq!(sessions.place(0, window(10, 20), -1, 2), Some(first));
        sessions.finish_batch();
        let joined = sessions.place(0, window(17, 27), -1, 0).unwrap();
        assert_eq!((joined, sessions.current(second)), (first, first));
        assert_eq!(sessions.merges().collect::<Vec<_>>(), [(second, first)]);
        assert_eq!(sessions.opened().count(), 0);
        sessions.finish_batch();
        assert_eq!(sessions.close(33), []);
        let closed = Closed { id: first, key: 0, window: window(0, 35), last_of_key: true };
        assert_eq!(sessions.close(34), [closed]);
        assert_eq!((sessions.len(), sessions.is_idle(0)), (0, true));
    }

    #[test]
    fn a_row_is_late_only_if_it_joins_no_open_session() {
        let mut sessions = Sessions::default();
        sessions.grow(2);
        let open = sessions.place(0, window(20, 30), 15, 0).unwrap();
        assert_eq!(sessions.place(0, window(5, 15), 15, 1), None);
        assert_eq!(sessions.place(0, window(12, 22), 25, 1), Some(open));
        // It is long over by itself, and the session it touches has become as long.
        assert_eq!(sessions.place(0, window(2, 12), 25, 1), Some(open));
        assert_eq!(sessions.place(1, window(2, 12), 25, 1), None);
    }

    /// The sessions of rows by plain recomputation.
    fn recomputed(rows: &[(u32, i64)], gap: i64) -> BTreeMap<(u32, i64, i64), usize> {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        let mut sessions: Vec<(u32, i64, i64, usize)> = Vec::new();
        for (key, time) in rows {
            match sessions.last_mut() {
                Some((of, _, end, count)) if *of == key && time <= *end => {
                    *end = time + gap;
                    *count += 1;
                }
                _ => sessions.push((key, time, time + gap, 1)),
            }
        }
        sessions.into_iter().map(|(key, start, end, count)| ((key, start, end), count)).collect()
    }

    #[test]
    fn rows_in_any_order_and_batches_of_any_size_make_the_same_sessions() {
        for seed in 0..200 {
            let mut random = StdRng::seed_from_u64(seed);
            let gap = random.random_range(1..20);
            let rows: Vec<(u32, i64)> =
                (0..150).map(|_| (random.random_range(0..3), random.random_range(0..600))).collect();
            let mut sessions = Sessions::default();
            sessions.grow(3);
            let mut counts: BTreeMap<SessionId, usize> = BTreeMap::new();
            let mut from = 0;
            while from < rows.len() {
                let size = random.random_range(1..40).min(rows.len() - from);
                let placed: Vec<SessionId> = rows[from..from + size]
                    .iter()
                    .map(|(key, time)| sessions.place(*key, window(*time, *time + gap), -1, 0).unwrap())
                    .collect();
                for (gone, into) in sessions.merges() {
                    let moved = counts.remove(&gone).unwrap();
                    *counts.get_mut(&into).unwrap() += moved;
                }
                sessions.opened().for_each(|(id, _, _)| assert_eq!(counts.insert(id, 0), None));
                placed.iter().for_each(|id| *counts.get_mut(&sessions.current(*id)).unwrap() += 1);
                sessions.finish_batch();
                from += size;
            }
            let half = sessions.close(300);
            assert!(half.iter().all(|closed| closed.window.end - 1 <= 300));
            let found = half.into_iter().chain(sessions.close(i64::MAX));
            let found = found.map(|closed| ((closed.key, closed.window.start, closed.window.end), counts[&closed.id]));
            assert_eq!(found.collect::<BTreeMap<_, _>>(), recomputed(&rows, gap), "seed {seed}, gap {gap}");
            assert_eq!((sessions.len(), sessions.timers.len()), (0, 0));
        }
    }
}
