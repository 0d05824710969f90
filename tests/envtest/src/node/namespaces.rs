//! Network, mount and process namespaces of a node.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::Error;
use crate::node::link::Link;

/// Prepares the namespaces and waits for the end of its input.
///
/// `/run` is empty, and changes below `/var/lib` and `/var/log` go to the folder of the node: containerd, CNI and
/// kubelet have paths there that no option changes.
const INIT: &str = r#"
set -e
mount -t tmpfs tmpfs /run
for name in lib log; do
    mkdir -p "$1/var/$name" "$1/var/$name.work"
    layers="lowerdir=/var/$name,upperdir=$1/var/$name,workdir=$1/var/$name.work"
    mount -t overlay -o "$layers" overlay "/var/$name"
done
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo ready
exec cat
"#;

/// Namespaces in which the processes of a node run. They end with the value, and all processes in them.
#[derive(Debug)]
pub(crate) struct Namespaces {
    /// `unshare`. Its child is the first process of the process namespace, with which the kernel ends all others. It
    /// ends when its input does: also if this process is killed.
    holder: Child,
    link: Link,
}

impl Namespaces {
    pub(crate) fn create(directory: &Path) -> Result<Self, Error> {
        let mut command = Command::new("unshare");
        command
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child"])
            .args(["--mount-proc", "sh", "-c", INIT, "node"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut holder = command.spawn().map_err(|source| Error::Start {
            program: "unshare".to_owned(),
            source,
        })?;
        let mut line = String::new();
        if let Some(output) = holder.stdout.take() {
            // A holder without output is reported below.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let interface = if line.trim() == "ready" {
            Link::create(holder.id())
        } else {
            Err(Error::Failed {
                command: "unshare".to_owned(),
                output: "the namespaces of a node cannot be created; are you root?".to_owned(),
            })
        };
        match interface {
            Ok(interface) => Ok(Self {
                holder,
                link: interface,
            }),
            Err(error) => {
                end(&mut holder);
                Err(error)
            }
        }
    }

    /// Returns the address of the node.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.link.inside
    }

    /// Returns a command that runs a program in the namespaces. If the command is killed, so is the program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let line = self.command_line();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).arg(program);
        command
    }

    /// Returns the program and the arguments that run a command in the namespaces.
    pub(crate) fn command_line(&self) -> Vec<OsString> {
        let holder = format!("/proc/{}/ns", self.holder.id());
        let line = [
            "nsenter".to_owned(),
            format!("--net={holder}/net"),
            format!("--mount={holder}/mnt"),
            // The holder itself is outside the process namespace that it has created.
            format!("--pid={holder}/pid_for_children"),
            "--".to_owned(),
            "setpriv".to_owned(),
            "--pdeathsig=KILL".to_owned(),
        ];
        line.map(OsString::from).into()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        end(&mut self.holder);
    }
}

/// Ends the first process and waits for `unshare`, which waits for it, which waits for all others.
fn end(holder: &mut Child) {
    drop(holder.stdin.take());
    let _ = holder.wait();
}
