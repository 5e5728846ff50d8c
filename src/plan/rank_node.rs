//! Top-N as a node of the logical plan.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion_common::{DFSchema, DFSchemaRef, Result};
use datafusion_expr::{Expr, LogicalPlan, SortExpr, UserDefinedLogicalNodeCore};

use super::translate::column_index;
use crate::types::RankFunction;

/// The name and kind of the column that shows a rank.
pub(super) type RankColumn = (Option<datafusion_common::TableReference>, arrow::datatypes::FieldRef);

/// The rows of each partition whose rank is in a range, with the rank as last column if it has a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RankNode {
    pub input: LogicalPlan,
    /// Columns of the input.
    pub partition: Vec<Expr>,
    /// Columns of the input, with direction.
    pub order: Vec<SortExpr>,
    pub function: RankFunction,
    /// First and last wanted rank.
    pub range: (u64, u64),
    pub rank: Option<RankColumn>,
    schema: DFSchemaRef,
}

impl RankNode {
    pub(super) fn new(
        input: LogicalPlan,
        partition: Vec<Expr>,
        order: Vec<SortExpr>,
        function: RankFunction,
        range: (u64, u64),
        rank: Option<RankColumn>,
    ) -> Result<RankNode> {
        let fields = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let fields = fields.chain(rank.clone()).collect();
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(RankNode { input, partition, order, function, range, rank, schema: Arc::new(schema) })
    }
}

impl PartialOrd for RankNode {
    fn partial_cmp(&self, other: &RankNode) -> Option<Ordering> {
        self.partition.partial_cmp(&other.partition)
    }
}

impl UserDefinedLogicalNodeCore for RankNode {
    fn name(&self) -> &str {
        "Rank"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.partition.iter().cloned().chain(self.order.iter().map(|sort| sort.expr.clone())).collect()
    }

    /// A condition on partition columns alone takes whole partitions away: it may stand before. Conditions are told apart
    /// by name only, so a name that two columns have stays.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let partition: HashSet<&str> =
            self.partition.iter().flat_map(Expr::column_refs).map(|column| column.name.as_str()).collect();
        let names = || self.schema.fields().iter().map(|field| field.name().as_str());
        let free = |name: &&str| partition.contains(name) && names().filter(|other| other == name).count() == 1;
        names().filter(|name| !free(name)).map(str::to_string).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Rank: {:?} {:?} {:?} {:?}", self.function, self.range, self.partition, self.order)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<RankNode> {
        let (Some(input), true) = (inputs.pop(), exprs.len() == self.partition.len() + self.order.len()) else {
            return datafusion_common::internal_err!("a Top-N was rebuilt with other parts");
        };
        let order = exprs.split_off(self.partition.len());
        let order = order.into_iter().zip(&self.order).map(|(expr, sort)| SortExpr { expr, ..sort.clone() }).collect();
        RankNode::new(input, exprs, order, self.function, self.range, self.rank.clone())
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let schema = self.input.schema();
        let own = schema.fields().len();
        let mut needed: Vec<usize> = output_columns.iter().copied().filter(|column| *column < own).collect();
        for expression in self.expressions() {
            needed.push(column_index(&expression, schema)?);
        }
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}
