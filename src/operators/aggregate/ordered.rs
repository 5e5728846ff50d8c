//! Functions with `ORDER BY` inside the call: LISTAGG, ARRAY_AGG, JSON_ARRAYAGG, FIRST_VALUE and LAST_VALUE over the
//! values of a group in an order of their own.
//!
//! With DISTINCT a value stands where its first copy in the order does: `ARRAY_AGG(DISTINCT x ORDER BY y)` over `(a, 1)`,
//! `(b, 2)`, `(a, 3)` is `[a, b]`, and `[b, a]` once `(a, 1)` has gone.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::Schema;

use super::collected::{Arranged, arrange};
use super::kernel::{Fold, Kernel};
use crate::error::Result;
use crate::state::{KeyTable, OrderedColumn, OrderedValues, Restored, TableDelta};
use crate::types::SortColumn;

/// A function of the group's values in an order.
pub(super) struct Ordered {
    values: OrderedValues,
    of: Of,
}

/// What of the values is asked for.
struct Of {
    arranged: Arranged,
    distinct: bool,
    retractable: bool,
}

impl Ordered {
    /// Over values of column `argument` of `input`.
    pub fn new(
        input: &Schema,
        argument: usize,
        order: &[SortColumn],
        arranged: Arranged,
        distinct: bool,
        retractable: bool,
    ) -> Result<Ordered> {
        let column = |sort: &SortColumn| {
            let options = SortOptions { descending: sort.descending, nulls_first: sort.nulls_first };
            (input.field(sort.column).data_type().clone(), options)
        };
        let order: Vec<_> = order.iter().map(column).collect();
        let values = OrderedValues::new(input.field(argument).data_type(), &order, retractable)?;
        Ok(Ordered { values, of: Of { arranged, distinct, retractable } })
    }
}

impl Of {
    fn add(&self, values: &mut OrderedValues, slot: u32, column: &OrderedColumn, row: usize) {
        values.push(slot, column, row);
        if !self.retractable && matches!(self.arranged, Arranged::First | Arranged::Last) {
            values.keep_one(slot, matches!(self.arranged, Arranged::Last));
        }
    }

    fn value(&self, values: &OrderedValues, slot: u32) -> Vec<Arc<[u8]>> {
        match &self.arranged {
            Arranged::First => values.first(slot).cloned().into_iter().collect(),
            Arranged::Last => values.last(slot).cloned().into_iter().collect(),
            _ if self.distinct => {
                let mut seen = HashSet::new();
                values.values(slot).filter(|value| seen.insert(Arc::clone(value))).cloned().collect()
            }
            _ => values.values(slot).cloned().collect(),
        }
    }
}

pub(super) struct OrderedFold<'a> {
    values: &'a mut OrderedValues,
    of: &'a Of,
    column: OrderedColumn,
}

impl Fold for OrderedFold<'_> {
    type Value = Vec<Arc<[u8]>>;

    fn add(&mut self, slot: u32, row: usize) {
        self.of.add(self.values, slot, &self.column, row);
    }

    fn retract(&mut self, slot: u32, row: usize) {
        self.values.retract(slot, &self.column, row);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn value(&self, slot: u32) -> Vec<Arc<[u8]>> {
        self.of.value(self.values, slot)
    }
}

impl Kernel for Ordered {
    type Value = Vec<Arc<[u8]>>;
    type Fold<'a> = OrderedFold<'a>;

    /// The argument, then the columns of the order.
    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<OrderedFold<'a>> {
        let column = self.values.encode(&arguments[0], &arguments[1..])?;
        Ok(OrderedFold { values: &mut self.values, of: &self.of, column })
    }

    fn grow(&mut self, slots: usize) {
        self.values.grow(slots);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.values.merge(into, from);
        if !self.of.retractable && matches!(self.of.arranged, Arranged::First | Arranged::Last) {
            self.values.keep_one(into, matches!(self.of.arranged, Arranged::Last));
        }
    }

    fn value(&self, slot: u32) -> Vec<Arc<[u8]>> {
        self.of.value(&self.values, slot)
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }

    fn build(&self, values: Vec<Vec<Arc<[u8]>>>) -> Result<ArrayRef> {
        arrange(values, &self.of.arranged, self.values.codec())
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>> {
        self.values.snapshot(table, keys, base).map(Some)
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.values.restore(table, keys, from)
    }
}
