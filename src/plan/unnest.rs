//! `UNNEST(collection) [WITH ORDINALITY]` in `FROM`: a relation of the elements of an array, map or multiset.
//!
//! Alone it has the elements of one collection. Beside other relations its collection is mostly a column of theirs; then
//! [`super::correlate`] gives it their rows as input.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{DFSchema, DFSchemaRef, Result as BindResult, TableReference};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::{Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore};
use sqlparser::ast::{Spanned, TableFactor};

use super::error::wrap;
use crate::error::{Error, Span};
use crate::types::SqlType;

/// The rows of `input`, each once for each element of its collection, with the element's columns behind its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct UnnestNode {
    pub input: LogicalPlan,
    /// The collection, over the input.
    pub collection: Expr,
    /// Whether the collection is a `MULTISET`.
    pub counted: bool,
    /// Whether the last column is the element's number.
    pub ordinality: bool,
    /// Which elements are joined to their row, over the node's own rows. Rules of the library do not see it: they would
    /// look for its columns in the input.
    pub condition: Option<Expr>,
    /// Whether a row that no element is joined to comes once.
    pub outer: bool,
    /// The element's columns, and its number.
    pub added: Vec<(Option<TableReference>, FieldRef)>,
    schema: DFSchemaRef,
}

impl UnnestNode {
    pub(super) fn new(
        input: LogicalPlan,
        collection: Expr,
        counted: bool,
        ordinality: bool,
        added: Vec<(Option<TableReference>, FieldRef)>,
    ) -> BindResult<UnnestNode> {
        let schema = schema_of(&input, &added)?;
        Ok(UnnestNode { input, collection, counted, ordinality, condition: None, outer: false, added, schema })
    }

    /// The same over the rows of another relation, with its own columns under `qualifier`.
    pub(super) fn over(
        &self,
        input: LogicalPlan,
        collection: Expr,
        qualifier: &TableReference,
    ) -> BindResult<UnnestNode> {
        let added = self.added.iter().map(|(_, field)| (Some(qualifier.clone()), Arc::clone(field))).collect();
        UnnestNode::new(input, collection, self.counted, self.ordinality, added)
    }

    /// As the right side of a `LEFT JOIN … ON condition`.
    pub(super) fn outer(self, condition: Option<Expr>) -> BindResult<UnnestNode> {
        let nullable =
            |(qualifier, field): (_, FieldRef)| (qualifier, Arc::new(field.as_ref().clone().with_nullable(true)));
        let added = self.added.into_iter().map(nullable).collect();
        let node = UnnestNode::new(self.input, self.collection, self.counted, self.ordinality, added)?;
        Ok(UnnestNode { condition, outer: true, ..node })
    }

    /// With the element's number, if it is not shown already.
    pub(super) fn numbered(&self) -> BindResult<UnnestNode> {
        if self.ordinality {
            return Ok(self.clone());
        }
        let qualifier = self.added.first().and_then(|(qualifier, _)| qualifier.clone());
        let number = (qualifier, Arc::new(Field::new("__number", DataType::Int32, false)));
        let added = self.added.iter().cloned().chain([number]).collect();
        UnnestNode::new(self.input.clone(), self.collection.clone(), self.counted, true, added)
    }
}

fn schema_of(input: &LogicalPlan, added: &[(Option<TableReference>, FieldRef)]) -> BindResult<DFSchemaRef> {
    let own = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
    let fields = own.chain(added.iter().cloned()).collect();
    Ok(Arc::new(DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?))
}

impl PartialOrd for UnnestNode {
    fn partial_cmp(&self, other: &UnnestNode) -> Option<Ordering> {
        self.collection.partial_cmp(&other.collection)
    }
}

