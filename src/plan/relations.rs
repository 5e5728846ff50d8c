//! Window table functions in `FROM`: `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))`; and tables whose
//! versions are asked for.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{Result as BindResult, ScalarValue};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::{Expr, ExprSchemable, Extension, LogicalPlan};
use sqlparser::ast::{
    Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    Spanned, TableFactor,
};

use super::error::wrap;
use super::marks::Mark;
use super::nodes::WindowNode;
use super::versions;
use crate::error::{Error, Span};
use crate::sql::TABLE_ARGUMENT;
use crate::types::{SqlType, WindowSpec};

/// Plans window table functions and versioned tables; every other relation is left to the binding library.
#[derive(Debug)]
pub(super) struct WindowFunctions;

impl RelationPlanner for WindowFunctions {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> BindResult<RelationPlanning> {
        let (name, arguments, alias) = match &relation {
            TableFactor::Table { version: Some(version), alias, .. } => {
                let (alias, number) = (alias.clone(), versions::number_of(version));
                let mut table = relation;
                if let TableFactor::Table { version, alias, .. } = &mut table {
                    (*version, *alias) = (None, None);
                }
                let plan = Mark::Versions(number).on(context.plan(table)?);
                return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))));
            }
            TableFactor::TableFunction { expr: SqlExpr::Function(function), alias } => {
                (&function.name, arguments_of(function), alias)
            }
            TableFactor::Table { name, args: Some(arguments), alias, .. } => (name, arguments.args.clone(), alias),
            TableFactor::Function { name, args, alias, .. } => (name, args.clone(), alias),
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let Some(kind) = WindowFunction::named(name) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let span = Span::from_ast(name.span());
        let plan = kind.plan(arguments, context, span)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowFunction {
    Tumble,
    Hop,
    Cumulate,
    Session,
}

