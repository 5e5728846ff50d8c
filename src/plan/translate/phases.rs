//! `GROUP BY` in two steps, each of which is a grouping of its own: the second puts together what the first has found.
//!
//! | | first | second |
//! |---|---|---|
//! | two phases (`table.optimizer.agg-phase-strategy`) | of a bundle's rows, where they are | by the keys |
//! | split DISTINCT (`table.optimizer.distinct-agg.split.enabled`) | by the keys and a part of the distinct values | by the keys |
//!
//! The first spares the way to the one subtask of a key, the second its work, where a key has far more rows, or values,
//! than others. Only functions whose results can be put together exactly take part: counts, least and greatest, and sums
//! of numbers that do not round. `AUTO` takes two phases for a grouping without keys, which has but one subtask; with keys,
//! rows go to the subtasks of their keys, which here costs little.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::Expr;

use super::{Facts, Translation, forward};
use crate::error::Result;
use crate::functions;
use crate::plan::AggregatePhases;
use crate::plan::error::unwrap;
use crate::plan::expressions::call;
use crate::plan::stream::{NodeId, NodeKind, StateBound};
use crate::types::{AggregateCall, AggregateFunction};

/// Decimals of more digits might leave the 38 digits of their sum within one bundle.
const SUMMED_DIGITS: u8 = 18;

impl Translation<'_> {
    /// The first step of a grouping that is done in two, and the grouping of its rows; otherwise the same as they are.
    pub(super) fn in_steps(
        &mut self,
        input: NodeId,
        keys: Vec<usize>,
        aggregates: Vec<AggregateCall>,
        ttl_ms: u64,
    ) -> Result<(NodeId, Vec<usize>, Vec<AggregateCall>)> {
        let Some(mini_batch) = self.settings.mini_batch.filter(|_| !aggregates.is_empty()) else {
            return Ok((input, keys, aggregates));
        };
        let schema = Arc::clone(&self.node(input).schema);
        if let Some(split) = self.split_column(&aggregates, &schema) {
            let (spread, bucket) = self.with_bucket(input, split)?;
            let first_keys: Vec<usize> = keys.iter().copied().chain([bucket]).collect();
            let fields = step_schema(&self.node(spread).schema, &first_keys, &aggregates);
            let first = self.one_step(spread, first_keys, aggregates.clone(), fields, ttl_ms)?;
            let calls = second(&aggregates, keys.len() + 1);
            return Ok((first, (0..keys.len()).collect(), calls));
        }
        let wanted = match self.settings.phases {
            AggregatePhases::One => false,
            AggregatePhases::Two => true,
            AggregatePhases::Auto => keys.is_empty(),
        };
        let append_only = self.node(input).mode.is_append_only();
        let distinct = aggregates.iter().any(|call| call.distinct && !is_extreme(call));
        if !wanted || !append_only || distinct || !aggregates.iter().all(|call| can_be_split(call, &schema)) {
            return Ok((input, keys, aggregates));
        }
        let mut facts = Facts::plain(step_schema(&schema, &keys, &aggregates));
        facts.state = StateBound::Bounded("the keys of one bundle; nothing over a checkpoint".into());
        let calls = second(&aggregates, keys.len());
        let second_keys = (0..keys.len()).collect();
        let kind = NodeKind::LocalAggregate { keys, aggregates, mini_batch };
        Ok((self.add(kind, vec![forward(input)], facts), second_keys, calls))
    }

    /// The column whose different values are counted in parts, if that is wanted and possible.
    fn split_column(&self, aggregates: &[AggregateCall], schema: &SchemaRef) -> Option<usize> {
        if self.settings.distinct_buckets.is_none() || self.settings.batch {
            return None;
        }
        let mut columns =
            aggregates.iter().filter(|call| call.distinct && !is_extreme(call)).map(|call| &call.arguments);
        let [column] = columns.next()?.as_slice() else { return None };
        let same = columns.all(|other| other.as_slice() == [*column]);
        let possible = aggregates.iter().all(|call| can_be_split(call, schema));
        (same && possible).then_some(*column)
    }

    /// The rows with the number of the part that their value of `column` belongs to, and its column.
    fn with_bucket(&mut self, input: NodeId, column: usize) -> Result<(NodeId, usize)> {
        let schema = Arc::clone(&self.node(input).schema);
        let buckets = self.settings.distinct_buckets.unwrap_or(1);
        // Positions as names: columns may share one.
        let positions = schema.fields().iter().enumerate();
        let named: Vec<Field> =
            positions.map(|(index, field)| field.as_ref().clone().with_name(format!("#{index}"))).collect();
        let named = Arc::new(DFSchema::try_from(Schema::new(named)).map_err(unwrap)?);
        let of = |index: usize| Expr::Column(Column::from(named.qualified_field(index)));
        let mut projection: Vec<Expr> = (0..schema.fields().len()).map(of).collect();
        let parts = Expr::Literal(ScalarValue::Int32(Some(buckets)), None);
        projection.push(call(functions::bucket(), vec![of(column), parts]));
        let bucket = Arc::new(Field::new("bucket", DataType::Int32, false));
        let fields: Vec<_> = schema.fields().iter().cloned().chain([bucket]).collect();
        let node = self.project(input, Arc::clone(&named), None, projection, Arc::new(Schema::new(fields)))?;
        Ok((node, schema.fields().len()))
    }
}

/// The keys, then the results.
fn step_schema(input: &SchemaRef, keys: &[usize], aggregates: &[AggregateCall]) -> SchemaRef {
    let keys = keys.iter().map(|key| Arc::clone(&input.fields()[*key]));
    let results = aggregates.iter().map(|call| Arc::clone(&call.output));
    Arc::new(Schema::new(keys.chain(results).collect::<Vec<_>>()))
}

/// What puts together the results of the first step, which stand from column `from` on.
fn second(aggregates: &[AggregateCall], from: usize) -> Vec<AggregateCall> {
    let one = |(index, call): (usize, &AggregateCall)| AggregateCall {
        function: match call.function {
            AggregateFunction::Count => AggregateFunction::SumZero,
            ref same => same.clone(),
        },
        arguments: vec![from + index],
        distinct: false,
        order: Vec::new(),
        filter: None,
        monotone: false,
        output: Arc::clone(&call.output),
    };
    aggregates.iter().enumerate().map(one).collect()
}

fn is_extreme(call: &AggregateCall) -> bool {
    matches!(call.function, AggregateFunction::Min | AggregateFunction::Max)
}

/// Whether the results over parts of the rows can be put together to what it is over all of them.
fn can_be_split(call: &AggregateCall, schema: &SchemaRef) -> bool {
    let argument = call.arguments.first().map(|column| schema.field(*column).data_type());
    match call.function {
        AggregateFunction::Count | AggregateFunction::Min | AggregateFunction::Max => true,
        AggregateFunction::Sum | AggregateFunction::SumZero => match argument {
            Some(DataType::Decimal128(digits, _)) => *digits <= SUMMED_DIGITS,
            Some(number) => number.is_integer(),
            None => false,
        },
        _ => false,
    }
}
