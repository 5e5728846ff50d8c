//! Random queries over random changes: after every prefix of the changes, the streaming result is the table that the
//! query gives over the rows at rest, at any parallelism, batch size and emission, also from restored state.
//!
//! Every case has a seed. `EBBFLOW_CASES=100000` runs so many (250 if not set), `EBBFLOW_FIRST_SEED=7` begins with that
//! one; a failure prints its seed and the smallest case that still fails. `EBBFLOW_DUMP=file` writes the queries, their
//! tables and the expected rows as SQL for another engine, which checks the plain evaluation itself.

pub(super) mod drive;
mod dump;
mod generate;
pub(super) mod query;
mod reference;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use drive::{Multiset, Simulation};
use generate::{Case, Change, Table, TableKind};
use query::{Row, Type, Value};
use reference::evaluate;

use super::{JobConfig, Nowhere, RestartStrategy, SystemClock, TestConnectors, World};
use crate::catalog::{Catalog, Relation as Named, TableDefinition};
use crate::changelog::{ChangelogMode, Kind};
use crate::error::{Error, Result};
use crate::functions::{FunctionContext, FunctionSet};
use crate::plan::stream::StreamGraph;
use crate::plan::{PlanSettings, Planner, SourceFacts, TableFacts, declare_table};
use crate::sql::{self, Statement};
use crate::types::{MiniBatch, TimeZone};

/// Connectors that are called by the kinds they read.
pub(super) struct ByName;

impl TableFacts for ByName {
    fn source(&self, table: &Arc<TableDefinition>) -> Result<SourceFacts> {
        let mode = match table.options.get("connector") {
            Some("retract") => ChangelogMode::RETRACT,
            Some("upsert") => ChangelogMode::UPSERT,
            _ => ChangelogMode::APPEND,
        };
        Ok(SourceFacts { mode, bounded: true })
    }

    fn sink_accepts(&self, _table: &Arc<TableDefinition>) -> Result<ChangelogMode> {
        Ok(ChangelogMode::RETRACT)
    }
}

/// How a case is run.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Also decides the order in which channels are emptied.
    seed: u64,
    parallelism: usize,
    mini_batch: bool,
    /// Changes that travel in one batch: 1, or all of some steps.
    one_by_one: bool,
    steps: usize,
    /// Whether state is saved, and sometimes restored at another parallelism, between steps.
    checkpoints: bool,
}

/// The rows of a table, as its changes come.
struct Live<'a> {
    table: &'a Table,
    rows: Vec<Row>,
}

impl Live<'_> {
    /// What a change says, in the words of the table's changelog; nothing if there is nothing to change.
    fn apply(&mut self, change: &Change) -> Vec<(Kind, Row)> {
        let keyed = matches!(self.table.kind, TableKind::Keyed | TableKind::Upsert);
        let upsert = self.table.kind == TableKind::Upsert;
        match change {
            Change::Insert(row) => {
                if keyed && self.rows.iter().any(|other| other[0] == row[0]) {
                    return Vec::new();
                }
                self.rows.push(row.clone());
                vec![(Kind::Insert, row.clone())]
            }
            Change::Delete(_) | Change::Update(..) if self.rows.is_empty() => Vec::new(),
            Change::Delete(pick) => {
                let mut row = self.rows.swap_remove(pick % self.rows.len());
                if upsert {
                    // Only the key is told.
                    row[1..].fill(Value::Null);
                }
                vec![(Kind::Delete, row)]
            }
            Change::Update(pick, new) => {
                let at = pick % self.rows.len();
                let mut new = new.clone();
                if keyed {
                    new[0] = self.rows[at][0].clone();
                }
                let old = std::mem::replace(&mut self.rows[at], new.clone());
                let before = (!upsert).then_some((Kind::UpdateBefore, old));
                before.into_iter().chain([(Kind::UpdateAfter, new)]).collect()
            }
        }
    }
}

