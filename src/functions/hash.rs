//! Digests as lower-case hexadecimal text: MD5, SHA1, SHA224 to SHA512, SHA2.

use arrow::array::ArrayRef;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::column::{texts, try_texts};
use super::encoding::push_hex;
use super::function::{Call, Entry, Typing};
use super::parameter::Parameter::{self, Int, Text};
use crate::error::Result;
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const TEXT: &[&[Parameter]] = &[&[Text]];
    let entry = |names, body| Entry::new(names, TEXT, Typing::Fixed(SqlType::STRING), body);
    vec![
        entry(&["md5"], digest::<Md5>),
        entry(&["sha1"], digest::<Sha1>),
        entry(&["sha224"], digest::<Sha224>),
        entry(&["sha256"], digest::<Sha256>),
        entry(&["sha384"], digest::<Sha384>),
        entry(&["sha512"], digest::<Sha512>),
        Entry::new(&["sha2"], &[&[Text, Int]], Typing::Fixed(SqlType::STRING), sha2),
    ]
}

fn push_digest<D: Digest>(text: &str, to: &mut String) {
    push_hex(D::digest(text.as_bytes()).as_slice(), false, to);
}

fn digest<D: Digest>(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    texts(call, |row, to| {
        push_digest::<D>(text.get(row)?, to);
        Some(())
    })
}

fn sha2(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, bits) = (call.text(0)?, call.int(1)?);
    try_texts(call, |row, to| {
        let (Some(text), Some(bits)) = (text.get(row), bits.get(row)) else { return Ok(None) };
        match bits {
            224 => push_digest::<Sha224>(text, to),
            256 => push_digest::<Sha256>(text, to),
            384 => push_digest::<Sha384>(text, to),
            512 => push_digest::<Sha512>(text, to),
            other => {
                return Err(call
                    .error(format!("there is no digest of {other} bits"))
                    .hint("224, 256, 384 and 512 are"));
            }
        }
        Ok(Some(()))
    })
}
