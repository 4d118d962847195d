//! A progress line on standard error, which is shown only on terminals.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::thread;
use std::time::Duration;

/// A spinner on standard error that appears when work takes long; it does nothing if standard error is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Returns a progress line that is not shown yet.
    pub fn new() -> Progress {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Sets the name of the current stage, which the line shows.
    pub fn stage(&self, what: &'static str) {
        self.bar.set_message(what);
        // The spinner has its own thread, and panics if none can be started; it is only needed if it is visible.
        if !self.bar.is_hidden() && thread::Builder::new().spawn(|| ()).is_ok() {
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    /// Clears the progress line.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done();
    }
}
