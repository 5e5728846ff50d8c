//! The `debezium-json` format: changes as Debezium's connectors send them.
//!
//! `{"before":null,"after":{…},"op":"c"}` (or `r`, a row of the snapshot) is an insert, `d` a delete of `before`, and
//! `u` an update from `before` to `after`. With `schema-include` the change stands under `payload`.

use super::decode::{self, Change, Dialect};
use super::encode::{self, Frame, Frames};
use super::message::{Place, missing, parts, parts_of};
use super::{MODES, SHARED_OPTIONS};
use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::changelog::Kind;
use crate::error::{Error, Result};
use crate::formats::fault::Fault;
use crate::formats::{Encoder, Format, MakeDecoder};

const OPTIONS: &[DeclaredOption] = &[
    DeclaredOption {
        name: "schema-include",
        kind: OptionKind::Boolean,
        default: Some("false"),
        required: false,
        help: "Whether each line carries a schema, with the change under 'payload'. Read only.",
    },
    SHARED_OPTIONS[0],
    SHARED_OPTIONS[1],
    SHARED_OPTIONS[2],
    SHARED_OPTIONS[3],
    SHARED_OPTIONS[4],
    SHARED_OPTIONS[5],
];

/// Its line in the list.
pub(in crate::formats) const FORMAT: Format = Format {
    name: Debezium::NAME,
    options: OPTIONS,
    modes: MODES,
    decoder: MakeDecoder::OfRecords(|options, wanted| {
        let schema_include = options.boolean("schema-include", false)?;
        decode::open(Debezium { schema_include }, options, wanted)
    }),
    encoder: |options, _| encoder(options),
};

struct Debezium {
    schema_include: bool,
}

const NAMES: [&[u8]; 3] = [b"\"before\"", b"\"after\"", b"\"op\""];

impl Debezium {
    fn envelope(&self, line: &[u8]) -> Result<[Option<Place>; 3], Fault> {
        if !self.schema_include {
            return parts(line, NAMES);
        }
        match parts(line, [b"\"payload\""])? {
            [Some(payload)] => parts_of(line, payload, NAMES),
            [None] => Err(missing(line, "has no 'payload' ('schema-include' is true)")),
        }
    }
}

impl Dialect for Debezium {
    const NAME: &'static str = "debezium-json";

    fn changes(&mut self, line: &[u8], to: &mut Vec<Change>) -> Result<(), Fault> {
        let [before, after, operation] = self.envelope(line)?;
        let (from, end) = operation.ok_or(missing(line, "has no 'op': it is no Debezium change"))?;
        match &line[from..end] {
            b"\"c\"" | b"\"r\"" => {
                let after = after.ok_or(missing(line, "is an insert without 'after'"))?;
                to.push(Change::new(Kind::Insert, after));
            }
            b"\"u\"" => {
                let before = before.ok_or(missing(
                    line,
                    "is an update without 'before' (PostgreSQL sends it with REPLICA IDENTITY FULL)",
                ))?;
                let after = after.ok_or(missing(line, "is an update without 'after'"))?;
                to.push(Change::new(Kind::UpdateBefore, before));
                to.push(Change::new(Kind::UpdateAfter, after));
            }
            b"\"d\"" => {
                let before = before.ok_or(missing(
                    line,
                    "is a delete without 'before' (PostgreSQL sends it with REPLICA IDENTITY FULL)",
                ))?;
                to.push(Change::new(Kind::Delete, before));
            }
            _ => return Err(Fault::value(from, end, "is no known 'op' (c, r, u, d)")),
        }
        Ok(())
    }
}

static FRAMES: Frames = Frames {
    insert: Frame { before: "{\"before\":null,\"after\":", after: ",\"op\":\"c\"}" },
    delete: Frame { before: "{\"before\":", after: ",\"after\":null,\"op\":\"d\"}" },
    bare_insert: Frame { before: "{\"after\":", after: ",\"op\":\"c\"}" },
    bare_delete: Frame { before: "{\"before\":", after: ",\"op\":\"d\"}" },
};

