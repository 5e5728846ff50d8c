//! Tests of aggregation over sessions.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::operators::testing::{call, changes, check, emitted, feed, saved, schema};
use crate::state::KeyGroupRange;
use crate::types::{AggregateCall, AggregateFunction, LocalTime, WindowSpec};

fn with(
    aggregates: Vec<AggregateCall>,
    results: &str,
    moment: WindowTime,
    key_groups: KeyGroupRange,
) -> SessionAggregate {
    SessionAggregate::new(WindowAggregateParameters {
        input: schema("k TEXT, ts TS, v BIGINT"),
        output: schema(&format!("k TEXT, window_start TS, window_end TS, {results}")),
        keys: vec![0],
        time: 1,
        window: WindowSpec::Session { gap: 10 },
        clock: LocalTime::default(),
        moment,
        window_columns: vec![WindowColumn::Start, WindowColumn::End],
        aggregates,
        append_only_input: false,
        key_groups,
    })
    .unwrap()
}

fn operator() -> SessionAggregate {
    let distinct = AggregateCall { distinct: true, ..call(AggregateFunction::Sum, &[2], "BIGINT") };
    let aggregates = vec![
        call(AggregateFunction::Count, &[], "BIGINT"),
        call(AggregateFunction::Max, &[2], "BIGINT"),
        distinct,
        call(AggregateFunction::ListAgg { separator: "/".into() }, &[0], "TEXT"),
    ];
    with(aggregates, "n BIGINT, greatest BIGINT, total BIGINT, names TEXT", WindowTime::Event, KeyGroupRange::ALL)
}

fn input(text: &str) -> ChangeBatch {
    changes(&schema("k TEXT, ts TS, v BIGINT"), text)
}

#[test]
fn sessions_merge_by_key_and_close_with_the_watermark() {
    for size in [1, 2, 9] {
        let (mut operator, mut out) = (operator(), Output::default());
        let rows = input("+I a 0 1\n+I a 25 7\n+I b 50 3\n+I a 12 7\n+I a 20 5");
        check(&feed(&mut operator, &rows, size, &mut out), "");
        operator.on_watermark(Watermark(40), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 0, 10, 1, 1, 1, a]\n+I[a, 12, 35, 3, 7, 12, a/a/a]\nW 40");
        // Late: alone and passed. The next is just as old, but touches a session that is open.
        feed(&mut operator, &input("+I a 30 6\n+I b 40 7\n+I b 31 7"), size, &mut out);
        operator.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "+I[b, 31, 60, 3, 7, 10, b/b/b]\nW 9223372036854775807");
        assert_eq!(operator.counters()[..2], [("open_windows", 0), ("late_rows", 1)]);
        assert_eq!((operator.keys.len(), operator.groups.keys.len()), (0, 0));
    }
}

#[test]
fn a_retraction_leaves_its_session_as_long_as_it_was() {
    for size in [1, 2, 9] {
        let (mut operator, mut out) = (operator(), Output::default());
        feed(&mut operator, &input("+I a 0 1\n+I a 9 5\n-D a 9 5\n+I b 3 2\n-D b 3 2\n+I a 19 4"), size, &mut out);
        operator.on_watermark(Watermark(60), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 0, 29, 2, 4, 5, a/a]\nW 60");
    }
}

#[test]
fn open_sessions_survive_a_restart_at_another_parallelism() {
    let mut first = operator();
    let mut out = Output::default();
    feed(&mut first, &input("+I a 0 1\n+I b 25 2\n+I b 45 3\n+I c 9 1\n-D c 9 1"), 9, &mut out);
    let mut snapshots = vec![first.snapshot(1).unwrap()];
    first.on_watermark(Watermark(12), &mut out).unwrap();
    feed(&mut first, &input("+I b 35 2\n+I a 40 4\n+I d 20 1"), 2, &mut out);
    snapshots.push(first.snapshot(2).unwrap());
    let mut found = Vec::new();
    for range in [KeyGroupRange::of_subtask(0, 2), KeyGroupRange::of_subtask(1, 2)] {
        let mut second = operator();
        second.parameters.key_groups = range;
        second.restore(saved(&snapshots)).unwrap();
        let mut out = Output::default();
        for row in ["+I b 55 9", "+I a 1 6", "+I c 19 8", "+I d 28 1"] {
            let row = input(row);
            let mut slots = Vec::new();
            crate::state::hash_rows(&[Arc::clone(row.rows().column(0))], &mut slots).unwrap();
            if range.contains(crate::state::key_group(slots[0])) {
                feed(&mut second, &row, 9, &mut out);
            }
        }
        second.on_watermark(Watermark::MAX, &mut out).unwrap();
        found.extend(emitted(&mut out).into_iter().filter(|line| !line.starts_with('W')));
    }
    found.sort();
    let expected = "+I[a, 40, 50, 1, 4, 4, a]
        +I[b, 25, 65, 4, 9, 14, b/b/b/b]
        +I[c, 9, 29, 1, 8, 8, c]
        +I[d, 20, 38, 2, 1, 1, d/d]";
    check(&found, expected);
}

