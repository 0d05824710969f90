//! Resources to which instances refer, and capacity.

use crate::control::simulator::Simulator;
use crate::state::place::Place;

impl Simulator {
    /// Adds a subnet group.
    pub fn add_subnet_group(&self, name: &str) {
        let name = name.to_owned();
        self.in_region(|region, _| region.resources.subnet_groups.insert(name));
    }

    /// Adds a subnet group with IPv4 and IPv6.
    pub fn add_dual_stack_subnet_group(&self, name: &str) {
        self.add_subnet_group(name);
        let name = name.to_owned();
        self.in_region(|region, _| region.resources.dual_stack_groups.insert(name));
    }

    /// Adds an option group.
    pub fn add_option_group(&self, name: &str) {
        let name = name.to_owned();
        self.in_region(|region, _| region.resources.option_groups.insert(name));
    }

    /// Adds a security group.
    pub fn add_security_group(&self, id: &str) {
        let id = id.to_owned();
        self.in_region(|region, _| region.resources.security_groups.insert(id));
    }

    /// Adds a parameter group of a family, such as `postgres17`.
    pub fn add_parameter_group(&self, name: &str, family: &str) {
        let (name, family) = (name.to_owned(), family.to_owned());
        self.in_region(|region, _| region.resources.parameter_groups.insert(name, family));
    }

    /// Adds a KMS key with an alias, such as `alias/databases`, and returns its ARN.
    pub fn add_kms_key(&self, alias: &str) -> String {
        let Place { account, name } = &self.place;
        self.in_region(|region, _| region.resources.add_key(account, name, alias))
    }

    /// Makes a KMS key inaccessible to RDS.
    pub fn remove_kms_key(&self, name: &str) {
        self.in_region(|region, _| region.resources.remove_key(name));
    }

    /// Sets whether there is capacity for an instance class.
    pub fn set_capacity(&self, class: &str, is_available: bool) {
        let class = class.to_owned();
        self.in_region(|region, _| {
            let exhausted = &mut region.resources.exhausted;
            if is_available {
                exhausted.remove(&class)
            } else {
                exhausted.insert(class)
            }
        });
    }

    /// Removes a storage type from those that the region offers.
    pub fn remove_storage_type(&self, name: &str) {
        let name = name.to_owned();
        self.in_region(|region, _| region.resources.missing_storage_types.insert(name));
    }
}
