//! Top-N in the notation, and against plain recomputation.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::operators::testing::{changes, check, feed, folded, saved, schema};

const INPUT: &str = "k TEXT, v BIGINT, id BIGINT";

fn operator(change: impl FnOnce(&mut RankParameters)) -> Rank {
    let mut parameters = RankParameters {
        input: schema(INPUT),
        output: schema("k TEXT, v BIGINT, id BIGINT, rn BIGINT"),
        partition: vec![0],
        order: vec![SortColumn { column: 1, descending: true, nulls_first: false }],
        function: RankFunction::RowNumber,
        range: (1, 2),
        by_rank: true,
        changes: RankInput::Retract,
        newest_first: false,
        emit_update_before: true,
        ttl_ms: 0,
        key_groups: KeyGroupRange::ALL,
    };
    change(&mut parameters);
    Rank::new(parameters).unwrap()
}

fn unshown(parameters: &mut RankParameters) {
    parameters.output = schema(INPUT);
    parameters.by_rank = false;
}

fn run(change: impl Fn(&mut RankParameters), text: &str, expected: &str) {
    for size in [1, 2, 3, 100] {
        let batch = changes(&schema(INPUT), text);
        // An update's images stay together on every edge.
        if size % 2 == 1 && text.contains("-U") {
            continue;
        }
        check(&feed(&mut operator(&change), &batch, size, &mut Output::default()), expected);
    }
}

#[test]
fn with_the_rank_every_row_that_moves_is_an_update() {
    let text = "+I a 5 1\n+I a 7 2\n+I a 6 3\n+I b 1 4\n+I a 6 5\n+I a _ 6";
    let expected = "
        +I[a, 5, 1, 1]
        -U[a, 5, 1, 1]
        +U[a, 7, 2, 1]
        +I[a, 5, 1, 2]
        -U[a, 5, 1, 2]
        +U[a, 6, 3, 2]
        +I[b, 1, 4, 1]";
    run(|_| {}, text, expected);
    run(|p| p.changes = RankInput::Append, text, expected);
    run(|p| p.range = (2, 2), text, "+I[a, 5, 1, 2]\n-U[a, 5, 1, 2]\n+U[a, 6, 3, 2]");
}

#[test]
fn without_the_rank_rows_only_enter_and_leave() {
    let text = "+I a 5 1\n+I a 7 2\n+I a 6 3\n+I a 6 5";
    let expected = "+I[a, 5, 1]\n+I[a, 7, 2]\n-D[a, 5, 1]\n+I[a, 6, 3]";
    run(unshown, text, expected);
    run(
        |p| {
            unshown(p);
            p.changes = RankInput::Append;
        },
        text,
        expected,
    );
}

#[test]
fn the_first_alone_is_replaced_over_append_only_input() {
    let first = |p: &mut RankParameters| {
        unshown(p);
        p.range = (1, 1);
        p.changes = RankInput::Append;
    };
    run(first, "+I a 5 1\n+I a 5 2\n+I a 7 3", "+I[a, 5, 1]\n-U[a, 5, 1]\n+U[a, 7, 3]");
    let latest = |p: &mut RankParameters| {
        first(p);
        p.newest_first = true;
    };
    run(latest, "+I a 5 1\n+I a 5 2\n+I a 4 3", "+I[a, 5, 1]\n-U[a, 5, 1]\n+U[a, 5, 2]");
}

#[test]
fn deletes_bring_the_next_rows_up() {
    let text = "+I a 5 1\n+I a 7 2\n+I a 6 3\n-D a 7 2\n-D a 9 9\n-D a 5 1\n-D a 6 3\n+I a 1 1";
    run(
        |_| {},
        text,
        "+I[a, 5, 1, 1]
        -U[a, 5, 1, 1]
        +U[a, 7, 2, 1]
        +I[a, 5, 1, 2]
        -U[a, 5, 1, 2]
        +U[a, 6, 3, 2]
        -U[a, 7, 2, 1]
        +U[a, 6, 3, 1]
        -U[a, 6, 3, 2]
        +U[a, 5, 1, 2]
        -D[a, 5, 1, 2]
        -D[a, 6, 3, 1]
        +I[a, 1, 1, 1]",
    );
    run(
        unshown,
        text,
        "+I[a, 5, 1]\n+I[a, 7, 2]\n-D[a, 5, 1]\n+I[a, 6, 3]\n-D[a, 7, 2]\n+I[a, 5, 1]\n-D[a, 5, 1]\n-D[a, 6, 3]\n+I[a, 1, 1]",
    );
}

