//! What arrives while a command waits: a rank's events, the user's interrupts, changes of files.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rlhf_plan::launch::Event;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A save is several changes: this long without another one, it is over.
const SETTLED: Duration = Duration::from_millis(5);

/// One thing that arrives.
#[derive(Debug)]
pub enum Message {
    /// The rank says something.
    Event(Box<Event>),
    /// The rank says no more.
    Silent,
    /// The user interrupts.
    Interrupt,
    /// Something happened at these paths; at any path when there are none.
    Touched(Vec<PathBuf>),
}

/// Messages in the order of their arrival.
#[derive(Debug)]
pub struct Inbox {
    send: Sender<Message>,
    receive: Receiver<Message>,
    /// Received while changes were gathered.
    ahead: VecDeque<Message>,
}

impl Inbox {
    /// An inbox that the user's interrupts come to.
    pub fn new() -> std::io::Result<Inbox> {
        let (send, receive) = channel();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let interrupts = send.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if interrupts.send(Message::Interrupt).is_err() {
                    break;
                }
            }
        });
        Ok(Inbox {
            send,
            receive,
            ahead: VecDeque::new(),
        })
    }

    /// Where others put their messages.
    pub fn sender(&self) -> Sender<Message> {
        self.send.clone()
    }

    /// Waits for the next message.
    pub fn next(&mut self) -> Message {
        let ahead = self.ahead.pop_front();
        // This inbox has a sender itself, so the channel stays open.
        ahead.unwrap_or_else(|| self.receive.recv().unwrap_or(Message::Silent))
    }

    /// Gathers `first` and the changes that follow it at once; what else arrives meanwhile stays. Empty when
    /// anything may have changed.
    pub fn settle(&mut self, first: Vec<PathBuf>) -> BTreeSet<PathBuf> {
        let mut any = first.is_empty();
        let mut paths: BTreeSet<PathBuf> = first.into_iter().collect();
        while let Ok(message) = self.receive.recv_timeout(SETTLED) {
            match message {
                Message::Touched(more) => {
                    any |= more.is_empty();
                    paths.extend(more);
                }
                other => self.ahead.push_back(other),
            }
        }
        if any {
            paths.clear();
        }
        paths
    }
}
