//! Where rows come from: tables and constants.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{ColumnarValue, EmptyRelation, Expr, LogicalPlan, TableScan, Values};
use datafusion_physical_expr::create_physical_expr;

use super::{Facts, Translation};
use crate::catalog::TableDefinition;
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::plan::error::unwrap;
use crate::plan::provider::DeclaredTable;
use crate::plan::stream::{Distribution, Edge, NodeId, NodeKind, NodeParallelism};

/// The columns of each table that any scan of the job needs: a shared source reads their union.
#[derive(Debug, Default)]
pub(super) struct WantedColumns(HashMap<*const TableDefinition, BTreeSet<usize>>);

impl WantedColumns {
    pub(super) fn note(&mut self, plan: &LogicalPlan) -> Result<()> {
        plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(table) = declared(scan)
            {
                self.0.entry(Arc::as_ptr(&table)).or_default().extend(projection_of(scan));
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .map(|_| ())
        .map_err(unwrap)
    }

    fn of(&self, table: &Arc<TableDefinition>, own: &[usize]) -> Vec<usize> {
        let mut all = self.0.get(&Arc::as_ptr(table)).cloned().unwrap_or_default();
        all.extend(own);
        all.into_iter().collect()
    }
}

impl Translation<'_> {
    pub(super) fn scan(&mut self, scan: &TableScan) -> Result<NodeId> {
        let table = declared(scan)?;
        let own = projection_of(scan);
        let read = self.wanted.of(&table, &own);
        let source = self.source(&table, &read)?;
        // What others need is dropped again for this one.
        let schema =
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &self.node(source).schema).map_err(unwrap)?;
        let full = table.scan_schema();
        let projection = own
            .iter()
            .map(|column| Expr::Column(Column::new(Some(scan.table_name.clone()), full.field(*column).name())))
            .collect();
        self.project(source, Arc::new(schema), None, projection, Arc::clone(scan.projected_schema.inner()))
    }

    /// The source of a table; one for all its scans.
    fn source(&mut self, table: &Arc<TableDefinition>, projection: &[usize]) -> Result<NodeId> {
        let same = self.graph.nodes.iter().position(|node| {
            matches!(&node.kind, NodeKind::Source { table: other, projection: columns }
                if Arc::ptr_eq(other, table) && columns == projection)
        });
        if let Some(node) = same {
            // The node behind a source that is normalised is the normalisation.
            let behind = self.graph.nodes.get(node + 1);
            let normalised = behind.is_some_and(|node| matches!(node.kind, NodeKind::ChangelogNormalize { .. }));
            return Ok(if normalised { node + 1 } else { node });
        }
        let source = self.facts.source(table)?;
        let keyed = source.mode.is_upsert() || (!source.mode.is_append_only() && self.settings.duplicate_changes);
        let projection = if keyed { &with_key(table, projection) } else { projection };
        if self.settings.batch && !source.bounded {
            return Err(Error::sql(format!(
                "table '{}' never ends, so a batch query over it would not either",
                table.name
            ))
            .hint("SET 'execution.runtime-mode' = 'streaming', or bound the source"));
        }
        let schema = Arc::new(table.read_schema().project(projection)?);
        let mut facts = Facts::plain(schema);
        facts.mode = source.mode;
        facts.upsert_key = key_within(table, projection);
        let kind = NodeKind::Source { table: Arc::clone(table), projection: projection.to_vec() };
        let node = self.add(kind, Vec::new(), facts);
        if keyed { self.normalize(node, table) } else { Ok(node) }
    }

    /// Brings a changelog that is known by key alone, or may repeat itself, into full form.
    fn normalize(&mut self, source: NodeId, table: &TableDefinition) -> Result<NodeId> {
        let Some(key) = self.node(source).upsert_key.clone() else {
            return Err(Error::sql(format!("table '{}' needs a PRIMARY KEY: its changes are told by key", table.name))
                .hint("declare PRIMARY KEY (…) NOT ENFORCED"));
        };
        let mut facts = Facts::like(self.node(source));
        facts.mode = ChangelogMode::RETRACT;
        facts.state = self.bound_by_idleness("the last row of each key", "keys");
        let edge = Edge { from: source, distribution: Distribution::Hash(key.clone()) };
        let kind = NodeKind::ChangelogNormalize { key, emit_update_before: true, ttl_ms: self.settings.ttl_ms };
        Ok(self.add(kind, vec![edge], facts))
    }

    pub(super) fn values(&mut self, values: &Values) -> Result<NodeId> {
        let schema = Arc::clone(values.schema.inner());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for (column, field) in schema.fields().iter().enumerate() {
            // A NULL, or a literal that was folded, may come in a narrower type than its column's.
            let cell = |row: &Vec<Expr>| constant(&row[column])?.cast_to(field.data_type()).map_err(unwrap);
            let cells = values.values.iter().map(cell).collect::<Result<Vec<_>>>()?;
            let array = ScalarValue::iter_to_array(cells).map_err(unwrap)?;
            columns.push(arrow::compute::cast(&array, field.data_type())?);
        }
        let rows = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok(self.constant_rows(rows))
    }

    pub(super) fn empty(&mut self, empty: &EmptyRelation) -> Result<NodeId> {
        let count = usize::from(empty.produce_one_row);
        let schema = Arc::clone(empty.schema.inner());
        let columns = schema.fields().iter().map(|f| arrow::array::new_null_array(f.data_type(), count)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(self.constant_rows(RecordBatch::try_new_with_options(schema, columns, &options)?))
    }

    fn constant_rows(&mut self, rows: RecordBatch) -> NodeId {
        let mut facts = Facts::plain(rows.schema());
        facts.parallelism = NodeParallelism::Single;
        self.add(NodeKind::Values { rows }, Vec::new(), facts)
    }
}

