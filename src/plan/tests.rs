//! Plans as text: what a query becomes, who needs `-U`, whose state is bounded, and what a wrong query is told.

use std::sync::Arc;

use super::{
    AggregatePhases, EmitSettings, PlanSettings, Planner, SourceFacts, TableFacts, declare_table, declare_view, explain,
};
use crate::catalog::{Catalog, Relation, TableDefinition};
use crate::changelog::ChangelogMode;
use crate::error::Result;
use crate::functions::{FunctionContext, FunctionSet};
use crate::sql::{self, Statement};
use crate::types::MiniBatch;

const TABLES: &str = "
CREATE TABLE clicks (who STRING, url STRING, cost DECIMAL(8, 2), ts TIMESTAMP(3), upper_who AS UPPER(who),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'append');
CREATE TABLE accounts (id INT, branch STRING, balance BIGINT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'retract');
CREATE TABLE latest (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert');
CREATE TABLE log (who STRING, n BIGINT) WITH ('connector' = 'append');
CREATE TABLE totals (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'upsert');
CREATE TABLE changes (who STRING, n BIGINT) WITH ('connector' = 'retract');
CREATE VIEW hourly AS SELECT who, window_start, window_end, window_time, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY who, window_start, window_end, window_time;
CREATE VIEW versions AS SELECT who, url, cost, ts
  FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC) AS rn FROM clicks) WHERE rn = 1;
";

/// Connectors that are called by the kinds they read and write.
struct ByName;

impl TableFacts for ByName {
    fn source(&self, table: &Arc<TableDefinition>) -> Result<SourceFacts> {
        Ok(SourceFacts { mode: self.sink_accepts(table)?, bounded: true })
    }

    fn sink_accepts(&self, table: &Arc<TableDefinition>) -> Result<ChangelogMode> {
        Ok(match table.options.get("connector") {
            Some("retract") => ChangelogMode::RETRACT,
            Some("upsert") => ChangelogMode::UPSERT,
            _ => ChangelogMode::APPEND,
        })
    }
}

fn functions() -> Arc<FunctionSet> {
    Arc::new(FunctionSet::new(FunctionContext {
        zone: crate::types::TimeZone::UTC,
        clock: Arc::new(|| 0),
        batch: false,
    }))
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for parsed in sql::parse_script(TABLES).expect("the tables parse") {
        let (name, relation) = match parsed.statement {
            Statement::CreateTable(create) => {
                let table = declare_table(&create, &catalog, &functions()).expect("a table");
                (table.name.clone(), Relation::Table(Arc::new(table)))
            }
            Statement::CreateView(create) => {
                let view = declare_view(&create, &catalog, &functions()).expect("a view");
                (view.name.clone(), Relation::View(Arc::new(view)))
            }
            other => panic!("no table: {other:?}"),
        };
        let name = catalog.qualify(&[&name]).expect("a name");
        catalog.create(&name, relation, false, false).expect("a new name");
    }
    catalog
}

/// The plan as `EXPLAIN` shows it, or the error as a person reads it.
fn planned(sql: &str, settings: PlanSettings) -> String {
    let catalog = catalog();
    let planner = Planner { catalog: &catalog, functions: functions(), settings, facts: &ByName };
    let graph = sql::parse_statement(sql).and_then(|parsed| match parsed.statement {
        Statement::Query(query) => planner.query(&query),
        Statement::Insert(insert) => planner.inserts(&[*insert]),
        Statement::StatementSet(inserts) => planner.inserts(&inserts),
        other => panic!("nothing to plan: {other:?}"),
    });
    match graph {
        Ok(graph) => explain(&graph),
        Err(error) => error.render(sql),
    }
}

