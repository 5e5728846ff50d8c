//! Temporal joins in the notation of changelogs, and against the history of the table told by hand.

use std::collections::BTreeMap;

use datafusion_expr::Operator as Binary;
use datafusion_physical_expr::expressions::{BinaryExpr, Column};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::operators::testing::{changes, check, emitted, saved, schema};

/// Joins `k BIGINT, t TS, v BIGINT` with versions of the same, on `k`.
fn parameters(outer: bool, versions: Versions) -> TemporalJoinParameters {
    let input = schema("k BIGINT, t TS, v BIGINT");
    let side = JoinInput { schema: Arc::clone(&input), keys: vec![0], width: 3 };
    TemporalJoinParameters {
        outer,
        inputs: [side.clone(), side],
        times: (versions == Versions::ByTime).then_some([1, 1]),
        versions,
        table_first: false,
        append_only: true,
        condition: None,
        output: schema("k BIGINT, t TS, v BIGINT, k2 BIGINT, t2 TS, v2 BIGINT"),
        ttl_ms: 0,
        key_groups: KeyGroupRange::ALL,
    }
}

fn event_time(outer: bool, append_only: bool) -> TemporalJoin {
    TemporalJoin::new(TemporalJoinParameters { append_only, ..parameters(outer, Versions::ByTime) }).unwrap()
}

/// Feeds lines like `l +I 1 10 7`, `w 12` (a watermark) and `end r`; neighbours of one side as one batch.
fn run(join: &mut TemporalJoin, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut out = Output::default();
    for run in lines.chunk_by(|a, b| a[..1] == b[..1] && matches!(&a[..1], "l" | "r")) {
        match run[0].split_once(' ').unwrap() {
            ("w", mark) => join.on_watermark(Watermark(mark.parse().unwrap()), &mut out).unwrap(),
            ("end", side) => join.on_end(usize::from(side == "r"), &mut out).unwrap(),
            (side, _) => {
                let rows: Vec<&str> = run.iter().map(|line| &line[2..]).collect();
                let batch = changes(&schema("k BIGINT, t TS, v BIGINT"), &rows.join("\n"));
                join.on_changes(usize::from(side == "r"), batch, &mut out).unwrap();
            }
        }
    }
    emitted(&mut out)
}

const HISTORY: &str = "
    r +I 1 10 100
    r -U 1 10 100
    r +U 1 20 200
    r -D 1 30 200
    r +I 1 40 400
    r +I _ 0 900";

#[test]
fn a_row_meets_the_version_that_was_valid_at_its_time() {
    let left = "\nl +I 1 9 0\nl +I 1 10 1\nl +I 1 19 2\nl +I 1 30 3\nl +I 1 40 4\nl +I 2 40 5\nl +I _ 40 6\nw 40";
    check(
        &run(&mut event_time(true, true), &(HISTORY.to_string() + left)),
        "+I[1, 9, 0, NULL, NULL, NULL]
         +I[1, 10, 1, 1, 10, 100]
         +I[1, 19, 2, 1, 10, 100]
         +I[1, 30, 3, NULL, NULL, NULL]
         +I[1, 40, 4, 1, 40, 400]
         +I[2, 40, 5, NULL, NULL, NULL]
         +I[NULL, 40, 6, NULL, NULL, NULL]
         W 40",
    );
    check(
        &run(&mut event_time(false, true), &(left.replace("w 40", "") + HISTORY + "\nw 40")),
        "+I[1, 10, 1, 1, 10, 100]\n+I[1, 19, 2, 1, 10, 100]\n+I[1, 40, 4, 1, 40, 400]\nW 40",
    );
}

#[test]
fn a_condition_that_fails_leaves_the_row_beside_nulls() {
    let column = |index| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new("v", index)) };
    let condition: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column(2), Binary::Gt, column(5)));
    let parameters = TemporalJoinParameters { condition: Some(condition), ..parameters(true, Versions::ByTime) };
    let mut join = TemporalJoin::new(parameters).unwrap();
    let found = run(&mut join, "r +I 1 1 11\nl +I 1 2 10\nl +I 1 3 12\nw 9");
    check(&found, "+I[1, 2, 10, NULL, NULL, NULL]\n+I[1, 3, 12, 1, 1, 11]\nW 9");
}

