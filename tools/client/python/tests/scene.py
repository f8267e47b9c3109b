"""A broker and a worker with one short text, which tests disturb."""

import os
import threading

import context  # noqa: F401  pylint: disable=unused-import
import leasehold_client
from fakes import FakeServer, Refusal

TEXT = [(11, "Once"), (12, " upon"), (13, " a"), (14, " time")]
FAST = leasehold_client.RetryPolicy(first_delay_s=0.001, max_delay_s=0.01)


class Scene:
    """Both servers; `disturb(n, send)` may act in the n-th submission and return True to end it."""

    def __init__(self, folder):
        self.folder = folder
        self.leases = 0
        self.submissions = 0
        self.arithmetic = ["int8"]
        self.identities = [""]
        self.contexts = [0]
        self.acquires = []
        self.disturb = lambda submission, request, send: False
        self.refuse_acquire = []
        self.before_acquire = lambda: None
        self.refuse_tokens = 0
        self.resume = lambda send, after: Refusal("UnknownRequest")
        self.cancelled = threading.Event()
        self.worker_path = os.path.join(folder, "w.sock")
        self.broker_path = os.path.join(folder, "b.sock")
        self.broker = FakeServer(self.broker_path, self._broker)
        self.worker = FakeServer(self.worker_path, self._worker)

    def _broker(self, method, params, send):
        del send
        if method == "lease.acquire":
            self.before_acquire()
            if self.refuse_acquire:
                return self.refuse_acquire.pop(0)
            self.leases += 1
            self.acquires.append(params)
            def of_lease(values):
                return values[min(self.leases, len(values)) - 1]
            arithmetic = of_lease(self.arithmetic)
            identity = of_lease(self.identities)
            announced = {"text_identity": identity} if identity else {}
            return {"lease": f"{self.leases}.1", "token": f"t{self.leases}", "address": self.worker_path,
                    "worker": "w1", "arithmetic": arithmetic, "deadline_boottime_ns": 1,
                    "ttl_ms": 300, "blocks": 64, "max_context": of_lease(self.contexts), **announced}
        return {"deadline_boottime_ns": 2} if method in ("lease.renew", "lease.hold") else {}

    def _worker(self, method, params, send):
        if method == "connection.authenticate" and self.refuse_tokens:
            self.refuse_tokens -= 1
            return Refusal("BadToken")
        if method == "request.submit":
            self.submissions += 1
            if not self.disturb(self.submissions, params, send):
                send_tokens(send, params["request_id"], len(params["emitted"]), len(TEXT))
                complete(send, params["request_id"], "MaxTokensReached")
            reply = {"request": params["request_id"], "prompt_tokens": 5}
            return dict(reply, adapter_digest="a" * 64) if "adapter" in params else reply
        if method == "request.resume":
            after = params.get("after_position")
            return self.resume(send, 0 if after is None else after + 1)
        if method == "request.cancel":
            self.cancelled.set()
        return {}

    def session(self, **options):
        return leasehold_client.Session("alice", self.broker_path, retry=FAST, **options)


def identity_of(digit, arithmetic="int8"):
    return f"sha256:{digit * 64}/{arithmetic}/f16/1"


def send_tokens(send, request, begin, end):
    for position in range(begin, end):
        token, text = TEXT[position]
        send("token.emitted", {"request": request, "token": token, "position": position, "text": text})


def complete(send, request, reason, **more):
    send("request.completed", {"request": request, "reason": reason, "emitted_tokens": 0, "scope": "",
                               "revoke_reason": "", "detail": "", "text": "", **more})
