//! Changes: what a dynamic table is made of, and the one notation for them.
//!
//! A table that changes is a sequence of changes: a row comes (`+I`), leaves (`-D`), or is replaced, which is two
//! changes side by side, the old image (`-U`) and the new one (`+U`). Counting clicks by user turns
//!
//! ```text
//! Mary, Bob, Mary      into      +I[Mary, 1]  +I[Bob, 1]  -U[Mary, 1]  +U[Mary, 2]
//! ```
//!
//! Applied in order to an empty table, the changes give the answer a batch query would give: `Bob 1, Mary 2`. A condition
//! may let one image of an update pass without the other: then a `-U` stands alone and means that the row is gone, a `+U`
//! alone that it has come.
//!
//! Changes travel in batches ([`ChangeBatch`]) of Arrow columns; a batch of plain inserts has no per-row kinds.
//! On an edge between operators they alternate with watermarks and barriers ([`Event`]).

mod batch;
mod event;
mod kind;
mod mode;
pub mod notation;

pub use batch::{ChangeBatch, Kinds};
pub use event::{CheckpointId, Cut, Event, Watermark};
pub use kind::Kind;
pub use mode::ChangelogMode;
