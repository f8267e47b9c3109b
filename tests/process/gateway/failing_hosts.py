"""leasehold-gateway between real clients and hosts that fail, lie and drain.

The hosts are threads of this program with Unix sockets. Each request of a client names its case as
the model. The first host that is asked behaves as the case says; later ones send the honest text.
Prints one line for each case. Exit code 1 when one fails.

    python3 failing_hosts.py build/quick/bin
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

LENGTH = 12
IDENTITY = "sha256:" + "1" * 64 + "/int8/f16/1"
OTHER_IDENTITY = "sha256:" + "2" * 64 + "/int8/f16/1"
BEAT_MS = 300
LONG = 120  # tokens of the text that moves while its host drains
HEAD = ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
        "Leasehold-Identity: {}\r\n\r\n")
ERROR_EVENT = 'data: {"error":{"code":"X"}}\n\n'


def event(position):
    return f'data: {{"at":{position}}}\n\n'


def group(position, is_stream=True):
    """The group of the token 100 + position, with its mark."""
    mark = f": t 0 {position} {100 + position}\n\n"
    return event(position) + mark if is_stream else mark


TEXT = "".join(event(position) for position in range(LENGTH)) + "data: [DONE]\n\n"
DOCUMENT = '{"all":12}'


class Connection:
    """A host's side of one request."""

    def __init__(self, peer, body, case, is_stream):
        self.peer, self.body, self.case, self.is_stream = peer, body, case, is_stream
        self.known = len((body.get("emitted") or [[]])[0])

    def send(self, text):
        self.peer.sendall(text.encode())

    def accept(self, identity=IDENTITY):
        self.send(HEAD.format(identity))

    def groups(self, first, last, pause_s=0.0):
        for position in range(first, last):
            self.send(group(position, self.is_stream))
            time.sleep(pause_s)

    def finish(self):
        ending = "data: [DONE]\n\n" if self.is_stream else f"event: answer\ndata: {DOCUMENT}\n\n"
        self.send(ending + ": e\n\n")

    def honest(self):
        self.accept()
        self.groups(self.known, LENGTH)
        self.finish()

    def is_closed(self, timeout_s=3):
        """Waits until the gateway closes the connection."""
        self.peer.settimeout(timeout_s)
        try:
            return self.peer.recv(1) == b""
        except ConnectionError:
            return True
        except socket.timeout:
            return False


def after_three(rest):
    """A host that sends three groups, then these bytes, and waits."""

    def behave(connection):
        connection.accept()
        connection.groups(connection.known, 3)
        connection.send(rest)
        connection.case.left = connection.is_closed()

    return behave


def cut(rest):
    def behave(connection):
        connection.accept()
        connection.groups(connection.known, 3)
        connection.send(rest)

    return behave


def no_head(connection):
    connection.send(TEXT)


def html(connection):
    connection.send("HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 4\r\n"
                    "Connection: close\r\n\r\noops")


def ten_megabytes(connection):
    connection.accept()
    connection.groups(connection.known, 3)
    try:
        connection.send("data: " + "x" * (10 << 20) + "\n\n")
    except OSError:
        pass
    connection.case.left = True


def beats_then_text(connection):
    """A prefill longer than three beats."""
    connection.accept()
    for _ in range(5):
        time.sleep(BEAT_MS / 1000)
        connection.send(": b\n\n")
    connection.groups(connection.known, LENGTH)
    connection.finish()


class Case:
    """What the first host does, and what its client must see."""

    def __init__(self, name, first, asked=2, emitted=3, is_stream=True, second=None, check=None):
        self.name, self.behaviours, self.asked = name, [first, second], asked
        self.emitted, self.is_stream, self.check = emitted, is_stream, check
        self.bodies, self.heads, self.left = [], [], None
        self.lock = threading.Lock()

    def serve(self, connection, head):
        with self.lock:
            turn = len(self.bodies)
            self.bodies.append(connection.body)
            self.heads.append(head)
        always = self.behaviours[0] if self.check is dies_always else None
        behave = self.behaviours[turn] if turn < len(self.behaviours) else always
        behave(connection) if behave else connection.honest()

    def failure(self, status, answer):
        if self.check:
            return self.check(self, status, answer)
        wanted = TEXT if self.is_stream else DOCUMENT
        if status != 200 or answer != wanted:
            return f"status {status}, answer {answer[:300]!r}"
        if len(self.bodies) != self.asked:
            return f"{len(self.bodies)} hosts were asked, expected {self.asked}"
        tokens = self.bodies[-1].get("emitted", [[]])[0]
        if tokens != [100 + i for i in range(self.emitted)]:
            return f"the last host was given {tokens}"
        return "the first host was not closed" if self.left is False else None


def passes_error(case, status, answer):
    wanted = "".join(event(i) for i in range(3)) + ERROR_EVENT
    if (status, answer, len(case.bodies)) != (200, wanted, 1):
        return f"status {status}, {len(case.bodies)} hosts, answer {answer[:300]!r}"
    return None


def passes_refusal(case, status, answer):
    if (status, answer, len(case.bodies)) != (400, '{"error":7}', 1):
        return f"status {status}, {len(case.bodies)} hosts, answer {answer!r}"
    return None


