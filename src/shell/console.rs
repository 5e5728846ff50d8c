//! The standard streams: the terminal's own, and captured ones for tests.

use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

use ebbflow::Console;
use indicatif::ProgressBar;

/// The process's own standard streams. What `print` tables and results write shares the screen with a progress line,
/// which steps aside for it.
#[derive(Default)]
pub struct Terminal {
    // A std mutex: held for the length of one write and never over an await.
    progress: Mutex<Option<ProgressBar>>,
}

impl Terminal {
    /// Shows a progress line, or takes it away.
    pub fn set_progress(&self, progress: Option<ProgressBar>) {
        let before = std::mem::replace(&mut *self.lock(), progress);
        if let Some(before) = before {
            before.finish_and_clear();
        }
    }

    /// Writes text to standard output.
    ///
    /// # Errors
    /// If it is closed.
    pub fn print(&self, text: &str) -> std::io::Result<()> {
        self.write(false, text.as_bytes())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Console for Terminal {
    fn write(&self, error: bool, bytes: &[u8]) -> std::io::Result<()> {
        let write = || {
            if error {
                std::io::stderr().lock().write_all(bytes)
            } else {
                let mut output = std::io::stdout().lock();
                output.write_all(bytes)?;
                output.flush()
            }
        };
        match &*self.lock() {
            Some(progress) => progress.suspend(write),
            None => write(),
        }
    }

    fn input(&self) -> Box<dyn Read + Send> {
        Box::new(std::io::stdin())
    }
}

/// Keeps what is written; has nothing to read.
#[derive(Default)]
pub struct Captured {
    written: Mutex<Vec<u8>>,
}

impl Captured {
    /// What was written since the last call.
    pub fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Console for Captured {
    fn write(&self, _error: bool, bytes: &[u8]) -> std::io::Result<()> {
        /// More than anyone reads in a failed test's report.
        const KEPT: usize = 64 << 10;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT.saturating_sub(written.len()).min(bytes.len());
        written.extend_from_slice(&bytes[..room]);
        Ok(())
    }

    fn input(&self) -> Box<dyn Read + Send> {
        Box::new(std::io::empty())
    }
}
