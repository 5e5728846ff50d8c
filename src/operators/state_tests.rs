//! What every operator that remembers something owes: nothing is kept of nothing, and idle keys expire, restarts or not.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, SchemaRef};

use super::testing::{call, changes, check, emitted, saved, schema};
use super::*;
use crate::changelog::Kind;
use crate::state::KeyGroupRange;
use crate::types::{
    AggregateCall, AggregateFunction, Emission, Firing, Frame, FrameBound, FrameCall, FrameFunction, FrameUnits,
    JoinKind, LocalTime, NullKeys, OnConflict, OverCall, OverFrame, RankFunction, RankInput, SetOperation, SortColumn,
    WindowColumn, WindowSpec, WindowTime,
};

const ALL: KeyGroupRange = KeyGroupRange::ALL;
const INPUT: &str = "k BIGINT, v BIGINT";
const TIMED: &str = "k BIGINT, v TS";

/// A kind of operator over `k BIGINT, v BIGINT`, or `v TS`, with a time to live.
type Make = Box<dyn Fn(u64) -> Box<dyn Operator>>;

fn group(aggregates: Vec<AggregateCall>, output: &'static str) -> Make {
    Box::new(move |ttl_ms| {
        let parameters = GroupAggregateParameters {
            input: schema(INPUT),
            output: schema(output),
            keys: vec![0],
            aggregates: aggregates.clone(),
            append_only_input: false,
            emit_update_before: true,
            mini_batch: None,
            ttl_ms,
            key_groups: ALL,
        };
        Box::new(GroupAggregate::new(parameters).unwrap())
    })
}

fn join(kind: JoinKind, condition_free_output: &'static str) -> Make {
    Box::new(move |ttl_ms| {
        let side = JoinInput { schema: schema(INPUT), keys: vec![0], width: 2 };
        let parameters = JoinParameters {
            kind,
            inputs: [side.clone(), side],
            condition: None,
            null_keys: NullKeys::Nothing,
            output: schema(condition_free_output),
            ttl_ms: [ttl_ms; 2],
            key_groups: ALL,
        };
        Box::new(Join::new(parameters).unwrap())
    })
}

fn order() -> Vec<SortColumn> {
    vec![SortColumn { column: 1, descending: true, nulls_first: false }]
}

fn rank() -> Make {
    Box::new(|ttl_ms| {
        let parameters = RankParameters {
            input: schema(INPUT),
            output: schema("k BIGINT, v BIGINT, rn BIGINT"),
            partition: vec![0],
            order: order(),
            function: RankFunction::RowNumber,
            range: (1, 2),
            by_rank: true,
            changes: RankInput::Retract,
            newest_first: false,
            emit_update_before: true,
            ttl_ms,
            key_groups: ALL,
        };
        Box::new(Rank::new(parameters).unwrap())
    })
}

fn over_table() -> Make {
    Box::new(|ttl_ms| {
        let sum = call(AggregateFunction::Sum, &[1], "BIGINT");
        let frame =
            Frame { units: FrameUnits::Range, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow };
        let parameters = OverTableParameters {
            input: schema(INPUT),
            output: schema("k BIGINT, v BIGINT, s BIGINT"),
            partition: vec![0],
            order: vec![SortColumn { column: 1, descending: false, nulls_first: true }],
            frame,
            calls: vec![FrameCall {
                function: FrameFunction::Aggregate(sum),
                output: Arc::new(Field::new("s", DataType::Int64, true)),
            }],
            shown: 2,
            ttl_ms,
            key_groups: ALL,
        };
        Box::new(OverTable::new(parameters).unwrap())
    })
}

fn over(time: bool) -> Make {
    Box::new(move |ttl_ms| {
        let count = call(AggregateFunction::Count, &[], "BIGINT");
        let parameters = OverParameters {
            input: schema(if time { TIMED } else { INPUT }),
            output: schema(if time { "k BIGINT, v TS, n BIGINT" } else { "k BIGINT, v BIGINT, n BIGINT" }),
            partition: vec![0],
            time: time.then_some(1),
            frame: OverFrame::Rows(None),
            calls: vec![OverCall::Aggregate(count)],
            shown: 2,
            ttl_ms,
            key_groups: ALL,
        };
        Box::new(Over::new(parameters).unwrap())
    })
}

