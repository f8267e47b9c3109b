"""A cell on this machine: hosts with a broker, a worker and an agent each, gateways, and an etcd of three members.

    python3 tests/checks/hosts/cell_local.py BIN_DIR N [--check]

`tools/cell-local` builds the programs first. Without --check it prints commands to try, and runs until Ctrl-C. With
--check it runs them, and ends with a line per check; exit code 1 when one fails, 77 without etcd. Needs Python 3.9.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import cell
import etcd
from cell import Process, connect, free_port, wait_for
from peer import Failure

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/models/leasehold-stories-q8_0.gguf")
CELL = "local"
GATEWAYS = 2
TTL_MS = 10000
SLACK_MS = 500
TENANT = "ann"


class Host(cell.Host):
    """A broker and a worker without a tenant of its own, and an agent."""

    def __init__(self, local, name, *worker_options):
        port = free_port()
        super().__init__(local, name, ("--cell-socket", local.path(name + "-agent.sock"), "--http-idle-ttl-ms", "200",
                                       "--http-trusted-proxy", "127.0.0.1", *worker_options))
        self.http = f"127.0.0.1:{port}"
        self.address = "http://" + self.http
        self.agent, self.agent_prefix, self.agent_options = None, (), ()

    def start_worker(self):
        wait_for(lambda: self.broker.require_running() or self.control("status"), "the broker does not answer")
        self.worker = Process(self.cell, self.name + "-worker", "leasehold-worker", "--broker", self.socket(),
                              "--listen", self.cell.path(self.name + ".sock"), "--name", self.name, "--model",
                              self.cell.model, "--http", self.http, "--host-name", self.name, "--threads", "1",
                              *self.worker_options)
        self.agent = Process(self.cell, self.name + "-agent", "leasehold-cell", "--config", self.cell.config,
                             "--host", self.name, "--broker", self.socket(), "--listen",
                             self.cell.path(self.name + "-agent.sock"), "--door", self.address, "--state-dir",
                             self.cell.path(self.name + "-state"), *self.agent_options, prefix=self.agent_prefix)

    def await_ready(self):
        super().await_ready()
        wait_for(lambda: self.agent.require_running() or "host joined" in self.agent.log(),
                 f"host {self.name} does not join")

    def processes(self):
        return [one for one in (self.worker, self.broker, self.agent) if one and one.process.poll() is None]


class LocalCell(cell.Cell):
    """`with LocalCell(bin_dir, model, count) as local:` starts everything and waits until it is ready."""

    more_config = ""  # lines of cell.toml

    def __init__(self, bin_dir, model, count, ttl_ms=TTL_MS, slack_ms=SLACK_MS):
        super().__init__(bin_dir, model)
        self.count, self.ttl_ms, self.slack_ms = count, ttl_ms, slack_ms
        self.etcd = self.config = None

    def __enter__(self):
        super().__enter__()
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error):
        super().__exit__(*error)
        if self.etcd:
            self.etcd.end()
            self.folder.cleanup()  # members write until they have ended

    def start(self):
        self.etcd = self.new_etcd()
        self.etcd.await_put(f"/leasehold/{CELL}/config", {"version": 1, "ttl_ms": self.ttl_ms,
                                                          "slack_ms": self.slack_ms})
        self.config = self.path("cell.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"etcd = {json.dumps(self.etcd.urls)}\ncell = \"{CELL}\"\n{self.more_config}")
        for i in range(self.count):
            self.hosts.append(self.new_host(cell.NAMES[i]))
        for host in self.hosts:
            host.start_broker()
        for host in self.hosts:
            host.start_worker()
        for host in self.hosts:
            host.await_ready()

    def new_etcd(self):
        return etcd.Etcd(self.folder.name)

    def new_host(self, name):
        return Host(self, name)

    def name_hosts(self, addresses):
        """The cell names them."""
        return ["--cell", self.config]

    def add_gateways(self):
        for _ in range(GATEWAYS):
            self.add_gateway(listen="127.0.0.1:0")

    def brokerctl(self, *words):
        """Its exit code and output."""
        command = [os.path.join(self.bin_dir, "brokerctl"), "cell", "--config", self.config, *words]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        return done.returncode, done.stdout + done.stderr


def ask(host, key):
    """The status with which a host or a gateway answers a short chat. A slow etcd is waited for, as clients do."""
    deadline = time.monotonic() + cell.START_TIMEOUT_S
    while (status := ask_once(host, key)) in (429, 503) and time.monotonic() < deadline:
        time.sleep(0.1)
    return status


def ask_once(host, key):
    return status_of(reply_once(host, key))


def status_of(reply):
    return int(reply.split(b" ", 2)[1])


def reply_once(host, key, timeout_s=60):
    """What the host sends for a short chat."""
    body = json.dumps({"model": "Leasehold Stories", "messages": [{"role": "user", "content": "Hi"}],
                       "max_tokens": 8, "ignore_eos": True})
    head = (f"POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    with connect(host.address, timeout_s) as peer:
        peer.sendall((head + body).encode())
        return cell.read_all(peer)


def show(local):
    control = f"{os.path.join(local.bin_dir, 'brokerctl')} cell --config {local.config}"
    last = local.hosts[-1]
    pids = " ".join(str(process.pid) for process in last.processes())
    gateways = " and ".join(f"http://{gateway.address}" for gateway in local.gateways)
    print(f"""A cell of {local.count} hosts with a TTL of {TTL_MS // 1000} s runs, with gateways at
{gateways}. Ctrl-C ends it. In another terminal:

  CELL="{control}"
  $CELL hosts
  $CELL tenants admit {TENANT} --max-concurrent 8
  $CELL keys create --tenant {TENANT}          # KEY below is the key that it shows, ID its first column
  curl -s {last.address}/v1/chat/completions -H "Authorization: Bearer KEY" \\
    -d '{{"model": "Leasehold Stories", "messages": [{{"role": "user", "content": "Hi"}}], "max_tokens": 40}}'   # host {last.name} takes a part
  curl -s http://{local.gateways[0].address}/v1/models -H "Authorization: Bearer KEY"   # by a gateway
  $CELL ledger {TENANT}                        # which host has which part, until 10 s after its last request
  kill -STOP {pids}          # freezes host {last.name}
  $CELL keys revoke ID --wait              # host by host: applied, or why it can serve no more
  kill -CONT {pids}          # {last.name} finds that it was expired, and joins again
""", flush=True)
    while True:
        time.sleep(3600)


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, is_true, text, detail=""):
        print(("ok    " if is_true else "FAIL  ") + text + ("" if is_true else f": {detail}"), flush=True)
        self.failed += not is_true


def run_checks(local):
    checks = Checks()
    code, text = local.brokerctl("tenants", "admit", TENANT, "--max-concurrent", "8")
    checks.check(code == 0, "a tenant is admitted to the cell", text)
    code, text = local.brokerctl("keys", "create", "--tenant", TENANT, "-o", "json")
    key = json.loads(text) if code == 0 else {"key": "", "api_key": ""}
    checks.check(code == 0, "a key is created for it", text)
    for host in local.hosts:
        status = ask(host, key["api_key"])
        checks.check(status == 200, f"host {host.name} serves the key", f"{status} {host.agent.log()[-600:]}")
    for gateway in local.gateways:
        status = ask(gateway, key["api_key"])
        checks.check(status == 200, f"{gateway.name} serves the key", f"{status} {gateway.process.log()[-600:]}")
    frozen = local.hosts[-1]
    frozen.stop()
    begin = time.monotonic()
    code, text = local.brokerctl("keys", "revoke", key["key"], "--wait")
    took = time.monotonic() - begin
    checks.check(code == 0, "the key is revoked while one host is frozen", text)
    print("".join(f"      {line}\n" for line in text.splitlines()), end="")
    for host in local.hosts[:-1]:
        checks.check("applied" in text, f"host {host.name} has applied it", text)
        status = ask(host, key["api_key"])
        checks.check(status == 401, f"host {host.name} refuses the key", status)
    checks.check("expired" in text, f"host {frozen.name} was expired, {took:.1f} s after the command", text)
    for gateway in local.gateways:
        wait_for(lambda gateway=gateway: f"host left its cell host={frozen.address}" in gateway.process.log(),
                 f"{gateway.name} does not leave the frozen host")
        status = ask(gateway, key["api_key"])
        checks.check(status == 401, f"{gateway.name} has left the frozen host, and refuses the key", status)
    for process in frozen.processes():
        process.signal(signal.SIGCONT)
    wait_for(lambda: "host fenced" in frozen.agent.log(), "the frozen host does not see its end")
    wait_for(lambda: frozen.agent.log().count("host joined") == 2, "the frozen host does not join again")
    status = ask(frozen, key["api_key"])
    checks.check(status == 401, f"host {frozen.name} joins again and refuses the key", status)
    local.await_all_known()
    checks.check(True, "every gateway uses it again")
    code, text = local.brokerctl("doctor")
    checks.check(code == 0, "every record of the cell is in order", text)
    return checks.failed


def main():
    bin_dir, count = sys.argv[1], int(sys.argv[2])
    if shutil.which("etcd") is None:
        print("cell-local: etcd is not installed; run apt-get install etcd-server", file=sys.stderr)
        return 77
    with LocalCell(bin_dir, os.path.realpath(MODEL), count) as local:
        local.add_gateways()
        if "--check" not in sys.argv[3:]:
            show(local)
        return 1 if run_checks(local) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"cell-local: {failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
