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

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{install_applets, sshd, succeed, text, wait_until};

mod boot_menu;

/// How long a server may take until it listens.
const LISTENING_S_MAX: u64 = 30;

const SSH_PORT: u16 = 22;

/// A host's interfaces.
const INTERFACES: [&str; 3] = ["admin", "eth1", "eth2"];

/// Where a host finds its own folder of the lab. The programs of `shims` name it too.
const OWN_FOLDER: &str = "/run/testlab";

/// Where sshd lets commands be looked up for root, behind the host's own programs.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a host has instead of the machine's programs.
const SHIMS: [(&str, &str); 6] = [
    ("grub-editenv", include_str!("ssh_lab/shims/grub-editenv")),
    ("grub-reboot", include_str!("ssh_lab/shims/grub-reboot")),
    ("reboot", include_str!("ssh_lab/shims/reboot")),
    ("shutdown", include_str!("ssh_lab/shims/shutdown")),
    ("systemctl", include_str!("ssh_lab/shims/systemctl")),
    ("uname", include_str!("ssh_lab/shims/uname")),
];

/// The kernel that a host's boot menu has beside the machine's own.
pub const SECOND_KERNEL: &str = boot_menu::SECOND_KERNEL;

/// Mounts the hosts' disks at the folders given, for as long as its input is open.
///
/// It does so in a mount namespace of its own, so that the machine has no such mounts, and those of the
/// hosts are made from it. Room for several copies of a program with the information for its debugging.
const DISKS: &str = r#"
for disk; do
    mount -t tmpfs -o size=512m,mode=755 testlab "$disk" || exit
done
echo mounted
read -r _
"#;

/// Makes the files that sshd and what it starts see those of a host, whose folder is given, and runs it.
///
/// The mounts end with the last process that sees them: `ip netns exec` has made a mount namespace from
/// which nothing gets out. The machine's own programs cannot reboot it from there: in `/run` they find no
/// systemd to ask, they may not do it themselves, and the kernel's key for it is out of reach.
const HOST: &str = r#"
set -e
own=$1
shift
mount -t tmpfs -o mode=755 testlab /run
# sshd wants an empty folder, which the package's service makes when it starts.
mkdir /run/sshd /run/testlab
mount --rbind "$own" /run/testlab
mount --bind /run/testlab/boot_id /proc/sys/kernel/random/boot_id
mount --bind /run/testlab/cmdline /proc/cmdline
mount --bind /run/testlab/disk/boot /boot
mount --bind /run/testlab/disk/var /var
# Hides the folder given, where that is below it.
mount --bind /run/testlab/disk/tmp /tmp
[ ! -e /proc/sysrq-trigger ] || mount --bind /dev/null /proc/sysrq-trigger
exec setpriv --bounding-set -sys_boot "$@"
"#;

/// Prints the settings of a host's interfaces that do not go with its namespace, as the commands that
/// make them.
const SETTINGS: &str = r#"
for interface in admin eth1 eth2; do
    echo "ip link set $interface address $(cat /sys/class/net/$interface/address)"
    ethtool -k $interface |
        sed -nE "s/^\t*([^ ]+): (on|off)( \[requested.*)?$/ethtool -K $interface \1 \2/p"
    cd /sys/class/net/$interface
    grep -Hs '' mtu tx_queue_len threaded gro_flush_timeout napi_defer_hard_irqs queues/rx-*/rps_* |
        sed -E "s|^([^:]+):(.*)|echo '\2' > /sys/class/net/$interface/\1|"
done
"#;

/// Has addresses proved to be the only ones in a tenth of a second: with the kernel's own settings it is up to two.
const HASTE: &str = r#"
cd /proc/sys/net/ipv6 2>/dev/null || exit 0
for interface in admin eth1 eth2; do
    echo 0 > conf/$interface/router_solicitation_delay
    echo 100 > neigh/$interface/retrans_time_ms
done
"#;

/// What the names of all namespaces end with. The parked are there only while a host goes down.
const NAMESPACES: [&str; 5] = ["controller", "dut", "tester", "dut-parked", "tester-parked"];

/// How often settings are made until they are as they were: one feature takes others along.
const SETTING_TRIES: usize = 3;

