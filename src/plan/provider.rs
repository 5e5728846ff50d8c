//! What names in a query stand for: the binding library's window onto catalog and functions.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, Result as BindResult, TableReference};
use datafusion_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF, ident,
};
use datafusion_sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast::Query;

use super::error::{unwrap, wrap};
use super::expressions::{FlinkExpressions, FlinkTypes};
use super::forms::Forms;
use super::hints::{Hinted, with_options};
use super::inline::inline;
use super::nodes::WatermarkNode;
use super::relations::WindowFunctions;
use super::unnest::UnnestRelations;
use super::values::ValuesRelations;
use super::{aliases, missing, rewrite, strict, typing};
use crate::catalog::{Catalog, ColumnKind, DatabaseName, QualifiedName, Relation, TableDefinition, ViewDefinition};
use crate::error::{Error, Result};
use crate::functions::FunctionSet;
use crate::limits::VIEW_DEPTH;
use crate::sql;

/// Binds queries against a catalog.
pub(super) struct Names<'a> {
    catalog: &'a Catalog,
    functions: Arc<FunctionSet>,
    forms: Arc<Forms>,
    options: ConfigOptions,
    expression_planners: Vec<Arc<dyn ExprPlanner>>,
    relation_planners: Vec<Arc<dyn RelationPlanner>>,
    /// The views being bound, outermost first, each with the database in which its names are looked up: a view that
    /// reads itself is refused, as is a tower without end.
    open_views: RefCell<Vec<(String, DatabaseName)>>,
    hinted: RefCell<Hinted>,
}

impl<'a> Names<'a> {
    pub(super) fn new(catalog: &'a Catalog, functions: Arc<FunctionSet>) -> Names<'a> {
        let forms = Arc::new(Forms::default());
        let of_values = Arc::clone(&functions);
        let mut expression_planners: Vec<Arc<dyn ExprPlanner>> =
            vec![Arc::new(FlinkExpressions { functions: Arc::clone(&functions), forms: Arc::clone(&forms) })];
        expression_planners.push(Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()));
        expression_planners.push(Arc::new(datafusion_functions_nested::planner::NestedFunctionPlanner));
        expression_planners.push(Arc::new(datafusion_functions_nested::planner::FieldAccessPlanner));
        let mut options = ConfigOptions::default();
        options.sql_parser.enable_ident_normalization = false;
        options.sql_parser.collect_spans = true;
        Names {
            catalog,
            functions,
            forms,
            options,
            expression_planners,
            relation_planners: vec![
                Arc::new(WindowFunctions),
                Arc::new(UnnestRelations),
                Arc::new(ValuesRelations { functions: Arc::clone(&of_values) }),
            ],
            open_views: RefCell::new(Vec::new()),
            hinted: RefCell::default(),
        }
    }

    /// A query whose rows go out as a logical plan with Flink's types; its columns may have one name.
    pub(super) fn bind_result(&self, query: &Query) -> Result<LogicalPlan> {
        self.bind_rewritten(rewrite::query(&self.written_out(query)?, self.known())?)
    }

    /// A query as a logical plan with Flink's types.
    pub(super) fn bind(&self, query: &Query) -> Result<LogicalPlan> {
        self.bind_rewritten(rewrite::subquery(self.written_out(query)?, self.known())?)
    }

    fn bind_rewritten(&self, mut query: Query) -> Result<LogicalPlan> {
        self.settle_names(&mut query)?;
        let plan = match self.planned(&query) {
            Ok(plan) => plan,
            Err(error) => return Err(missing::all(error, query, &|query| self.planned(query).err())),
        };
        typing::apply(plan, &self.functions).map_err(unwrap)
    }

    fn planned(&self, query: &Query) -> BindResult<LogicalPlan> {
        let statement = sqlparser::ast::Statement::Query(Box::new(query.clone()));
        self.planner().sql_statement_to_plan(statement)
    }

