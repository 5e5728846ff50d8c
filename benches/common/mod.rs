//! What the benches share: their command line, times, random numbers, and draining queries.

use std::time::{Duration, Instant};

use ebbflow::{Engine, Outcome, Result, Session};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A time is the best of so many runs.
const RUNS: usize = 3;

/// `[FILTER] [--rows N]`. Without `--bench`, which `cargo bench` gives, a bench runs once and small: `cargo test` runs
/// benches too, so that they cannot rot.
pub struct Arguments {
    /// Rows of the inputs.
    pub rows: usize,
    runs: usize,
    filter: String,
}

impl Arguments {
    /// Reads the command line; `rows` is the size of a full run.
    pub fn read(rows: usize) -> Arguments {
        let mut read = Arguments { rows: 10_000, runs: 1, filter: String::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--bench" => (read.rows, read.runs) = (rows, RUNS),
                "--test" => (read.rows, read.runs) = (10_000, 1),
                "--rows" => read.rows = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(rows),
                // Of the test harness, when all tests are run.
                other if other.starts_with("--") => {}
                other => read.filter = other.to_owned(),
            }
        }
        read
    }

    /// Whether the line `name` is wanted.
    pub fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// The best of several runs.
    ///
    /// # Errors
    /// The first error of a run.
    pub fn best<T>(&self, mut run: impl FnMut() -> Result<T>) -> Result<(Time, T)> {
        let (mut best, mut value) = timed(&mut run)?;
        for _ in 1..self.runs {
            let (time, next) = timed(&mut run)?;
            (best, value) = (best.min(time), next);
        }
        Ok((best, value))
    }

    /// The best of several runs each of two things, which take turns.
    ///
    /// # Errors
    /// The first error of a run.
    pub fn alternating<T>(
        &self,
        mut first: impl FnMut() -> Result<T>,
        mut second: impl FnMut() -> Result<T>,
    ) -> Result<(Time, Time)> {
        let mut best = (timed(&mut first)?.0, timed(&mut second)?.0);
        for _ in 1..self.runs {
            best = (best.0.min(timed(&mut first)?.0), best.1.min(timed(&mut second)?.0));
        }
        Ok(best)
    }
}

/// How long something took.
#[derive(Clone, Copy)]
pub struct Time {
    /// On the clock.
    pub wall: Duration,
    /// On the cores, all threads together; `None` where the system does not tell.
    pub cores: Option<Duration>,
}

impl Time {
    fn min(self, other: Time) -> Time {
        Time { wall: self.wall.min(other.wall), cores: self.cores.min(other.cores) }
    }

    /// `amount` a second, and a second of core time.
    pub fn rates(self, amount: f64, unit: &str) -> String {
        let of = |time: Duration| amount / time.as_secs_f64().max(1e-9);
        match self.cores {
            Some(cores) => format!("{:>8.2} {unit}/s {:>8.2} {unit}/core-s", of(self.wall), of(cores)),
            None => format!("{:>8.2} {unit}/s", of(self.wall)),
        }
    }
}

fn timed<T>(run: &mut impl FnMut() -> Result<T>) -> Result<(Time, T)> {
    let (start, before) = (Instant::now(), core_time());
    let value = run()?;
    let (wall, after) = (start.elapsed(), core_time());
    Ok((Time { wall, cores: after.zip(before).and_then(|(after, before)| after.checked_sub(before)) }, value))
}

/// User and system time of the process so far, in steps of 10 ms (Linux).
fn core_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Fields are counted behind the program's name, which may hold spaces: the 12th and 13th from there.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// Runs a query to its end; gives the number of changes.
///
/// # Errors
/// The query's.
pub fn drain(engine: &Engine, session: &Session, sql: &str) -> Result<usize> {
    engine.block_on(async {
        let mut changes = session.query(sql).await?;
        let mut count = 0;
        while let Some(batch) = changes.next().await {
            count += batch?.len();
        }
        Ok(count)
    })
}

/// Runs a statement, and the job that it starts to its end; gives the number of rows written.
///
/// # Errors
/// The statement's or the job's.
pub fn execute(engine: &Engine, session: &Session, sql: &str) -> Result<u64> {
    engine.block_on(async {
        match session.execute(sql).await? {
            Outcome::Job(job) => Ok(job.wait().await?.rows_written),
            _ => Ok(0),
        }
    })
}

/// A folder for this run of the bench `name`; it goes with the value.
pub struct Folder(pub std::path::PathBuf);

impl Folder {
    /// Makes it.
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ebbflow-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A bench that leaves a folder behind has still measured.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
