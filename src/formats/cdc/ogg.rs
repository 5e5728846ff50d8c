//! The `ogg-json` format: changes as Oracle GoldenGate sends them.
//!
//! `{"before":null,"after":{…},"op_type":"I"}` is an insert, `D` a delete of `before`, and `U` an update from `before` to
//! `after`.

use super::decode::{self, Change, Dialect};
use super::encode::{self, Frame, Frames};
use super::message::{missing, parts};
use super::{MODES, SHARED_OPTIONS};
use crate::changelog::Kind;
use crate::formats::fault::Fault;
use crate::formats::{Format, MakeDecoder};

/// Its line in the list.
pub(in crate::formats) const FORMAT: Format = Format {
    name: Ogg::NAME,
    options: SHARED_OPTIONS,
    modes: MODES,
    decoder: MakeDecoder::OfRecords(|options, wanted| decode::open(Ogg, options, wanted)),
    encoder: |options, _| encode::open(Ogg::NAME, &FRAMES, options),
};

struct Ogg;

impl Dialect for Ogg {
    const NAME: &'static str = "ogg-json";

    fn changes(&mut self, line: &[u8], to: &mut Vec<Change>) -> Result<(), Fault> {
        let [before, after, operation] = parts(line, [b"\"before\"", b"\"after\"", b"\"op_type\""])?;
        let (from, end) = operation.ok_or(missing(line, "has no 'op_type': it is no change of GoldenGate"))?;
        match &line[from..end] {
            b"\"I\"" => to.push(Change::new(Kind::Insert, after.ok_or(missing(line, "is an insert without 'after'"))?)),
            b"\"U\"" => {
                let before = before.ok_or(missing(
                    line,
                    "is an update without 'before' (GoldenGate sends it with GETUPDATEBEFORES and all columns logged)",
                ))?;
                let after = after.ok_or(missing(line, "is an update without 'after'"))?;
                to.push(Change::new(Kind::UpdateBefore, before));
                to.push(Change::new(Kind::UpdateAfter, after));
            }
            b"\"D\"" => {
                to.push(Change::new(Kind::Delete, before.ok_or(missing(line, "is a delete without 'before'"))?))
            }
            _ => return Err(Fault::value(from, end, "is no known 'op_type' (I, U, D)")),
        }
        Ok(())
    }
}

static FRAMES: Frames = Frames {
    insert: Frame { before: "{\"before\":null,\"after\":", after: ",\"op_type\":\"I\"}" },
    delete: Frame { before: "{\"before\":", after: ",\"after\":null,\"op_type\":\"D\"}" },
    bare_insert: Frame { before: "{\"after\":", after: ",\"op_type\":\"I\"}" },
    bare_delete: Frame { before: "{\"before\":", after: ",\"op_type\":\"D\"}" },
};
