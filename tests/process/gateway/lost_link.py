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

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../checks", folder)
                for folder in ("hosts", "peer")]
import failing_hosts as hosts
import separate_link

PORT = 8000
FAR_TOKENS = 20
WAIT_S = 60


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
        return f'leasehold_gateway_host_ready{{host="{host}"}} 1\n' in page.decode()

    def await_ready(self, host, is_ready=True):
        deadline = time.monotonic() + WAIT_S
        while self.is_ready(host) != is_ready:
            if time.monotonic() > deadline:
                sys.exit(f"{host} did not become {'' if is_ready else 'un'}ready:\n{self.read_log()}")
            time.sleep(0.01)

    def read_log(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()[-6000:]


def run_case(gateway, near, far, cut):
    """The text begins on the far host, since the near one drains; then the far one is cut off."""
    near.code = "Draining"
    gateway.await_ready(near.address, False)
    gateway.await_ready(far)
    body = '{"model":"drain","stream":true}'
    client = socket.create_connection(tuple(gateway.address.split(":")))
    client.sendall((f"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
                    f"{body}").encode())
    answer = client.recv(65536)
    near.code = ""
    gateway.await_ready(near.address)
    cut()
    while piece := client.recv(65536):
        answer += piece
    text = answer.partition(b"\r\n\r\n")[2].decode()
    if text != "".join(hosts.event(i) for i in range(hosts.LONG)) + "data: [DONE]\n\n":
        return f"the client got {text[-300:]!r}"
    if not near.streams or near.streams[-1].known < FAR_TOKENS:
        return "the text did not move"
    gateway.await_ready(far, False)
    answers = [hosts.ask(gateway.address, "honest", True) for _ in range(4)]
    return None if answers == [(200, hosts.TEXT)] * 4 else f"new texts end as {answers}"


def run_cases(programs, directory, link):
    process = subprocess.Popen([*link.prefix, sys.executable, "-B", __file__, "far"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    process.stdout.readline()
    far = f"http://{separate_link.FAR}:{PORT}"
    near = hosts.Host(directory, "near")
    gateway = Gateway(programs, directory, [near.address, far])
    results = {}
    for name, (cut, mend) in separate_link.CUTS.items():
        results[name] = run_case(gateway, near, far, getattr(link, cut))
        getattr(link, mend)()
        print(f"{name:28} {results[name] or 'passes'}", flush=True)
    for one in (gateway.process, process):
        one.terminate()
        one.wait(WAIT_S)
    if any(results.values()):
        sys.exit(gateway.read_log())


def main():
    if sys.argv[1] == "far":
        return serve_far()
    if sys.argv[1] != "inside":
        unshare = shutil.which("unshare")
        if not unshare or subprocess.run([unshare, "--net", "true"], capture_output=True, check=False).returncode != 0:
            print("skipped: a network namespace cannot be made: `unshare --net` is missing or refused")
            sys.exit(77)
        os.execv(unshare, [unshare, "--net", sys.executable, "-B", __file__, "inside", sys.argv[1]])
    separate_link.ip("link", "set", "lo", "up")
    with separate_link.SeparateLink() as link, tempfile.TemporaryDirectory() as directory:
        if link.refused:
            print(f"skipped: a network namespace cannot be made: {link.refused}")
            sys.exit(77)
        run_cases(sys.argv[2], directory, link)


if __name__ == "__main__":
    main()
