//! Two hosts with real OpenSSH servers, a device under test and a tester, as namespaces of this machine.
//!
//! ```text
//!                controller
//!         to-dut |        | to-tester
//!                |        |
//!          admin |        | admin
//!               DUT     tester
//!               eth1 <- eth1
//!               eth2 -> eth2
//! ```
//!
//! A test that starts one asks first for what it needs:
//!
//! ```no_run
//! testkit::require_root!();
//! testkit::require_sshd!();
//! testkit::require_tool!("ip", "ssh", "ssh-keygen", "ethtool", "nft");
//! let lab = testkit::SshLab::start().unwrap();
//! ```

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{sshd, succeed, text, wait_until};

/// How long a server may take until it listens.
const LISTENING_S_MAX: u64 = 30;

const SSH_PORT: u16 = 22;

/// Where sshd wants an empty folder, which the package's service makes when it starts.
const SSHD_RUN_FOLDER: &str = "/run/sshd";

/// Removes the namespaces given, with everything that runs in them, and the folder, once its input ends.
///
/// It does so however the test process ends, because that closes the pipe. The test process itself may
/// have entered a namespace, and is spared.
const JANITOR: &str = r#"
folder=$1 spared=$2
shift 2
read -r _
for namespace; do
    tries=0
    while
        running=$(ip netns pids "$namespace" | grep -vx "$spared")
        [ -n "$running" ] && [ $tries -lt 500 ]
    do
        kill -KILL $running
        tries=$((tries + 1))
        sleep 0.01
    done
    ip netns delete "$namespace"
done
rm -rf -- "$folder"
"#;

/// A host of the lab that ssh reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The device under test, `router` to ssh.
    Dut,
    /// The host that sends and receives the test's frames, `tester` to ssh.
    Tester,
}

impl Host {
    /// Both hosts.
    pub const ALL: [Self; 2] = [Self::Dut, Self::Tester];

    /// What the client's configuration calls it.
    #[must_use]
    pub fn ssh_name(self) -> &'static str {
        match self {
            Self::Dut => "router",
            Self::Tester => "tester",
        }
    }

    /// The address of its interface `admin`, on which its server listens.
    #[must_use]
    pub fn address(self) -> Ipv4Addr {
        match self {
            Self::Dut => Ipv4Addr::new(10, 99, 1, 2),
            Self::Tester => Ipv4Addr::new(10, 99, 2, 2),
        }
    }

    /// The controller's address on the same link.
    #[must_use]
    pub fn controller_address(self) -> Ipv4Addr {
        match self {
            Self::Dut => Ipv4Addr::new(10, 99, 1, 1),
            Self::Tester => Ipv4Addr::new(10, 99, 2, 1),
        }
    }

    /// The controller's interface towards it.
    #[must_use]
    pub fn controller_interface(self) -> &'static str {
        match self {
            Self::Dut => "to-dut",
            Self::Tester => "to-tester",
        }
    }

    fn role(self) -> &'static str {
        match self {
            Self::Dut => "dut",
            Self::Tester => "tester",
        }
    }
}

/// A controller, a device under test and a tester, each a namespace; the latter two with an OpenSSH server.
///
/// The controller reaches either over a link of its own, `admin` on the host, with its default route. The
/// hosts are joined by two cables, `eth1` to `eth1` and `eth2` to `eth2`, without addresses; the tester has
/// no IPv6 on them, so that it sends nothing by itself. The receiving ends, `eth1` of the DUT and `eth2` of
/// the tester, have GRO on, without which a veth takes no redirected XDP frames.
///
/// Dropping it ends everything that runs in the namespaces and removes them, and so does the end of the
/// test process, whatever ended it. A link cannot be slowed down: the kernel's `sch_netem`, which that
/// needs, is missing on many a machine.
#[derive(Debug)]
pub struct SshLab {
    name: String,
    folder: TempDir,
    sshd: PathBuf,
    dut: Mutex<Option<Child>>,
    tester: Mutex<Option<Child>>,
    janitor: Child,
}