def refuse(connection):
    connection.send("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                    'Content-Length: 11\r\nConnection: close\r\n\r\n{"error":7}')


def unknown_token(connection):
    """A token that no vocabulary has. Only the next host can know that."""
    connection.accept()
    connection.groups(connection.known, 3)
    connection.send(event(3) + ": t 0 3 2147483647\n\n")


def refuse_token(connection):
    body = '{"error":{"code":"BadRequest","message":"emitted: token 2147483647"}}'
    connection.send("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}")


def ends_with_refusal(case, status, answer):
    """The client gets what it was sent, and the next host's reason as a typed error."""
    text = "".join(event(i) for i in range(4))
    if status != 200 or not answer.startswith(text) or answer.count('"at"') != 4:
        return f"status {status}, answer {answer!r}"
    if "BadRequest" not in answer or "2147483647" not in answer:
        return f"the error is {answer[len(text):]!r}"
    return None if len(case.bodies) == 2 else f"{len(case.bodies)} hosts were asked"


def hides_client_fields(case, status, answer):
    head = case.heads[0].lower()
    if answer != TEXT or head.count("leasehold-stream:") != 1:
        return f"the host got {head!r}"
    return "a client's field was passed on" if "leasehold-stream: 7" in head else None


def dies_always(case, status, answer):
    """The client gets each position once and a typed error; the text has moved 8 times."""
    text = "".join(event(i) for i in range(3)) if case.is_stream else ""
    code = status == (200 if case.is_stream else 503) and "ConnectionLost" in answer
    if not code or not answer.startswith(text) or answer.count('"at"') != text.count('"at"'):
        return f"status {status}, answer {answer!r}"
    return None if len(case.bodies) == 9 else f"{len(case.bodies)} hosts were asked"


def of_other_model(connection):
    connection.accept(OTHER_IDENTITY)
    connection.groups(connection.known, LENGTH)
    connection.finish()


CASES = [
    Case("honest", None, asked=1, emitted=0, check=hides_client_fields),
    Case("cut-in-a-group", cut('data: {"at"')),
    Case("cut-before-the-mark", cut(event(3))),
    Case("cut-in-the-mark", cut(event(3) + ": t 0 3 1")),
    Case("cut-after-the-last-group", cut("".join(group(i) for i in range(3, LENGTH))),
         emitted=LENGTH),
    Case("cut-in-the-ending", cut("".join(group(i) for i in range(3, LENGTH)) + "data: [DONE]\n"),
         emitted=LENGTH),
    Case("lease-revoked", after_three(ERROR_EVENT + ": x LeaseRevoked 0\n\n")),
    Case("request-cancelled", after_three(ERROR_EVENT + ": x RequestCancelled 0\n\n"),
         check=passes_error),
    Case("position-repeated", after_three(group(2))),
    Case("position-left-out", after_three(group(4))),
    Case("unknown-choice", after_three("data: x\n: t 1 0 5\n\n")),
    Case("token-beyond-31-bits", after_three("data: x\n: t 0 3 2147483648\n\n")),
    Case("token-beyond-the-vocabulary", unknown_token, second=refuse_token, check=ends_with_refusal),
    Case("malformed-mark", after_three("data: x\n: t zero\n\n")),
    Case("silent", after_three("")),
    Case("long-prefill", beats_then_text, asked=1, emitted=0),
    Case("ten-megabytes", ten_megabytes),
    Case("http-0.9", no_head, emitted=0),
    Case("html", html, emitted=0),
    Case("closed-at-once", lambda connection: None, emitted=0),
    Case("refused", refuse, check=passes_refusal),
    Case("other-identity", cut(""), second=of_other_model, asked=3),
    Case("two-deaths", cut(""), second=lambda c: (c.accept(), c.groups(c.known, 7)), asked=3,
         emitted=7),
    Case("each-host-dies", cut(""), second=cut(""), check=dies_always),
    Case("each-host-dies-document", cut(""), second=cut(""), is_stream=False, check=dies_always),
    Case("document", None, asked=1, emitted=0, is_stream=False),
    Case("document-moves", cut(""), is_stream=False),
    Case("document-with-events", after_three(group(3)), is_stream=False),
]
BY_NAME = {case.name: case for case in CASES}


class Host:
    """A host that serves the models of all cases."""

    def __init__(self, directory, name):
        self.address = "unix:" + os.path.join(directory, name + ".sock")
        self.name, self.code, self.streams = name, "", []
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.address.removeprefix("unix:"))
        self.listen(listener)

    def listen(self, listener):
        listener.listen(64)
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def report(self):
        names = list(BY_NAME) + ["drain"]
        models = [{"id": name, "identity": IDENTITY} for name in names]
        return json.dumps({"host": self.name, "models": models, "ready": not self.code,
                           "code": self.code, "running": 0, "waiting": 0})

    def serve(self, peer):
        with peer:
            try:
                while self.serve_one(peer):
                    pass
            except (ConnectionError, OSError):
                pass

    def serve_one(self, peer):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = peer.recv(65536)
            if not piece:
                return False
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        head = head.decode()
        if head.startswith("GET /leasehold/host "):
            report = self.report()
            peer.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(report)}\r\n\r\n{report}".encode())
            return True
        length = next(int(line.split(":")[1]) for line in head.split("\r\n")
                      if line.lower().startswith("content-length:"))
        while len(body) < length:
            body += peer.recv(65536)
        body = json.loads(body)
        connection = Connection(peer, body, BY_NAME.get(body["model"]), body.get("stream", False))
        if body["model"] == "drain":
            self.streams.append(connection)
            self.serve_slowly(connection)
        else:
            connection.case.serve(connection, head)
        return False

    def serve_slowly(self, connection):
        """A new text has a token each 25 ms, a continued one no pauses."""
        connection.accept()
        connection.began = time.monotonic()
        try:
            connection.groups(connection.known, LONG, 0 if connection.known else 0.025)
            connection.finish()
        except OSError:
            connection.ended = time.monotonic()