fn encoder(options: &Options) -> Result<Box<dyn Encoder>> {
    if options.boolean("schema-include", false)? {
        return Err(Error::sql("debezium-json cannot write a schema")
            .hint("leave out 'debezium-json.schema-include' for a table that is written"));
    }
    encode::open(Debezium::NAME, &FRAMES, options)
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{batch, decode, encode, message, rows};
    use crate::types::SqlType;

    const TWO: &[(&str, SqlType)] = &[("id", SqlType::Int), ("v", SqlType::STRING)];
    const LOG: &str = "{\"before\":null,\"after\":{\"id\":1,\"v\":\"a\"},\"op\":\"c\"}\n\
        {\"before\":{\"id\":1,\"v\":\"a\"},\"after\":{\"id\":1,\"v\":\"b\"},\"op\":\"u\",\"ts_ms\":2}\n\
        \n\
        {\"op\":\"d\",\"before\":{\"id\":1,\"v\":\"b\"},\"after\":null}\n\
        {\"before\":null,\"after\":{\"id\":2},\"op\":\"r\"}\n";

    #[test]
    fn a_change_a_line() {
        let expected = ["+I[1, a]", "-U[1, a]", "+U[1, b]", "-D[1, b]", "+I[2, null]"];
        assert_eq!(rows("debezium-json", TWO, &[], LOG), expected);
        let wrapped: String = LOG
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| format!("{{\"schema\":{{}},\"payload\":{line}}}\n"))
            .collect();
        assert_eq!(rows("debezium-json", TWO, &[("schema-include", "true")], &wrapped), expected);
        assert!(decode("debezium-json", TWO, &[], wrapped.as_bytes()).is_err());
        assert!(decode("debezium-json", TWO, &[("schema-include", "true")], LOG.as_bytes()).is_err());
    }

    #[test]
    fn updates_are_written_as_delete_and_insert() {
        let written = encode("debezium-json", &[], &batch("debezium-json", TWO, &[], LOG)).unwrap();
        assert_eq!(written.lines().nth(1), Some("{\"before\":{\"id\":1,\"v\":\"a\"},\"after\":null,\"op\":\"d\"}"));
        assert_eq!(written.lines().nth(2), Some("{\"before\":null,\"after\":{\"id\":1,\"v\":\"b\"},\"op\":\"c\"}"));
        let changes = batch("debezium-json", TWO, &[], LOG);
        assert!(encode("debezium-json", &[("schema-include", "true")], &changes).is_err());
    }

    #[test]
    fn malformed_changes_are_errors_or_skipped() {
        let input = "{\"before\":null,\"after\":{\"id\":\"two\",\"v\":\"b\"},\"op\":\"c\"}\nthis is not json\n\
            {\"after\":{\"id\":3},\"op\":\"z\"}\n{\"after\":{\"id\":4}}\n{\"before\":null,\"after\":{\"id\":1},\"op\":\"u\"}\n\
            {\"before\":null,\"op\":\"d\"}\n[]\nnull\n{\"after\":{\"id\":6,\"v\":7.5},\"op\":\"c\"}\n";
        let (rows, skipped) =
            decode("debezium-json", TWO, &[("ignore-parse-errors", "true")], input.as_bytes()).unwrap();
        assert_eq!(rows, ["+I[null, b]", "+I[6, 7.5]"]);
        assert_eq!(skipped, 7);
        for line in input.lines().take(8) {
            assert!(decode("debezium-json", TWO, &[], line.as_bytes()).is_err(), "{line}");
        }
        let update = message("debezium-json", TWO, &[], b"{\"before\":null,\"after\":{\"id\":1},\"op\":\"u\"}\n");
        assert!(update.contains("REPLICA IDENTITY FULL"), "{update}");
    }
}
