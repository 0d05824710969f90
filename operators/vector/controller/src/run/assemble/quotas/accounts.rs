//! Accounts that pipelines draw on, with their maxima.

use std::collections::BTreeMap;

use lockstep_vector_assembly::{PipelineKey, last_file_of};

use crate::owned::MAX_SECRET_BYTES;
use crate::run::assemble::quotas::demand::{Amounts, CONFIGURATION, Demand, NOTHING, RESOURCES};

/// Bytes of a Secret for the components of pipelines. The rest is for the global options and Vector's own components.
pub(super) const FILE_BYTES: usize = MAX_SECRET_BYTES - (64 << 10);

/// Accounts that a pipeline draws on: the workload's, its namespace's, and that of the file with its components.
pub(super) struct Accounts {
    pub(super) workload: Account,
    pub(super) namespaces: BTreeMap<String, Account>,
    pub(super) files: BTreeMap<usize, Account>,
}

impl Accounts {
    /// Opens the accounts with what runs. `workload` are the maxima of the workload, and `account_of` returns the account of a
    /// namespace.
    pub(super) fn new(
        workload: [Option<u64>; RESOURCES.len()],
        account_of: impl Fn(&str) -> Account,
        demands: &[Demand<'_>],
    ) -> Self {
        let mut accounts = Self {
            workload: Account {
                total: NOTHING,
                maxima: workload,
                whose: "all pipelines of a workload".to_owned(),
            },
            namespaces: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        for demand in demands {
            let PipelineKey { namespace, .. } = &demand.part.pipeline;
            if let Some(namespace) = namespace {
                let account = accounts.namespaces.entry(namespace.clone());
                account.or_insert_with(|| account_of(namespace));
            }
            let file = last_file_of(&demand.part.pipeline);
            accounts.files.entry(file).or_insert_with(Account::of_file);
            accounts.replace(demand, NOTHING, demand.held);
        }
        accounts
    }

    pub(super) fn drawn_on(&mut self, demand: &Demand<'_>) -> impl Iterator<Item = &mut Account> {
        let PipelineKey { namespace, .. } = &demand.part.pipeline;
        let own = namespace.as_ref();
        let own = own.and_then(|namespace| self.namespaces.get_mut(namespace));
        let file = self.files.get_mut(&last_file_of(&demand.part.pipeline));
        own.into_iter().chain([&mut self.workload]).chain(file)
    }

    pub(super) fn replace(&mut self, demand: &Demand<'_>, before: Amounts, after: Amounts) {
        self.drawn_on(demand)
            .for_each(|account| account.replace(before, after));
    }

    pub(super) fn grant(&mut self, demand: &Demand<'_>) {
        self.replace(demand, demand.held, demand.most());
    }

    pub(super) fn refusal(&mut self, demand: &Demand<'_>) -> Option<String> {
        self.drawn_on(demand)
            .find_map(|account| account.refusal(demand.held, demand.wanted))
    }
}

/// Amounts that pipelines take together, and their maxima.
pub(super) struct Account {
    pub(super) total: Amounts,
    pub(super) maxima: [Option<u64>; RESOURCES.len()],
    pub(super) whose: String,
}

impl Account {
    /// Returns the account of the pipelines whose components are in one file.
    pub(super) fn of_file() -> Self {
        let mut maxima = [None; RESOURCES.len()];
        maxima[CONFIGURATION] = u64::try_from(FILE_BYTES).ok();
        Self {
            total: NOTHING,
            maxima,
            whose:
                "the pipelines that share a Secret with it; another name gives it another Secret"
                    .to_owned(),
        }
    }

    pub(super) fn replace(&mut self, held: Amounts, wanted: Amounts) {
        let changes = held.into_iter().zip(wanted);
        for (total, (held, wanted)) in self.total.iter_mut().zip(changes) {
            *total = total.saturating_sub(held).saturating_add(wanted);
        }
    }

    /// Returns a sentence for each resource of which more than the maximum is taken.
    pub(super) fn exceeded(&self) -> impl Iterator<Item = String> {
        (0..RESOURCES.len()).filter_map(|at| {
            let (total, maximum) = (self.total[at], self.maxima[at]?);
            (total > maximum).then(|| {
                format!(
                    "{} take {total} {}, and {maximum} are allowed",
                    self.whose, RESOURCES[at]
                )
            })
        })
    }

    /// Returns the reason why a pipeline cannot take more of a resource.
    pub(super) fn refusal(&self, held: Amounts, wanted: Amounts) -> Option<String> {
        (0..RESOURCES.len()).find_map(|at| {
            let maximum = self.maxima[at]?;
            let without = self.total[at].saturating_sub(held[at]);
            let exceeds = without.saturating_add(wanted[at]) > maximum && wanted[at] > held[at];
            exceeds.then(|| {
                format!(
                    "it takes {} {}, and {} are left of the {maximum} for {}; remove something, or ask an administrator, who can change the quota in the policy",
                    wanted[at],
                    RESOURCES[at],
                    maximum.saturating_sub(without),
                    self.whose,
                )
            })
        })
    }
}
