"""Generates text under revocable leases: a client of a Leasehold broker and its workers.

    import leasehold

    with leasehold.Session("alice") as session:
        for token in session.generate("Once upon a time", max_tokens=100):
            print(token.text, end="", flush=True)

A session holds one lease and renews it in the background. When the lease is revoked, when the
worker dies or when a connection breaks, it continues the text where it stopped: on a new lease, or
with `resumable` at the worker that still has the stream. Every position is delivered once.

Wire format: JSON-RPC 2.0, one object per line, on Unix sockets (ipc/control/messages.hpp).
Threads: a session generates one text at a time; use one session per thread.
Errors: `Error` with a code of common/errc.hpp. Needs Python 3.9 and Linux, and nothing else.
"""

import collections
import dataclasses
import json
import os
import queue
import secrets
import socket
import threading
import time

__version__ = "0.1.0"
__all__ = ["Completed", "Error", "Lease", "RetryPolicy", "Session", "Token", "broker_path"]

_MAX_LINE_BYTES = 1 << 20
_ACQUIRE_TIMEOUT_S = 30.0
_CALL_TIMEOUT_S = 10.0
_SUBMIT_TIMEOUT_S = 600.0  # the engine replies between two steps
_RECONNECT_DELAYS_S = (0.02, 0.05, 0.1, 0.2) + (0.5,) * 16

_LEASE_ENDED = {"LeaseRevoked", "LeaseFenced", "StaleGeneration"}
_RETRYABLE = {
    "BrokerLost", "ConnectionLost", "ConnectionRefused", "DeviceFault", "DiskFull", "Draining",
    "EngineDecodeFailed", "EngineLeaseFenced", "NoModelLoaded", "OutOfBlocks", "OutOfMemory",
    "PoolExhausted", "QueueFull", "QuotaConcurrent", "QuotaRequests",
    "QuotaTokens", "RebindRateLimited",
    "StaleGraph", "StillWritable", "TimedOut", "WeightsLoading",
}
# Refusals by a worker after which the lease is still good.
_LEASE_SURVIVES = {
    "BrokerLost", "OutOfBlocks", "PoolExhausted", "QueueFull", "QuotaBlocks", "QuotaConcurrent",
    "QuotaRequests", "QuotaTokens", "RebindRateLimited",
}
_ENGINE_RECOVERS = {"BrokerLost", "EngineDecodeFailed", "EngineLeaseFenced", "WeightsLoading"}
_NORMAL_ENDS = {"EndOfSequence", "MaxTokensReached", "ContextFull", "StopSequence", "Cancelled"}
_CODE_OF_REASON = {
    "Revoked": "LeaseRevoked", "DeadlineExceeded": "TimedOut", "EngineError": "EngineDecodeFailed",
}


class Error(Exception):
    """A typed failure. `code` is a name of common/errc.hpp, `scope` is tenant, engine or shared."""

    def __init__(self, code, detail, scope="tenant", retry_after_s=0.0):
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.scope = scope
        self.retry_after_s = retry_after_s

    @property
    def retryable(self):
        """Whether the same call may succeed later."""
        return self.code in _RETRYABLE


@dataclasses.dataclass(frozen=True)
class Token:
    """One emitted token. `text` has whole characters and may be empty."""

    position: int
    id: int
    text: str
    logprob: "float | None" = None
    top_logprobs: "tuple" = ()  # (token id, logprob), most likely first


@dataclasses.dataclass(frozen=True)
class Completed:
    """How a text ended. `leases` are those that it ran under, in order. `text` follows the last
    token: it was withheld until no token could change it."""

    reason: str
    text: str
    emitted_tokens: int
    prompt_tokens: int
    leases: "tuple"
    unchecked: "tuple" = ()  # what a lenient JSON schema demands and the worker does not check


@dataclasses.dataclass(frozen=True)
class Lease:
    """A granted lease. `id` is the text that brokerctl shows."""

    id: str
    token: str
    address: str
    worker: str
    arithmetic: str
    ttl_s: float
    blocks: int
    deadline_boottime_ns: int
    text_identity: str = ""  # what its tokens depend on; "": a worker of an earlier version
    max_context: int = 0  # tokens of a text, with its prompt; 0: not known


