//! What Flink adds to a query before it is bound: names of columns, and its own forms of expressions.
//!
//! The binding library has its own opinion of numbers, `CAST`, `CASE`, `LIKE`, rows and subscripts. Before it sees
//! them, they become calls of our functions, or a [`Form`]: a marker that the library hands back to
//! [`super::expressions`] with its operands bound.
//!
//! | SQL | becomes |
//! |---|---|
//! | `1`, `2.50`, `1E3`, `-1` | a literal: `INT` or `BIGINT`, `DECIMAL(3, 2)`, `DOUBLE` |
//! | `CAST(x AS t)`, `TRY_CAST`, `DATE '…'`, `TIMESTAMP '…'` | a cast by our rules |
//! | `CASE …` | the same, its results of one type |
//! | `INTERVAL '1' YEAR` | a literal of type `INTERVAL YEAR TO MONTH` |
//! | `-x` | `flink_negate(x)` |
//! | `x LIKE p ESCAPE e`, `x SIMILAR TO p` | `like(x, p, e)`, `similar(x, p)` |
//! | `ROW(a, b)`, `(a, b)`, `ARRAY[a, b]`, `MAP[k, v]` | `flink_row`, `flink_array`, `flink_map` |
//! | `a[i]`, `m['k']`, `a[1].f` | `flink_item(a, i)`, … |
//! | `(a, b) IN ((1, 2), …)` | `a = 1 AND b = 2 OR …` |
//! | `TIMESTAMPADD(DAY, n, t)` | `TIMESTAMPADD('DAY', n, t)` |
//! | `JOIN t FOR SYSTEM_TIME AS OF x ON c` | `JOIN t FOR SYSTEM_TIME AS OF x ON c AND as_of(x)` |
//! | `LATERAL TABLE(f(x))`, a table function of the program | `UNNEST(f(x))` |
//! | `JSON_VALUE(…)` and the like | as `functions` takes their clauses |

mod bitmaps;
mod joins;
mod json;
mod members;
mod names;
mod places;
mod spellings;
mod table_functions;
mod versions;

pub(super) use names::repeated_column;

use std::ops::ControlFlow;

use datafusion_common::ScalarValue;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, DateTimeField, DictionaryField, DuplicateTreatment, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Interval, ObjectNamePart, Query, Select, Spanned,
    Subscript, TableFactor, UnaryOperator, Value, ValueWithSpan, VisitMut, VisitorMut, WindowFrameBound,
    WindowFrameUnits, WindowType,
};

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::forms::{Form, Forms, number};
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::sql;
use crate::types::SqlType;

/// The operands of a row on the left of `IN` are written out once for every row on the right.
const ROW_OPERAND_BYTES: usize = 4_096;

/// A query whose rows go out, with names for all its columns and Flink's forms in place.
///
/// # Errors
/// If a literal or a type in it is none.
pub(super) fn query(query: &Query, known: Known<'_>) -> Result<Query> {
    let mut query = query.clone();
    names::tell_apart(&mut query.body);
    subquery(query, known)
}

/// A query with a name of its own for each column it names.
pub(super) fn tell_apart(query: &Query) -> Query {
    let mut query = query.clone();
    names::tell_apart(&mut query.body);
    query
}

/// A query that is read by another: as [`query`], but columns of one name stay so.
///
/// # Errors
/// If a literal or a type in it is none.
pub(super) fn subquery(mut query: Query, known: Known<'_>) -> Result<Query> {
    joins::check_joins(&query)?;
    super::using::replace_merged_columns(&mut query)?;
    match VisitMut::visit(&mut query, &mut Rewrite(known)) {
        ControlFlow::Continue(()) => Ok(query),
        ControlFlow::Break(error) => Err(error),
    }
}

/// An expression with Flink's forms in place.
///
/// # Errors
/// If a literal or a type in it is none.
pub(super) fn expression(mut expression: Expr, known: Known<'_>) -> Result<Expr> {
    match VisitMut::visit(&mut expression, &mut Rewrite(known)) {
        ControlFlow::Continue(()) => Ok(expression),
        ControlFlow::Break(error) => Err(error),
    }
}

/// What the rewriting asks of the session.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// Where forms are kept.
    pub forms: &'a Forms,
    /// The functions there are.
    pub functions: &'a FunctionSet,
    /// The current database.
    pub database: &'a str,
}

struct Rewrite<'a>(Known<'a>);

