//! The channel between two tasks: bounded in rows and in events, so that a slow receiver slows its sender.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{Semaphore, mpsc};

use crate::changelog::Event;
use crate::limits::{CHANNEL_EVENTS, CHANNEL_ROWS};

/// The sending end.
pub struct Sender {
    queue: mpsc::Sender<Event>,
    rows: Arc<Semaphore>,
}

/// The receiving end.
pub struct Receiver {
    queue: mpsc::Receiver<Event>,
    rows: Arc<Semaphore>,
}

/// The other end is gone: its task has failed or was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// A channel.
pub fn channel() -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::channel(CHANNEL_EVENTS);
    let rows = Arc::new(Semaphore::new(CHANNEL_ROWS));
    (Sender { queue: sender, rows: Arc::clone(&rows) }, Receiver { queue: receiver, rows })
}

/// How many of the channel's rows an event takes up. A batch larger than the channel takes all of it, and passes.
fn weight(event: &Event) -> usize {
    match event {
        Event::Changes(batch) => batch.len().min(CHANNEL_ROWS),
        _ => 0,
    }
}

impl Sender {
    /// Sends, waiting while the channel is full.
    ///
    /// # Errors
    /// If the receiver is gone.
    pub async fn send(&self, event: Event) -> Result<(), Closed> {
        let weight = weight(&event);
        if weight > 0 {
            // The bound above keeps it within 32 bits.
            self.rows.acquire_many(weight as u32).await.map_err(|_| Closed)?.forget();
        }
        self.queue.send(event).await.map_err(|_| Closed)
    }
}

impl Receiver {
    /// The next event; `None` if the sender is gone.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let polled = self.queue.poll_recv(context);
        if let Poll::Ready(Some(event)) = &polled {
            self.rows.add_permits(weight(event));
        }
        polled
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Wakes a sender that waits for room.
        self.rows.close();
    }
}
