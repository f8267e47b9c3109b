"""What QUICKSTART.md says about two hosts works as it is written: the second broker gets the key, both workers and the
gateway read the lines of their files, and a text survives the death of its host. Argument: the folder of the programs.
"""

import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/checks/hosts"), str(ROOT / "tests/checks/peer")]
import cell
import client

MODEL = ROOT / "tools/models/leasehold-stories-q8_0.gguf"
MOST_LINES = 10
TOKENS = 120
EVENTS_BEFORE_DEATH = 4
MACHINES = ("10.0.0.1:8080", "10.0.0.2:8080")
GATEWAY = "10.0.0.5"


def document_lines():
    """Commands, lines of a worker's file, and lines of the gateway's, without comments."""
    chapter = (ROOT / "tools/package/QUICKSTART.md").read_text().split("## 9. Two hosts", 1)[1]
    block = chapter.split("```")[1]
    commands, rest = block.split("# in /etc/leasehold/worker-demo.toml", 1)
    worker, gateway = rest.split("# in /etc/leasehold/gateway.toml", 1)
    found = [[line for line in part.split("\n")[1:] if line and not line.startswith("#")]
             for part in (commands, worker, gateway)]
    assert sum(map(len, found)) <= MOST_LINES, f"{sum(map(len, found))} lines"
    return found


class DocumentHost(cell.Host):
    """A host that is set up as the document says."""

    def __init__(self, hosts, name, http, lines):
        super().__init__(hosts, name, ())
        self.http, self.address, (self.commands, self.settings) = http, "http://" + http, lines

    def start_worker(self):
        cell.wait_for(lambda: self.broker.require_running() or self.control("status"), "the broker does not answer")
        script = "\n".join(self.commands).replace("brokerctl ", f"brokerctl --socket {self.socket()} ")
        environment = {**os.environ, "KEY": self.cell.key, "PATH": f"{self.cell.bin_dir}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=environment, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        assert self.cell.key not in done.stdout, "a key that its owner has is printed"
        file = self.cell.path(self.name + ".toml")
        pathlib.Path(file).write_text("\n".join(self.settings).replace(MACHINES[0], self.http)
                                      .replace(GATEWAY, "127.0.0.1") + "\n")
        self.worker = cell.Process(self.cell, self.name + "-worker", "leasehold-worker", "--config", file, "--broker",
                                   self.socket(), "--listen", self.cell.path(self.name + ".sock"), "--model",
                                   self.cell.model, "--name", self.name, "--host-name", self.name, "--threads", "1",
                                   "--slow-motion-us", "30")


def read(readers, gateway, model, on_begun):
    """The text, once `on_begun` was called with its first events."""
    answer = readers.open(gateway.address, gateway.cell.key, client.chat("greedy", 0, model, TOKENS))
    readers.run(lambda: len(answer.events) >= EVENTS_BEFORE_DEATH)
    on_begun(answer)
    readers.run()
    return answer


def main():
    commands, settings, gateway_lines = document_lines()
    with cell.Cell(sys.argv[1], str(MODEL)) as hosts:
        for name in "ab":
            hosts.hosts.append(DocumentHost(hosts, name, f"127.0.0.1:{cell.free_port()}", (commands, settings)))
        for step in ("start_broker", "start_worker", "await_ready"):
            for host in hosts.hosts:
                getattr(host, step)()
        file = hosts.path("gateway.toml")
        text = "\n".join(gateway_lines)
        for machine, host in zip(MACHINES, hosts.hosts):
            assert machine in text, f"the gateway's lines do not name {machine}"
            text = text.replace(machine, host.http)
        pathlib.Path(file).write_text(text + "\n")
        gateway = cell.Gateway(hosts, "gateway", [], hosts.path("gateway.http"), ("--config", file))
        hosts.gateways.append(gateway)
        gateway.start()
        gateway.await_ready()
        hosts.await_all_known()
        readers = client.Readers()
        model = cell.model_name(gateway.address, hosts.key)
        calm = read(readers, gateway, model, lambda _: None)
        seen = read(readers, gateway, model, lambda answer: hosts.host(answer.host()).worker.signal(signal.SIGKILL))
        assert gateway.moves(), "the text did not move"
        fault = client.fault_of(calm, seen)
        assert not fault, fault
    return 0


if __name__ == "__main__":
    sys.exit(main())
