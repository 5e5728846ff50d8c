//! Walks over one JSON text without building anything: finds where values begin and end and checks that they are well
//! formed on the way, so that nothing is ever read out of a damaged line.

use crate::formats::fault::Fault;

/// How deep values may nest.
const DEPTH: usize = 512;

/// A place in a JSON text.
pub(in crate::formats) struct Scanner<'a> {
    pub(in crate::formats) text: &'a [u8],
    pub(in crate::formats) at: usize,
}

impl<'a> Scanner<'a> {
    /// Starts at `at`.
    pub(in crate::formats) fn new(text: &'a [u8], at: usize) -> Scanner<'a> {
        Scanner { text, at }
    }

    /// The byte here, or 0 at the end (a zero byte is not JSON either).
    #[inline]
    pub(in crate::formats) fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Passes over white space.
    #[inline]
    pub(in crate::formats) fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// Passes over `byte`, white space around it included.
    #[inline]
    pub(in crate::formats) fn punctuation(&mut self, byte: u8, expected: &'static str) -> Result<(), Fault> {
        self.space();
        if self.peek() != byte {
            return Err(Fault::syntax(self.at, expected));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// Passes over a value; gives where it stands.
    #[inline]
    pub(in crate::formats) fn value(&mut self, depth: usize) -> Result<(usize, usize), Fault> {
        let from = self.at;
        match self.peek() {
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => return Err(Fault::syntax(from, "expected a JSON value")),
        }
        Ok((from, self.at))
    }

    /// Passes over a string with its quotes.
    #[inline]
    pub(in crate::formats) fn string(&mut self) -> Result<(), Fault> {
        let from = self.at;
        if self.peek() != b'"' {
            return Err(Fault::syntax(from, "expected a string"));
        }
        self.at += 1;
        loop {
            let Some(found) = quote_or_backslash(&self.text[self.at..]) else {
                return Err(Fault::syntax(from, "expected a string that ends with '\"'"));
            };
            self.at += found + 1;
            if self.text[self.at - 1] == b'"' {
                return Ok(());
            }
            let escape = self.at - 1;
            match self.peek() {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                b'u' if hex(self.text, self.at + 1).is_some() => self.at += 5,
                _ => return Err(Fault::syntax(escape, "expected a valid escape such as \\n or \\u00e9")),
            }
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let from = self.at;
        let fault = Err(Fault::syntax(from, "expected a number"));
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return fault,
        }
        if self.peek() == b'.' {
            self.at += 1;
            if !self.peek().is_ascii_digit() {
                return fault;
            }
            self.digits();
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            if !self.peek().is_ascii_digit() {
                return fault;
            }
            self.digits();
        }
        // "01" or "1x" is caught by whoever expects punctuation next.
        Ok(())
    }

    #[inline]
    fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), Fault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Fault::syntax(self.at, "expected a JSON value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), Fault> {
        self.at += 1;
        self.space();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.string()?;
            self.punctuation(b':', "expected ':'")?;
            self.nested(depth)?;
            if !self.more(b'}', "expected ',' or '}'")? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Fault> {
        self.at += 1;
        self.space();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.nested(depth)?;
            if !self.more(b']', "expected ',' or ']'")? {
                return Ok(());
            }
        }
    }

    fn nested(&mut self, depth: usize) -> Result<(), Fault> {
        if depth >= DEPTH {
            return Err(Fault::syntax(self.at, "expected JSON nested at most 512 deep"));
        }
        self.value(depth + 1).map(drop)
    }

    /// After a member: whether another follows.
    #[inline]
    pub(in crate::formats) fn more(&mut self, close: u8, expected: &'static str) -> Result<bool, Fault> {
        self.space();
        let byte = self.peek();
        if byte != b',' && byte != close {
            return Err(Fault::syntax(self.at, expected));
        }
        self.at += 1;
        self.space();
        Ok(byte == b',')
    }
}

/// Where the first `"` or `\` stands. Strings are short, so the first bytes are looked at eight at a time in place,
/// which costs less than starting a vector search; long strings go to the vector search.
#[inline]
fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while at < 48
        && let Some(eight) = text.get(at..at + 8).and_then(|eight| <[u8; 8]>::try_from(eight).ok())
    {
        let word = u64::from_le_bytes(eight);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        // The lowest high bit set marks the first zero byte ("Determine if a word has a zero byte", Bit Twiddling Hacks).
        let found = (quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash) & HIGHS;
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr2(b'"', b'\\', &text[at..]).map(|found| at + found)
}

fn hex(text: &[u8], at: usize) -> Option<u32> {
    let digits = text.get(at..at + 4)?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}

/// Appends the characters of a string's inside (without quotes), which has been scanned. A lone surrogate becomes
/// U+FFFD.
pub(in crate::formats) fn unescape(inside: &[u8], to: &mut Vec<u8>) {
    let mut rest = inside;
    while let Some(escape) = memchr::memchr(b'\\', rest) {
        to.extend_from_slice(&rest[..escape]);
        let Some(byte) = rest.get(escape + 1) else { return };
        let mut used = escape + 2;
        match byte {
            b'b' => to.push(8),
            b'f' => to.push(12),
            b'n' => to.push(b'\n'),
            b'r' => to.push(b'\r'),
            b't' => to.push(b'\t'),
            b'u' => {
                let (character, length) = escaped_character(rest, used);
                used += length;
                to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => to.push(*other),
        }
        rest = &rest[used.min(rest.len())..];
    }
    to.extend_from_slice(rest);
}

/// The character whose four digits stand at `at`, and how many bytes it takes with a second half.
fn escaped_character(text: &[u8], at: usize) -> (char, usize) {
    let Some(first) = hex(text, at) else { return (char::REPLACEMENT_CHARACTER, 0) };
    if (0xd800..0xdc00).contains(&first)
        && text.get(at + 4..at + 6) == Some(b"\\u")
        && let Some(second) = hex(text, at + 6)
        && (0xdc00..0xe000).contains(&second)
    {
        let both = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

/// Appends a value's text without white space between its parts.
pub(super) fn compact(value: &[u8], to: &mut Vec<u8>) {
    let mut scanner = Scanner::new(value, 0);
    while scanner.at < value.len() {
        scanner.space();
        let from = scanner.at;
        if scanner.peek() == b'"' {
            if scanner.string().is_err() {
                return;
            }
            let mut plain = Vec::new();
            unescape(&value[from + 1..scanner.at - 1], &mut plain);
            super::encode::string(&plain, to);
        } else if from < value.len() {
            to.push(value[from]);
            scanner.at += 1;
        }
    }
}
