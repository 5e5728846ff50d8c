//! `flink_bucket(x, n)`: a number from 0 to n - 1 that equal values share, for the planner alone.

use std::sync::Arc;

use arrow::array::{AsArray, Int32Array};
use arrow::datatypes::{DataType, Int32Type};
use arrow::row::{RowConverter, SortField};
use datafusion_common::Result;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The function.
pub fn bucket() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Bucket { signature: Signature::any(2, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bucket {
    signature: Signature,
}

impl ScalarUDFImpl for Bucket {
    fn name(&self) -> &str {
        "flink_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&call.args)?;
        let parts = arrays[1].as_primitive::<Int32Type>();
        let converter = RowConverter::new(vec![SortField::new(arrays[0].data_type().clone())])?;
        let values = converter.convert_columns(&arrays[..1])?;
        let bucket = |(row, parts): (arrow::row::Row<'_>, &i32)| {
            let parts = u64::from(parts.unsigned_abs().max(1));
            i32::try_from(xxhash_rust::xxh3::xxh3_64(row.data()) % parts).unwrap_or_default()
        };
        let buckets = Int32Array::from_iter_values(values.iter().zip(parts.values()).map(bucket));
        Ok(ColumnarValue::Array(Arc::new(buckets)))
    }
}
