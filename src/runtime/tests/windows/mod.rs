//! Random queries over windows, joins and ranks of windows, over rows that come out of order within the watermark's
//! delay: at any parallelism and batch size, also from restored state, the result is what plain recomputation over the
//! rows at rest gives. Where rows come later than that, in one task and one by one, those that are late are left out by
//! the rule of the watermark, row by row.
//!
//! `EBBFLOW_CASES=20000` runs so many (250 if not set), `EBBFLOW_FIRST_SEED=7` begins with that one; a failure prints its
//! seed, its query and its rows.

mod query;
mod reference;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::query::{Query, TimedRow};
use super::algebra::drive::{Multiset, Simulation};
use super::algebra::query::{Row, Value};
use super::algebra::{ByName, job, number};
use crate::catalog::{Catalog, Relation};
use crate::changelog::Kind;
use crate::error::{Error, Result};
use crate::functions::{FunctionContext, FunctionSet};
use crate::plan::stream::StreamGraph;
use crate::plan::{PlanSettings, Planner, declare_table};
use crate::sql::{self, Statement};
use crate::types::TimeZone;

/// A query, the rows of its two tables in the order of their coming, and how far they are out of order.
struct Case {
    query: Query,
    tables: [Vec<TimedRow>; 2],
    delay: i64,
    /// Whether rows may come later than the watermark allows.
    late: bool,
}

impl Case {
    fn of(seed: u64) -> Case {
        let mut random = StdRng::seed_from_u64(seed);
        let late = random.random_range(0..3) == 0;
        let query = Query::random(&mut random, late);
        let delay = random.random_range(0..8) * 1_000;
        // Around 1970 event time stands still and then begins; later it is like anywhere.
        let begin = [-30_000, 0, 1_700_000_000_000][random.random_range(0..3)];
        let mut id = 0;
        let tables = [0, 1].map(|_| {
            let count = random.random_range(0..25);
            let mut rows: Vec<TimedRow> = Vec::new();
            for _ in 0..count {
                id += 1;
                let time = begin + random.random_range(0..160) * 500;
                let nullable = |random: &mut StdRng, below: i64| {
                    (random.random_range(0..8) > 0).then(|| random.random_range(0..below))
                };
                let (key, value) = (nullable(&mut random, 3), nullable(&mut random, 20));
                rows.push(TimedRow { id, time, key, value });
            }
            // A row may come after any that is not more than the delay younger.
            let allowed = if late { delay + 20_000 } else { delay };
            let mut keyed: Vec<(i64, TimedRow)> =
                rows.into_iter().map(|row| (row.time + random.random_range(0..=allowed), row)).collect();
            keyed.sort_by_key(|(arrival, _)| *arrival);
            keyed.into_iter().map(|(_, row)| row).collect()
        });
        Case { query, tables, delay, late }
    }

    fn graph(&self) -> Result<StreamGraph> {
        let functions =
            Arc::new(FunctionSet::new(FunctionContext { zone: TimeZone::UTC, clock: Arc::new(|| 0), batch: false }));
        let mut catalog = Catalog::default();
        for table in 0..2 {
            let declaration = format!(
                "CREATE TABLE t{table} (id BIGINT, ts TIMESTAMP(3), k BIGINT, v BIGINT, \
                 WATERMARK FOR ts AS ts - INTERVAL '{}' SECOND) WITH ('connector' = 'append')",
                self.delay / 1_000
            );
            let Statement::CreateTable(create) = sql::parse_statement(&declaration)?.statement else {
                return Err(Error::bug("no table"));
            };
            let table = declare_table(&create, &catalog, &functions)?;
            let name = catalog.qualify(&[&table.name])?;
            catalog.create(&name, Relation::Table(Arc::new(table)), false, false)?;
        }
        let planner = Planner { catalog: &catalog, functions, settings: PlanSettings::default(), facts: &ByName };
        match sql::parse_statement(&self.query.sql())?.statement {
            Statement::Query(query) => planner.query(&query),
            other => Err(Error::bug(format!("no query: {other:?}"))),
        }
    }

