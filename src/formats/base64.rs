//! Base64 (RFC 4648, standard alphabet): the form of `BYTES` in text formats. Padding may be left out when read.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the encoded form of `bytes`.
pub(crate) fn encode(bytes: &[u8], to: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let group = u32::from(chunk[0]) << 16
            | chunk.get(1).map_or(0, |byte| u32::from(*byte) << 8)
            | chunk.get(2).map_or(0, |byte| u32::from(*byte));
        for place in 0..4 {
            if place <= chunk.len() {
                to.push(ALPHABET[(group >> (18 - 6 * place) & 63) as usize]);
            } else {
                to.push(b'=');
            }
        }
    }
}

/// Appends the decoded form of `text`; `None` if it is not Base64.
pub(crate) fn decode(text: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let mut digits = text;
    for _ in 0..2 {
        digits = digits.strip_suffix(b"=").unwrap_or(digits);
    }
    let padding = text.len() - digits.len();
    if digits.len() % 4 == 1 || (padding > 0 && text.len() % 4 != 0) {
        return None;
    }
    for chunk in digits.chunks(4) {
        let mut group: u32 = 0;
        for byte in chunk {
            group = group << 6 | u32::from(value(*byte)?);
        }
        group <<= 6 * (4 - chunk.len()) as u32;
        to.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(())
}

fn value(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_goes_there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..bytes.len() {
            let (mut text, mut back) = (Vec::new(), Vec::new());
            encode(&bytes[..length], &mut text);
            assert_eq!(text.len() % 4, 0);
            assert_eq!(decode(&text, &mut back), Some(()));
            assert_eq!(back, &bytes[..length]);
        }
        for bad in [&b"A"[..], b"A===", b"AQ=", b"A!==", b"AQI=A"] {
            assert_eq!(decode(bad, &mut Vec::new()), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
