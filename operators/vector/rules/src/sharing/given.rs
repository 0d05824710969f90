//! Who has what of a port.

use std::collections::HashMap;

use super::place::{Part, Spot};
use crate::role::Role;

/// What is given of a port, in the order in which it was. Whoever has one place may have others.
pub(super) struct Given<'a, W> {
    role: Role,
    count: usize,
    /// For each part, who got of it first, and who else did.
    parts: HashMap<Part, Vec<Holder<'a, W>>>,
}

#[derive(Clone, Copy)]
struct Holder<'a, W> {
    rank: usize,
    owner: &'a str,
    what: W,
}

impl<'a, W: Copy> Given<'a, W> {
    pub(super) fn none(role: Role) -> Self {
        Self {
            role,
            count: 0,
            parts: HashMap::new(),
        }
    }

    /// What is in an owner's way at a spot: the first that was given there to somebody else.
    pub(super) fn in_the_way_of(&self, owner: &str, spot: Spot) -> Option<W> {
        let needs = spot.needs(self.role).into_iter();
        let others = needs.filter_map(|part| {
            let mut holders = self.parts.get(&part)?.iter();
            holders.find(|holder| holder.owner != owner)
        });
        let first = others.min_by_key(|holder| holder.rank);
        first.map(|holder| holder.what)
    }

    pub(super) fn give(&mut self, owner: &'a str, spot: Spot, what: W) {
        let rank = self.count;
        self.count += 1;
        for part in spot.takes(self.role) {
            let holders = self.parts.entry(part).or_default();
            // Two of different owners are enough: one of them is in anybody's way.
            if holders.len() < 2 && holders.iter().all(|holder| holder.owner != owner) {
                holders.push(Holder { rank, owner, what });
            }
        }
    }
}
