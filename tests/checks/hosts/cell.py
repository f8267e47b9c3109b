"""Several hosts and gateways as processes on this machine: for the bench, the demo and the soak of the gateway.

A host is a broker with one worker. Hosts and gateways listen on Unix sockets in a temporary folder, so no port is
taken. Every host knows the same key. The end of a `with` block ends all processes. Needs Python 3.9 and no package.
"""

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peer"))
import separate_link
from peer import Failure

START_TIMEOUT_S = 60
POLL_S = 0.01
LOG_END_BYTES = 600
TENANT = "ann"
NAMES = "abcdefghij"
GIVEN_PORTS = set()  # by free_port
READY = re.compile(r"gateway ready address=(\S+)")
MOVE = re.compile(r"text moves .*from=(\S+) to=(\S+) .*x_request_id=(\S+)")


def wait_for(is_true, what, timeout_s=START_TIMEOUT_S):
    """Polls until `is_true()`."""
    deadline = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > deadline:
            raise Failure("TimedOut", f"{what} after {timeout_s} seconds")
        time.sleep(POLL_S)


def connect(address, timeout_s=None):
    """`address`: unix:/PATH, or HOST:PORT with or without http://."""
    if address.startswith("unix:"):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(timeout_s)
        peer.connect(address[len("unix:"):])
        return peer
    host, port = address[len("http://"):].rsplit(":", 1) if address.startswith("http://") else address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout_s)


def free_port():
    """A port of 127.0.0.1 that was free a moment ago. Each call returns another one."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        if port not in GIVEN_PORTS:
            GIVEN_PORTS.add(port)
            return port


def answers(address, target="/health"):
    """Whether a program answers the target with status 200."""
    with contextlib.suppress(OSError), connect(address, 5) as peer:
        peer.sendall(f"GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return b" 200 " in peer.recv(64)
    return False


def read_all(peer):
    pieces = []
    while piece := peer.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


class Process:
    """A program of the tree, with a log to which each of its lives appends."""

    def __init__(self, cell, log_name, program, *arguments, prefix=()):
        self.is_killed = False
        self.log_path = cell.path(log_name + ".log")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*prefix, os.path.join(cell.bin_dir, program), *arguments],
                                            stdout=log, stderr=log)

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)
        self.is_killed = self.is_killed or number == signal.SIGKILL

    def end(self, number):
        """Sends the signal and waits until the process is gone."""
        self.signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(START_TIMEOUT_S)

    def require_running(self):
        if self.process.poll() is not None:
            raise Failure("ConnectionLost", f"{os.path.basename(self.log_path)}: the program ended with "
                          f"{self.process.returncode}; its log ends: {self.log()[-LOG_END_BYTES:]}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def cpu_s(self):
        # The id of a process's CPU clock, as clock_getcpuclockid(3) makes it.
        return time.clock_gettime((~self.pid << 3) | 2)

    def status_kib(self, field):
        """A line of /proc/PID/status, such as VmHWM."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))


class Host:
    """A broker and a worker. Killed or drained, it starts again at the same address."""

    def __init__(self, cell, name, worker_options):
        self.cell, self.name = cell, name
        self.worker_options = ["--http-trusted-proxy", f"uid:{os.getuid()}", *worker_options]
        self.http = cell.path(name + ".http")
        self.address = "unix:" + self.http
        self.prefix = ()  # words before the worker's command
        self.broker = self.worker = None

    def start_broker(self):
        self.broker = Process(self.cell, self.name + "-broker", "leasehold-broker", "--socket", self.socket(),
                              "--capacity", "64MiB")

    def start_worker(self):
        """Admits the tenant and its key if the broker is new."""
        wait_for(lambda: self.broker.require_running() or self.control("status"), "the broker does not answer")
        self.control("tenants", "admit", TENANT, "--max-concurrent", "64", "--max-blocks", "2000", "--ttl-ms", "600000")
        self.control("keys", "create", "--tenant", TENANT, "--key-file", self.cell.key_path)
        self.worker = Process(self.cell, self.name + "-worker", "leasehold-worker", "--broker", self.socket(),
                              "--listen", self.cell.path(self.name + ".sock"), "--name", self.name, "--model",
                              self.cell.model, "--http", self.http, "--host-name", self.name, "--threads", "1",
                              *self.worker_options, prefix=self.prefix)

    def is_ready(self):
        return answers(self.address)

    def await_ready(self):
        wait_for(lambda: self.worker.require_running() or self.is_ready(), f"host {self.name} is not ready")

    def socket(self):
        return self.cell.path(self.name + "-broker.sock")

    def control(self, *arguments):
        """Whether brokerctl succeeds."""
        command = [os.path.join(self.cell.bin_dir, "brokerctl"), "--socket", self.socket(), *arguments]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def processes(self):
        return [one for one in (self.worker, self.broker) if one and one.process.poll() is None]

    # What can happen to it.

    def kill_worker(self):
        self.worker.signal(signal.SIGKILL)

    def kill(self):
        for process in self.processes():
            process.signal(signal.SIGKILL)

    def stop(self):
        for process in self.processes():
            process.signal(signal.SIGSTOP)

    def drain(self):
        self.worker.signal(signal.SIGTERM)

    def mend(self):
        """Makes it ready again, whatever happened to it."""
        for process in (self.worker, self.broker):
            if process.is_killed:
                process.process.wait(START_TIMEOUT_S)
        for process in self.processes():
            process.signal(signal.SIGCONT)
        if self.worker.process.poll() is None and not self.is_ready():
            self.worker.end(signal.SIGKILL)  # it drains
        if self.broker.process.poll() is not None:
            self.start_broker()
        if self.worker.process.poll() is not None:
            self.start_worker()
        self.await_ready()

    def end(self):
        for process in self.processes():
            process.signal(signal.SIGCONT)
            process.signal(signal.SIGKILL)
            process.process.wait()


