//! `BITMAP` as it is kept: the portable form of Roaring bitmaps, in which equal sets have equal bytes.

use std::fmt::Write;

use roaring::RoaringBitmap;

use crate::error::{Error, ErrorKind, Result};

/// The set that the bytes hold.
///
/// # Errors
/// If they are no bitmap.
pub fn read_bitmap(bytes: &[u8]) -> Result<RoaringBitmap> {
    let bitmap = RoaringBitmap::deserialize_from(bytes);
    bitmap.map_err(|error| Error::new(ErrorKind::Data, format!("these bytes are no BITMAP: {error}")))
}

/// Appends the set's numbers as Flink shows them: `{1,2}`.
///
/// # Errors
/// If the bytes are no bitmap.
pub fn write_bitmap(bytes: &[u8], to: &mut String) -> Result<()> {
    to.push('{');
    for (index, number) in read_bitmap(bytes)?.iter().enumerate() {
        // Writing to a text cannot fail.
        let _ = write!(to, "{}{number}", if index > 0 { "," } else { "" });
    }
    to.push('}');
    Ok(())
}
