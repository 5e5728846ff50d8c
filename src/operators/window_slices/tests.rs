//! Slices against whole windows, and what they are good for.

use super::*;
use crate::operators::WindowAggregate;
use crate::operators::testing::{call, changes, check, emitted, feed, saved, schema};
use crate::state::KeyGroupRange;
use crate::types::{AggregateCall, AggregateFunction, LocalTime, WindowColumn};

const HOP: WindowSpec = WindowSpec::Hop { slide: 5, size: 10, offset: 0 };

fn parameters(window: WindowSpec) -> WindowAggregateParameters {
    let input = schema("k TEXT, ts TS, v BIGINT");
    let aggregates: Vec<AggregateCall> = vec![
        call(AggregateFunction::Count, &[], "BIGINT"),
        call(AggregateFunction::Sum, &[2], "BIGINT"),
        call(AggregateFunction::StandardDeviation { sample: false }, &[2], "BIGINT"),
    ];
    WindowAggregateParameters {
        input,
        output: schema("k TEXT, s TS, e TS, n BIGINT, m BIGINT, d BIGINT"),
        keys: vec![0],
        time: 1,
        window,
        clock: LocalTime::default(),
        moment: WindowTime::Event,
        window_columns: vec![WindowColumn::Start, WindowColumn::Time],
        aggregates,
        append_only_input: true,
        key_groups: KeyGroupRange::ALL,
    }
}

fn operator(window: WindowSpec) -> SlicedWindowAggregate {
    assert!(SlicedWindowAggregate::serves(&parameters(window)));
    SlicedWindowAggregate::new(parameters(window)).unwrap()
}

fn input(text: &str) -> ChangeBatch {
    changes(&schema("k TEXT, ts TS, v BIGINT"), text)
}

#[test]
fn a_row_counts_in_the_windows_that_are_open_and_is_late_once_when_none_is() {
    let (mut operator, mut out) = (operator(HOP), Output::default());
    feed(&mut operator, &input("+I a 3 1\n+I a 7 1\n+I b 7 1"), 2, &mut out);
    operator.on_watermark(Watermark(9), &mut out).unwrap();
    check(&emitted(&mut out), "+I[a, -5, 4, 1, 1, 0]\n+I[a, 0, 9, 2, 2, 0]\n+I[b, 0, 9, 1, 1, 0]\nW 9");
    feed(&mut operator, &input("+I a 8 5\n+I a 4 1"), 9, &mut out);
    operator.on_watermark(Watermark(14), &mut out).unwrap();
    check(&emitted(&mut out), "+I[a, 5, 14, 2, 6, 2]\n+I[b, 5, 14, 1, 1, 0]\nW 14");
    assert_eq!(operator.counters(), [("open_windows", 0), ("late_rows", 1)]);
    assert!(operator.slices.is_empty() && operator.time_report().next_close.is_none());
    // Late by the moment that was missing.
    assert_eq!(operator.late.max_ms(), 1);
}

#[test]
fn only_what_merges_by_its_columns_and_is_cut_into_few_slices_is_served() {
    let mut distinct = parameters(HOP);
    distinct.aggregates[1].distinct = true;
    assert!(!SlicedWindowAggregate::serves(&distinct));
    let mut retracting = parameters(HOP);
    retracting.append_only_input = false;
    assert!(!SlicedWindowAggregate::serves(&retracting));
    let fine = WindowSpec::Hop { slide: 7, size: 1_000, offset: 0 };
    assert!(!SlicedWindowAggregate::serves(&parameters(fine)));
    assert!(!SlicedWindowAggregate::serves(&parameters(WindowSpec::Tumble { size: 10, offset: 0 })));
    assert!(!SlicedWindowAggregate::serves(&parameters(WindowSpec::Hop { slide: 10, size: 5, offset: 0 })));
}

/// Rows around the moment, most of them in time, with restarts in between.
#[test]
fn slices_give_what_whole_windows_give() {
    let cumulate = WindowSpec::Cumulate { step: 10, size: 40, offset: -3 };
    let uneven = WindowSpec::Hop { slide: 4, size: 10, offset: 1 };
    let windows = [HOP, uneven, cumulate, WindowSpec::Hop { slide: 5, size: 60, offset: 0 }];
    for (seed, window) in windows.into_iter().enumerate().flat_map(|(n, w)| (0..20).map(move |s| (s * 7 + n as u64, w)))
    {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) % below
        };
        let mut whole = WindowAggregate::new(parameters(window)).unwrap();
        let mut sliced = operator(window);
        let (mut expected, mut found) = (Output::default(), Output::default());
        let mut snapshots = Vec::new();
        for step in 0..12_i64 {
            let mut lines: Vec<String> = Vec::new();
            for _ in 0..next(9) {
                let time = step * 9 + next(40) as i64 - 25;
                lines.push(format!("+I {} {time} {}", ["a", "b", "c"][next(3) as usize], next(100)));
            }
            let batch = input(&lines.join("\n"));
            let size = 1 + next(5) as usize;
            assert!(feed(&mut whole, &batch, size, &mut expected).is_empty());
            assert!(feed(&mut sliced, &batch, size, &mut found).is_empty());
            let mark = if step == 11 { Watermark::MAX } else { Watermark(step * 9 + next(9) as i64 - 12) };
            whole.on_watermark(mark, &mut expected).unwrap();
            sliced.on_watermark(mark, &mut found).unwrap();
            let sort = |mut lines: Vec<String>| {
                lines.sort();
                lines
            };
            assert_eq!(sort(emitted(&mut expected)), sort(emitted(&mut found)), "seed {seed}, step {step}, {window:?}");
            assert_eq!(whole.time_report().lateness, sliced.time_report().lateness, "seed {seed}, step {step}");
            if next(3) == 0 {
                snapshots.push(sliced.snapshot(step as u64 + 1).unwrap());
                if next(2) == 0 {
                    sliced = operator(window);
                    sliced.restore(saved(&snapshots)).unwrap();
                    sliced.late = whole.time_report().lateness;
                    snapshots = vec![sliced.snapshot(step as u64 + 1).unwrap()];
                }
            }
        }
        assert!(sliced.slices.is_empty());
    }
}