#[test]
fn a_row_that_rises_is_told_as_one_update() {
    let rising = |p: &mut RankParameters| p.changes = RankInput::Rising;
    let text = "+I a 1 1\n+I a 1 2\n-U a 1 2\n+U a 2 2\n-U a 2 2\n+U a 3 2\n+I a 0 3\n-U a 0 3\n+U a 9 3";
    run(
        rising,
        text,
        "+I[a, 1, 1, 1]
        +I[a, 1, 2, 2]
        -U[a, 1, 1, 1]
        -U[a, 1, 2, 2]
        +U[a, 2, 2, 1]
        +U[a, 1, 1, 2]
        -U[a, 2, 2, 1]
        +U[a, 3, 2, 1]
        -U[a, 3, 2, 1]
        +U[a, 9, 3, 1]
        -U[a, 1, 1, 2]
        +U[a, 3, 2, 2]",
    );
    let unshown_rising = |p: &mut RankParameters| {
        unshown(p);
        rising(p);
    };
    run(
        unshown_rising,
        text,
        "+I[a, 1, 1]\n+I[a, 1, 2]\n-U[a, 1, 2]\n+U[a, 2, 2]\n-U[a, 2, 2]\n+U[a, 3, 2]\n-D[a, 1, 1]\n+I[a, 9, 3]",
    );
}

#[test]
fn equal_rows_share_a_rank() {
    let text = "+I a 5 1\n+I a 5 2\n+I a 4 3\n+I a 6 4\n-D a 5 1";
    run(
        |p| p.function = RankFunction::Rank,
        text,
        "+I[a, 5, 1, 1]
        +I[a, 5, 2, 1]
        -U[a, 5, 1, 1]
        +U[a, 5, 1, 2]
        -U[a, 5, 2, 1]
        +U[a, 5, 2, 2]
        +I[a, 6, 4, 1]
        -D[a, 5, 1, 2]",
    );
    run(
        |p| p.function = RankFunction::DenseRank,
        text,
        "+I[a, 5, 1, 1]
        +I[a, 5, 2, 1]
        +I[a, 4, 3, 2]
        -U[a, 5, 1, 1]
        +U[a, 5, 1, 2]
        -U[a, 5, 2, 1]
        +U[a, 5, 2, 2]
        -D[a, 4, 3, 2]
        +I[a, 6, 4, 1]
        -D[a, 5, 1, 2]",
    );
}

#[test]
fn idle_partitions_expire() {
    let mut operator = operator(|p| p.ttl_ms = 1_000);
    let mut out = Output::default();
    operator.on_clock(0, &mut out).unwrap();
    feed(&mut operator, &changes(&schema(INPUT), "+I a 5 1\n+I b 5 1"), 9, &mut out);
    operator.on_clock(1_000, &mut out).unwrap();
    check(&feed(&mut operator, &changes(&schema(INPUT), "+I a 1 2"), 9, &mut out), "+I[a, 1, 2, 1]");
    operator.on_clock(60_000, &mut out).unwrap();
    assert_eq!(operator.counters()[..2], [("partitions", 0), ("rows", 0)]);
}

/// A row as `(partition, value, id)`; its text in the notation.
type Cells = (usize, Option<i64>, i64);

fn text((partition, value, id): &Cells) -> String {
    let value = value.map_or("_".to_string(), |value| value.to_string());
    format!("{} {value} {id}", ["a", "b", "_"][*partition])
}

