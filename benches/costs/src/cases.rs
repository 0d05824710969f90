//! Cases whose costs are counted.

mod check;
mod reconciliation;
mod review;
mod variants;

use bench_harness::Review;
use lockstep_shared_validation::CrdMatch;

use crate::cases::variants::{Seen, Spec};

/// Case whose costs are counted.
#[derive(Clone, Copy, Debug)]
pub enum Case {
    /// Review of a `CloudDatabase` by the webhook, with this knowledge of the CRD in the cluster.
    Database(Review, CrdMatch),
    /// Validation of the objects of a large review. The webhook validates them on another thread, whose instructions
    /// callgrind does not attribute to the case.
    LargeDatabase(CrdMatch),
    /// Review of a Vector pipeline, whose programs are compiled in this process.
    Pipeline(Review, Seen),
    /// `check` of one file, from the arguments to the printed result.
    Check,
    /// Reconciliation of an object with two children.
    Reconciliation(Spec),
}

/// Case that is ready to run. What is made once for many objects is made already.
pub struct Prepared(Box<dyn FnMut()>);

impl Case {
    /// All cases.
    pub const ALL: [Self; 13] = [
        Self::Database(Review::Small, CrdMatch::Unknown),
        Self::Database(Review::Typical, CrdMatch::Unknown),
        Self::Database(Review::Denied, CrdMatch::Unknown),
        Self::LargeDatabase(CrdMatch::Unknown),
        Self::Database(Review::Small, CrdMatch::Same),
        Self::Database(Review::Typical, CrdMatch::Same),
        Self::LargeDatabase(CrdMatch::Same),
        Self::Pipeline(Review::Pipeline, Seen::First),
        Self::Pipeline(Review::Pipeline, Seen::Before),
        Self::Pipeline(Review::LargePipeline, Seen::Before),
        Self::Check,
        Self::Reconciliation(Spec::Unchanged),
        Self::Reconciliation(Spec::Changed),
    ];

    /// Returns the name of the case in the committed counts.
    #[must_use]
    pub fn name(self) -> String {
        let layers = |crd| match crd {
            CrdMatch::Same => "CRD known",
            _ => "all layers",
        };
        match self {
            Self::Database(review, crd) => format!("{} review, {}", review.name(), layers(crd)),
            Self::LargeDatabase(crd) => format!("large objects, {}", layers(crd)),
            Self::Pipeline(review, seen) => {
                let size = if review == Review::LargePipeline {
                    "large "
                } else {
                    ""
                };
                let when = match seen {
                    Seen::First => "new",
                    Seen::Before => "again",
                };
                format!("{size}pipeline, {when}")
            }
            Self::Check => "check of a file".to_owned(),
            Self::Reconciliation(Spec::Unchanged) => "reconciliation, unchanged".to_owned(),
            Self::Reconciliation(Spec::Changed) => "reconciliation, changed".to_owned(),
        }
    }

    /// Prepares the case.
    #[must_use]
    pub fn prepare(self) -> Prepared {
        Prepared(match self {
            Self::Database(review, crd) => Box::new(review::database(review, crd)),
            Self::LargeDatabase(crd) => Box::new(review::large_database(crd)),
            Self::Pipeline(review, seen) => Box::new(review::pipeline(review, seen)),
            Self::Check => Box::new(check::check()),
            Self::Reconciliation(spec) => Box::new(reconciliation::reconciliation(spec)),
        })
    }
}

impl Prepared {
    /// Runs the case once.
    pub fn run(&mut self) {
        (self.0)();
    }
}