impl Case {
    /// The tables as `CREATE TABLE` statements.
    fn declarations(&self) -> Vec<String> {
        let declare = |(at, table): (usize, &Table)| {
            let keyed = matches!(table.kind, TableKind::Keyed | TableKind::Upsert);
            let column =
                |(at, of): (usize, &Type)| format!("c{at} {}", if *of == Type::Int { "BIGINT" } else { "STRING" });
            let mut columns: Vec<String> = table.types.iter().enumerate().map(column).collect();
            if keyed {
                columns.push("PRIMARY KEY (c0) NOT ENFORCED".to_owned());
            }
            let connector = match table.kind {
                TableKind::Append => "append",
                TableKind::Upsert => "upsert",
                _ => "retract",
            };
            format!("CREATE TABLE t{at} ({}) WITH ('connector' = '{connector}')", columns.join(", "))
        };
        self.tables.iter().enumerate().map(declare).collect()
    }

    fn graph(&self, mini_batch: bool) -> Result<StreamGraph> {
        let functions =
            Arc::new(FunctionSet::new(FunctionContext { zone: TimeZone::UTC, clock: Arc::new(|| 0), batch: false }));
        let mut catalog = Catalog::default();
        for declaration in self.declarations() {
            let Statement::CreateTable(create) = sql::parse_statement(&declaration)?.statement else {
                return Err(Error::bug("no table"));
            };
            let table = declare_table(&create, &catalog, &functions)?;
            let name = catalog.qualify(&[&table.name])?;
            catalog.create(&name, Named::Table(Arc::new(table)), false, false)?;
        }
        let mini_batch = mini_batch.then_some(MiniBatch { latency_ms: 1_000_000, size: 5 });
        let settings = PlanSettings { mini_batch, any_window: true, ..PlanSettings::default() };
        let planner = Planner { catalog: &catalog, functions, settings, facts: &ByName };
        let text = self.query.sql();
        match sql::parse_statement(&text)?.statement {
            Statement::Query(query) => planner.query(&query),
            other => Err(Error::bug(format!("no query: {other:?}"))),
        }
    }

    fn live(&self) -> Vec<Live<'_>> {
        self.tables.iter().map(|table| Live { table, rows: Vec::new() }).collect()
    }
}

pub(super) fn job(parallelism: usize) -> JobConfig {
    JobConfig {
        name: "case".to_owned(),
        parallelism,
        batch: false,
        checkpoint: None,
        clock: Arc::new(SystemClock),
        zone: TimeZone::UTC,
        console: Arc::new(Nowhere),
        connectors: Arc::new(TestConnectors(Arc::new(World::default()))),
        watermark_interval_ms: 200,
        visibility: None,
        restart: RestartStrategy::None,
    }
}

fn multiset(rows: Vec<Row>) -> Multiset {
    let mut counts = Multiset::new();
    rows.into_iter().for_each(|row| *counts.entry(row).or_default() += 1);
    counts
}

/// Runs a case one way; what went wrong, if anything did.
fn run(case: &Case, way: Way) -> Result<(), String> {
    let graph =
        case.graph(way.mini_batch).map_err(|error| format!("not planned: {}", error.render(&case.query.sql())))?;
    let failed = |error: Error| format!("{way:?}: {error}");
    let mut random = StdRng::seed_from_u64(way.seed);
    let order = StdRng::seed_from_u64(random.random());
    let mut simulation = Simulation::new(&graph, job(way.parallelism), order).map_err(failed)?;
    let mut live = case.live();
    for (number, steps) in case.steps.chunks(way.steps).enumerate() {
        let mut waiting: Vec<(usize, Vec<(Kind, Row)>)> = Vec::new();
        for (table, change) in steps.iter().flatten() {
            for said in live[*table].apply(change) {
                match waiting.last_mut() {
                    Some((last, changes)) if last == table && !way.one_by_one => changes.push(said),
                    _ => waiting.push((*table, vec![said])),
                }
            }
        }
        for (table, changes) in waiting {
            simulation.feed(&format!("t{table}"), &changes).map_err(failed)?;
            if random.random_range(0..2) == 0 {
                simulation.settle().map_err(failed)?;
            }
        }
        simulation.flush().map_err(failed)?;
        if way.checkpoints {
            match random.random_range(0..4) {
                0 => simulation.restore(random.random_range(1..5)).map_err(failed)?,
                1 => simulation.save().map_err(failed)?,
                _ => {}
            }
        }
        compare(case, &live, &simulation).map_err(|error| format!("{way:?}, after part {number}: {error}"))?;
    }
    simulation.end().map_err(failed)?;
    compare(case, &live, &simulation).map_err(|error| format!("{way:?}, at the end: {error}"))
}

