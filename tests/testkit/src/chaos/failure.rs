//! Report of a failed trial.

use std::fmt;

use crate::chaos::violation::Violation;

/// Broken property, with everything that is known about how it came about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// Seed of the trial. `Chaos::seed` runs it again.
    pub seed: u64,
    /// The broken property.
    pub violation: Violation,
    /// Further broken properties at the same time.
    pub others: Vec<Violation>,
    /// Last calls, faults, reconciliations and changes that concern the object, oldest first.
    pub journal: Vec<String>,
    /// Part of the trial in which the property was broken.
    pub phase: &'static str,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            property,
            object,
            expected,
            found,
        } = &self.violation;
        writeln!(
            f,
            "chaos: seed {} broke the property `{property}`",
            self.seed
        )?;
        writeln!(f, "  object:   {object}")?;
        writeln!(f, "  phase:    {}", self.phase)?;
        writeln!(f, "  expected: {expected}")?;
        writeln!(f, "  found:    {found}")?;
        for other in &self.others {
            writeln!(
                f,
                "  also:     {} of `{}`: expected {}, found {}",
                other.property, other.object, other.expected, other.found
            )?;
        }
        writeln!(f, "  what happened last:")?;
        for entry in &self.journal {
            writeln!(f, "    {entry}")?;
        }
        write!(f, "  run it again with `.seed({})`", self.seed)
    }
}
