//! From an aggregate call to its accumulator: the one place that knows every function and type.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::datatypes::{DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema};

use super::cardinality::Cardinality;
use super::collected::{Arranged, Arrived, Collect, Counted, Extreme};
use super::extremes::{Keep, Kept, Single};
use super::kernel::{Accumulator, Driven, Kernel};
use super::numeric::{Average, Count, Decimals, Plain, Sum};
use super::ordered::Ordered;
use super::percentile::Percentile;
use super::program::Program;
use super::variance::{Spread, Variance};
use crate::error::{Error, Result};
use crate::state::with_codec;
use crate::types::{AggregateCall, AggregateFunction};

fn driven<K: Kernel + 'static>(kernel: K, output: &DataType) -> Box<dyn Accumulator> {
    Box::new(Driven::new(kernel, output.clone()))
}

/// The accumulator of a call over columns of `input`.
///
/// # Errors
/// If the function does not take the argument's type.
pub(super) fn accumulator(call: &AggregateCall, input: &Schema, append_only: bool) -> Result<Box<dyn Accumulator>> {
    let output = call.output.data_type();
    let argument = match call.arguments.first() {
        Some(column) => input.field(*column).data_type(),
        None if call.function == AggregateFunction::Count => return Ok(driven(Count::default(), output)),
        None => return Err(Error::bug(format!("{:?} without an argument", call.function))),
    };
    if !call.order.is_empty() {
        let arranged = arranged(&call.function, output)?;
        let ordered = Ordered::new(input, call.arguments[0], &call.order, arranged, call.distinct, !append_only)?;
        return Ok(driven(ordered, output));
    }
    // DISTINCT retracts a value only when its last copy goes, which cannot happen in append-only input either.
    Ok(match &call.function {
        AggregateFunction::Count => driven(Count::default(), output),
        AggregateFunction::ApproximateCountDistinct if append_only => driven(Cardinality::default(), output),
        AggregateFunction::ApproximateCountDistinct => driven(Count::default(), output),
        AggregateFunction::Program(function) => Box::new(Program::new(&function.0, call, input, append_only)?),
        AggregateFunction::Sum => sum(argument, output, false)?,
        AggregateFunction::SumZero => sum(argument, output, true)?,
        AggregateFunction::Avg => average(argument, output)?,
        AggregateFunction::Min => extreme(argument, output, false, append_only || call.monotone)?,
        AggregateFunction::Max => extreme(argument, output, true, append_only || call.monotone)?,
        AggregateFunction::FirstValue if append_only => kept(Keep::First, argument, output)?,
        AggregateFunction::LastValue if append_only => kept(Keep::Last, argument, output)?,
        AggregateFunction::FirstValue
        | AggregateFunction::LastValue
        | AggregateFunction::ListAgg { .. }
        | AggregateFunction::ArrayAgg
        | AggregateFunction::JsonArray => {
            driven(Arrived::new(argument, arranged(&call.function, output)?, !append_only)?, output)
        }
        AggregateFunction::JsonObject => {
            with_codec!(argument, K => driven(Collect::<K>::new(argument, Counted::Object)?, output))
        }
        AggregateFunction::Percentile { fractions, list } => driven(Percentile::new(fractions, *list)?, output),
        AggregateFunction::Collect => {
            with_codec!(argument, K => driven(Collect::<K>::new(argument, Counted::Map(output.clone()))?, output))
        }
        AggregateFunction::Variance { sample } => variance(argument, output, Spread { sample: *sample, root: false })?,
        AggregateFunction::StandardDeviation { sample } => {
            variance(argument, output, Spread { sample: *sample, root: true })?
        }
        AggregateFunction::SingleValue => driven(Single::new(argument)?, output),
    })
}

/// Whether everything that the accumulator of a call keeps is in its columns of state.
pub(super) fn merges_by_columns(call: &AggregateCall, append_only: bool) -> bool {
    match call.function {
        AggregateFunction::Count
        | AggregateFunction::Sum
        | AggregateFunction::SumZero
        | AggregateFunction::Avg
        | AggregateFunction::Variance { .. }
        | AggregateFunction::StandardDeviation { .. } => !call.distinct,
        // The least and greatest of a set are those of all values.
        AggregateFunction::Min | AggregateFunction::Max => append_only || call.monotone,
        _ => false,
    }
}

