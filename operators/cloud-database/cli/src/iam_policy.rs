//! `lockstep iam-policy`: the permissions of the controller in AWS.

use std::process::ExitCode;

use lockstep_cloud_database_controller::{IamPolicyScope, QueueAddress, iam_policy, partition_of};

/// Print the IAM policy that the controller needs for databases in RDS
#[derive(clap::Parser)]
#[command(name = "iam-policy")]
pub struct Args {
    /// AWS partition, such as aws-cn or aws-us-gov. Default: that of the region.
    #[arg(long)]
    partition: Option<String>,
    /// AWS region of the instances. Default: all.
    #[arg(long, default_value = "*", hide_default_value = true)]
    region: String,
    /// ID of the AWS account. Default: all, which is the account of the role.
    #[arg(
        long,
        value_name = "ID",
        default_value = "*",
        hide_default_value = true
    )]
    account: String,
    /// Name of this cluster (`--cluster-name` of the controller). With it, an instance with the tag of another cluster is replicated
    /// or restored only if an argument names it. Default: none, and an instance of another cluster whose identifier begins with
    /// `cdb-` may be a source, too.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// Identifier of an instance that may be adopted, or a pattern with `*`. May be repeated.
    #[arg(long = "adopt", value_name = "INSTANCE")]
    adopted: Vec<String>,
    /// Identifier of a snapshot that may be restored, or a pattern with `*`. May be repeated.
    #[arg(long = "restore-snapshot", value_name = "SNAPSHOT")]
    snapshots: Vec<String>,
    /// Identifier of an instance of which earlier states may be restored, or a pattern with `*`. May be repeated.
    #[arg(long = "restore-instance", value_name = "INSTANCE")]
    restored: Vec<String>,
    /// Identifier of an instance that may be replicated, or a pattern with `*`. May be repeated.
    #[arg(long = "replicate", value_name = "INSTANCE")]
    replicated: Vec<String>,
    /// Let RDS keep passwords in Secrets Manager (`spec.credentials.managed`).
    #[arg(long = "managed-passwords")]
    has_managed_passwords: bool,
    /// ARN of a role in `spec.monitoring.enhanced.roleArn`. May be repeated.
    #[arg(long = "monitoring-role", value_name = "ARN")]
    monitoring_roles: Vec<String>,
    /// ARN of a role that a Namespace chooses or allows (`database.example.com/role-arn`), or a pattern with `*`. Each role needs
    /// a policy of its own without this option. May be repeated.
    #[arg(long = "assume-role", value_name = "ARN")]
    assumed_roles: Vec<String>,
    /// ARN of the queue of `--rds-events-queue`.
    #[arg(long = "rds-events-queue", value_name = "ARN", value_parser = queue_arn)]
    events_queue: Option<String>,
    /// ARN of a KMS key that an object names. May be repeated.
    #[arg(long = "kms-key", value_name = "ARN")]
    kms_keys: Vec<String>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> ExitCode {
    let partition = match args.partition() {
        Ok(partition) => partition,
        Err(problem) => {
            eprintln!("lockstep: {problem}");
            return ExitCode::from(2);
        }
    };
    let scope = IamPolicyScope {
        partition: partition.to_owned(),
        region: args.region.clone(),
        account: args.account.clone(),
        cluster_name: args.cluster_name.clone(),
        adopted: args.adopted.clone(),
        snapshots: args.snapshots.clone(),
        restored: args.restored.clone(),
        replicated: args.replicated.clone(),
        has_managed_passwords: args.has_managed_passwords,
        assumed_roles: args.assumed_roles.clone(),
        events_queue: args.events_queue.clone(),
        monitoring_roles: args.monitoring_roles.clone(),
        kms_keys: args.kms_keys.clone(),
    };
    println!("{:#}", iam_policy(&scope));
    ExitCode::SUCCESS
}

impl Args {
    /// Returns the partition of the policy. Nothing of another one can be in it: no ARN would match.
    fn partition(&self) -> Result<&str, String> {
        let of_region = (self.region != "*").then(|| partition_of(&self.region));
        let partition = self.partition.as_deref().or(of_region).unwrap_or("aws");
        if let Some(expected) = of_region.filter(|expected| *expected != partition) {
            return Err(format!(
                "the region '{}' is in the partition '{expected}', and not in '{partition}'; leave out --partition",
                self.region
            ));
        }
        let arns = [&self.monitoring_roles, &self.assumed_roles, &self.kms_keys];
        for arn in arns.into_iter().flatten().chain(&self.events_queue) {
            let actual = arn.split(':').nth(1).unwrap_or("*");
            if actual != partition && actual != "*" {
                return Err(format!(
                    "'{arn}' is in the partition '{actual}', and the policy is one of '{partition}'; set --region or --partition"
                ));
            }
        }
        Ok(partition)
    }
}

/// Parses the ARN of a queue. A policy cannot name the URL.
fn queue_arn(text: &str) -> Result<String, String> {
    text.parse::<QueueAddress>()?;
    if text.starts_with("arn:") {
        Ok(text.to_owned())
    } else {
        Err(format!("'{text}' is no ARN"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn partition(arguments: &[&str]) -> Result<String, String> {
        let arguments = [&["iam-policy"], arguments].concat();
        let args = Args::try_parse_from(arguments).expect("valid arguments");
        args.partition().map(String::from)
    }

    #[test]
    fn the_partition_is_that_of_the_region_and_of_each_arn() {
        let expect = |arguments: &[&str], expected: &str| {
            assert_eq!(
                partition(arguments).as_deref(),
                Ok(expected),
                "{arguments:?}"
            );
        };
        let key = "--kms-key=arn:aws-cn:kms:cn-north-1:123456789012:key/a";
        expect(&[], "aws");
        expect(&["--region=cn-north-1", key], "aws-cn");
        expect(&["--partition=aws-cn", key], "aws-cn");
        expect(&["--region=us-gov-west-1"], "aws-us-gov");
        expect(&["--assume-role=arn:*:iam::123456789012:role/team"], "aws");
        let refused = |arguments: &[&str], parts: [&str; 2]| {
            let problem = partition(arguments).expect_err("an error");
            for part in parts {
                assert!(problem.contains(part), "{problem}");
            }
        };
        refused(&[key], ["'aws-cn'", "--region"]);
        let other = ["--region=cn-north-1", "--partition=aws"];
        refused(&other, ["'cn-north-1'", "'aws-cn'"]);
    }
}
