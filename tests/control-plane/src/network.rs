//! A network namespace of its own, with one address that this machine reaches.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;
use crate::process::run;

/// A network namespace, as a Pod has it. It ends with the value.
#[derive(Debug)]
pub struct Network {
    name: String,
    address: Ipv4Addr,
}

impl Network {
    /// Whether this process may make any.
    pub fn is_possible() -> bool {
        match Self::new() {
            Ok(_) => true,
            Err(error) => {
                eprintln!("network namespaces cannot be made: {error}");
                false
            }
        }
    }

    /// Makes one, and a pair of interfaces that leads into it.
    pub fn new() -> Result<Self, Error> {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let subnet = NEXT.fetch_add(1, Ordering::Relaxed);
        // Processes that run at the same time keep apart.
        let process = std::process::id();
        let name = format!("ls{}-{subnet}", process % 100_000);
        let third = u8::try_from(process.wrapping_mul(31).wrapping_add(u32::from(subnet)) % 250);
        let third = third.unwrap_or_default();
        let outside = Ipv4Addr::new(10, 254, third, 1);
        let network = Self {
            address: Ipv4Addr::new(10, 254, third, 2),
            name,
        };
        let name = network.name.as_str();
        let steps: [&[&str]; 7] = [
            &["netns", "add", name],
            &[
                "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name,
            ],
            &["addr", "add", &format!("{outside}/24"), "dev", name],
            &["link", "set", name, "up"],
            &[
                "-n",
                name,
                "addr",
                "add",
                &format!("{}/24", network.address),
                "dev",
                "eth0",
            ],
            &["-n", name, "link", "set", "eth0", "up"],
            &["-n", name, "link", "set", "lo", "up"],
        ];
        for step in steps {
            run(Command::new("ip").args(step))?;
        }
        Ok(network)
    }

    /// The address inside.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A command that runs a program inside.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The pair of interfaces goes with it; where it was never made there is nothing to remove.
        let _ = run(Command::new("ip").args(["link", "delete", &self.name]));
        let _ = run(Command::new("ip").args(["netns", "delete", &self.name]));
    }
}