@dataclasses.dataclass(frozen=True)
class RetryPolicy:
    """Limits on retries: `max_attempts` in a row without a token. Progress makes the pause
    `first_delay_s` again: `progress_tokens` tokens of a stream, or a token `progress_time_s` after
    the worker accepted the request."""

    max_attempts: int = 8
    first_delay_s: float = 0.05
    max_delay_s: float = 2.0
    progress_tokens: int = 16
    progress_time_s: float = 5.0

    def delay_s(self, setbacks):
        """The pause after this number of errors in a row without progress."""
        return min(self.first_delay_s * 2 ** min(setbacks, 20), self.max_delay_s)


def broker_path():
    """The broker's socket: $LEASEHOLD_BROKER, else $XDG_RUNTIME_DIR/leasehold/broker.sock, else
    /run/leasehold/broker.sock."""
    if os.environ.get("LEASEHOLD_BROKER"):
        return os.environ["LEASEHOLD_BROKER"]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return f"{runtime or '/run'}/leasehold/broker.sock"


def _request_id():
    return secrets.token_hex(16)


def _boottime_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _error_of_reply(error):
    data = error.get("data") if isinstance(error, dict) else None
    data = data if isinstance(data, dict) else {}
    after = data.get("retry_after_ms", 0)
    return Error(
        code=data.get("code") or "SystemError",
        detail=error.get("message", "") if isinstance(error, dict) else "",
        scope=data.get("scope") or "tenant",
        retry_after_s=after / 1000 if isinstance(after, (int, float)) and after > 0 else 0.0,
    )


