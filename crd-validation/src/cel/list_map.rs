//! Lists of type `set` and `map`, whose items have identities.

use std::any::Any;

use ::cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer};
use ::cel::common::types::{CelList, DYN_TYPE, LIST_TYPE, Type};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use serde_json::Value;

use crate::cel::cost;
use crate::cel::equality::are_same;
use crate::cel::identities::Identities;
use crate::cel::library::arguments::items;
use crate::cel::map_key::Identified;

/// List of type `set` or `map`. A comparison ignores the order of the items, and `+` is a union.
#[derive(Debug)]
pub(crate) struct Keyed<'v> {
    list: CelList<'v>,
    identities: Identities,
}

/// Internal function that turns a list with identities into a plain list.
pub(crate) const AS_LIST: &str = "@as_list";

pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(AS_LIST, "as_list", vec![DYN_TYPE], as_list)
}

fn as_list<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = arguments
        .pop()
        .ok_or_else(|| ExecutionError::function_error(AS_LIST, "no value"))?;
    if Identities::of(value.as_ref()).is_none() {
        return Ok(value);
    }
    if !cost::weigh(value.as_ref()) {
        return Err(ExecutionError::function_error(
            AS_LIST,
            "the cost budget is exhausted",
        ));
    }
    let items = items(value.as_ref(), AS_LIST)?;
    let items: Vec<_> = items.iter().map(|item| item.clone_as_boxed()).collect();
    Ok(CowVal::owned(CelList::from(items)))
}

impl<'v> Keyed<'v> {
    /// Creates a list from CEL values and the data from which they were converted.
    pub(crate) fn new(by: Identified, list: CelList<'v>, sent: &[Value]) -> Self {
        let own = sent.iter().map(|item| by.sent(item)).collect();
        Self {
            list,
            identities: Identities { by, own },
        }
    }
}

impl Val for Keyed<'_> {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &LIST_TYPE
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.list.as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        self.list.as_indexer()
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.list.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.list.as_sizer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        are_same(&self.identities, self, other).unwrap_or(false)
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(Keyed {
            list: self.list.clone(),
            identities: self.identities.clone(),
        })
    }

    /// Returns the identities. The list itself borrows and cannot be `Any`, and other lists need only its
    /// identities.
    fn as_any(&self) -> Option<&dyn Any> {
        Some(&self.identities)
    }
}

impl Adder for Keyed<'_> {
    fn add<'b, 'w>(&'b self, rhs: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let others = items(rhs, "_+_")?;
        let known = self.identities.of_others(rhs, &others);
        let own = self.list.inner().iter();
        let mut sum: Vec<Box<dyn Val + 'w>> = own.map(|item| item.clone_as_boxed()).collect();
        let mut identities = self.identities.clone();
        let mut positions = self.identities.positions()?;
        for (identity, other) in known.iter().zip(&others) {
            match (positions.get(identity)?, &identities.by) {
                (Some(_), Identified::Whole) => continue,
                (Some(position), Identified::By(_)) => {
                    sum[position] = other.clone_as_boxed();
                    continue;
                }
                // An item that was added to a set counts for later items. A list of type `map` accepts a new
                // key twice.
                (None, Identified::Whole) => positions.put(identity, sum.len())?,
                (None, Identified::By(_)) => {}
            }
            sum.push(other.clone_as_boxed());
            identities.own.push(identity.clone());
        }
        Ok(CowVal::owned(Keyed {
            list: CelList::from(sum),
            identities,
        }))
    }
}
