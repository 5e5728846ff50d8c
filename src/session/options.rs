//! Session options: names, defaults, and their typed form.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::catalog::parse_duration;
use crate::error::{Error, Result};
use crate::plan::{AggregatePhases, EmitSettings, PlanSettings};
use crate::runtime::{CheckpointConfig, RestartStrategy};
use crate::types::{MiniBatch, WatermarkPolicy};

/// Names of options that the engine reads, with the default and a sentence.
pub(super) const KNOWN: &[(&str, &str, &str)] = &[
    ("execution.runtime-mode", "streaming", "'batch': bounded inputs only, and only the final rows come out"),
    ("parallelism.default", "", "subtasks an operator; the number of cores if not set"),
    ("pipeline.name", "", "name of the next jobs, and of their folder among the checkpoints"),
    (
        "pipeline.auto-watermark-interval",
        "200 ms",
        "a watermark is emitted when event time has moved by more than this",
    ),
    ("table.local-time-zone", "UTC", "zone in which TIMESTAMP_LTZ is shown and cast"),
    ("table.dml-sync", "false", "'true': a script waits for an INSERT's job before its next statement"),
    ("table.exec.mini-batch.enabled", "false", "aggregates emit net changes per bundle instead of every change"),
    ("table.exec.mini-batch.allow-latency", "0 ms", "a bundle closes after this time"),
    ("table.exec.mini-batch.size", "-1", "a bundle closes after so many rows"),
    (
        "table.optimizer.agg-phase-strategy",
        "AUTO",
        "with mini-batch: ONE_PHASE, TWO_PHASE (rows are added up where they are first), AUTO: two without keys",
    ),
    ("table.optimizer.distinct-agg.split.enabled", "false", "with mini-batch: different values are counted in parts"),
    ("table.optimizer.distinct-agg.split.bucket-num", "1024", "into how many parts"),
    ("table.exec.emit.early-fire.enabled", "false", "group windows are told before they end, and then updated"),
    ("table.exec.emit.early-fire.delay", "", "time between early results; 0: at every row"),
    ("table.exec.emit.late-fire.enabled", "false", "late rows update the results of group windows that have ended"),
    ("table.exec.emit.late-fire.delay", "", "time between late results; 0: at every row"),
    ("table.exec.emit.allow-lateness", "", "with late fire: how long after its end a window takes rows"),
    ("table.exec.state.ttl", "0 ms", "state of a key that is idle for longer is dropped; 0: never"),
    (
        "table.exec.source.idle-timeout",
        "0 ms",
        "a source without rows for longer does not hold back event time; 0: never",
    ),
    ("table.exec.late-data.table", "", "table into which late rows of window table functions go, exactly once"),
    ("table.exec.emit.any-window", "false", "early and late fire for windows of table functions too"),
    ("table.exec.event-time.null-policy", "ERROR", "rows without an event time: ERROR fails the job, DROP counts them"),
    (
        "table.exec.event-time.max-ahead",
        "0 ms",
        "rows whose event time is further ahead of the clock are dropped and counted; 0: none",
    ),
    (
        "table.sql.extensions",
        "false",
        "SQL that Flink refuses: names of the SELECT list in GROUP BY and HAVING, NULL without a type, != and bit operators, \
         several columns in COUNT(DISTINCT), DISTINCT rows into a sink of new rows only, and OVER any window",
    ),
    (
        "table.exec.over.any-window",
        "false",
        "OVER in any order and frame, several windows in one query, LEAD and NTILE",
    ),
    (
        "table.exec.consistent-results",
        "false",
        "ours: only results become visible that a prefix of the input has, not what lies in between",
    ),
    ("table.exec.consistent-results.interval", "50 ms", "ours: time between the points at which they become visible"),
    ("table.exec.source.cdc-events-duplicate", "false", "sources of changes with a key may say the same change twice"),
    (
        "table.exec.sink.not-null-enforcer",
        "ERROR",
        "what NULL in a NOT NULL column of a sink does: ERROR fails the job, DROP passes over the row",
    ),
    (
        "table.exec.sink.type-length-enforcer",
        "IGNORE",
        "IGNORE, TRIM_PAD or ERROR: texts are cut and padded to the sink's lengths by the implicit cast either way",
    ),
    ("execution.checkpointing.interval", "", "time between checkpoints; none if not set"),
    ("execution.checkpointing.dir", "", "folder of the checkpoints; the same script goes on from there"),
    ("execution.checkpointing.mode", "EXACTLY_ONCE", "or AT_LEAST_ONCE: barriers are not aligned"),
    ("execution.checkpointing.timeout", "10 min", "a checkpoint that takes longer has failed"),
    ("execution.checkpointing.min-pause", "0 ms", "least time between two checkpoints"),
    ("execution.checkpointing.num-retained", "1", "completed checkpoints that are kept"),
    (
        "execution.checkpointing.tolerable-failed-checkpoints",
        "0",
        "failed checkpoints in a row that do not fail the job",
    ),
    ("execution.checkpointing.savepoint-dir", "", "folder below which STOP JOB … WITH SAVEPOINT leaves savepoints"),
    ("execution.state-recovery.path", "", "savepoint or checkpoint to begin from"),
    ("execution.state-recovery.fresh", "false", "ours: begin anew although there are checkpoints"),
    ("execution.state-recovery.ignore-unclaimed-state", "false", "go on although saved state fits no operator"),
    ("restart-strategy.type", "", "none, fixed-delay or exponential-delay: whether a failed job goes on by itself"),
    ("restart-strategy.fixed-delay.attempts", "1", "restarts before the job has failed"),
    ("restart-strategy.fixed-delay.delay", "1 s", "time before a restart"),
    ("sql-client.execution.result-mode", "tableau", "how results are shown: tableau, changelog or table"),
    ("sql-client.display.max-column-width", "30", "cells are cut at this width in tableau mode"),
    ("table.display.max-column-width", "30", "the same, as Flink's tables name it"),
];

