//! Large statements are planned without trouble: no stack overflow, and in a time that grows with their size.
//!
//! The times are those of a build for tests on a machine that has other work; a build for users takes a small part of them.

use std::time::{Duration, Instant};

use ebbflow::{Engine, Session};

fn session() -> (Engine, Session) {
    let engine = Engine::builder().parallelism(1).build().expect("an engine needs nothing");
    let session = engine.session();
    (engine, session)
}

/// Runs the statements and gives the time of the last.
fn time(statements: &[String]) -> Duration {
    let (engine, session) = session();
    let mut took = Duration::ZERO;
    for text in statements {
        let begun = Instant::now();
        let answer = engine.block_on(session.execute(text));
        took = begun.elapsed();
        if let Err(error) = answer {
            panic!("{error}\n{}", &text[..text.len().min(200)]);
        }
    }
    took
}

#[test]
fn a_tower_of_views_over_twenty_tables_is_planned() {
    let mut statements: Vec<String> = (0..20)
        .map(|n| {
            format!(
                "CREATE TABLE t{n} (k INT, v{n} BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'datagen')"
            )
        })
        .collect();
    statements.push("CREATE VIEW j0 AS SELECT k, v0 AS v FROM t0".to_string());
    for n in 1..20 {
        let below = n - 1;
        statements.push(format!(
            "CREATE VIEW j{n} AS SELECT a.k, a.v + b.v{n} AS v FROM j{below} a JOIN t{n} b ON a.k = b.k"
        ));
    }
    statements.push("EXPLAIN SELECT k, SUM(v) FROM j19 WHERE v > 10 GROUP BY k".to_string());
    let took = time(&statements);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_table_of_five_thousand_columns_is_declared_and_read() {
    let columns: Vec<String> = (0..5_000).map(|n| format!("c{n} INT")).collect();
    let statements = [
        format!("CREATE TABLE source ({}) WITH ('connector' = 'datagen')", columns.join(", ")),
        "EXPLAIN SELECT c4999, c1, SUM(c7) FROM source WHERE c4998 > 0 GROUP BY c4999, c1".to_string(),
    ];
    let took = time(&statements);
    assert!(took < Duration::from_secs(60), "{took:?}");
}
