//! How fast text files are decoded: a filtered projection of two columns out of seven, from JSON and CSV files into
//! `blackhole`, at parallelism 1. Prints MB/s of input.
//!
//! `cargo bench --bench decode`

use std::fmt::Write;
use std::time::Instant;

use ebbflow::{Engine, Outcome, Session};

const ROWS: u64 = 1_000_000;
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test` runs benches too: then a few rows are enough to see that it works.
    let rows = if std::env::args().any(|argument| argument == "--bench") { ROWS } else { 1_000 };
    let folder = std::env::temp_dir().join(format!("ebbflow-decode-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Runtime::new()?;
    for format in ["json", "csv"] {
        let path = folder.join(format!("clicks.{format}"));
        let text = clicks(format, rows)?;
        std::fs::write(&path, &text)?;
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let session = Engine::builder().parallelism(1).build()?.session();
            let seconds = runtime.block_on(run(&session, format, &path.display().to_string()))?;
            best = best.min(seconds);
        }
        let megabytes = text.len() as f64 / 1e6;
        println!("{format}: {:.0} MB/s ({megabytes:.0} MB in {best:.3} s, {rows} rows)", megabytes / best);
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Rows of seven fields, about 210 bytes each as JSON.
fn clicks(format: &str, rows: u64) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for id in 0..rows {
        let (user, second, amount) = (id % 10_007, id % 60, id % 997);
        let url = format!("https://shop.example/products/{amount}?ref=newsletter");
        let agent = "Mozilla/5.0 (X11; Linux x86_64) Gecko";
        if format == "json" {
            writeln!(
                text,
                "{{\"id\":{id},\"user\":\"user-{user}\",\"url\":\"{url}\",\"ts\":\"2026-01-02 10:11:{second:02}.123\",\
                 \"amount\":{amount}.25,\"country\":\"DE\",\"agent\":\"{agent}\"}}"
            )?;
        } else {
            writeln!(text, "{id},user-{user},{url},2026-01-02 10:11:{second:02}.123,{amount}.25,DE,{agent}")?;
        }
    }
    Ok(text)
}

async fn run(session: &Session, format: &str, path: &str) -> Result<f64, Box<dyn std::error::Error>> {
    session
        .execute(&format!(
            "CREATE TABLE clicks (id BIGINT, `user` STRING, url STRING, ts TIMESTAMP(3), amount DOUBLE, country STRING, \
             agent STRING) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{format}')"
        ))
        .await?;
    session.execute("CREATE TABLE nowhere (id BIGINT, amount DOUBLE) WITH ('connector' = 'blackhole')").await?;
    let began = Instant::now();
    let insert = "INSERT INTO nowhere SELECT id, amount FROM clicks WHERE amount > 500";
    if let Outcome::Job(job) = session.execute(insert).await? {
        job.wait().await?;
    }
    Ok(began.elapsed().as_secs_f64())
}