#[test]
fn rows_wait_for_the_watermark_and_old_versions_go_with_it() {
    let mut join = event_time(false, true);
    let found = run(&mut join, "r +I 1 10 1\nl +I 1 15 0\nl +I 1 25 0\nw 14\nr +U 1 15 2\nr +U 1 20 3\nw 15");
    check(&found, "W 14\n+I[1, 15, 0, 1, 15, 2]\nW 15");
    let counts = |join: &TemporalJoin| join.counters().into_iter().map(|(_, count)| count).collect::<Vec<_>>();
    assert_eq!(counts(&join), [1, 2, 0], "one row waits; the versions of 15 and 20 are left");
    // A late row meets what is left; a deletion is forgotten once nothing stands before it.
    check(&run(&mut join, "l +I 1 10 9\nr -D 1 30 3\nw 30"), "+I[1, 25, 0, 1, 20, 3]\nW 30");
    assert_eq!((counts(&join), join.keys.len()), (vec![0, 0, 1], 0));
}

#[test]
fn what_was_told_of_an_updated_row_is_taken_back_as_it_was_told() {
    let mut join = event_time(true, false);
    check(&run(&mut join, "r +I 1 10 1\nl +I 1 15 5\nw 20"), "+I[1, 15, 5, 1, 10, 1]\nW 20");
    run(&mut join, "r +U 1 30 2\nw 40");
    let snapshot = join.snapshot(1).unwrap();
    let mut join = event_time(true, false);
    join.restore(saved(&[snapshot])).unwrap();
    check(
        &run(&mut join, "l -U 1 15 5\nl +U 1 45 6\nw 50\nl -U 1 45 6\nl +U 1 60 7\nl -D 1 60 7\nw 55\nw 60"),
        "-U[1, 15, 5, 1, 10, 1]
         +U[1, 45, 6, 1, 30, 2]
         W 50
         -D[1, 45, 6, 1, 30, 2]
         W 55
         +I[1, 60, 7, 1, 30, 2]
         -D[1, 60, 7, 1, 30, 2]
         W 60",
    );
    assert_eq!(join.told.unwrap().rows.len(), 0);
}

#[test]
fn without_a_time_of_its_own_the_table_is_met_as_it_is() {
    let parameters = TemporalJoinParameters { append_only: false, ..parameters(true, Versions::Latest) };
    let mut join = TemporalJoin::new(parameters).unwrap();
    check(
        &run(
            &mut join,
            "l +I 1 0 1\nr +I 1 0 11\nl +I 1 0 2\nr -D 1 0 11\nl -U 1 0 2\nl +U 1 0 3\nl -D 1 0 1\nl -D 7 7 7",
        ),
        "+I[1, 0, 1, NULL, NULL, NULL]
         +I[1, 0, 2, 1, 0, 11]
         -U[1, 0, 2, 1, 0, 11]
         +U[1, 0, 3, NULL, NULL, NULL]
         -D[1, 0, 1, NULL, NULL, NULL]",
    );
}

#[test]
fn a_table_that_ends_is_read_first_and_a_key_may_have_many_rows() {
    let parameters = || TemporalJoinParameters { table_first: true, ..parameters(true, Versions::All) };
    let mut join = TemporalJoin::new(parameters()).unwrap();
    check(&run(&mut join, "l +I 1 0 1\nr +I 1 0 11\nl +I 2 0 2\nw 5"), "");
    let snapshot = join.snapshot(1).unwrap();
    let mut join = TemporalJoin::new(parameters()).unwrap();
    join.restore(saved(&[snapshot])).unwrap();
    check(
        &run(&mut join, "r +I 1 0 12\nend r\nl +I 1 0 3"),
        "+I[1, 0, 1, 1, 0, 11]
         +I[1, 0, 1, 1, 0, 12]
         +I[2, 0, 2, NULL, NULL, NULL]
         +I[1, 0, 3, 1, 0, 11]
         +I[1, 0, 3, 1, 0, 12]",
    );
}

