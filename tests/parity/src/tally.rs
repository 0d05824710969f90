//! How many answers are equal, and those that are not.

use std::fmt;

use anyhow::Context;
use shared_validation::Validator;

use crate::answer::{Difference, compare};
use crate::case::Case;

/// What a comparison came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many cases were compared.
    pub cases: usize,
    /// How many of them the API server refuses.
    pub refused: usize,
    /// How many the engine accepts alone.
    pub wrong_accepts: usize,
    /// How many the engine refuses alone.
    pub wrong_refusals: usize,
    /// How many both refuse for different errors.
    pub errors: usize,
    /// How many both refuse for the same errors in other words.
    pub messages: usize,
    /// The differences, for people.
    pub differences: Vec<String>,
}

impl Tally {
    /// Judges a case that has been answered and compares.
    ///
    /// # Errors
    ///
    /// When the case has no answer, or is not JSON.
    pub fn count(&mut self, case: &Case, judge: &dyn Validator) -> anyhow::Result<()> {
        let answer = case
            .answer
            .as_ref()
            .with_context(|| format!("{}: no answer", case.id))?;
        let here = case.judge(judge)?;
        self.cases += 1;
        self.refused += usize::from(!answer.valid);
        let Some(difference) = compare(answer, &here) else {
            return Ok(());
        };
        *match difference {
            Difference::WrongAccept => &mut self.wrong_accepts,
            Difference::WrongRefusal => &mut self.wrong_refusals,
            Difference::Errors(..) => &mut self.errors,
            Difference::Messages(_) => &mut self.messages,
        } += 1;
        let old = case.old.as_deref().map(|old| format!("\n  old    {old}"));
        self.differences.push(format!(
            "{}: {difference}\n  object {}{}\n  server {answer:?}\n  here   {here:?}",
            case.id,
            case.object,
            old.unwrap_or_default(),
        ));
        Ok(())
    }

    /// Whether verdicts and errors are all equal. Words may differ.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.wrong_accepts + self.wrong_refusals + self.errors == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        write!(
            f,
            "{} cases, {} refused by the API server: {} wrongly accepted, {} wrongly refused, {} with other errors, \
             {} with other messages",
            self.cases,
            self.refused,
            self.wrong_accepts,
            self.wrong_refusals,
            self.errors,
            self.messages
        )
    }
}
