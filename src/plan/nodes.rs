//! Relations that only a stream has, as nodes of the logical plan.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion_common::{DFSchema, DFSchemaRef, Result};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::types::WindowSpec;

/// `WATERMARK FOR column AS expression`: rows pass, event time is derived from them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WatermarkNode {
    pub input: LogicalPlan,
    /// The event-time column.
    pub column: Expr,
    /// The watermark of a row.
    pub expression: Expr,
}

impl PartialOrd for WatermarkNode {
    fn partial_cmp(&self, other: &WatermarkNode) -> Option<Ordering> {
        self.expression.partial_cmp(&other.expression)
    }
}

impl UserDefinedLogicalNodeCore for WatermarkNode {
    fn name(&self) -> &str {
        "WatermarkAssigner"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.column.clone(), self.expression.clone()]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "WatermarkAssigner: {} AS {}", self.column, self.expression)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<WatermarkNode> {
        let (input, [column, expression]) = one_input(exprs, inputs)?;
        Ok(WatermarkNode { input, column, expression })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}

/// A window table function: rows pass, each into the windows its time falls in, with three columns more.
#[derive(Debug, Clone)]
pub(super) struct WindowNode {
    pub input: LogicalPlan,
    /// The time column.
    pub time: Expr,
    /// How time is cut.
    pub window: WindowSpec,
    /// `PARTITION BY` columns: each key has sessions of its own.
    pub partition: Vec<Expr>,
    /// Whether each row comes once and at once, with the window that it would have alone: enough for an aggregation
    /// that finds the windows of its groups itself.
    pub provisional: bool,
    /// Whether all columns of the input are kept, for the table into which late rows go.
    pub keeps_all: bool,
    schema: DFSchemaRef,
}

/// The columns a window table function appends, in order.
pub(super) const WINDOW_COLUMNS: [&str; 3] = ["window_start", "window_end", "window_time"];

impl WindowNode {
    /// Windows over `input`; the new columns have the time column's kind of timestamp with three digits.
    pub(super) fn new(input: LogicalPlan, time: Expr, window: WindowSpec, partition: Vec<Expr>) -> Result<WindowNode> {
        let zone = match time.get_type(input.schema())? {
            DataType::Timestamp(_, zone) => zone,
            _ => None,
        };
        let bound = DataType::Timestamp(TimeUnit::Millisecond, None);
        let attribute = DataType::Timestamp(TimeUnit::Millisecond, zone);
        let mut fields: Vec<_> =
            input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
        for (name, data_type) in WINDOW_COLUMNS.iter().zip([bound.clone(), bound, attribute]) {
            fields.push((None, Arc::new(Field::new(*name, data_type, false))));
        }
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(WindowNode {
            input,
            time,
            window,
            partition,
            provisional: false,
            keeps_all: false,
            schema: Arc::new(schema),
        })
    }
}

impl WindowNode {
    /// The same windows, with each row at once.
    pub(super) fn provisional(&self) -> WindowNode {
        WindowNode { provisional: true, ..self.clone() }
    }

    /// The same windows over all columns of the input, whoever reads them.
    pub(super) fn keeping_all(&self) -> WindowNode {
        WindowNode { keeps_all: true, ..self.clone() }
    }
}

impl PartialEq for WindowNode {
    fn eq(&self, other: &WindowNode) -> bool {
        self.input == other.input
            && self.time == other.time
            && self.window == other.window
            && self.partition == other.partition
            && self.provisional == other.provisional
            && self.keeps_all == other.keeps_all
    }
}

impl Eq for WindowNode {}

impl Hash for WindowNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.time.hash(state);
        self.partition.hash(state);
        (self.provisional, self.keeps_all).hash(state);
        format!("{:?}", self.window).hash(state);
    }
}

impl PartialOrd for WindowNode {
    fn partial_cmp(&self, other: &WindowNode) -> Option<Ordering> {
        self.time.partial_cmp(&other.time)
    }
}

impl UserDefinedLogicalNodeCore for WindowNode {
    fn name(&self) -> &str {
        "WindowTableFunction"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        std::iter::once(&self.time).chain(&self.partition).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "WindowTableFunction: {} {:?}", self.time, self.window)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<WindowNode> {
        let partition = exprs.split_off(exprs.len().min(1));
        let (input, [time]) = one_input(exprs, inputs)?;
        let node = WindowNode::new(input, time, self.window, partition)?;
        Ok(WindowNode { provisional: self.provisional, keeps_all: self.keeps_all, ..node })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let own = self.input.schema().fields().len();
        if self.keeps_all {
            return Some(vec![(0..own).collect()]);
        }
        Some(vec![output_columns.iter().copied().filter(|column| *column < own).collect()])
    }
}

fn one_input<const N: usize>(exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<(LogicalPlan, [Expr; N])> {
    match (inputs.pop(), <[Expr; N]>::try_from(exprs)) {
        (Some(input), Ok(exprs)) => Ok((input, exprs)),
        _ => datafusion_common::internal_err!("a stream relation was rebuilt with other parts"),
    }
}