pub(super) fn declared(scan: &TableScan) -> Result<Arc<TableDefinition>> {
    let source: &dyn std::any::Any = scan.source.as_ref();
    match source.downcast_ref::<DeclaredTable>() {
        Some(declared) => Ok(Arc::clone(&declared.table)),
        None => Err(Error::bug(format!("'{}' is scanned and is no declared table", scan.table_name))),
    }
}

fn projection_of(scan: &TableScan) -> Vec<usize> {
    match &scan.projection {
        Some(projection) => projection.clone(),
        None => (0..scan.source.schema().fields().len()).collect(),
    }
}

/// The primary key's columns within a projection of the scan schema, if all are there.
fn key_within(table: &TableDefinition, projection: &[usize]) -> Option<Vec<usize>> {
    if table.primary_key.is_empty() {
        return None;
    }
    let schema = table.scan_schema();
    table
        .primary_key
        .iter()
        .map(|name| projection.iter().position(|column| schema.field(*column).name() == name))
        .collect()
}

/// The columns and those of the primary key.
fn with_key(table: &TableDefinition, projection: &[usize]) -> Vec<usize> {
    let schema = table.scan_schema();
    let key = table.primary_key.iter().filter_map(|name| schema.index_of(name).ok());
    let all: BTreeSet<usize> = projection.iter().copied().chain(key).collect();
    all.into_iter().collect()
}

/// The value of an expression without columns.
fn constant(expression: &Expr) -> Result<ScalarValue> {
    if let Expr::Literal(value, _) = expression {
        return Ok(value.clone());
    }
    let empty = DFSchema::empty();
    let compiled =
        create_physical_expr(expression, &empty, &ExecutionProps::new(), &PhysicalPlanningContext::default())
            .map_err(unwrap)?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(arrow::datatypes::Schema::empty()), Vec::new(), &options)?;
    match compiled.evaluate(&row).map_err(unwrap)? {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0).map_err(unwrap),
    }
}
