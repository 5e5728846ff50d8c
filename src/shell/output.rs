//! A query's result on its way to standard output: drawn as a table, as changelog lines, CSV or JSON.

use std::io::IsTerminal;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use ebbflow::{ChangeBatch, Changes, Kind, RowFormat, Session};

use super::Flow;
use super::arguments::ResultFormat;
use super::console::Terminal;
use super::ending::Ending;
use super::fold::Folded;
use super::interrupt::Interrupts;
use super::table::Tableau;
use super::{jobs, json};

/// Rows of a table result that are redrawn while it changes; the final table is drawn whole.
const LIVE_ROWS: usize = 20;

/// Where cells of drawn tables are cut unless an option says otherwise.
const COLUMN_WIDTH: usize = 30;

/// The option that says how results are shown, and its values.
pub const RESULT_MODE: &str = "sql-client.execution.result-mode";

/// How a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    format: ResultFormat,
    /// Whether the changes are folded into the table they describe.
    folded: bool,
    /// Whether that table is redrawn while it changes.
    live: bool,
    width: usize,
}

impl View {
    /// What the session's options and the command line ask for.
    ///
    /// # Errors
    /// If the options have values that do not exist.
    pub fn of(session: &Session, format: Option<ResultFormat>, terminal: bool) -> Flow<View> {
        let mode = session.option(RESULT_MODE).unwrap_or_else(|| "tableau".into()).to_ascii_lowercase();
        let (folded, default) = match mode.as_str() {
            "tableau" => (false, ResultFormat::Table),
            "changelog" => (false, ResultFormat::Changelog),
            "table" => (true, ResultFormat::Table),
            other => {
                return Err(Ending::setup(format!(
                    "'{other}' is not a valid value for '{RESULT_MODE}'; expected tableau, changelog or table"
                )));
            }
        };
        let format = format.unwrap_or(default);
        let live = folded && terminal && format == ResultFormat::Table;
        Ok(View { format, folded, live, width: column_width(session) })
    }
}

/// `table.display.max-column-width`, in its two spellings: the one that was changed counts.
fn column_width(session: &Session) -> usize {
    ["sql-client.display.max-column-width", "table.display.max-column-width"]
        .iter()
        .filter_map(|key| session.option(key)?.parse().ok())
        .find(|width| *width != COLUMN_WIDTH)
        .unwrap_or(COLUMN_WIDTH)
}

/// Reads a query to its end, or until Ctrl-C, and prints what comes.
///
/// # Errors
/// The query's failure; `Interrupted` after Ctrl-C.
pub async fn print_changes(
    mut changes: Changes,
    view: View,
    zone: ebbflow::TimeZone,
    terminal: &Terminal,
    interrupts: &mut Interrupts,
) -> Flow {
    let mut printer = Printer::new(changes.schema(), view, changes.batch(), zone);
    printer.begin(terminal)?;
    loop {
        let next = tokio::select! {
            next = changes.next() => next,
            () = interrupts.next() => {
                let silent = printer.received == 0;
                let reason = silent.then(|| changes.job().diagnose().sentence);
                drop(changes);
                printer.end(terminal)?;
                if let Some(reason) = reason {
                    eprintln!("no rows: {reason}");
                }
                return Err(Ending::Interrupted);
            }
        };
        match next {
            None => break,
            Some(Ok(batch)) => printer.batch(&batch, terminal)?,
            Some(Err(error)) => {
                printer.end(terminal)?;
                return Err(Ending::from(error));
            }
        }
    }
    printer.end(terminal)?;
    // The query has ended, so its job has.
    let remarks = changes.job().wait().await.map(|report| jobs::remarks(&report)).unwrap_or_default();
    if !remarks.is_empty() {
        eprintln!("{}", remarks.trim_start());
    }
    if printer.received == 0 && std::io::stderr().is_terminal() {
        eprintln!("no rows: {}", changes.job().diagnose().sentence);
    }
    Ok(())
}

