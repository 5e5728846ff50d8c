//! How watermarks are derived, beside the expression that gives them: the vocabulary that planner and runtime share.

/// What a table and the session say about the watermarks of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatermarkPolicy {
    /// After this many milliseconds without rows a split counts as idle; 0: never.
    pub idle_timeout_ms: u64,
    /// Whether every row that raises the watermark sends it (`on-event`), and not only one that raises it by
    /// `pipeline.auto-watermark-interval`.
    pub each_event: bool,
    /// Whether rows without an event time are dropped and counted, and are not an error.
    pub drop_null: bool,
    /// Rows whose event time is further ahead of the clock, in milliseconds, are dropped and counted.
    pub max_ahead_ms: Option<u64>,
    /// The group of sources that wait for each other.
    pub alignment: Option<Alignment>,
}

/// Splits of sources that are not to drift apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment {
    /// Its name.
    pub group: String,
    /// By how many milliseconds of event time a split may be ahead of the last one.
    pub max_drift_ms: u64,
}