/// What ends the thread that serves a host's reboots, where it expects the boot that asks for one.
const NO_MORE: &str = "no more";

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
/// What ssh starts on a host sees files of the host's own beside the machine's:
///
/// - a disk with the home folder, `/tmp`, `/boot` and `/var`, which outlives reboots, but for `/tmp`'s content;
/// - a `/run` that is empty after each boot;
/// - `/proc/sys/kernel/random/boot_id` and `/proc/cmdline` of its last boot, and `uname` with that kernel's
///   release. `/boot/grub` decides it, as GRUB on Debian would: `grub.cfg`, `custom.cfg` if there is one,
///   and once the entry that `grub-reboot` names. It looks at no conditions, and nothing but the start of
///   Linux is carried out;
/// - first in its `PATH`, `systemctl reboot`, `reboot` and `shutdown -r now`, which ask the lab for a
///   [reboot](Self::serve_reboots) and never the machine. The machine's own `systemctl` finds no systemd.
///
/// What [`command`](Self::command) and [`inside`](Self::inside) start is in the host's namespace of the
/// network, but sees the machine's files. The clocks are the machine's everywhere, the uptime too.
///
/// Dropping it ends everything that runs in the namespaces and removes them, and so does the end of the
/// test process, whatever ended it. A link cannot be slowed down: the kernel's `sch_netem`, which that
/// needs, is missing on many a machine.
#[derive(Debug)]
pub struct SshLab {
    name: String,
    folder: TempDir,
    sshd: PathBuf,
    dut: Machine,
    tester: Machine,
    disks: Child,
    janitor: Child,
}

/// What there is of a host while the lab lives.
#[derive(Debug, Default)]
struct Machine {
    server: Mutex<Option<Child>>,
    /// Held while it goes down and comes up.
    power: Mutex<()>,
    reboots: AtomicUsize,
    /// The settings of its interfaces at its first boot, as commands.
    settings: OnceLock<Vec<String>>,
}

