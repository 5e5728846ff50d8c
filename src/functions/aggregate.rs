//! The aggregate functions as definitions: names, parameters and result types. The engine's operators compute them, so
//! none has an accumulator of its own.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::ScalarValue;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::function::outward;
use super::typing::comparison_type;
use crate::error::{Error, Result};
use crate::types::{RowField, SqlType};

/// How an aggregate function is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Count,
    Sum,
    SumZero,
    Average,
    Extreme,
    Deviation,
    Value,
    Text,
    Multiset,
    List,
    Json,
    Percentile,
}

/// Names, least and most arguments, typing.
const FUNCTIONS: [(&str, usize, usize, Kind); 24] = [
    ("count", 0, usize::MAX, Kind::Count),
    ("approx_count_distinct", 1, 1, Kind::Count),
    ("sum", 1, 1, Kind::Sum),
    ("sum0", 1, 1, Kind::SumZero),
    ("avg", 1, 1, Kind::Average),
    ("min", 1, 1, Kind::Extreme),
    ("max", 1, 1, Kind::Extreme),
    ("stddev", 1, 1, Kind::Deviation),
    ("stddev_pop", 1, 1, Kind::Deviation),
    ("stddev_samp", 1, 1, Kind::Deviation),
    ("variance", 1, 1, Kind::Deviation),
    ("var_pop", 1, 1, Kind::Deviation),
    ("var_samp", 1, 1, Kind::Deviation),
    ("first_value", 1, 1, Kind::Value),
    ("last_value", 1, 1, Kind::Value),
    ("single_value", 1, 1, Kind::Value),
    ("listagg", 1, 2, Kind::Text),
    ("collect", 1, 1, Kind::Multiset),
    ("array_agg", 1, 1, Kind::List),
    ("json_objectagg", 1, 1, Kind::Json),
    ("json_arrayagg", 1, 1, Kind::Json),
    ("percentile", 2, 3, Kind::Percentile),
    ("grouping", 1, usize::MAX, Kind::Count),
    ("grouping_id", 1, usize::MAX, Kind::Count),
];

/// All aggregate functions.
pub fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    let build = |(name, least, most, kind)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Definition { name, least, most, kind, signature }))
    };
    FUNCTIONS.into_iter().map(build).collect()
}

/// Whether a function is the program's own, and not one of ours.
pub fn is_program_aggregate(function: &AggregateUDF) -> bool {
    !names().any(|name| name == function.name())
}

/// Their names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, ..)| *name)
}

/// The result type of an aggregate function and whether it may be NULL; without GROUP BY every function but COUNT may.
///
/// # Errors
/// Kind `Sql` if there is no such function or it does not take these arguments.
pub fn aggregate_type(name: &str, arguments: &[(SqlType, bool)]) -> Result<(SqlType, bool)> {
    let found = FUNCTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
    let (name, least, most, kind) =
        *found.ok_or_else(|| Error::sql(format!("there is no aggregate function {name}")))?;
    let upper = name.to_uppercase();
    if arguments.len() < least || arguments.len() > most {
        return Err(Error::sql(format!("{upper} takes {least} arguments, not {}", arguments.len())));
    }
    let first = arguments.first().map_or(SqlType::Null, |(sql_type, _)| sql_type.clone());
    let refused =
        |wanted: &str| Error::sql(format!("cannot apply {upper} to {first}")).hint(format!("it takes {wanted}"));
    let number = |result: SqlType| {
        if first.is_numeric() || first == SqlType::Null { Ok(result) } else { Err(refused("a number")) }
    };
    let list = |nullable| Box::new(RowField::unnamed(first.clone(), nullable));
    let nullable = arguments.first().is_none_or(|(_, nullable)| *nullable);
    Ok(match kind {
        Kind::Count => (SqlType::BigInt, false),
        Kind::Sum | Kind::SumZero => {
            let sum = match &first {
                SqlType::Decimal(_, scale) => SqlType::Decimal(38, *scale),
                SqlType::Null => SqlType::Int,
                other => other.clone(),
            };
            (number(sum)?, kind == Kind::Sum)
        }
        Kind::Average => {
            let average = match &first {
                SqlType::Decimal(_, scale) => SqlType::Decimal(38, (*scale).max(6)),
                SqlType::Null => SqlType::Int,
                other => other.clone(),
            };
            (number(average)?, true)
        }
        Kind::Deviation => {
            let deviation = match &first {
                SqlType::Decimal(_, scale) => SqlType::Decimal(38, (*scale).max(6)),
                SqlType::Null => SqlType::Double,
                other => other.clone(),
            };
            (number(deviation)?, true)
        }
        Kind::Extreme => {
            comparison_type(&first, &first, false).map_err(|_| refused("values that have an order"))?;
            (first, true)
        }
        Kind::Value => (first, true),
        Kind::Text => {
            if arguments.iter().any(|(sql_type, _)| !sql_type.is_text() && *sql_type != SqlType::Null) {
                return Err(refused("text; CAST other values to STRING"));
            }
            (SqlType::STRING, true)
        }
        Kind::Multiset => (SqlType::Multiset(list(nullable)), false),
        Kind::List => (SqlType::Array(list(nullable)), true),
        // The length is Flink's; no text is cut to it.
        Kind::Json => (SqlType::Varchar(2_000), false),
        Kind::Percentile if arguments.get(2).is_some_and(|(frequency, _)| !is_whole(frequency)) => {
            return Err(
                Error::sql("how often a value counts in PERCENTILE is a whole number").hint("CAST it to BIGINT")
            );
        }
        Kind::Percentile => match arguments.get(1) {
            Some((SqlType::Array(_), _)) => {
                (SqlType::Array(Box::new(RowField::unnamed(number(SqlType::Double)?, true))), true)
            }
            _ => (number(SqlType::Double)?, true),
        },
    })
}

