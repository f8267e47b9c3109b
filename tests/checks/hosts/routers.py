"""leasehold-gateway beside other routers, in front of the same modelled hosts: what an event costs, and what becomes of
streams whose host dies. The other routers are programs of others; one that is missing is left out with one line."""

import contextlib
import json
import os
import resource
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

import cell
import client
import modelled_host

HERE = os.path.dirname(os.path.abspath(__file__))
KEY = "any"
START_TIMEOUT_S = 30
RUN_TIMEOUT_S = 120
EVENTS_BEFORE_DEATH = 5


class ModelledHosts:
    """Processes on ports that the system chose."""

    def __init__(self, folder, count, pause_ms):
        self.folder, self.pause_ms = folder, pause_ms
        self.processes, self.addresses = [], []
        for i in range(count):
            self.start(i, "127.0.0.1:0")

    def start(self, i, address):
        process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "modelled_host.py"), f"modelled{i}",
                                    str(self.pause_ms), address], stdout=subprocess.PIPE)
        self.processes[i:i + 1] = [process]
        self.addresses[i:i + 1] = ["http://" + process.stdout.readline().decode().strip()]

    def kill(self, i):
        self.processes[i].kill()
        self.processes[i].wait()
        self.processes[i].stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for i in range(len(self.processes)):
            self.kill(i)


def gateway_command(settings, hosts, port, _):
    named = [word for address in hosts for word in ("--hosts", address)]
    return [os.path.join(settings.bin_dir, "leasehold-gateway"), "--listen", f"127.0.0.1:{port}", *named]


def vllm_command(settings, hosts, port, _):
    return [os.path.join(settings.peers, "vllm-router"), "--worker-urls", *hosts, "--host", "127.0.0.1", "--port",
            str(port), "--prometheus-port", str(cell.free_port()), "--policy", "round_robin", "--log-level", "error"]


def sglang_command(settings, hosts, port, _):
    return [os.path.join(settings.peers, "sglang-router"), "launch", "--worker-urls", *hosts, "--host", "127.0.0.1",
            "--port", str(port), "--prometheus-port", str(cell.free_port()), "--policy", "round_robin", "--log-level",
            "error"]


