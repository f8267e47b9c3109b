"""One text over all its leases: what it has, what comes next. Pure; time is an argument."""

from __future__ import annotations

import dataclasses
from typing import Any

from .request import Request
from .retry import LEASE_ENDED, decide_retry
from .values import Completed, Error, Lease, RetryPolicy, Token
from .wire import floats_field, int_field, list_field, number_field, text_field

_NORMAL_ENDS = frozenset({"EndOfSequence", "MaxTokensReached", "ContextFull", "StopSequence", "Cancelled"})
_CODE_OF_REASON = {
    "Revoked": "LeaseRevoked", "DeadlineExceeded": "TimedOut", "EngineError": "EngineDecodeFailed",
}


@dataclasses.dataclass(frozen=True)
class TextPolicy:
    """What a session does for its texts. See Session."""

    rebind: bool = True
    any_arithmetic: bool = False
    names_worker: bool = False
    rebind_timeout_s: float = 600.0
    retry: RetryPolicy = RetryPolicy()


class Text:
    """The state of one text."""

    def __init__(self, request: Request, policy: TextPolicy, text_identity: str = "") -> None:
        self.request = request
        self.lease: Lease | None = None  # of the last submission that a worker accepted
        self.tried_lease: Lease | None = None  # of the last attempt at a worker
        self.wants_fresh = False  # go on under another lease than `tried_lease`
        self.resume = False  # ask the worker for the rest of its stream
        self.failures = 0  # in a row, without a token
        self.setbacks = 0  # in a row, without progress
        self._policy = policy
        self._identity = text_identity  # "": not known
        self._min_context = 0
        self._prompt_tokens = 0
        self._cached_tokens: int | None = None  # of the first submission that reported them
        self._unchecked: tuple[str, ...] = ()
        self._leases: list[str] = []
        self._accepted_at_s = 0.0
        self._interrupted_at_s: float | None = None
        self._tokens = 0  # since a worker last accepted the text
        self._token_refused = False  # since a worker last accepted the text
        self._is_final = False

    def request_under(self, lease: Lease) -> Request:
        """What `request.submit` gets."""
        request = dict(self.request, token=lease.token)
        if not request["emitted"]:
            request.pop("adapter_digest", None)  # any version of the adapter may begin the text
        if self.lease is not None and self.lease.id != lease.id:
            request["rebound_from"] = self.lease.id
        return request

    def resume_request(self) -> Request:
        """What `request.resume` gets."""
        request: Request = {"request_id": self.request["request_id"]}
        if self.request["emitted"]:
            request["after_position"] = len(self.request["emitted"]) - 1
        return request

    def offer(self) -> dict[str, Any]:
        """What a worker must offer so that the text continues there, as lease.acquire names it."""
        offer: dict[str, Any] = {"min_context": self._min_context} if self._min_context else {}
        if not self._identity:
            return offer
        if self.request["emitted"] and not self._policy.any_arithmetic:
            return dict(offer, text_identity=self._identity)
        return dict(offer, model=_content(self._identity))

    def admit(self, lease: Lease) -> None:
        """Raises the error of a text that cannot go on under this lease. Brokers of an earlier
        version grant any."""
        self.tried_lease = lease
        self.wants_fresh = False
        if refused := self._refusal_of(lease):
            self._is_final = True
            raise refused

    def began_under(self, lease: Lease, reply: Any, now_s: float) -> None:
        """A worker accepted the text with this reply."""
        self._prompt_tokens = int_field(reply, "prompt_tokens")
        self._unchecked = tuple(str(rule) for rule in list_field(reply, "unchecked"))
        self._identity = lease.text_identity or self._identity
        if digest := reply.get("adapter_digest"):
            self.request["adapter_digest"] = digest
        # A text that is longer than the context ends where that is full.
        most = self._prompt_tokens + int(self.request["max_emitted_tokens"])
        self._min_context = min(most, lease.max_context)
        if self.lease is None or lease.id != self.lease.id:
            self._leases.append(lease.id)
        self.lease = lease
        self.resume = False
        self._token_refused = False
        self._interrupted_at_s = None
        self._accepted_at_s = now_s
        self._tokens = 0

    def take(self, method: str, params: Any, now_s: float) -> Token | Completed:
        """The next token, or the end of the text. Raises the error that ended the request."""
        return self._token(params, now_s) if method == "token.emitted" else self._completed(params)

    def pause_after(self, error: Error, at_worker: bool, lease_is_live: bool, now_s: float) -> float:
        """Seconds to wait before the next attempt, under `wants_fresh` and `resume`. Raises the
        error of a text that has ended."""
        # The successor of a dead worker refuses its leases' tokens, but so does a worker of another broker.
        if at_worker and error.code == "BadToken" and not self._token_refused:
            self._token_refused = True
            error = Error("LeaseFenced", f"the lease ended with its worker; another one answers there: {error.detail}")
        policy = self._policy
        decision = decide_retry(error, at_worker, self.lease is not None, policy.names_worker)
        # An adapter's lease that ends again before a token arrived ends the text.
        attempts_end = self.failures >= (1 if error.scope == "adapter" else policy.retry.max_attempts)
        if self._is_final or decision is None or not policy.rebind or attempts_end:
            raise error
        if self.lease is not None and self._waited_s(now_s) >= policy.rebind_timeout_s:
            raise Error(error.code, f"{error.detail} (given up after {policy.rebind_timeout_s:g} s)", error.scope)
        # A worker that only lost this connection may still have the stream.
        self.resume = at_worker and bool(self.request.get("resumable")) and error.code == "ConnectionLost"
        self.wants_fresh = decision == "fresh" and not (self.resume and lease_is_live)
        # The broker prepares memory or awaits a worker, for a bounded time, and says when to ask.
        is_preparing = not at_worker and error.retry_after_s > 0 and error.code in ("PoolExhausted", "NoModelLoaded")
        at_once = is_preparing or (error.code in LEASE_ENDED and self.setbacks == 0)
        delay_s = max(0.0 if at_once else policy.retry.delay_s(self.setbacks), error.retry_after_s)
        # A refusal that says when to retry is not a failure: a session that obeys does not give up.
        self.failures += error.retry_after_s == 0
        self.setbacks += 1
        return delay_s

    def _refusal_of(self, lease: Lease) -> Error | None:
        if lease.max_context and lease.max_context < self._min_context:
            return Error("PromptTooLong", f"the text needs {self._min_context} tokens of context, and worker "
                         f"{lease.worker} holds {lease.max_context}; name another worker")
        if not self.request["emitted"]:
            return None
        any_arithmetic = self._policy.any_arithmetic
        if self._identity and lease.text_identity:
            same = _content if any_arithmetic else str
            if same(self._identity) == same(lease.text_identity):
                return None
            return Error("UnknownWorker", f"the text began on {self._identity}, and worker {lease.worker} computes "
                         f"{lease.text_identity}; name another worker, or set any_arithmetic for equal content")
        if self.lease is None or lease.arithmetic == self.lease.arithmetic or any_arithmetic:
            return None
        return Error("UnsupportedModel", f"the text began in {self.lease.arithmetic} arithmetic, and worker "
                     f"{lease.worker} computes in {lease.arithmetic}; set any_arithmetic to continue there")

    def _token(self, message: Any, now_s: float) -> Token:
        position = int_field(message, "position")
        expected = len(self.request["emitted"])
        if position != expected:
            self._is_final = True
            raise Error("MalformedMessage", f"the worker sent position {position}, expected {expected}")
        logprob = message.get("logprob")
        token = Token(position, int_field(message, "token"), text_field(message, "text"),
                      None if logprob is None else number_field(message, "logprob"),
                      tuple((int_field(likely, "token"), number_field(likely, "logprob"))
                            for likely in list_field(message, "top_logprobs")))
        self.request["emitted"].append(token.id)
        self.failures = 0
        self._tokens += 1
        progress = self._policy.retry
        if self._tokens >= progress.progress_tokens or now_s - self._accepted_at_s >= progress.progress_time_s:
            self.setbacks = 0
        return token

    def _completed(self, message: Any) -> Completed:
        reason = text_field(message, "reason")
        emitted_tokens = len(self.request["emitted"])
        if self._cached_tokens is None and "cached_tokens" in message:
            self._cached_tokens = int_field(message, "cached_tokens")
        if reason in _NORMAL_ENDS:
            return Completed(reason, str(message.get("text") or ""), emitted_tokens, self._prompt_tokens,
                             tuple(self._leases), self._unchecked, self._cached_tokens or 0,
                             floats_field(message, "embedding"))
        scope = str(message.get("scope") or "tenant")
        code = _CODE_OF_REASON.get(reason, reason)
        # TimedOut is retryable for a call; the deadline of a request that has passed is final.
        self._is_final = self._is_final or code == "TimedOut"
        detail = f"the request ended with {reason} ({scope} scope) after {emitted_tokens} tokens"
        if message.get("detail"):
            detail += f": {message['detail']}"
        after_ms = number_field(message, "retry_after_ms") if "retry_after_ms" in message else 0.0
        raise Error(code, detail, scope, after_ms / 1000)

    def _waited_s(self, now_s: float) -> float:
        """Seconds since the text was interrupted; the first call begins the count."""
        if self._interrupted_at_s is None:
            self._interrupted_at_s = now_s
        return now_s - self._interrupted_at_s


def _content(text_identity: str) -> str:
    """The part that identifies the model's files: "sha256:…"."""
    return text_identity.partition("/")[0]
