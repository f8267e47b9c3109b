"""A text whose host loses its network link, or one direction of it, continues on another host.

The gateway, one host and this program are in a network namespace of their own, and another host is in a second one. Its
text has begun when the link goes down, when its packets have no route, or when it has none for those that arrive: nothing
ends the connection, so only missing beats show it. New texts then go to the other host. Exit code 77 with one line where
namespaces are not allowed.

    python3 lost_link.py build/quick/bin
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import failing_hosts as hosts

NEAR, FAR, PORT = "10.213.77.1", "10.213.77.2", 8000
FAR_TOKENS = 20
WAIT_S = 60


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip() or " ".join(words)


def refusal():
    """Why no namespace can be made, or nothing."""
    for program in ("ip", "nsenter", "unshare"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    return run("unshare", "--net", "ip", "link", "set", "lo", "up")


class FarHost(hosts.Host):
    """Its texts do not end, so that they are cut while they run, however slow this machine is."""

    def __init__(self):
        self.name, self.code, self.streams = "far", "", []
        listener = socket.create_server(("", PORT))
        self.listen(listener)

    def serve_slowly(self, connection):
        connection.accept()
        connection.groups(connection.known, FAR_TOKENS)
        while True:
            time.sleep(hosts.BEAT_MS / 3e3)
            connection.send(": b\n\n")


def serve_far():
    FarHost()
    print("ready", flush=True)
    sys.stdin.read()


class Link:
    """A process with the far host in a namespace of its own, and the link to it."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", sys.executable, "-B", __file__, "far"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.address = f"http://{FAR}:{PORT}"
        self.do("ip", "link", "set", "lo", "up")
        self.do("ip", "link", "add", "near0", "type", "veth", "peer", "name", "eth0", "netns", str(self.process.pid))
        self.do("ip", "addr", "add", NEAR + "/30", "dev", "near0")
        self.up()
        self.do_far("addr", "add", FAR + "/30", "dev", "eth0")
        self.do_far("link", "set", "eth0", "up")

    def do(self, *words):
        if refused := run(*words):
            sys.exit(f"{' '.join(words)}: {refused}")

    def do_far(self, *words):
        self.do("nsenter", "--net", "--target", str(self.process.pid), "ip", *words)

    def down(self):
        self.do("ip", "link", "set", "near0", "down")

    def up(self):
        self.do("ip", "link", "set", "near0", "up")

    def lose_answers(self):
        """What the far host sends disappears, and what is sent to it arrives."""
        self.do_far("route", "add", "blackhole", NEAR + "/32")

    def restore_answers(self):
        self.do_far("route", "del", "blackhole", NEAR + "/32")

    def lose_requests(self):
        """What is sent to the far host disappears, and what it sends arrives."""
        self.do_far("route", "del", "local", FAR, "dev", "eth0", "table", "local")
        self.do_far("route", "add", "blackhole", FAR + "/32", "table", "local")

    def restore_requests(self):
        self.do_far("route", "del", "blackhole", FAR + "/32", "table", "local")
        self.do_far("route", "add", "local", FAR, "dev", "eth0", "table", "local", "src", FAR)

    def end(self):
        self.process.terminate()
        self.process.wait(WAIT_S)


class Gateway:
    def __init__(self, programs, directory, addresses):
        self.process, self.address, self.log = hosts.start_gateway(
            programs, addresses, directory, len(addresses), "--metrics", os.path.join(directory, "metrics"))

    def is_ready(self, host):
        """Whether new texts may go to the host. The log says so too, and later: another thread writes it."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(os.path.join(os.path.dirname(self.log), "metrics"))
            peer.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            page = b""
            while piece := peer.recv(65536):
                page += piece
        return f'leasehold_gateway_host_ready{{host="{host.address}"}} 1\n' in page.decode()

    def await_ready(self, host, is_ready=True):
        deadline = time.monotonic() + WAIT_S
        while self.is_ready(host) != is_ready:
            if time.monotonic() > deadline:
                sys.exit(f"{host.address} did not become {'' if is_ready else 'un'}ready:\n{self.read_log()}")
            time.sleep(0.01)

    def read_log(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()[-6000:]


def run_case(gateway, near, link, cut):
    """The text begins on the far host, since the near one drains; then the far one is cut off."""
    near.code = "Draining"
    gateway.await_ready(near, False)
    gateway.await_ready(link)
    body = '{"model":"drain","stream":true}'
    client = socket.create_connection(tuple(gateway.address.split(":")))
    client.sendall((f"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
                    f"{body}").encode())
    answer = client.recv(65536)
    near.code = ""
    gateway.await_ready(near)
    cut()
    while piece := client.recv(65536):
        answer += piece
    text = answer.partition(b"\r\n\r\n")[2].decode()
    if text != "".join(hosts.event(i) for i in range(hosts.LONG)) + "data: [DONE]\n\n":
        return f"the client got {text[-300:]!r}"
    if not near.streams or near.streams[-1].known < FAR_TOKENS:
        return "the text did not move"
    gateway.await_ready(link, False)
    answers = [hosts.ask(gateway.address, "honest", True) for _ in range(4)]
    return None if answers == [(200, hosts.TEXT)] * 4 else f"new texts end as {answers}"


def run_cases(programs, directory):
    link = Link()
    near = hosts.Host(directory, "near")
    gateway = Gateway(programs, directory, [near.address, link.address])
    results = {}
    for name, cut, mend in (("link down", link.down, link.up),
                            ("answers lost", link.lose_answers, link.restore_answers),
                            ("requests lost", link.lose_requests, link.restore_requests)):
        results[name] = run_case(gateway, near, link, cut)
        mend()
        print(f"{name:28} {results[name] or 'passes'}", flush=True)
    gateway.process.terminate()
    gateway.process.wait(WAIT_S)
    link.end()
    if any(results.values()):
        sys.exit(gateway.read_log())


def main():
    if sys.argv[1] == "far":
        return serve_far()
    if sys.argv[1] != "inside":
        if refused := refusal():
            print(f"skipped: a network namespace cannot be made: {refused}")
            sys.exit(77)
        os.execvp("unshare", ["unshare", "--net", sys.executable, "-B", __file__, "inside", sys.argv[1]])
    with tempfile.TemporaryDirectory() as directory:
        run_cases(sys.argv[2], directory)


if __name__ == "__main__":
    main()