fn compare(case: &Case, live: &[Live], simulation: &Simulation) -> Result<(), String> {
    let tables: Vec<Vec<Row>> = live.iter().map(|live| live.rows.clone()).collect();
    let expected = multiset(evaluate(&case.query, &tables));
    if expected == simulation.result {
        return Ok(());
    }
    let only = |these: &Multiset, those: &Multiset| {
        let rows = these.iter().filter(|(row, times)| those.get(*row) != Some(times));
        rows.map(|(row, times)| format!("{times} × {row:?}")).collect::<Vec<_>>().join("; ")
    };
    Err(format!("expected {}\n   got {}", only(&expected, &simulation.result), only(&simulation.result, &expected)))
}

/// The ways in which the case of a seed is run.
fn ways(seed: u64) -> [Way; 3] {
    let mut random = StdRng::seed_from_u64(!seed);
    let mut draw = |bound: usize| random.random_range(0..bound);
    let plain = Way { seed, parallelism: 1, mini_batch: false, one_by_one: true, steps: 1, checkpoints: false };
    let spread =
        Way { parallelism: 2 + draw(3), one_by_one: draw(2) == 0, steps: 1 + draw(3), checkpoints: true, ..plain };
    let bundled = Way { parallelism: 1 + draw(2), mini_batch: true, one_by_one: false, steps: 1 + draw(4), ..plain };
    [plain, spread, Way { checkpoints: draw(2) == 0, ..bundled }]
}

fn failure(case: &Case, ways: &[Way]) -> Option<String> {
    let caught = |way: &Way| {
        let run = std::panic::AssertUnwindSafe(|| run(case, *way));
        std::panic::catch_unwind(run).unwrap_or_else(|_| Err(format!("{way:?}: a panic")))
    };
    ways.iter().find_map(|way| caught(way).err())
}

/// The smallest case found that still fails, and how.
fn shrunk(case: Case, ways: &[Way]) -> (Case, String) {
    let mut best = case;
    let mut said = failure(&best, ways).unwrap_or_default();
    let planned = |said: &str| !said.starts_with("not planned");
    let wrong = planned(&said);
    loop {
        let mut candidates: Vec<Case> = Vec::new();
        candidates.extend(best.query.smaller().into_iter().map(|query| Case { query, ..best.clone() }));
        for step in 0..best.steps.len() {
            let mut steps = best.steps.clone();
            steps.remove(step);
            candidates.push(Case { steps, ..best.clone() });
            for change in 0..best.steps[step].len() {
                let mut steps = best.steps.clone();
                steps[step].remove(change);
                candidates.push(Case { steps, ..best.clone() });
            }
        }
        let smaller = candidates.into_iter().find_map(|candidate| {
            let said = failure(&candidate, ways).filter(|said| planned(said) == wrong)?;
            Some((candidate, said))
        });
        match smaller {
            Some((candidate, still)) => (best, said) = (candidate, still),
            None => return (best, said),
        }
    }
}

pub(super) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn every_prefix_of_random_changes_gives_the_table_a_batch_query_gives() {
    let (first, cases) = (number("EBBFLOW_FIRST_SEED", 1), number("EBBFLOW_CASES", 250));
    let most = number("EBBFLOW_FAILURES", 1) as usize;
    let mut dump = dump::Dump::from_environment();
    let mut failures = Vec::new();
    for seed in first..first + cases {
        let case = generate::case(seed);
        if let Some(dump) = &mut dump {
            dump.write(seed, &case);
        }
        if failure(&case, &ways(seed)).is_some() {
            let (case, said) = shrunk(case, &ways(seed));
            let (tables, query) = (case.declarations().join("\n"), case.query.sql());
            failures.push(format!("seed {seed}: {said}\n{tables}\n{query}\nsteps: {:?}\n", case.steps));
            if failures.len() >= most {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
