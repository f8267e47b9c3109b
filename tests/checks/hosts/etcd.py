"""An etcd of three members on loopback addresses, and a client of it: for cells on this machine.

Keys and values are text. A client serves one thread. Needs Debian's etcd-server, Python 3.9 and no package.
"""

import base64
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess

from cell import free_port, wait_for
from peer import Failure

MEMBERS = 3
CALL_TIMEOUT_S = 2.0
MARKER = "/leasehold-check/marker"
EVERY_KEY = (b"\0", b"\0")
# What http.client raises when a member is away or hangs.
CALL_ERRORS = (OSError, http.client.HTTPException, ValueError)


def _coded(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def _text(coded):
    return base64.b64decode(coded).decode()


def prefix_end(prefix):
    """The end of the range of all keys that begin with the prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


class Entry:
    """A key and its value, as of one revision."""

    def __init__(self, coded):
        self.key, self.value = _text(coded["key"]), _text(coded.get("value", ""))
        self.created, self.modified = int(coded.get("create_revision", 0)), int(coded["mod_revision"])
        self.version = int(coded.get("version", 0))


def modified_at(key, revision):
    """The comparison that the key has this revision. 0: it does not exist."""
    return {"key": _coded(key), "target": "MOD", "result": "EQUAL", "mod_revision": revision}


def created_at(key, revision):
    return {"key": _coded(key), "target": "CREATE", "result": "EQUAL", "create_revision": revision}


def put_of(key, value):
    return {"request_put": {"key": _coded(key), "value": _coded(value)}}


def delete_of(key):
    return {"request_delete_range": {"key": _coded(key)}}


class Client:
    """Calls a member over one connection, and the next member when that one does not answer."""

    def __init__(self, urls, timeout_s=CALL_TIMEOUT_S):
        self.addresses = [url[len("http://"):] for url in urls]
        self.timeout_s = timeout_s
        self.at = 0
        self.connection = None

    def call(self, path, body):
        """The answer. Raises one of CALL_ERRORS when this member does not answer; the next call asks another one."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.addresses[self.at], timeout=self.timeout_s)
            self.connection.request("POST", path, json.dumps(body))
            reply = self.connection.getresponse()
            answer = json.loads(reply.read())
        except CALL_ERRORS:
            self.close()
            self.at = (self.at + 1) % len(self.addresses)
            raise
        if reply.status != 200:
            raise OSError(f"etcd answers {path} with {answer}")
        return answer

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def list(self, first, end=None):
        """(revision of etcd, entries). Without an end: one key."""
        body = {"key": _coded(first)}
        if end:
            body["range_end"] = _coded(end)
        answer = self.call("/v3/kv/range", body)
        return int(answer["header"]["revision"]), [Entry(one) for one in answer.get("kvs", [])]

    def list_prefix(self, prefix):
        return self.list(prefix, prefix_end(prefix))

    def put(self, key, value):
        """The revision of the write."""
        answer = self.call("/v3/kv/put", {"key": _coded(key), "value": _coded(value)})
        return int(answer["header"]["revision"])

    def transact(self, conditions, operations):
        """(whether the conditions held, revision)."""
        answer = self.call("/v3/kv/txn", {"compare": conditions, "success": operations})
        return answer.get("succeeded", False), int(answer["header"]["revision"])

    def size_bytes(self):
        """(size of the database's file, bytes in use), of one member."""
        answer = self.call("/v3/maintenance/status", {})
        return int(answer["dbSize"]), int(answer["dbSizeInUse"])

    def watch(self, first, end, revision=0):
        """Yields lists of (is deleted, Entry); an empty one once the watch stands. Never ends by itself."""
        connection = http.client.HTTPConnection(self.addresses[self.at])
        with contextlib.closing(connection):
            connection.request("POST", "/v3/watch", json.dumps({"create_request": {
                "key": _coded(first), "range_end": _coded(end), "start_revision": revision}}))
            reply = connection.getresponse()
            while line := reply.readline():
                result = json.loads(line).get("result")
                if result is None or result.get("canceled"):
                    raise Failure("ConnectionLost", f"etcd ends the watch with {line.decode().strip()}")
                yield [(event.get("type") == "DELETE", Entry(event["kv"])) for event in result.get("events", [])]

    def history(self):
        """Yields (revision, [(is deleted, Entry)]) for every revision up to now. Writes MARKER, to know the end."""
        last = self.put(MARKER, "")
        for events in self.watch(*EVERY_KEY, revision=1):
            by_revision = {}
            for event in events:
                by_revision.setdefault(event[1].modified, []).append(event)
            for revision, changes in by_revision.items():
                if revision > last:
                    return
                yield revision, changes
                if revision == last:
                    return


class Etcd:
    """Three members. `folder` has their data and logs. Elections are as slow as a loaded machine needs. Clients may
    also use the ports of `urls` at `address`, when there is one."""

    def __init__(self, folder, address=None):
        self.folder = folder
        ports = [(free_port(), free_port()) for _ in range(MEMBERS)]
        self.urls, self.other_urls = ([f"http://{host}:{client}" for client, _ in ports] if host else []
                                      for host in ("127.0.0.1", address))
        peers = [f"http://127.0.0.1:{peer}" for _, peer in ports]
        cluster = ",".join(f"e{i}={peer}" for i, peer in enumerate(peers))
        self.members = []
        for i, (url, peer) in enumerate(zip(self.urls, peers)):
            listened = ",".join([url, *self.other_urls[i:i + 1]])
            with open(os.path.join(folder, f"e{i}.log"), "wb") as log:
                self.members.append(subprocess.Popen(
                    [shutil.which("etcd"), "--name", f"e{i}", "--data-dir", os.path.join(folder, f"e{i}"),
                     "--unsafe-no-fsync", "--heartbeat-interval", "300", "--election-timeout", "3000",
                     "--listen-client-urls", listened, "--advertise-client-urls", url,
                     "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster],
                    stdout=log, stderr=log))

    def client(self, timeout_s=CALL_TIMEOUT_S):
        return Client(self.urls, timeout_s)

    def await_put(self, key, value):
        """Writes the key once etcd answers."""
        client = self.client()

        def is_written():
            with contextlib.suppress(*CALL_ERRORS):
                return bool(client.put(key, json.dumps(value)))
            return False
        wait_for(is_written, "etcd does not answer")
        client.close()

    def peak_mib(self):
        """The greatest resident memory that a member has had."""
        peaks = []
        for member in self.members:
            with open(f"/proc/{member.pid}/status", encoding="utf-8") as status:
                peaks += [int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:")]
        return max(peaks)

    # What can happen to it.

    def lose_quorum(self, number=0):
        """Stops two members: other ones for each number up to MEMBERS."""
        for i in (1, 2):
            self.members[(number + i) % MEMBERS].send_signal(signal.SIGSTOP)

    def restore_quorum(self):
        for member in self.members:
            member.send_signal(signal.SIGCONT)

    def end(self):
        for member in self.members:
            member.kill()
            member.wait()