fn is_whole(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Null)
}

/// An aggregate function's name and types.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Definition {
    name: &'static str,
    least: usize,
    most: usize,
    kind: Kind,
    signature: Signature,
}

impl AggregateUDFImpl for Definition {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> datafusion_common::Result<Vec<DataType>> {
        if types.len() < self.least || types.len() > self.most {
            let name = self.name.to_uppercase();
            return Err(outward(Error::sql(format!("{name} takes {} arguments, not {}", self.least, types.len()))));
        }
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> datafusion_common::Result<DataType> {
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
        Ok(self.return_field(&fields)?.data_type().clone())
    }

    fn return_field(&self, fields: &[FieldRef]) -> datafusion_common::Result<FieldRef> {
        let arguments: Vec<(SqlType, bool)> =
            fields.iter().map(|field| (SqlType::of_field(field), field.is_nullable())).collect();
        let (sql_type, nullable) = aggregate_type(self.name, &arguments).map_err(outward)?;
        Ok(Arc::new(sql_type.to_field(self.name, nullable)))
    }

    fn is_nullable(&self) -> bool {
        !matches!(self.kind, Kind::Count | Kind::SumZero | Kind::Multiset | Kind::Json)
    }

    fn default_value(&self, data_type: &DataType) -> datafusion_common::Result<ScalarValue> {
        match self.kind {
            Kind::Count | Kind::SumZero => ScalarValue::new_zero(data_type),
            _ => ScalarValue::try_from(data_type),
        }
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.kind == Kind::List
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> datafusion_common::Result<Box<dyn Accumulator>> {
        Err(outward(Error::bug(format!("{} was to be computed outside of the aggregation operators", self.name))))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> datafusion_common::Result<Vec<FieldRef>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str, sql_type: SqlType) -> String {
        let (sql_type, nullable) = aggregate_type(name, &[(sql_type, true)]).unwrap();
        format!("{sql_type}{}", if nullable { "" } else { " NOT NULL" })
    }

    #[test]
    fn results_have_flinks_types() {
        assert_eq!(typed("sum", SqlType::Int), "INT");
        assert_eq!(typed("AVG", SqlType::TinyInt), "TINYINT");
        assert_eq!(typed("avg", SqlType::Float), "FLOAT");
        assert_eq!(typed("sum", SqlType::Decimal(10, 2)), "DECIMAL(38, 2)");
        assert_eq!(typed("avg", SqlType::Decimal(10, 2)), "DECIMAL(38, 6)");
        assert_eq!(typed("count", SqlType::Date), "BIGINT NOT NULL");
        assert_eq!(typed("collect", SqlType::Int), "MULTISET<INT> NOT NULL");
        assert!(aggregate_type("sum", &[(SqlType::STRING, true)]).is_err());
        assert!(aggregate_type("listagg", &[(SqlType::Int, true)]).is_err());
        for function in aggregate_functions() {
            assert!(aggregate_type(function.name(), &[]).is_ok() == (function.name() == "count"));
        }
    }
}
