//! Cuts CSV text into records and records into fields. A record without quote and escape characters is cut where its
//! delimiters stand; any other goes through a small state machine, in which a quoted field may hold line ends.

use super::options::CsvOptions;
use crate::formats::fault::Fault;

/// Where a field's text stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its text begins here, in the record or in the unescaped text.
    from: usize,
    /// And ends here.
    to: usize,
    /// Where it begins in the record, for messages.
    origin: usize,
    /// Whether the text had to be rewritten.
    unescaped: bool,
}

/// The fields of the record at hand.
#[derive(Debug, Default)]
pub(super) struct Fields {
    places: Vec<Place>,
    unescaped: Vec<u8>,
}

/// One record.
pub(super) struct Record {
    /// Where the next record begins.
    pub next: usize,
    /// Where the record's text ends, without its line end.
    pub to: usize,
    /// Line ends passed.
    pub lines: u64,
    /// What is wrong with it.
    pub fault: Option<Fault>,
}

impl Fields {
    /// Number of fields.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The text of field `index` of the record `record`, and where it stands there.
    #[inline]
    pub(super) fn get<'a>(&'a self, record: &'a [u8], index: usize) -> Option<(&'a [u8], usize)> {
        let place = self.places.get(index)?;
        let source = if place.unescaped { &self.unescaped } else { record };
        Some((&source[place.from..place.to], place.origin))
    }

    /// Cuts the record that begins at `at`. `None` if it is not whole.
    #[inline]
    pub(super) fn split(&mut self, bytes: &[u8], at: usize, end: bool, options: &CsvOptions) -> Option<Record> {
        self.places.clear();
        let rest = &bytes[at..];
        let (line, next) = match memchr::memchr(b'\n', rest) {
            Some(length) => (&rest[..length], at + length + 1),
            None if end && !rest.is_empty() => (rest, bytes.len()),
            None => return None,
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let special = match (options.quote, options.escape) {
            (Some(quote), Some(escape)) => memchr::memchr2(quote, escape, line).is_some(),
            (Some(byte), None) | (None, Some(byte)) => memchr::memchr(byte, line).is_some(),
            (None, None) => false,
        };
        if special && !(options.comments && is_comment(line)) {
            return self.split_special(bytes, at, end, options);
        }
        let mut from = 0;
        for to in memchr::memchr_iter(options.delimiter, line) {
            self.places.push(Place { from, to, origin: from, unescaped: false });
            from = to + 1;
        }
        self.places.push(Place { from, to: line.len(), origin: from, unescaped: false });
        Some(Record { next, to: at + line.len(), lines: u64::from(next > at + line.len()), fault: None })
    }

    /// As [`Fields::split`], for a record with quotes or escapes.
    fn split_special(&mut self, bytes: &[u8], at: usize, end: bool, options: &CsvOptions) -> Option<Record> {
        self.unescaped.clear();
        let mut machine = Machine { text: &bytes[at..], at: 0, end, options, fault: None, lines: 0 };
        loop {
            let after = machine.field(self)?;
            match after {
                After::Delimiter => {}
                After::LineEnd { to } => {
                    let (next, lines) = (at + machine.at, machine.lines);
                    return Some(Record { next, to: at + to, lines, fault: machine.fault });
                }
            }
        }
    }
}

/// Whether the line's first character that is no space is `#`.
pub(super) fn is_comment(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'#')
}

struct Machine<'a> {
    /// The text from the record's start.
    text: &'a [u8],
    at: usize,
    end: bool,
    options: &'a CsvOptions,
    fault: Option<Fault>,
    lines: u64,
}

enum After {
    Delimiter,
    LineEnd { to: usize },
}

