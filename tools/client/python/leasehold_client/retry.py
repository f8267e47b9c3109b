"""Whether a text goes on after an error. Pure; the rules are those of ipc/client/retry_decision.hpp."""

from __future__ import annotations

from typing import Literal

from .values import Error

LEASE_ENDED = frozenset({"LeaseRevoked", "LeaseFenced", "StaleGeneration"})
# Refusals by a worker after which the lease is still good.
_LEASE_SURVIVES = frozenset({
    "BrokerLost", "OutOfBlocks", "PoolExhausted", "QueueFull", "QuotaBlocks", "QuotaConcurrent",
    "QuotaRequests", "QuotaAdapters", "QuotaTokens", "RebindRateLimited",
})
_ENGINE_RECOVERS = frozenset({"BrokerLost", "EngineDecodeFailed", "EngineLeaseFenced", "WeightsLoading"})


def decide_retry(error: Error, at_worker: bool, had_lease: bool,
                 names_worker: bool = False) -> Literal["fresh", "same"] | None:
    """The lease that the text goes on under; None: it ends.

    `at_worker`: a worker failed, not the broker. `had_lease`: a lease was granted before, so the
    broker's address is right. `names_worker`: no other worker will do.
    """
    if error.code in ("ConnectionRefused", "FileNotFound"):
        may_retry = at_worker or had_lease
    elif error.code == "MissingWeight":
        may_retry = at_worker and error.scope != "adapter"  # another worker may have its weights; the broker says when none has
    else:
        may_retry = error.retryable or error.code in LEASE_ENDED
        # The tenant's other leases hold its quota, or a broker that restarted does not know the
        # named worker yet.
        is_unknown_yet = names_worker and not at_worker and error.code == "UnknownWorker"
        passes = error.retry_after_s > 0 or is_unknown_yet
        may_retry = may_retry or (had_lease and passes)
    if not may_retry:
        return None
    if not at_worker:
        return "fresh"
    if error.scope in ("shared", "adapter") or (error.scope == "engine" and error.code in _ENGINE_RECOVERS):
        return "same"
    return "same" if error.code in _LEASE_SURVIVES else "fresh"
