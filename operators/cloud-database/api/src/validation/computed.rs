//! Values that several rules need of one object. The first rule that asks computes them.

use std::cell::OnceCell;

use lockstep_shared_validation::RuleContext;

use crate::effects::ChangeEffect;
use crate::spec::CloudDatabase;
use crate::validation::offers::finding::Finding;

/// Values that the rules of one object share.
#[derive(Default)]
pub(super) struct Computed {
    effects: OnceCell<Vec<ChangeEffect>>,
    offers: OnceCell<Vec<Finding>>,
}

impl Computed {
    /// Returns the values of the object of the rules.
    pub(super) fn of_rules<'a>(context: &'a RuleContext<'_, CloudDatabase>) -> &'a Self {
        context.get_or_compute(Self::default)
    }

    /// Returns the effects of the change.
    pub(super) fn effects(&self, make: impl FnOnce() -> Vec<ChangeEffect>) -> &[ChangeEffect] {
        self.effects.get_or_init(make)
    }

    /// Returns what RDS does not offer.
    pub(super) fn offers(&self, make: impl FnOnce() -> Vec<Finding>) -> &[Finding] {
        self.offers.get_or_init(make)
    }
}
