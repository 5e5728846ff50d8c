//! Java's date patterns (`yyyy-MM-dd HH:mm:ss.SSS`): compiled once, then used to write and to read times.

use super::calendar::{DAY_SECONDS, civil_from_days, day_of_year, days_in_month, iso_day_of_week, iso_week};
use super::moment::Moment;
use crate::error::{Error, Result};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::functions) struct Pattern {
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// A letter and how often it stands there.
    Field(char, usize),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const LETTERS: &str = "GyuYMLdDEeacQqwWFHhKkmsSnAzZXxVO";

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Kind `Sql` if a letter has no meaning or a quotation does not end.
    pub fn compile(text: &str) -> Result<Pattern> {
        let mut items = Vec::new();
        let mut characters = text.chars().peekable();
        let wrong = |what: String| Error::sql(format!("the date pattern '{text}' {what}"));
        while let Some(character) = characters.next() {
            if character == '\'' {
                let mut literal = String::new();
                loop {
                    match characters.next() {
                        Some('\'') if characters.peek() == Some(&'\'') => {
                            characters.next();
                            literal.push('\'');
                        }
                        Some('\'') => break,
                        Some(other) => literal.push(other),
                        None => return Err(wrong("has a ' without its partner".into())),
                    }
                }
                // Two quotation marks are one.
                push_literal(&mut items, if literal.is_empty() { "'" } else { &literal });
            } else if character.is_ascii_alphabetic() {
                if !LETTERS.contains(character) {
                    return Err(wrong(format!("has the letter '{character}', which means nothing"))
                        .hint("put text between single quotation marks"));
                }
                let mut count = 1;
                while characters.next_if_eq(&character).is_some() {
                    count += 1;
                }
                items.push(Item::Field(character, count));
            } else if character != '[' && character != ']' {
                push_literal(&mut items, character.encode_utf8(&mut [0; 4]));
            }
        }
        Ok(Pattern { items })
    }

    /// Writes a local time; `offset` is that of its zone in seconds.
    pub fn format(&self, local: Moment, offset: i64, zone: &str, to: &mut String) {
        let (year, month, day) = civil_from_days(local.days());
        let clock = Clock { local, year, month, day, offset, zone };
        for item in &self.items {
            match item {
                Item::Literal(text) => to.push_str(text),
                Item::Field(letter, count) => clock.write(*letter, *count, to),
            }
        }
    }

    /// Reads a local time; nothing if the text does not follow the pattern.
    pub fn parse(&self, text: &str) -> Option<Moment> {
        let mut read = Reading::default();
        let mut rest = text;
        for (index, item) in self.items.iter().enumerate() {
            rest = match item {
                Item::Literal(literal) => rest.strip_prefix(literal.as_str())?,
                Item::Field(letter, count) => {
                    let adjacent = matches!(self.items.get(index + 1), Some(Item::Field(next, _)) if is_number(*next));
                    read.field(*letter, *count, adjacent, rest)?
                }
            };
        }
        if rest.is_empty() { read.moment() } else { None }
    }
}

fn push_literal(items: &mut Vec<Item>, text: &str) {
    match items.last_mut() {
        Some(Item::Literal(last)) => last.push_str(text),
        _ => items.push(Item::Literal(text.to_string())),
    }
}

fn is_number(letter: char) -> bool {
    !matches!(letter, 'G' | 'E' | 'a' | 'z' | 'Z' | 'X' | 'x' | 'V' | 'O')
}

struct Clock<'a> {
    local: Moment,
    year: i64,
    month: u32,
    day: u32,
    offset: i64,
    zone: &'a str,
}

