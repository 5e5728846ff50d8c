//! Interval joins in the notation of changelogs, and against recomputation by nested loops.

use std::collections::BTreeMap;

use datafusion_expr::Operator as Binary;
use datafusion_physical_expr::expressions::{BinaryExpr, Column};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::operators::testing::{changes, check, emitted, saved, schema};

const KINDS: [JoinKind; 4] = [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full];

/// Joins `k BIGINT, t TS, v BIGINT` with the same, perhaps where the left `v` is less than the right.
fn join(kind: JoinKind, times: bool, bounds: (i64, i64), keyed: bool, less: bool) -> IntervalJoin {
    let input = schema("k BIGINT, t TS, v BIGINT");
    let keys = if keyed { vec![0] } else { Vec::new() };
    let side = JoinInput { schema: Arc::clone(&input), keys, width: 3 };
    let column = |index| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new("v", index)) };
    let condition = || -> Arc<dyn PhysicalExpr> { Arc::new(BinaryExpr::new(column(2), Binary::Lt, column(5))) };
    IntervalJoin::new(IntervalJoinParameters {
        kind,
        inputs: [side.clone(), side],
        times: times.then_some([1, 1]),
        bounds,
        condition: less.then(condition),
        null_keys: NullKeys::Nothing,
        output: schema("k BIGINT, t TS, v BIGINT, k2 BIGINT, t2 TS, v2 BIGINT"),
        key_groups: KeyGroupRange::ALL,
    })
    .unwrap()
}

/// Feeds lines like `l 1 10 7`, `w 12` (a watermark), `c 12` (the clock) and `end`.
fn run(join: &mut IntervalJoin, text: &str) -> Vec<String> {
    let mut out = Output::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "w" => join.on_watermark(Watermark(rest.parse().unwrap()), &mut out).unwrap(),
            "c" => join.on_clock(rest.parse().unwrap(), &mut out).unwrap(),
            "end" => {
                join.on_watermark(Watermark::MAX, &mut out).unwrap();
                [0, 1].into_iter().for_each(|port| join.on_end(port, &mut out).unwrap());
            }
            _ => {
                let rows = changes(&schema("k BIGINT, t TS, v BIGINT"), &format!("+I {rest}"));
                join.on_changes(usize::from(what == "r"), rows, &mut out).unwrap();
            }
        }
    }
    emitted(&mut out)
}

#[test]
fn preserved_rows_stand_beside_nulls_once_no_match_can_come() {
    let text = "
        l 1 10 0
        r 1 12 1
        l 1 20 2
        r 1 16 3
        l _ 21 4
        w 15
        r 1 15 5
        w 25
        w 26
        end";
    let found = run(&mut join(JoinKind::Full, true, (0, 5), true, false), text);
    check(
        &found,
        "+I[1, 10, 0, 1, 12, 1]
         +I[NULL, 21, 4, NULL, NULL, NULL]
         W 9
         +I[1, 10, 0, 1, 15, 5]
         +I[NULL, NULL, NULL, 1, 16, 3]
         W 19
         +I[1, 20, 2, NULL, NULL, NULL]
         W 20
         W 9223372036854775807",
    );
}

#[test]
fn both_bounds_belong_to_the_interval_in_either_direction() {
    let text = "l 1 10 0\nr 1 6 1\nr 1 7 2\nr 1 8 3\nr 1 9 4\nend";
    check(
        &run(&mut join(JoinKind::Inner, true, (-3, -2), true, false), text),
        "+I[1, 10, 0, 1, 7, 2]\n+I[1, 10, 0, 1, 8, 3]\nW 9223372036854775807",
    );
    // Nothing lies between 1 and -1: no match, and nothing is waited for.
    let mut empty = join(JoinKind::Left, true, (1, -1), true, false);
    check(&run(&mut empty, text), "+I[1, 10, 0, NULL, NULL, NULL]\nW 9223372036854775807");
}

#[test]
fn late_rows_meet_what_is_left_and_are_counted_if_they_find_nothing() {
    let mut inner = join(JoinKind::Inner, true, (0, 5), true, false);
    let found = run(&mut inner, "l 1 10 0\nl 1 20 1\nw 20\nr 1 21 2\nr 1 12 3\nl 1 14 4\nl 2 19 5\nend");
    check(&found, "W 14\n+I[1, 20, 1, 1, 21, 2]\nW 9223372036854775807");
    assert_eq!(inner.counters()[2], ("late_rows", 2), "19 may still be matched by 21");
}

#[test]
fn in_processing_time_rows_are_as_old_as_their_arrival() {
    let text = "
        c 100
        l 1 0 0
        c 104
        r 1 0 1
        c 106
        r 1 0 2
        l 2 0 3
        c 112
        r 2 0 4
        end";
    let mut inner = join(JoinKind::Left, false, (0, 5), true, false);
    let start = run(&mut inner, &text[..text.find("c 112").unwrap()]);
    check(&start, "+I[1, 0, 0, 1, 0, 1]");
    assert_eq!(inner.sides[0].rows.len(), 1, "the row of 100 has gone at 106");
    let snapshot = inner.snapshot(1).unwrap();
    let mut restored = join(JoinKind::Left, false, (0, 5), true, false);
    restored.restore(saved(&[snapshot])).unwrap();
    check(
        &run(&mut restored, &text[text.find("c 112").unwrap()..]),
        "+I[2, 0, 3, NULL, NULL, NULL]\nW 9223372036854775807",
    );
}

