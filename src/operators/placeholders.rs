//! Only on this branch: constructors of the operators that another branch writes. The merge removes this file.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt16Array};
use arrow::datatypes::{Int64Type, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;

use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, CheckpointId, Kind};
use crate::error::Result;
use crate::state::{KEY_GROUP_COLUMN, KeyGroupRange, Restored, Scope, Snapshot, TableDelta, hash_rows, key_group};
use crate::types::{AggregateCall, MiniBatch, WindowColumn, WindowSpec};

pub struct Pass;
impl Operator for Pass {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        out.changes(batch);
        Ok(())
    }
}
pub struct Calc;
impl Calc {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(_: Option<Arc<dyn PhysicalExpr>>, _: Vec<Arc<dyn PhysicalExpr>>, _: SchemaRef) -> Pass {
        Pass
    }
}
pub struct WatermarkAssigner;
impl WatermarkAssigner {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(_: usize, _: Arc<dyn PhysicalExpr>, _: i64) -> Pass {
        Pass
    }
}
pub struct WindowAssign;
impl WindowAssign {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(_: usize, _: WindowSpec, _: SchemaRef) -> Pass {
        Pass
    }
}
pub struct DropUpdateBefore;
impl Operator for DropUpdateBefore {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        out.changes(batch);
        Ok(())
    }
}
pub struct WindowAggregateParameters {
    pub input: SchemaRef,
    pub output: SchemaRef,
    pub keys: Vec<usize>,
    pub time: usize,
    pub window: WindowSpec,
    pub window_columns: Vec<WindowColumn>,
    pub aggregates: Vec<AggregateCall>,
    pub append_only_input: bool,
    pub key_groups: KeyGroupRange,
}
pub struct WindowAggregate;
impl WindowAggregate {
    #[allow(clippy::new_ret_no_self)]
    pub fn new(_: WindowAggregateParameters) -> Result<Pass> {
        Ok(Pass)
    }
}
pub struct GroupAggregateParameters {
    pub input: SchemaRef,
    pub output: SchemaRef,
    pub keys: Vec<usize>,
    pub aggregates: Vec<AggregateCall>,
    pub append_only_input: bool,
    pub emit_update_before: bool,
    pub mini_batch: Option<MiniBatch>,
    pub ttl_ms: u64,
    pub key_groups: KeyGroupRange,
}
/// Counts by one BIGINT key.
pub struct GroupAggregate {
    parameters: GroupAggregateParameters,
    counts: BTreeMap<i64, i64>,
    changed: BTreeMap<i64, ()>,
    base: bool,
}
impl GroupAggregate {
    pub fn new(parameters: GroupAggregateParameters) -> Result<Self> {
        Ok(GroupAggregate { parameters, counts: BTreeMap::new(), changed: BTreeMap::new(), base: true })
    }
}
impl Operator for GroupAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let keys = batch.rows().column(self.parameters.keys[0]).as_primitive::<Int64Type>().clone();
        let (mut out_keys, mut out_counts, mut kinds) = (vec![], vec![], vec![]);
        for key in keys.values() {
            let count = self.counts.entry(*key).or_default();
            if *count > 0 && self.parameters.emit_update_before {
                out_keys.push(*key);
                out_counts.push(*count);
                kinds.push(Kind::UpdateBefore);
            }
            kinds.push(if *count == 0 { Kind::Insert } else { Kind::UpdateAfter });
            *count += 1;
            out_keys.push(*key);
            out_counts.push(*count);
            self.changed.insert(*key, ());
        }
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(out_keys)), Arc::new(Int64Array::from(out_counts))];
        out.changes(ChangeBatch::new(RecordBatch::try_new(self.parameters.output.clone(), columns)?, kinds)?);
        Ok(())
    }
    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let keys: Vec<i64> =
            if self.base { self.counts.keys().copied().collect() } else { self.changed.keys().copied().collect() };
        self.changed.clear();
        let counts: Vec<i64> = keys.iter().map(|key| self.counts[key]).collect();
        let keys: ArrayRef = Arc::new(Int64Array::from(keys));
        let mut hashes = Vec::new();
        hash_rows(&[keys.clone()], &mut hashes);
        let groups: ArrayRef = Arc::new(UInt16Array::from_iter_values(hashes.into_iter().map(key_group)));
        let counts: ArrayRef = Arc::new(Int64Array::from(counts));
        let upserts = RecordBatch::try_from_iter([(KEY_GROUP_COLUMN, groups), ("k", keys), ("n", counts)])?;
        let schema =
            upserts.schema().as_ref().clone().with_metadata([("key_columns".to_owned(), "2".to_owned())].into());
        let upserts = upserts.with_schema(Arc::new(schema))?;
        let base = std::mem::replace(&mut self.base, false);
        let delta =
            TableDelta { table: "groups".into(), scope: Scope::Keyed, base, upserts: Some(upserts), deletes: None };
        Ok(Snapshot { tables: vec![delta] })
    }
    fn restore(&mut self, from: Restored) -> Result<()> {
        for delta in &from.deltas {
            let Some(rows) = &delta.upserts else { continue };
            let groups = rows.column(0).as_primitive::<arrow::datatypes::UInt16Type>();
            assert!(groups.values().iter().all(|group| self.parameters.key_groups.contains(*group)));
            let keys = rows.column(1).as_primitive::<Int64Type>().values();
            let counts = rows.column(2).as_primitive::<Int64Type>().values();
            keys.iter().zip(counts).for_each(|(key, count)| drop(self.counts.insert(*key, *count)));
        }
        Ok(())
    }
}