#[test]
fn any_order_of_arrival_gives_what_the_history_says_also_after_restarts() {
    for seed in 0..120 {
        let mut random = StdRng::seed_from_u64(seed);
        let outer: bool = random.random();
        let new = || event_time(outer, true);
        let mut join = new();
        // By key and time: the row from then on.
        let mut history: BTreeMap<(i64, i64), Option<i64>> = BTreeMap::new();
        let (mut left, mut found): (Vec<(i64, i64, i64)>, Vec<String>) = Default::default();
        let (mut mark, mut snapshots) = (0, Vec::new());
        for step in 0..60 {
            let (key, time) = (random.random_range(0..3), mark + 1 + random.random_range(0..10));
            match random.random_range(0..5) {
                0 | 1 => {
                    left.push((key, time, step));
                    found.extend(run(&mut join, &format!("l +I {key} {time} {step}")));
                }
                2 | 3 => {
                    let deleted = random.random_range(0..4) == 0;
                    history.insert((key, time), (!deleted).then_some(step));
                    let kind = if deleted { "-D" } else { "+U" };
                    found.extend(run(&mut join, &format!("r {kind} {key} {time} {step}")));
                }
                _ => {
                    mark += random.random_range(0..8);
                    found.extend(run(&mut join, &format!("w {mark}")));
                    snapshots.push(join.snapshot(step as u64).unwrap());
                    if random.random() {
                        join = new();
                        join.restore(saved(&snapshots)).unwrap();
                    }
                }
            }
        }
        found.extend(run(&mut join, &format!("w {}", i64::MAX)));
        let mut expected: Vec<String> = Vec::new();
        for (key, time, value) in left {
            let version = history.range((key, i64::MIN)..=(key, time)).next_back();
            match version.and_then(|((_, from), row)| Some((*from, (*row)?))) {
                Some((from, row)) => expected.push(format!("+I[{key}, {time}, {value}, {key}, {from}, {row}]")),
                None if outer => expected.push(format!("+I[{key}, {time}, {value}, NULL, NULL, NULL]")),
                None => {}
            }
        }
        found.retain(|line| !line.starts_with('W'));
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn idle_keys_of_the_table_expire_and_on_event_time_those_asked_for_do_not() {
    for (versions, asked_for) in
        [(Versions::Latest, "+I[1, 12, 6, NULL, NULL, NULL]"), (Versions::ByTime, "+I[1, 12, 6, 1, 10, 100]")]
    {
        for restarted in [false, true] {
            let make =
                || TemporalJoin::new(TemporalJoinParameters { ttl_ms: 1_000, ..parameters(true, versions) }).unwrap();
            let (mut join, mut out) = (make(), Output::default());
            join.on_clock(0, &mut out).unwrap();
            run(&mut join, "r +I 1 10 100\nr +I 2 10 200\nw 10");
            join.on_clock(900, &mut out).unwrap();
            let found = run(&mut join, "l +I 1 11 5\nw 11");
            assert_eq!(found.first().map(String::as_str), Some("+I[1, 11, 5, 1, 10, 100]"));
            if restarted {
                let snapshot = join.snapshot(1).unwrap();
                join = make();
                join.restore(saved(&[snapshot])).unwrap();
            }
            join.on_clock(1_500, &mut out).unwrap();
            let found = run(&mut join, "l +I 1 12 6\nl +I 2 12 7\nw 12");
            assert_eq!(
                found[..2],
                [asked_for, "+I[2, 12, 7, NULL, NULL, NULL]"],
                "{versions:?}, restarted {restarted}"
            );
            join.on_clock(60_000, &mut out).unwrap();
            assert_eq!(join.counters()[1], ("versions", 0), "{versions:?}, restarted {restarted}");
            assert_eq!(join.keys.len(), 0);
        }
    }
}
