//! The functions that have a meaning only with `OVER`, as definitions: names, parameters and result types. The engine's
//! operators compute them, so none has an evaluator of its own.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};

use super::function::outward;
use crate::error::{Error, Result};
use crate::types::SqlType;

/// How a window function is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// A whole number, never NULL.
    Position,
    /// A fraction, never NULL.
    Share,
    /// A value of the first argument.
    Value,
}

/// Names, least and most arguments, typing.
const FUNCTIONS: [(&str, usize, usize, Kind); 11] = [
    ("row_number", 0, 0, Kind::Position),
    ("rank", 0, 0, Kind::Position),
    ("dense_rank", 0, 0, Kind::Position),
    ("ntile", 1, 1, Kind::Position),
    ("percent_rank", 0, 0, Kind::Share),
    ("cume_dist", 0, 0, Kind::Share),
    ("lag", 1, 3, Kind::Value),
    ("lead", 1, 3, Kind::Value),
    ("first_value", 1, 1, Kind::Value),
    ("last_value", 1, 1, Kind::Value),
    ("nth_value", 2, 2, Kind::Value),
];

/// All window functions.
pub fn window_functions() -> Vec<Arc<WindowUDF>> {
    let build = |(name, least, most, kind)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(WindowUDF::new_from_impl(Definition { name, least, most, kind, signature }))
    };
    FUNCTIONS.into_iter().map(build).collect()
}

/// Their names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, ..)| *name)
}

/// A window function's name and types.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Definition {
    name: &'static str,
    least: usize,
    most: usize,
    kind: Kind,
    signature: Signature,
}

impl Definition {
    fn check(&self, arguments: usize) -> Result<()> {
        if (self.least..=self.most).contains(&arguments) {
            return Ok(());
        }
        let name = self.name.to_uppercase();
        let wanted =
            if self.least == self.most { self.least.to_string() } else { format!("{} to {}", self.least, self.most) };
        Err(Error::sql(format!("{name} takes {wanted} arguments, not {arguments}")))
    }
}

impl WindowUDFImpl for Definition {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> datafusion_common::Result<Vec<DataType>> {
        self.check(types.len()).map_err(outward)?;
        Ok(types.to_vec())
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> datafusion_common::Result<FieldRef> {
        self.check(arguments.input_fields().len()).map_err(outward)?;
        let (sql_type, nullable) = match (self.kind, arguments.input_fields()) {
            (Kind::Position, _) => (SqlType::BigInt, false),
            (Kind::Share, _) => (SqlType::Double, false),
            // LAG and LEAD with a default are NULL only where the value or the default is.
            (Kind::Value, [value, _, default]) => {
                (SqlType::of_field(value), value.is_nullable() || default.is_nullable())
            }
            (Kind::Value, [value, ..]) => (SqlType::of_field(value), true),
            (Kind::Value, []) => (SqlType::Null, true),
        };
        Ok(Arc::new(sql_type.to_field(arguments.name(), nullable)))
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> datafusion_common::Result<Box<dyn PartitionEvaluator>> {
        Err(outward(Error::bug(format!("{} was to be computed by an operator", self.name))))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;

    fn typed(name: &str, arguments: &[(SqlType, bool)]) -> String {
        let fields: Vec<FieldRef> =
            arguments.iter().map(|(t, nullable)| Arc::new(t.to_field("a", *nullable))).collect();
        let function = window_functions().into_iter().find(|function| function.name() == name).unwrap();
        let field: Arc<Field> = match function.field(WindowUDFFieldArgs::new(&fields, "w")) {
            Ok(field) => field,
            Err(error) => return error.strip_backtrace(),
        };
        format!("{}{}", SqlType::of_field(&field), if field.is_nullable() { "" } else { " NOT NULL" })
    }

    #[test]
    fn results_have_flinks_types() {
        assert_eq!(typed("row_number", &[]), "BIGINT NOT NULL");
        assert_eq!(typed("cume_dist", &[]), "DOUBLE NOT NULL");
        assert_eq!(typed("lag", &[(SqlType::Int, false)]), "INT");
        let with_default = [(SqlType::Int, false), (SqlType::Int, false), (SqlType::Int, false)];
        assert_eq!(typed("lag", &with_default), "INT NOT NULL");
        assert!(typed("rank", &[(SqlType::Int, false)]).contains("RANK takes 0 arguments, not 1"));
        assert!(typed("lead", &[]).contains("LEAD takes 1 to 3 arguments, not 0"));
    }
}