impl SshLab {
    /// Makes the namespaces, cables, keys and configurations, and starts both servers.
    ///
    /// # Errors
    /// Where a tool is missing or fails, with what it said, or a server does not come to listen.
    pub fn start() -> io::Result<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("testlab-{}-{number}", process::id());
        let sshd = sshd().ok_or_else(|| io::Error::other("sshd is not installed"))?;
        let folder = tempfile::Builder::new().prefix("testlab-").tempdir()?;
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "sh"])
            .arg(folder.path())
            .arg(process::id().to_string())
            .args(["controller", "dut", "tester"].map(|role| format!("{name}-{role}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends the test process from a terminal would end it too.
            .process_group(0)
            .spawn()?;
        let lab = Self {
            name,
            folder,
            sshd,
            dut: Mutex::new(None),
            tester: Mutex::new(None),
            janitor,
        };
        lab.lay_cables()?;
        lab.write_files()?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(SSHD_RUN_FOLDER)?;
        let starting = Host::ALL.map(|host| lab.spawn_server(host));
        for (host, child) in Host::ALL.into_iter().zip(starting) {
            *lab.server(host) = Some(child?);
        }
        for host in Host::ALL {
            lab.await_server(host)?;
        }
        Ok(lab)
    }

    /// The temporary folder of keys, configurations and logs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The client's configuration: `ssh -F` with it reaches `router` and `tester` and asks nothing.
    #[must_use]
    pub fn ssh_config(&self) -> PathBuf {
        self.path("ssh_config")
    }

    /// The name of the controller's namespace.
    #[must_use]
    pub fn controller_namespace(&self) -> String {
        format!("{}-controller", self.name)
    }

    /// The name of a host's namespace.
    #[must_use]
    pub fn namespace(&self, host: Host) -> String {
        format!("{}-{}", self.name, host.role())
    }

    /// A command that runs in the controller's namespace.
    #[must_use]
    pub fn controller(&self, program: impl AsRef<Path>) -> Command {
        command_in(&self.controller_namespace(), program.as_ref())
    }

    /// A command that runs in a host's namespace, not over ssh.
    #[must_use]
    pub fn command(&self, host: Host, program: impl AsRef<Path>) -> Command {
        command_in(&self.namespace(host), program.as_ref())
    }

    /// What a command that has to work prints when run in a host's namespace, not over ssh.
    ///
    /// # Panics
    /// Where it cannot be started or fails, with what it said; and where it is empty.
    pub fn inside(&self, host: Host, command: &[&str]) -> String {
        let (program, arguments) = command.split_first().expect("a command names a program");
        let output = succeed(self.command(host, program).args(arguments));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What a host's server has logged since the lab was started.
    ///
    /// # Panics
    /// Where the log cannot be read.
    #[must_use]
    pub fn log(&self, host: Host) -> String {
        fs::read_to_string(self.log_path(host)).expect("the log can be read")
    }

    /// Cuts every connection of a host, while its server goes on listening.
    ///
    /// What the sessions had started goes on, until the lab is dropped, where it does not care that its
    /// input and output are gone.
    ///
    /// # Panics
    /// Where the sessions do not end.
    pub fn cut(&self, host: Host) {
        if let Some(server) = &*self.server(host) {
            end_all(&children(server.id()));
        }
    }

    /// Drops every frame of a host's admin link in both directions, or no longer.
    ///
    /// Neither side is told: links stay up, and connections live until they time out. The ruleset that
    /// does it is the controller's; the host's stays as it is.
    ///
    /// # Panics
    /// Where nft fails.
    pub fn silence(&self, host: Host, silent: bool) {
        let table = format!("netdev silence_{}", host.role());
        let interface = host.controller_interface();
        // A table is added before it is deleted because only one that exists can be.
        let mut ruleset = format!("add table {table}\ndelete table {table}\n");
        if silent {
            ruleset += &format!("add table {table}\n");
            for hook in ["ingress", "egress"] {
                ruleset += &format!(
                    "add chain {table} {hook} \
                     {{ type filter hook {hook} device {interface} priority 0; policy drop; }}\n"
                );
            }
        }
        feed(self.controller("nft").args(["-f", "-"]), &ruleset)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Restarts a host's server with another key, which the client does not know; connections are cut.
    ///
    /// # Panics
    /// Where the key cannot be made, or the server does not end or come to listen.
    pub fn change_host_key(&self, host: Host) {
        self.stop(host);
        let key = self.host_key(host);
        fs::remove_file(&key).expect("there is a key");
        fs::remove_file(public(&key)).expect("there is a public key");
        make_key(&key).unwrap_or_else(|error| panic!("{error}"));
        self.start_again(host);
    }

    /// Ends a host's server, where it runs, and cuts its connections.
    ///
    /// # Panics
    /// Where the server or the sessions do not end.
    pub fn stop(&self, host: Host) {
        if let Some(mut server) = self.server(host).take() {
            // Stopped it starts no more sessions.
            kill("STOP", &[server.id()]);
            let sessions = children(server.id());
            server.kill().expect("a child can be killed");
            server.wait().expect("a child can be waited for");
            end_all(&sessions);
        }
    }

    /// Starts a host's server, where it does not run, and waits until it listens.
    ///
    /// # Panics
    /// Where it does not come to listen.
    pub fn start_again(&self, host: Host) {
        if self.server(host).is_some() {
            return;
        }
        let started = self.spawn_server(host).and_then(|child| {
            *self.server(host) = Some(child);
            self.await_server(host)
        });
        started.unwrap_or_else(|error| panic!("{error}"));
    }

    fn server(&self, host: Host) -> MutexGuard<'_, Option<Child>> {
        let server = match host {
            Host::Dut => &self.dut,
            Host::Tester => &self.tester,
        };
        server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn host_key(&self, host: Host) -> PathBuf {
        self.path(&format!("host_key_{}", host.ssh_name()))
    }

    fn sshd_config(&self, host: Host) -> PathBuf {
        self.path(&format!("sshd_config_{}", host.ssh_name()))
    }

    fn log_path(&self, host: Host) -> PathBuf {
        self.path(&format!("sshd_{}.log", host.ssh_name()))
    }

    fn lay_cables(&self) -> io::Result<()> {
        let controller = self.controller_namespace();
        let dut = self.namespace(Host::Dut);
        let tester = self.namespace(Host::Tester);
        for namespace in [&controller, &dut, &tester] {
            run(Command::new("ip").args(["netns", "add", namespace]))?;
        }
        ip_batch(
            &[],
            &format!(
                "link add to-dut netns {controller} type veth peer name admin netns {dut}\n\
                 link add to-tester netns {controller} type veth peer name admin netns {tester}\n\
                 link add eth1 netns {tester} type veth peer name eth1 netns {dut}\n\
                 link add eth2 netns {dut} type veth peer name eth2 netns {tester}\n"
            ),
        )?;
        let silence_ipv6 = "for switch in /proc/sys/net/ipv6/conf/eth[12]/disable_ipv6; do \
                            [ ! -e $switch ] || echo 1 > $switch; done";
        run(self.command(Host::Tester, "sh").args(["-c", silence_ipv6]))?;
        let mut controllers = "link set lo up\n".to_owned();
        for host in Host::ALL {
            let (near, far) = (host.controller_address(), host.address());
            let interface = host.controller_interface();
            controllers += &format!(
                "address add {near}/30 dev {interface}\n\
                 link set {interface} up\n"
            );
            ip_batch(
                &["-n", &self.namespace(host)],
                &format!(
                    "link set lo up\n\
                     address add {far}/30 dev admin\n\
                     link set admin up\n\
                     route add default via {near}\n\
                     link set eth1 up\n\
                     link set eth2 up\n"
                ),
            )?;
        }
        ip_batch(&["-n", &controller], &controllers)?;
        for (host, interface) in [(Host::Dut, "eth1"), (Host::Tester, "eth2")] {
            run(self
                .command(host, "ethtool")
                .args(["-K", interface, "gro", "on"]))?;
        }
        Ok(())
    }

    fn write_files(&self) -> io::Result<()> {
        let client_key = self.path("client_key");
        let authorized_keys = self.path("authorized_keys");
        let known_hosts = self.path("known_hosts");
        make_key(&client_key)?;
        fs::copy(public(&client_key), &authorized_keys)?;
        let mut known = String::new();
        let mut client = String::new();
        for host in Host::ALL {
            let address = host.address();
            let host_key = self.host_key(host);
            let home = self.path(&format!("home_{}", host.ssh_name()));
            fs::create_dir(&home)?;
            make_key(&host_key)?;
            known += &format!("{address} {}", fs::read_to_string(public(&host_key))?);
            client += &format!("Host {}\n    HostName {address}\n", host.ssh_name());
            fs::write(
                self.sshd_config(host),
                format!(
                    "ListenAddress {address}\n\
                     Port {SSH_PORT}\n\
                     HostKey \"{}\"\n\
                     AuthorizedKeysFile \"{}\"\n\
                     StrictModes no\n\
                     UsePAM no\n\
                     PasswordAuthentication no\n\
                     KbdInteractiveAuthentication no\n\
                     PermitRootLogin yes\n\
                     PidFile none\n\
                     MaxSessions 64\n\
                     # Above its default of 10 connections are refused at random.\n\
                     MaxStartups 100\n\
                     UseDNS no\n\
                     # What is written at home is the test's, and no shell reads its start-up files.\n\
                     SetEnv HOME={}\n\
                     LogLevel INFO\n",
                    host_key.display(),
                    authorized_keys.display(),
                    home.display(),
                ),
            )?;
        }
        client += &format!(
            "Host *\n    \
                 User root\n    \
                 Port {SSH_PORT}\n    \
                 IdentityFile \"{}\"\n    \
                 IdentitiesOnly yes\n    \
                 UserKnownHostsFile \"{}\"\n    \
                 GlobalKnownHostsFile /dev/null\n    \
                 StrictHostKeyChecking yes\n    \
                 BatchMode yes\n",
            client_key.display(),
            known_hosts.display(),
        );
        fs::write(known_hosts, known)?;
        fs::write(self.ssh_config(), client)
    }

    fn spawn_server(&self, host: Host) -> io::Result<Child> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path(host))?;
        self.command(host, &self.sshd)
            .args(["-D", "-e", "-f"])
            .arg(self.sshd_config(host))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }

    /// Waits until the server, which is to have been spawned, listens.
    fn await_server(&self, host: Host) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(LISTENING_S_MAX);
        let mut server = self.server(host);
        let server = server.as_mut().expect("the server was spawned");
        while !is_listening(server.id(), host.address()) {
            let ended = server.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                return Err(io::Error::other(format!(
                    "{}: sshd does not listen ({ended:?}): {}",
                    host.ssh_name(),
                    fs::read_to_string(self.log_path(host))?
                )));
            }
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for SshLab {
    fn drop(&mut self) {
        for host in Host::ALL {
            // The janitor does not find what has moved to a namespace of its own.
            if let Some(server) = &*self.server(host) {
                kill("STOP", &[server.id()]);
                kill("KILL", &descendants(server.id()));
            }
        }
        drop(self.janitor.stdin.take());
        // Nobody could be told of an error, and panicking here would hide why the test failed.
        let _ = self.janitor.wait();
        for host in Host::ALL {
            if let Some(server) = &mut *self.server(host) {
                let _ = server.kill();
                let _ = server.wait();
            }
        }
    }
}

fn command_in(namespace: &str, program: &Path) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

fn make_key(path: &Path) -> io::Result<()> {
    run(Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "testlab", "-f"])
        .arg(path))
}

