//! The `stdin` and `stdout` connectors: tables at the ends of a pipe.
//!
//! Standard input cannot be read twice, but a run that is repeated with the same input goes on behind the bytes its
//! checkpoint covers. One subtask reads.

use std::io::Read;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::{
    Committable, Connector, ConnectorContext, Console, Guarantee, Progress, Sink, SinkWriter, Source, SourceEvent,
    SourceReader, SplitPosition, format_of,
};
use crate::catalog::Options;
use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId};
use crate::error::{Error, Result};
use crate::formats::{Decoder, Encoder, Format, Wanted};
use crate::limits::RECORD_BYTES;

/// `stdin`'s line in the list.
pub(super) const STDIN: Connector = Connector {
    name: "stdin",
    options: &[],
    takes_format: true,
    source: Some(|context| Ok(Arc::new(Stdin(Pipe::new(context)?)))),
    sink: None,
};

/// `stdout`'s line in the list.
pub(super) const STDOUT: Connector = Connector {
    name: "stdout",
    options: &[],
    takes_format: true,
    source: None,
    sink: Some(|context| Ok(Arc::new(Stdout(Pipe::new(context)?)))),
};

/// Bytes taken from standard input at once: small, so that a slow pipe's rows do not wait for more.
const PIECE_BYTES: usize = 64 << 10;

/// What both ends are made from.
struct Pipe {
    console: Arc<dyn Console>,
    format: &'static Format,
    options: Options,
    schema: SchemaRef,
}

impl Pipe {
    fn new(context: &ConnectorContext) -> Result<Pipe> {
        let format = format_of(&context.table)?;
        let schema = context.table.physical_schema();
        if context.table.scan_schema() != schema {
            return Err(Error::sql("stdin and stdout tables have no metadata columns"));
        }
        Ok(Pipe {
            console: Arc::clone(&context.console),
            format,
            options: format.own_options(&context.table.options),
            schema,
        })
    }
}

struct Stdin(Pipe);

impl Source for Stdin {
    fn mode(&self) -> ChangelogMode {
        self.0.format.modes.reads
    }

    fn bounded(&self) -> bool {
        true
    }

    fn open(
        &self,
        subtask: usize,
        _: usize,
        projection: &[usize],
        restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>> {
        let wanted = Wanted { schema: Arc::clone(&self.0.schema), projection: projection.to_vec() };
        let mut decoder = self.0.format.record_decoder(&self.0.options, wanted)?;
        let position = restored.and_then(|splits| splits.iter().find(|split| split.split == "stdin"));
        let number = |key: &str| position.and_then(|split| split.position[key].as_u64()).unwrap_or(0);
        decoder.set_line(number("line"));
        let pieces = (subtask == 0).then(|| read_pieces(self.0.console.input(), number("bytes")));
        Ok(Box::new(StdinReader {
            pieces,
            decoder,
            buffer: Vec::new(),
            bytes: number("bytes"),
            ended: false,
            idle: false,
            first: subtask == 0,
        }))
    }
}

/// Reads on a thread of its own, because reading a pipe blocks. The thread ends with the input, or when nobody takes
/// its pieces any more.
fn read_pieces(mut input: Box<dyn Read + Send>, skip: u64) -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut skip = skip;
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let sent = match input.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => {
                    let from = usize::try_from(skip).unwrap_or(usize::MAX).min(length);
                    skip -= from as u64;
                    sender.blocking_send(Ok(piece[from..length].to_vec()))
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let _ = sender.blocking_send(Err(error));
                    return;
                }
            };
            if sent.is_err() {
                return;
            }
        }
    });
    receiver
}

struct StdinReader {
    /// `None` in subtasks that do not read, and at the end.
    pieces: Option<mpsc::Receiver<std::io::Result<Vec<u8>>>>,
    decoder: Box<dyn Decoder>,
    buffer: Vec<u8>,
    /// Bytes of the input that have been delivered as rows.
    bytes: u64,
    ended: bool,
    /// Whether the last answer was `Idle`.
    idle: bool,
    first: bool,
}

