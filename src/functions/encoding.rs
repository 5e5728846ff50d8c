//! Text in other forms: base 64, hexadecimal and binary digits, character sets, URLs, IPv4 addresses.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int64Type};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::column::{primitives, texts, try_binaries, try_texts};
use super::function::{Call, Entry, Typing};
use super::parameter::Parameter::{self, Bytes, Long, Text};
use crate::error::{Error, Result};
use crate::types::SqlType;

/// Base 64 as Java reads it: the filling at the end may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const TEXT: &[&[Parameter]] = &[&[Text]];
    const TWO: &[&[Parameter]] = &[&[Text, Text]];
    const URL: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Text]];
    let string = || Typing::Fixed(SqlType::STRING);
    vec![
        Entry::new(&["to_base64"], &[&[Text], &[Bytes]], string(), to_base64),
        Entry::new(&["from_base64"], TEXT, string(), from_base64),
        Entry::new(&["hex"], &[&[Long], &[Text]], string(), hex),
        Entry::new(&["unhex"], TEXT, Typing::Nullable(SqlType::BYTES), unhex),
        Entry::new(&["bin"], &[&[Long]], string(), bin),
        Entry::new(&["encode"], TWO, Typing::Fixed(SqlType::BYTES), encode),
        Entry::new(&["decode"], &[&[Bytes, Text]], string(), decode),
        Entry::new(&["url_encode"], TEXT, string(), url_encode),
        Entry::new(&["url_decode"], TEXT, Typing::Nullable(SqlType::STRING), url_decode),
        Entry::new(&["parse_url"], URL, Typing::Nullable(SqlType::STRING), parse_url),
        Entry::new(&["inet_aton"], TEXT, Typing::Nullable(SqlType::BigInt), inet_aton),
        Entry::new(&["inet_ntoa"], &[&[Long]], Typing::Nullable(SqlType::STRING), inet_ntoa),
    ]
}

/// Appends bytes as hexadecimal digits.
pub(super) fn push_hex(bytes: &[u8], upper: bool, to: &mut String) {
    let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    to.reserve(bytes.len() * 2);
    for byte in bytes {
        to.push(digits[usize::from(byte >> 4)] as char);
        to.push(digits[usize::from(byte & 0xf)] as char);
    }
}

fn to_base64(call: &Call<'_>) -> Result<ArrayRef> {
    if *call.arguments[0].data_type() == DataType::Binary {
        let bytes = call.bytes(0)?;
        return texts(call, |row, to| bytes.get(row).map(|bytes| BASE64.encode_string(bytes, to)));
    }
    let text = call.text(0)?;
    texts(call, |row, to| text.get(row).map(|text| BASE64.encode_string(text, to)))
}

fn from_base64(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    let mut bytes = Vec::new();
    try_texts(call, |row, to| {
        let Some(text) = text.get(row) else { return Ok(None) };
        bytes.clear();
        BASE64
            .decode_vec(text, &mut bytes)
            .map_err(|error| call.error(format!("'{text}' is no base 64 text ({error})")))?;
        to.push_str(&String::from_utf8_lossy(&bytes));
        Ok(Some(()))
    })
}

fn hex(call: &Call<'_>) -> Result<ArrayRef> {
    use std::fmt::Write;
    if *call.arguments[0].data_type() == DataType::Int64 {
        let number = call.long(0)?;
        return texts(call, |row, to| write!(to, "{:X}", number.get(row)?).ok());
    }
    let text = call.text(0)?;
    texts(call, |row, to| text.get(row).map(|text| push_hex(text.as_bytes(), true, to)))
}

fn bin(call: &Call<'_>) -> Result<ArrayRef> {
    use std::fmt::Write;
    let number = call.long(0)?;
    texts(call, |row, to| write!(to, "{:b}", number.get(row)?).ok())
}

/// As in Flink, a digit without a partner at the front is 00.
fn unhex(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    try_binaries(call, |row, to| {
        let Some(text) = text.get(row) else { return Ok(None) };
        let mut digits = text.as_bytes();
        if digits.len() % 2 == 1 {
            if digit(digits[0]).is_none() {
                return Ok(None);
            }
            to.push(0);
            digits = &digits[1..];
        }
        for pair in digits.chunks_exact(2) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return Ok(None) };
            to.push(high << 4 | low);
        }
        Ok(Some(()))
    })
}

/// A character set that ENCODE and DECODE know.
#[derive(Clone, Copy)]
enum CharacterSet {
    Utf8,
    Ascii,
    Latin1,
    Utf16 { little: bool, mark: bool },
}

