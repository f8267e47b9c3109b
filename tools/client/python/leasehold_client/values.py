"""Values of the interface: tokens, leases, results and errors."""

from __future__ import annotations

import dataclasses
import os

RETRYABLE = frozenset({
    "BrokerLost", "ConnectionLost", "ConnectionRefused", "DeviceFault", "DiskFull", "Draining",
    "EngineDecodeFailed", "EngineLeaseFenced", "NoModelLoaded", "OutOfBlocks", "OutOfMemory",
    "PoolExhausted", "QueueFull", "QuotaConcurrent", "QuotaRequests", "QuotaTokens",
    "RebindRateLimited", "StaleGraph", "StillWritable", "TimedOut", "WeightsLoading",
})


class Error(Exception):
    """A typed failure. `code` is a name of common/errc.hpp, `scope` is tenant, engine or shared."""

    def __init__(self, code: str, detail: str, scope: str = "tenant", retry_after_s: float = 0.0) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.scope = scope
        self.retry_after_s = retry_after_s

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.code in RETRYABLE


@dataclasses.dataclass(frozen=True)
class Token:
    """One emitted token. `text` has whole characters and may be empty."""

    position: int
    id: int
    text: str
    logprob: float | None = None
    top_logprobs: tuple[tuple[int, float], ...] = ()  # (token id, logprob), most likely first


@dataclasses.dataclass(frozen=True)
class Completed:
    """How a text ended. `leases` are those that it ran under, in order. `text` follows the last
    token: it was withheld until no token could change it."""

    reason: str
    text: str
    emitted_tokens: int
    prompt_tokens: int
    leases: tuple[str, ...]
    unchecked: tuple[str, ...] = ()  # what a lenient JSON schema demands and the worker does not check
    cached_tokens: int = 0  # of the prompt, held by the prefix cache at the first admission
    embedding: tuple[float, ...] = ()  # of a prompt that was embedded; its length is 1


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

    def delay_s(self, setbacks: int) -> float:
        """The pause after this number of errors in a row without progress."""
        return min(self.first_delay_s * 2.0 ** min(setbacks, 20), self.max_delay_s)


def broker_path() -> str:
    """The broker's socket: $LEASEHOLD_BROKER, else $XDG_RUNTIME_DIR/leasehold/broker.sock, else
    /run/leasehold/broker.sock."""
    if named := os.environ.get("LEASEHOLD_BROKER"):
        return named
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return f"{runtime or '/run'}/leasehold/broker.sock"