impl StdinReader {
    async fn read(&mut self) -> Result<SourceEvent> {
        loop {
            let used = self.decoder.decode(&self.buffer, self.ended).map_err(|error| error.context("stdin"))?;
            self.buffer.drain(..used);
            self.bytes += used as u64;
            if self.decoder.pending_rows() > 0 {
                self.idle = false;
                return Ok(SourceEvent::Changes(self.decoder.flush()?));
            }
            let Some(pieces) = &mut self.pieces else {
                if self.ended && used > 0 {
                    continue;
                }
                return Ok(SourceEvent::End);
            };
            if self.buffer.len() > RECORD_BYTES {
                return Err(Error::data(format!("stdin: a record is longer than {RECORD_BYTES} bytes")));
            }
            let piece = match pieces.try_recv() {
                Ok(piece) => Some(piece),
                Err(mpsc::error::TryRecvError::Disconnected) => None,
                Err(mpsc::error::TryRecvError::Empty) if !self.idle => {
                    self.idle = true;
                    return Ok(SourceEvent::Idle);
                }
                Err(mpsc::error::TryRecvError::Empty) => pieces.recv().await,
            };
            match piece {
                Some(Ok(piece)) => self.buffer.extend_from_slice(&piece),
                Some(Err(error)) => return Err(Error::setup(format!("cannot read standard input: {error}"))),
                None => {
                    self.pieces = None;
                    self.ended = true;
                }
            }
        }
    }
}

impl SourceReader for StdinReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        self.read().boxed()
    }

    fn positions(&self) -> Vec<SplitPosition> {
        if !self.first {
            return Vec::new();
        }
        let position = serde_json::json!({ "bytes": self.bytes, "line": self.decoder.line() });
        vec![SplitPosition { split: "stdin".to_string(), position }]
    }

    fn progress(&self) -> Progress {
        Progress { bytes: self.bytes, total_bytes: None, skipped_rows: self.decoder.skipped() }
    }
}

struct Stdout(Pipe);

impl Sink for Stdout {
    fn accepts(&self) -> ChangelogMode {
        self.0.format.modes.writes
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    fn open(&self, _: &str, _: usize, _: u64, schema: SchemaRef) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(StdoutWriter {
            console: Arc::clone(&self.0.console),
            encoder: self.0.format.record_encoder(&self.0.options, schema)?,
            text: Vec::new(),
        }))
    }
}

struct StdoutWriter {
    console: Arc<dyn Console>,
    encoder: Box<dyn Encoder>,
    text: Vec<u8>,
}

impl SinkWriter for StdoutWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        self.text.clear();
        self.encoder.encode(batch, &mut self.text)?;
        self.console
            .write(false, &self.text)
            .map_err(|error| Error::setup(format!("cannot write to standard output: {error}")))
    }

    fn prepare(&mut self, _: CheckpointId) -> Result<Option<Committable>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Column, ColumnKind, TableDefinition};
    use crate::types::SqlType;

    struct Typed(&'static str);

    impl Console for Typed {
        fn write(&self, _: bool, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }

        fn input(&self) -> Box<dyn Read + Send> {
            Box::new(self.0.as_bytes())
        }
    }

    fn stdin(text: &'static str) -> Arc<dyn Source> {
        let column = Column {
            name: "n".to_string(),
            sql_type: SqlType::Int,
            nullable: true,
            kind: ColumnKind::Physical,
            comment: None,
        };
        let given = [("connector", "stdin"), ("format", "csv")];
        let table = TableDefinition {
            name: "t".to_string(),
            columns: vec![column],
            watermark: None,
            primary_key: Vec::new(),
            primary_key_name: None,
            partitioned_by: Vec::new(),
            options: Options(given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()),
            comment: None,
            temporary: false,
            span: None,
        };
        let console = Arc::new(Typed(text));
        let context = ConnectorContext {
            table: Arc::new(table),
            console,
            batch: false,
            zone: crate::types::TimeZone::UTC,
            in_order: false,
        };
        (STDIN.source.unwrap())(&context).unwrap()
    }

    async fn count(reader: &mut dyn SourceReader) -> usize {
        let mut rows = 0;
        loop {
            match reader.next().await.unwrap() {
                SourceEvent::Changes(batch) => rows += batch.len(),
                SourceEvent::Idle => {}
                SourceEvent::End => return rows,
            }
        }
    }

    #[tokio::test]
    async fn a_pipe_is_read_to_its_end_by_one_subtask() {
        let mut reader = stdin("1\n2\n3\n").open(0, 2, &[0], None).unwrap();
        assert_eq!(count(&mut *reader).await, 3);
        assert_eq!(count(&mut *stdin("1\n").open(1, 2, &[0], None).unwrap()).await, 0);
        let saved = reader.positions();
        assert_eq!(count(&mut *stdin("1\n2\n3\n4\n5\n").open(0, 1, &[0], Some(&saved)).unwrap()).await, 2);
    }
}
