//! Queries over windows, and their SQL.

use rand::RngExt;
use rand::rngs::StdRng;

/// A row of the tables `t0` and `t1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedRow {
    pub id: i64,
    /// Milliseconds.
    pub time: i64,
    pub key: Option<i64>,
    pub value: Option<i64>,
}

/// How time is cut; lengths in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Tumble { size: i64, offset: i64 },
    Hop { slide: i64, size: i64, offset: i64 },
    Cumulate { step: i64, size: i64, offset: i64 },
    Session { gap: i64, keyed: bool },
}

/// What a window has of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    CountRows,
    Count,
    CountDistinct,
    Sum,
    Min,
    Max,
    /// `SUM(v) FILTER (WHERE id > 10)`
    SumOfLater,
}

/// What is asked of the windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Aggregates of the windows of a table function, or of group windows.
    Aggregate { cut: Cut, legacy: bool, keyed: bool, at_least: Option<i64>, calls: Vec<Call> },
    /// The first so many rows of each window by value, or by time.
    Top { cut: Cut, keyed: bool, wanted: u64 },
    /// The time of the first or last row of each window and key.
    Edge { cut: Cut, last: bool },
    /// Rows of both tables in the same windows.
    Join { cut: Cut, kind: &'static str },
    /// Rows of both tables that are close.
    Interval { kind: &'static str, before: i64, after: i64 },
    /// Windows over the results of windows.
    Cascade { inner: Cut, size: i64 },
}

impl Cut {
    fn random(random: &mut StdRng, sessions: bool) -> Cut {
        let mut seconds = |from: i64, to: i64| random.random_range(from..=to) * 1_000;
        let step = seconds(1, 6);
        let offset = seconds(-3, 3);
        match random.random_range(0..if sessions { 5 } else { 4 }) {
            0 => Cut::Tumble { size: step * 2, offset },
            // Its size may be no multiple of the slide.
            1 => Cut::Hop { slide: step, size: step + random.random_range(0..8) * 1_000, offset },
            2 => Cut::Hop { slide: step, size: step * random.random_range(1..12), offset },
            3 => Cut::Cumulate { step, size: step * random.random_range(1..6), offset },
            _ => Cut::Session { gap: step, keyed: random.random_range(0..2) == 0 },
        }
    }

    fn function(self, table: &str) -> String {
        let seconds = |ms: i64| format!("INTERVAL '{}' SECOND", ms / 1_000);
        let of = format!("TABLE {table}, DESCRIPTOR(ts)");
        let call = match self {
            Cut::Tumble { size, offset } => format!("TUMBLE({of}, {}, {})", seconds(size), seconds(offset)),
            Cut::Hop { slide, size, offset } => {
                format!("HOP({of}, {}, {}, {})", seconds(slide), seconds(size), seconds(offset))
            }
            Cut::Cumulate { step, size, offset } => {
                format!("CUMULATE({of}, {}, {}, {})", seconds(step), seconds(size), seconds(offset))
            }
            Cut::Session { gap, keyed } => {
                let partition = if keyed { " PARTITION BY k" } else { "" };
                format!("SESSION(TABLE {table}{partition}, DESCRIPTOR(ts), {})", seconds(gap))
            }
        };
        format!("TABLE({call})")
    }

    /// As a group window: its name and arguments.
    fn group_window(self) -> (&'static str, String) {
        let seconds = |ms: i64| format!("INTERVAL '{}' SECOND", ms / 1_000);
        match self {
            Cut::Tumble { size, .. } => ("TUMBLE", seconds(size)),
            Cut::Hop { slide, size, .. } => ("HOP", format!("{}, {}", seconds(slide), seconds(size))),
            Cut::Session { gap, .. } => ("SESSION", seconds(gap)),
            Cut::Cumulate { .. } => unreachable!("there is no such group window"),
        }
    }
}

impl Query {
    /// Any query; one that `may_be_late` is of those for which the rule of late rows is a row's own.
    pub fn random(random: &mut StdRng, may_be_late: bool) -> Query {
        let kinds = ["JOIN", "LEFT JOIN", "FULL JOIN"];
        let cut = Cut::random(random, !may_be_late);
        let kind = random.random_range(0..if may_be_late { 5 } else { 10 });
        let keyed = random.random_range(0..2) == 0;
        let unkeyed_or_whole =
            |cut| if let Cut::Session { .. } = cut { Cut::Tumble { size: 4_000, offset: 0 } } else { cut };
        match kind {
            0..3 => {
                let legacy = random.random_range(0..3) == 0 && !matches!(cut, Cut::Cumulate { .. });
                let (cut, keyed) = match (cut, legacy) {
                    (Cut::Tumble { size, .. }, true) => (Cut::Tumble { size, offset: 0 }, keyed),
                    (Cut::Hop { slide, size, .. }, true) => (Cut::Hop { slide, size, offset: 0 }, keyed),
                    (Cut::Session { gap, .. }, true) => (Cut::Session { gap, keyed }, keyed),
                    // Grouped by the keys of the sessions.
                    (Cut::Session { keyed, .. }, false) => (cut, keyed),
                    (cut, _) => (cut, keyed),
                };
                let all = [
                    Call::CountRows,
                    Call::Count,
                    Call::CountDistinct,
                    Call::Sum,
                    Call::Min,
                    Call::Max,
                    Call::SumOfLater,
                ];
                let calls = (0..random.random_range(1..4)).map(|_| all[random.random_range(0..all.len())]).collect();
                let at_least = (random.random_range(0..3) == 0).then(|| random.random_range(0..20));
                Query::Aggregate { cut, legacy, keyed, at_least, calls }
            }
            3 => Query::Top { cut: unkeyed_or_whole(cut), keyed, wanted: random.random_range(1..4) },
            4 => Query::Edge { cut: unkeyed_or_whole(cut), last: keyed },
            5 | 6 => {
                let kinds = ["JOIN", "LEFT JOIN", "FULL JOIN", "SEMI", "ANTI"];
                Query::Join { cut: unkeyed_or_whole(cut), kind: kinds[random.random_range(0..kinds.len())] }
            }
            7 => {
                let before = random.random_range(-4..8) * 1_000;
                let after = random.random_range(-before / 1_000..8) * 1_000;
                Query::Interval { kind: kinds[random.random_range(0..kinds.len())], before, after }
            }
            _ => Query::Cascade { inner: unkeyed_or_whole(cut), size: random.random_range(1..30) * 1_000 },
        }
    }

    pub fn sql(&self) -> String {
        match self {
            Query::Aggregate { cut, legacy, keyed, at_least, calls } => {
                let calls: Vec<&str> = calls.iter().map(|call| call.sql()).collect();
                let calls = calls.join(", ");
                let condition = at_least.map_or(String::new(), |least| format!(" WHERE v >= {least}"));
                let key = if *keyed { "k, " } else { "" };
                if *legacy {
                    let (name, lengths) = cut.group_window();
                    return format!(
                        "SELECT {key}{name}_START(ts, {lengths}), {name}_END(ts, {lengths}), {calls} \
                         FROM t0{condition} GROUP BY {key}{name}(ts, {lengths})"
                    );
                }
                let from = cut.function("t0");
                format!(
                    "SELECT {key}window_start, window_end, {calls} FROM {from}{condition} GROUP BY {key}window_start, window_end"
                )
            }
            Query::Top { cut, keyed, wanted } => {
                let key = if *keyed { ", k" } else { "" };
                format!(
                    "SELECT window_start, window_end, id, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, \
                     window_end{key} ORDER BY v DESC, id) AS rn FROM {}) WHERE rn <= {wanted}",
                    cut.function("t0")
                )
            }
            Query::Edge { cut, last } => {
                let order = if *last { "DESC" } else { "ASC" };
                format!(
                    "SELECT k, window_start, window_end, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, \
                     window_end, k ORDER BY ts {order}) AS rn FROM {}) WHERE rn = 1",
                    cut.function("t0")
                )
            }
            Query::Join { cut, kind } => {
                let (left, right) = (cut.function("t0"), cut.function("t1"));
                let on = "a.window_start = b.window_start AND a.window_end = b.window_end AND a.k = b.k";
                match *kind {
                    "SEMI" | "ANTI" => {
                        let not = if *kind == "ANTI" { "NOT " } else { "" };
                        format!(
                            "SELECT a.id, a.window_start FROM {left} a WHERE {not}EXISTS (SELECT 1 FROM {right} b WHERE {on})"
                        )
                    }
                    kind => format!(
                        "SELECT a.id, b.id, a.window_start, b.window_end FROM (SELECT * FROM {left}) a {kind} \
                         (SELECT * FROM {right}) b ON {on}"
                    ),
                }
            }
            Query::Interval { kind, before, after } => format!(
                "SELECT a.id, b.id FROM t0 a {kind} t1 b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '{}' SECOND \
                 AND a.ts + INTERVAL '{}' SECOND",
                before / 1_000,
                after / 1_000
            ),
            Query::Cascade { inner, size } => format!(
                "SELECT window_start, COUNT(*), SUM(n) FROM TABLE(TUMBLE((SELECT window_time AS wt, k, COUNT(*) AS n \
                 FROM {} GROUP BY window_start, window_end, window_time, k), DESCRIPTOR(wt), INTERVAL '{}' SECOND)) \
                 GROUP BY window_start, window_end",
                inner.function("t0"),
                size / 1_000
            ),
        }
    }
}

impl Call {
    fn sql(self) -> &'static str {
        match self {
            Call::CountRows => "COUNT(*)",
            Call::Count => "COUNT(v)",
            Call::CountDistinct => "COUNT(DISTINCT v)",
            Call::Sum => "SUM(v)",
            Call::Min => "MIN(v)",
            Call::Max => "MAX(v)",
            Call::SumOfLater => "SUM(v) FILTER (WHERE id > 10)",
        }
    }
}
