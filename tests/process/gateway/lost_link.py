"""A text whose host loses its network link, or can no longer answer, continues on another host.

One host is in a network namespace of its own. Its text has begun when the link goes down, and in
the second case when its answers have no route: nothing ends the connection, so only missing beats
show it. Exit code 77 with one line where namespaces are not allowed.

    python3 lost_link.py build/quick/bin
"""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import failing_hosts as hosts

NAMESPACE = f"leasehold-{os.getpid()}"
LINK = f"lh{os.getpid() % 1000000}"
NEAR, FAR, PORT = "10.213.77.1", "10.213.77.2", 8000


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


def make_namespace():
    """Returns why it cannot be made, or nothing."""
    for words in (["netns", "add", NAMESPACE],
                  ["link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", NAMESPACE],
                  ["addr", "add", NEAR + "/30", "dev", LINK], ["link", "set", LINK, "up"],
                  ["-n", NAMESPACE, "addr", "add", FAR + "/30", "dev", "eth0"],
                  ["-n", NAMESPACE, "link", "set", "eth0", "up"]):
        try:
            done = ip(*words)
        except FileNotFoundError:
            return "the program ip is missing"
        if done.returncode != 0:
            return done.stderr.strip() or "ip " + " ".join(words)
    return None


def serve_far():
    """The process in the namespace."""
    host = hosts.Host.__new__(hosts.Host)
    host.name, host.code, host.streams = "far", "", []
    listener = socket.socket()
    listener.bind((FAR, PORT))
    host.listen(listener)
    threading.Event().wait()


def cut_link():
    ip("link", "set", LINK, "down")


def cut_answers():
    ip("-n", NAMESPACE, "route", "add", "blackhole", NEAR + "/32")


def mend():
    ip("link", "set", LINK, "up")
    ip("-n", NAMESPACE, "route", "del", "blackhole", NEAR + "/32")


def wait_for_state(log, name, state):
    for _ in range(1000):
        lines = [line for line in open(log, encoding="utf-8") if f"name={name} " in line]
        if lines and f"state={state}" in lines[-1]:
            return
        time.sleep(0.01)
    sys.exit(f"host {name} did not become {state}:\n" + open(log, encoding="utf-8").read())


def run_case(address, near, log, cut):
    """The text begins on the far host, since the near one drains; then the far one is cut off."""
    near.code = "Draining"
    wait_for_state(log, "near", "draining")
    wait_for_state(log, "far", "ready")
    body = '{"model":"drain","stream":true}'
    client = socket.create_connection(tuple(address.split(":")))
    client.sendall((f"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
                    f"{body}").encode())
    answer = client.recv(65536)
    near.code = ""
    wait_for_state(log, "near", "ready")
    cut()
    while piece := client.recv(65536):
        answer += piece
    text = answer.partition(b"\r\n\r\n")[2].decode()
    wanted = "".join(hosts.event(i) for i in range(hosts.LONG)) + "data: [DONE]\n\n"
    mend()
    if text != wanted:
        return f"the client got {text[-300:]!r}"
    return None if near.streams and near.streams[-1].known > 0 else "the text did not move"


def run(programs, directory):
    """The far host sends a token each 25 ms, so its text is in the middle when the link goes."""
    far = subprocess.Popen(["ip", "netns", "exec", NAMESPACE, sys.executable, "-B", __file__, "far"])
    near = hosts.Host(directory, "near")
    gateway, address, log = hosts.start_gateway(
        programs, [near.address, f"http://{FAR}:{PORT}"], directory, 2)
    results = {}
    for name, cut in (("link down", cut_link), ("answers lost", cut_answers)):
        results[name] = run_case(address, near, log, cut)
        print(f"{name:28} {results[name] or 'passes'}")
    for process in (gateway, far):
        process.terminate()
        process.wait(30)
    if any(results.values()):
        sys.exit(open(log, encoding="utf-8").read()[-6000:])


def main():
    refused = make_namespace()
    try:
        if refused:
            print(f"skipped: a network namespace cannot be made: {refused}")
            sys.exit(77)
        with tempfile.TemporaryDirectory() as directory:
            run(sys.argv[1], directory)
    finally:
        ip("link", "del", LINK)
        ip("netns", "del", NAMESPACE)


if __name__ == "__main__":
    serve_far() if sys.argv[1] == "far" else main()