fn counted_set(operation: SetOperation) -> Make {
    Box::new(move |ttl_ms| Box::new(CountedSet::new(operation, schema(INPUT), ttl_ms, ALL).unwrap()))
}

fn normalize() -> Make {
    Box::new(|ttl_ms| Box::new(ChangelogNormalize::new(schema(INPUT), vec![0], true, ttl_ms, ALL).unwrap()))
}

fn materialize(conflict: OnConflict) -> Make {
    Box::new(move |ttl_ms| {
        let parameters = UpsertMaterializeParameters {
            schema: schema(INPUT),
            key: vec![0],
            conflict,
            append_only_input: false,
            emit_update_before: true,
            ttl_ms,
            key_groups: ALL,
        };
        Box::new(UpsertMaterialize::new(parameters).unwrap())
    })
}

fn keep_first() -> Make {
    Box::new(|ttl_ms| {
        let output = schema("k BIGINT, v TS, rn BIGINT");
        Box::new(KeepFirst::new(&schema(TIMED), output, &[0], 1, ttl_ms, ALL).unwrap())
    })
}

/// Of one window that holds all rows.
fn window(updating: bool) -> Make {
    Box::new(move |_| {
        let parameters = WindowAggregateParameters {
            input: schema(TIMED),
            output: schema("k BIGINT, s TS, n BIGINT, m TS"),
            keys: vec![0],
            time: 1,
            window: WindowSpec::Tumble { size: 1_000_000_000, offset: 0 },
            clock: LocalTime::default(),
            moment: WindowTime::Event,
            window_columns: vec![WindowColumn::Start],
            aggregates: vec![call(AggregateFunction::Count, &[], "BIGINT"), call(AggregateFunction::Max, &[1], "TS")],
            append_only_input: false,
            key_groups: ALL,
        };
        if updating {
            let emission = Emission { early: Some(Firing::EachRow), late: None, lateness_ms: 0 };
            Box::new(UpdatingWindowAggregate::new(parameters, emission).unwrap())
        } else {
            Box::new(WindowAggregate::new(parameters).unwrap())
        }
    })
}

/// A thousandfold of keys, each twice.
fn many(input: &SchemaRef, kind: Kind) -> ChangeBatch {
    const KEYS: i64 = 6_000;
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..2 * KEYS).map(|row| row % KEYS)));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..2 * KEYS));
    let values = cast(&values, input.field(1).data_type()).unwrap();
    let rows = RecordBatch::try_new(Arc::clone(input), vec![keys, values]).unwrap();
    ChangeBatch::new(rows, vec![kind; 2 * KEYS as usize]).unwrap()
}

