//! Joins in the notation of changelogs, and against recomputation by nested loops.

use std::collections::BTreeMap;

use datafusion_expr::Operator as Binary;
use datafusion_physical_expr::expressions::{BinaryExpr, Column};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::operators::testing::{changes, check, emitted, folded, saved, schema};

const KINDS: [JoinKind; 7] =
    [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti, JoinKind::Mark];

/// Joins `k BIGINT, v BIGINT` with the same, on `k` (or on nothing), perhaps where the left `v` is less than the right.
fn join(kind: JoinKind, keyed: bool, null_keys: NullKeys, less: bool) -> Join {
    let input = schema("k BIGINT, v BIGINT");
    let keys = if keyed { vec![0] } else { Vec::new() };
    let side = JoinInput { schema: Arc::clone(&input), keys, width: 2 };
    let output = match kind {
        JoinKind::Semi | JoinKind::Anti => input,
        JoinKind::Mark => schema("k BIGINT, v BIGINT, mark BOOL"),
        _ => schema("k BIGINT, v BIGINT, k2 BIGINT, v2 BIGINT"),
    };
    let column = |index| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new("v", index)) };
    let condition = || -> Arc<dyn PhysicalExpr> { Arc::new(BinaryExpr::new(column(1), Binary::Lt, column(3))) };
    Join::new(JoinParameters {
        kind,
        inputs: [side.clone(), side],
        condition: less.then(condition),
        null_keys,
        output,
        ttl_ms: [0; 2],
        key_groups: KeyGroupRange::ALL,
    })
    .unwrap()
}

/// Feeds lines like `l +I 1 2`, neighbours of one side as one batch.
fn run(join: &mut Join, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut out = Output::default();
    for run in lines.chunk_by(|a, b| a[..1] == b[..1]) {
        let rows: Vec<&str> = run.iter().map(|line| &line[2..]).collect();
        let batch = changes(&schema("k BIGINT, v BIGINT"), &rows.join("\n"));
        join.on_changes(usize::from(run[0].starts_with('r')), batch, &mut out).unwrap();
    }
    emitted(&mut out)
}

#[test]
fn a_left_row_stands_beside_nulls_exactly_as_long_as_it_has_no_match() {
    let text = "
        l +I 1 10
        r +I 1 7
        r +I 1 8
        r -D 1 7
        r -D 1 8
        l -D 1 10
        l +I _ 5
        l -D _ 5";
    let found = run(&mut join(JoinKind::Left, true, NullKeys::Nothing, false), text);
    check(
        &found,
        "+I[1, 10, NULL, NULL]
         -D[1, 10, NULL, NULL]
         +I[1, 10, 1, 7]
         +I[1, 10, 1, 8]
         -D[1, 10, 1, 7]
         -D[1, 10, 1, 8]
         +I[1, 10, NULL, NULL]
         -D[1, 10, NULL, NULL]
         +I[NULL, 5, NULL, NULL]
         -D[NULL, 5, NULL, NULL]",
    );
}

#[test]
fn between_two_preserved_sides_nulls_go_before_pairs_come() {
    let found =
        run(&mut join(JoinKind::Full, true, NullKeys::Nothing, false), "r +I 1 7\nr +I 1 8\nl +I 1 1\nl -D 1 1");
    check(
        &found,
        "+I[NULL, NULL, 1, 7]
         +I[NULL, NULL, 1, 8]
         -D[NULL, NULL, 1, 7]
         -D[NULL, NULL, 1, 8]
         +I[1, 1, 1, 7]
         +I[1, 1, 1, 8]
         -D[1, 1, 1, 7]
         -D[1, 1, 1, 8]
         +I[NULL, NULL, 1, 7]
         +I[NULL, NULL, 1, 8]",
    );
}

#[test]
fn an_update_with_the_same_matches_updates_pairs_and_one_that_moves_takes_them_away() {
    let mut inner = join(JoinKind::Inner, true, NullKeys::Nothing, false);
    let start = run(&mut inner, "r +I 1 7\nr +I 1 7\nr +I 2 9\nl +I 1 1");
    check(&start, "+I[1, 1, 1, 7]\n+I[1, 1, 1, 7]");
    let same = run(&mut inner, "l -U 1 1\nl +U 1 2");
    check(&same, "-U[1, 1, 1, 7]\n+U[1, 2, 1, 7]\n-U[1, 1, 1, 7]\n+U[1, 2, 1, 7]");
    let moved = run(&mut inner, "l -U 1 2\nl +U 2 2");
    check(&moved, "-D[1, 2, 1, 7]\n-D[1, 2, 1, 7]\n+I[2, 2, 2, 9]");
    check(&run(&mut inner, "l -U 2 2\nl +U 3 2"), "-D[2, 2, 2, 9]");
}