impl VisitorMut for Rewrite<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        names::name_columns(&mut query.body);
        spellings::fetch_as_limit(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        // There a number is a count or the place of a column, and the binding library reads it itself.
        places::of_query(query, &mut |expression| self.restore(expression));
        match names::name_values(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let conditions = select.selection.iter_mut().chain(&mut select.having);
        let members = conditions.into_iter().try_for_each(members::in_condition);
        match members.and_then(|()| self.join_versions(select)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        places::of_select(select, &mut |expression| self.restore(expression));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        table_functions::as_unnest(factor, self.0.functions);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        match self.before_operands(expression) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        match self.form(expression) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Rewrite<'_> {
    /// Forms that need their operands as they were written.
    fn before_operands(&self, expression: &mut Expr) -> Result<()> {
        if let Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } = expression {
            let span = Span::from_ast(left.span());
            let (Expr::Tuple(one), Expr::Tuple(other)) = (left.as_mut(), right.as_mut()) else {
                return Err(Error::sql("OVERLAPS compares two spans of time")
                    .at(span)
                    .hint("(start, end) OVERLAPS (start, end)"));
            };
            if one.len() != 2 || other.len() != 2 {
                return Err(Error::sql("a span of time has a start and an end")
                    .at(span)
                    .hint("(start, end) OVERLAPS (start, end)"));
            }
            let operands = one.drain(..).chain(other.drain(..)).collect();
            *expression = self.marker(Form::Overlaps { span }, operands);
        }
        if let Expr::Function(call) = expression {
            count_of_several(call);
        }
        members::as_value(expression)?;
        rows_in_list(expression)
    }

    /// Brings one expression, whose operands are done, into its form.
    fn form(&self, expression: &mut Expr) -> Result<()> {
        let span = Span::from_ast(expression.span());
        let taken = || Expr::Identifier(Ident::new(""));
        *expression = match std::mem::replace(expression, taken()) {
            Expr::Value(ValueWithSpan { value: Value::Number(text, _), span: place }) => {
                let value = number(&text, false).map_err(|error| error.at(Span::from_ast(place)))?;
                self.marker(Form::Number { value, text }, vec![Expr::Value(Value::Null.with_span(place))])
            }
            Expr::TypedString(literal) => self.typed_literal(literal, span)?,
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => self.negated(*expr)?,
            Expr::Cast { kind, expr, data_type, .. } => {
                let (to, nullable) = sql::sql_type_of(&data_type).map_err(|error| error.at(span))?;
                let try_cast = !matches!(kind, sqlparser::ast::CastKind::Cast);
                self.marker(Form::Cast { to, nullable, try_cast, span }, vec![*expr])
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                let form = Form::Case { operand: operand.is_some(), otherwise: else_result.is_some(), span };
                let pairs = conditions.into_iter().flat_map(|when| [when.condition, when.result]);
                let operands = operand.map(|e| *e).into_iter().chain(pairs).chain(else_result.map(|e| *e));
                self.marker(form, operands.collect())
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                matched("like", negated, *expr, *pattern, escape_char)
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                matched("similar", negated, *expr, *pattern, escape_char)
            }
            Expr::Tuple(parts) => sql::call("flink_row", parts),
            Expr::Array(array) => sql::call("flink_array", array.elem),
            Expr::CompoundFieldAccess { root, access_chain } => subscripts(*root, access_chain)?,
            Expr::Interval(interval) => match months(&interval) {
                Some(months) => {
                    let value = ScalarValue::IntervalYearMonth(Some(months));
                    self.marker(Form::Interval(value), vec![*interval.value])
                }
                None => Expr::Interval(interval),
            },
            Expr::Function(call) => self.call(call)?,
            other => other,
        };
        if matches!(expression, Expr::Function(_)) {
            let call = std::mem::replace(expression, taken());
            *expression = self.placed(call, span);
        }
        Ok(())
    }

    /// A call of a function that there is, as a form, so that an error in it has a place.
    fn placed(&self, expression: Expr, span: Option<Span>) -> Expr {
        let Expr::Function(mut call) = expression else { return expression };
        let function = match call.name.0.as_slice() {
            // In FROM these are relations, which are planned from the call as it stands.
            [ObjectNamePart::Identifier(name)] if is_window(&name.value) => None,
            [ObjectNamePart::Identifier(name)] => self.0.functions.scalar(&name.value),
            _ => None,
        };
        let plain = call.over.is_none() && call.filter.is_none() && call.within_group.is_empty();
        let (Some(function), true, FunctionArguments::List(list)) = (function, plain, &mut call.args) else {
            return Expr::Function(call);
        };
        let values =
            list.args.iter().all(|argument| matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(_))));
        if !values || list.args.is_empty() || !list.clauses.is_empty() || list.duplicate_treatment.is_some() {
            return Expr::Function(call);
        }
        let operands = list.args.drain(..).filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)) => Some(operand),
            _ => None,
        });
        self.marker(Form::Call { function, span }, operands.collect())
    }

    fn marker(&self, form: Form, operands: Vec<Expr>) -> Expr {
        let name = self.0.forms.add(form);
        let field = |value: Expr| DictionaryField { key: Ident::new(name.clone()), value: Box::new(value) };
        Expr::Dictionary(operands.into_iter().map(field).collect())
    }

    /// The text and place of the number that a marker stands for.
    fn number_of(&self, expression: &Expr) -> Option<(String, sqlparser::tokenizer::Span)> {
        let Expr::Dictionary(fields) = expression else { return None };
        let [DictionaryField { key, value }] = fields.as_slice() else { return None };
        match self.0.forms.get(&key.value) {
            Some(Form::Number { text, .. }) => Some((text, value.span())),
            _ => None,
        }
    }

    /// Puts back the number that a marker stands for, as it was written.
    fn restore(&self, expression: &mut Expr) {
        if let Some((text, place)) = self.number_of(expression) {
            *expression = Expr::Value(Value::Number(text, false).with_span(place));
        }
    }

    fn negated(&self, operand: Expr) -> Result<Expr> {
        if let Some((text, place)) = self.number_of(&operand).filter(|(text, _)| !text.starts_with('-')) {
            let value = number(&text, true).map_err(|error| error.at(Span::from_ast(place)))?;
            let form = Form::Number { value, text: format!("-{text}") };
            return Ok(self.marker(form, vec![Expr::Value(Value::Null.with_span(place))]));
        }
        Ok(match operand {
            interval @ Expr::Interval(_) => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(interval) },
            other => sql::call("flink_negate", vec![other]),
        })
    }

    /// `DATE '…'`, `TIMESTAMP '…'`: as precise as it is written.
    fn typed_literal(&self, literal: sqlparser::ast::TypedString, span: Option<Span>) -> Result<Expr> {
        let (mut to, _) = sql::sql_type_of(&literal.data_type).map_err(|error| error.at(span))?;
        let text = literal.value.value.clone().into_string().unwrap_or_default();
        let digits = text.rsplit_once('.').map_or(0, |(_, fraction)| fraction.trim_end().len().min(9)) as u8;
        match &mut to {
            SqlType::Timestamp(precision) | SqlType::TimestampLtz(precision) | SqlType::Time(precision) => {
                *precision = digits;
            }
            _ => {}
        }
        Ok(self.marker(Form::Cast { to, nullable: true, try_cast: false, span }, vec![Expr::Value(literal.value)]))
    }

    fn call(&self, mut call: Function) -> Result<Expr> {
        if let Some(WindowType::WindowSpec(window)) = &mut call.over
            && let Some(frame) = &mut window.window_frame
        {
            for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
                if let WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows)) = bound {
                    self.restore(rows);
                    if frame.units == WindowFrameUnits::Rows {
                        whole_rows(rows)?;
                    }
                }
            }
        }
        let name = match call.name.0.as_slice() {
            [ObjectNamePart::Identifier(name)] => name.value.to_ascii_uppercase(),
            _ => return Ok(Expr::Function(call)),
        };
        let FunctionArguments::List(list) = &mut call.args else { return Ok(Expr::Function(call)) };
        if name == "TIMESTAMPADD" || name == "TIMESTAMPDIFF" {
            if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(unit))) = list.args.first_mut()
                && let Expr::Identifier(word) = unit
            {
                *unit = sql::text_literal(word.value.to_ascii_uppercase());
            }
            return Ok(Expr::Function(call));
        }
        if let Some(fold) = bitmaps::aggregate(&mut call, &name) {
            return Ok(fold);
        }
        let FunctionArguments::List(list) = &mut call.args else { return Ok(Expr::Function(call)) };
        let renamed = match name.as_str() {
            "CURRENT_DATABASE" if list.args.is_empty() => return Ok(sql::text_literal(self.0.database)),
            "ROW" => "flink_row",
            "MAP" => "flink_map",
            name if name.starts_with("JSON_") => {
                let cast = |to: SqlType, value: Expr| {
                    self.marker(Form::Cast { to, nullable: true, try_cast: false, span: None }, vec![value])
                };
                return json::call(call, &cast);
            }
            _ => return Ok(Expr::Function(call)),
        };
        if let Some(ObjectNamePart::Identifier(name)) = call.name.0.first_mut() {
            name.value = renamed.to_string();
        }
        Ok(Expr::Function(call))
    }
}

