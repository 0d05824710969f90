//! Echo, the smallest operator.

use lockstep_sdk::{Audience, Operator};

/// Returns the operator. It is an example, so it is installed only by name.
pub(crate) fn operator() -> Operator {
    Operator::of(Audience::Tenants, lockstep_echo::operator).only_when_named()
}