impl Machine<'_> {
    /// Reads one field and what ends it. `None` if the text stops before the record does.
    fn field(&mut self, fields: &mut Fields) -> Option<After> {
        let origin = self.at;
        let from = fields.unescaped.len();
        if self.options.quote.is_some() && self.text.get(self.at).copied() == self.options.quote {
            self.at += 1;
            self.quoted(origin, &mut fields.unescaped)?;
            let place = Place { from, to: fields.unescaped.len(), origin, unescaped: true };
            fields.places.push(place);
            return self.after_quote();
        }
        loop {
            let Some(byte) = self.text.get(self.at).copied() else {
                return self.end.then(|| self.close(fields, from, origin, After::LineEnd { to: self.at }));
            };
            self.at += 1;
            if byte == self.options.delimiter {
                return Some(self.close(fields, from, origin, After::Delimiter));
            } else if byte == b'\n' {
                self.lines += 1;
                let line_end = self.at - 1;
                let carriage = line_end > origin && self.text[line_end - 1] == b'\r';
                if carriage && fields.unescaped.last() == Some(&b'\r') {
                    fields.unescaped.pop();
                }
                return Some(self.close(fields, from, origin, After::LineEnd { to: line_end - usize::from(carriage) }));
            } else if Some(byte) == self.options.escape {
                self.escaped(&mut fields.unescaped)?;
            } else {
                fields.unescaped.push(byte);
            }
        }
    }

    fn close(&self, fields: &mut Fields, from: usize, origin: usize, after: After) -> After {
        fields.places.push(Place { from, to: fields.unescaped.len(), origin, unescaped: true });
        after
    }

    /// The inside of a quoted field, past its closing quote.
    fn quoted(&mut self, origin: usize, to: &mut Vec<u8>) -> Option<()> {
        let quote = self.options.quote?;
        loop {
            let rest = &self.text[self.at..];
            let found = match self.options.escape {
                Some(escape) => memchr::memchr2(quote, escape, rest),
                None => memchr::memchr(quote, rest),
            };
            let Some(length) = found else {
                if !self.end {
                    return None;
                }
                self.fault.get_or_insert(Fault::syntax(origin, "expected a closing quote"));
                self.pass(rest, to);
                return Some(());
            };
            self.pass(&rest[..length], to);
            self.at += 1;
            if rest[length] != quote {
                self.escaped(to)?;
            } else if rest.get(length + 1) == Some(&quote) {
                self.at += 1;
                to.push(quote);
            } else if length + 1 < rest.len() || self.end {
                return Some(());
            } else {
                // Whether the next byte doubles the quote is not known yet.
                return None;
            }
        }
    }

    fn pass(&mut self, text: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(text);
        self.lines += memchr::memchr_iter(b'\n', text).count() as u64;
        self.at += text.len();
    }

    /// The character after an escape character.
    fn escaped(&mut self, to: &mut Vec<u8>) -> Option<()> {
        let Some(byte) = self.text.get(self.at).copied() else {
            if self.end {
                self.fault.get_or_insert(Fault::syntax(self.at, "expected a character after the escape character"));
            }
            return self.end.then_some(());
        };
        self.at += 1;
        self.lines += u64::from(byte == b'\n');
        to.push(match byte {
            b'0' => 0,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => other,
        });
        Some(())
    }

    /// Between a closing quote and the end of the field only spaces may stand.
    fn after_quote(&mut self) -> Option<After> {
        loop {
            let Some(byte) = self.text.get(self.at).copied() else {
                return self.end.then_some(After::LineEnd { to: self.at });
            };
            self.at += 1;
            if byte == self.options.delimiter {
                return Some(After::Delimiter);
            }
            match byte {
                b'\n' => {
                    self.lines += 1;
                    let line_end = self.at - 1;
                    let carriage = self.text[line_end - 1] == b'\r';
                    return Some(After::LineEnd { to: line_end - usize::from(carriage) });
                }
                b' ' | b'\t' | b'\r' => {}
                _ => {
                    self.fault.get_or_insert(Fault::syntax(
                        self.at - 1,
                        "expected a delimiter or the end of the line after the closing quote",
                    ));
                }
            }
        }
    }
}