    /// Sees to it that names in `GROUP BY`, `HAVING` and subqueries mean what they mean in Flink.
    fn settle_names(&self, query: &mut Query) -> Result<()> {
        let columns = |from: Query| {
            let statement = sqlparser::ast::Statement::Query(Box::new(from));
            self.planner().sql_statement_to_plan(statement).ok().map(|plan| Arc::clone(plan.schema()))
        };
        aliases::settle(query, self.functions.extensions(), &columns)
    }

    /// An expression over a table's columns, as SQL text, with Flink's types.
    pub(super) fn bind_expression(&self, text: &str, schema: &DFSchema) -> Result<Expr> {
        self.bind_parsed(sql::parse_expression(text)?, schema)
    }

    /// An expression over a table's columns, with Flink's types.
    pub(super) fn bind_parsed(&self, mut parsed: sqlparser::ast::Expr, schema: &DFSchema) -> Result<Expr> {
        if !self.functions.extensions() {
            strict::check(&parsed)?;
        }
        inline(&mut parsed, self.catalog, &self.home())?;
        let parsed = rewrite::expression(parsed, self.known())?;
        let expression = self.planner().sql_to_expr(parsed, schema, &mut PlannerContext::new()).map_err(unwrap)?;
        typing::apply_to_expression(expression, schema, &self.functions).map_err(unwrap)
    }