#[test]
fn semi_anti_and_mark_follow_the_first_and_the_last_match() {
    let text = "l +I 1 1\nr +I 1 0\nr +I 1 0\nr -D 1 0\nl -U 1 1\nl +U 1 2\nr -U 1 0\nr +U 1 5\nr -D 1 5\nl -D 1 2";
    check(
        &run(&mut join(JoinKind::Semi, true, NullKeys::Nothing, false), text),
        "+I[1, 1]\n-U[1, 1]\n+U[1, 2]\n-D[1, 2]",
    );
    check(
        &run(&mut join(JoinKind::Anti, true, NullKeys::Nothing, false), text),
        "+I[1, 1]\n-D[1, 1]\n+I[1, 2]\n-D[1, 2]",
    );
    check(
        &run(&mut join(JoinKind::Mark, true, NullKeys::Nothing, false), text),
        "+I[1, 1, false]
         -U[1, 1, false]
         +U[1, 1, true]
         -U[1, 1, true]
         +U[1, 2, true]
         -U[1, 2, true]
         +U[1, 2, false]
         -D[1, 2, false]",
    );
}

#[test]
fn an_update_of_columns_that_nobody_reads_emits_nothing() {
    for kind in KINDS {
        let mut operator = join(kind, true, NullKeys::Nothing, false);
        run(&mut operator, "l +I 1 1\nr +I 1 7\nl +I 2 1\nr +I 3 7");
        check(&run(&mut operator, "r -U 1 7\nr +U 1 7\nr -U 3 7\nr +U 3 7\nl -U 1 1\nl +U 1 1"), "");
    }
}

#[test]
fn a_delete_without_its_row_is_counted_and_changes_nothing() {
    let mut inner = join(JoinKind::Inner, true, NullKeys::Nothing, false);
    check(&run(&mut inner, "r +I 1 7\nl -D 1 1\nl +I 1 1"), "+I[1, 1, 1, 7]");
    let counters: BTreeMap<_, _> = inner.counters().into_iter().collect();
    assert_eq!((counters["left_rows"], counters["right_rows"], counters["unmatched_retractions"]), (1, 1, 1));
}

#[test]
fn nothing_is_kept_of_rows_that_have_gone() {
    let mut full = join(JoinKind::Full, true, NullKeys::Null, false);
    let table =
        folded(&run(&mut full, "l +I 1 1\nr +I 1 1\nl +I _ 2\nr +I _ 1\nr -D _ 1\nl -D _ 2\nl -D 1 1\nr -D 1 1"));
    assert!(table.is_empty(), "{table:?}");
    assert_eq!((full.sides[0].len(), full.sides[1].len(), full.keys.len()), (0, 0, 0));
}

type Row = (Option<i64>, i64);

/// The result by nested loops.
fn recomputed(
    kind: JoinKind,
    keyed: bool,
    null_keys: NullKeys,
    less: bool,
    sides: &[Vec<Row>; 2],
) -> BTreeMap<String, i64> {
    let text = |row: &Row| format!("{}, {}", row.0.map_or("NULL".to_string(), |key| key.to_string()), row.1);
    let nulls = "NULL, NULL".to_string();
    let matches = |left: &Row, right: &Row| {
        let equal = match (left.0, right.0) {
            (None, None) => null_keys != NullKeys::Nothing,
            (None, _) | (_, None) => null_keys == NullKeys::Anything,
            (left, right) => left == right,
        };
        (equal || !keyed) && (!less || left.1 < right.1)
    };
    let mut table: BTreeMap<String, i64> = BTreeMap::new();
    let mut emit = |row: String| *table.entry(format!("[{row}]")).or_default() += 1;
    for left in &sides[0] {
        let found: Vec<&Row> = sides[1].iter().filter(|right| matches(left, right)).collect();
        match kind {
            JoinKind::Semi if found.is_empty() => {}
            JoinKind::Anti if !found.is_empty() => {}
            JoinKind::Semi | JoinKind::Anti => emit(text(left)),
            JoinKind::Mark => emit(format!("{}, {}", text(left), !found.is_empty())),
            _ => {
                found.iter().for_each(|right| emit(format!("{}, {}", text(left), text(right))));
                if found.is_empty() && kind.pads(0) {
                    emit(format!("{}, {nulls}", text(left)));
                }
            }
        }
    }
    let lonely = sides[1].iter().filter(|right| !sides[0].iter().any(|left| matches(left, right)));
    lonely.filter(|_| kind.pads(1)).for_each(|right| emit(format!("{nulls}, {}", text(right))));
    table
}

