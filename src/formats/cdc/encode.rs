//! Writes changes as messages: inserts and deletes, a row each.

use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::formats::Encoder;
use crate::formats::json::{JsonOptions, RowWriter};

/// What stands around a row.
pub(super) struct Frame {
    pub before: &'static str,
    pub after: &'static str,
}

/// The frames of one format.
pub(super) struct Frames {
    pub insert: Frame,
    pub delete: Frame,
    /// As [`Frames::insert`] when members that are NULL are left out.
    pub bare_insert: Frame,
    /// As [`Frames::delete`] when members that are NULL are left out.
    pub bare_delete: Frame,
}

struct ChangeEncoder {
    options: JsonOptions,
    frames: &'static Frames,
}

/// The encoder of the format `name`.
pub(super) fn open(name: &str, frames: &'static Frames, options: &Options) -> Result<Box<dyn Encoder>> {
    Ok(Box::new(ChangeEncoder { options: JsonOptions::read(name, options)?, frames }))
}

impl Encoder for ChangeEncoder {
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()> {
        let writer = RowWriter::new(batch, &self.options)?;
        let (insert, delete) = match self.options.ignore_null_fields {
            true => (&self.frames.bare_insert, &self.frames.bare_delete),
            false => (&self.frames.insert, &self.frames.delete),
        };
        for row in 0..batch.len() {
            let frame = if batch.kind(row).is_retraction() { delete } else { insert };
            to.extend_from_slice(frame.before.as_bytes());
            writer.write(row, to)?;
            to.extend_from_slice(frame.after.as_bytes());
            to.push(b'\n');
        }
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "json"
    }
}