fn public(key: &Path) -> PathBuf {
    key.with_extension("pub")
}

/// Runs what `ip` is to do, one command a line.
fn ip_batch(options: &[&str], commands: &str) -> io::Result<()> {
    feed(
        Command::new("ip").args(options).args(["-batch", "-"]),
        commands,
    )
}

/// Runs a command that has to work.
fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output();
    judge(command, output)
}

/// Runs a command that has to work and is given its input.
fn feed(command: &mut Command, input: &str) -> io::Result<()> {
    let output = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            // The input is short: it fits into the pipe, whether or not it is read.
            if let Some(mut stdin) = child.stdin.take() {
                let _ = stdin.write_all(input.as_bytes());
            }
            child.wait_with_output()
        });
    judge(command, output)
}

fn judge(command: &Command, output: io::Result<Output>) -> io::Result<()> {
    let complaint = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => text(&output),
        Err(error) => error.to_string(),
    };
    Err(io::Error::other(format!("{command:?}: {complaint}")))
}

/// Whether a socket listens at the address in the namespace of a process.
fn is_listening(process: u32, address: Ipv4Addr) -> bool {
    // The kernel prints the address as the number that it is in memory; 0A is the state.
    let address = u32::from_ne_bytes(address.octets());
    let socket = format!(" {address:08X}:{SSH_PORT:04X} 00000000:0000 0A ");
    fs::read_to_string(format!("/proc/{process}/net/tcp"))
        .is_ok_and(|sockets| sockets.contains(&socket))
}