#[test]
fn nothing_is_kept_of_nothing() {
    let aggregates = || {
        let distinct = |function| AggregateCall { distinct: true, ..call(function, &[1], "BIGINT") };
        let ordered = AggregateCall { order: order(), ..call(AggregateFunction::FirstValue, &[1], "BIGINT") };
        vec![
            call(AggregateFunction::Sum, &[1], "BIGINT"),
            call(AggregateFunction::Max, &[1], "BIGINT"),
            call(AggregateFunction::LastValue, &[1], "BIGINT"),
            distinct(AggregateFunction::Count),
            ordered,
        ]
    };
    let pairs = "k BIGINT, v BIGINT, k2 BIGINT, v2 BIGINT";
    let kinds: Vec<(&str, Make, usize, &str)> = vec![
        ("aggregates", group(aggregates(), "k BIGINT, a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT"), 1, INPUT),
        ("DISTINCT", group(Vec::new(), "k BIGINT"), 1, INPUT),
        ("inner join", join(JoinKind::Inner, pairs), 2, INPUT),
        ("full join", join(JoinKind::Full, pairs), 2, INPUT),
        ("anti join", join(JoinKind::Anti, INPUT), 2, INPUT),
        ("Top-N", rank(), 1, INPUT),
        ("OVER", over_table(), 1, INPUT),
        ("INTERSECT", counted_set(SetOperation::IntersectAll), 2, INPUT),
        ("EXCEPT", counted_set(SetOperation::ExceptAll), 2, INPUT),
        ("upserts in full", normalize(), 1, INPUT),
        ("the last of a key", materialize(OnConflict::Deduplicate), 1, INPUT),
        ("the first of a key", materialize(OnConflict::Nothing), 1, INPUT),
        ("window", window(false), 1, TIMED),
        ("window told early", window(true), 1, TIMED),
    ];
    for (name, make, ports, columns) in kinds {
        let input = schema(columns);
        for (checkpoints, ttl_ms) in [(false, 0), (true, 0), (true, 1_000_000)] {
            let what = format!("{name}, checkpoints {checkpoints}, time to live {ttl_ms}");
            let (mut operator, mut out, mut snapshots) = (make(ttl_ms), Output::default(), Vec::new());
            operator.on_clock(0, &mut out).unwrap();
            let mut step = |operator: &mut Box<dyn Operator>, kind: Kind, mark: i64| {
                for port in 0..ports {
                    operator.on_changes(port, many(&input, kind), &mut out).unwrap();
                }
                operator.on_watermark(Watermark(mark), &mut out).unwrap();
                out.drain().for_each(drop);
                if checkpoints {
                    operator.before_barrier(&mut out).unwrap();
                    snapshots.push(operator.snapshot(snapshots.len() as u64 + 1).unwrap());
                }
                operator.shrink().unwrap();
                operator.state_size().unwrap()
            };
            let full = step(&mut operator, Kind::Insert, -2);
            assert!(full.keys >= 6_000 && full.bytes > 100_000, "{what}: {full:?}");
            let empty = step(&mut operator, Kind::Delete, -1);
            assert!(empty.keys == 0 && empty.bytes < full.bytes / 20, "{what}: {full:?}, then {empty:?}");
            // The operator works on, and a restart finds what it then has.
            let again = step(&mut operator, Kind::Insert, 0);
            assert_eq!(again.keys, full.keys, "{what}");
            if checkpoints {
                let mut second = make(ttl_ms);
                second.restore(saved(&snapshots)).unwrap();
                assert_eq!(second.state_size().unwrap().keys, full.keys, "{what}");
            }
        }
    }
}

/// What comes out of one row, time aside.
fn told(operator: &mut dyn Operator, port: Port, input: &SchemaRef, row: &str, mark: i64) -> Vec<String> {
    let mut out = Output::default();
    operator.on_changes(port, changes(input, row), &mut out).unwrap();
    operator.on_watermark(Watermark(mark), &mut out).unwrap();
    let mut lines = emitted(&mut out);
    lines.retain(|line| !line.starts_with('W'));
    lines
}