impl Clock<'_> {
    fn write(&self, letter: char, count: usize, to: &mut String) {
        let second = self.local.second_of_day();
        let hour = second / 3_600;
        let days = self.local.days();
        match letter {
            'G' => to.push_str(if count == 4 { "Anno Domini" } else { "AD" }),
            'y' | 'u' if count == 2 => number(self.year.rem_euclid(100), 2, to),
            'Y' if count == 2 => number(iso_week(days).0.rem_euclid(100), 2, to),
            'y' | 'u' => number(self.year, count, to),
            'Y' => number(iso_week(days).0, count, to),
            'M' | 'L' => match count {
                1 | 2 => number(i64::from(self.month), count, to),
                3 => to.push_str(&MONTHS[self.month as usize - 1][..3]),
                _ => to.push_str(MONTHS[self.month as usize - 1]),
            },
            'd' => number(i64::from(self.day), count, to),
            'D' => number(day_of_year(days), count, to),
            'F' => number(i64::from((self.day - 1) / 7 + 1), count, to),
            'W' => number(i64::from((self.day - 1) / 7 + 1), count, to),
            'E' | 'e' | 'c' => {
                let index = iso_day_of_week(days) as usize - 1;
                match (letter, count) {
                    ('E', 0..=3) | (_, 3) => to.push_str(&DAYS[index][..3]),
                    ('e' | 'c', 1 | 2) => number((index as i64 + 1) % 7 + 1, count, to),
                    _ => to.push_str(DAYS[index]),
                }
            }
            'a' => to.push_str(if hour < 12 { "AM" } else { "PM" }),
            'Q' | 'q' => {
                let quarter = i64::from((self.month - 1) / 3 + 1);
                if count > 2 {
                    to.push('Q');
                }
                number(quarter, if count > 2 { 1 } else { count }, to);
            }
            'w' => number(iso_week(days).1, count, to),
            'H' => number(hour, count, to),
            'k' => number(if hour == 0 { 24 } else { hour }, count, to),
            'K' => number(hour % 12, count, to),
            'h' => number(if hour % 12 == 0 { 12 } else { hour % 12 }, count, to),
            'm' => number(second / 60 % 60, count, to),
            's' => number(second % 60, count, to),
            'S' => {
                let mut unit = 100_000_000;
                for _ in 0..count.min(9) {
                    to.push((b'0' + (self.local.nanos / unit % 10) as u8) as char);
                    unit /= 10;
                }
            }
            'n' => number(i64::from(self.local.nanos), count, to),
            'A' => number(second * 1_000 + i64::from(self.local.nanos) / 1_000_000, count, to),
            'z' | 'V' => to.push_str(self.zone),
            'Z' => self.write_offset(false, "+0000", to),
            'O' => {
                to.push_str("GMT");
                if self.offset != 0 {
                    self.write_offset(true, "", to);
                }
            }
            'X' if self.offset == 0 => to.push('Z'),
            _ => self.write_offset(count == 3 || count == 5, "+00", to),
        }
    }

    fn write_offset(&self, colon: bool, zero: &str, to: &mut String) {
        if self.offset == 0 && !zero.is_empty() {
            to.push_str(if colon { "+00:00" } else { zero });
            return;
        }
        to.push(if self.offset < 0 { '-' } else { '+' });
        number(self.offset.abs() / 3_600, 2, to);
        if colon {
            to.push(':');
        }
        number(self.offset.abs() / 60 % 60, 2, to);
    }
}

/// A number with at least `width` digits.
fn number(value: i64, width: usize, to: &mut String) {
    if value < 0 {
        to.push('-');
    }
    let start = to.len();
    crate::functions::text_form::write_integer(value.abs(), to);
    for _ in to.len() - start..width {
        to.insert(start, '0');
    }
}

/// What a text has said so far.
#[derive(Debug, Default)]
struct Reading {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    half_hour: Option<i64>,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanos: i64,
    offset: i64,
}

