"""A network namespace of its own, for a host whose link can go down. Needs the program `ip` and the right to use it."""

import os
import subprocess

from peer import Failure

NEAR, FAR = "10.213.78.1", "10.213.78.2"
# What cuts the link, or one direction of it, and what mends it.
CUTS = {"link down": ("down", "up"), "answers lost": ("lose_answers", "restore_answers"),
        "requests lost": ("lose_requests", "restore_requests")}


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


class SeparateLink:
    """`refused` says why there is none. The end of a `with` block removes it."""

    def __init__(self):
        self.namespace = f"leasehold-bench-{os.getpid()}"
        self.near = f"lhb{os.getpid() % 1000000}"
        self.prefix = ("ip", "netns", "exec", self.namespace)
        self.refused = None

    def __enter__(self):
        for words in (["netns", "add", self.namespace],
                      ["link", "add", self.near, "type", "veth", "peer", "name", "eth0", "netns", self.namespace],
                      ["addr", "add", NEAR + "/30", "dev", self.near], ["link", "set", self.near, "up"],
                      ["-n", self.namespace, "addr", "add", FAR + "/30", "dev", "eth0"],
                      ["-n", self.namespace, "link", "set", "eth0", "up"]):
            try:
                done = ip(*words)
            except FileNotFoundError:
                self.refused = "the program ip is missing"
                return self
            if done.returncode != 0:
                self.refused = done.stderr.strip() or "ip " + " ".join(words)
                break
        return self

    def __exit__(self, *error):
        if self.refused != "the program ip is missing":
            ip("link", "del", self.near)
            ip("netns", "del", self.namespace)

    def do(self, *words):
        done = ip(*words)
        if done.returncode != 0:
            raise Failure("SystemError", f"ip {' '.join(words)}: {done.stderr.strip()}")

    def down(self):
        self.do("link", "set", self.near, "down")

    def up(self):
        self.do("link", "set", self.near, "up")

    def lose_answers(self):
        """What the host sends disappears, and what is sent to it arrives."""
        self.do("-n", self.namespace, "route", "add", "blackhole", NEAR + "/32")

    def restore_answers(self):
        self.do("-n", self.namespace, "route", "del", "blackhole", NEAR + "/32")

    def lose_requests(self):
        """What is sent to the host disappears, and what it sends arrives."""
        self.do("-n", self.namespace, "route", "del", "local", FAR, "dev", "eth0", "table", "local")
        self.do("-n", self.namespace, "route", "add", "blackhole", FAR + "/32", "table", "local")

    def restore_requests(self):
        self.do("-n", self.namespace, "route", "del", "blackhole", FAR + "/32", "table", "local")
        self.do("-n", self.namespace, "route", "add", "local", FAR, "dev", "eth0", "table", "local", "src", FAR)