def _field(message, name, kind):
    """A field of a message from the peer, which is input."""
    value = message.get(name) if isinstance(message, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Error("MalformedMessage", f"the peer's message lacks a valid field {name}")
    return value


class _Connection:
    """A JSON-RPC connection. `on_notification(method, params)` is called by the reader thread."""

    def __init__(self, path, on_notification, on_closed=None):
        self._path = path
        self._on_notification = on_notification
        self._on_closed = on_closed
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting = {}  # id of a call to the queue of its reply
        self._next_id = 0
        self._closed = None  # the error, once closed
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except FileNotFoundError as error:
            self._socket.close()
            raise Error("FileNotFound", f"no socket at {path}; check that the program runs") from error
        except OSError as error:
            self._socket.close()
            code = "ConnectionRefused" if isinstance(error, ConnectionRefusedError) else "SystemError"
            raise Error(code, f"cannot connect to {path}: {error.strerror}") from error
        self._reader = threading.Thread(target=self._read, name="leasehold-reader", daemon=True)
        self._reader.start()

    def is_open(self):
        with self._lock:
            return self._closed is None

    def call(self, method, params, timeout_s=_CALL_TIMEOUT_S):
        """The result of a call. Raises Error."""
        replies = queue.SimpleQueue()
        with self._lock:
            if self._closed:
                raise self._closed
            self._next_id += 1
            call_id = self._next_id
            self._waiting[call_id] = replies
        self._send({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
        try:
            reply = replies.get(timeout=timeout_s)
        except queue.Empty:
            raise Error("TimedOut", f"{self._path} did not answer {method} in {timeout_s:g} s") from None
        finally:
            with self._lock:
                self._waiting.pop(call_id, None)
        if isinstance(reply, Error):
            raise reply
        if "error" in reply:
            raise _error_of_reply(reply["error"])
        return reply.get("result")

    def close(self):
        """Ends the connection. Calls that wait raise ConnectionLost."""
        self._fail(Error("ConnectionLost", f"the connection to {self._path} was closed"))
        if threading.current_thread() is not self._reader:
            self._reader.join()
        self._socket.close()

    def _send(self, message):
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(line) > _MAX_LINE_BYTES:
            raise Error("MessageTooLarge", f"{len(line)} bytes, at most {_MAX_LINE_BYTES}; send less")
        try:
            with self._sending:
                self._socket.sendall(line)
        except OSError as error:
            self._fail(Error("ConnectionLost", f"{self._path}: {error.strerror}"))

    def _read(self):
        try:
            self._read_lines()
        except Exception as error:  # what the peer sends is input
            self._fail(Error("MalformedMessage", f"{self._path} sent a line that cannot be read: {error!r}"))

    def _read_lines(self):
        buffer = bytearray()
        while True:
            try:
                received = self._socket.recv(65536)
            except OSError:
                received = b""
            if not received:
                return self._fail(Error("ConnectionLost", f"{self._path} closed the connection"))
            buffer += received
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            if len(buffer) > _MAX_LINE_BYTES:
                return self._fail(Error("MessageTooLarge", f"{self._path} sent a line without an end"))
            for line in lines:
                self._take(line)

    def _take(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            return self._fail(Error("MalformedMessage", f"{self._path} sent a line that is not an object"))
        if "method" in message and "id" not in message:
            return self._on_notification(message["method"], message.get("params"))
        if "method" in message:
            code = {"code": -32601, "message": "no such method", "data": {"code": "UnknownMethod"}}
            return self._send({"jsonrpc": "2.0", "id": message["id"], "error": code})
        with self._lock:
            waiting = self._waiting.get(message.get("id"))
        if waiting:
            waiting.put(message)

    def _fail(self, error):
        with self._lock:
            if self._closed:
                return
            self._closed = error
            waiting = list(self._waiting.values())
        for replies in waiting:
            replies.put(error)
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer was first
        if self._on_closed:
            self._on_closed(error)


class _Holder:
    """Acquires a lease and renews it at a third of its TTL, also over a restart of the broker."""

    def __init__(self, path, acquire):
        self._path = path
        self._acquire = acquire  # parameters of lease.acquire, without request_id and replaces
        self._changed = threading.Condition()
        self._connecting = threading.Lock()
        self._broker = None
        self._closing = False
        self._ended = None  # the error that ended the lease
        self.lease = None
        self._renewer = None

    def acquire(self, replaces=None, offer=None):
        """A fresh lease instead of the one held. `offer`: what its worker must offer."""
        params = dict(self._acquire, **(offer or {}), request_id=_request_id())
        if replaces:
            params["replaces"] = replaces
        try:
            reply = self._connected().call("lease.acquire", params, _ACQUIRE_TIMEOUT_S)
        except Error as error:
            if error.code == "UnknownLease" and replaces:  # the broker restarted without it
                return self.acquire(offer=offer)
            if error.code == "TimedOut":
                self._broker.close()  # the broker ends a lease that is granted too late
            raise
        lease = Lease(
            id=_field(reply, "lease", str),
            token=_field(reply, "token", str),
            address=_field(reply, "address", str),
            worker=_field(reply, "worker", str),
            arithmetic=_field(reply, "arithmetic", str),
            ttl_s=_field(reply, "ttl_ms", int) / 1000,
            blocks=_field(reply, "blocks", int),
            deadline_boottime_ns=_field(reply, "deadline_boottime_ns", int),
            text_identity=reply.get("text_identity", ""),
            max_context=reply.get("max_context", 0),
        )
        with self._changed:
            self.lease, self._ended = lease, None
            self._changed.notify()
        if self._renewer is None:
            self._renewer = threading.Thread(target=self._renew, name="leasehold-renewer", daemon=True)
            self._renewer.start()
        return lease

    def release(self):
        """Gives the lease up and ends the connection."""
        with self._connecting, self._changed:
            self._closing = True
            self._changed.notify()
            held = self.lease is not None and self._ended is None
            self._ended = Error("LeaseRevoked", "the session was closed")
        if held and self._broker:
            try:
                self._broker.call("lease.release", {"lease": self.lease.id, "request_id": _request_id()})
            except Error:
                pass  # the lease may have ended; without a connection the broker ends it
        if self._broker:
            self._broker.close()
        if self._renewer:
            self._renewer.join()

    def is_live(self):
        """Whether the lease has not ended as far as the holder knows."""
        with self._changed:
            return self.lease is not None and self._ended is None

    def _connected(self):
        with self._connecting:
            if self._closing:
                raise Error("BadRequest", "the session is closed; open another one")
            if self._broker is None or not self._broker.is_open():
                if self._broker:
                    self._broker.close()
                self._broker = _Connection(self._path, self._notified, self._broker_closed)
            return self._broker

    def _notified(self, method, params):
        with self._changed:
            mine = self.lease and isinstance(params, dict) and params.get("lease") == self.lease.id
            if method == "lease.revoked" and mine:
                self._ended = Error("LeaseRevoked", f"lease {self.lease.id}: {params.get('reason')}")

    def _broker_closed(self, _error):
        with self._changed:
            self._changed.notify()

    def _renew(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._ended is None)
                lease = self.lease
                if not self._closing and self._broker.is_open():
                    self._changed.wait(max(lease.ttl_s / 3, 0.05) if lease.ttl_s else None)
                if self._closing:
                    return
                if self._ended or lease is not self.lease:
                    continue
            if self._broker.is_open():
                self._renew_once(lease)
            else:
                self._hold_again(lease)

    def _renew_once(self, lease):
        try:
            self._broker.call("lease.renew", {"lease": lease.id, "request_id": _request_id()})
        except Error as error:
            if not error.retryable:
                self._end(lease, error)

    def _hold_again(self, lease):
        """The broker may be restarting: claims the lease on a new connection."""
        claim = {"lease": lease.id, "token": lease.token}
        for delay_s in _RECONNECT_DELAYS_S:
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, timeout=delay_s):
                    return
            try:
                self._connected().call("lease.hold", dict(claim, request_id=_request_id()))
                return
            except Error as error:
                if not error.retryable and error.code != "FileNotFound":
                    return self._end(lease, error)
        self._end(lease, Error("BrokerLost", f"no broker answers at {self._path}"))

    def _end(self, lease, error):
        with self._changed:
            if self.lease is lease:
                self._ended = error


class _Stream:
    """One request on a connection to a worker. Puts tokens and the end into a queue."""

    def __init__(self, lease, request, resume):
        self._request_id = request["request_id"]
        self.events = queue.SimpleQueue()
        self._worker = _Connection(lease.address, self._notified, self._closed)
        try:
            self._worker.call("connection.authenticate", {"token": lease.token})
            reply = self._begin(dict(request, token=lease.token), resume)
            self.prompt_tokens = _field(reply, "prompt_tokens", int)
            self.unchecked = tuple(reply.get("unchecked", ()))
        except BaseException:
            self._worker.close()
            raise

    def _begin(self, request, resume):
        if resume:
            after = {"request_id": self._request_id}
            if request["emitted"]:
                after["after_position"] = len(request["emitted"]) - 1
            try:
                return self._worker.call("request.resume", after, _SUBMIT_TIMEOUT_S)
            except Error as error:
                # BadRequest: the worker has less of the text than was delivered.
                if error.code not in ("UnknownRequest", "BadRequest"):
                    raise
        return self._worker.call("request.submit", request, _SUBMIT_TIMEOUT_S)

    def cancel(self):
        """Cancels the request at the worker; waits up to two seconds for its end."""
        try:
            self._worker.call("request.cancel", {"request_id": self._request_id}, 2.0)
        except Error:
            pass  # it is over already, or the worker is gone
        self._worker.close()

    def close(self):
        self._worker.close()

    def _notified(self, method, params):
        if method == "token.emitted" or method == "request.completed":
            self.events.put((method, params))

    def _closed(self, error):
        self.events.put(("closed", error))


def decide_retry(error, at_worker, had_lease, names_worker=False):
    """Whether a text goes on after `error`, and under which lease: "fresh", "same" or None.

    `at_worker`: a worker failed, not the broker. `had_lease`: a lease was granted before, so the
    broker's address is right. `names_worker`: no other worker will do. Pure; the rules are those of ipc/client/retry_decision.hpp.
    """
    if error.code in ("ConnectionRefused", "FileNotFound"):
        may_retry = at_worker or had_lease
    elif error.code == "MissingWeight":
        may_retry = at_worker  # another worker may have its weights; the broker says when none has
    else:
        may_retry = error.retryable or error.code in _LEASE_ENDED
        # The tenant's other leases hold its quota, or a broker that restarted does not know the named worker yet.
        is_unknown_yet = names_worker and not at_worker and error.code == "UnknownWorker"
        passes = error.retry_after_s > 0 or is_unknown_yet
        may_retry = may_retry or (had_lease and passes)
    if not may_retry:
        return None
    if not at_worker:
        return "fresh"
    if error.scope == "shared" or (error.scope == "engine" and error.code in _ENGINE_RECOVERS):
        return "same"
    return "same" if error.code in _LEASE_SURVIVES else "fresh"


def _content(text_identity):
    """Of the model's files: "sha256:…"."""
    return text_identity.partition("/")[0]


def _with_texts(messages):
    """The messages with their calls as text, which is the form of the wire."""
    def encoded(message):
        calls = message.get("tool_calls")
        if calls is None or isinstance(calls, str):
            return message
        return {**message, "content": message.get("content") or "", "tool_calls": json.dumps(calls)}

    return None if messages is None else [encoded(message) for message in messages]


class Session:
    """A tenant's session with a broker. Use it as a context manager, or call close().

    tenant: an admitted tenant. broker: the broker's socket; None: broker_path(). worker: a
    worker's name; None: any. model: what new texts are generated with, as a worker names it or as
    "sha256:" and 8 digits of its content; None: what every ready worker serves. blocks: KV blocks of 16 tokens; 0: one extent's worth. api_key: acts
    for the tenant whatever user this process has. rebind: continue a text after its lease ended.
    any_arithmetic: also on a worker whose tokens may differ. rebind_timeout_s: how long a text that
    has begun waits in turn for its next lease when memory is short.
    """

    def __init__(self, tenant, broker=None, *, worker=None, blocks=0, api_key=None, rebind=True,
                 any_arithmetic=False, retry=RetryPolicy(), model=None, rebind_timeout_s=600.0):
        acquire = {"tenant": tenant, "blocks": blocks, "ttl_ms": 0}
        if worker is not None:
            acquire["worker"] = worker
        if model is not None:
            acquire["model"] = model
        if api_key is not None:
            acquire["api_key"] = api_key
        self._holder = _Holder(broker or broker_path(), acquire)
        self._names_worker = worker is not None
        self._rebind = rebind
        self._any_arithmetic = any_arithmetic
        self._retry = retry
        self._rebind_timeout_s = rebind_timeout_s
        self.result = None  # Completed, of the last text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Releases the lease."""
        self._holder.release()

    @property
    def lease(self):
        """The lease held now, or None."""
        return self._holder.lease if self._holder.is_live() else None

    def generate(self, prompt=None, *, messages=None, prompt_tokens=None, tools=None,
                 chat_template_kwargs=None, continue_final_message=False, max_tokens=128, request_id=None, resumable=False,
                 emitted=(), ignore_eos=False, priority=0, deadline_s=None, text_identity=None, **sampling):
        """Yields the tokens of a text; afterwards `result` says how it ended.

        Exactly one of prompt (text), messages ([{"role", "content"}], for the model's chat
        template) and prompt_tokens. With messages: tools, a list as in OpenAI's API, and
        chat_template_kwargs, further variables of the template; calls of an earlier turn are its
        "tool_calls", those of this text are in its text. continue_final_message: the text continues
        the last message. `sampling`: temperature, seed, top_p, stop, include_stop_str_in_output,
        min_tokens, logit_bias, logprobs and top_logprobs, response_format, grammar, regex …
        as ipc/control/messages/tenant.hpp names them. resumable: the request outlives a broken
        connection for a minute; with the same request_id another process continues it. emitted:
        ids of tokens that were delivered before, for a text that this process did not begin;
        text_identity: Lease.text_identity of the lease that they came under, and no other continues it.
        Leaving the iterator early cancels the request. Raises Error.
        """
        given = {"prompt": prompt, "messages": _with_texts(messages), "prompt_tokens": prompt_tokens}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise Error("BadRequest", "give exactly one of prompt, messages and prompt_tokens")
        request = dict(
            given,
            request_id=request_id or _request_id(),
            emitted=list(emitted),
            sampling={"temperature": 0.0, "seed": secrets.randbits(63), **sampling},
            max_emitted_tokens=max_tokens,
            ignore_eos=ignore_eos,
            priority=priority,
            resumable=resumable,
            asked_at_unix_s=int(time.time()),
        )
        if tools is not None:
            request["tools"] = json.dumps(tools)
        if chat_template_kwargs is not None:
            request["chat_template_kwargs"] = json.dumps(chat_template_kwargs)
        if continue_final_message:
            request.update(continue_final_message=True, add_generation_prompt=False)
        if deadline_s is not None:
            request["deadline_ms"] = int(deadline_s * 1000)
        return self._run(request, text_identity or "")

    def text(self, prompt=None, **options):
        """The whole text of `generate`, with what follows its last token."""
        parts = [token.text for token in self.generate(prompt, **options)]
        return "".join(parts) + self.result.text

    def _run(self, request, text_identity):
        """Tokens over as many leases as the text needs."""
        self.result = None
        text = _Text(request, self._retry, text_identity)
        while self.result is None:
            stage = "broker"
            try:
                lease = self._lease_for(text)
                stage = "worker"
                text.stream = _Stream(lease, text.request_under(lease), text.resume)
                text.began_under(lease)
                yield from self._tokens(text)
            except Error as error:
                text.close()
                self._pause_or_raise(text, error, stage)
            except BaseException:  # the iterator was closed, or its user interrupted
                text.cancel()
                raise
        text.close()

    def _lease_for(self, text):
        if self._holder.is_live() and not text.wants_fresh:
            lease = self._holder.lease
        else:
            lease = self._holder.acquire(text.lease.id if text.lease else None, text.offer(self._any_arithmetic))
            text.wants_fresh = False
            text.resume = False
        refused = text.refusal_of(lease, self._any_arithmetic)
        if refused:
            text.is_final = True
            raise refused
        return lease

    def _tokens(self, text):
        while True:
            kind, value = text.stream.events.get()
            if kind == "closed":
                raise Error("ConnectionLost", value.detail)
            if kind == "request.completed":
                return self._completed(text, value)
            token = text.take(value)
            if token:
                yield token

    def _completed(self, text, completed):
        reason = _field(completed, "reason", str)
        if reason in _NORMAL_ENDS:
            self.result = Completed(reason, completed.get("text") or "", len(text.request["emitted"]),
                                    text.stream.prompt_tokens, tuple(text.leases), text.stream.unchecked)
            return
        scope = completed.get("scope") or "tenant"
        code = _CODE_OF_REASON.get(reason, reason)
        # TimedOut is retryable for a call; the deadline of a request that has passed is final.
        text.is_final = text.is_final or code == "TimedOut"
        raise Error(code,
                    f"the request ended with {reason} ({scope} scope) after {len(text.request['emitted'])} tokens"
                    + (f": {completed['detail']}" if completed.get("detail") else ""), scope,
                    completed.get("retry_after_ms", 0) / 1000)

    def _pause_or_raise(self, text, error, stage):
        at_worker = stage == "worker"
        # The successor of a dead worker refuses its leases' tokens, but so does a worker of another broker.
        if at_worker and error.code == "BadToken" and not text.token_refused:
            text.token_refused = True
            error = Error("LeaseFenced", f"the lease ended with its worker; another one answers there: {error.detail}")
        decision = decide_retry(error, at_worker, text.lease is not None, self._names_worker)
        if text.is_final or decision is None or not self._rebind or text.failures >= self._retry.max_attempts:
            raise error
        if text.lease is not None and text.waited_s() >= self._rebind_timeout_s:
            raise Error(error.code, f"{error.detail} (given up after {self._rebind_timeout_s:g} s)", error.scope)
        # A worker that only lost this connection may still have the stream.
        text.resume = at_worker and text.request["resumable"] and error.code == "ConnectionLost"
        text.wants_fresh = decision == "fresh" and not (text.resume and self._holder.is_live())
        # The broker prepares memory or awaits a worker, for a bounded time, and says when to ask.
        is_preparing = not at_worker and error.retry_after_s > 0 and error.code in ("PoolExhausted", "NoModelLoaded")
        at_once = is_preparing or (error.code in _LEASE_ENDED and text.setbacks == 0)
        time.sleep(max(0.0 if at_once else self._retry.delay_s(text.setbacks), error.retry_after_s))
        text.note_failure(error)


class _Text:
    """What a text has so far, over all its leases."""

    def __init__(self, request, retry, text_identity=""):
        self.request = request
        self._retry = retry
        self._identity = text_identity  # "": not known
        self._min_context = 0
        self.stream = None
        self.lease = None  # that a worker last accepted the text under
        self.leases = []
        self.failures = 0  # in a row, without a token
        self.setbacks = 0  # in a row, without progress
        self._accepted_at_s = 0.0
        self._interrupted_at_s = None
        self._tokens = 0  # since a worker last accepted the text
        self.token_refused = False  # since a worker last accepted the text
        self.wants_fresh = False
        self.resume = False
        self.is_final = False

    def request_under(self, lease):
        if self.lease is None or self.lease.id == lease.id:
            return self.request
        return dict(self.request, rebound_from=self.lease.id)

    def offer(self, any_arithmetic):
        """What a worker must offer so that the text continues there, as lease.acquire names it."""
        offer = {"min_context": self._min_context} if self._min_context else {}
        if not self._identity:
            return offer
        if self.request["emitted"] and not any_arithmetic:
            return dict(offer, text_identity=self._identity)
        return dict(offer, model=_content(self._identity))

    def refusal_of(self, lease, any_arithmetic):
        """The error of a text that cannot go on under this lease, or None. Brokers of an earlier version grant any."""
        if lease.max_context and lease.max_context < self._min_context:
            return Error("PromptTooLong", f"the text needs {self._min_context} tokens of context, and worker "
                         f"{lease.worker} holds {lease.max_context}; name another worker")
        if not self.request["emitted"]:
            return None
        if self._identity and lease.text_identity:
            same = _content if any_arithmetic else str
            if same(self._identity) == same(lease.text_identity):
                return None
            return Error("UnknownWorker", f"the text began on {self._identity}, and worker {lease.worker} computes "
                         f"{lease.text_identity}; name another worker, or set any_arithmetic for equal content")
        differs = self.lease is not None and lease.arithmetic != self.lease.arithmetic
        if not differs or any_arithmetic:
            return None
        return Error("UnsupportedModel", f"the text began in {self.lease.arithmetic} arithmetic, and worker "
                     f"{lease.worker} computes in {lease.arithmetic}; set any_arithmetic to continue there")

    def began_under(self, lease):
        self._identity = lease.text_identity or self._identity
        if self.stream:  # a text that is longer than the context ends where that is full
            most = self.stream.prompt_tokens + self.request["max_emitted_tokens"]
            self._min_context = min(most, lease.max_context)
        if self.lease is None or lease.id != self.lease.id:
            self.leases.append(lease.id)
        self.lease = lease
        self.token_refused = False
        self.resume = False
        self._interrupted_at_s = None
        self._accepted_at_s = time.monotonic()
        self._tokens = 0

    def waited_s(self):
        """Since the text was interrupted; 0 at the first call."""
        now_s = time.monotonic()
        self._interrupted_at_s = self._interrupted_at_s or now_s
        return now_s - self._interrupted_at_s

    def note_failure(self, error):
        """A refusal that says when to retry is not a failure: a session that obeys does not give up."""
        if error.retry_after_s == 0:
            self.failures += 1
        self.setbacks += 1

    def _note_token(self):
        self.failures = 0
        self._tokens += 1
        accepted_for_s = time.monotonic() - self._accepted_at_s
        if self._tokens >= self._retry.progress_tokens or accepted_for_s >= self._retry.progress_time_s:
            self.setbacks = 0

    def take(self, message):
        """A token with the next position."""
        position = _field(message, "position", int)
        expected = len(self.request["emitted"])
        if position != expected:
            self.is_final = True
            raise Error("MalformedMessage", f"the worker sent position {position}, expected {expected}")
        token = Token(position, _field(message, "token", int), _field(message, "text", str),
                      message.get("logprob"),
                      tuple((_field(t, "token", int), _field(t, "logprob", (int, float)))
                            for t in message.get("top_logprobs") or ()))
        self.request["emitted"].append(token.id)
        self._note_token()
        return token

    def cancel(self):
        if self.stream:
            self.stream.cancel()

    def close(self):
        if self.stream:
            self.stream.close()
        self.stream = None