#[test]
fn what_the_end_of_the_input_has_closed_stays_final() {
    let (mut first, mut out) = (operator(), Output::default());
    feed(&mut first, &input("+I a 0 1\n+I b 30 2"), 9, &mut out);
    first.on_watermark(Watermark::MAX, &mut out).unwrap();
    let (mut second, mut out) = (operator(), Output::default());
    second.restore(saved(&[first.snapshot(1).unwrap()])).unwrap();
    feed(&mut second, &input("+I a 5 1\n+I a 33 5"), 9, &mut out);
    second.on_watermark(Watermark::MAX, &mut out).unwrap();
    check(&emitted(&mut out), "+I[a, 33, 43, 1, 5, 5, a]\nW 9223372036854775807");
    assert_eq!(second.counters()[1], ("late_rows", 1));
}

#[test]
fn over_processing_time_the_clock_closes_sessions_and_the_end_does_not() {
    let count = vec![call(AggregateFunction::Count, &[], "BIGINT")];
    let mut operator = with(count, "n BIGINT", WindowTime::Processing, KeyGroupRange::ALL);
    let mut out = Output::default();
    operator.on_clock(100, &mut out).unwrap();
    feed(&mut operator, &input("+I a 0 1\n+I b 0 1"), 9, &mut out);
    operator.on_clock(110, &mut out).unwrap();
    check(&emitted(&mut out), "+I[a, 100, 110, 1]\n+I[b, 100, 110, 1]");
    feed(&mut operator, &input("+I a 0 1"), 9, &mut out);
    operator.on_watermark(Watermark::MAX, &mut out).unwrap();
    check(&emitted(&mut out), "W 9223372036854775807");
}

/// Key, time, value, and whether the row is taken back.
type Change = (i64, i64, i64, bool);
/// Key, start and end.
type Session = (i64, i64, i64);

/// A session's count, sum and distinct values of the rows that are left, by plain recomputation.
fn recomputed(rows: &[Change]) -> BTreeMap<Session, (i64, i64, i64)> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    let mut sessions: Vec<(Session, Vec<(i64, bool)>)> = Vec::new();
    for (key, time, value, retract) in rows {
        match sessions.last_mut() {
            Some(((of, _, end), values)) if *of == key && time <= *end => {
                *end = time + 10;
                values.push((value, retract));
            }
            _ => sessions.push(((key, time, time + 10), vec![(value, retract)])),
        }
    }
    let mut results = BTreeMap::new();
    for (session, values) in sessions {
        let mut left: BTreeMap<i64, i64> = BTreeMap::new();
        for (value, retract) in values {
            *left.entry(value).or_default() += if retract { -1 } else { 1 };
        }
        left.retain(|_, count| *count != 0);
        let count: i64 = left.values().sum();
        if count > 0 {
            let total = left.iter().map(|(value, count)| value * count).sum();
            results.insert(session, (count, total, left.len() as i64));
        }
    }
    results
}