/// A change of `rows` that they allow, as lines of the notation.
fn random_change(random: &mut StdRng, rows: &mut Vec<Row>) -> Vec<String> {
    let text = |row: &Row| format!("{} {}", row.0.map_or("_".to_string(), |key| key.to_string()), row.1);
    let key = Some(random.random_range(0..5)).filter(|key| *key != 0);
    let new: Row = (key, random.random_range(0..3));
    let action = random.random_range(0..4);
    if rows.is_empty() || action < 2 {
        rows.push(new);
        return vec![format!("+I {}", text(&new))];
    }
    let old = rows.swap_remove(random.random_range(0..rows.len()));
    if action == 2 {
        return vec![format!("-D {}", text(&old))];
    }
    rows.push(new);
    vec![format!("-U {}", text(&old)), format!("+U {}", text(&new))]
}

/// Updates stand in pairs, and nothing goes that is not there.
fn check_well_formed(lines: &[String], table: &mut BTreeMap<String, i64>) {
    for (place, line) in lines.iter().enumerate() {
        let (kind, row) = line.split_at(2);
        let count = table.entry(row.to_string()).or_default();
        *count += if kind.starts_with('+') { 1 } else { -1 };
        assert!(*count >= 0, "{line} of a row that is not there");
        if *count == 0 {
            table.remove(row);
        }
        let paired = match kind {
            "-U" => lines.get(place + 1).is_some_and(|next| next.starts_with("+U")),
            "+U" => place > 0 && lines[place - 1].starts_with("-U"),
            _ => true,
        };
        assert!(paired, "{line} without its other image");
    }
}

#[test]
fn any_changelogs_give_what_nested_loops_give_after_every_batch() {
    let input = schema("k BIGINT, v BIGINT");
    for seed in 0..280 {
        let mut random = StdRng::seed_from_u64(seed);
        let kind = KINDS[seed as usize % KINDS.len()];
        let keyed: bool = random.random();
        let less: bool = random.random();
        let null_keys = match random.random_range(0..3) {
            0 if keyed => NullKeys::Anything,
            1 => NullKeys::Null,
            _ => NullKeys::Nothing,
        };
        let new = || join(kind, keyed, null_keys, less);
        let mut operator = new();
        let (mut sides, mut snapshots): ([Vec<Row>; 2], Vec<Snapshot>) = Default::default();
        let mut table = BTreeMap::new();
        let size = [1, 3, 10][random.random_range(0..3)];
        for step in 0..60 {
            let port = random.random_range(0..2);
            let changes_made = random.random_range(1..=size);
            let lines: Vec<String> =
                (0..changes_made).flat_map(|_| random_change(&mut random, &mut sides[port])).collect();
            let mut out = Output::default();
            operator.on_changes(port, changes(&input, &lines.join("\n")), &mut out).unwrap();
            check_well_formed(&emitted(&mut out), &mut table);
            let expected = recomputed(kind, keyed, null_keys, less, &sides);
            assert_eq!(table, expected, "seed {seed}, step {step}, {kind:?}");
            if random.random_range(0..8) == 0 {
                snapshots.push(operator.snapshot(step).unwrap());
                if random.random() {
                    operator = new();
                    operator.restore(saved(&snapshots)).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_row_with_more_matches_than_a_batch_meets_them_all() {
    let mut semi = join(JoinKind::Left, false, NullKeys::Nothing, true);
    let rows: Vec<String> = (0..9_000).map(|value| format!("r +I 1 {value}")).collect();
    run(&mut semi, &rows.join("\n"));
    assert_eq!(run(&mut semi, "l +I 1 -1\nl +I 2 8998\nl +I 3 9000").len(), 9_002);
}