/// Each statement and its plan, one after the other.
fn plans(statements: &[&str]) -> String {
    let one = |sql: &&str| format!("{sql}\n\n{}\n", planned(sql, PlanSettings::default()));
    statements.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[test]
fn filters_projections_and_unions_keep_what_they_are_given() {
    insta::assert_snapshot!(plans(&[
        "SELECT who, cost * 2 AS twice FROM clicks WHERE cost > 1",
        "SELECT ts, upper_who FROM clicks",
        "SELECT id FROM accounts WHERE balance > 0",
        "SELECT who FROM clicks UNION ALL SELECT branch FROM accounts",
        "SELECT v FROM latest",
    ]));
}

#[test]
fn aggregates_say_what_they_remember_and_what_bounds_it() {
    insta::assert_snapshot!(plans(&[
        "SELECT who, COUNT(*), SUM(cost) FILTER (WHERE url IS NOT NULL) FROM clicks GROUP BY who",
        "SELECT COUNT(DISTINCT who) FROM clicks",
        "SELECT DISTINCT who FROM clicks",
        "SELECT branch, MAX(balance) AS m FROM accounts GROUP BY branch HAVING MAX(balance) > 10",
        "SELECT n, COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM clicks GROUP BY who) GROUP BY n",
    ]));
}

#[test]
fn windows_are_append_only_and_bounded_in_every_spelling() {
    insta::assert_snapshot!(plans(&[
        "SELECT who, TUMBLE_START(ts, INTERVAL '1' HOUR) AS s, TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR) AS r, COUNT(*) AS n \
         FROM clicks GROUP BY who, TUMBLE(ts, INTERVAL '1' HOUR)",
        "SELECT window_end, who, COUNT(*) FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR) \
         GROUP BY window_end, who, window_start",
        "SELECT window_start, SUM(n) FROM TABLE(TUMBLE(TABLE hourly, DESCRIPTOR(window_time), INTERVAL '1' DAY)) \
         GROUP BY window_start, window_end",
        "SELECT window_start, url FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE))",
        "SELECT window_start, who, COUNT(*) FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '4' MINUTE, \
         INTERVAL '10' MINUTE)) WHERE url IS NOT NULL GROUP BY window_start, window_end, who",
        "SELECT window_start, MAX(window_time) FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '5' MINUTE, \
         INTERVAL '10' MINUTE)) GROUP BY window_start, window_end",
    ]));
}

#[test]
fn interval_joins_keep_rows_as_long_as_they_can_match_and_no_longer() {
    insta::assert_snapshot!(plans(&[
        "SELECT a.who, a.ts, b.url FROM clicks a JOIN clicks b ON a.who = b.who \
         AND b.ts > a.ts AND b.ts - INTERVAL '1' HOUR <= a.ts AND a.cost < b.cost",
        "SELECT a.who FROM clicks a LEFT JOIN clicks b \
         ON b.ts BETWEEN TIMESTAMPADD(MINUTE, -5, a.ts) AND a.ts - INTERVAL '1' MINUTE",
        "SELECT a.who FROM clicks a JOIN clicks b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MONTH",
        "SELECT a.who FROM clicks a JOIN clicks b ON a.ts = b.ts",
        "SELECT a.who FROM clicks a JOIN clicks b ON a.who = b.who AND b.ts > a.ts",
        "SELECT a.who FROM clicks a JOIN (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC) \
         AS rn FROM clicks) WHERE rn = 1) b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR",
    ]));
}

#[test]
fn window_joins_only_emit_and_forget_windows_that_have_ended() {
    let cut = "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR))";
    let on = "a.who = b.who AND a.window_start = b.window_start AND a.window_end = b.window_end";
    insta::assert_snapshot!(plans(&[
        &format!("SELECT a.who, b.url, a.window_time FROM {cut} a FULL JOIN {cut} b ON {on} AND a.cost < b.cost"),
        &format!("SELECT a.who FROM {cut} a WHERE NOT EXISTS (SELECT 1 FROM {cut} b WHERE {on})"),
        &format!(
            "SELECT a.window_end, COUNT(*) FROM {cut} a LEFT JOIN {cut} b ON {on} GROUP BY a.window_start, a.window_end"
        ),
        &format!(
            "SELECT b.window_end, COUNT(*) FROM {cut} a LEFT JOIN {cut} b ON {on} GROUP BY b.window_start, b.window_end"
        ),
        "SELECT a.who FROM hourly a JOIN hourly b ON a.who = b.who AND a.window_time = b.window_time",
    ]));
}

#[test]
fn temporal_joins_say_which_version_they_ask_for_and_what_they_keep() {
    insta::assert_snapshot!(plans(&[
        "SELECT c.who, v.cost FROM clicks c LEFT JOIN versions FOR SYSTEM_TIME AS OF c.ts AS v \
         ON c.who = v.who AND v.cost < c.cost",
        "SELECT c.who, v.cost FROM clicks c JOIN (SELECT who FROM clicks) x ON c.who = x.who \
         JOIN versions FOR SYSTEM_TIME AS OF c.ts AS v ON c.who = v.who",
        "SELECT c.who FROM clicks c JOIN versions FOR SYSTEM_TIME AS OF c.ts AS v ON c.url = v.url",
        "SELECT c.who FROM clicks c JOIN accounts FOR SYSTEM_TIME AS OF c.ts AS a ON c.who = a.branch",
        "SELECT c.who FROM clicks c JOIN clicks FOR SYSTEM_TIME AS OF c.ts AS a ON c.who = a.who",
        "SELECT c.who FROM clicks c FULL JOIN versions FOR SYSTEM_TIME AS OF c.ts AS v ON c.who = v.who",
        "SELECT c.who FROM clicks c JOIN versions FOR SYSTEM_TIME AS OF c.ts AS v USING (who)",
        "SELECT v.who FROM versions FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS v",
    ]));
}

#[test]
fn sinks_get_the_kinds_they_take() {
    insta::assert_snapshot!(plans(&[
        "INSERT INTO totals SELECT who, COUNT(*) FROM clicks GROUP BY who",
        "INSERT INTO changes SELECT who, COUNT(*) FROM clicks GROUP BY who",
        "INSERT INTO log SELECT who, n FROM hourly",
        "INSERT INTO totals SELECT branch, balance FROM accounts",
        "INSERT INTO totals SELECT who, COUNT(*) FROM clicks GROUP BY who HAVING COUNT(*) < 3",
        "INSERT INTO totals SELECT 'all', COUNT(*) FROM clicks GROUP BY who ON CONFLICT DO NOTHING",
        "INSERT INTO totals SELECT who, 1 FROM clicks ON CONFLICT DO ERROR",
        "INSERT INTO totals SELECT branch, balance FROM accounts ON CONFLICT DO ERROR",
    ]));
}

#[test]
fn lateral_relations_need_no_join() {
    insta::assert_snapshot!(plans(&[
        "SELECT who, w FROM clicks CROSS JOIN UNNEST(SPLIT(url, '/')) WITH ORDINALITY AS u(w, o) WHERE who <> 'me'",
        "SELECT branch, x FROM accounts LEFT JOIN UNNEST(ARRAY[balance, 1]) AS u(x) ON x > balance",
        "SELECT branch, balance FROM (SELECT DISTINCT branch AS b FROM accounts) AS d, \
         LATERAL (SELECT branch, balance FROM accounts WHERE branch = d.b ORDER BY balance DESC LIMIT 2) AS t",
    ]));
}

#[test]
fn sessions_are_found_by_the_aggregation_or_wait_for_their_end() {
    let session = "TABLE(SESSION(TABLE clicks PARTITION BY who, DESCRIPTOR(ts), INTERVAL '5' MINUTE))";
    insta::assert_snapshot!(plans(&[
        &format!("SELECT who, window_end, COUNT(*) FROM {session} GROUP BY who, window_start, window_end"),
        &format!("SELECT who, url, window_end FROM {session}"),
        &format!("SELECT window_end, COUNT(*) FROM {session} GROUP BY window_start, window_end"),
        "SELECT SESSION_START(ts, INTERVAL '5' MINUTE), COUNT(*) FROM clicks GROUP BY SESSION(ts, INTERVAL '5' MINUTE)",
    ]));
}

#[test]
fn early_and_late_fire_make_windows_update() {
    let emit = EmitSettings {
        early_fire: true,
        early_delay_ms: Some(5_000),
        late_fire: true,
        late_delay_ms: Some(0),
        lateness_ms: Some(60_000),
        any_window: false,
    };
    let settings = || PlanSettings { emit: emit.clone(), ..PlanSettings::default() };
    let group = "SELECT who, COUNT(*) FROM clicks GROUP BY who, TUMBLE(ts, INTERVAL '1' HOUR)";
    let function = "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) \
        GROUP BY window_start, window_end";
    let session = "SELECT COUNT(*) FROM clicks GROUP BY SESSION(ts, INTERVAL '1' HOUR)";
    let plans = [group, function, session].map(|sql| planned(sql, settings()));
    let any = EmitSettings { any_window: true, ..emit.clone() };
    let opened = planned(function, PlanSettings { emit: any, ..PlanSettings::default() });
    insta::assert_snapshot!(format!("{}\n{opened}", plans.join("\n")));
}

#[test]
fn a_statement_set_reads_a_shared_source_once() {
    insta::assert_snapshot!(plans(&["EXECUTE STATEMENT SET BEGIN \
        INSERT INTO totals SELECT who, COUNT(*) FROM clicks GROUP BY who; \
        INSERT INTO log SELECT url, 1 FROM clicks; END"]));
}

#[test]
fn batch_and_mini_batch_aggregate_in_bundles() {
    let bundles = Some(MiniBatch { size: 100, latency_ms: 1_000 });
    let sql = "SELECT who, COUNT(*) FROM clicks GROUP BY who";
    insta::assert_snapshot!(planned(
        sql,
        PlanSettings { mini_batch: bundles, ttl_ms: 5_000, ..PlanSettings::default() }
    ));
    let batch = PlanSettings { batch: true, ..PlanSettings::default() };
    assert!(!planned(sql, batch).contains("WatermarkAssigner"), "a bounded table has no late rows");
}

#[test]
fn bundles_are_added_up_in_two_phases_and_distinct_values_in_parts() {
    let bundles = Some(MiniBatch { size: 100, latency_ms: 1_000 });
    let with = |phases, distinct_buckets| {
        let sql = "SELECT who, COUNT(*), SUM(cost) FROM clicks GROUP BY who";
        let distinct = "SELECT who, COUNT(DISTINCT url), COUNT(*) FROM clicks GROUP BY who";
        let global = "SELECT COUNT(*) FROM clicks";
        let one = |sql: &str| {
            let settings = PlanSettings { mini_batch: bundles, phases, distinct_buckets, ..PlanSettings::default() };
            format!("{sql}\n\n{}\n", planned(sql, settings))
        };
        [sql, distinct, global].map(one)
    };
    let [keyed, distinct, global] = with(AggregatePhases::Auto, None);
    assert!(!keyed.contains("Local") && !distinct.contains("bucket") && global.contains("LocalGroupAggregate"));
    assert!(with(AggregatePhases::One, None).iter().all(|plan| !plan.contains("Local")));
    insta::assert_snapshot!(with(AggregatePhases::Two, Some(16)).join("\n"));
}

#[test]
fn a_hint_says_how_long_the_rows_of_a_table_are_kept() {
    insta::assert_snapshot!(plans(&[
        "SELECT /*+ STATE_TTL('clicks' = '1 h', 'a' = '2d') */ url, balance FROM clicks JOIN accounts AS a ON who = branch",
        "SELECT /*+ STATE_TTL('a' = '1 h') */ a.url, b.url FROM clicks a JOIN clicks b ON a.who = b.who",
        "SELECT /*+ STATE_TTL('clicks' = '30 min') */ who, ARRAY_AGG(url ORDER BY cost DESC) FROM clicks GROUP BY who",
        "SELECT /*+ STATE_TTL('click' = '1 h') */ who, COUNT(*) FROM clicks GROUP BY who",
        "SELECT /*+ STATE_TTL('clicks' = 'long') */ who, COUNT(*) FROM clicks GROUP BY who",
        "SELECT /*+ STATE_TTL(clicks) */ who, COUNT(*) FROM clicks GROUP BY who",
        "SELECT /*+ STATE_TTL('clicks' = '1 h') */ a.who FROM clicks a JOIN clicks b ON a.who = b.who",
    ]));
}

#[test]
fn a_wrong_query_is_told_where_and_what_would_be_right() {
    insta::assert_snapshot!(plans(&[
        "SELECT whoo FROM clicks",
        "SELECT who FROM click",
        "SELECT UPER(who) FROM clicks",
        "SELECT who, COUNT(*) FROM clicks",
        "SELECT who = 1 FROM clicks",
        "SELECT who + 1 FROM clicks",
        "INSERT INTO log SELECT who, COUNT(*) FROM clicks GROUP BY who",
        "INSERT INTO log SELECT branch, balance FROM accounts",
        "INSERT INTO log SELECT who FROM clicks",
        "INSERT INTO log SELECT who, url FROM clicks",
        "INSERT INTO log (who, m) SELECT who, 1 FROM clicks",
        "INSERT INTO hourly SELECT 1",
        "SELECT COUNT(*) FROM accounts GROUP BY TUMBLE(balance, INTERVAL '1' HOUR)",
        "SELECT window_start FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(who), INTERVAL '1' HOUR))",
        "SELECT window_start FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts)))",
        "SELECT window_start FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '0' HOUR))",
        "SELECT window_start FROM TABLE(TUMBLE(TABLE clicks PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
        "SELECT window_start FROM TABLE(SESSION(TABLE clicks PARTITION BY who ORDER BY ts, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
        "SELECT window_start FROM TABLE(SESSION(TABLE clicks PARTITION BY whom, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
        "SELECT FIRST_VALUE(url) FROM clicks GROUP BY SESSION(ts, INTERVAL '1' HOUR)",
        "SELECT window_start FROM TABLE(TUMBLE(DATA => TABLE clicks, TIMECOL => DESCRIPTOR(ts), LENGTH => INTERVAL '1' HOUR))",
    ]));
}
