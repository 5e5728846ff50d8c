//! Values as ordered keys: whole numbers where the type allows it, else Arrow's row form, whose bytes sort as the values.
//!
//! MIN, MAX, DISTINCT and their like are written once over [`CodecKey`] and compiled for each form.

use std::borrow::Borrow;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};

use super::key_store::{from_integers, is_integer_like, normalise, to_integers};
use crate::error::{Error, Result};

/// An owned, ordered form of a value.
pub trait CodecKey: Borrow<Self::View> + Ord + Clone + Debug + Send + 'static {
    /// What a column of keys shows of a row without allocating.
    type View: ?Sized + Ord + Eq;
    /// A column of keys.
    type Column;

    /// The keys of a column; the key under a NULL means nothing, except in the row form, which holds NULL.
    ///
    /// # Errors
    /// If a value does not go over.
    fn encode(codec: &Codec<Self>, array: &ArrayRef) -> Result<Self::Column>;

    /// The key of a row.
    fn view(column: &Self::Column, row: usize) -> &Self::View;

    /// The view as a key of its own.
    fn own(view: &Self::View) -> Self;

    /// Bytes of the key that lie elsewhere.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// The values of keys, `None` as NULL.
    ///
    /// # Errors
    /// If saved state holds something that is no value.
    fn decode(codec: &Codec<Self>, keys: &[Option<Self>]) -> Result<ArrayRef>;
}

/// Brings a column's values to keys and back.
#[derive(Debug)]
pub struct Codec<K> {
    data_type: DataType,
    converter: RowConverter,
    key: PhantomData<K>,
}

impl<K: CodecKey> Codec<K> {
    /// A codec for values of this type, in a form that suits it (see [`with_codec`]).
    ///
    /// # Errors
    /// If values of the type cannot be ordered.
    pub fn new(data_type: &DataType) -> Result<Codec<K>> {
        let field = SortField::new(data_type.clone());
        if !RowConverter::supports_fields(std::slice::from_ref(&field)) {
            return Err(Error::sql(format!("values of type {data_type} cannot be kept in an aggregate")));
        }
        Ok(Codec { data_type: data_type.clone(), converter: RowConverter::new(vec![field])?, key: PhantomData })
    }

    /// The type of the values.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The keys of a column.
    ///
    /// # Errors
    /// If a value does not go over.
    pub fn encode(&self, array: &ArrayRef) -> Result<K::Column> {
        if array.data_type() != &self.data_type {
            return Err(Error::state(format!("a column of type {} where {} was", array.data_type(), self.data_type)));
        }
        K::encode(self, array)
    }

    /// The values of keys.
    ///
    /// # Errors
    /// If saved state holds something that is no value.
    pub fn decode(&self, keys: &[Option<K>]) -> Result<ArrayRef> {
        K::decode(self, keys)
    }
}

/// Runs `$body` with `$key` standing for the key form that suits `$data_type`.
macro_rules! with_codec {
    ($data_type:expr, $key:ident => $body:expr) => {
        match $data_type {
            arrow::datatypes::DataType::Decimal128(_, _) => {
                type $key = i128;
                $body
            }
            arrow::datatypes::DataType::Int8
            | arrow::datatypes::DataType::Int16
            | arrow::datatypes::DataType::Int32
            | arrow::datatypes::DataType::Int64
            | arrow::datatypes::DataType::Boolean
            | arrow::datatypes::DataType::Float32
            | arrow::datatypes::DataType::Float64
            | arrow::datatypes::DataType::Date32
            | arrow::datatypes::DataType::Time32(_)
            | arrow::datatypes::DataType::Time64(_)
            | arrow::datatypes::DataType::Timestamp(_, _) => {
                type $key = i64;
                $body
            }
            _ => {
                type $key = std::sync::Arc<[u8]>;
                $body
            }
        }
    };
}
pub(crate) use with_codec;

