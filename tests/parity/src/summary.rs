//! Summary of a comparison: the number of equal responses, and the differences.

use std::fmt;

use anyhow::Context;
use lockstep_shared_validation::Validator;

use crate::case::Case;
use crate::response::{Difference, compare};

/// Result of a comparison.
#[derive(Debug, Default)]
pub struct Summary {
    /// Number of compared cases.
    pub cases: usize,
    /// Number of cases that the API server rejects.
    pub rejected: usize,
    /// Number of cases that only the engine accepts.
    pub wrong_accepts: usize,
    /// Number of cases that only the engine rejects.
    pub wrong_rejects: usize,
    /// Number of cases that both reject with different errors.
    pub errors: usize,
    /// Number of cases that both reject with the same errors and different messages.
    pub messages: usize,
    /// Description of each difference.
    pub differences: Vec<String>,
}

impl Summary {
    /// Validates a case and compares the result with the recorded response.
    ///
    /// # Errors
    ///
    /// If the case has no response or is not JSON.
    pub fn count(&mut self, case: &Case, validator: &dyn Validator) -> anyhow::Result<()> {
        let response = case
            .response
            .as_ref()
            .with_context(|| format!("{}: the case has no recorded response", case.id))?;
        let engine = case.validate(validator)?;
        self.cases += 1;
        self.rejected += usize::from(!response.valid);
        let Some(difference) = compare(response, &engine) else {
            return Ok(());
        };
        *match difference {
            Difference::WrongAccept => &mut self.wrong_accepts,
            Difference::WrongReject => &mut self.wrong_rejects,
            Difference::Errors(..) => &mut self.errors,
            Difference::Messages(_) => &mut self.messages,
        } += 1;
        let old = case
            .old_object
            .as_deref()
            .map(|old| format!("\n  old    {old}"));
        self.differences.push(format!(
            "{}: {difference}\n  object {}{}\n  API server {response:?}\n  engine     {engine:?}",
            case.id,
            case.object,
            old.unwrap_or_default(),
        ));
        Ok(())
    }

    /// Returns true if all results and errors are equal. Messages may differ.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.wrong_accepts + self.wrong_rejects + self.errors == 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        write!(
            f,
            "{} cases, {} rejected by the API server: {} wrongly accepted, {} wrongly rejected, {} with other errors, \
             {} with other messages",
            self.cases,
            self.rejected,
            self.wrong_accepts,
            self.wrong_rejects,
            self.errors,
            self.messages
        )
    }
}