/// Sends a signal to those processes of a list that still are.
fn kill(signal: &str, processes: &[u32]) {
    if !processes.is_empty() {
        let _ = Command::new("sh")
            .args(["-c", r#"kill -"$0" "$@""#, signal])
            .args(processes.iter().map(u32::to_string))
            .stderr(Stdio::null())
            .status();
    }
}

/// Kills processes and waits until they have ended.
fn end_all(processes: &[u32]) {
    kill("KILL", processes);
    wait_until("the killed processes end", || {
        !processes.iter().any(|process| is_running(*process))
    });
}

fn is_running(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/status"))
        .is_ok_and(|status| !matches!(field(&status, "State:"), Some("Z" | "X") | None))
}

fn children(process: u32) -> Vec<u32> {
    let parent = process.to_string();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|process| {
            fs::read_to_string(format!("/proc/{process}/status"))
                .is_ok_and(|status| field(&status, "PPid:") == Some(parent.as_str()))
        })
        .collect()
}

fn descendants(process: u32) -> Vec<u32> {
    children(process)
        .into_iter()
        .flat_map(|child| [vec![child], descendants(child)].concat())
        .collect()
}

/// The first word of a line of what `/proc` says about a process.
fn field<'a>(proc_status: &'a str, name: &str) -> Option<&'a str> {
    proc_status
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()
}
