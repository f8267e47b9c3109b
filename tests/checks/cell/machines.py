"""Machines of a cell as network namespaces on a bridge: their links fail alone, and their boot times differ.

Three members of etcd, each with its data on a file system of its own, and hosts whose agents reach them over the bridge.
Needs root, the program `ip`, and loop devices for frozen file systems. `refusal()` says why there is none of it.
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hosts"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peer"))
import cell
import cell_local
import etcd
from peer import Failure

NETWORK = "10.213.79"
BRIDGE_ADDRESS = NETWORK + ".254"
DISK_MIB = 256  # etcd allocates 64 MiB for each file of its log


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure("SystemError", f"{' '.join(words)}: {done.stderr.strip()}")


def refusal():
    """Why namespaces cannot be used here. Empty: they can."""
    for program in ("etcd", "ip", "unshare", "mkfs.ext4", "fsfreeze"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    name = f"lhc{os.getpid()}"
    for words in (("ip", "netns", "add", name), ("unshare", "-T", "--boottime", "1", "true")):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{' '.join(words)}: {done.stderr.strip()}"
    run("ip", "netns", "del", name)
    return ""


class Bridge:
    """`add(name)` makes a machine. The end of a `with` block removes everything."""

    def __init__(self):
        self.name = f"lhc{os.getpid() % 100000}"
        self.machines = {}  # name -> address

    def __enter__(self):
        run("ip", "link", "add", self.name, "type", "bridge")
        run("ip", "addr", "add", BRIDGE_ADDRESS + "/24", "dev", self.name)
        run("ip", "link", "set", self.name, "up")
        return self

    def __exit__(self, *error):
        for name in self.machines:
            subprocess.run(["ip", "netns", "del", self.namespace(name)], capture_output=True, check=False)
            subprocess.run(["ip", "link", "del", self.link(name)], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self.name], capture_output=True, check=False)

    def namespace(self, name):
        return f"{self.name}-{name}"

    def link(self, name):
        return f"{self.name}{name}"

    def prefix(self, name):
        return ("ip", "netns", "exec", self.namespace(name))

    def add(self, name):
        """Returns its address."""
        address = f"{NETWORK}.{10 + len(self.machines)}"
        self.machines[name] = address
        run("ip", "netns", "add", self.namespace(name))
        run("ip", "link", "add", self.link(name), "type", "veth", "peer", "name", "eth0", "netns", self.namespace(name))
        run("ip", "link", "set", self.link(name), "master", self.name, "up")
        for words in (("addr", "add", address + "/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
                      ("link", "set", "lo", "up")):
            run("ip", "-n", self.namespace(name), *words)
        return address

    def cut(self, *names):
        for name in names:
            run("ip", "link", "set", self.link(name), "down")

    def mend(self, *names):
        for name in names:
            run("ip", "link", "set", self.link(name), "up")

    def swallow(self, name, addresses):
        """Packets of the machine to these addresses disappear; those from them arrive."""
        for address in addresses:
            run("ip", "-n", self.namespace(name), "route", "add", "blackhole", address + "/32")

    def restore(self, name, addresses):
        for address in addresses:
            run("ip", "-n", self.namespace(name), "route", "del", "blackhole", address + "/32")


class Disk:
    """A file system in a file, which can be frozen."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, name)
        image = self.path + ".img"
        with open(image, "wb") as file:
            file.truncate(DISK_MIB << 20)
        run("mkfs.ext4", "-q", image)
        os.mkdir(self.path)
        run("mount", "-o", "loop", image, self.path)

    def freeze(self):
        run("fsfreeze", "--freeze", self.path)

    def thaw(self):
        run("fsfreeze", "--unfreeze", self.path)

    def end(self):
        subprocess.run(["umount", self.path], capture_output=True, check=False)


