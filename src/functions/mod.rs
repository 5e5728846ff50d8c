//! Stub to be replaced by the functions branch.
mod set;
pub use set::FunctionSet;
use crate::error::Result;
use crate::types::SqlType;
use arrow::datatypes::{DataType, Field};
use datafusion_expr::ScalarUDF;
use std::sync::Arc;
#[derive(Debug, Clone, Copy)]
pub enum ArithmeticOperator { Plus, Minus, Multiply, Divide, Modulo, Negate }
pub fn arithmetic(_o: ArithmeticOperator, _l: &Field, _r: &Field) -> Option<Arc<ScalarUDF>> { None }
pub fn arithmetic_type(_o: ArithmeticOperator, l: &SqlType, _r: &SqlType) -> Result<SqlType> { Ok(l.clone()) }
pub fn common_type(t: &[SqlType]) -> Option<SqlType> { t.first().cloned() }
pub fn comparison_type(l: &SqlType, _r: &SqlType, _equality: bool) -> Result<SqlType> { Ok(l.clone()) }
pub fn assignable(_f: &SqlType, _t: &SqlType) -> bool { true }
pub fn pack_window(_target: DataType) -> Arc<ScalarUDF> { todo!() }
impl FunctionSet { pub fn cast(&self, _f: &Field, _t: &SqlType, _try: bool) -> Result<Option<Arc<ScalarUDF>>> { Ok(None) } }
