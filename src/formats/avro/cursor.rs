//! Walks over encoded values and never past their end.

use std::borrow::Cow;

/// What is wrong with the bytes.
pub(super) type Fault = Cow<'static, str>;

/// The bytes of a block, and how far they have been read.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Elements that arrays and maps may still have: those that take no bytes could otherwise be any number.
    elements: u64,
}

/// How many elements without bytes of their own a block may hold.
pub(super) const EMPTY_ELEMENTS: u64 = 1 << 20;

const CUT: Fault = Cow::Borrowed("the bytes end within a value");

impl<'a> Cursor<'a> {
    /// At the beginning of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, elements: bytes.len() as u64 + EMPTY_ELEMENTS }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes on from `position` with what `elements_left` was then.
    pub(super) fn resume(bytes: &'a [u8], position: usize, elements: u64) -> Cursor<'a> {
        Cursor { bytes, at: position, elements }
    }

    pub(super) fn elements_left(&self) -> u64 {
        self.elements
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let taken = self.at.checked_add(length).and_then(|end| self.bytes.get(self.at..end)).ok_or(CUT)?;
        self.at += length;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.take(N)?.try_into().map_err(|_| CUT)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.bytes.get(self.at).ok_or(CUT)?;
        self.at += 1;
        Ok(byte)
    }

    /// A number of up to 64 bits, seven a byte, the sign in the lowest.
    #[inline]
    pub(super) fn long(&mut self) -> Result<i64, Fault> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err("a number has more than 64 bits".into())
    }

    #[inline]
    pub(super) fn int(&mut self) -> Result<i32, Fault> {
        self.long()?.try_into().map_err(|_| "an int has more than 32 bits".into())
    }

    /// Bytes or text, with their length before them.
    #[inline]
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.long()?;
        self.take(usize::try_from(length).map_err(|_| format!("a length of {length}"))?)
    }

    /// The number of elements in the next part of an array or map; 0 ends it. With `Some`, how many bytes they take.
    pub(super) fn part(&mut self) -> Result<(u64, Option<usize>), Fault> {
        let count = self.long()?;
        let size = match count < 0 {
            true => Some(usize::try_from(self.long()?).map_err(|_| Cow::Borrowed("a part of negative length"))?),
            false => None,
        };
        let count = count.unsigned_abs();
        match self.elements.checked_sub(count) {
            Some(left) => self.elements = left,
            None => return Err(format!("{count} elements do not fit the block").into()),
        }
        Ok((count, size))
    }
}

/// Appends a number as [`Cursor::long`] reads it.
pub(super) fn write_long(value: i64, to: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// Appends bytes or text with their length.
pub(super) fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    write_long(bytes.len() as i64, to);
    to.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for value in [0, 1, -1, 63, -64, 64, 300, i64::from(i32::MIN), i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            write_long(value, &mut bytes);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.long().unwrap(), value);
            assert!(cursor.is_at_end());
            assert!(Cursor::new(&bytes[..bytes.len() - 1]).long().is_err());
        }
        assert!(Cursor::new(&[0xff; 10]).long().unwrap_err().contains("64 bits"));
    }

    #[test]
    fn lengths_are_not_believed() {
        let mut bytes = Vec::new();
        write_long(i64::MAX, &mut bytes);
        assert!(Cursor::new(&bytes).bytes().is_err());
        assert!(Cursor::new(&bytes).part().unwrap_err().contains("do not fit"));
    }
}