/// # Errors
/// If a frame of ROWS reaches by something else than a number of rows.
fn whole_rows(bound: &Expr) -> Result<()> {
    let whole = |text: &str| text.parse::<u64>().is_ok();
    match bound {
        Expr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) if whole(text) => Ok(()),
        other => Err(Error::sql("a frame of ROWS reaches by a whole number of rows")
            .at(Span::from_ast(other.span()))
            .hint("for example ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")),
    }
}

fn is_window(name: &str) -> bool {
    ["TUMBLE", "HOP", "CUMULATE", "SESSION"].iter().any(|window| name.eq_ignore_ascii_case(window))
}

/// The months of an interval of months, quarters or years, as `sql` writes them.
fn months(interval: &Interval) -> Option<i32> {
    let months = match interval.leading_field.as_ref()? {
        DateTimeField::Year => 12,
        DateTimeField::Quarter => 3,
        DateTimeField::Month => 1,
        _ => return None,
    };
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(count), .. }) = interval.value.as_ref() else {
        return None;
    };
    count.parse::<i32>().ok()?.checked_mul(months)
}

/// `like(x, p[, e])` for `x LIKE p [ESCAPE e]`, and likewise for SIMILAR TO.
fn matched(name: &str, negated: bool, text: Expr, pattern: Expr, escape: Option<ValueWithSpan>) -> Expr {
    let test = sql::call(name, [Some(text), Some(pattern), escape.map(Expr::Value)].into_iter().flatten().collect());
    if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(test) } } else { test }
}

