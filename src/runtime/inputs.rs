//! The inputs of a task: reading fairly from many channels, aligning barriers, noticing ends.

use std::task::{Context, Poll};

use super::channel::{Closed, Receiver};
use crate::changelog::{Cut, Event};
use crate::operators::Port;

/// The channels of one task, each with the port it belongs to.
pub struct Inputs {
    channels: Vec<Channel>,
    /// Channel to ask first next time.
    next: usize,
    /// Whether a channel waits once its barrier has come.
    aligned: bool,
    /// Ports of the operator; one without a channel has ended from the start.
    ports: usize,
}

struct Channel {
    receiver: Receiver,
    port: Port,
    ended: bool,
    /// The newest barrier that has come.
    barrier: Cut,
    blocked: bool,
}

impl Inputs {
    /// Reads from these channels, which belong to `ports` ports.
    pub fn new(channels: Vec<(Port, Receiver)>, ports: usize, aligned: bool) -> Inputs {
        let channel =
            |(port, receiver)| Channel { receiver, port, ended: false, barrier: Cut::default(), blocked: false };
        Inputs { channels: channels.into_iter().map(channel).collect(), next: 0, aligned, ports }
    }

    /// Number of channels.
    pub fn len(&self) -> usize {
        self.channels.len()
    }

    /// The port a channel belongs to.
    pub fn port(&self, channel: usize) -> Port {
        self.channels[channel].port
    }

    /// Waits for the next event of any channel that is neither blocked nor at its end.
    ///
    /// # Errors
    /// If a sender is gone before its end: its task has failed.
    pub async fn next(&mut self) -> Result<(usize, Event), Closed> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Inputs::next`], without waiting.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<(usize, Event), Closed>> {
        let count = self.channels.len();
        for offset in 0..count {
            let index = (self.next + offset) % count;
            let channel = &mut self.channels[index];
            if channel.blocked || channel.ended {
                continue;
            }
            match channel.receiver.poll_next(context) {
                Poll::Pending => {}
                Poll::Ready(None) => return Poll::Ready(Err(Closed)),
                Poll::Ready(Some(event)) => {
                    // The one after it is asked first next time: no channel can starve the others.
                    self.next = (index + 1) % count;
                    return Poll::Ready(Ok((index, event)));
                }
            }
        }
        Poll::Pending
    }

    /// A barrier has come on a channel. Gives its cut if every open channel has now delivered it.
    pub fn barrier(&mut self, channel: usize, cut: Cut) -> Option<Cut> {
        self.channels[channel].barrier = cut;
        self.channels[channel].blocked = self.aligned;
        self.aligned_at(cut)
    }

    /// A channel has ended. Gives a cut for which only this channel's barrier was missing.
    pub fn end(&mut self, channel: usize) -> Option<Cut> {
        self.channels[channel].ended = true;
        let waiting = self.channels.iter().filter(|channel| !channel.ended).map(|channel| channel.barrier).min()?;
        self.aligned_at(waiting)
    }

    /// The ports to which no channel leads.
    pub fn ports_without_channel(&self) -> Vec<Port> {
        (0..self.ports).filter(|port| self.channels.iter().all(|channel| channel.port != *port)).collect()
    }

    /// Whether all channels of a port have ended.
    pub fn port_ended(&self, port: Port) -> bool {
        self.channels.iter().filter(|channel| channel.port == port).all(|channel| channel.ended)
    }

    /// Whether all channels have ended.
    pub fn all_ended(&self) -> bool {
        self.channels.iter().all(|channel| channel.ended)
    }

    /// Ended channels count as having delivered every barrier: all their rows came before it.
    fn aligned_at(&mut self, cut: Cut) -> Option<Cut> {
        if cut == Cut::default() || self.channels.iter().any(|channel| !channel.ended && channel.barrier < cut) {
            return None;
        }
        for channel in self.channels.iter_mut().filter(|channel| channel.barrier <= cut) {
            channel.blocked = false;
        }
        Some(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::super::channel::{Sender, channel};
    use super::*;

    fn inputs(count: usize, aligned: bool) -> (Vec<Sender>, Inputs) {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        (senders, Inputs::new(receivers.into_iter().map(|receiver| (0, receiver)).collect(), 1, aligned))
    }

    fn ready(inputs: &mut Inputs) -> Option<(usize, Event)> {
        match inputs.poll_next(&mut Context::from_waker(futures::task::noop_waker_ref())) {
            Poll::Ready(Ok(event)) => Some(event),
            _ => None,
        }
    }

    #[tokio::test]
    async fn a_channel_waits_after_its_barrier_until_the_others_have_theirs() {
        let (senders, mut inputs) = inputs(2, true);
        let cut = Cut::of_checkpoint(1);
        for event in [Event::Barrier(cut), Event::Idle] {
            senders[0].send(event).await.unwrap();
        }
        assert!(matches!(ready(&mut inputs), Some((0, Event::Barrier(_)))));
        assert_eq!(inputs.barrier(0, cut), None);
        assert!(ready(&mut inputs).is_none(), "what is behind the barrier must wait");
        senders[1].send(Event::Barrier(cut)).await.unwrap();
        assert!(matches!(ready(&mut inputs), Some((1, Event::Barrier(_)))));
        assert_eq!(inputs.barrier(1, cut), Some(cut));
        assert!(matches!(ready(&mut inputs), Some((0, Event::Idle))));
    }

    #[tokio::test]
    async fn at_least_once_does_not_wait_and_an_ended_channel_counts_as_delivered() {
        let (senders, mut inputs) = inputs(2, false);
        senders[0].send(Event::Idle).await.unwrap();
        let cut = Cut { checkpoint: 0, point: 1 };
        assert_eq!(inputs.barrier(0, cut), None);
        assert!(ready(&mut inputs).is_some());
        assert_eq!(inputs.end(1), Some(cut));
        assert!(inputs.port_ended(0) == inputs.all_ended() && !inputs.all_ended());
    }
}
