//! SQL types, their Arrow form, and how a cell prints.
//!
//! Rows live in Arrow columns, and most SQL types are an Arrow type. What Arrow cannot say (the length of a `CHAR(3)`,
//! the precision of a `TIMESTAMP(1)`, that a map is a multiset) rides along as field metadata under
//! `sql_type::TYPE_KEY`, so that it survives projections and views and is there when a cell prints.

mod aggregate;
mod bitmap;
mod cell;
mod conflict;
mod frame;
mod join;
mod local_time;
mod over;
mod rank;
mod sql_type;
mod time_zone;
mod watermark;
mod window;

pub use aggregate::{AggregateCall, AggregateFunction, Fraction, MiniBatch, ProgramAggregate};
pub use bitmap::{read_bitmap, write_bitmap};
pub use cell::{CellFormat, RowFormat};
pub use conflict::OnConflict;
pub use frame::{Frame, FrameBound, FrameCall, FrameFunction, FrameUnits};
pub use join::{JoinKind, NullKeys, SetOperation, Versions};
pub use local_time::LocalTime;
pub use over::{OverCall, OverFrame};
pub use rank::{RankFunction, RankInput, SortColumn};
pub use sql_type::{RowField, SqlType};
pub use time_zone::TimeZone;
pub use watermark::{Alignment, WatermarkPolicy};
pub use window::{Emission, Firing, WindowColumn, WindowSpec, WindowTime};