impl Reading {
    fn field<'a>(&mut self, letter: char, count: usize, adjacent: bool, text: &'a str) -> Option<&'a str> {
        match letter {
            'M' | 'L' if count >= 3 => {
                let (index, rest) = name(text, &MONTHS, count == 3)?;
                self.month = Some(index as i64 + 1);
                return Some(rest);
            }
            'E' => return name(text, &DAYS, count <= 3).map(|(_, rest)| rest),
            'a' => {
                let mark = text.get(..2)?.to_ascii_uppercase();
                self.afternoon = Some(match mark.as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                return Some(&text[2..]);
            }
            'G' => return text.strip_prefix("AD"),
            'z' | 'V' | 'Z' | 'X' | 'x' | 'O' => return self.zone(text),
            'S' => {
                let (digits, rest) = digits(text, count, count)?;
                let padded = digits.parse::<i64>().ok()?;
                self.nanos = padded * 10_i64.pow(9_u32.saturating_sub(count as u32));
                return Some(rest);
            }
            _ => {}
        }
        let (least, most) = match count {
            1 if adjacent => (1, 1),
            1 => (1, 10),
            2 => (2, 2),
            _ if adjacent => (count, count),
            _ => (count, 10),
        };
        let (found, rest) = digits(text, least, most)?;
        let value = found.parse::<i64>().ok()?;
        match letter {
            'y' | 'u' | 'Y' => self.year = Some(if count == 2 { 2_000 + value } else { value }),
            'M' | 'L' => self.month = Some(value),
            'd' => self.day = Some(value),
            'D' => self.day_of_year = Some(value),
            'H' => self.hour = Some(value),
            'k' => self.hour = Some(value % 24),
            'K' => self.half_hour = Some(value),
            'h' => self.half_hour = Some(value % 12),
            'm' => self.minute = value,
            's' => self.second = value,
            'n' => self.nanos = value,
            _ => {}
        }
        Some(rest)
    }

    fn zone<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if let Some(rest) =
            text.strip_prefix("UTC").or_else(|| text.strip_prefix("GMT")).or_else(|| text.strip_prefix('Z'))
        {
            return Some(rest);
        }
        let sign = match text.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (hours, rest) = digits(&text[1..], 2, 2)?;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        let (minutes, rest) = digits(rest, 2, 2).unwrap_or(("0", rest));
        self.offset = sign * (hours.parse::<i64>().ok()? * 3_600 + minutes.parse::<i64>().ok()? * 60);
        Some(rest)
    }

    fn moment(&self) -> Option<Moment> {
        let hour = match (self.hour, self.half_hour) {
            (Some(hour), _) => hour,
            (None, Some(half)) => half + if self.afternoon == Some(true) { 12 } else { 0 },
            (None, None) => 0,
        };
        let days = match self.day_of_year {
            Some(day) => super::calendar::days_from_civil(self.year.unwrap_or(1970), 1, 1) + day - 1,
            None => smart_days(self.year.unwrap_or(1970), self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        smart_moment(days, hour, self.minute, self.second, self.nanos)
            .map(|m| Moment { seconds: m.seconds - self.offset, ..m })
    }
}

/// The day of a date; a day up to 31 that its month lacks becomes the month's last.
pub(in crate::functions) fn smart_days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let day = (day as u32).min(days_in_month(year, month as u32));
    Some(super::calendar::days_from_civil(year, month as u32, day))
}

/// A day and a time of day; 24:00:00 is the next midnight.
pub(in crate::functions) fn smart_moment(days: i64, hour: i64, minute: i64, second: i64, nanos: i64) -> Option<Moment> {
    let midnight = hour == 24 && minute == 0 && second == 0 && nanos == 0;
    if !(midnight || (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second)) {
        return None;
    }
    Some(Moment { seconds: days * DAY_SECONDS + hour * 3_600 + minute * 60 + second, nanos: nanos as u32 })
}

fn name<'a>(text: &'a str, names: &[&str], short: bool) -> Option<(usize, &'a str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = if short { &name[..3] } else { name };
        let head = text.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| (index, &text[name.len()..]))
    })
}

/// Between `least` and `most` digits at the start of a text.
pub(in crate::functions) fn digits(text: &str, least: usize, most: usize) -> Option<(&str, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (count >= least && count > 0).then(|| text.split_at(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pattern: &str, moment: Moment) -> String {
        let mut text = String::new();
        Pattern::compile(pattern).unwrap().format(moment, 0, "UTC", &mut text);
        text
    }

    #[test]
    fn patterns_write_and_read() {
        let moment = Moment { seconds: 1_709_201_472, nanos: 345_000_000 };
        assert_eq!(written("yyyy-MM-dd HH:mm:ss.SSS", moment), "2024-02-29 10:11:12.345");
        assert_eq!(written("yy/M/d h:mm a EEE MMM 'at' ''", moment), "24/2/29 10:11 AM Thu Feb at '");
        let read = |pattern: &str, text: &str| Pattern::compile(pattern).unwrap().parse(text);
        assert_eq!(read("yyyyMMddHHmmssSSS", "20240229101112345"), Some(moment));
        assert_eq!(read("dd.MM.yyyy", "30.02.2024").map(|m| m.days()), Some(19_782));
        assert_eq!(read("yyyy-MM-dd", "2024-2-9"), None);
        assert_eq!(read("yyyy-M-d", "2024-2-9").map(|m| m.days()), Some(19_762));
        assert_eq!(read("yyyy-MM-dd", "2024-02-29x"), None);
        assert!(Pattern::compile("yyyy-bb").is_err());
    }
}
