//! What is told when a row comes or goes, for each kind of function and frame. Random changes and frames are checked
//! against plain recomputation by the random queries of the runtime's tests.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};

use super::super::testing::{call, changes, check, emitted, feed, saved, schema, type_of};
use super::*;
use crate::types::{AggregateFunction, FrameBound, FrameFunction, FrameUnits};

const INPUT: &str = "k TEXT, n BIGINT, v BIGINT";
const CUMULATIVE: Frame =
    Frame { units: FrameUnits::Range, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow };

fn sum() -> (FrameFunction, DataType) {
    (FrameFunction::Aggregate(call(AggregateFunction::Sum, &[2], "BIGINT")), DataType::Int64)
}

/// Over `n`, partitioned by `k`.
fn operator(functions: &[(FrameFunction, DataType)], frame: Frame, descending: bool) -> OverTable {
    let input = schema(INPUT);
    let calls: Vec<FrameCall> = functions
        .iter()
        .map(|(function, of)| FrameCall {
            function: function.clone(),
            output: Arc::new(Field::new("result", of.clone(), true)),
        })
        .collect();
    let fields = input.fields().iter().cloned().chain(calls.iter().map(|call| Arc::clone(&call.output)));
    OverTable::new(OverTableParameters {
        output: Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>())),
        input,
        partition: vec![0],
        order: vec![SortColumn { column: 1, descending, nulls_first: !descending }],
        frame,
        calls,
        shown: 3,
        ttl_ms: 0,
        key_groups: KeyGroupRange::of_subtask(0, 1),
    })
    .unwrap()
}

fn told(operator: &mut OverTable, text: &str, size: usize) -> Vec<String> {
    let mut out = Output::default();
    feed(operator, &changes(&schema(INPUT), text), size, &mut out)
}

#[test]
fn a_row_that_comes_or_goes_is_told_first_and_then_those_behind_it() {
    for size in [1, 2, 10] {
        let mut operator = operator(&[sum()], CUMULATIVE, false);
        let found = told(&mut operator, "+I a 10 1\n+I a 4 2\n+I b 4 7\n+I a 10 3\n-U a 4 2\n+U a 11 2", size);
        check(
            &found,
            "+I[a, 10, 1, 1]
             +I[a, 4, 2, 2]
             -U[a, 10, 1, 1]
             +U[a, 10, 1, 3]
             +I[b, 4, 7, 7]
             +I[a, 10, 3, 6]
             -U[a, 10, 1, 3]
             +U[a, 10, 1, 6]
             -D[a, 4, 2, 2]
             -U[a, 10, 1, 6]
             +U[a, 10, 1, 4]
             -U[a, 10, 3, 6]
             +U[a, 10, 3, 4]
             +U[a, 11, 2, 6]",
        );
        assert_eq!(operator.counters(), [("partitions", 2), ("unmatched_retractions", 0)]);
        let found = told(&mut operator, "-D b 4 7\n-D b 4 7", size);
        check(&found, "-D[b, 4, 7, 7]");
        assert_eq!(operator.counters(), [("partitions", 1), ("unmatched_retractions", 1)]);
    }
}

#[test]
fn a_row_without_another_result_is_not_told() {
    let frame = Frame { units: FrameUnits::Rows, start: FrameBound::Preceding(1), end: FrameBound::Preceding(1) };
    let mut operator = operator(&[sum()], frame, false);
    check(&told(&mut operator, "+I a 1 5", 1), "+I[a, 1, 5, NULL]");
    check(&told(&mut operator, "+I a 3 5", 1), "+I[a, 3, 5, 5]");
    check(&told(&mut operator, "+I a 2 5", 1), "+I[a, 2, 5, 5]");
    check(&told(&mut operator, "+I a 0 6", 1), "+I[a, 0, 6, NULL]\n-U[a, 1, 5, NULL]\n+U[a, 1, 5, 6]");
}

