//! Ctrl-C and the polite kill: a wish to stop, told apart from the end of the process.

use ebbflow::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for `SIGINT` or `SIGTERM`. While one exists, neither ends the process by itself; signals that come between two
/// waits are not lost.
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Begins to listen; must be called inside the engine's runtime.
    ///
    /// # Errors
    /// If the signal handlers cannot be set up.
    pub fn listen() -> Result<Interrupts> {
        let of = |kind| signal(kind).map_err(|error| Error::setup(format!("cannot listen for signals: {error}")));
        Ok(Interrupts { interrupt: of(SignalKind::interrupt())?, terminate: of(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