/// What a function makes of values that stand in an order.
fn arranged(function: &AggregateFunction, output: &DataType) -> Result<Arranged> {
    Ok(match (function, output) {
        (AggregateFunction::FirstValue, _) => Arranged::First,
        (AggregateFunction::LastValue, _) => Arranged::Last,
        (AggregateFunction::ListAgg { separator }, _) => Arranged::Joined(separator.clone()),
        (AggregateFunction::ArrayAgg, DataType::List(item)) => Arranged::Listed(Arc::clone(item)),
        (AggregateFunction::JsonArray, _) => Arranged::JsonArray,
        (other, output) => return Err(Error::bug(format!("{other:?} makes no {output} of an order"))),
    })
}

fn refused(function: &str, argument: &DataType) -> Error {
    Error::sql(format!("{function} does not take values of type {argument}")).hint("cast the argument to a number")
}

fn sum(argument: &DataType, output: &DataType, zero: bool) -> Result<Box<dyn Accumulator>> {
    Ok(match argument {
        DataType::Int8 => driven(Sum::new(Plain::<Int8Type, false>(PhantomData), zero), output),
        DataType::Int16 => driven(Sum::new(Plain::<Int16Type, false>(PhantomData), zero), output),
        DataType::Int32 => driven(Sum::new(Plain::<Int32Type, false>(PhantomData), zero), output),
        DataType::Int64 => driven(Sum::new(Plain::<Int64Type, false>(PhantomData), zero), output),
        DataType::Float32 => driven(Sum::new(Plain::<Float32Type, true>(PhantomData), zero), output),
        DataType::Float64 => driven(Sum::new(Plain::<Float64Type, true>(PhantomData), zero), output),
        DataType::Decimal128(_, scale) => driven(Sum::new(decimals(*scale, output, false)?, zero), output),
        other => return Err(refused("SUM", other)),
    })
}

fn average(argument: &DataType, output: &DataType) -> Result<Box<dyn Accumulator>> {
    Ok(match argument {
        DataType::Int8 => driven(Sum::new(Average::<Int8Type>(PhantomData), false), output),
        DataType::Int16 => driven(Sum::new(Average::<Int16Type>(PhantomData), false), output),
        DataType::Int32 => driven(Sum::new(Average::<Int32Type>(PhantomData), false), output),
        DataType::Int64 => driven(Sum::new(Average::<Int64Type>(PhantomData), false), output),
        DataType::Float32 => driven(Sum::new(Average::<Float32Type>(PhantomData), false), output),
        DataType::Float64 => driven(Sum::new(Average::<Float64Type>(PhantomData), false), output),
        DataType::Decimal128(_, scale) => driven(Sum::new(decimals(*scale, output, true)?, false), output),
        other => return Err(refused("AVG", other)),
    })
}

fn decimals(scale: i8, output: &DataType, average: bool) -> Result<Decimals> {
    match output {
        DataType::Decimal128(precision, digits) => Ok(Decimals { scale, output: (*precision, *digits), average }),
        other => Err(Error::bug(format!("a sum of decimals is a decimal, not {other}"))),
    }
}

fn extreme(argument: &DataType, output: &DataType, greatest: bool, append_only: bool) -> Result<Box<dyn Accumulator>> {
    if append_only {
        return kept(if greatest { Keep::Greatest } else { Keep::Least }, argument, output);
    }
    with_codec!(argument, K => Ok(driven(Extreme::<K>::new(argument, greatest)?, output)))
}

fn kept(keep: Keep, argument: &DataType, output: &DataType) -> Result<Box<dyn Accumulator>> {
    with_codec!(argument, K => Ok(driven(Kept::<K>::new(keep, argument)?, output)))
}

fn variance(argument: &DataType, output: &DataType, spread: Spread) -> Result<Box<dyn Accumulator>> {
    Ok(match argument {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            driven(Variance::<i128>::new(spread, 0, output.clone()), output)
        }
        DataType::Decimal128(_, scale) => driven(Variance::<i128>::new(spread, *scale, output.clone()), output),
        DataType::Float32 | DataType::Float64 => driven(Variance::<f64>::new(spread, 0, output.clone()), output),
        other => return Err(refused("VAR_POP and its like", other)),
    })
}