#[test]
fn positions_and_neighbours() {
    let number = || DataType::Int64;
    let shift = |rows, default| (FrameFunction::Shift { column: 2, rows, default }, number());
    let mut operator = operator(
        &[
            (FrameFunction::RowNumber, number()),
            (FrameFunction::Rank, number()),
            (FrameFunction::DenseRank, number()),
            (FrameFunction::Ntile(2), number()),
            (FrameFunction::PercentRank, DataType::Float64),
            (FrameFunction::CumeDist, DataType::Float64),
            shift(-1, None),
            shift(1, Some(1)),
            (FrameFunction::First(2), number()),
            (FrameFunction::Last(2), number()),
            (FrameFunction::Nth(2, 2), number()),
        ],
        CUMULATIVE,
        false,
    );
    told(&mut operator, "+I a 1 _\n+I a 2 20\n+I a 2 21\n+I a 3 30", 10);
    // What stands there now is what goes.
    let gone = told(&mut operator, "-D a 1 _\n-D a 2 20\n-D a 2 21\n-D a 3 30", 10);
    let deleted: Vec<&String> = gone.iter().filter(|line| line.starts_with("-D")).collect();
    assert_eq!(deleted[0], "-D[a, 1, NULL, 1, 1, 1, 1, 0.0, 0.25, NULL, 20, NULL, NULL, NULL]");
    assert_eq!(deleted[1], "-D[a, 2, 20, 1, 1, 1, 1, 0.0, 0.6666666666666666, NULL, 21, 20, 21, 21]");
    assert_eq!(deleted[3], "-D[a, 3, 30, 1, 1, 1, 1, 0.0, 1.0, NULL, 3, 30, 30, NULL]");
    assert!(gone.contains(&"-U[a, 3, 30, 4, 4, 3, 2, 1.0, 1.0, 21, 3, 20, 30, 20]".to_owned()), "{gone:#?}");
}

#[test]
fn ranges_of_values_stop_at_the_types_ends_and_nulls_keep_to_themselves() {
    let frame = Frame { units: FrameUnits::Range, start: FrameBound::Preceding(10), end: FrameBound::Following(1) };
    for descending in [false, true] {
        let mut operator = operator(&[sum()], frame, descending);
        let (least, greatest) = (i64::MIN, i64::MAX);
        let lines = format!("+I a {least} 1\n+I a {greatest} 2\n+I a _ 4\n+I a _ 8\n+I a {} 16", greatest - 1);
        let found = told(&mut operator, &lines, 10);
        let last = |key: &str| found.iter().rfind(|line| line.contains(key)).unwrap().clone();
        assert_eq!(last(&format!("{least}, 1")), format!("+I[a, {least}, 1, 1]"));
        assert_eq!(last("NULL, 4"), "+U[a, NULL, 4, 12]");
        assert_eq!(last(&format!("{greatest}, 2")), format!("+U[a, {greatest}, 2, 18]"));
    }
}

#[test]
fn state_that_is_saved_in_parts_goes_on_at_another_parallelism() {
    let build = || operator(&[sum(), (FrameFunction::DenseRank, DataType::Int64)], CUMULATIVE, true);
    let mut first = build();
    told(&mut first, "+I a 1 1\n+I a 3 2\n+I b 5 3\n+I c 1 1", 10);
    let mut snapshots = vec![first.snapshot(1).unwrap()];
    told(&mut first, "-D a 3 2\n+I a 2 7\n-D c 1 1", 10);
    snapshots.push(first.snapshot(2).unwrap());
    let mut halves: Vec<OverTable> = (0..2)
        .map(|subtask| {
            let mut half = build();
            half.parameters.key_groups = KeyGroupRange::of_subtask(subtask, 2);
            half.restore(saved(&snapshots)).unwrap();
            half
        })
        .collect();
    assert_eq!(halves.iter().map(|half| half.keys.len()).sum::<usize>(), 2);
    let more = "+I a 9 1";
    let expected = told(&mut first, more, 1);
    check(&expected, "+I[a, 9, 1, 1, 1]\n-U[a, 2, 7, 7, 1]\n+U[a, 2, 7, 8, 2]\n-U[a, 1, 1, 8, 2]\n+U[a, 1, 1, 9, 3]");
    let owner = halves.iter_mut().find(|half| half.rows.len(0) == 2).unwrap();
    assert_eq!(told(owner, more, 1), expected);
    let mut out = Output::default();
    owner.on_watermark(crate::changelog::Watermark(5), &mut out).unwrap();
    check(&emitted(&mut out), "W 5");
}

#[test]
fn a_range_of_so_much_needs_an_order_that_can_be_measured() {
    let frame = Frame { units: FrameUnits::Range, start: FrameBound::Preceding(1), end: FrameBound::CurrentRow };
    let order = [SortColumn { column: 0, descending: false, nulls_first: true }];
    let calls = [FrameCall { function: sum().0, output: Arc::new(Field::new("s", type_of("BIGINT"), true)) }];
    let error = Reach::new(&schema(INPUT), &order, frame, &calls, false).err().unwrap();
    assert!(error.message().contains("one whole number or timestamp"));
}
