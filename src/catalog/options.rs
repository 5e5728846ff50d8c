//! Options in `WITH (…)`: declared once by a connector or format, then read, checked and documented from there.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Error, Result, nearest};

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// `10 s`, `1 min`, `100 ms`.
    Duration,
    /// `128 MB`, `1kb`, `4096`.
    Size,
}

/// One option: its name, form, default and a sentence of help. A name that ends in `*` declares a family
/// (`fields.*`), whose members are checked by their owner.
#[derive(Debug, Clone, Copy)]
pub struct DeclaredOption {
    /// The name as written in `WITH`.
    pub name: &'static str,
    /// The form of its value.
    pub kind: OptionKind,
    /// The value when not given.
    pub default: Option<&'static str>,
    /// Whether it must be given.
    pub required: bool,
    /// One sentence.
    pub help: &'static str,
}

/// The options given for one table.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Options(pub BTreeMap<String, String>);

impl Options {
    /// The text given for `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a declared Boolean.
    ///
    /// # Errors
    /// If it is neither `true` nor `false`.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(invalid(name, text, "true or false")),
        }
    }

    /// The value of a whole number.
    ///
    /// # Errors
    /// If it is not one.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.get(name).map(|text| text.trim().parse().map_err(|_| invalid(name, text, "a whole number"))).transpose()
    }

    /// The value of a duration.
    ///
    /// # Errors
    /// If it is not one.
    pub fn duration(&self, name: &str) -> Result<Option<Duration>> {
        self.get(name)
            .map(|text| parse_duration(text).ok_or_else(|| invalid(name, text, "a duration such as '10 s' or '1 min'")))
            .transpose()
    }

    /// The value of a size in bytes.
    ///
    /// # Errors
    /// If it is not one.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        self.get(name)
            .map(|text| parse_size(text).ok_or_else(|| invalid(name, text, "a size such as '128 MB'")))
            .transpose()
    }

    fn check_form(&self, name: &str, kind: OptionKind) -> Result<()> {
        match kind {
            OptionKind::Text => Ok(()),
            OptionKind::Boolean => self.boolean(name, false).map(drop),
            OptionKind::Integer => self.integer(name).map(drop),
            OptionKind::Duration => self.duration(name).map(drop),
            OptionKind::Size => self.size(name).map(drop),
        }
    }

    /// Checks names and forms against what is declared; the first fault is the error, with the nearest valid name.
    ///
    /// # Errors
    /// On an unknown name, a value of the wrong form, or a required option that is missing.
    pub fn check(&self, owner: &str, declared: &[DeclaredOption]) -> Result<()> {
        for name in self.0.keys() {
            let Some(option) = declared.iter().find(|option| option.matches(name)) else {
                let error = Error::sql(format!("{owner} has no option '{name}'"));
                return Err(match nearest(name, declared.iter().map(|option| option.name)) {
                    Some(near) => error.hint(format!("did you mean '{near}'?")),
                    None => {
                        let names: Vec<&str> = declared.iter().map(|option| option.name).collect();
                        error.hint(format!("its options are: {}", names.join(", ")))
                    }
                });
            };
            self.check_form(name, option.kind).map_err(|error| match option.default {
                Some(default) => error.more(format!("; without it, '{default}' holds")),
                None => error,
            })?;
        }
        match declared.iter().find(|option| option.required && !self.0.contains_key(option.name)) {
            None => Ok(()),
            Some(missing) => Err(Error::sql(format!("{owner} needs the option '{}'", missing.name)).hint(format!(
                "{}; add '{}' = '…' to WITH",
                missing.help.trim_end_matches('.'),
                missing.name
            ))),
        }
    }
}

impl DeclaredOption {
    fn matches(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => self.name == name,
        }
    }
}

fn invalid(name: &str, text: &str, expected: &str) -> Error {
    Error::sql(format!("'{text}' is not a valid value for '{name}'")).hint(format!("expected {expected}"))
}

/// `10 s`, `10s`, `1 min`, `2 h`, `1 d`, `100 ms`; a bare number is milliseconds, as in Flink.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let milliseconds: u64 = match unit.as_str() {
        "ns" | "nano" | "nanosecond" | "nanoseconds" => return Some(Duration::from_nanos(number)),
        "us" | "µs" | "micro" | "microsecond" | "microseconds" => return Some(Duration::from_micros(number)),
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(milliseconds)?))
}

/// `128 MB`, `1kb`, `4096`: powers of 1024, as in Flink.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let bytes: u64 = match unit.as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kb" | "kibibytes" => 1 << 10,
        "m" | "mb" | "mebibytes" => 1 << 20,
        "g" | "gb" | "gibibytes" => 1 << 30,
        "t" | "tb" | "tebibytes" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(bytes)
}

fn split_unit(text: &str) -> Option<(u64, String)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, text[digits..].trim().to_lowercase()))
}
