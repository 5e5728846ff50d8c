//! `WATERMARK FOR`, and what the options of its table and of the session say about it.

use std::sync::Arc;

use datafusion_expr::LogicalPlan;

use super::calc::column_index;
use super::leaf::declared;
use super::{Facts, Translation, forward};
use crate::catalog::Options;
use crate::error::{Error, Result};
use crate::plan::nodes::WatermarkNode;
use crate::plan::stream::{NodeId, NodeKind, StateBound};
use crate::types::{Alignment, WatermarkPolicy};

impl Translation<'_> {
    pub(super) fn watermark(&mut self, watermark: &WatermarkNode) -> Result<NodeId> {
        let input = self.relation(&watermark.input)?;
        let schema = Arc::clone(watermark.input.schema());
        let column = column_index(&watermark.column, &schema)
            .ok_or_else(|| Error::bug("a watermark's column is not a column"))?;
        let mut facts = Facts::like(self.node(input));
        facts.rowtime.push(column);
        if self.settings.batch {
            // A bounded table has no late rows: all of it is there before the answer is given.
            self.graph.nodes[input].rowtime = facts.rowtime;
            return Ok(input);
        }
        facts.state = StateBound::Bounded("one watermark a subtask".into());
        let kind = NodeKind::WatermarkAssigner {
            input: schema,
            column,
            expression: watermark.expression.clone(),
            policy: self.policy(&watermark.input)?,
            row_by_row: false,
        };
        Ok(self.add(kind, vec![forward(input)], facts))
    }

    /// The session's policy, where the table has none of its own.
    fn policy(&self, plan: &LogicalPlan) -> Result<WatermarkPolicy> {
        let session = &self.settings.watermarks;
        let Some((name, options)) = scanned(plan)? else { return Ok(session.clone()) };
        of_table(&options, session).map_err(|error| error.context(format!("table '{name}'")))
    }
}

/// The table below a watermark, which stands right above its scan and computed columns.
fn scanned(plan: &LogicalPlan) -> Result<Option<(String, Options)>> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let table = declared(scan)?;
            Ok(Some((table.name.clone(), table.options.clone())))
        }
        other => match other.inputs().as_slice() {
            [input] => scanned(input),
            _ => Ok(None),
        },
    }
}

fn of_table(options: &Options, session: &WatermarkPolicy) -> Result<WatermarkPolicy> {
    let mut policy = session.clone();
    let duration = |name: &str| {
        let duration = options.duration(name)?;
        Ok::<_, Error>(duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    };
    let one_of = |name: &str, words: [&'static str; 2]| match options.get(name) {
        None => Ok(None),
        Some(text) => match words.into_iter().position(|word| text.eq_ignore_ascii_case(word)) {
            Some(place) => Ok(Some(place == 1)),
            None => Err(Error::sql(format!("option '{name}' is '{text}'; it can be {} or {}", words[0], words[1]))),
        },
    };
    if let Some(timeout) = duration("scan.watermark.idle-timeout")? {
        policy.idle_timeout_ms = timeout;
    }
    if let Some(each_event) = one_of("scan.watermark.emit.strategy", ["on-periodic", "on-event"])? {
        policy.each_event = each_event;
    }
    if let Some(drop_null) = one_of("scan.watermark.null-event-time", ["error", "drop"])? {
        policy.drop_null = drop_null;
    }
    if let Some(ahead) = duration("scan.watermark.max-ahead")? {
        policy.max_ahead_ms = Some(ahead).filter(|ahead| *ahead > 0);
    }
    let drift = duration("scan.watermark.alignment.max-drift")?;
    // How often the runtime compares is its own business; a wrong value is a fault all the same.
    duration("scan.watermark.alignment.update-interval")?;
    policy.alignment = match (options.get("scan.watermark.alignment.group"), drift) {
        (None, None) => policy.alignment,
        (Some(group), Some(max_drift_ms)) => Some(Alignment { group: group.to_owned(), max_drift_ms }),
        _ => {
            return Err(Error::sql(
                "'scan.watermark.alignment.group' and 'scan.watermark.alignment.max-drift' go together",
            )
            .hint("a group is aligned by the drift that its members allow"));
        }
    };
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(options: &[(&str, &str)]) -> Result<WatermarkPolicy> {
        let options = Options(options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect());
        of_table(&options, &WatermarkPolicy { idle_timeout_ms: 7, ..WatermarkPolicy::default() })
    }

    #[test]
    fn a_tables_options_stand_before_the_sessions() {
        assert_eq!(policy(&[]).unwrap().idle_timeout_ms, 7);
        let policy = policy(&[
            ("scan.watermark.idle-timeout", "1 min"),
            ("scan.watermark.emit.strategy", "ON-EVENT"),
            ("scan.watermark.null-event-time", "drop"),
            ("scan.watermark.max-ahead", "1 h"),
            ("scan.watermark.alignment.group", "g"),
            ("scan.watermark.alignment.max-drift", "5 s"),
        ]);
        let expected = WatermarkPolicy {
            idle_timeout_ms: 60_000,
            each_event: true,
            drop_null: true,
            max_ahead_ms: Some(3_600_000),
            alignment: Some(Alignment { group: "g".into(), max_drift_ms: 5_000 }),
        };
        assert_eq!(policy.unwrap(), expected);
    }

    #[test]
    fn wrong_values_are_named() {
        let message = |options: &[(&str, &str)]| policy(options).unwrap_err().message().to_owned();
        let wrong = message(&[("scan.watermark.emit.strategy", "sometimes")]);
        assert_eq!(wrong, "option 'scan.watermark.emit.strategy' is 'sometimes'; it can be on-periodic or on-event");
        assert!(message(&[("scan.watermark.idle-timeout", "soon")]).contains("'soon'"));
        assert!(message(&[("scan.watermark.alignment.group", "g")]).ends_with("go together"));
    }
}