impl WindowFunction {
    fn named(name: &ObjectName) -> Option<WindowFunction> {
        let [ObjectNamePart::Identifier(identifier)] = name.0.as_slice() else { return None };
        Some(match identifier.value.to_ascii_uppercase().as_str() {
            "TUMBLE" => WindowFunction::Tumble,
            "HOP" => WindowFunction::Hop,
            "CUMULATE" => WindowFunction::Cumulate,
            "SESSION" => WindowFunction::Session,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            WindowFunction::Tumble => "TUMBLE",
            WindowFunction::Hop => "HOP",
            WindowFunction::Cumulate => "CUMULATE",
            WindowFunction::Session => "SESSION",
        }
    }

    /// The parameters in order, as named in calls by name.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            WindowFunction::Tumble => &["DATA", "TIMECOL", "SIZE", "OFFSET"],
            WindowFunction::Hop => &["DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"],
            WindowFunction::Cumulate => &["DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"],
            WindowFunction::Session => &["DATA", "TIMECOL", "GAP"],
        }
    }

    fn usage(self) -> String {
        let rest = self.parameters()[2..].iter().map(|name| match *name {
            "OFFSET" => " [, offset]".to_string(),
            name => format!(", {}", name.to_lowercase()),
        });
        let keys = if self == WindowFunction::Session { " [PARTITION BY key, …]" } else { "" };
        format!("{}(TABLE t{keys}, DESCRIPTOR(time_column){})", self.name(), rest.collect::<String>())
    }

    fn plan(
        self,
        arguments: Vec<FunctionArg>,
        context: &mut dyn RelationPlannerContext,
        span: Option<Span>,
    ) -> BindResult<LogicalPlan> {
        let arguments = self.in_order(arguments).map_err(|error| wrap(error.at(span).hint(self.usage())))?;
        let missing =
            |what: &str| wrap(Error::sql(format!("{} needs {what}", self.name())).at(span).hint(self.usage()));
        let mut arguments = arguments.into_iter();
        let data = arguments.next().flatten().ok_or_else(|| missing("a table"))?;
        let time = arguments.next().flatten().ok_or_else(|| missing("a time column"))?;
        let keys = self.keys(&data).map_err(wrap)?;
        let input = input_plan(data, context).map_err(|error| error.unwrap_or_else(|| missing("a table: TABLE t")))?;
        let partition = keys.into_iter().map(|key| context.sql_to_expr(key, input.schema()));
        let partition = partition.collect::<BindResult<Vec<_>>>()?;
        let column = descriptor(&time).ok_or_else(|| missing("the time column as DESCRIPTOR(column)"))?;
        let time = context.sql_to_expr(SqlExpr::Identifier(column.clone()), input.schema())?;
        let data_type = time.get_type(input.schema())?;
        if !matches!(data_type, DataType::Timestamp(..)) {
            let shown = SqlType::from_arrow(&data_type);
            return Err(wrap(
                Error::sql(format!("{}: column '{}' is {shown}, not a time attribute", self.name(), column.value))
                    .at(Span::from_ast(column.span))
                    .hint("a window needs a TIMESTAMP column with a WATERMARK, or PROCTIME()"),
            ));
        }
        let mut lengths = Vec::new();
        for (argument, name) in arguments.zip(&self.parameters()[2..]) {
            match argument {
                Some(expression) => lengths.push(Some(length(expression, name, context)?)),
                None if *name == "OFFSET" => lengths.push(None),
                None => return Err(missing(&format!("its {}", name.to_lowercase()))),
            }
        }
        let window = self.spec(&lengths).map_err(|error| wrap(error.at(span)))?;
        let node = WindowNode::new(input, time, window, partition)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    /// The columns of `TABLE t PARTITION BY …`.
    fn keys(self, data: &SqlExpr) -> Result<Vec<SqlExpr>, Error> {
        let SqlExpr::Function(function) = data else { return Ok(Vec::new()) };
        let FunctionArguments::List(list) = &function.args else { return Ok(Vec::new()) };
        if let Some(clause) = list.clauses.first() {
            let place = Span::from_ast(clause.span());
            let message = format!("the table of {} does not take ORDER BY", self.name());
            return Err(Error::sql(message)
                .at(place)
                .hint("windows are cut along the time column, whatever the order"));
        }
        let mut keys = Vec::new();
        for argument in list.args.iter().skip(1) {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(
                    key @ (SqlExpr::Identifier(_) | SqlExpr::CompoundIdentifier(_)),
                )) => keys.push(key.clone()),
                other => {
                    return Err(Error::sql(format!("PARTITION BY takes columns, not '{other}'"))
                        .at(Span::from_ast(other.span()))
                        .hint("compute it in a view or a subquery, and name its column here"));
                }
            }
        }
        match keys.first() {
            Some(key) if self != WindowFunction::Session => Err(Error::sql(format!(
                "{} does not take PARTITION BY: its windows are the same for all keys",
                self.name()
            ))
            .at(Span::from_ast(key.span()))
            .hint("group by the key beside window_start and window_end")),
            _ => Ok(keys),
        }
    }

    /// Arguments by position or by name, in the order of the parameters; an absent one is `None`.
    fn in_order(self, given: Vec<FunctionArg>) -> Result<Vec<Option<SqlExpr>>, Error> {
        let parameters = self.parameters();
        let mut ordered: Vec<Option<SqlExpr>> = vec![None; parameters.len()];
        for (position, argument) in given.into_iter().enumerate() {
            let (index, value) = match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(position), value),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                    (parameters.iter().position(|parameter| name.value.eq_ignore_ascii_case(parameter)), value)
                }
                FunctionArg::ExprNamed {
                    name: SqlExpr::Identifier(name), arg: FunctionArgExpr::Expr(value), ..
                } => (parameters.iter().position(|parameter| name.value.eq_ignore_ascii_case(parameter)), value),
                other => return Err(Error::sql(format!("{} does not take '{other}'", self.name()))),
            };
            match index.and_then(|index| ordered.get_mut(index)) {
                Some(slot) if slot.is_none() => *slot = Some(value),
                Some(_) => return Err(Error::sql(format!("{} got an argument twice", self.name()))),
                None => return Err(Error::sql(format!("{} got an argument it does not have: '{value}'", self.name()))),
            }
        }
        Ok(ordered)
    }

    fn spec(self, lengths: &[Option<i64>]) -> Result<WindowSpec, Error> {
        let at = |index: usize| lengths.get(index).copied().flatten().unwrap_or(0);
        let positive = |value: i64, name: &str| {
            if value > 0 { Ok(value) } else { Err(Error::sql(format!("{}: {name} must be positive", self.name()))) }
        };
        match self {
            WindowFunction::Tumble => Ok(WindowSpec::Tumble { size: positive(at(0), "size")?, offset: at(1) }),
            WindowFunction::Hop => {
                let (slide, size) = (positive(at(0), "slide")?, positive(at(1), "size")?);
                Ok(WindowSpec::Hop { slide, size, offset: at(2) })
            }
            WindowFunction::Cumulate => {
                let (step, size) = (positive(at(0), "step")?, positive(at(1), "size")?);
                if size % step != 0 {
                    return Err(Error::sql("CUMULATE: size must be a multiple of step"));
                }
                Ok(WindowSpec::Cumulate { step, size, offset: at(2) })
            }
            WindowFunction::Session => Ok(WindowSpec::Session { gap: positive(at(0), "gap")? }),
        }
    }
}

