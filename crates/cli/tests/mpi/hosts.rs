//! Two hosts in one machine: network namespaces with addresses and names of their own, between which bytes go over a network only.

use super::{Folder, alone, bits, ok, text, training, with};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use volta_testing::test;

/// The addresses of hosts: the first one's ends in 1.
const NETWORK: &str = "10.77.0.";

/// Hosts that are network namespaces of this machine, joined by a bridge in one of their own; gone when the test ends.
struct Hosts {
    /// What the names of its namespaces begin with.
    prefix: String,
    names: Vec<String>,
    bridge: String,
}

fn ip(words: &str) -> Result<(), String> {
    let run = Command::new("ip").args(words.split_whitespace()).output();
    let run = run.map_err(|e| format!("there is no `ip`: {e}"))?;
    if run.status.success() { Ok(()) } else { Err(format!("ip {words}: {}", text(&run.stderr).trim())) }
}

impl Hosts {
    /// So many hosts, or why this machine has none.
    fn new(count: usize) -> Result<Hosts, String> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let prefix = format!("volta-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names = (1..=count).map(|k| format!("{prefix}-{k}")).collect();
        let hosts = Hosts { names, bridge: format!("{prefix}-net"), prefix };
        let Hosts { names, bridge, .. } = &hosts;
        ip(&format!("netns add {bridge}"))?;
        ip(&format!("-n {bridge} link add bridge type bridge"))?;
        ip(&format!("-n {bridge} link set bridge up"))?;
        for (k, name) in (1..).zip(names) {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {bridge} link add port{k} type veth peer name eth0 netns {name}"))?;
            ip(&format!("-n {bridge} link set port{k} master bridge up"))?;
            ip(&format!("-n {name} addr add {NETWORK}{k}/24 dev eth0"))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(hosts)
    }

    /// `mpirun` on the first host, with a rank on each; others are reached by a program that takes the place of `ssh`.
    fn mpirun(&self, folder: &Folder, words: &[String]) -> Command {
        let agent = folder.0.join("agent");
        // It is called with the host's address and the words of the command.
        let script = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\nhost=\"$1\"; shift\n\
             exec ip netns exec \"{}-${{host##*.}}\" unshare --uts sh -c \"hostname host${{host##*.}}; $*\"\n",
            self.prefix
        );
        std::fs::write(&agent, script).unwrap();
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
        let addresses: Vec<String> = (1..=self.names.len()).map(|k| format!("{NETWORK}{k}:1")).collect();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[0], "unshare", "--uts", "sh", "-c"]);
        command.args(["hostname host1; exec \"$@\"", "sh", "mpirun", "--allow-run-as-root"]);
        command.args(["--mca", "plm_rsh_agent"]).arg(&agent);
        // Bytes go over the network, as if the hosts shared no memory.
        command.args(["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0"]);
        command.args(["--mca", "oob_tcp_if_include", "eth0", "--mca", "pml", "ob1"]);
        command.args(["--host", &addresses.join(","), "-n", &self.names.len().to_string()]);
        command.args(["-x", "VOLTA_THREADS=1", "--wdir"]).arg(&folder.0);
        command.arg(env!("CARGO_BIN_EXE_volta")).args(words);
        alone(&mut command, folder);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().chain([&self.bridge]) {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn hosts() -> Hosts {
    Hosts::new(2).unwrap_or_else(|reason| panic!("{reason}"))
}

#[test(needs(hosts))]
fn two_hosts_train_the_model_of_one_process_bit_for_bit() {
    let words = with(training(20), "--gradient-parts 2");
    let alone_folder = Folder::new("hosts-alone");
    let mut single = Command::new(env!("CARGO_BIN_EXE_volta"));
    ok(&alone(single.args(&words), &alone_folder).output().unwrap());
    let (hosts, folder) = (hosts(), Folder::new("hosts"));
    let said = ok(&hosts.mpirun(&folder, &words).output().unwrap());
    assert!(bits(&folder.model()) == bits(&alone_folder.model()), "two hosts differ from one process");
    assert_eq!(said.matches("Everything goes to").count(), 1, "{said}");
    for rank in 0..2 {
        let log = std::fs::read_to_string(folder.run().join(format!("ranks/rank-{rank}.log"))).unwrap();
        assert!(log.contains(&format!("on host{}", rank + 1)), "{log}");
    }
}

#[test(needs(hosts))]
fn a_rank_that_dies_on_another_host_ends_the_run_and_no_process_stays() {
    let (hosts, folder) = (hosts(), Folder::new("hosts-killed"));
    let mut run = hosts.mpirun(&folder, &training(100_000)).spawn().unwrap();
    folder.wait_for("is saved", 1, &mut run);
    let processes = [0, 1].map(|rank| folder.process(rank).expect("both ranks have begun"));
    assert!(Command::new("kill").args(["-KILL", &processes[1]]).status().unwrap().success());
    let killed = std::time::Instant::now();
    let ended = run.wait_with_output().unwrap();
    assert!(!ended.status.success() && killed.elapsed().as_secs() < 10, "{}", text(&ended.stderr));
    // Namespaces do not separate processes: both are seen from here.
    let is_there = |process: &String| std::path::Path::new("/proc").join(process).exists();
    assert!(!processes.iter().any(is_there), "{processes:?} go on");
}
