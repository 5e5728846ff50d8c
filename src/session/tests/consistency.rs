//! `table.exec.consistent-results`: whoever moves money from one account to another makes none.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;

use super::super::{Engine, ProgramTable, Session};

/// The sum of all balances, and a number that grows with every transfer.
const TOTAL: &str = "SELECT SUM(balance), SUM(credits) FROM (
    SELECT COALESCE(credits, 0) - COALESCE(debits, 0) AS balance, credits
    FROM (SELECT to_account AS account, SUM(amount) AS credits FROM transfers GROUP BY to_account) AS c
    FULL JOIN (SELECT from_account AS account, SUM(amount) AS debits FROM transfers GROUP BY from_account) AS d
    ON c.account = d.account)";

/// The same without a grouping of everything: what leaves are rows of accounts, of two tasks.
const BALANCES: &str = "SELECT c.account, credits, debits
    FROM (SELECT to_account AS account, SUM(amount) AS credits FROM transfers GROUP BY to_account) AS c
    FULL JOIN (SELECT from_account AS account, SUM(amount) AS debits FROM transfers GROUP BY from_account) AS d
    ON c.account = d.account";

fn transfers() -> ProgramTable {
    let batches = (0..2_000_i64).map(|batch| {
        let numbers = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
            Arc::new((batch * 20..batch * 20 + 20).map(of).collect::<Int64Array>())
        };
        RecordBatch::try_from_iter([
            ("from_account", numbers(&|id| id * 7 % 10)),
            ("to_account", numbers(&|id| (id * 7 + 1 + id % 9) % 10)),
            ("amount", numbers(&|id| 1 + id % 100)),
        ])
        .unwrap()
    });
    let batches: Vec<RecordBatch> = batches.collect();
    ProgramTable::batches(batches[0].schema(), batches)
}

fn session(engine: &Engine, options: &[(&str, &str)]) -> Session {
    let session = engine.session();
    session.register("transfers", transfers()).unwrap();
    options.iter().for_each(|(key, value)| session.set(key, value).unwrap());
    session
}

/// Every row that is shown, in order; the signs are left out.
fn shown(engine: &Engine, session: &Session, sql: &str) -> Vec<Vec<(i64, Vec<i64>)>> {
    engine.block_on(async {
        let mut changes = session.query(sql).await.unwrap();
        let mut shown = Vec::new();
        while let Some(batch) = changes.next().await {
            let batch = batch.unwrap();
            let columns = batch.rows().columns().iter().map(|column| column.as_primitive::<Int64Type>().values());
            let columns: Vec<&[i64]> = columns.map(|values| &values[..]).collect();
            let row = |row: usize| columns.iter().map(|column| column[row]).collect::<Vec<i64>>();
            shown.push((0..batch.len()).map(|at| (batch.kind(at).sign(), row(at))).collect());
        }
        shown
    })
}

const CONSISTENT: [(&str, &str); 2] =
    [("table.exec.consistent-results", "true"), ("table.exec.consistent-results.interval", "1 ms")];
const MINI_BATCH: [(&str, &str); 3] = [
    ("table.exec.mini-batch.enabled", "true"),
    ("table.exec.mini-batch.allow-latency", "1 s"),
    ("table.exec.mini-batch.size", "100"),
];

#[test]
fn only_results_that_a_prefix_of_the_input_has_are_shown() {
    let mut points = 0;
    for parallelism in [1, 4] {
        let engine = Engine::builder().parallelism(parallelism).build().unwrap();
        let plain = shown(&engine, &session(&engine, &[]), TOTAL);
        assert!(plain.iter().flatten().any(|(_, row)| row[0] != 0), "without it, impossible totals are seen");
        for more in [&MINI_BATCH[..], &[]] {
            let found = shown(&engine, &session(&engine, &[&CONSISTENT[..], more].concat()), TOTAL);
            assert!(found.iter().flatten().all(|(_, row)| row[0] == 0), "{found:?}");
            let volumes = found.iter().flatten().filter(|(sign, _)| *sign > 0).map(|(_, row)| row[1]);
            assert_eq!(volumes.clone().max(), plain.iter().flatten().map(|(_, row)| row[1]).max());
            points += volumes.count();
        }
    }
    assert!(points > 4, "results become visible on the way, not only at the end");
}

#[test]
fn rows_of_several_tasks_become_visible_together() {
    let engine = Engine::builder().parallelism(3).build().unwrap();
    let mut money = 0;
    for batch in shown(&engine, &session(&engine, &CONSISTENT), BALANCES) {
        money += batch.iter().map(|(sign, row)| sign * (row[1] - row[2])).sum::<i64>();
        assert_eq!(money, 0);
    }
}
