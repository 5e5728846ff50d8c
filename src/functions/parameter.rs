//! The kinds of parameters that built-in functions take, which Arrow types each accepts, and how error messages name them.

use arrow::datatypes::{DataType, IntervalUnit};

/// What a parameter accepts; a bare NULL is accepted everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    /// `BOOLEAN`
    Boolean,
    /// A whole number, taken as `INT`.
    Int,
    /// A whole number, taken as `BIGINT`.
    Long,
    /// A number, taken as `DOUBLE`.
    Double,
    /// A number, taken as it is.
    Number,
    /// `CHAR` or `VARCHAR`
    Text,
    /// `BINARY` or `VARBINARY`
    Bytes,
    /// `DATE`, `TIME`, `TIMESTAMP` or `TIMESTAMP_LTZ`
    Temporal,
    /// `INTERVAL …`
    Interval,
    /// `ARRAY<…>`
    Array,
    /// `MAP<…>` or `MULTISET<…>`
    Map,
    /// `ROW<…>`
    Row,
    /// Anything.
    Any,
    /// The inner one, any number of times, at the end of the list.
    Many(&'static Parameter),
}

use Parameter::*;

impl Parameter {
    /// The Arrow type in which the function wants this argument, if it accepts it.
    fn accept(self, given: &DataType) -> Option<DataType> {
        let whole = matches!(given, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64);
        let number = whole || matches!(given, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..));
        let null = *given == DataType::Null;
        match self {
            Boolean => (null || *given == DataType::Boolean).then_some(DataType::Boolean),
            Int => (null || whole).then_some(DataType::Int32),
            Long => (null || whole).then_some(DataType::Int64),
            Double => (null || number).then_some(DataType::Float64),
            Number if null => Some(DataType::Int32),
            Number => number.then(|| given.clone()),
            Text => {
                let fits = matches!(given, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
                (null || fits).then_some(DataType::Utf8)
            }
            Bytes => {
                let fits = matches!(
                    given,
                    DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
                );
                (null || fits).then_some(DataType::Binary)
            }
            Temporal if null => Some(DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, None)),
            Temporal => {
                matches!(given, DataType::Date32 | DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..))
                    .then(|| given.clone())
            }
            Interval if null => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
            Interval => matches!(given, DataType::Interval(_)).then(|| given.clone()),
            Array => (null || matches!(given, DataType::List(_))).then(|| given.clone()),
            Map => (null || matches!(given, DataType::Map(..))).then(|| given.clone()),
            Row => matches!(given, DataType::Struct(_)).then(|| given.clone()),
            Any => Some(given.clone()),
            Many(inner) => inner.accept(given),
        }
    }

    fn describe(self) -> String {
        match self {
            Boolean => "BOOLEAN".into(),
            Int => "INT".into(),
            Long => "BIGINT".into(),
            Double => "DOUBLE".into(),
            Number => "a number".into(),
            Text => "STRING".into(),
            Bytes => "BYTES".into(),
            Temporal => "a date or time".into(),
            Interval => "INTERVAL".into(),
            Array => "ARRAY".into(),
            Map => "MAP".into(),
            Row => "ROW".into(),
            Any => "any type".into(),
            Many(inner) => format!("{} …", inner.describe()),
        }
    }
}

/// The types in which a function with these parameters wants arguments of the types `given`, if it takes them.
pub(super) fn accept(parameters: &[Parameter], given: &[DataType]) -> Option<Vec<DataType>> {
    let repeated = match parameters.last() {
        Some(last @ Many(_)) => Some(*last),
        _ => None,
    };
    let fixed = parameters.len() - usize::from(repeated.is_some());
    if given.len() < fixed || (repeated.is_none() && given.len() > fixed) {
        return None;
    }
    let parameter = |index: usize| if index < fixed { Some(parameters[index]) } else { repeated };
    given.iter().enumerate().map(|(index, data_type)| parameter(index)?.accept(data_type)).collect()
}

/// A parameter list as error messages write it.
pub(super) fn describe(parameters: &[Parameter]) -> String {
    parameters.iter().map(|p| p.describe()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_parameter_takes_any_number_of_arguments() {
        let parameters = [Text, Many(&Text)];
        assert_eq!(accept(&parameters, &[]), None);
        assert_eq!(accept(&parameters, &[DataType::Utf8]), Some(vec![DataType::Utf8]));
        assert_eq!(accept(&parameters, &[DataType::Utf8View, DataType::Null]), Some(vec![DataType::Utf8; 2]));
        assert_eq!(accept(&parameters, &[DataType::Utf8, DataType::Int32]), None);
        assert_eq!(describe(&parameters), "STRING, STRING …");
    }
}