#[test]
fn nothing_is_kept_longer_than_it_can_match() {
    let mut full = join(JoinKind::Full, true, (-2, 3), true, false);
    run(&mut full, "l 1 10 0\nr 1 10 1\nl 2 10 2\nw 12\nr 3 11 4\nw 13");
    assert_eq!((full.sides[0].rows.len(), full.sides[1].rows.len()), (2, 1), "left rows may match up to 13");
    run(&mut full, "w 14\nl 4 5 0");
    assert_eq!((full.sides[0].rows.len(), full.sides[1].rows.len(), full.keys.len()), (0, 0, 0));
}

type Row = (Option<i64>, i64, i64);

fn text((key, time, value): &Row) -> String {
    format!("{}, {time}, {value}", key.map_or("NULL".to_string(), |key| key.to_string()))
}

/// The result by nested loops.
fn recomputed(
    kind: JoinKind,
    bounds: (i64, i64),
    keyed: bool,
    less: bool,
    sides: &[Vec<Row>; 2],
) -> BTreeMap<String, i64> {
    let matches = |left: &Row, right: &Row| {
        let equal = !keyed || (left.0.is_some() && left.0 == right.0);
        equal && (bounds.0..=bounds.1).contains(&(right.1 - left.1)) && (!less || left.2 < right.2)
    };
    let nulls = "NULL, NULL, NULL";
    let mut table: BTreeMap<String, i64> = BTreeMap::new();
    let mut emit = |row: String| *table.entry(format!("+I[{row}]")).or_default() += 1;
    for left in &sides[0] {
        let found: Vec<&Row> = sides[1].iter().filter(|right| matches(left, right)).collect();
        found.iter().for_each(|right| emit(format!("{}, {}", text(left), text(right))));
        if found.is_empty() && kind.pads(0) {
            emit(format!("{}, {nulls}", text(left)));
        }
    }
    let lonely = sides[1].iter().filter(|right| !sides[0].iter().any(|left| matches(left, right)));
    lonely.filter(|_| kind.pads(1)).for_each(|right| emit(format!("{nulls}, {}", text(right))));
    table
}

/// The times of an emitted row: none is late behind the watermark that went before.
fn check_not_late(line: &str, mark: i64) {
    let cells: Vec<&str> = line[3..line.len() - 1].split(", ").collect();
    for time in [cells[1], cells[4]].iter().filter_map(|cell| cell.parse::<i64>().ok()) {
        assert!(time > mark, "{line} after the watermark {mark}");
    }
}

#[test]
fn rows_in_any_order_give_what_nested_loops_give_also_after_restarts() {
    for seed in 0..240 {
        let mut random = StdRng::seed_from_u64(seed);
        let kind = KINDS[seed as usize % KINDS.len()];
        let (keyed, less) = (random.random(), random.random_range(0..3) == 0);
        let low = random.random_range(-6..6);
        let bounds = (low, low + random.random_range(-1..8));
        let new = || join(kind, true, bounds, keyed, less);
        let mut operator = new();
        let mut sides: [Vec<Row>; 2] = Default::default();
        let (mut snapshots, mut table, mut out) = (Vec::new(), BTreeMap::new(), Output::default());
        let (mut mark, mut told): (i64, i64) = (0, i64::MIN);
        for step in 0..80 {
            let port = random.random_range(0..2);
            // Rows at the watermark's very moment are still in time.
            let rows: Vec<Row> = (0..random.random_range(1..6))
                .map(|_| {
                    let key = Some(random.random_range(0..4)).filter(|key| *key != 0);
                    (key, mark + random.random_range(0..15), random.random_range(0..3))
                })
                .collect();
            let lines = rows.iter().map(|row| format!("+I {}", text(row).replace(',', "").replace("NULL", "_")));
            let batch = changes(&schema("k BIGINT, t TS, v BIGINT"), &lines.collect::<Vec<_>>().join("\n"));
            sides[port].extend(rows);
            operator.on_changes(port, batch, &mut out).unwrap();
            if random.random_range(0..3) == 0 {
                mark += random.random_range(0..6);
                operator.on_watermark(Watermark(mark), &mut out).unwrap();
            }
            if step == 79 {
                operator.on_watermark(Watermark::MAX, &mut out).unwrap();
            }
            for line in emitted(&mut out) {
                match line.strip_prefix("W ") {
                    Some(mark) => told = mark.parse().unwrap(),
                    None => {
                        check_not_late(&line, told);
                        *table.entry(line).or_default() += 1;
                    }
                }
            }
            if random.random_range(0..8) == 0 {
                snapshots.push(operator.snapshot(step).unwrap());
                if random.random() {
                    operator = new();
                    operator.restore(saved(&snapshots)).unwrap();
                }
            }
        }
        assert_eq!(table, recomputed(kind, bounds, keyed, less, &sides), "seed {seed}, {kind:?}, {bounds:?}");
        assert_eq!((operator.sides[0].rows.len(), operator.sides[1].rows.len(), operator.keys.len()), (0, 0, 0));
    }
}

#[test]
fn a_row_with_more_matches_than_a_batch_meets_them_all() {
    let mut inner = join(JoinKind::Right, true, (0, 100), false, false);
    let rows: Vec<String> = (0..9_000).map(|value| format!("l 1 {} {value}", value % 7)).collect();
    run(&mut inner, &rows.join("\n"));
    let found = run(&mut inner, "r 1 3 -1\nr 2 6 -2\nend");
    assert_eq!(found.len(), 9_000 / 7 * 11 + 10, "{}", found.len());
}