def nginx_command(_, hosts, port, folder):
    """One process that passes each event on at once."""
    servers = " ".join(f"server {address[len('http://'):]};" for address in hosts)
    text = f"""
daemon off; master_process off; error_log stderr error; pid {folder}/nginx.pid;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream hosts {{ {servers} keepalive 256; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://hosts; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return [shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"), "-c", path, "-p", folder]


def known_routers(settings):
    """The command of each router of this machine by name, and a line for each that is missing."""
    routers, missing = {"gateway": gateway_command}, []
    for program, command in (("vllm-router", vllm_command), ("sglang-router", sglang_command)):
        if settings.peers and os.access(os.path.join(settings.peers, program), os.X_OK):
            routers[program.replace("-", "_")] = command
        else:
            missing.append(f"skipped: {program} is not in {settings.peers or 'a folder that --peers names'}")
    if shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
        routers["nginx"] = nginx_command
    else:
        missing.append("skipped: nginx is not installed")
    return routers, missing


class Router:
    def __init__(self, name, command, settings, hosts, folder):
        self.address = f"127.0.0.1:{cell.free_port()}"
        log_path = os.path.join(folder, name + ".log")
        with open(log_path, "ab") as log:
            self.process = subprocess.Popen(command(settings, hosts, self.address.rsplit(":", 1)[1], folder),
                                            stdout=log, stderr=log, start_new_session=True)
        try:
            cell.wait_for(self.answers, f"{name} does not answer", START_TIMEOUT_S)
        except cell.Failure as failure:
            self.__exit__()
            with open(log_path, encoding="utf-8", errors="replace") as log:
                raise cell.Failure("TimedOut", f"{failure}; its log ends: {log.read()[-600:]}") from failure

    def answers(self):
        """Whether it passes a text on."""
        readers = client.Readers()
        with contextlib.suppress(OSError):
            answer = readers.open(self.address, KEY, body_of(1))
            readers.run(timeout_s=5)
            return answer.status == 200 and answer.is_whole()
        return False

    def cpu_s(self):
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def peak_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def body_of(events, number=0):
    return {"model": modelled_host.MODEL, "messages": [{"role": "user", "content": f"Story {number}"}],
            "max_tokens": events, "stream": True}


class Counter:
    """A client that counts events and keeps nothing of them, so that it costs little beside the router. It speaks
    HTTP/1.0, since the chunks of some routers begin in the middle of an event."""

    def __init__(self, address, body):
        text = json.dumps(body)
        self.peer = cell.connect(address)
        self.peer.sendall((f"POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
                           f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
                           f"{text}").encode())
        self.peer.setblocking(False)
        self.events, self.is_whole, self.end = 0, False, b""

    def read(self):
        """False at the end of the connection."""
        try:
            piece = self.peer.recv(1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            piece = b""
        joined = self.end + piece
        self.events += joined.count(b"data: {") - self.end.count(b"data: {")
        self.is_whole = self.is_whole or b"data: [DONE]" in joined
        self.end = joined[-16:]
        return bool(piece)


def count(counters, until=None):
    """Reads all until each connection ends, or `until()` holds."""
    selector = selectors.DefaultSelector()
    for one in counters:
        if one.peer.fileno() >= 0:
            selector.register(one.peer, selectors.EVENT_READ, one)
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while selector.get_map() and not (until and until()) and time.monotonic() < deadline:
        for key, _ in selector.select(0.1):
            if not key.data.read():
                selector.unregister(key.fileobj)
                key.fileobj.close()
    selector.close()


def run_streams(router, streams, events):
    """(microseconds of the router's CPU time per event, events per second) of streams that all end whole."""
    before_s, begin = router.cpu_s(), time.monotonic()
    counters = [Counter(router.address, body_of(events, i)) for i in range(streams)]
    count(counters)
    read = sum(one.events for one in counters)
    if read != streams * events or not all(one.is_whole for one in counters):
        raise cell.Failure("MalformedMessage", f"{read} of {streams * events} events came through {router.address}")
    return 1e6 * (router.cpu_s() - before_s) / read, read / (time.monotonic() - begin)


def cut_streams(router, hosts, streams, events):
    """How many of these streams do not end whole when one of two hosts is killed."""
    counters = [Counter(router.address, body_of(events, i)) for i in range(streams)]
    count(counters, lambda: all(one.events >= EVENTS_BEFORE_DEATH for one in counters))
    hosts.kill(0)
    count(counters)
    hosts.start(0, hosts.addresses[0][len("http://"):])
    return sum(not one.is_whole or one.events != events for one in counters)


def measure_costs(settings, routers, folder, report):
    """Rounds in turn, so that the load of the machine is the same for all. Ratios are those of the same round."""
    for form, pause_ms, streams, events in (("paced", 20, settings.streams, settings.events),
                                            ("full", 0, settings.streams, 4 * settings.events)):
        with ModelledHosts(folder, 2, pause_ms) as hosts, contextlib.ExitStack() as stack:
            running = {name: stack.enter_context(Router(name, command, settings, hosts.addresses, folder))
                       for name, command in routers.items()}
            rounds = {name: [] for name in running}
            for _ in range(2 * settings.rounds + 1):
                for name, router in running.items():
                    rounds[name].append(run_streams(router, streams, events)[0])
            for name, costs in rounds.items():
                figures = report.setdefault(name, {})
                cost = statistics.median(costs)
                figures[f"{form}_cpu_us_per_event"] = cost
                figures[f"{form}_events_per_core_s"] = 1e6 / cost
                ratios = [ours / theirs for ours, theirs in zip(rounds["gateway"], costs)]
                report["gateway"][f"{form}_cpu_to_{name}"] = statistics.median(ratios)


def measure_deaths(settings, routers, folder, report):
    streams = 16
    for name, command in routers.items():
        with ModelledHosts(folder, 2, 20) as hosts:
            with Router(name, command, settings, hosts.addresses, folder) as router:
                report[name]["cut_streams"] = cut_streams(router, hosts, streams, 40)
                report[name]["streams"] = streams


def measure_memory(settings, folder):
    """MiB of a gateway with 1000 streams at the same time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 8 * settings.memory_streams:
        raise cell.Failure("SystemError", f"{hard} descriptors are allowed; allow {8 * settings.memory_streams}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with ModelledHosts(folder, 2, 400) as hosts:
            with Router("memory", gateway_command, settings, hosts.addresses, folder) as router:
                counters = [Counter(router.address, body_of(20, i)) for i in range(settings.memory_streams)]
                count(counters, lambda: all(one.events >= 2 for one in counters))
                at_once = sum(not one.is_whole for one in counters)
                peak = router.peak_mib()
                count(counters)
                return {"streams": at_once, "whole": sum(one.is_whole for one in counters),
                        "peak_mib": peak}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def measure(settings, folder):
    """The figures of each router by name, the ratios, and the lines about those that are missing."""
    routers, missing = known_routers(settings)
    report = {}
    measure_costs(settings, routers, folder, report)
    measure_deaths(settings, routers, folder, report)
    return report, missing