/// Answers hosts that ask for a reboot, until it is dropped; that waits for a reboot under way.
#[derive(Debug)]
#[must_use = "hosts that ask are answered until it is dropped"]
pub struct Reboots {
    lab: Arc<SshLab>,
    threads: Vec<JoinHandle<()>>,
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
            .args(NAMESPACES.map(|role| format!("{name}-{role}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends the test process from a terminal would end it too.
            .process_group(0)
            .spawn()?;
        for role in ["controller", "dut", "tester"] {
            run(Command::new("ip").args(["netns", "add", &format!("{name}-{role}")]))?;
        }
        // Only now: the first namespace makes their folder one that hands later mounts on.
        let disks = mount_disks(folder.path())?;
        let lab = Self {
            name,
            folder,
            sshd,
            dut: Machine::default(),
            tester: Machine::default(),
            disks,
            janitor,
        };
        lab.lay_cables()?;
        lab.write_files()?;
        for host in Host::ALL {
            lab.boot(host)?;
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

    /// Puts a script first in the `PATH` of what ssh starts on a host, under a name. It finds files that the test
    /// writes into [`own_folder`](Self::own_folder) in `/run/testlab`.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put_program(&self, host: Host, name: &str, script: &str) -> io::Result<()> {
        executable(&self.own(host, "bin").join(name), script)
    }

    /// The folder that a host finds as `/run/testlab`.
    #[must_use]
    pub fn own_folder(&self, host: Host) -> PathBuf {
        self.path(host.ssh_name())
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

    /// Resets a host, as its button does, and waits until its server listens again.
    ///
    /// Everything that runs there ends without a word to its peers, and all of its network is as it was when
    /// the lab was started. The cables stay: the other ends lose their carrier for a moment. The new boot has
    /// another id, the same keys and disk, and the kernel that the boot menu chooses. A server that was
    /// stopped runs again. Whatever silences a host is the controller's, and goes on.
    ///
    /// # Panics
    /// Where something of it does not end, or the host does not come up, with the reason.
    pub fn reboot(&self, host: Host) {
        let _power = self.power(host);
        self.cut_power(host)
            .and_then(|()| self.come_up(host))
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Lets a host hang until it is rebooted: everything there ends, and it answers nothing and nobody.
    ///
    /// # Panics
    /// Where something of it does not end.
    pub fn hang(&self, host: Host) {
        let _power = self.power(host);
        self.cut_power(host)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Reboots each host that asks for it over ssh, from now on until what is returned is dropped.
    ///
    /// Such a host takes leave of its peers: its connections are closed, perhaps before the command that asks
    /// has ended. Then it is down for some time, or, where that is `None`, until it is [rebooted](Self::reboot).
    /// While this is not served, the commands that ask succeed, and nothing follows. It is served once at a time.
    ///
    /// # Panics
    /// Where the requests cannot be read. Where a reboot fails, it does so when what is returned is dropped.
    pub fn serve_reboots(self: &Arc<Self>, downtime: Option<Duration>) -> Reboots {
        let threads = Host::ALL.map(|host| {
            let lab = Arc::clone(self);
            let requests = self.open_requests(host);
            thread::spawn(move || lab.serve_host(host, requests, downtime))
        });
        Reboots {
            lab: Arc::clone(self),
            threads: threads.into(),
        }
    }

    /// How often a host has come up again after its first boot.
    #[must_use]
    pub fn reboots(&self, host: Host) -> usize {
        self.machine(host).reboots.load(Ordering::SeqCst)
    }

    /// A host's folder `/boot/grub`, as this process reaches it.
    #[must_use]
    pub fn grub(&self, host: Host) -> PathBuf {
        self.disk(host).join("boot/grub")
    }

    /// A host's home folder, as this process reaches it.
    #[must_use]
    pub fn home(&self, host: Host) -> PathBuf {
        self.disk(host).join("home")
    }

    /// Puts a program first in the `PATH` of what ssh starts on a host.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn install(&self, host: Host, program: &str, script: &str) {
        let path = self.own(host, "bin").join(program);
        executable(&path, script)
            .unwrap_or_else(|error| panic!("{}: {program}: {error}", host.ssh_name()));
    }

    /// Leaves a host nothing but BusyBox's applets, its shell among them; connections are cut. It boots no more: what
    /// asks for a reboot is gone too.
    ///
    /// # Panics
    /// Where there is no `busybox`, and where the server does not come to listen.
    pub fn leave_applets_alone(&self, host: Host) {
        self.stop(host);
        let programs = self.own(host, "bin");
        fs::remove_dir_all(&programs).expect("the host has a folder of programs");
        fs::create_dir(&programs).expect("the folder can be made again");
        install_applets(&programs);
        let path = self.own(host, "sshd_config");
        let config = fs::read_to_string(&path).expect("the configuration was written");
        let config = config.replace(&format!("/bin:{USUAL_PATH}"), "/bin");
        // Root's own shell may be another one.
        let shell = format!("ForceCommand exec {OWN_FOLDER}/bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n");
        fs::write(path, config + &shell).expect("the configuration can be written");
        self.start_again(host);
    }

    /// Fills a host's disk, so that nothing more can be written to its home folder, `/tmp` and `/boot`, or
    /// makes room again.
    ///
    /// It stays full through a reboot, but for what that clears away in `/tmp`.
    ///
    /// # Panics
    /// Where that fails for another reason than a full disk.
    pub fn fill_disk(&self, host: Host, full: bool) {
        let filler = self.disk(host).join("filler");
        let (outcome, expected) = if full {
            let filled = File::create(filler)
                .and_then(|mut filler| io::copy(&mut io::repeat(0), &mut filler))
                .map(drop);
            (filled, io::ErrorKind::StorageFull)
        } else {
            (fs::remove_file(filler), io::ErrorKind::NotFound)
        };
        if let Err(error) = outcome
            && error.kind() != expected
        {
            panic!("{}: its disk: {error}", host.ssh_name());
        }
    }

    fn machine(&self, host: Host) -> &Machine {
        match host {
            Host::Dut => &self.dut,
            Host::Tester => &self.tester,
        }
    }

    fn server(&self, host: Host) -> MutexGuard<'_, Option<Child>> {
        let server = &self.machine(host).server;
        server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn power(&self, host: Host) -> MutexGuard<'_, ()> {
        let power = &self.machine(host).power;
        power.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// A file of a host, in the folder that it finds at `OWN_FOLDER`.
    fn own(&self, host: Host, name: &str) -> PathBuf {
        self.path(host.ssh_name()).join(name)
    }

    /// A host's disk, which is mounted for other processes only.
    fn disk(&self, host: Host) -> PathBuf {
        let mounted = self.own(host, "disk");
        PathBuf::from(format!(
            "/proc/{}/root{}",
            self.disks.id(),
            mounted.display()
        ))
    }

    fn host_key(&self, host: Host) -> PathBuf {
        self.own(host, "host_key")
    }

    fn log_path(&self, host: Host) -> PathBuf {
        self.own(host, "sshd.log")
    }

    /// The pipe by which a host asks for reboots. Opened both ways it has no end, and nobody waits for the
    /// other side.
    fn open_requests(&self, host: Host) -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.own(host, "requests"))
            .unwrap_or_else(|error| panic!("{}: its requests: {error}", host.ssh_name()))
    }

    fn serve_host(&self, host: Host, requests: File, downtime: Option<Duration>) {
        for request in BufReader::new(requests).lines() {
            let asking = request.expect("a pipe can be read");
            if asking == NO_MORE {
                return;
            }
            let _power = self.power(host);
            let boot = fs::read_to_string(self.own(host, "boot_id")).expect("a host has a boot id");
            // Several may have asked, or somebody pressed the button meanwhile.
            if asking != boot.trim_end() {
                continue;
            }
            let served = self.go_down(host).and_then(|()| {
                let Some(downtime) = downtime else {
                    return Ok(());
                };
                sleep(downtime);
                self.come_up(host)
            });
            served.unwrap_or_else(|error| panic!("{}: rebooting: {error}", host.ssh_name()));
        }
    }

    /// Takes a host down without a word to its peers.
    fn cut_power(&self, host: Host) -> io::Result<()> {
        let down = INTERFACES.map(|interface| format!("link set {interface} down\n"));
        ip_batch(&["-n", &self.namespace(host)], &down.concat())?;
        self.go_down(host)
    }

    /// Ends everything that runs on a host, and makes its namespace anew, with the links down.
    fn go_down(&self, host: Host) -> io::Result<()> {
        self.end_processes(host);
        let namespace = self.namespace(host);
        let parked = format!("{namespace}-parked");
        let netns =
            |action: &str, name: &str| run(Command::new("ip").args(["netns", action, name]));
        let move_links = |from: &str, to: &str| {
            let moves = INTERFACES.map(|interface| format!("link set {interface} netns {to}\n"));
            ip_batch(&["-n", from], &moves.concat())
        };
        netns("add", &parked)?;
        move_links(&namespace, &parked)?;
        netns("delete", &namespace)?;
        netns("add", &namespace)?;
        move_links(&parked, &namespace)?;
        netns("delete", &parked)
    }

    /// Ends the server, where it runs, and everything that it has started or that is in the namespace, but
    /// this process.
    fn end_processes(&self, host: Host) {
        let server = self.server(host).take();
        let server_id = server.as_ref().map(Child::id);
        // Stopped it starts no more sessions, and does not part with what it has started.
        kill("STOP", server_id.as_slice());
        let namespace = Path::new("/run/netns").join(self.namespace(host));
        wait_until("everything on a host ends", || {
            let mut running = processes_in(&namespace, "net");
            running.extend(server_id.into_iter().flat_map(started_by));
            running.retain(|process| {
                ![Some(process::id()), server_id].contains(&Some(*process)) && is_running(*process)
            });
            kill("KILL", &running);
            running.is_empty()
        });
        if let Some(mut server) = server {
            server.kill().expect("a child can be killed");
            server.wait().expect("a child can be waited for");
        }
    }

    /// Boots a host that is down, and waits until its server listens.
    fn come_up(&self, host: Host) -> io::Result<()> {
        self.boot(host)?;
        self.await_server(host)?;
        self.machine(host).reboots.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Boots a host whose links are down, up to the start of its server.
    fn boot(&self, host: Host) -> io::Result<()> {
        let kernel = boot_menu::boot(&self.grub(host))?;
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        fs::write(self.own(host, "boot_id"), boot_id)?;
        fs::write(self.own(host, "cmdline"), kernel.command_line + "\n")?;
        fs::write(self.own(host, "release"), kernel.release + "\n")?;
        let temporary = self.disk(host).join("tmp");
        if temporary.exists() {
            fs::remove_dir_all(&temporary)?;
        }
        fs::create_dir(&temporary)?;
        fs::set_permissions(&temporary, Permissions::from_mode(0o1777))?;
        self.connect(host)?;
        *self.server(host) = Some(self.spawn_server(host)?);
        Ok(())
    }

    /// Brings a host's links up, as they were at its first boot.
    fn connect(&self, host: Host) -> io::Result<()> {
        let namespace = ["-n", &self.namespace(host)];
        let bare = INTERFACES.map(|interface| {
            format!("link set {interface} xdp off\nlink set {interface} xdpgeneric off\n")
        });
        ip_batch(&namespace, &bare.concat())?;
        self.reset_settings(host)?;
        run(self.command(host, "sh").args(["-c", HASTE]))?;
        if host == Host::Tester {
            let silence_ipv6 = "for switch in /proc/sys/net/ipv6/conf/eth[12]/disable_ipv6; do \
                                [ ! -e $switch ] || echo 1 > $switch; done";
            run(self.command(host, "sh").args(["-c", silence_ipv6]))?;
        }
        let (near, far) = (host.controller_address(), host.address());
        ip_batch(
            &namespace,
            &format!(
                "link set lo up\n\
                 address add {far}/30 dev admin\n\
                 link set admin up\n\
                 route add default via {near}\n\
                 link set eth1 up\n\
                 link set eth2 up\n"
            ),
        )
    }

    /// Makes the interfaces' settings those of the first boot, which notes them.
    fn reset_settings(&self, host: Host) -> io::Result<()> {
        let mut left = Vec::new();
        for _ in 0..SETTING_TRIES {
            let now = self.command(host, "sh").args(["-c", SETTINGS]).output()?;
            let now = String::from_utf8_lossy(&now.stdout);
            let now: Vec<String> = now.lines().map(str::to_owned).collect();
            let first = self.machine(host).settings.get_or_init(|| now.clone());
            let mut changed: Vec<&str> = first.iter().map(String::as_str).collect();
            changed.retain(|setting| !now.iter().any(|current| current == setting));
            if changed.is_empty() {
                return Ok(());
            }
            // A feature that another one has brought along is refused, which the next look tells.
            let commands = changed.join("\n");
            self.command(host, "sh").args(["-c", &commands]).output()?;
            left = changed.into_iter().map(str::to_owned).collect();
        }
        // An XDP program at the other end of a veth forbids some features to this end.
        left.retain(|setting| !setting.starts_with("ethtool"));
        if left.is_empty() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{}: its interfaces do not become what they were: {}",
            host.ssh_name(),
            left.join("; ")
        )))
    }

    fn lay_cables(&self) -> io::Result<()> {
        let controller = self.controller_namespace();
        let dut = self.namespace(Host::Dut);
        let tester = self.namespace(Host::Tester);
        ip_batch(
            &[],
            &format!(
                "link add to-dut netns {controller} type veth peer name admin netns {dut}\n\
                 link add to-tester netns {controller} type veth peer name admin netns {tester}\n\
                 link add eth1 netns {tester} type veth peer name eth1 netns {dut}\n\
                 link add eth2 netns {dut} type veth peer name eth2 netns {tester}\n"
            ),
        )?;
        let mut controllers = "link set lo up\n".to_owned();
        for host in Host::ALL {
            let (address, interface) = (host.controller_address(), host.controller_interface());
            controllers += &format!(
                "address add {address}/30 dev {interface}\n\
                 link set {interface} up\n"
            );
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
        let known_hosts = self.path("known_hosts");
        make_key(&client_key)?;
        let mut known = String::new();
        let mut client = String::new();
        for host in Host::ALL {
            let address = host.address();
            let host_key = self.host_key(host);
            make_key(&host_key)?;
            for folder in ["home", "boot", "var", "var/lib", "var/db", "var/tmp"] {
                fs::create_dir(self.disk(host).join(folder))?;
            }
            std::os::unix::fs::symlink("/run", self.disk(host).join("var/run"))?;
            boot_menu::install(&self.disk(host).join("boot"))?;
            fs::copy(public(&client_key), self.own(host, "authorized_keys"))?;
            run(Command::new("mkfifo").arg(self.own(host, "requests")))?;
            fs::create_dir(self.own(host, "bin"))?;
            for (program, script) in SHIMS {
                executable(&self.own(host, "bin").join(program), script)?;
            }
            known += &format!("{address} {}", fs::read_to_string(public(&host_key))?);
            client += &format!("Host {}\n    HostName {address}\n", host.ssh_name());
            fs::write(
                self.own(host, "sshd_config"),
                format!(
                    "ListenAddress {address}\n\
                     Port {SSH_PORT}\n\
                     HostKey {OWN_FOLDER}/host_key\n\
                     AuthorizedKeysFile {OWN_FOLDER}/authorized_keys\n\
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
                     SetEnv HOME={OWN_FOLDER}/disk/home PATH={OWN_FOLDER}/bin:{USUAL_PATH}\n\
                     LogLevel INFO\n"
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
                 # The usual one is safe from what is built tomorrow, and takes most of the time of a log-in.\n    \
                 KexAlgorithms curve25519-sha256\n    \
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
        // The tester stands for a machine of its own, from which nobody else takes time.
        let niceness = match host {
            Host::Dut => "0",
            Host::Tester => "-20",
        };
        Command::new("nice")
            .args(["-n", niceness, "nsenter"])
            .arg(format!("--mount=/proc/{}/ns/mnt", self.disks.id()))
            .args(["ip", "netns", "exec", &self.namespace(host)])
            .args(["sh", "-c", HOST, "sh"])
            .arg(self.path(host.ssh_name()))
            .arg(&self.sshd)
            .args(["-D", "-e", "-f", &format!("{OWN_FOLDER}/sshd_config")])
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
                kill("KILL", &started_by(server.id()));
            }
        }
        drop(self.janitor.stdin.take());
        drop(self.disks.stdin.take());
        // Nobody could be told of an error, and panicking here would hide why the test failed.
        let _ = self.janitor.wait();
        let _ = self.disks.wait();
        for host in Host::ALL {
            if let Some(server) = &mut *self.server(host) {
                let _ = server.kill();
                let _ = server.wait();
            }
        }
    }
}

impl Drop for Reboots {
    fn drop(&mut self) {
        for host in Host::ALL {
            let told = writeln!(self.lab.open_requests(host), "{NO_MORE}");
            told.expect("a pipe that is open both ways takes a line");
        }
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join()
                && !thread::panicking()
            {
                resume_unwind(panic);
            }
        }
    }
}

/// Starts what mounts the hosts' disks in the lab's folder, and waits until it has.
fn mount_disks(folder: &Path) -> io::Result<Child> {
    let disks = Host::ALL.map(|host| folder.join(host.ssh_name()).join("disk"));
    for disk in &disks {
        fs::create_dir_all(disk)?;
    }
    let mut mounting = Command::new("unshare")
        .args(["--mount", "--propagation", "slave", "sh", "-c", DISKS, "sh"])
        .args(disks)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let mut said = String::new();
    if let Some(stdout) = mounting.stdout.take() {
        BufReader::new(stdout).read_line(&mut said)?;
    }
    if said.is_empty() {
        let ended = mounting.wait()?;
        return Err(io::Error::other(format!(
            "the hosts' disks are not mounted: {ended}"
        )));
    }
    Ok(mounting)
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

fn executable(path: &Path, script: &str) -> io::Result<()> {
    fs::write(path, script)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
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

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn children(process: u32) -> Vec<u32> {
    let parent = process.to_string();
    processes()
        .filter(|process| {
            fs::read_to_string(format!("/proc/{process}/status"))
                .is_ok_and(|status| field(&status, "PPid:") == Some(parent.as_str()))
        })
        .collect()
}

/// What runs in the namespace for which a file stands; it is of the kind that `/proc` calls so.
fn processes_in(namespace: &Path, kind: &str) -> Vec<u32> {
    let inode = |path: &Path| Some(fs::metadata(path).ok()?.ino());
    let Some(wanted) = inode(namespace) else {
        return Vec::new();
    };
    processes()
        .filter(|process| inode(Path::new(&format!("/proc/{process}/ns/{kind}"))) == Some(wanted))
        .collect()
}

/// What a server has started, also where the parents have ended, or it has left one of its namespaces.
fn started_by(server: u32) -> Vec<u32> {
    let mounts = PathBuf::from(format!("/proc/{server}/ns/mnt"));
    let mut started = processes_in(&mounts, "mnt");
    // A server that has not come far yet still sees the mounts of this process, and so of the machine.
    if started.contains(&process::id()) {
        started.clear();
    }
    started.retain(|process| *process != server);
    started.extend(descendants(server));
    started
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
