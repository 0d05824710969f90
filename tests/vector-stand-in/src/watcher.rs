//! Watch on the directory of the configuration.

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use notify::{Event, EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Time without another event after which Vector reloads (`CONFIG_WATCH_DELAY` in its `config/watcher.rs`).
const QUIET: Duration = Duration::from_secs(1);

/// Watches a directory with everything below it. Each item stands for a change, of one file or of many.
pub(crate) fn watch(directory: &Path) -> anyhow::Result<UnboundedReceiver<()>> {
    let (sender, events) = mpsc::channel();
    let watcher = notify::recommended_watcher(sender).and_then(|mut watcher| {
        watcher.watch(directory, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    let watcher = watcher.with_context(|| format!("cannot watch {}", directory.display()))?;
    let (changes, receiver) = unbounded_channel();
    thread::spawn(move || {
        // It watches until it is dropped.
        let _watcher = watcher;
        while next_change(&events).is_some() && changes.send(()).is_ok() {}
    });
    Ok(receiver)
}

/// Waits for a change and for the end of the events that follow it. None if the watch has ended.
fn next_change(events: &Receiver<notify::Result<Event>>) -> Option<()> {
    while !is_change(&events.recv().ok()?.ok()?) {}
    while events.recv_timeout(QUIET).is_ok() {}
    Some(())
}

/// Returns false for an event that only reports that a file was read.
fn is_change(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_)
    )
}