/// Prints the rows of `SHOW`, `DESCRIBE`, `EXPLAIN` and the like.
///
/// # Errors
/// If standard output is closed.
pub fn print_rows(rows: &RecordBatch, view: View, zone: ebbflow::TimeZone, terminal: &Terminal) -> Flow {
    let format = RowFormat::new(&rows.schema(), zone);
    let cells = (0..rows.num_rows()).map(|row| format.cells(rows, row)).collect::<ebbflow::Result<Vec<_>>>()?;
    let mut text = String::new();
    let is_text = rows.num_columns() == 1 && cells.iter().any(|row| row[0].contains('\n'));
    match view.format {
        // A plan or a CREATE statement is read as text.
        _ if is_text => cells.iter().for_each(|row| {
            text.push_str(row[0].trim_end());
            text.push('\n');
        }),
        ResultFormat::Table | ResultFormat::Changelog => {
            draw_all(names(&rows.schema()), &cells, usize::MAX, &mut text);
            text.push_str(&format!("{}\n", rows_in_set(cells.len())));
        }
        ResultFormat::Csv => {
            json::write_record(names(&rows.schema()).iter().map(|name| Some(name.as_str())), &mut text);
            for (row, cells) in cells.iter().enumerate() {
                json::write_record(nullable(rows, row, cells), &mut text);
            }
        }
        ResultFormat::Json => {
            for row in 0..rows.num_rows() {
                json::write_line(None, &rows.schema(), rows.columns(), row, zone, &mut text)?;
            }
        }
    }
    Ok(terminal.print(&text)?)
}

fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn draw_all(names: Vec<String>, rows: &[Vec<String>], width: usize, to: &mut String) {
    let tableau = Tableau::for_rows(names, rows, width);
    tableau.header(to);
    rows.iter().for_each(|row| tableau.row(row.iter().map(String::as_str), to));
    tableau.rule(to);
}

fn rows_in_set(count: usize) -> String {
    match count {
        0 => "Empty set".into(),
        1 => "1 row in set".into(),
        count => format!("{count} rows in set"),
    }
}

fn nullable<'a>(rows: &'a RecordBatch, row: usize, cells: &'a [String]) -> impl Iterator<Item = Option<&'a str>> {
    rows.columns().iter().zip(cells).map(move |(column, cell)| column.is_valid(row).then_some(cell.as_str()))
}

struct Printer {
    schema: SchemaRef,
    view: View,
    /// In batch mode only final rows come, and no op column is shown.
    with_op: bool,
    zone: ebbflow::TimeZone,
    format: RowFormat,
    tableau: Tableau,
    folded: Folded,
    received: usize,
    drawn_lines: usize,
    drawn_at: Option<std::time::Instant>,
}

impl Printer {
    fn new(schema: SchemaRef, view: View, batch: bool, zone: ebbflow::TimeZone) -> Printer {
        let with_op = !batch && !view.folded;
        let tableau = Tableau::for_stream(&schema, with_op, view.width);
        let format = RowFormat::new(&schema, zone);
        let folded = Folded::default();
        Printer { schema, view, with_op, zone, format, tableau, folded, received: 0, drawn_lines: 0, drawn_at: None }
    }

    fn begin(&self, terminal: &Terminal) -> Flow {
        let mut text = String::new();
        match self.view.format {
            ResultFormat::Table if !self.view.folded => self.tableau.header(&mut text),
            ResultFormat::Csv => {
                let names = names(&self.schema);
                let op = self.with_op.then_some(Some("op"));
                json::write_record(op.into_iter().chain(names.iter().map(|name| Some(name.as_str()))), &mut text);
            }
            _ => {}
        }
        Ok(terminal.print(&text)?)
    }

    fn batch(&mut self, batch: &ChangeBatch, terminal: &Terminal) -> Flow {
        self.received += batch.len();
        let mut text = String::new();
        let cells = self.format.bind(batch.rows())?;
        for row in 0..batch.len() {
            let kind = batch.kind(row);
            if self.view.folded {
                let folded = self.folded_row(batch.rows(), row, &cells.cells(row)?)?;
                self.folded.apply(kind, folded);
                continue;
            }
            self.write(kind, batch.rows(), row, &cells.cells(row)?, &mut text)?;
        }
        terminal.print(&text)?;
        if self.view.live { self.redraw(terminal) } else { Ok(()) }
    }