impl UserDefinedLogicalNodeCore for UnnestNode {
    fn name(&self) -> &str {
        "Unnest"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.collection.clone()]
    }

    /// A condition on the input's columns may stand before; conditions are told apart by name only.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.added.iter().map(|(_, field)| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Unnest: {}", self.collection)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> BindResult<UnnestNode> {
        let (Some(collection), Some(input)) = (exprs.pop(), inputs.pop()) else {
            return datafusion_common::internal_err!("UNNEST was rebuilt without its parts");
        };
        let schema = schema_of(&input, &self.added)?;
        Ok(UnnestNode { input, collection, schema, ..self.clone() })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let schema = self.input.schema();
        let own = schema.fields().len();
        let mut needed: Vec<usize> = output_columns.iter().copied().filter(|column| *column < own).collect();
        for column in self.collection.column_refs().into_iter().chain(self.condition.iter().flat_map(Expr::column_refs))
        {
            needed.extend(schema.maybe_index_of_column(column));
        }
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// Plans `UNNEST`; every other relation is left to the next planner.
#[derive(Debug)]
pub(super) struct UnnestRelations;

impl RelationPlanner for UnnestRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> BindResult<RelationPlanning> {
        let TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let span = Span::from_ast(relation.span());
        let [collection] = array_exprs.as_slice() else {
            return Err(wrap(
                Error::sql("UNNEST takes one collection").at(span).hint("join a further UNNEST for each further one"),
            ));
        };
        let span = Span::from_ast(collection.span()).or(span);
        let collection = context.sql_to_expr(collection.clone(), &DFSchema::empty())?;
        let (_, field) = collection.to_field(&DFSchema::empty())?;
        let mut added = elements(&field).map_err(|error| wrap(error.at(span)))?;
        if let ([column], Some(alias), false) = (added.as_mut_slice(), alias, *with_ordinality)
            && alias.columns.is_empty()
            && !spread(&field)
        {
            // As in Flink the one column of a relation without names for its columns goes by the relation's name.
            *column = column.clone().with_name(alias.name.value.clone());
        }
        if *with_ordinality {
            added.push(Field::new("ORDINALITY", DataType::Int32, false));
        }
        let added = added.into_iter().map(|field| (None, Arc::new(field))).collect();
        let input = LogicalPlanBuilder::empty(true).build()?;
        let counted = matches!(SqlType::of_field(&field), SqlType::Multiset(_));
        let node = UnnestNode::new(input, collection, counted, *with_ordinality, added)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// The type of an element as the collection's own type says it: what its parts are called and whether they are texts of
/// some length stands in there.
fn element(collection: &Field) -> Option<&FieldRef> {
    match collection.data_type() {
        DataType::List(element) => Some(element),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => pair.first(),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the elements are rows, whose fields are shown as columns.
fn spread(collection: &Field) -> bool {
    let alone = !matches!(SqlType::of_field(collection), SqlType::Map(..));
    alone && element(collection).is_some_and(|element| matches!(element.data_type(), DataType::Struct(_)))
}

/// The columns of an element.
///
/// # Errors
/// If the value is no collection.
fn elements(collection: &Field) -> Result<Vec<Field>, Error> {
    let sql_type = SqlType::of_field(collection);
    let named = |field: &Field, name: &str| field.clone().with_name(name).with_nullable(true);
    match (&sql_type, element(collection).map(|element| (element, element.data_type()))) {
        (SqlType::Array(_) | SqlType::Multiset(_), Some((_, DataType::Struct(fields)))) => {
            Ok(fields.iter().map(|field| named(field, field.name())).collect())
        }
        // The element of a multiset has lost what its own type said beyond Arrow's.
        (SqlType::Multiset(element), Some(_)) => Ok(vec![element.sql_type.to_field("EXPR$0", true)]),
        (SqlType::Array(_), Some((element, _))) => Ok(vec![element.as_ref().clone().with_name("EXPR$0")]),
        (SqlType::Map(key, value), _) => {
            Ok(vec![key.sql_type.to_field("KEY", true), value.sql_type.to_field("VALUE", value.nullable)])
        }
        _ => Err(Error::sql(format!("UNNEST takes an ARRAY, a MAP or a MULTISET, and this is {sql_type}"))
            .hint("ARRAY[…] makes an array of values")),
    }
}