/// A float's bits so changed that they order as the float does; its own inverse.
fn ordered_bits(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The number that a key of a `Float64` column stands for.
pub fn float_of(key: i64) -> f64 {
    f64::from_bits(ordered_bits(key) as u64)
}

impl CodecKey for i64 {
    type View = i64;
    type Column = ScalarBuffer<i64>;

    fn encode(codec: &Codec<i64>, array: &ArrayRef) -> Result<ScalarBuffer<i64>> {
        if is_integer_like(&codec.data_type) {
            return Ok(to_integers(array)?.values().clone());
        }
        let wide = cast(&normalise(array), &DataType::Float64)?;
        let bits: Int64Array = wide.as_primitive::<Float64Type>().unary(|x| ordered_bits(x.to_bits() as i64));
        Ok(bits.values().clone())
    }

    #[inline]
    fn view(column: &ScalarBuffer<i64>, row: usize) -> &i64 {
        &column[row]
    }

    #[inline]
    fn own(view: &i64) -> i64 {
        *view
    }

    fn decode(codec: &Codec<i64>, keys: &[Option<i64>]) -> Result<ArrayRef> {
        let integers: Int64Array = keys.iter().copied().collect();
        if is_integer_like(&codec.data_type) {
            return from_integers(integers, &codec.data_type);
        }
        let floats: Float64Array = integers.unary(|bits| f64::from_bits(ordered_bits(bits) as u64));
        Ok(cast(&floats, &codec.data_type)?)
    }
}

impl CodecKey for i128 {
    type View = i128;
    type Column = ScalarBuffer<i128>;

    fn encode(_codec: &Codec<i128>, array: &ArrayRef) -> Result<ScalarBuffer<i128>> {
        Ok(array.as_primitive::<Decimal128Type>().values().clone())
    }

    #[inline]
    fn view(column: &ScalarBuffer<i128>, row: usize) -> &i128 {
        &column[row]
    }

    #[inline]
    fn own(view: &i128) -> i128 {
        *view
    }

    fn decode(codec: &Codec<i128>, keys: &[Option<i128>]) -> Result<ArrayRef> {
        let decimals: Decimal128Array = keys.iter().copied().collect();
        Ok(Arc::new(decimals.with_data_type(codec.data_type.clone())))
    }
}

/// Bytes of a shared run of bytes with its two counters.
pub(super) fn shared_bytes(bytes: &[u8]) -> usize {
    bytes.len() + 16
}

impl CodecKey for Arc<[u8]> {
    type View = [u8];
    type Column = Rows;

    fn encode(codec: &Codec<Arc<[u8]>>, array: &ArrayRef) -> Result<Rows> {
        Ok(codec.converter.convert_columns(std::slice::from_ref(array))?)
    }

    #[inline]
    fn view(column: &Rows, row: usize) -> &[u8] {
        column.row(row).data()
    }

    fn own(view: &[u8]) -> Arc<[u8]> {
        view.into()
    }

    fn heap_bytes(&self) -> usize {
        shared_bytes(self)
    }

    fn decode(codec: &Codec<Arc<[u8]>>, keys: &[Option<Arc<[u8]>>]) -> Result<ArrayRef> {
        let null = arrow::array::new_null_array(&codec.data_type, 1);
        let null = codec.converter.convert_columns(&[null])?;
        let parser = codec.converter.parser();
        let rows = keys.iter().map(|key| match key {
            Some(bytes) => parser.parse(bytes),
            None => null.row(0),
        });
        let mut columns = codec.converter.convert_rows(rows)?;
        columns.pop().ok_or_else(|| Error::bug("a row converter of one column gave none"))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, BooleanArray, Date32Array, Float32Array, StringArray, Time32SecondArray};

    use super::*;

    fn check<K: CodecKey>(array: ArrayRef) {
        let codec = Codec::<K>::new(array.data_type()).unwrap();
        let column = codec.encode(&array).unwrap();
        let keys: Vec<Option<K>> =
            (0..array.len()).map(|row| array.is_valid(row).then(|| K::own(K::view(&column, row)))).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(&codec.decode(&keys).unwrap(), &array);
    }

    #[test]
    fn keys_order_as_values_and_come_back() {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![None, Some(i64::MIN), Some(-1), Some(i64::MAX)])),
            Arc::new(BooleanArray::from(vec![None, Some(false), Some(true)])),
            Arc::new(Float32Array::from(vec![f32::NEG_INFINITY, -1.5, 0.0, 1e-40, 2.5, f32::INFINITY])),
            Arc::new(Date32Array::from(vec![-1, 0, 20_000])),
            Arc::new(Time32SecondArray::from(vec![0, 86_399])),
            Arc::new(Decimal128Array::from(vec![-5, 0, 10_i128.pow(30)]).with_data_type(DataType::Decimal128(38, 2))),
            Arc::new(StringArray::from(vec![None, Some(""), Some("a"), Some("a "), Some("ab"), Some("ß")])),
            Arc::new(BinaryArray::from(vec![&b""[..], &[0], &[0, 0], &[255]])),
        ];
        for array in arrays {
            with_codec!(array.data_type(), K => check::<K>(array));
        }
    }
}