class Members(etcd.Etcd):
    """Three members, each on a machine and a disk of its own."""

    def __init__(self, bridge, folder):
        self.folder = folder
        self.names = [f"e{i}" for i in range(etcd.MEMBERS)]
        self.addresses = [bridge.add(name) for name in self.names]
        self.urls = [f"http://{address}:2379" for address in self.addresses]
        self.other_urls = []
        peers = [f"http://{address}:2380" for address in self.addresses]
        cluster = ",".join(f"{name}={peer}" for name, peer in zip(self.names, peers))
        self.disks = [Disk(folder, name) for name in self.names]
        self.members = []
        for name, url, peer, disk in zip(self.names, self.urls, peers, self.disks):
            with open(os.path.join(folder, name + ".log"), "wb") as log:
                self.members.append(subprocess.Popen(
                    [*bridge.prefix(name), shutil.which("etcd"), "--name", name, "--data-dir",
                     os.path.join(disk.path, "data"), "--heartbeat-interval", "100", "--election-timeout", "1000",
                     "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer,
                     "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster], stdout=log, stderr=log))

    def leader(self):
        """The index of the member that leads."""
        for i, url in enumerate(self.urls):
            status = etcd.Client([url]).call("/v3/maintenance/status", {})
            if status.get("leader") == status["header"]["member_id"]:
                return i
        raise Failure("TimedOut", "etcd has no leader")

    def end(self):
        super().end()
        for disk in self.disks:
            disk.end()


class Host(cell_local.Host):
    """Its agent is on a machine of the bridge. `boottime_s` is added to the boot time of all its processes."""

    def __init__(self, local, name, boottime_s):
        super().__init__(local, name)
        self.http = local.path(name + ".http")
        self.address = "unix:" + self.http
        local.bridge.add(name)
        self.clock = ("unshare", "-T", "--boottime", str(boottime_s)) if boottime_s else ()
        self.prefix, self.agent_prefix = self.clock, (*local.bridge.prefix(name), *self.clock)

    def start_broker(self):
        self.broker = cell.Process(self.cell, self.name + "-broker", "leasehold-broker", "--socket", self.socket(),
                                   "--capacity", "64MiB", prefix=self.clock)

    def start_worker(self):
        """Also the agent, unless it runs."""
        cell.wait_for(lambda: self.broker.require_running() or self.control("status"), "the broker does not answer")
        self.worker = cell.Process(self.cell, self.name + "-worker", "leasehold-worker", "--broker", self.socket(),
                                   "--listen", self.cell.path(self.name + ".sock"), "--name", self.name, "--model",
                                   self.cell.model, "--http", self.http, "--threads", "1", *self.worker_options,
                                   prefix=self.clock)
        if self.agent is None or self.agent.process.poll() is not None:
            self.start_agent()

    def start_agent(self, name=None, state=None):
        """`name`, `state`: those of another machine with the same name."""
        log, state = name or self.name + "-agent", state or self.state()
        agent = cell.Process(self.cell, log, "leasehold-cell", "--config", self.cell.config, "--host", self.name,
                             "--broker", self.socket(), "--listen", self.cell.path(log + ".sock"), "--state-dir", state,
                             prefix=self.agent_prefix)
        if name is None:
            self.agent = agent
        return agent

    def state(self):
        return self.cell.path(self.name + "-state")


class Machines(cell_local.LocalCell):
    """A cell whose hosts and members have machines of their own. Every second host has another boot time."""

    OTHER_BOOTTIME_S = 100_000
    more_config = "etcd-any-address = true\n"

    def __init__(self, bin_dir, model, count, bridge, ttl_ms, slack_ms):
        super().__init__(bin_dir, model, count, ttl_ms, slack_ms)
        self.bridge = bridge

    def __exit__(self, *error):
        for program in [*self.gateways, *self.hosts]:
            program.end()
        if self.etcd:
            self.etcd.end()  # before the folder: its members write until they have ended
        self.folder.cleanup()

    def new_etcd(self):
        return Members(self.bridge, self.folder.name)

    def new_host(self, name):
        return Host(self, name, self.OTHER_BOOTTIME_S * (len(self.hosts) % 2))
