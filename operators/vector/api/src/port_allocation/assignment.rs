//! Assignment of endpoints on a port.

use std::collections::HashMap;

use crate::port_allocation::endpoint::{Part, PortSlot};
use crate::types::workload_role::WorkloadRole;

/// Endpoints that are assigned on a port, in the order of assignment. An owner may have several.
pub(crate) struct PortAssignments<'a, W> {
    role: WorkloadRole,
    count: usize,
    /// For each part, the first owner and one other owner.
    parts: HashMap<Part, Vec<Holder<'a, W>>>,
}

#[derive(Clone, Copy)]
struct Holder<'a, W> {
    rank: usize,
    owner: &'a str,
    what: W,
}

impl<'a, W: Copy> PortAssignments<'a, W> {
    pub(crate) fn none(role: WorkloadRole) -> Self {
        Self {
            role,
            count: 0,
            parts: HashMap::new(),
        }
    }

    /// Returns the first assignment to another owner that conflicts with an endpoint.
    pub(crate) fn conflict_with(&self, owner: &str, slot: PortSlot) -> Option<W> {
        let needs = slot.needs(self.role).into_iter();
        let others = needs.filter_map(|part| {
            let mut holders = self.parts.get(&part)?.iter();
            holders.find(|holder| holder.owner != owner)
        });
        let first = others.min_by_key(|holder| holder.rank);
        first.map(|holder| holder.what)
    }

    pub(crate) fn assign(&mut self, owner: &'a str, slot: PortSlot, what: W) {
        let rank = self.count;
        self.count += 1;
        for part in slot.takes(self.role) {
            let holders = self.parts.entry(part).or_default();
            // Two holders with different owners are enough: for any owner, one of them is another owner.
            if holders.len() < 2 && holders.iter().all(|holder| holder.owner != owner) {
                holders.push(Holder { rank, owner, what });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port_allocation::endpoint::ListenEndpoint;

    fn slot(address: &str, is_source: bool) -> PortSlot {
        ListenEndpoint::new("tcp", address, is_source).slot
    }

    #[test]
    fn the_first_holder_conflicts_with_all_other_owners() {
        let mut given = PortAssignments::none(WorkloadRole::Agent);
        for (owner, address) in [
            ("a", "127.0.0.1:1"),
            ("a", "127.0.0.2:1"),
            ("b", "127.0.0.3:1"),
            ("c", "127.0.0.4:1"),
        ] {
            given.assign(owner, slot(address, false), owner);
        }
        let all = slot("0.0.0.0:1", false);
        let of = |owner| given.conflict_with(owner, all);
        assert_eq!(
            [of("a"), of("b"), of("c"), of("d")],
            [Some("b"), Some("a"), Some("a"), Some("a")]
        );
        let one = |owner, address| given.conflict_with(owner, slot(address, false));
        assert_eq!(one("b", "127.0.0.2:1"), Some("a"));
        assert_eq!(one("b", "127.0.0.3:1"), None);
        assert_eq!(one("b", "127.0.0.5:1"), None);
    }

    #[test]
    fn the_first_holder_is_reported_whatever_part_conflicts() {
        let (host, port) = (slot("127.0.0.1:1", false), slot("127.0.0.2:1", true));
        for order in [[("a", host), ("b", port)], [("b", port), ("a", host)]] {
            let mut given = PortAssignments::none(WorkloadRole::Aggregator);
            for (owner, slot) in order {
                given.assign(owner, slot, owner);
            }
            let found = given.conflict_with("c", slot("127.0.0.1:1", true));
            assert_eq!(found, Some(order[0].0));
        }
    }
}
