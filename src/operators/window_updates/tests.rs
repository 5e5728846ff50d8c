//! Tests of windows that are told more than once.

use super::*;
use crate::operators::testing::{call, changes, check, emitted, feed, saved, schema};
use crate::state::KeyGroupRange;
use crate::types::{AggregateFunction, LocalTime, WindowColumn};

const TUMBLE: WindowSpec = WindowSpec::Tumble { size: 10, offset: 0 };

fn operator(
    window: WindowSpec,
    early: Option<Firing>,
    late: Option<Firing>,
    lateness_ms: i64,
) -> UpdatingWindowAggregate {
    let parameters = WindowAggregateParameters {
        input: schema("k TEXT, ts TS, v BIGINT"),
        output: schema("k TEXT, s TS, n BIGINT, m BIGINT"),
        keys: vec![0],
        time: 1,
        window,
        clock: LocalTime::default(),
        moment: WindowTime::Event,
        window_columns: vec![WindowColumn::Start],
        aggregates: vec![call(AggregateFunction::Count, &[], "BIGINT"), call(AggregateFunction::Max, &[2], "BIGINT")],
        append_only_input: false,
        key_groups: KeyGroupRange::ALL,
    };
    UpdatingWindowAggregate::new(parameters, Emission { early, late, lateness_ms }).unwrap()
}

fn input(text: &str) -> ChangeBatch {
    changes(&schema("k TEXT, ts TS, v BIGINT"), text)
}

#[test]
fn late_rows_update_a_window_that_has_ended_until_it_is_gone() {
    for size in [1, 9] {
        let mut operator = operator(TUMBLE, None, Some(Firing::EachRow), 20);
        let mut out = Output::default();
        check(&feed(&mut operator, &input("+I a 3 5\n+I a 7 6\n+I b 4 1\n-D b 4 1"), size, &mut out), "");
        operator.on_watermark(Watermark(12), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 0, 2, 6]\nW 12");
        let late = feed(&mut operator, &input("+I a 8 9\n+I c 1 1\n-D c 1 1\n+I a 15 1"), size, &mut out);
        check(&late, "-U[a, 0, 2, 6]\n+U[a, 0, 3, 9]\n+I[c, 0, 1, 1]\n-D[c, 0, 1, 1]");
        operator.on_watermark(Watermark(29), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 10, 1, 1]\nW 29");
        check(&feed(&mut operator, &input("+I a 9 9\n-D a 15 1"), size, &mut out), "-D[a, 10, 1, 1]");
        assert_eq!(operator.counters()[..2], [("open_windows", 1), ("late_rows", 1)]);
        operator.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "W 9223372036854775807");
        assert_eq!(operator.counters()[0], ("open_windows", 0));
    }
}

#[test]
fn early_results_come_row_by_row_over_all_windows_of_a_row() {
    for size in [1, 9] {
        let hop = WindowSpec::Hop { slide: 10, size: 20, offset: 0 };
        let mut operator = operator(hop, Some(Firing::EachRow), None, 0);
        let mut out = Output::default();
        let told = feed(&mut operator, &input("+I a 3 5\n+I b 12 1\n+I a 4 5\n-D a 4 5"), size, &mut out);
        let expected = "+I[a, 0, 1, 5]
            +I[a, -10, 1, 5]
            +I[b, 10, 1, 1]
            +I[b, 0, 1, 1]
            -U[a, 0, 1, 5]
            +U[a, 0, 2, 5]
            -U[a, -10, 1, 5]
            +U[a, -10, 2, 5]
            -U[a, 0, 2, 5]
            +U[a, 0, 1, 5]
            -U[a, -10, 2, 5]
            +U[a, -10, 1, 5]";
        check(&told, expected);
        operator.on_watermark(Watermark(50), &mut out).unwrap();
        check(&emitted(&mut out), "W 50");
    }
}

#[test]
fn with_a_delay_changes_wait_for_the_clock_the_end_or_a_checkpoint() {
    let new = || operator(TUMBLE, Some(Firing::Every(100)), None, 0);
    let (mut first, mut out) = (new(), Output::default());
    first.on_clock(1_000, &mut out).unwrap();
    feed(&mut first, &input("+I a 3 5\n+I b 4 1\n-D b 4 1"), 9, &mut out);
    first.on_clock(1_099, &mut out).unwrap();
    check(&emitted(&mut out), "");
    first.on_clock(1_100, &mut out).unwrap();
    check(&emitted(&mut out), "+I[a, 0, 1, 5]");
    feed(&mut first, &input("+I a 3 4\n+I c 5 1"), 9, &mut out);
    first.before_barrier(&mut out).unwrap();
    check(&emitted(&mut out), "-U[a, 0, 1, 5]\n+U[a, 0, 2, 5]\n+I[c, 0, 1, 1]");
    let snapshot = first.snapshot(1).unwrap();
    let mut second = new();
    second.restore(saved(&[snapshot])).unwrap();
    feed(&mut second, &input("-D c 5 1\n+I a 6 9"), 9, &mut out);
    second.on_watermark(Watermark(9), &mut out).unwrap();
    check(&emitted(&mut out), "-D[c, 0, 1, 1]\n-U[a, 0, 2, 5]\n+U[a, 0, 3, 9]\nW 9");
}

#[test]
fn a_window_that_was_not_told_before_a_restart_is_told_whole_after_it() {
    let new = || operator(TUMBLE, None, Some(Firing::Every(100)), 20);
    let (mut first, mut out) = (new(), Output::default());
    feed(&mut first, &input("+I a 3 5\n+I a 12 6"), 9, &mut out);
    first.on_watermark(Watermark(9), &mut out).unwrap();
    check(&emitted(&mut out), "+I[a, 0, 1, 5]\nW 9");
    feed(&mut first, &input("+I a 4 7"), 9, &mut out);
    first.before_barrier(&mut out).unwrap();
    check(&emitted(&mut out), "-U[a, 0, 1, 5]\n+U[a, 0, 2, 7]");
    let (mut second, mut out) = (new(), Output::default());
    second.restore(saved(&[first.snapshot(1).unwrap()])).unwrap();
    second.on_clock(5, &mut out).unwrap();
    feed(&mut second, &input("+I b 5 1"), 9, &mut out);
    second.on_watermark(Watermark(19), &mut out).unwrap();
    second.on_clock(105, &mut out).unwrap();
    check(&emitted(&mut out), "+I[a, 10, 1, 6]\nW 19\n+I[b, 0, 1, 1]");
}