def ask(address, model, is_stream, headers=None):
    client = http.client.HTTPConnection(address, timeout=20)
    body = json.dumps({"model": model, "stream": is_stream, "messages": [model]})
    client.request("POST", "/v1/chat/completions", body,
                   {"Authorization": "Bearer k", "Content-Type": "application/json",
                    **(headers or {})})
    answer = client.getresponse()
    return answer.status, answer.read().decode()


def run_case(address, case, results):
    try:
        status, answer = ask(address, case.name, case.is_stream, {"Leasehold-Stream": "7"})
        results[case.name] = case.failure(status, answer)
    except Exception as error:  # a failure of this case only
        results[case.name] = repr(error)


def check_drain(address, hosts):
    """The new host runs before the old one is closed, and the text has no seam."""
    answer = []
    client = threading.Thread(target=lambda: answer.append(ask(address, "drain", True)))
    client.start()
    while not any(host.streams for host in hosts):
        time.sleep(0.01)
    old = next(host for host in hosts if host.streams)
    old.code = "Draining"
    client.join(20)
    old.code = ""
    wanted = "".join(event(i) for i in range(LONG)) + "data: [DONE]\n\n"
    if not answer or answer[0] != (200, wanted):
        return f"the client got {answer}"
    others = [stream for host in hosts if host is not old for stream in host.streams]
    if not others:
        return "the text did not move"
    for _ in range(500):
        if hasattr(old.streams[0], "ended"):
            break
        time.sleep(0.01)
    ended = getattr(old.streams[0], "ended", 0)
    return None if ended > others[0].began else "the old host was not closed, or closed first"


def check_client_leaves(address, hosts):
    before = [stream for host in hosts for stream in host.streams]
    peer = socket.create_connection(tuple(address.split(":")))
    body = json.dumps({"model": "drain", "stream": True})
    peer.sendall((f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
    peer.recv(1)
    peer.close()
    [stream] = [one for host in hosts for one in host.streams if one not in before]
    return None if stream.is_closed() else "the host's request went on"


def check_emitted_refused(address):
    client = http.client.HTTPConnection(address, timeout=20)
    client.request("POST", "/v1/chat/completions", '{"model":"honest","emitted":[[1]]}')
    answer = client.getresponse()
    text = answer.read().decode()
    return None if answer.status == 400 and "emitted" in text else f"{answer.status} {text}"


def start_gateway(programs, addresses, directory, ready, *options):
    """Returns the process, its address and its log once so many hosts are ready."""
    log = os.path.join(directory, "gateway.log")
    command = [os.path.join(programs, "leasehold-gateway"), "--listen", "127.0.0.1:0",
               "--beat-ms", str(BEAT_MS), "--move-timeout-ms", "5000", "--plaintext-hosts", *options]
    for host in addresses:
        command += ["--hosts", host]
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    for _ in range(1000):
        text = open(log, encoding="utf-8").read()
        found = [word for word in text.replace("=", " ").split() if word.startswith("127.0.0.1:")]
        if found and text.count("state=ready") >= ready:
            return process, found[0].strip("\"',"), log
        if process.poll() is not None:
            break
        time.sleep(0.01)
    sys.exit("the gateway did not start:\n" + open(log, encoding="utf-8").read())


def main():
    with tempfile.TemporaryDirectory() as directory:
        hosts = [Host(directory, f"host{index}") for index in range(3)]
        addresses = [host.address for host in hosts]
        process, address, log = start_gateway(sys.argv[1], addresses, directory, len(hosts))
        results = {}
        threads = [threading.Thread(target=run_case, args=(address, case, results))
                   for case in CASES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        results["drain"] = check_drain(address, hosts)
        results["client-leaves"] = check_client_leaves(address, hosts)
        results["emitted-of-a-client"] = check_emitted_refused(address)
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
        results["stop"] = None if code == 0 else f"the gateway ended with {code}"
        for name, failure in results.items():
            print(f"{name:28} {failure or 'passes'}")
        if any(results.values()):
            print(open(log, encoding="utf-8").read()[-6000:])
            sys.exit(1)


if __name__ == "__main__":
    main()
