//! Where the parts of a message stand.

use crate::formats::fault::Fault;
use crate::formats::json::{Scanner, at_end};

/// Where a piece of a message stands: from, to.
pub(super) type Place = (usize, usize);

/// Something is not in the message: the fault is the whole of it.
pub(super) fn missing(line: &[u8], what: &'static str) -> Fault {
    Fault::value(0, line.len(), what)
}

/// Checks a message, which is one object, and finds the members of these names (quoted, as they stand in the text). A
/// member that is `null` is not there.
pub(super) fn parts<const N: usize>(line: &[u8], names: [&[u8]; N]) -> Result<[Option<Place>; N], Fault> {
    let mut scanner = Scanner::new(line, 0);
    scanner.space();
    let found = members(&mut scanner, names)?;
    at_end(&mut scanner)?;
    Ok(found)
}

/// The members of the object at `place`, which has been checked.
pub(super) fn parts_of<const N: usize>(
    line: &[u8],
    place: Place,
    names: [&[u8]; N],
) -> Result<[Option<Place>; N], Fault> {
    members(&mut Scanner::new(line, place.0), names)
}

fn members<const N: usize>(scanner: &mut Scanner<'_>, names: [&[u8]; N]) -> Result<[Option<Place>; N], Fault> {
    let mut found = [None; N];
    if scanner.peek() != b'{' {
        return Err(Fault::syntax(scanner.at, "expected a JSON object"));
    }
    scanner.at += 1;
    scanner.space();
    if scanner.peek() == b'}' {
        scanner.at += 1;
        return Ok(found);
    }
    loop {
        let from = scanner.at;
        scanner.string()?;
        let name = &scanner.text[from..scanner.at];
        scanner.punctuation(b':', "expected ':'")?;
        let place = scanner.value(1)?;
        if let Some(index) = names.iter().position(|wanted| *wanted == name) {
            found[index] = (scanner.text[place.0] != b'n').then_some(place);
        }
        if !scanner.more(b'}', "expected ',' or '}'")? {
            return Ok(found);
        }
    }
}

/// Finds the elements of the array at `place`, which has been checked.
pub(super) fn elements(line: &[u8], place: Place, to: &mut Vec<Place>) -> Result<(), Fault> {
    to.clear();
    let mut scanner = Scanner::new(line, place.0);
    if scanner.peek() != b'[' {
        return Err(Fault::syntax(place.0, "expected a JSON array"));
    }
    scanner.at += 1;
    scanner.space();
    if scanner.peek() == b']' {
        return Ok(());
    }
    loop {
        to.push(scanner.value(1)?);
        if !scanner.more(b']', "expected ',' or ']'")? {
            return Ok(());
        }
    }
}