impl CharacterSet {
    fn parse(name: &str) -> Result<CharacterSet> {
        Ok(match name.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" => CharacterSet::Utf8,
            "US-ASCII" | "ASCII" => CharacterSet::Ascii,
            "ISO-8859-1" | "LATIN1" => CharacterSet::Latin1,
            "UTF-16BE" => CharacterSet::Utf16 { little: false, mark: false },
            "UTF-16LE" => CharacterSet::Utf16 { little: true, mark: false },
            "UTF-16" => CharacterSet::Utf16 { little: false, mark: true },
            _ => {
                return Err(Error::sql(format!("the character set '{name}' is not known"))
                    .hint("UTF-8, US-ASCII, ISO-8859-1, UTF-16, UTF-16BE and UTF-16LE are"));
            }
        })
    }

    fn encode(self, text: &str, to: &mut Vec<u8>) {
        let narrow = |most: u32, to: &mut Vec<u8>| {
            to.extend(text.chars().map(|c| if u32::from(c) <= most { u32::from(c) as u8 } else { b'?' }));
        };
        match self {
            CharacterSet::Utf8 => to.extend_from_slice(text.as_bytes()),
            CharacterSet::Ascii => narrow(0x7f, to),
            CharacterSet::Latin1 => narrow(0xff, to),
            CharacterSet::Utf16 { little, mark } => {
                let mark = mark.then_some(0xfeff_u16);
                for unit in mark.into_iter().chain(text.encode_utf16()) {
                    to.extend(if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
                }
            }
        }
    }

    fn decode(self, bytes: &[u8], to: &mut String) {
        match self {
            CharacterSet::Utf8 => to.push_str(&String::from_utf8_lossy(bytes)),
            CharacterSet::Ascii => to.extend(bytes.iter().map(|b| if b.is_ascii() { *b as char } else { '\u{fffd}' })),
            CharacterSet::Latin1 => to.extend(bytes.iter().map(|b| *b as char)),
            CharacterSet::Utf16 { little, mark } => {
                let swapped = mark && bytes.starts_with(&[0xff, 0xfe]);
                let bytes = if mark && (swapped || bytes.starts_with(&[0xfe, 0xff])) { &bytes[2..] } else { bytes };
                let unit = |pair: &[u8]| {
                    if little || swapped {
                        u16::from_le_bytes([pair[0], pair[1]])
                    } else {
                        u16::from_be_bytes([pair[0], pair[1]])
                    }
                };
                to.extend(char::decode_utf16(bytes.chunks_exact(2).map(unit)).map(|c| c.unwrap_or('\u{fffd}')));
            }
        }
    }
}

fn encode(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, set) = (call.text(0)?, call.text(1)?);
    try_binaries(call, |row, to| {
        let (Some(text), Some(set)) = (text.get(row), set.get(row)) else { return Ok(None) };
        CharacterSet::parse(set)?.encode(text, to);
        Ok(Some(()))
    })
}

fn decode(call: &Call<'_>) -> Result<ArrayRef> {
    let (bytes, set) = (call.bytes(0)?, call.text(1)?);
    try_texts(call, |row, to| {
        let (Some(bytes), Some(set)) = (bytes.get(row), set.get(row)) else { return Ok(None) };
        CharacterSet::parse(set)?.decode(bytes, to);
        Ok(Some(()))
    })
}

/// As in HTML forms: a blank is `+`.
fn url_encode(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    texts(call, |row, to| {
        for byte in text.get(row)?.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => to.push(byte as char),
                b' ' => to.push('+'),
                other => {
                    to.push('%');
                    push_hex(&[other], true, to);
                }
            }
        }
        Some(())
    })
}

fn url_decode(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    let mut bytes = Vec::new();
    texts(call, |row, to| {
        bytes.clear();
        let mut rest = text.get(row)?.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match first {
                b'+' => bytes.push(b' '),
                b'%' => {
                    let digit = |at: usize| behind.get(at).and_then(|b| (*b as char).to_digit(16));
                    bytes.push((digit(0)? * 16 + digit(1)?) as u8);
                    rest = &behind[2..];
                }
                other => bytes.push(*other),
            }
        }
        to.push_str(&String::from_utf8_lossy(&bytes));
        Some(())
    })
}

/// The parts of a URL, as slices of it.
#[derive(Debug, Default, PartialEq)]
struct Url<'a> {
    protocol: &'a str,
    authority: &'a str,
    user: Option<&'a str>,
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    reference: Option<&'a str>,
    file: &'a str,
}

impl<'a> Url<'a> {
    fn parse(text: &'a str) -> Option<Url<'a>> {
        let (protocol, rest) = text.trim().split_once("://")?;
        if protocol.is_empty() || !protocol.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let (rest, reference) = match rest.split_once('#') {
            Some((rest, reference)) => (rest, Some(reference)),
            None => (rest, None),
        };
        let (authority, file) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (path, query) = match file.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (file, None),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        // An IPv6 address has colons within its brackets.
        let end = host.rfind(']').map_or(0, |at| at + 1);
        let host = host[end..].find(':').map_or(host, |at| &host[..end + at]);
        Some(Url { protocol, authority, user, host, path, query, reference, file })
    }

    fn part(&self, name: &str) -> Option<&'a str> {
        match name {
            "HOST" => Some(self.host),
            "PATH" => Some(self.path),
            "QUERY" => self.query,
            "REF" => self.reference,
            "PROTOCOL" => Some(self.protocol),
            "FILE" => Some(self.file),
            "AUTHORITY" => Some(self.authority),
            "USERINFO" => self.user,
            _ => None,
        }
    }
}

fn parse_url(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, part) = (call.text(0)?, call.text(1)?);
    let key = call.has(2).then(|| call.text(2)).transpose()?;
    super::column::slices(call, |row| {
        let (url, part) = (Url::parse(text.get(row)?)?, part.get(row)?);
        let Some(key) = &key else { return url.part(part) };
        let key = key.get(row)?;
        let query = url.query.filter(|_| part == "QUERY")?;
        query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    })
}

fn inet_aton(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    primitives::<Int64Type>(call, |row| {
        let address: std::net::Ipv4Addr = text.get(row)?.parse().ok()?;
        Some(i64::from(u32::from(address)))
    })
}

fn inet_ntoa(call: &Call<'_>) -> Result<ArrayRef> {
    use std::fmt::Write;
    let number = call.long(0)?;
    texts(call, |row, to| {
        let address = u32::try_from(number.get(row)?).ok()?;
        write!(to, "{}", std::net::Ipv4Addr::from(address)).ok()
    })
}
