//! The engine: worker threads, clock and standard streams that its sessions share.

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::handle::Session;
use super::kept::KeptCatalog;
use crate::connectors::Console;
use crate::error::{Error, Result};
use crate::runtime::{Clock, SystemClock};

/// Owns the worker threads; sessions are cheap. Cloning gives another handle to the same engine; when the last handle
/// and the last session are gone, running jobs stop.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

/// Settings of an [`Engine`].
#[derive(Default)]
pub struct EngineBuilder {
    parallelism: Option<usize>,
    console: Option<Arc<dyn Console>>,
    clock: Option<Arc<dyn Clock>>,
    catalog: Option<PathBuf>,
}

pub(super) struct EngineInner {
    /// `None` only while being dropped.
    threads: Option<tokio::runtime::Runtime>,
    pub(super) parallelism: usize,
    pub(super) console: Arc<dyn Console>,
    pub(super) clock: Arc<dyn Clock>,
    /// The catalog on disk, if there is one. A standard mutex: held while a statement changes the catalog, never across
    /// a wait.
    kept: OnceLock<Mutex<KeptCatalog>>,
}

impl EngineInner {
    pub(super) fn handle(&self) -> Result<tokio::runtime::Handle> {
        match &self.threads {
            Some(threads) => Ok(threads.handle().clone()),
            None => Err(Error::cancelled()),
        }
    }
}

impl EngineInner {
    /// The catalog on disk, if there is one.
    pub(super) fn kept(&self) -> Option<MutexGuard<'_, KeptCatalog>> {
        // A panic while it is held leaves it as it was: the file is replaced before anything is noted.
        self.kept.get().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for EngineInner {
    fn drop(&mut self) {
        // Not waiting for the threads: an engine may be dropped inside somebody's async code, where waiting panics.
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

impl Engine {
    /// Starts to build one.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// A fresh session: an empty catalog (or what the engine's catalog file declares), default options.
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.inner))
    }

    /// Runs a future to its end on the calling thread, for programs that are not asynchronous themselves.
    ///
    /// # Panics
    /// If called from asynchronous code, as the runtime does.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match &self.inner.threads {
            Some(threads) => threads.block_on(future),
            None => unreachable!("the threads are there until the engine is dropped"),
        }
    }
}

impl EngineBuilder {
    /// Default parallelism of jobs; else the number of cores.
    #[must_use]
    pub fn parallelism(mut self, parallelism: usize) -> EngineBuilder {
        self.parallelism = Some(parallelism);
        self
    }

    /// Where `print` and `stdout` tables write and `stdin` tables read; else nowhere and nothing.
    #[must_use]
    pub fn console(mut self, console: Arc<dyn Console>) -> EngineBuilder {
        self.console = Some(console);
        self
    }

    /// The clock of processing time; else the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> EngineBuilder {
        self.clock = Some(clock);
        self
    }

    /// Keeps databases, tables, views and functions in this file, except what is `TEMPORARY`: sessions begin with what it
    /// declares, and every change is in it when its statement is done. One process at a time can use it.
    #[must_use]
    pub fn catalog(mut self, file: impl Into<PathBuf>) -> EngineBuilder {
        self.catalog = Some(file.into());
        self
    }

    /// Starts the worker threads.
    ///
    /// # Errors
    /// If threads cannot be started, the parallelism is out of range, or the catalog's file is in use, damaged or
    /// written by a newer version.
    pub fn build(self) -> Result<Engine> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let ceiling = usize::from(crate::limits::KEY_GROUPS);
        let parallelism = self.parallelism.unwrap_or(cores.min(ceiling));
        if !(1..=ceiling).contains(&parallelism) {
            return Err(Error::setup(format!("parallelism {parallelism} is not within 1 to {ceiling}")));
        }
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.max(2))
            .thread_name("ebbflow")
            .enable_all()
            .build()
            .map_err(|error| Error::setup(format!("cannot start worker threads: {error}")))?;
        let inner = EngineInner {
            threads: Some(threads),
            parallelism,
            console: self.console.unwrap_or_else(|| Arc::new(NoConsole)),
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock)),
            kept: OnceLock::new(),
        };
        let engine = Engine { inner: Arc::new(inner) };
        if let Some(path) = self.catalog {
            let kept = KeptCatalog::open(&path, |text| Session::scratch(Arc::clone(&engine.inner)).replay(text))?;
            // Nobody else has the engine yet.
            let _ = engine.inner.kept.set(Mutex::new(kept));
        }
        Ok(engine)
    }
}

/// Standard streams of a program that gave none: output is discarded, input is empty.
struct NoConsole;

impl Console for NoConsole {
    fn write(&self, _error: bool, _bytes: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn input(&self) -> Box<dyn std::io::Read + Send> {
        Box::new(std::io::empty())
    }
}
