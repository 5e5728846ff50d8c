//! The `print` connector: every change as a line on standard output, `+I[Mary, 1]`, in the form Flink prints.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::{Committable, Connector, ConnectorContext, Console, Guarantee, Sink, SinkWriter};
use crate::catalog::{DeclaredOption, OptionKind};
use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId};
use crate::error::{Error, Result};
use crate::formats::View;

/// Its line in the list.
pub(super) const CONNECTOR: Connector = Connector {
    name: "print",
    options: &[
        DeclaredOption {
            name: "print-identifier",
            kind: OptionKind::Text,
            default: None,
            required: false,
            help: "A word before each line: `orders> +I[1]`.",
        },
        DeclaredOption {
            name: "standard-error",
            kind: OptionKind::Boolean,
            default: Some("false"),
            required: false,
            help: "Whether to write to standard error.",
        },
    ],
    takes_format: false,
    source: None,
    sink: Some(|context| Ok(Arc::new(Print::new(context)?))),
};

struct Print {
    console: Arc<dyn Console>,
    identifier: String,
    standard_error: bool,
    /// Whether several subtasks write, each naming itself.
    parallel: bool,
}

impl Print {
    fn new(context: &ConnectorContext) -> Result<Print> {
        let options = &context.table.options;
        Ok(Print {
            console: Arc::clone(&context.console),
            identifier: options.get("print-identifier").unwrap_or("").to_string(),
            standard_error: options.boolean("standard-error", false)?,
            parallel: options.integer("sink.parallelism")?.is_some_and(|parallelism| parallelism > 1),
        })
    }
}

impl Sink for Print {
    fn accepts(&self) -> ChangelogMode {
        ChangelogMode::RETRACT
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    fn open(&self, _: &str, subtask: usize, _: u64, _: SchemaRef) -> Result<Box<dyn SinkWriter>> {
        let prefix = match (self.identifier.as_str(), self.parallel) {
            ("", false) => String::new(),
            ("", true) => format!("{}> ", subtask + 1),
            (identifier, false) => format!("{identifier}> "),
            (identifier, true) => format!("{identifier}:{}> ", subtask + 1),
        };
        Ok(Box::new(PrintWriter {
            console: Arc::clone(&self.console),
            prefix,
            standard_error: self.standard_error,
            text: Vec::new(),
        }))
    }
}

struct PrintWriter {
    console: Arc<dyn Console>,
    prefix: String,
    standard_error: bool,
    text: Vec<u8>,
}

impl SinkWriter for PrintWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        let rows = batch.rows();
        let fields = rows.schema_ref().fields().iter().zip(rows.columns());
        let views: Vec<View<'_>> = fields.map(|(field, column)| View::new(field, column)).collect::<Result<_>>()?;
        self.text.clear();
        for row in 0..batch.len() {
            self.text.extend_from_slice(self.prefix.as_bytes());
            self.text.extend_from_slice(batch.kind(row).symbol().as_bytes());
            self.text.push(b'[');
            for (index, view) in views.iter().enumerate() {
                if index > 0 {
                    self.text.extend_from_slice(b", ");
                }
                view.write_java(row, &mut self.text);
            }
            self.text.extend_from_slice(b"]\n");
        }
        self.console
            .write(self.standard_error, &self.text)
            .map_err(|error| Error::setup(format!("cannot print: {error}")))
    }

    fn prepare(&mut self, _: CheckpointId) -> Result<Option<Committable>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use arrow::array::{Int32Array, RecordBatch, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::changelog::Kind;

    #[derive(Default)]
    struct Paper(Mutex<Vec<u8>>);

    impl Console for Paper {
        fn write(&self, _: bool, bytes: &[u8]) -> std::io::Result<()> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(())
        }

        fn input(&self) -> Box<dyn std::io::Read + Send> {
            Box::new(std::io::empty())
        }
    }

    #[test]
    fn changes_print_with_their_kind() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, true),
            Field::new("n", DataType::Int32, true),
        ]));
        let rows = RecordBatch::try_new(
            Arc::clone(&schema),
            vec![Arc::new(StringArray::from(vec!["Mary", "Mary"])), Arc::new(Int32Array::from(vec![Some(1), None]))],
        )
        .unwrap();
        let paper = Arc::new(Paper::default());
        let sink = Print {
            console: Arc::<Paper>::clone(&paper),
            identifier: "id".into(),
            standard_error: false,
            parallel: true,
        };
        let batch = ChangeBatch::new(rows, vec![Kind::UpdateBefore, Kind::UpdateAfter]).unwrap();
        sink.open("s", 1, 1, schema).unwrap().write(&batch).unwrap();
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "id:2> -U[Mary, 1]\nid:2> +U[Mary, null]\n");
    }
}
