//! Progress of builds and installations: a bar if the standard error is a terminal, a line every few seconds otherwise.

use std::io::{Write, stderr};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{FormattedDuration, MultiProgress, ProgressBar, ProgressStyle};

/// Interval between two lines if the standard error is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Interval at which a bar is redrawn while nothing happens, so that its times stay correct.
const REDRAW_EVERY: Duration = Duration::from_millis(500);

/// All bars of this process. They are drawn below each other.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Progress of one step. It disappears from a terminal when the value is dropped.
pub(crate) struct Progress {
    what: String,
    bar: ProgressBar,
    last_line: Mutex<Instant>,
}

impl Progress {
    /// Starts a step whose amount of work is not known yet.
    pub(crate) fn start(what: &str) -> Self {
        let progress = Self {
            what: what.to_owned(),
            bar: BARS.add(ProgressBar::no_length()),
            last_line: Mutex::new(Instant::now()),
        };
        progress.style("{spinner} {prefix}: {wide_msg}");
        progress.bar.set_prefix(progress.what.clone());
        progress.bar.enable_steady_tick(REDRAW_EVERY);
        print_line(&format!("{what} (once)"));
        progress
    }

    /// Sets the number of units of work, from which the remaining time is estimated.
    pub(crate) fn set_length(&self, length: u64, unit: &str) {
        self.bar.set_length(length);
        self.bar.reset_eta();
        self.style(&format!(
            "{{spinner}} {{prefix}} [{{bar:25}}] {{pos}}/{{len}} {unit}, {{eta}} left {{wide_msg}}"
        ));
        print_line(&format!("{}: {length} {unit}", self.what));
    }

    /// Reports that one unit of work is done.
    pub(crate) fn advance(&self) {
        self.bar.inc(1);
        let (done, length) = (self.bar.position(), self.bar.length().unwrap_or_default());
        let left = FormattedDuration(self.bar.eta());
        self.occasional_line(|| format!("{}: {done} of {length}, {left} left", self.what));
    }

    /// Reports what the step does at present.
    pub(crate) fn message(&self, message: &str) {
        self.bar.set_message(message.to_owned());
        self.occasional_line(|| format!("{}: {message}", self.what));
    }

    fn style(&self, template: &str) {
        let style = ProgressStyle::with_template(template);
        self.bar
            .set_style(style.expect("the template is constant and valid"));
    }

    fn occasional_line(&self, text: impl FnOnce() -> String) {
        let mut last = self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= LINE_EVERY {
            *last = Instant::now();
            print_line(&text());
        }
    }
}

/// Prints a line if the standard error is not a terminal. It is not captured by the test harness: a test that seems to
/// hang for minutes explains itself.
fn print_line(text: &str) {
    if BARS.is_hidden() {
        // Progress is not worth an error.
        let _ = writeln!(stderr(), "{text}");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Runs a function that prints to a terminal, with the bars removed in the meantime.
pub fn without_progress<T>(print: impl FnOnce() -> T) -> T {
    BARS.suspend(print)
}
