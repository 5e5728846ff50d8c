//! Drawing rows as a table while they come: the width of a column is fixed by its type before the first row.

use arrow::datatypes::Schema;
use ebbflow::SqlType;

/// A column's least width, so that `<NULL>` always fits.
const LEAST_WIDTH: usize = 6;

/// A drawn table: its columns' widths and headings.
pub struct Tableau {
    names: Vec<String>,
    widths: Vec<usize>,
}

impl Tableau {
    /// For rows that are not known yet: as wide as the types' longest values, at most `most`.
    pub fn for_stream(schema: &Schema, with_op: bool, most: usize) -> Tableau {
        let mut tableau = Tableau { names: Vec::new(), widths: Vec::new() };
        if with_op {
            tableau.names.push("op".into());
            tableau.widths.push(2);
        }
        for field in schema.fields() {
            let name = one_line(field.name());
            let width = type_width(&SqlType::of_field(field)).clamp(LEAST_WIDTH, most.max(LEAST_WIDTH));
            tableau.widths.push(width.max(display_width(&name)));
            tableau.names.push(name);
        }
        tableau
    }

    /// For rows that are all there: as wide as the widest cell, at most `most`.
    pub fn for_rows(names: Vec<String>, rows: &[Vec<String>], most: usize) -> Tableau {
        let widest = |column: usize| rows.iter().map(|row| display_width(&one_line(&row[column]))).max().unwrap_or(0);
        let widths = names.iter().enumerate().map(|(i, name)| display_width(name).max(widest(i).min(most))).collect();
        Tableau { names, widths }
    }

    /// The lines above the first row.
    pub fn header(&self, to: &mut String) {
        self.rule(to);
        self.row(self.names.iter().map(String::as_str), to);
        self.rule(to);
    }

    /// A line of dashes.
    pub fn rule(&self, to: &mut String) {
        for width in &self.widths {
            to.push('+');
            to.extend(std::iter::repeat_n('-', width + 2));
        }
        to.push_str("+\n");
    }

    /// A row; cells stand on the right and are cut at their column's width.
    pub fn row<'a>(&self, cells: impl IntoIterator<Item = &'a str>, to: &mut String) {
        for (cell, width) in cells.into_iter().zip(&self.widths) {
            let cell = cut(&one_line(cell), *width);
            to.push_str("| ");
            to.extend(std::iter::repeat_n(' ', width.saturating_sub(display_width(&cell))));
            to.push_str(&cell);
            to.push(' ');
        }
        to.push_str("|\n");
    }
}

/// Characters a value of the type takes at most, as Flink's client reserves them.
fn type_width(sql_type: &SqlType) -> usize {
    match sql_type {
        SqlType::Boolean => 7,
        SqlType::TinyInt => 4,
        SqlType::SmallInt => 6,
        SqlType::Int => 11,
        SqlType::BigInt => 20,
        SqlType::Decimal(precision, _) => usize::from(*precision) + 2,
        SqlType::Char(length) | SqlType::Varchar(length) => *length as usize,
        SqlType::Date => 10,
        SqlType::Time(0) => 8,
        SqlType::Time(precision) => 9 + usize::from(*precision),
        SqlType::Timestamp(0) | SqlType::TimestampLtz(0) => 19,
        SqlType::Timestamp(precision) | SqlType::TimestampLtz(precision) => 20 + usize::from(*precision),
        _ => usize::MAX,
    }
}

/// Line breaks and other control characters would break the drawing.
fn one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_string();
    }
    text.chars().fold(String::with_capacity(text.len() + 2), |mut line, c| {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if c.is_control() => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
        line
    })
}

fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_string();
    }
    let mut left = width.saturating_sub(3);
    let kept = text.chars().take_while(|c| {
        let wide = char_width(*c);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    });
    let mut kept: String = kept.collect();
    kept.push_str(&"..."[..width.min(3)]);
    kept
}

/// Columns of a terminal that the text takes.
pub fn display_width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_width).sum() }
}

/// 2 for East Asian wide characters and emoji, 0 for marks that join the character before, else 1 (Unicode annex 11).
fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0x1f3fb..=0x1f3ff => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};

    #[test]
    fn a_stream_is_drawn_as_flink_draws_it() {
        let schema =
            Schema::new(vec![Field::new("name", DataType::Utf8, true), Field::new("cnt", DataType::Int64, true)]);
        let tableau = Tableau::for_stream(&schema, true, 30);
        let mut text = String::new();
        tableau.header(&mut text);
        tableau.row(["+I", "Bob", "1"], &mut text);
        tableau.row(["+U", "a text of more than thirty characters", "2"], &mut text);
        tableau.row(["-D", "two\nlines 日本", "<NULL>"], &mut text);
        tableau.rule(&mut text);
        let expected = "\
+----+--------------------------------+----------------------+
| op |                           name |                  cnt |
+----+--------------------------------+----------------------+
| +I |                            Bob |                    1 |
| +U | a text of more than thirty ... |                    2 |
| -D |                two\\nlines 日本 |               <NULL> |
+----+--------------------------------+----------------------+
";
        assert_eq!(text, expected);
    }

    #[test]
    fn rows_that_are_all_there_are_drawn_as_wide_as_they_are() {
        let rows = vec![vec!["clicks".to_string()], vec!["a".repeat(40)]];
        let tableau = Tableau::for_rows(vec!["table name".into()], &rows, 12);
        let mut text = String::new();
        rows.iter().for_each(|row| tableau.row(row.iter().map(String::as_str), &mut text));
        assert_eq!(text, "|       clicks |\n| aaaaaaaaa... |\n");
    }
}