    /// What of a row is folded: its cells, or its whole line where the form needs the types.
    fn folded_row(&self, rows: &RecordBatch, row: usize, cells: &[String]) -> Flow<Vec<String>> {
        match self.view.format {
            ResultFormat::Table | ResultFormat::Changelog => Ok(cells.to_vec()),
            ResultFormat::Csv | ResultFormat::Json => {
                let mut line = String::new();
                self.write(Kind::Insert, rows, row, cells, &mut line)?;
                Ok(vec![line])
            }
        }
    }

    fn write(&self, kind: Kind, rows: &RecordBatch, row: usize, cells: &[String], to: &mut String) -> Flow {
        let op = self.with_op.then_some(kind.symbol());
        match self.view.format {
            ResultFormat::Table => self.tableau.row(op.into_iter().chain(cells.iter().map(String::as_str)), to),
            ResultFormat::Changelog => {
                if let Some(op) = op {
                    to.push_str(op);
                    to.push(' ');
                }
                changelog_line(cells, to);
                to.push('\n');
            }
            ResultFormat::Csv => json::write_record(op.map(Some).into_iter().chain(nullable(rows, row, cells)), to),
            ResultFormat::Json => json::write_line(op, &self.schema, rows.columns(), row, self.zone, to)?,
        }
        Ok(())
    }

    /// Draws the table anew over the one before, not more often than an eye can follow.
    fn redraw(&mut self, terminal: &Terminal) -> Flow {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
        if self.drawn_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(());
        }
        let total = self.folded.rows().count();
        let rows: Vec<Vec<String>> = self.folded.rows().take(LIVE_ROWS).map(<[String]>::to_vec).collect();
        let mut text = self.erase();
        draw_all(names(&self.schema), &rows, self.view.width, &mut text);
        if total > rows.len() {
            text.push_str(&format!("… and {} more rows\n", total - rows.len()));
        }
        self.drawn_lines = text.matches('\n').count();
        self.drawn_at = Some(std::time::Instant::now());
        Ok(terminal.print(&text)?)
    }

    /// Moves up over what was drawn and clears it.
    fn erase(&self) -> String {
        if self.drawn_lines == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.drawn_lines) }
    }

    fn end(&mut self, terminal: &Terminal) -> Flow {
        let mut text = self.erase();
        self.drawn_lines = 0;
        let rows: Vec<Vec<String>> = self.folded.rows().map(<[String]>::to_vec).collect();
        match (self.view.format, self.view.folded) {
            (ResultFormat::Table, true) => {
                draw_all(names(&self.schema), &rows, self.view.width, &mut text);
                text.push_str(&format!("{}\n", rows_in_set(rows.len())));
            }
            (ResultFormat::Table, false) => {
                self.tableau.rule(&mut text);
                let count = self.received;
                text.push_str(&match (self.with_op, count) {
                    (true, 1) => "Received a total of 1 row\n".into(),
                    (true, count) => format!("Received a total of {count} rows\n"),
                    (false, count) => format!("{}\n", rows_in_set(count)),
                });
            }
            (ResultFormat::Changelog, true) => rows.iter().for_each(|row| {
                changelog_line(row, &mut text);
                text.push('\n');
            }),
            (_, true) => rows.iter().for_each(|row| text.push_str(&row[0])),
            (_, false) => {}
        }
        Ok(terminal.print(&text)?)
    }
}

/// The notation of changelogs in tests, docs and shell alike: cells joined by ` | `, the empty text as `(empty)`, a
/// line feed as `\n`.
pub fn changelog_line(cells: &[String], to: &mut String) {
    for (index, cell) in cells.iter().enumerate() {
        to.push_str(if index > 0 { " | " } else { "" });
        match cell.as_str() {
            "" => to.push_str("(empty)"),
            cell if cell.contains('\n') => to.push_str(&cell.replace('\n', "\\n")),
            cell => to.push_str(cell),
        }
    }
}
