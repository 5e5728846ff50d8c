//! `OVER` in the notation, and against plain recomputation.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::operators::testing::{call, changes, check, emitted, feed, saved, schema};
use crate::types::AggregateFunction;

const INPUT: &str = "k TEXT, t TS, v BIGINT";

fn operator(time: bool, frame: OverFrame) -> Over {
    let lag = |offset| OverCall::Lag {
        column: 2,
        offset,
        default: None,
        output: Arc::clone(&schema("l BIGINT").fields()[0]),
    };
    let aggregate = |function, arguments: &[usize]| call(function, arguments, "BIGINT");
    Over::new(OverParameters {
        input: schema(INPUT),
        output: schema("k TEXT, t TS, v BIGINT, n BIGINT, s BIGINT, m BIGINT, l BIGINT, r BIGINT"),
        partition: vec![0],
        time: time.then_some(1),
        frame,
        calls: vec![
            OverCall::Aggregate(aggregate(AggregateFunction::Count, &[])),
            OverCall::Aggregate(aggregate(AggregateFunction::Sum, &[2])),
            OverCall::Aggregate(aggregate(AggregateFunction::Min, &[2])),
            lag(2),
            OverCall::RowNumber(aggregate(AggregateFunction::Count, &[])),
        ],
        shown: 3,
        ttl_ms: 0,
        key_groups: KeyGroupRange::ALL,
    })
    .unwrap()
}

#[test]
fn rows_come_out_by_time_with_what_was_before_them() {
    let input = schema(INPUT);
    for size in [1, 2, 9] {
        let (mut operator, mut out) = (operator(true, OverFrame::Range(Some(3))), Output::default());
        feed(&mut operator, &changes(&input, "+I a 5 1\n+I a 2 2\n+I b 2 _\n+I a 5 3\n+I a 9 4"), size, &mut out);
        operator.on_watermark(Watermark(5), &mut out).unwrap();
        check(
            &emitted(&mut out),
            "+I[a, 2, 2, 1, 2, 2, NULL, 1]
            +I[b, 2, NULL, 1, NULL, NULL, NULL, 1]
            +I[a, 5, 1, 3, 6, 1, 2, 2]
            +I[a, 5, 3, 3, 6, 1, 2, 3]
            W 5",
        );
        feed(&mut operator, &changes(&input, "+I a 4 9\n+I a 7 9"), size, &mut out);
        operator.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 7, 9, 3, 13, 1, 1, 3]\n+I[a, 9, 4, 2, 13, 4, 3, 2]\nW 9223372036854775807");
        assert_eq!(operator.counters()[1], ("late_rows", 1));
    }
}

#[test]
fn without_event_time_rows_come_out_as_they_arrive() {
    let (mut operator, mut out) = (operator(false, OverFrame::Rows(Some(1))), Output::default());
    let found = feed(&mut operator, &changes(&schema(INPUT), "+I a 5 1\n+I a 2 2\n+I a 9 3"), 2, &mut out);
    check(&found, "+I[a, 5, 1, 1, 1, 1, NULL, 1]\n+I[a, 2, 2, 2, 3, 1, NULL, 2]\n+I[a, 9, 3, 2, 5, 2, 1, 2]");
}

/// A row as `(partition, time, value)`.
type Cells = (usize, i64, Option<i64>);

/// The results of a row, by the definition: `rows` are those of its partition in order, `place` is its own.
fn recomputed(rows: &[Cells], place: usize, frame: OverFrame) -> String {
    let row = rows[place];
    let peers = |frame| matches!(frame, OverFrame::Range(_));
    let end = if peers(frame) { rows.iter().rposition(|other| other.1 == row.1).unwrap() } else { place };
    let from = match frame {
        OverFrame::Rows(None) | OverFrame::Range(None) => 0,
        OverFrame::Rows(Some(before)) => place.saturating_sub(before as usize),
        OverFrame::Range(Some(length)) => rows.iter().position(|other| other.1 >= row.1 - length as i64).unwrap(),
    };
    let show = |value: Option<i64>| value.map_or("NULL".to_string(), |value| value.to_string());
    let values: Vec<i64> = rows[from..=end].iter().filter_map(|row| row.2).collect();
    let sum = (!values.is_empty()).then(|| values.iter().sum());
    let lag = end.checked_sub(2).and_then(|place| rows[place].2);
    format!(
        "{}, {}, {}, {}, {}, {}, {}, {}",
        ["a", "b", "NULL"][row.0],
        row.1,
        show(row.2),
        end - from + 1,
        show(sum),
        show(values.iter().min().copied()),
        show(lag),
        place - from + 1
    )
}

/// Rows come out of order, the watermark follows, and the operator is saved and goes on as another now and then.
fn random(seed: u64, frame: OverFrame) {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut subject, mut out) = (operator(true, frame), Output::default());
    let (mut rows, mut found, mut snapshots): (Vec<Cells>, Vec<String>, Vec<Snapshot>) = Default::default();
    let mut mark = 0;
    for step in 0_u64..60 {
        let mut lines = Vec::new();
        for _ in 0..random.random_range(0..5) {
            let value = random.random_bool(0.8).then(|| random.random_range(-3..4));
            let row: Cells = (random.random_range(0..3), mark + random.random_range(1..7), value);
            let cell = row.2.map_or("_".to_string(), |value| value.to_string());
            lines.push(format!("+I {} {} {cell}", ["a", "b", "_"][row.0], row.1));
            rows.push(row);
        }
        if !lines.is_empty() {
            let size = random.random_range(1..4);
            feed(&mut subject, &changes(&schema(INPUT), &lines.join("\n")), size, &mut out);
        }
        mark += random.random_range(0..5);
        subject.on_watermark(Watermark(mark), &mut out).unwrap();
        found.extend(emitted(&mut out).into_iter().filter(|line| line.starts_with('+')));
        if step % 7 == 6 {
            snapshots.push(subject.snapshot(step).unwrap());
        }
        if step % 21 == 20 {
            subject = operator(true, frame);
            out = Output::default();
            subject.restore(saved(&snapshots)).unwrap();
        }
    }
    subject.on_watermark(Watermark::MAX, &mut out).unwrap();
    found.extend(emitted(&mut out).into_iter().filter(|line| line.starts_with('+')));
    let mut expected = Vec::new();
    for partition in 0..3 {
        let mut own: Vec<Cells> = rows.iter().filter(|row| row.0 == partition).copied().collect();
        own.sort_by_key(|row| row.1);
        expected.extend((0..own.len()).map(|place| format!("+I[{}]", recomputed(&own, place, frame))));
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "seed {seed} {frame:?}");
}

#[test]
fn it_equals_plain_recomputation() {
    for seed in 0..20 {
        for bound in [None, Some(0), Some(1), Some(4)] {
            random(seed, OverFrame::Rows(bound));
            random(seed, OverFrame::Range(bound));
        }
    }
}
