//! The `maxwell-json` format: changes as Maxwell sends them.
//!
//! `{"data":{…},"type":"insert"}` is an insert of `data`, `delete` a delete of it, and `update` an update to `data`, with
//! the columns that were different, and only those, under `old`.

use super::decode::{self, Change, Dialect};
use super::encode::{self, Frame, Frames};
use super::message::{missing, parts};
use super::{MODES, SHARED_OPTIONS};
use crate::changelog::Kind;
use crate::formats::fault::Fault;
use crate::formats::{Format, MakeDecoder};

/// Its line in the list.
pub(in crate::formats) const FORMAT: Format = Format {
    name: Maxwell::NAME,
    options: SHARED_OPTIONS,
    modes: MODES,
    decoder: MakeDecoder::OfRecords(|options, wanted| decode::open(Maxwell, options, wanted)),
    encoder: |options, _| encode::open(Maxwell::NAME, &FRAMES, options),
};

struct Maxwell;

impl Dialect for Maxwell {
    const NAME: &'static str = "maxwell-json";

    fn changes(&mut self, line: &[u8], to: &mut Vec<Change>) -> Result<(), Fault> {
        let [data, old, operation] = parts(line, [b"\"data\"", b"\"old\"", b"\"type\""])?;
        let (from, end) = operation.ok_or(missing(line, "has no 'type': it is no Maxwell change"))?;
        let data = data.ok_or(missing(line, "has no 'data'"));
        match &line[from..end] {
            b"\"insert\"" => to.push(Change::new(Kind::Insert, data?)),
            b"\"update\"" => {
                let old = old.ok_or(missing(line, "is an update without 'old'"))?;
                to.push(Change::before(data?, old));
                to.push(Change::new(Kind::UpdateAfter, data?));
            }
            b"\"delete\"" => to.push(Change::new(Kind::Delete, data?)),
            _ => return Err(Fault::value(from, end, "is no known 'type' (insert, update, delete)")),
        }
        Ok(())
    }
}

static FRAMES: Frames = Frames {
    insert: Frame { before: "{\"data\":", after: ",\"type\":\"insert\"}" },
    delete: Frame { before: "{\"data\":", after: ",\"type\":\"delete\"}" },
    bare_insert: Frame { before: "{\"data\":", after: ",\"type\":\"insert\"}" },
    bare_delete: Frame { before: "{\"data\":", after: ",\"type\":\"delete\"}" },
};
