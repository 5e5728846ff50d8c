//! Every bound in one place, with how they relate.

/// Rows a source or operator puts into one batch: large enough to amortise a call, small enough for the cache.
pub const BATCH_ROWS: usize = 8_192;

/// Rows that may wait in one channel between two tasks; a sender waits when they are exceeded.
pub const CHANNEL_ROWS: usize = 8 * BATCH_ROWS;

/// Events (watermarks, barriers, small batches) that may wait in one channel.
pub const CHANNEL_EVENTS: usize = 256;

/// Key groups of a job: the ceiling of its parallelism and the unit of rescaling (`pipeline.max-parallelism`).
pub const KEY_GROUPS: u16 = 128;

/// Bytes a text source reads at once.
pub const READ_BYTES: usize = 1 << 20;

/// The longest single text row (a JSON line, a CSV record).
pub const RECORD_BYTES: usize = 256 << 20;

/// Bytes of text that go into one batch at most before it counts as full; with one more record they must stay below the
/// 2 GiB that a column of 32-bit offsets can hold.
pub const BATCH_BYTES: usize = 64 << 20;

/// The longest SQL text of one script.
pub const SQL_BYTES: usize = 16 << 20;

/// How deep SQL may nest before the parser refuses it.
pub const SQL_DEPTH: usize = 256;

/// How deep one expression or union may be: each OR, AND or UNION makes the tree one level deeper, and binding takes
/// time with the square of it.
pub const SQL_OPERATORS: usize = 1_000;

/// How many other operators may follow each other (`a + b + …`): binding names every partial result, which takes time
/// with the cube of it.
pub const SQL_CHAIN: usize = 200;

/// How deep views may be nested in views.
pub const VIEW_DEPTH: usize = 64;

/// Stack of the thread a statement is planned on: binding and planning recurse with the nesting of the SQL, and the
/// limits on that nesting must fit whatever it is. Only what is used takes memory.
pub const STACK_BYTES: usize = 256 << 20;

/// Characters of a piece of data quoted in an error message.
pub const QUOTED_CHARACTERS: usize = 120;

const _: () = assert!(CHANNEL_ROWS >= BATCH_ROWS, "a channel must hold at least one full batch");
const _: () = assert!(BATCH_BYTES + RECORD_BYTES < 1 << 31, "a batch's text must fit 32-bit offsets");
const _: () = assert!(RECORD_BYTES >= READ_BYTES, "one read must be able to hold a record");