/// `root[i].f …`, where leading names may belong to the root: a table's column, or a field of a row.
fn subscripts(root: Expr, chain: Vec<AccessExpr>) -> Result<Expr> {
    let mut names = match root {
        Expr::Identifier(name) => vec![name],
        Expr::CompoundIdentifier(names) => names,
        other => return chain.into_iter().try_fold(other, subscript),
    };
    let mut chain = chain.into_iter().peekable();
    while let Some(AccessExpr::Dot(Expr::Identifier(name))) =
        chain.next_if(|access| matches!(access, AccessExpr::Dot(Expr::Identifier(_))))
    {
        names.push(name);
    }
    let only = names.len() == 1;
    let root = match names.pop() {
        Some(name) if only => Expr::Identifier(name),
        last => Expr::CompoundIdentifier(names.into_iter().chain(last).collect()),
    };
    chain.try_fold(root, subscript)
}

fn subscript(of: Expr, access: AccessExpr) -> Result<Expr> {
    let key = match access {
        AccessExpr::Subscript(Subscript::Index { index }) => index,
        AccessExpr::Dot(Expr::Identifier(name)) => sql::text_literal(name.value),
        AccessExpr::Subscript(Subscript::Slice { .. }) => {
            return Err(Error::sql("an array has no slices in brackets").hint("write ARRAY_SLICE(a, from, to)"));
        }
        AccessExpr::Dot(other) => return Err(Error::sql(format!("'{other}' is no field of a row"))),
    };
    Ok(sql::call("flink_item", vec![of, key]))
}

/// `COUNT(DISTINCT a, b)` counts the rows of the two in which none is NULL.
fn count_of_several(call: &mut Function) {
    let FunctionArguments::List(list) = &mut call.args else { return };
    let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    if !distinct || list.args.len() < 2 || !call.name.to_string().eq_ignore_ascii_case("COUNT") {
        return;
    }
    let value = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    let Some(values) = list.args.iter().map(value).collect::<Option<Vec<_>>>() else { return };
    let present = values.iter().map(|value| Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone())))));
    let both = |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) };
    let Some(condition) = present.reduce(both) else { return };
    let no_place = || AttachedToken(TokenWithSpan::wrap(Token::EOF));
    let row = Expr::Case {
        case_token: no_place(),
        end_token: no_place(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: Expr::Tuple(values) }],
        else_result: None,
    };
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(row))];
}

/// `(a, b) IN ((1, 2), (3, 4))` is `a = 1 AND b = 2 OR a = 3 AND b = 4`, which is unknown where it should be.
fn rows_in_list(expression: &mut Expr) -> Result<()> {
    let Expr::InList { expr, list, negated } = expression else { return Ok(()) };
    let Expr::Tuple(left) = expr.as_ref() else { return Ok(()) };
    let wrong = |message: &str| Err(Error::sql(message).at(Span::from_ast(expr.span())));
    if expr.to_string().len() > ROW_OPERAND_BYTES {
        return wrong("the row before IN is too long; compute its parts in a subquery first");
    }
    let both = |left: Expr, op: BinaryOperator, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    };
    let mut any: Option<Expr> = None;
    for row in list.iter() {
        let Expr::Tuple(right) = row else { return wrong("a row is compared with rows: (a, b) IN ((1, 2), …)") };
        if right.len() != left.len() {
            return wrong("the rows compared by IN are of different lengths");
        }
        let mut all: Option<Expr> = None;
        for (left, right) in left.iter().zip(right) {
            let equal = both(left.clone(), BinaryOperator::Eq, right.clone());
            all = Some(match all {
                Some(before) => both(before, BinaryOperator::And, equal),
                None => equal,
            });
        }
        any = match (any, all) {
            (Some(before), Some(all)) => Some(both(before, BinaryOperator::Or, all)),
            (before, all) => before.or(all),
        };
    }
    if let Some(any) = any {
        let any = Expr::Nested(Box::new(any));
        *expression = if *negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) } } else { any };
    }
    Ok(())
}
