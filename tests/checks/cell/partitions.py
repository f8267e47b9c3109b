"""Faults of machines of a cell, and whether its promises held.

    python3 tests/checks/cell/partitions.py BIN_DIR [--seconds N] [--seed S]

Without --seconds each fault happens once. With it, random faults follow for so long. Judged are the answers of clients
and every revision of etcd. Ends with a line per check; exit code 1 when one fails, 77 where namespaces are not allowed.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import threading
import time

import machines
import cell_local
import etcd
import law
from cell import wait_for
from peer import Failure

TTL_MS = 4000
SLACK_MS = 300
STOPPED_S = (TTL_MS + SLACK_MS) / 1e3 * 1.01 + 1
TENANT = "ann"
ASK_TIMEOUT_S = 3
NO_ANSWER = 0
STOPPED = (503, NO_ANSWER)


class History(threading.Thread):
    """Judges every revision as it comes, so that compaction loses none."""

    def __init__(self, members):
        super().__init__(daemon=True)
        self.client = etcd.Client(members.urls)
        self.law = law.Law(cell_local.CELL)
        self.seen = 0
        self.error = None

    def run(self):
        try:
            for events in self.client.watch(*etcd.EVERY_KEY, revision=1):
                self.add(events)
        except (OSError, ValueError, Failure) as error:
            self.error = error

    def add(self, events):
        by_revision = {}
        for event in events:
            by_revision.setdefault(event[1].modified, []).append(event)
        for revision, changes in by_revision.items():
            self.law.add(revision, changes)
            self.seen = revision

    def await_revision(self, revision):
        wait_for(lambda: self.error or self.seen >= revision, "the history does not go on")
        if self.error:
            raise Failure("ConnectionLost", f"the history ends: {self.error}")


class Faults:
    def __init__(self, local, seed):
        self.local, self.chance = local, random.Random(seed)
        self.a, self.b = local.hosts
        self.checks = cell_local.Checks()
        self.members = local.etcd
        self.history = History(self.members)
        self.history.start()
        self.reply = b""

    # What clients see.

    def ask(self, host, key):
        """The status of a short chat. NO_ANSWER: a text that had begun waits for its cell."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            self.reply = cell_local.reply_once(host, key, ASK_TIMEOUT_S)
            return cell_local.status_of(self.reply)
        return NO_ANSWER

    def new_key(self):
        code, text = self.local.brokerctl("keys", "create", "--tenant", TENANT, "-o", "json")
        if code != 0:
            raise Failure("SystemError", f"no key: {text}")
        key = json.loads(text)
        return key["key"], key["api_key"]

    def expect(self, host, key, statuses, text):
        """Waits until the host answers one of the statuses."""
        seen = []

        def is_seen():
            seen.append(self.ask(host, key))
            return seen[-1] in statuses
        try:
            wait_for(is_seen, text)
        except Failure:
            pass
        self.checks.check(seen[-1] in statuses, text, f"{seen[-5:]} {self.reply[-200:]} "
                          f"{host.agent.log()[-400:]}")

    def expect_stopped(self, host, key, text):
        """It serves nothing any more, until what is broken is mended."""
        self.expect(host, key, STOPPED, text)
        seen = [self.ask(host, key) for _ in range(3)]
        self.checks.check(all(status in STOPPED for status in seen), f"host {host.name} does not serve meanwhile", seen)

    def both_serve(self, key, after):
        for host in (self.a, self.b):
            self.expect(host, key, (200,), f"host {host.name} serves {after}")

    # Faults. Each ends with everything mended.

    def link_down(self, key):
        self.local.bridge.cut("a")
        self.expect_stopped(self.a, key, "a host whose link is down stops at its ceiling")
        self.expect(self.b, key, (200,), "the other host serves meanwhile")
        self.local.bridge.mend("a")
        self.both_serve(key, "after the link is up")

    def one_way_loss(self, key):
        self.local.bridge.swallow("b", self.members.addresses)
        self.expect_stopped(self.b, key, "a host that hears etcd and is not heard stops at its ceiling")
        self.local.bridge.restore("b", self.members.addresses)
        self.both_serve(key, "after its packets arrive again")

    def quorum_lost(self, key):
        self.local.bridge.cut("e1", "e2")
        time.sleep(TTL_MS / 2e3)
        statuses = [self.ask(host, key) for host in (self.a, self.b)]
        self.checks.check(statuses == [200, 200], "etcd without quorum for half a TTL disturbs nothing", statuses)
        for host in (self.a, self.b):
            self.expect_stopped(host, key, f"host {host.name} stops at its ceiling while there is no quorum")
        self.local.bridge.mend("e1", "e2")
        self.both_serve(key, "after the quorum is back")

    def leader_frozen(self, key):
        disk = self.members.disks[self.members.leader()]
        disk.freeze()
        try:
            time.sleep(TTL_MS / 1e3)
        finally:
            disk.thaw()
        self.both_serve(key, "after the file system of etcd's leader was frozen")

    def compacted_while_cut(self, key_id, key):
        """A host misses the mail of a revocation, and its changes are compacted before it is back."""
        self.local.bridge.cut("a")
        done = threading.Thread(target=self.local.brokerctl, args=("keys", "revoke", key_id, "--wait"))
        done.start()
        self.expect(self.b, key, (401,), "a host that is not cut off applies a revocation")
        client = etcd.Client(self.members.urls)
        revision = client.put(etcd.MARKER, "")
        self.history.await_revision(revision)
        client.call("/v3/kv/compaction", {"revision": revision})
        self.local.bridge.mend("a")
        done.join()
        self.expect(self.a, key, (401,), "a host applies a revocation whose changes were compacted meanwhile")

    def two_of_one_name(self, key):
        other = self.a.start_agent("a-twin", self.local.path("a-twin-state"))
        wait_for(lambda: "name in use" in other.log(), "the second machine of a name is not refused")
        self.checks.check("host joined" not in other.log(), "of two machines with one name the second does not join")
        other.end(signal.SIGKILL)
        self.both_serve(key, "after a second machine had its name")

    def state_restored(self, key):
        """A snapshot of a machine knows beats that later ones have replaced."""
        self.a.agent.end(signal.SIGTERM)
        old = self.local.path("a-old-state")
        shutil.copytree(self.a.state(), old)
        self.a.start_agent()
        resumed = self.a.agent
        wait_for(lambda: resumed.log().count("broker attached") >= 2, "the agent does not go on")
        time.sleep(TTL_MS / 1e3)  # some beats
        self.a.agent.end(signal.SIGKILL)
        shutil.rmtree(self.a.state())
        shutil.copytree(old, self.a.state())
        fenced = self.a.agent.log().count("host fenced")
        self.a.start_agent()
        wait_for(lambda: self.a.agent.log().count("host fenced") > fenced, "a restored state is not refused")
        self.checks.check(True, "a restored state directory ends its membership")
        self.both_serve(key, "after its state was restored")

    def process_stopped(self, key, name):
        process = getattr(self.a, name)
        process.signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.signal(signal.SIGCONT)
        self.both_serve(key, f"after the {name} of one was stopped")

    def process_killed(self, key, name):
        getattr(self.b, name).end(signal.SIGKILL)
        if name == "agent":
            self.b.start_agent()
        else:
            self.b.mend()
        self.both_serve(key, f"after the {name} of one was killed")

    def host_stopped(self, key):
        for process in self.a.processes():
            process.signal(signal.SIGSTOP)
        key_id, other = self.new_key()
        code, text = self.local.brokerctl("keys", "revoke", key_id, "--wait")
        self.checks.check(code == 0, "a revocation ends while a whole host is stopped", text)
        for process in self.a.processes():
            process.signal(signal.SIGCONT)
        self.expect(self.a, other, (401,), "the host that was stopped refuses the revoked key")
        self.both_serve(key, "after one of them was stopped")

    # The whole.

    def every_fault(self):
        _, key = self.new_key()
        self.both_serve(key, "at the beginning")
        self.link_down(key)
        self.one_way_loss(key)
        self.quorum_lost(key)
        self.leader_frozen(key)
        key_id, other = self.new_key()
        self.both_serve(other, "a second key")
        self.compacted_while_cut(key_id, other)
        self.two_of_one_name(key)
        self.state_restored(key)
        self.host_stopped(key)
        for name in ("agent", "broker", "worker"):
            self.process_killed(key, name)
        return key

    def random_faults(self, key, seconds):
        end = time.monotonic() + seconds
        kinds = [self.link_down, self.one_way_loss, self.quorum_lost, self.leader_frozen, self.two_of_one_name,
                 self.host_stopped]
        for name in ("agent", "broker", "worker"):
            kinds.append(lambda key, name=name: self.process_stopped(key, name))
            kinds.append(lambda key, name=name: self.process_killed(key, name))
        while time.monotonic() < end:
            self.chance.choice(kinds)(key)

    def judge(self):
        client = etcd.Client(self.members.urls)
        self.history.await_revision(client.put(etcd.MARKER, ""))
        seen = self.history.law
        self.checks.check(not seen.broken, f"the law held at each of {seen.revisions} revisions",
                          "; ".join(seen.broken[:3]))
        self.checks.check(seen.sums_checked > 20, "parts were judged", seen.sums_checked)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin_dir")
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    why = machines.refusal()
    if why:
        print(f"skipped: machines of a cell in network namespaces: {why}")
        return 77
    model = os.path.realpath(cell_local.MODEL)
    with machines.Bridge() as bridge, \
            machines.Machines(settings.bin_dir, model, 2, bridge, TTL_MS, SLACK_MS) as local:
        code, text = local.brokerctl("tenants", "admit", TENANT, "--max-concurrent", "8")
        if code != 0:
            raise Failure("SystemError", f"the tenant is not admitted: {text}")
        faults = Faults(local, settings.seed)
        key = faults.every_fault()
        faults.random_faults(key, settings.seconds)
        faults.judge()
        return 1 if faults.checks.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"partitions: {failure}", file=sys.stderr)
        sys.exit(1)