/// Options as set, over the defaults.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionOptions {
    set: BTreeMap<String, String>,
}

impl SessionOptions {
    pub(super) fn get(&self, key: &str) -> Option<String> {
        if let Some(value) = self.set.get(key) {
            return Some(value.clone());
        }
        KNOWN
            .iter()
            .find(|(name, ..)| *name == key)
            .filter(|(_, value, _)| !value.is_empty())
            .map(|(_, v, _)| (*v).into())
    }

    /// Sets an option. Names that the engine does not know are kept: a script written for Flink sets many.
    ///
    /// # Errors
    /// If the engine knows the name and the value has the wrong form; the old value stays.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let old = self.set.insert(key.to_string(), value.to_string());
        if let Err(error) = self.check(key) {
            match old {
                Some(old) => self.set.insert(key.to_string(), old),
                None => self.set.remove(key),
            };
            return Err(error);
        }
        Ok(())
    }

    pub(super) fn reset(&mut self, key: Option<&str>) {
        match key {
            Some(key) => drop(self.set.remove(key)),
            None => self.set.clear(),
        }
    }

    /// What has been set, by name.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.set.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn check(&self, key: &str) -> Result<()> {
        self.zone()?;
        self.batch()?;
        self.parallelism()?;
        match key {
            "execution.checkpointing.mode" => drop(self.aligned()?),
            "table.exec.sink.not-null-enforcer" | "table.exec.event-time.null-policy" => {
                self.one_of(key, &["ERROR", "DROP"])?;
            }
            "table.exec.sink.type-length-enforcer" => drop(self.one_of(key, &["IGNORE", "TRIM_PAD", "ERROR"])?),
            "execution.checkpointing.num-retained" | "execution.checkpointing.tolerable-failed-checkpoints" => {
                self.integer(key)?;
            }
            _ if KNOWN.iter().any(|(name, default, _)| *name == key && matches!(*default, "true" | "false")) => {
                self.boolean(key)?;
            }
            _ if KNOWN
                .iter()
                .any(|(name, default, _)| *name == key && default.ends_with(['s', 'n']) && default.contains(' ')) =>
            {
                self.duration(key)?;
            }
            "execution.checkpointing.interval" => drop(self.duration(key)?),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn zone(&self) -> Result<crate::types::TimeZone> {
        let name = self.get("table.local-time-zone").unwrap_or_else(|| "UTC".into());
        crate::types::TimeZone::named(&name).ok_or_else(|| {
            invalid("table.local-time-zone", &name, "a zone such as 'UTC', 'Europe/Berlin' or 'GMT+08:00'")
        })
    }

    pub(super) fn batch(&self) -> Result<bool> {
        let mode = self.get("execution.runtime-mode").unwrap_or_default();
        match mode.to_ascii_lowercase().as_str() {
            "streaming" | "automatic" => Ok(false),
            "batch" => Ok(true),
            _ => Err(invalid("execution.runtime-mode", &mode, "streaming or batch")),
        }
    }

    /// As set; `None`: the engine's default.
    pub(super) fn parallelism(&self) -> Result<Option<usize>> {
        for key in ["table.exec.resource.default-parallelism", "parallelism.default"] {
            match self.integer(key)? {
                None | Some(-1) => {}
                Some(value) if (1..=i64::from(crate::limits::KEY_GROUPS)).contains(&value) => {
                    return Ok(usize::try_from(value).ok());
                }
                Some(value) => {
                    let expected = format!("1 to {}", crate::limits::KEY_GROUPS);
                    return Err(invalid(key, &value.to_string(), &expected));
                }
            }
        }
        Ok(None)
    }

    pub(super) fn boolean(&self, key: &str) -> Result<bool> {
        match self.get(key).as_deref() {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(invalid(key, text, "true or false")),
        }
    }

    /// The value, which must be one of these words, upper case.
    fn one_of(&self, key: &str, words: &[&'static str]) -> Result<&'static str> {
        let value = self.get(key).unwrap_or_default();
        let word = words.iter().find(|word| value.trim().eq_ignore_ascii_case(word));
        word.copied().ok_or_else(|| invalid(key, &value, &format!("one of {}", words.join(", "))))
    }

    /// Whether SQL that Flink refuses is answered.
    pub(super) fn extensions(&self) -> Result<bool> {
        self.boolean("table.sql.extensions")
    }

    fn integer(&self, key: &str) -> Result<Option<i64>> {
        self.get(key).map(|text| text.trim().parse().map_err(|_| invalid(key, &text, "a whole number"))).transpose()
    }

    pub(super) fn duration(&self, key: &str) -> Result<Option<Duration>> {
        self.get(key)
            .map(|text| {
                parse_duration(&text).ok_or_else(|| invalid(key, &text, "a duration such as '10 s' or '1 min'"))
            })
            .transpose()
    }

    fn milliseconds(&self, key: &str) -> Result<u64> {
        let duration = self.duration(key)?.unwrap_or_default();
        Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    fn optional_milliseconds(&self, key: &str) -> Result<Option<u64>> {
        let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Ok(self.duration(key)?.map(milliseconds))
    }

    pub(super) fn watermark_interval_ms(&self) -> Result<i64> {
        Ok(i64::try_from(self.milliseconds("pipeline.auto-watermark-interval")?).unwrap_or(i64::MAX))
    }

    fn aligned(&self) -> Result<bool> {
        let mode = self.get("execution.checkpointing.mode").unwrap_or_default();
        match mode.to_ascii_uppercase().replace('-', "_").as_str() {
            "EXACTLY_ONCE" => Ok(true),
            "AT_LEAST_ONCE" => Ok(false),
            _ => Err(invalid("execution.checkpointing.mode", &mode, "EXACTLY_ONCE or AT_LEAST_ONCE")),
        }
    }

    /// The options that change plans.
    pub(super) fn plan_settings(&self) -> Result<PlanSettings> {
        let batch = self.batch()?;
        let mini_batch = match self.boolean("table.exec.mini-batch.enabled")? {
            // All rows are there before the first result is due: one bundle.
            _ if batch => Some(MiniBatch { size: u64::MAX, latency_ms: u64::MAX }),
            false => None,
            true => Some(self.mini_batch()?),
        };
        Ok(PlanSettings {
            batch,
            mini_batch,
            phases: match self.one_of("table.optimizer.agg-phase-strategy", &["AUTO", "ONE_PHASE", "TWO_PHASE"])? {
                "ONE_PHASE" => AggregatePhases::One,
                "TWO_PHASE" => AggregatePhases::Two,
                _ => AggregatePhases::Auto,
            },
            distinct_buckets: self.distinct_buckets()?,
            ttl_ms: self.milliseconds("table.exec.state.ttl")?,
            watermarks: WatermarkPolicy {
                idle_timeout_ms: self.milliseconds("table.exec.source.idle-timeout")?,
                drop_null: self.one_of("table.exec.event-time.null-policy", &["ERROR", "DROP"])? == "DROP",
                max_ahead_ms: self.optional_milliseconds("table.exec.event-time.max-ahead")?.filter(|ahead| *ahead > 0),
                each_event: false,
                alignment: None,
            },
            duplicate_changes: self.boolean("table.exec.source.cdc-events-duplicate")?,
            extensions: self.extensions()?,
            any_window: self.boolean("table.exec.over.any-window")? || self.extensions()?,
            consistent_results: self.boolean("table.exec.consistent-results")?,
            emit: EmitSettings {
                early_fire: self.boolean("table.exec.emit.early-fire.enabled")?,
                early_delay_ms: self.optional_milliseconds("table.exec.emit.early-fire.delay")?,
                late_fire: self.boolean("table.exec.emit.late-fire.enabled")?,
                late_delay_ms: self.optional_milliseconds("table.exec.emit.late-fire.delay")?,
                lateness_ms: self.optional_milliseconds("table.exec.emit.allow-lateness")?,
                any_window: self.boolean("table.exec.emit.any-window")?,
            },
            late_table: self.get("table.exec.late-data.table").filter(|name| !name.is_empty()),
            drop_null_rows: self.one_of("table.exec.sink.not-null-enforcer", &["ERROR", "DROP"])? == "DROP",
        })
    }

    fn distinct_buckets(&self) -> Result<Option<i32>> {
        const KEY: &str = "table.optimizer.distinct-agg.split.bucket-num";
        if !self.boolean("table.optimizer.distinct-agg.split.enabled")? {
            return Ok(None);
        }
        let buckets = self.integer(KEY)?.and_then(|buckets| i32::try_from(buckets).ok()).filter(|buckets| *buckets > 0);
        buckets.map(Some).ok_or_else(|| invalid(KEY, &self.get(KEY).unwrap_or_default(), "a whole number from 1"))
    }

    fn mini_batch(&self) -> Result<MiniBatch> {
        let latency_ms = self.milliseconds("table.exec.mini-batch.allow-latency")?;
        if latency_ms == 0 {
            return Err(Error::sql("mini-batch is enabled, and no bundle may wait")
                .hint("SET 'table.exec.mini-batch.allow-latency' = '2 s'"));
        }
        match self.integer("table.exec.mini-batch.size")? {
            Some(size) if size > 0 => Ok(MiniBatch { size: size.unsigned_abs(), latency_ms }),
            _ => Err(Error::sql("mini-batch is enabled, and no bundle may hold a row")
                .hint("SET 'table.exec.mini-batch.size' = '50000'")),
        }
    }

    /// How often consistent results become visible.
    pub(super) fn visibility(&self) -> Result<Option<Duration>> {
        let interval = self.duration("table.exec.consistent-results.interval")?;
        Ok(interval.map(|interval| interval.max(Duration::from_millis(1))))
    }

    /// How jobs are checkpointed; `None`: not at all.
    pub(super) fn checkpoints(&self) -> Result<Option<CheckpointConfig>> {
        let interval = self.duration("execution.checkpointing.interval")?;
        let directory = self.get("execution.checkpointing.dir").or_else(|| self.get("state.checkpoints.dir"));
        let restore_path = self.get("execution.state-recovery.path").map(|path| local_path(&path));
        if directory.is_none() && interval.is_none() && restore_path.is_none() {
            return Ok(None);
        }
        let retained = self.integer("execution.checkpointing.num-retained")?.unwrap_or(1).max(1);
        let tolerable = self.integer("execution.checkpointing.tolerable-failed-checkpoints")?.unwrap_or(0).max(0);
        Ok(Some(CheckpointConfig {
            // Without a folder, checkpoints serve restarts within this process, as Flink keeps them in memory.
            directory: directory.map_or_else(process_folder, |directory| local_path(&directory)),
            interval,
            retained: usize::try_from(retained).unwrap_or(1),
            aligned: self.aligned()?,
            timeout: self.duration("execution.checkpointing.timeout")?.unwrap_or(Duration::from_secs(600)),
            min_pause: self.duration("execution.checkpointing.min-pause")?.unwrap_or_default(),
            tolerable_failures: u32::try_from(tolerable).unwrap_or(u32::MAX),
            fresh: self.boolean("execution.state-recovery.fresh")?,
            allow_non_restored_state: self.boolean("execution.state-recovery.ignore-unclaimed-state")?,
            restore_path,
        }))
    }

    /// What happens after a failure.
    pub(super) fn restart_strategy(&self) -> Result<RestartStrategy> {
        let strategy = self.get("restart-strategy.type").unwrap_or_default();
        match strategy.to_ascii_lowercase().as_str() {
            "" | "none" | "off" | "disable" => Ok(RestartStrategy::None),
            "fixed-delay" | "fixeddelay" => Ok(RestartStrategy::FixedDelay {
                attempts: u32::try_from(self.integer("restart-strategy.fixed-delay.attempts")?.unwrap_or(1))
                    .unwrap_or(0),
                delay: self.duration("restart-strategy.fixed-delay.delay")?.unwrap_or(Duration::from_secs(1)),
            }),
            "exponential-delay" | "exponentialdelay" => Ok(RestartStrategy::ExponentialDelay {
                initial: self
                    .duration("restart-strategy.exponential-delay.initial-backoff")?
                    .unwrap_or(Duration::from_secs(1)),
                maximum: self
                    .duration("restart-strategy.exponential-delay.max-backoff")?
                    .unwrap_or(Duration::from_secs(60)),
                multiplier: 1.5,
                attempts: None,
            }),
            _ => Err(invalid("restart-strategy.type", &strategy, "none, fixed-delay or exponential-delay")),
        }
    }
}

fn invalid(key: &str, text: &str, expected: &str) -> Error {
    Error::sql(format!("'{text}' is not a valid value for '{key}'")).hint(format!("expected {expected}"))
}

/// A path or a `file:` URL.
pub(super) fn local_path(text: &str) -> PathBuf {
    PathBuf::from(text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text))
}

/// A folder for checkpoints that need not outlive this process.
fn process_folder() -> PathBuf {
    std::env::temp_dir().join(format!("ebbflow-{}", std::process::id()))
}