/// The Top-N of rows in order of arrival, by the definition.
fn recomputed(rows: &[Cells], parameters: &RankParameters) -> Vec<String> {
    let mut found = Vec::new();
    for partition in 0..3 {
        let mut sorted: Vec<&Cells> = rows.iter().filter(|row| row.0 == partition).collect();
        // Descending, NULL last, equal rows as they came.
        sorted.sort_by_key(|row| row.1.map_or(i64::MAX, |value| -value));
        let ranks = sorted.iter().enumerate().map(|(place, row)| {
            let before =
                sorted.iter().filter(|other| other.1.map_or(i64::MAX, |v| -v) < row.1.map_or(i64::MAX, |v| -v));
            match parameters.function {
                RankFunction::RowNumber => place + 1,
                RankFunction::Rank => before.count() + 1,
                RankFunction::DenseRank => before.map(|row| row.1).collect::<std::collections::BTreeSet<_>>().len() + 1,
            }
        });
        for (rank, row) in ranks.zip(&sorted) {
            if (parameters.range.0..=parameters.range.1).contains(&(rank as u64)) {
                let shown = if parameters.output.fields().len() > 3 { format!(", {rank}") } else { String::new() };
                found.push(format!("[{}{shown}]", text(row).replace('_', "NULL").replace(' ', ", ")));
            }
        }
    }
    found.sort();
    found
}

/// Rows come, are updated and go at random, with ties, NULLs and equal rows; after every change the changelog folded
/// must be the Top-N of the rows that are there. In between the operator is saved and goes on as another.
fn random(seed: u64, change: impl Fn(&mut RankParameters)) {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut subject, mut out) = (operator(&change), Output::default());
    let append = subject.parameters.changes == RankInput::Append;
    let (mut rows, mut changelog, mut snapshots): (Vec<Cells>, Vec<String>, Vec<Snapshot>) = Default::default();
    for step in 0_u64..80 {
        let mut lines = Vec::new();
        for _ in 0..random.random_range(1..4) {
            let new: Cells = (
                random.random_range(0..3),
                random.random_bool(0.9).then(|| random.random_range(0..4)),
                random.random_range(0..3),
            );
            let pick = (!rows.is_empty()).then(|| random.random_range(0..rows.len()));
            match pick.filter(|_| !append && random.random_bool(0.5)) {
                None => {
                    lines.push(format!("+I {}", text(&new)));
                    rows.push(new);
                }
                Some(place) => {
                    // The first of equal rows is the one that goes.
                    let gone = rows[place];
                    let place = rows.iter().position(|row| *row == gone).unwrap();
                    rows.remove(place);
                    lines.push(format!("-D {}", text(&gone)));
                }
            }
        }
        let batch = changes(&schema(INPUT), &lines.join("\n"));
        changelog.extend(feed(&mut subject, &batch, random.random_range(1..4), &mut out));
        let mut table: Vec<String> = Vec::new();
        for (row, count) in folded(&changelog) {
            assert!(count > 0, "seed {seed} step {step}: {row} is gone once too often");
            table.extend(std::iter::repeat_n(row, count as usize));
        }
        let expected = recomputed(&rows, &subject.parameters);
        assert_eq!(table, expected, "seed {seed} step {step} after {lines:?}\n{}", changelog.join("\n"));
        if step % 10 == 9 {
            snapshots.push(subject.snapshot(step).unwrap());
        }
        if step % 40 == 29 {
            subject = operator(&change);
            subject.restore(saved(&snapshots)).unwrap();
        }
    }
}

#[test]
fn it_equals_plain_recomputation_after_every_change() {
    for seed in 0..4 {
        for function in [RankFunction::RowNumber, RankFunction::Rank, RankFunction::DenseRank] {
            for range in [(1, 1), (1, 2), (1, 50), (2, 3)] {
                for kind in [RankInput::Append, RankInput::Retract] {
                    let set = |p: &mut RankParameters| (p.function, p.range, p.changes) = (function, range, kind);
                    random(seed, set);
                    random(seed, |p| {
                        set(p);
                        p.output = schema(INPUT);
                        p.by_rank = range.0 > 1;
                    });
                }
            }
        }
    }
}

#[test]
fn all_of_it_is_forgotten_when_all_rows_have_gone() {
    let mut operator = operator(|_| {});
    let text = (0..50).map(|row| format!("a {row} {row}\n")).collect::<Vec<_>>();
    for kind in ["+I ", "-D "] {
        let lines: String = text.iter().map(|line| format!("{kind}{line}")).collect();
        feed(&mut operator, &changes(&schema(INPUT), &lines), 7, &mut Output::default());
    }
    assert_eq!(operator.counters(), [("partitions", 0), ("rows", 0), ("unmatched_retractions", 0)]);
}
