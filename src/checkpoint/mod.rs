//! Checkpoints on disk: what makes exactly once survive a crash.
//!
//! Nothing here runs the job; the runtime's coordinator collects what tasks hand over at a barrier and calls, for
//! checkpoint 7:
//!
//! ```text
//! append(7, deltas)       state files: written, synced, read back           (crash: nobody names them; collected)
//! publish(manifest 7)     temporary, synced, read back, renamed, synced     (crash before the rename: 6 counts)
//!                         ── the decision ──                                 (crash after it: 7 counts)
//! sinks commit            outside this folder; repeatable
//! confirm(7)              the note                                           (crash before it: sinks commit again)
//! retain(1)               6 is deleted, then the files only 6 named
//! ```
//!
//! After a crash [`Store::recover`] finds the newest whole checkpoint ([`recovery`] has the rules), the runtime lets
//! the sinks commit what it names, and the operators get their state back, at whatever parallelism.

pub mod disk;
pub mod inspect;
mod kept_file;
mod lease;
pub mod manifest;
pub mod recovery;
pub mod state_file;
mod store;

#[cfg(test)]
mod pretend_disk;
#[cfg(test)]
mod tests;

pub use kept_file::KeptFile;
pub use lease::new_lineage;
pub use store::Store;