    fn known(&self) -> rewrite::Known<'_> {
        rewrite::Known { forms: &self.forms, functions: &self.functions, database: &self.catalog.current().database }
    }

    /// The database in which names are looked up: that of the view being bound, or the current one.
    fn home(&self) -> DatabaseName {
        let view = self.open_views.borrow().last().map(|(_, home)| home.clone());
        view.unwrap_or_else(|| self.catalog.current().clone())
    }

    /// The query with names of their own for hinted tables, and functions in SQL written out.
    fn written_out(&self, query: &Query) -> Result<Query> {
        let mut query = query.clone();
        self.hinted.borrow_mut().take(&mut query)?;
        if !self.functions.extensions() {
            strict::check(&query)?;
        }
        inline(&mut query, self.catalog, &self.home())?;
        Ok(query)
    }

    fn planner(&self) -> SqlToRel<'_, Names<'a>> {
        let options = ParserOptions::new()
            .with_parse_float_as_decimal(true)
            .with_enable_ident_normalization(false)
            .with_map_string_types_to_utf8view(false)
            .with_default_null_ordering(NullOrdering::NullsMin)
            .with_collect_spans(true);
        SqlToRel::new_with_options(self, options)
    }

    /// The rows of a declared table as a query sees them: scan, then computed columns, then watermarks.
    fn table_plan(&self, name: &TableReference, table: &Arc<TableDefinition>) -> BindResult<LogicalPlan> {
        let source = Arc::new(DeclaredTable { table: Arc::clone(table), schema: table.scan_schema(), plan: None });
        let mut builder = LogicalPlanBuilder::scan(name.clone(), source, None)?;
        let computed = table.columns.iter().any(|column| matches!(column.kind, ColumnKind::Computed { .. }));
        if computed {
            let schema = Arc::clone(builder.schema());
            let columns = table.columns.iter().map(|column| match &column.kind {
                ColumnKind::Computed { expression } => {
                    Ok(self.bind_expression(expression, &schema).map_err(wrap)?.alias(&column.name))
                }
                _ => Ok(Expr::Column(datafusion_common::Column::new(Some(name.clone()), &column.name))),
            });
            builder = builder.project(columns.collect::<BindResult<Vec<_>>>()?)?;
        }
        let Some(watermark) = &table.watermark else { return builder.build() };
        // A computed column lost its qualifier in the projection; the bare name finds it either way.
        let schema = Arc::clone(builder.schema());
        let expression = self.bind_expression(&watermark.expression, &schema).map_err(wrap)?;
        let column = match schema.qualified_field_with_unqualified_name(&watermark.column) {
            Ok((qualifier, field)) => Expr::Column((qualifier, field).into()),
            Err(_) => ident(&watermark.column),
        };
        let node = WatermarkNode { input: builder.build()?, column, expression };
        Ok(LogicalPlan::Extension(datafusion_expr::Extension { node: Arc::new(node) }))
    }

    fn view_plan(
        &self,
        name: &TableReference,
        qualified: &QualifiedName,
        view: &ViewDefinition,
    ) -> BindResult<LogicalPlan> {
        let key = qualified.to_string();
        {
            let mut open = self.open_views.borrow_mut();
            if open.iter().any(|(view, _)| *view == key) {
                return Err(wrap(Error::sql(format!("view '{name}' reads itself"))));
            }
            if open.len() >= VIEW_DEPTH {
                return Err(wrap(Error::sql(format!("views are nested more than {VIEW_DEPTH} deep"))));
            }
            open.push((key, view.home.clone()));
        }
        let bound = sql::parse_query(&view.query)
            .and_then(|query| {
                let mut query = rewrite::subquery(self.written_out(&query)?, self.known())?;
                self.settle_names(&mut query)?;
                let statement = sqlparser::ast::Statement::Query(Box::new(query));
                self.planner().sql_statement_to_plan(statement).map_err(unwrap)
            })
            .map_err(|error| error.elsewhere().context(format!("in view '{name}'")));
        self.open_views.borrow_mut().pop();
        let plan = bound.map_err(wrap)?;
        if view.columns.is_empty() {
            return Ok(plan);
        }
        let renamed: Vec<Expr> = plan
            .schema()
            .columns()
            .into_iter()
            .zip(&view.columns)
            .map(|(column, name)| Expr::Column(column).alias(name))
            .collect();
        LogicalPlanBuilder::from(plan).project(renamed)?.build()
    }
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> BindResult<Arc<dyn TableSource>> {
        let parts: Vec<&str> = match &name {
            TableReference::Bare { table } => vec![table],
            TableReference::Partial { schema, table } => vec![schema, table],
            TableReference::Full { catalog, schema, table } => vec![catalog, schema, table],
        };
        let hinted = match &name {
            TableReference::Bare { table } => self.hinted.borrow().get(table).cloned(),
            _ => None,
        };
        let parts = match &hinted {
            Some(hinted) => hinted.name.iter().map(String::as_str).collect(),
            None => parts,
        };
        let qualified = self.catalog.qualify_in(&self.home(), &parts).map_err(wrap)?;
        let relation = self.catalog.get(&qualified).ok_or_else(|| wrap(self.catalog.not_found(&qualified)))?;
        match relation {
            Relation::Table(table) => {
                let changed = hinted.map(|hinted| with_options(table, &hinted.options));
                let table = changed.as_ref().unwrap_or(table);
                let plan = self.table_plan(&name, table)?;
                Ok(Arc::new(DeclaredTable { table: Arc::clone(table), schema: table.schema(), plan: Some(plan) }))
            }
            Relation::View(view) if hinted.is_some() => Err(wrap(
                Error::sql(format!("'{}' is a view, which has no options to change", view.name))
                    .hint("put the hint behind a table in its query"),
            )),
            Relation::View(view) => {
                let plan = self.view_plan(&name, &qualified, view)?;
                let schema = Arc::clone(plan.schema().inner());
                Ok(Arc::new(BoundView { schema, plan }))
            }
        }
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.expression_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(FlinkTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.functions.scalar(name)
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.functions.aggregate(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.functions.window(name)
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        self.functions.scalar_names()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions.aggregate_names()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions.window_names()
    }
}

/// A declared table in the logical plan.
pub(super) struct DeclaredTable {
    pub table: Arc<TableDefinition>,
    schema: SchemaRef,
    /// What a query sees in its place; `None` for the scan itself.
    plan: Option<LogicalPlan>,
}

impl fmt::Debug for DeclaredTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {}", self.table.name)
    }
}

impl TableSource for DeclaredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.plan.as_ref().map(Cow::Borrowed)
    }
}

/// A view in the logical plan: replaced by its query at once.
#[derive(Debug)]
struct BoundView {
    schema: SchemaRef,
    plan: LogicalPlan,
}

impl TableSource for BoundView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}