    /// Runs the case in one of its ways, and compares.
    fn run(&self, seed: u64, parallelism: usize, checkpoints: bool) -> std::result::Result<(), String> {
        let sql = self.query.sql();
        let graph = self.graph().map_err(|error| format!("not planned: {}", error.render(&sql)))?;
        let failed = |error: Error| error.to_string();
        let mut random = StdRng::seed_from_u64(seed);
        let order = StdRng::seed_from_u64(random.random());
        let mut config = job(parallelism);
        config.watermark_interval_ms = 0;
        let mut simulation = Simulation::new(&graph, config, order).map_err(failed)?.timed();
        let most = if self.late { 1 } else { random.random_range(1..9) };
        let mut next = [0, 0];
        while next[0] < self.tables[0].len() || next[1] < self.tables[1].len() {
            let table = random.random_range(0..2);
            let rest = &self.tables[table][next[table]..];
            let taken = rest.len().min(random.random_range(1..=most));
            let changes: Vec<(Kind, Row)> = rest[..taken].iter().map(|row| (Kind::Insert, row.cells())).collect();
            next[table] += taken;
            if taken > 0 {
                simulation.feed_spread(&format!("t{table}"), &changes).map_err(failed)?;
            }
            if self.late || random.random_range(0..2) == 0 {
                simulation.settle().map_err(failed)?;
            }
            if checkpoints && random.random_range(0..4) == 0 {
                let wanted = if self.late { 1 } else { random.random_range(1..5) };
                simulation.restore(wanted).map_err(failed)?;
            }
        }
        simulation.end().map_err(failed)?;
        let mut expected = Multiset::new();
        let tables = [0, 1].map(|table| reference::Stream::new(&self.tables[table], self.delay, self.late));
        for row in self.query.evaluate(&tables) {
            *expected.entry(row).or_default() += 1;
        }
        let only = |these: &Multiset, those: &Multiset| {
            let rows = these.iter().filter(|(row, times)| those.get(*row) != Some(times));
            rows.map(|(row, times)| format!("{times} × {row:?}")).collect::<Vec<_>>().join("; ")
        };
        if expected == simulation.result {
            return Ok(());
        }
        let (missing, extra) = (only(&expected, &simulation.result), only(&simulation.result, &expected));
        Err(format!("expected {missing}\n   got {extra}"))
    }

    fn failure(&self, seed: u64) -> Option<String> {
        let ways = if self.late { [(1, false), (1, true)] } else { [(1, false), (1 + seed as usize % 4, true)] };
        ways.into_iter().find_map(|(parallelism, checkpoints)| {
            let run = std::panic::AssertUnwindSafe(|| self.run(seed, parallelism, checkpoints));
            let result = std::panic::catch_unwind(run).unwrap_or_else(|_| Err("a panic".to_owned()));
            result.err().map(|said| format!("parallelism {parallelism}, checkpoints {checkpoints}: {said}"))
        })
    }

    /// The case with as few rows as still fail.
    fn shrunk(mut self, seed: u64) -> Case {
        loop {
            let places = (0..2).flat_map(|table| (0..self.tables[table].len()).map(move |row| (table, row)));
            let smaller = places.collect::<Vec<_>>().into_iter().find_map(|(table, row)| {
                let mut tables = self.tables.clone();
                tables[table].remove(row);
                let case = Case { query: self.query.clone(), tables, ..self };
                case.failure(seed).map(|_| case)
            });
            match smaller {
                Some(case) => self = case,
                None => return self,
            }
        }
    }
}

impl TimedRow {
    /// As a row of a table.
    fn cells(&self) -> Row {
        let cell = |value: Option<i64>| value.map_or(Value::Null, Value::Int);
        vec![Value::Int(self.id), Value::Int(self.time), cell(self.key), cell(self.value)]
    }
}

#[test]
fn windows_over_rows_out_of_order_give_what_the_rows_at_rest_give() {
    let (first, cases) = (number("EBBFLOW_FIRST_SEED", 1), number("EBBFLOW_CASES", 250));
    let most = number("EBBFLOW_FAILURES", 1) as usize;
    let mut failures: Vec<String> = Vec::new();
    for seed in first..first + cases {
        let case = Case::of(seed);
        if case.failure(seed).is_none() {
            continue;
        }
        let case = case.shrunk(seed);
        let said = case.failure(seed).unwrap_or_default();
        let rows = format!("t0: {:?}\nt1: {:?}", case.tables[0], case.tables[1]);
        failures.push(format!("seed {seed}: {said}\n{}\ndelay {}\n{rows}\n", case.query.sql(), case.delay));
        if failures.len() >= most {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