fn arguments_of(function: &Function) -> Vec<FunctionArg> {
    match &function.args {
        FunctionArguments::List(list) => list.args.clone(),
        _ => Vec::new(),
    }
}

/// The relation that `TABLE t` or a subquery names; `Err(None)` if the argument is neither.
fn input_plan(
    data: SqlExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan, Option<datafusion_common::DataFusionError>> {
    let derived = |subquery| TableFactor::Derived { lateral: false, subquery, alias: None, sample: None };
    let factor = match data {
        SqlExpr::Subquery(query) => derived(query),
        SqlExpr::Function(function) if function.name.to_string() == TABLE_ARGUMENT => {
            match arguments_of(&function).into_iter().next() {
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::Subquery(query)))) => derived(query),
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::Identifier(name)))) => table(vec![name]),
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::CompoundIdentifier(names)))) => table(names),
                _ => return Err(None),
            }
        }
        _ => return Err(None),
    };
    context.plan(factor).map_err(Some)
}

fn table(names: Vec<Ident>) -> TableFactor {
    TableFactor::Table {
        name: ObjectName(names.into_iter().map(ObjectNamePart::Identifier).collect()),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// The first column of `DESCRIPTOR(column, …)`; Flink does not look at others.
fn descriptor(expression: &SqlExpr) -> Option<Ident> {
    let SqlExpr::Function(function) = expression else { return None };
    if !function.name.to_string().eq_ignore_ascii_case("DESCRIPTOR") {
        return None;
    }
    match arguments_of(function).as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::Identifier(name))), ..] => Some(name.clone()),
        _ => None,
    }
}

/// A constant interval in milliseconds.
fn length(expression: SqlExpr, name: &str, context: &mut dyn RelationPlannerContext) -> BindResult<i64> {
    let span = Span::from_ast(expression.span());
    let bound = context.sql_to_expr(expression, &datafusion_common::DFSchema::empty())?;
    let milliseconds = constant_interval(&bound).map_err(|error| wrap(error.context(name.to_lowercase()).at(span)))?;
    Ok(milliseconds)
}

/// The milliseconds of a constant interval of days or less.
pub(super) fn constant_interval(expression: &Expr) -> Result<i64, Error> {
    let expected = || Error::sql("an interval such as INTERVAL '10' MINUTE is expected");
    match expression {
        Expr::Negative(inner) => Ok(-constant_interval(inner)?),
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) => {
            if value.months != 0 {
                return Err(Error::sql("windows of months or years are not supported yet").hint("use days"));
            }
            Ok(i64::from(value.days) * 86_400_000 + value.nanoseconds / 1_000_000)
        }
        Expr::Literal(ScalarValue::IntervalDayTime(Some(value)), _) => {
            Ok(i64::from(value.days) * 86_400_000 + i64::from(value.milliseconds))
        }
        Expr::Literal(ScalarValue::IntervalYearMonth(Some(_)), _) => {
            Err(Error::sql("windows of months or years are not supported yet").hint("use days"))
        }
        _ => Err(expected()),
    }
}
