//! Jobs in the background: waiting for them, showing how far they are, saying what they did.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ebbflow::{Error, ErrorKind, Job, JobProgress, JobReport, Result};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use indicatif::{ProgressBar, ProgressStyle};

use super::Flow;
use super::console::Terminal;
use super::ending::Ending;
use super::interrupt::Interrupts;

/// Event times further ahead of the clock are worth a word: a clock that is a little fast, or a zone, is not.
const FAR_AHEAD: Duration = Duration::from_secs(86_400);

/// How often the progress line is drawn.
const REDRAW: Duration = Duration::from_millis(200);

type End = (Job, Result<JobReport>);

/// Waits until all jobs have ended and says of each what it did. The first Ctrl-C stops them with a last checkpoint, the
/// second ends the process at once.
///
/// # Errors
/// If one failed; the others still run to their end.
pub async fn wait(jobs: Vec<Job>, terminal: &Terminal, interrupts: &mut Interrupts) -> Flow {
    let mut running: FuturesUnordered<BoxFuture<'static, End>> = jobs.iter().cloned().map(end_of).collect();
    let mut stopping: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut interrupted = false;
    let mut ending = Ok(());
    let mut progress = ProgressLine::start(&jobs, terminal);
    let mut ticks = tokio::time::interval(REDRAW);
    let mut warned = vec![0; jobs.len()];
    while !running.is_empty() {
        tokio::select! {
            Some((job, result)) = running.next() => {
                progress.clear(terminal);
                warn(&jobs, &mut warned);
                ending = ending.and(report(&job, result));
            }
            Some(()) = stopping.next(), if !stopping.is_empty() => {}
            () = interrupts.next() => {
                if interrupted {
                    std::process::exit(130);
                }
                interrupted = true;
                progress.clear(terminal);
                eprintln!("stopping with a last checkpoint; press Ctrl-C again to stop at once");
                stopping.extend(jobs.iter().cloned().map(stop));
            }
            _ = ticks.tick() => {
                if jobs.iter().zip(&warned).any(|(job, warned)| job.warnings().len() > *warned) {
                    progress.beside(|| warn(&jobs, &mut warned));
                }
                progress.draw(&jobs);
            }
        }
    }
    progress.clear(terminal);
    if interrupted { ending.and(Err(Ending::Interrupted)) } else { ending }
}

/// Says what has come to be known about each job since the last time, of which there were `warned`.
fn warn(jobs: &[Job], warned: &mut [usize]) {
    for (job, warned) in jobs.iter().zip(warned) {
        let warnings = job.warnings();
        for warning in warnings.iter().skip(*warned) {
            eprintln!("{}: warning: {}", job.name(), warning.replace('\n', "\n  "));
        }
        *warned = warnings.len();
    }
}

fn end_of(job: Job) -> BoxFuture<'static, End> {
    Box::pin(async move {
        let result = job.wait().await;
        (job, result)
    })
}

/// Asks a job to stop; how that went is the answer of whoever waits for it.
fn stop(job: Job) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        if job.stop().await.is_err() {
            job.cancel();
        }
    })
}

