//! `rlhf run --watch`: a short run that starts anew whenever its program has changed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rlhf_lang::source::Sources;

use super::follow::Course;
use super::{Checked, Examined, inbox, show, start};
use crate::args::Run;
use crate::inbox::{Inbox, Message};
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::program;
use crate::terminal::number;
use crate::watch::{self, Watch};

/// Runs until interrupted. A run whose program changes and still checks is stopped as an interrupt stops it,
/// and the next one gets a directory of its own; a program that does not check leaves the run alone.
pub fn again(args: &Run) -> Outcome<u8> {
    watch::watchable(&program::one(&args.words)?.0)?;
    let mut inbox = inbox()?;
    let mut watch = Watch::new(inbox.sender())?;
    let mut next = examine(args, &mut watch)?;
    loop {
        let Some(checked) = next.take() else {
            let files = number::count(watch.count(), "file");
            output::err(&format!("watching {files}; Ctrl-C ends\n"));
            match wait(&mut inbox, &mut watch)? {
                Woken::Interrupted => return Ok(0),
                Woken::Changed => next = examine(args, &mut watch)?,
            }
            continue;
        };
        let mut decide = |inbox: &mut Inbox, paths: Vec<PathBuf>| {
            if !watch.changed(&inbox.settle(paths))? {
                return Ok(Course::On);
            }
            next = examine(args, &mut watch)?;
            Ok(match next {
                Some(_) => Course::End,
                None => Course::On,
            })
        };
        let ended = start(args, &checked).and_then(|run| run.follow(&mut inbox, &mut decide));
        match ended {
            Ok(ended) if ended.interrupts > 0 => return Ok(0),
            Ok(_) => {}
            Err(Stop::Failed(d)) => show(args, &checked.sources, &[*d]),
            Err(stop) => return Err(stop),
        }
    }
}

/// The program as it is now, if it can run; what keeps it from running is shown.
fn examine(args: &Run, watch: &mut Watch) -> Outcome<Option<Checked>> {
    loop {
        let examined = match Examined::new(args) {
            Ok(examined) => examined,
            Err(Stop::Usage(d) | Stop::Failed(d)) => {
                // A program that went away may come back.
                let (files, _) = program::split(&args.words)?;
                let files: BTreeSet<PathBuf> = files.into_iter().map(PathBuf::from).collect();
                if watch.follow(&files)? {
                    continue;
                }
                show(args, &Sources::default(), &[*d]);
                return Ok(None);
            }
        };
        // Read before it was watched: a change in between would go unnoticed.
        if watch.follow(&examined.reads)? {
            continue;
        }
        return examined.checked(args).or_else(|stop| match stop {
            Stop::Usage(d) | Stop::Failed(d) => {
                show(args, &Sources::default(), &[*d]);
                Ok(None)
            }
        });
    }
}

enum Woken {
    Changed,
    Interrupted,
}

fn wait(inbox: &mut Inbox, watch: &mut Watch) -> Outcome<Woken> {
    loop {
        match inbox.next() {
            Message::Interrupt => return Ok(Woken::Interrupted),
            Message::Touched(paths) => {
                if watch.changed(&inbox.settle(paths))? {
                    return Ok(Woken::Changed);
                }
            }
            Message::Event(_) | Message::Silent => {}
        }
    }
}