#[test]
fn random_changes_in_any_batches_and_over_restarts_give_what_recomputation_gives() {
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut rows, mut present): (Vec<Change>, Vec<(i64, i64, i64)>) = Default::default();
        for _ in 0..200 {
            if !present.is_empty() && random.random_range(0..4) == 0 {
                let (key, time, value) = present.swap_remove(random.random_range(0..present.len()));
                rows.push((key, time, value, true));
            } else {
                let row = (random.random_range(0..4), random.random_range(0..900), random.random_range(0..5));
                present.push(row);
                rows.push((row.0, row.1, row.2, false));
            }
        }
        let new = || {
            let distinct = AggregateCall { distinct: true, ..call(AggregateFunction::Count, &[2], "BIGINT") };
            let (count, sum) = (AggregateFunction::Count, AggregateFunction::Sum);
            let calls = vec![call(count, &[], "BIGINT"), call(sum, &[2], "BIGINT"), distinct];
            with(calls, "n BIGINT, total BIGINT, d BIGINT", WindowTime::Event, KeyGroupRange::ALL)
        };
        let (mut operator, mut out, mut snapshots) = (new(), Output::default(), Vec::new());
        let mut from = 0;
        while from < rows.len() {
            let size = random.random_range(1..30).min(rows.len() - from);
            let text: String = rows[from..from + size]
                .iter()
                .map(|(key, time, value, gone)| format!("{} {key} {time} {value}\n", if *gone { "-D" } else { "+I" }))
                .collect();
            feed(&mut operator, &input(&text), size, &mut out);
            from += size;
            match random.random_range(0..4) {
                0 => snapshots.push(operator.snapshot(1).unwrap()),
                1 if !snapshots.is_empty() => {
                    snapshots.push(operator.snapshot(1).unwrap());
                    operator = new();
                    operator.restore(saved(&snapshots)).unwrap();
                    snapshots.clear();
                }
                _ => {}
            }
        }
        operator.on_watermark(Watermark::MAX, &mut out).unwrap();
        let expected: Vec<String> = recomputed(&rows)
            .into_iter()
            .map(|((key, start, end), (n, total, d))| format!("+I[{key}, {start}, {end}, {n}, {total}, {d}]"))
            .collect();
        let mut found = emitted(&mut out);
        found.retain(|line| !line.starts_with('W'));
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        assert_eq!(sorted(found), sorted(expected), "seed {seed}");
    }
}

#[test]
fn whatever_is_computed_merging_gives_what_one_session_gives() {
    use AggregateFunction::*;
    let distinct = |call: AggregateCall| AggregateCall { distinct: true, ..call };
    let calls = || {
        vec![
            call(Count, &[2], "BIGINT"),
            call(Sum, &[3], "DOUBLE"),
            call(Sum, &[4], "DEC38"),
            call(Avg, &[4], "DEC6"),
            call(Avg, &[2], "BIGINT"),
            call(Min, &[0], "TEXT"),
            call(Max, &[4], "DEC"),
            call(Variance { sample: true }, &[3], "DOUBLE"),
            call(StandardDeviation { sample: false }, &[2], "BIGINT"),
            distinct(call(Sum, &[4], "DEC38")),
            distinct(call(Count, &[2], "BIGINT")),
        ]
    };
    let input = schema("k TEXT, ts TS, v BIGINT, x DOUBLE, d DEC");
    let results = "a BIGINT, b DOUBLE, c DEC38, d DEC6, e BIGINT, f TEXT, g DEC, h DOUBLE, i BIGINT, j DEC38, l BIGINT";
    let run = |order: &[usize], append_only: bool| {
        let rows = ["+I b 0 1 0.5 1.25", "+I a 10 _ 4 -7", "+I c 20 3 2 1.25", "+I a 30 3 _ 99.99", "+I d 40 8 16 _"];
        let mut operator = SessionAggregate::new(WindowAggregateParameters {
            input: input.clone(),
            output: schema(&format!("window_start TS, window_end TS, {results}")),
            keys: Vec::new(),
            time: 1,
            window: WindowSpec::Session { gap: 10 },
            clock: LocalTime::default(),
            moment: WindowTime::Event,
            window_columns: vec![WindowColumn::Start, WindowColumn::End],
            aggregates: calls(),
            append_only_input: append_only,
            key_groups: KeyGroupRange::ALL,
        })
        .unwrap();
        let mut out = Output::default();
        for row in order {
            feed(&mut operator, &changes(&input, rows[*row]), 1, &mut out);
        }
        operator.on_watermark(Watermark(100), &mut out).unwrap();
        emitted(&mut out)
    };
    let straight = run(&[0, 1, 2, 3, 4], true);
    assert!(straight[0].starts_with("+I[0, 50, 4, 22.5, 95.49, "), "{straight:?}");
    for order in [[0, 2, 4, 1, 3], [4, 2, 0, 3, 1], [0, 4, 3, 1, 2], [3, 0, 1, 4, 2]] {
        assert_eq!(run(&order, true), straight, "{order:?}");
        assert_eq!(run(&order, false), straight, "{order:?} with retractions to come");
    }
}