#[test]
fn idle_keys_expire_by_the_clock_whatever_is_restarted() {
    let count = || vec![call(AggregateFunction::Count, &[], "BIGINT")];
    let pairs = "k BIGINT, v BIGINT, k2 BIGINT, v2 BIGINT";
    // Which port the second row comes to; both rows; what the second gives while the first is known, and when it is not.
    type Case = (&'static str, Make, Port, [&'static str; 2], &'static str, &'static str);
    let cases: Vec<Case> = vec![
        ("aggregate", group(count(), "k BIGINT, n BIGINT"), 0, ["+I 1 5", "+I 1 6"], "-U[1, 1]\n+U[1, 2]", "+I[1, 1]"),
        ("DISTINCT", group(Vec::new(), "k BIGINT"), 0, ["+I 1 5", "+I 1 6"], "", "+I[1]"),
        ("join", join(JoinKind::Inner, pairs), 1, ["+I 1 5", "+I 1 6"], "+I[1, 5, 1, 6]", ""),
        ("semi join", join(JoinKind::Semi, INPUT), 1, ["+I 1 5", "+I 1 6"], "+I[1, 5]", ""),
        ("INTERSECT", counted_set(SetOperation::IntersectAll), 1, ["+I 1 5", "+I 1 5"], "+I[1, 5]", ""),
        ("EXCEPT", counted_set(SetOperation::ExceptAll), 1, ["+I 1 5", "+I 1 5"], "-D[1, 5]", ""),
        ("normalize", normalize(), 0, ["+I 1 5", "+U 1 6"], "-U[1, 5]\n+U[1, 6]", "+I[1, 6]"),
        (
            "the last of a key",
            materialize(OnConflict::Deduplicate),
            0,
            ["+I 1 5", "+I 1 6"],
            "-U[1, 5]\n+U[1, 6]",
            "+I[1, 6]",
        ),
        ("the first of a key", materialize(OnConflict::Nothing), 0, ["+I 1 5", "+I 1 6"], "", "+I[1, 6]"),
        ("Top-N", rank(), 0, ["+I 1 5", "+I 1 4"], "+I[1, 4, 2]", "+I[1, 4, 1]"),
        ("OVER time", over(false), 0, ["+I 1 5", "+I 1 6"], "+I[1, 6, 2]", "+I[1, 6, 1]"),
        ("OVER event time", over(true), 0, ["+I 1 5", "+I 1 6"], "+I[1, 6, 2]", "+I[1, 6, 1]"),
        ("OVER", over_table(), 0, ["+I 1 5", "+I 1 6"], "+I[1, 6, 11]", "+I[1, 6, 6]"),
        ("first by time", keep_first(), 0, ["+I 1 5", "+I 1 6"], "", "+I[1, 6, 1]"),
    ];
    for (name, make, port, [first, second], known, forgotten) in cases {
        let timed = matches!(name, "OVER event time" | "first by time");
        let input = schema(if timed { TIMED } else { INPUT });
        for restarted in [false, true] {
            // Whether the key has been swept away before its next row comes makes no difference.
            for (later, expected) in [(1_099, known), (1_100, forgotten), (9_999, forgotten)] {
                let (mut operator, mut out) = (make(1_000), Output::default());
                operator.on_clock(100, &mut out).unwrap();
                told(&mut *operator, 0, &input, first, 5);
                if restarted {
                    operator.on_clock(500, &mut out).unwrap();
                    let snapshot = operator.snapshot(1).unwrap();
                    operator = make(1_000);
                    operator.restore(saved(&[snapshot])).unwrap();
                    // What waits for the watermark is never idle, and after a restart everything might.
                    operator.on_watermark(Watermark(5), &mut out).unwrap();
                    out.drain().for_each(drop);
                }
                operator.on_clock(later, &mut out).unwrap();
                if later > 2_000 {
                    assert_eq!(operator.state_size().unwrap().keys, 0, "{name}, restarted {restarted}");
                }
                let found = told(&mut *operator, port, &input, second, 6);
                let what = format!("{name}, restarted {restarted}, at {later}");
                assert_eq!(found.join("\n"), expected, "{what}");
            }
        }
    }
}

#[test]
fn rows_that_wait_for_the_watermark_are_not_idle() {
    let (mut operator, mut out) = (over(true)(1_000), Output::default());
    operator.on_clock(0, &mut out).unwrap();
    check(&told(&mut *operator, 0, &schema(TIMED), "+I 1 5", 5), "+I[1, 5, 1]");
    check(&told(&mut *operator, 0, &schema(TIMED), "+I 1 50", 6), "");
    operator.on_clock(60_000, &mut out).unwrap();
    operator.on_watermark(Watermark(60), &mut out).unwrap();
    // Its partition has been idle for too long, so the row finds nothing before it.
    check(&emitted(&mut out), "+I[1, 50, 1]\nW 60");
}

#[test]
fn saved_state_is_taken_over_with_a_time_to_live_and_without() {
    let make = group(vec![call(AggregateFunction::Count, &[], "BIGINT")], "k BIGINT, n BIGINT");
    for (before, after) in [(0, 1_000), (1_000, 0)] {
        let (mut first, mut out) = (make(before), Output::default());
        first.on_clock(0, &mut out).unwrap();
        told(&mut *first, 0, &schema(INPUT), "+I 1 5", 0);
        let mut second = make(after);
        second.restore(saved(&[first.snapshot(1).unwrap()])).unwrap();
        // Nobody knows how long the key has been idle: it lives from now on.
        second.on_clock(50_000, &mut out).unwrap();
        check(&told(&mut *second, 0, &schema(INPUT), "+I 1 5", 0), "-U[1, 1]\n+U[1, 2]");
    }
}
