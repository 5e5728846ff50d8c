//! Text put together: CONCAT, CONCAT_WS, `||` (as `flink_concat`), ELT.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryBuilder};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::functions::column::{slices, texts};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Bytes, Int, Many, Text};
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const OPERATOR: &[&[Parameter]] = &[&[Text, Text], &[Bytes, Bytes]];
    vec![
        Entry::new(&["concat"], &[&[Text, Many(&Text)]], Typing::Fixed(SqlType::STRING), concat),
        Entry::new(&["concat_ws"], &[&[Text, Text, Many(&Text)]], Typing::Fixed(SqlType::STRING), concat_ws),
        Entry::new(&["flink_concat"], OPERATOR, Typing::By(operator_type), |call| {
            if *call.arguments[0].data_type() == DataType::Binary { concat_bytes(call) } else { concat(call) }
        }),
        Entry::new(&["elt"], &[&[Int, Text, Many(&Text)], &[Int, Bytes, Many(&Bytes)]], Typing::By(elt_type), elt),
    ]
}

/// The lengths of the operands of `||` add up.
fn operator_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let sum = |left: u32, right: u32| left.saturating_add(right).min(i32::MAX as u32);
    let sql_type = match (arguments.sql_type(0), arguments.sql_type(1)) {
        (SqlType::Char(l), SqlType::Char(r)) => SqlType::Char(sum(l, r)),
        (SqlType::Char(l) | SqlType::Varchar(l), SqlType::Char(r) | SqlType::Varchar(r)) => SqlType::Varchar(sum(l, r)),
        (SqlType::Binary(l), SqlType::Binary(r)) => SqlType::Binary(sum(l, r)),
        (SqlType::Binary(l) | SqlType::Varbinary(l), SqlType::Binary(r) | SqlType::Varbinary(r)) => {
            SqlType::Varbinary(sum(l, r))
        }
        _ => SqlType::STRING,
    };
    Ok((sql_type, arguments.nullable()))
}

fn concat(call: &Call<'_>) -> Result<ArrayRef> {
    let parts = (0..call.arguments.len()).map(|index| call.text(index)).collect::<Result<Vec<_>>>()?;
    texts(call, |row, to| parts.iter().try_for_each(|part| part.get(row).map(|text| to.push_str(text))))
}

fn concat_bytes(call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (call.bytes(0)?, call.bytes(1)?);
    crate::functions::column::try_binaries(call, |row, to| {
        let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
        to.extend_from_slice(left);
        to.extend_from_slice(right);
        Ok(Some(()))
    })
}

/// NULLs among the parts are left out; a NULL separator has no result.
fn concat_ws(call: &Call<'_>) -> Result<ArrayRef> {
    let parts = (0..call.arguments.len()).map(|index| call.text(index)).collect::<Result<Vec<_>>>()?;
    texts(call, |row, to| {
        let separator = parts[0].get(row)?;
        for (index, part) in parts[1..].iter().filter_map(|part| part.get(row)).enumerate() {
            if index > 0 {
                to.push_str(separator);
            }
            to.push_str(part);
        }
        Some(())
    })
}

fn elt_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    if let Some(index) = arguments.constant_integer(0).filter(|index| *index < 0) {
        return Err(Error::sql(format!("ELT counts from 1, not from {index}")));
    }
    let text = arguments.sql_type(1).is_text() || arguments.sql_type(1) == SqlType::Null;
    Ok((if text { SqlType::STRING } else { SqlType::BYTES }, true))
}

fn elt(call: &Call<'_>) -> Result<ArrayRef> {
    let index = call.int(0)?;
    let choice = |row: usize| {
        let index = usize::try_from(index.get(row)?).ok()?;
        (index > 0 && index < call.arguments.len()).then_some(index)
    };
    if *call.arguments[1].data_type() == DataType::Binary {
        let choices = (1..call.arguments.len()).map(|i| call.bytes(i)).collect::<Result<Vec<_>>>()?;
        let mut builder = BinaryBuilder::new();
        (0..call.rows).for_each(|row| builder.append_option(choice(row).and_then(|i| choices[i - 1].get(row))));
        return Ok(Arc::new(builder.finish()) as Arc<dyn Array>);
    }
    let choices = (1..call.arguments.len()).map(|i| call.text(i)).collect::<Result<Vec<_>>>()?;
    slices(call, |row| choice(row).and_then(|i| choices[i - 1].get(row)))
}
