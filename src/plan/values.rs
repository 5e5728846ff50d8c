//! `VALUES`: rows of constants, each column in the type that its cells have in common.
//!
//! The binding library types the rows by its own rules, which lose digits and refuse what it calls other metadata. So
//! [`super::rewrite`] hands them over as a call in `FROM`, a row an argument, and they are bound here.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{DFSchema, DFSchemaRef, Result as BindResult};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::{Expr, LogicalPlan, Values};
use sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Spanned, TableFactor,
    Values as SqlValues,
};

use super::error::wrap;
use super::expressions::field_of;
use super::typing::{rewrite, to_common_type};
use crate::error::{Error, Span};
use crate::functions::FunctionSet;

/// The name of the call, which no SQL can write.
const CALL: &str = "values of the query";

/// The rows as a relation of `FROM`, with columns `column1`, `column2`, ….
pub(super) fn relation(values: SqlValues) -> TableFactor {
    let row = |cells| FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::Tuple(cells)));
    TableFactor::Function {
        lateral: false,
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('`', CALL))]),
        args: values.rows.into_iter().map(|cells| row(cells.content)).collect(),
        with_ordinality: false,
        alias: None,
    }
}

/// Plans the calls that [`relation`] makes.
#[derive(Debug)]
pub(super) struct ValuesRelations {
    pub functions: Arc<FunctionSet>,
}

impl RelationPlanner for ValuesRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> BindResult<RelationPlanning> {
        let (rows, alias) = match relation {
            TableFactor::Function { name, args, alias, .. } if is_call(&name) => (args, alias),
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        let empty = DFSchema::empty();
        let mut width = None;
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::Tuple(cells))) = row else {
                return datafusion_common::internal_err!("a row of VALUES is no row");
            };
            let expected = *width.get_or_insert(cells.len());
            if cells.len() != expected {
                let place = cells.first().and_then(|cell| Span::from_ast(cell.span()));
                let error = format!("a row of VALUES has {} columns, and the first one has {expected}", cells.len());
                return Err(wrap(Error::sql(error).at(place)));
            }
            let cells = cells.into_iter().map(|cell| context.sql_to_expr(cell, &empty));
            bound.push(cells.collect::<BindResult<Vec<Expr>>>()?);
        }
        let names = (1..=width.unwrap_or_default()).map(|column| format!("column{column}")).collect::<Vec<_>>();
        let plan = LogicalPlan::Values(typed(bound, &names, &self.functions)?);
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

fn is_call(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(name)] if name.value == CALL)
}

/// The rows with one type a column.
fn typed(rows: Vec<Vec<Expr>>, names: &[String], functions: &FunctionSet) -> BindResult<Values> {
    let empty = DFSchema::empty();
    let mut typed = Vec::with_capacity(rows.len());
    for row in rows {
        let cells = row.into_iter().map(|cell| Ok(cell.transform_up(|part| rewrite(part, &empty, functions))?.data));
        typed.push(cells.collect::<BindResult<Vec<Expr>>>()?);
    }
    let mut fields: Vec<Field> = Vec::with_capacity(names.len());
    for (column, name) in names.iter().enumerate() {
        let of_column: Vec<Expr> = typed.iter().map(|row| row[column].clone()).collect();
        let (cells, common) = to_common_type(of_column, &empty, functions, "the rows of VALUES")?;
        let nullable = cells.iter().map(|cell| Ok(field_of(cell, &empty)?.is_nullable()));
        let nullable = nullable.collect::<BindResult<Vec<bool>>>()?.contains(&true);
        fields.push(common.to_field(name, nullable));
        for (row, cell) in typed.iter_mut().zip(cells) {
            row[column] = cell;
        }
    }
    let schema: DFSchemaRef = Arc::new(DFSchema::from_unqualified_fields(fields.into(), Default::default())?);
    Ok(Values { schema, values: typed })
}
