"""A broker and a worker that say what a test tells them to."""

import json
import os
import socket
import threading


class FakeServer:
    """Answers each call with `answer(method, params, send)`: a result, or an Exception's error.

    `send(method, params)` notifies the caller; returning DROP closes the connection. Records calls.
    """

    DROP = object()

    def __init__(self, path, answer):
        self.calls = []
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen()
        self._connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def params_of(self, method):
        return [params for name, params in self.calls if name == method]

    @property
    def accepted(self):
        """Number of connections so far."""
        return len(self._connections)

    def notify_all(self, method, params):
        for connection in list(self._connections):
            _send(connection, {"method": method, "params": params})

    def close(self):
        """As if the process died."""
        path = self._listener.getsockname()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        os.unlink(path)
        for connection in self._connections:
            _shut(connection)

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection.makefile("rb") as lines:
            for line in lines:
                call = json.loads(line)
                self.calls.append((call["method"], call["params"]))
                reply = {"id": call["id"]}
                later = []
                result = self._answer(call["method"], call["params"], lambda *n: later.append(n))
                if result is FakeServer.DROP:
                    break
                if isinstance(result, Refusal):
                    reply["error"] = {"code": -32000, "message": "refused", "data": result.data}
                else:
                    reply["result"] = result
                _send(connection, reply)
                for method, params in later:
                    if method is FakeServer.DROP:
                        break
                    _send(connection, {"method": method, "params": params})
                if later and later[-1][0] is FakeServer.DROP:
                    break
        _shut(connection)
        connection.close()


class Refusal:
    """A typed error as the answer to a call."""

    def __init__(self, code, scope="tenant", retry_after_ms=0):
        self.data = {"code": code, "scope": scope, "retry_after_ms": retry_after_ms}


def _send(connection, message):
    try:
        connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    except OSError:
        pass  # the client is gone


def _shut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