/// Says on standard error how a job ended.
///
/// # Errors
/// `Reported` if it failed.
pub fn report(job: &Job, result: Result<JobReport>) -> Flow {
    match result {
        Ok(report) => {
            eprintln!("{}", summary(job.name(), &report));
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Cancelled => {
            eprintln!("{}: stopped", job.name());
            Ok(())
        }
        Err(error) => {
            eprintln!("{}", failure(job.name(), error));
            Err(Ending::Reported)
        }
    }
}

fn failure(name: &str, error: Error) -> String {
    format!("{name}: {}", error.render(""))
}

/// One line on what a job did, and one for each thing a person should know about.
pub fn summary(name: &str, report: &JobReport) -> String {
    if report.already_complete {
        let checkpoint = report.restored_from.map(|id| format!(" (checkpoint {id})")).unwrap_or_default();
        return format!(
            "{name}: complete since an earlier run{checkpoint}, and its input has not grown: nothing to do"
        );
    }
    let mut text = format!(
        "{name}: {} read, {} written in {}",
        rows(report.rows_read),
        rows(report.rows_written),
        duration(report.elapsed)
    );
    if let Some(id) = report.last_checkpoint {
        text += &format!("; checkpoint {id}");
    }
    if let Some(id) = report.restored_from {
        text += &format!("; continued from checkpoint {id}");
    }
    text += &remarks(report);
    text
}

/// What a person should know about a run's rows, a line for each: those that did not count.
pub fn remarks(report: &JobReport) -> String {
    let mut text = String::new();
    let (verb, they) = if report.late_rows == 1 { ("was", "its") } else { ("were", "their") };
    if report.late_rows > 0 {
        text += &format!("\n  {} came after {they} window had closed and {verb} dropped", rows(report.late_rows));
        text += &match report.wait_for_most == report.latest_row {
            _ if report.latest_row.is_zero() => "; a WATERMARK that waits longer lets them in".to_owned(),
            true => format!("; a WATERMARK that waits {} longer lets them in", duration(report.latest_row)),
            false => format!(
                ", up to {} late; a WATERMARK that waits {} longer lets 99.9 % of them in",
                duration(report.latest_row),
                duration(report.wait_for_most)
            ),
        };
    }
    if report.null_event_times > 0 {
        let verb = if report.null_event_times == 1 { "was" } else { "were" };
        text += &format!("\n  {} had no event time and {verb} dropped", rows(report.null_event_times));
    }
    if report.rows_ahead > 0 {
        let verb = if report.rows_ahead == 1 { "was" } else { "were" };
        text += &format!(
            "\n  {} {verb} up to {} ahead of the clock and {verb} dropped",
            rows(report.rows_ahead),
            duration(report.ahead)
        );
    } else if report.ahead > FAR_AHEAD {
        text += &format!(
            "\n  an event time was {} ahead of the clock, which makes later rows late; SET \
             'table.exec.event-time.max-ahead' drops such rows",
            duration(report.ahead)
        );
    }
    let verb = if report.skipped_rows == 1 { "was" } else { "were" };
    if report.skipped_rows > 0 {
        text +=
            &format!("\n  {} could not be parsed and {verb} skipped (ignore-parse-errors)", rows(report.skipped_rows));
    }
    text
}

fn rows(count: u64) -> String {
    if count == 1 { "1 row".into() } else { format!("{} rows", grouped(count)) }
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match elapsed.as_secs() {
        0 => format!("{:.0} ms", seconds * 1e3),
        1..60 => format!("{seconds:.1} s"),
        whole @ 60..172_800 => format!("{} min {} s", whole / 60, whole % 60),
        whole => format!("{} days", whole / 86_400),
    }
}

/// A line on standard error that shows how far the jobs are; only on a terminal.
struct ProgressLine {
    bar: Option<ProgressBar>,
    begun: Instant,
    at_start: u64,
}

impl ProgressLine {
    fn start(jobs: &[Job], terminal: &Terminal) -> ProgressLine {
        let bar = (std::io::stderr().is_terminal() && !jobs.is_empty()).then(|| {
            let bar = ProgressBar::new_spinner();
            // The template is our own and valid; if not, the default style serves.
            bar.set_style(ProgressStyle::with_template("{spinner} {msg}").unwrap_or(ProgressStyle::default_spinner()));
            terminal.set_progress(Some(bar.clone()));
            bar
        });
        ProgressLine { bar, begun: Instant::now(), at_start: total(jobs).rows_read }
    }

    fn draw(&self, jobs: &[Job]) {
        if let Some(bar) = &self.bar {
            bar.set_message(progress_text(total(jobs), self.at_start, self.begun.elapsed()));
        }
    }

    /// Writes other text to the terminal without mixing it up with the line.
    fn beside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn clear(&mut self, terminal: &Terminal) {
        if self.bar.take().is_some() {
            terminal.set_progress(None);
        }
    }
}

fn total(jobs: &[Job]) -> JobProgress {
    jobs.iter().map(Job::progress).fold(JobProgress { total_bytes: Some(0), ..JobProgress::default() }, |sum, job| {
        JobProgress {
            rows_read: sum.rows_read + job.rows_read,
            rows_written: sum.rows_written + job.rows_written,
            bytes_read: sum.bytes_read + job.bytes_read,
            total_bytes: sum.total_bytes.zip(job.total_bytes).map(|(a, b)| a + b),
        }
    })
}

fn progress_text(now: JobProgress, at_start: u64, elapsed: Duration) -> String {
    let rate = now.rows_read.saturating_sub(at_start) as f64 / elapsed.as_secs_f64().max(0.001);
    let mut text = format!(
        "{} read, {} written, {} rows/s",
        rows(now.rows_read),
        rows(now.rows_written),
        grouped(rate.round() as u64)
    );
    if let Some(total) = now.total_bytes
        && total > 0
    {
        let percent = u128::from(now.bytes_read.min(total)) * 100 / u128::from(total);
        text += &format!(", {percent} % of {}", bytes(total));
    }
    text
}

fn bytes(count: u64) -> String {
    let units = ["bytes", "KB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} bytes") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_says_what_was_done_and_what_was_lost() {
        let report = JobReport {
            rows_read: 1_234_567,
            rows_written: 1,
            elapsed: Duration::from_millis(1_500),
            last_checkpoint: Some(7),
            restored_from: Some(3),
            late_rows: 2,
            latest_row: Duration::from_millis(3_200),
            wait_for_most: Duration::from_millis(4),
            ..JobReport::default()
        };
        assert_eq!(
            summary("insert-into_totals", &report),
            "insert-into_totals: 1,234,567 rows read, 1 row written in 1.5 s; checkpoint 7; continued from checkpoint 3\n  \
             2 rows came after their window had closed and were dropped, up to 3.2 s late; a WATERMARK that waits 4 ms \
             longer lets 99.9 % of them in"
        );
    }

    #[test]
    fn progress_knows_a_share_only_of_bounded_input() {
        let now = JobProgress { rows_read: 2_000, rows_written: 5, bytes_read: 512, total_bytes: Some(2_048) };
        let text = progress_text(now, 0, Duration::from_secs(2));
        assert_eq!(text, "2,000 rows read, 5 rows written, 1,000 rows/s, 25 % of 2.0 KB");
        let text = progress_text(JobProgress { total_bytes: None, ..now }, 1_000, Duration::from_secs(2));
        assert_eq!(text, "2,000 rows read, 5 rows written, 500 rows/s");
    }
}
