//! Network namespace with one address that the host can reach.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;
use crate::process::run;

/// Network namespace like that of a Pod. It is deleted when the value is dropped.
#[derive(Debug)]
pub struct Network {
    name: String,
    address: Ipv4Addr,
}

impl Network {
    /// Returns true if this process has the rights to create network namespaces.
    pub fn is_possible() -> bool {
        match Self::new() {
            Ok(_) => true,
            Err(error) => {
                eprintln!("cannot create network namespaces: {error}");
                false
            }
        }
    }

    /// Creates a network namespace and a pair of interfaces that connects it to the host.
    pub fn new() -> Result<Self, Error> {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let subnet = NEXT.fetch_add(1, Ordering::Relaxed);
        // The process id keeps the subnets of concurrent processes apart.
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

    /// Returns the address inside the network namespace.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns a command that runs a program inside the network namespace.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The second command deletes the other interface, too. If the interfaces were never created, both commands fail
        // without consequences.
        let _ = run(Command::new("ip").args(["link", "delete", &self.name]));
        let _ = run(Command::new("ip").args(["netns", "delete", &self.name]));
    }
}