class Gateway:
    """`listen`: a Unix socket's path or HOST:PORT, whose port may be 0; then `address` is known once it is ready."""

    def __init__(self, cell, name, hosts, listen, options=()):
        self.cell, self.name, self.options = cell, name, options
        self.listen, self.hosts = listen, hosts
        self.address = self.process = None

    def start(self):
        self.process = Process(self.cell, self.name, "leasehold-gateway", "--listen", self.listen,
                               *self.cell.name_hosts(self.hosts), *self.options)

    def await_ready(self):
        """Waits until it answers and one host is ready."""
        wait_for(lambda: self.process.require_running() or READY.search(self.process.log()), "the gateway is not ready")
        address = READY.findall(self.process.log())[-1]
        self.address = "unix:" + address if address.startswith("/") else address
        wait_for(lambda: self.process.require_running() or answers(self.address), "no host of the gateway is ready")

    def knows(self, host, state):
        """Whether its log names this state last."""
        lines = [line for line in self.process.log().splitlines()
                 if f"host={host.address} " in line and ("host changed" in line or "host lost" in line)]
        return bool(lines) and f"state={state}" in lines[-1]

    def moves(self):
        """(X-Request-Id, address of the old host, address of the new one) of each move in its log."""
        return [(found[3], found[1], found[2]) for found in MOVE.finditer(self.process.log())]

    def end(self):
        if self.process and self.process.process.poll() is None:
            self.process.end(signal.SIGKILL)


class Cell:
    """Hosts and gateways. `with Cell(bin_dir, model) as cell: cell.add_hosts(5)`."""

    def __init__(self, bin_dir, model):
        self.bin_dir, self.model = bin_dir, model
        self.hosts, self.gateways = [], []
        self.folder = None

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that all processes end
        self.folder = tempfile.TemporaryDirectory(prefix="leasehold-hosts-")
        self.key = "lh-" + secrets.token_hex(32)
        self.key_path = self.path("key")
        with open(os.open(self.key_path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(self.key + "\n")
        return self

    def __exit__(self, *error):
        for program in [*self.gateways, *self.hosts]:
            program.end()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def add_hosts(self, count, *worker_options):
        """Starts them at the same time and waits until each is ready."""
        added = [Host(self, NAMES[len(self.hosts) + i], worker_options) for i in range(count)]
        self.hosts += added
        for host in added:
            host.start_broker()
        for host in added:
            host.start_worker()
        for host in added:
            host.await_ready()
        return added

    def add_far_host(self, link, *worker_options):
        """A host behind a separate link."""
        host = Host(self, NAMES[len(self.hosts)], ("--http-any-address", "--http-trusted-proxy", separate_link.NEAR,
                                                   *worker_options))
        host.http = separate_link.FAR + ":8000"
        host.address = "http://" + host.http
        host.prefix = link.prefix
        self.hosts.append(host)
        host.start_broker()
        host.start_worker()
        host.await_ready()

    def add_gateway(self, *options, listen=None):
        """A gateway before the hosts that there are. Waits until it has seen each of them ready."""
        name = f"gateway{len(self.gateways) + 1}"
        addresses = [host.address for host in self.hosts]
        gateway = Gateway(self, name, addresses, listen or self.path(name + ".http"), options)
        self.gateways.append(gateway)
        gateway.start()
        gateway.await_ready()
        self.await_all_known()
        return gateway

    def name_hosts(self, addresses):
        """The options with which a gateway has these hosts."""
        return [word for address in addresses for word in ("--hosts", address)]

    def await_all_known(self, skip=()):
        """Waits until each gateway has seen each host ready, but for those to skip."""
        for gateway in self.gateways:
            for host in self.hosts:
                if gateway not in skip and host not in skip:
                    wait_for(lambda host=host, gateway=gateway: gateway.knows(host, "ready"),
                             f"{gateway.name} does not see host {host.name}")

    def host(self, name):
        return next(host for host in self.hosts if host.name == name)

    def mend(self):
        """Makes all hosts ready again, for all gateways too."""
        for host in self.hosts:
            host.mend()
        self.await_all_known()


def model_name(address, key):
    """The name of the model that a program serves first."""
    with connect(address, START_TIMEOUT_S) as peer:
        peer.sendall(f"GET /v1/models HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        answer = read_all(peer)
    return json.loads(answer.partition(b"\r\n\r\n")[2])["data"][0]["id"]
