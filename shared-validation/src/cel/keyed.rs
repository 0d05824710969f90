//! Lists whose items have identities.

use ::cel::ExecutionError;
use ::cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer};
use ::cel::common::types::{CelList, CelMapKey, LIST_TYPE, Type};
use ::cel::common::value::{CowVal, Val};

/// A list whose items have identities: a set, or a map by keys. Order does not count when it is
/// compared, and `+` is a union.
#[derive(Debug)]
pub(super) struct Keyed<'v> {
    pub(super) list: CelList<'v>,
    /// The fields that identify an item; none for a set.
    pub(super) keys: Option<Vec<CelMapKey<'v>>>,
}

impl Keyed<'_> {
    fn is_same(&self, a: &dyn Val, b: &dyn Val) -> bool {
        let Some(keys) = &self.keys else {
            return a.equals(b);
        };
        keys.iter().all(|key| match (part(a, key), part(b, key)) {
            (Some(a), Some(b)) => a.equals(b.as_ref()),
            (None, None) => true,
            _ => false,
        })
    }
}

fn part<'b, 'v>(value: &'b (dyn Val + 'v), key: &CelMapKey<'_>) -> Option<CowVal<'b, 'v>> {
    value.as_indexer()?.get(key.inner()).ok()
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
        let Some(iterable) = other.as_iterable() else {
            return false;
        };
        let mut others = iterable.iter();
        let mut count = 0;
        while let Some(other) = others.next() {
            count += 1;
            let own = self
                .list
                .inner()
                .iter()
                .find(|own| self.is_same(own.as_ref(), other));
            if !own.is_some_and(|own| self.keys.is_none() || own.equals(other)) {
                return false;
            }
        }
        count == self.list.inner().len()
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(Keyed {
            list: self.list.clone(),
            keys: self.keys.clone(),
        })
    }
}

impl Adder for Keyed<'_> {
    fn add<'b, 'w>(&'b self, rhs: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let mut others = rhs
            .as_iterable()
            .ok_or_else(|| ExecutionError::function_error("_+_", "no such overload"))?
            .iter();
        let mut sum: Vec<Box<dyn Val + 'w>> = self
            .list
            .inner()
            .iter()
            .map(|item| item.clone_as_boxed())
            .collect();
        while let Some(other) = others.next() {
            let place = sum.iter().position(|own| self.is_same(own.as_ref(), other));
            match place {
                Some(place) => sum[place] = other.clone_as_boxed(),
                None => sum.push(other.clone_as_boxed()),
            }
        }
        let keys = self.keys.clone();
        Ok(CowVal::owned(Keyed {
            list: CelList::from(sum),
            keys,
        }))
    }
}
