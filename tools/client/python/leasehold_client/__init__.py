"""Generates text under revocable leases: a client of a Leasehold broker and its workers.

    import leasehold_client

    with leasehold_client.Session("alice") as session:
        for token in session.generate("Once upon a time", max_tokens=100):
            print(token.text, end="", flush=True)

    async with leasehold_client.AsyncSession("alice") as session:
        async for token in session.generate("Once upon a time", max_tokens=100):
            print(token.text, end="", flush=True)

A session holds one lease and renews it in the background. When the lease is revoked, when the
worker dies or when a connection breaks, it continues the text where it stopped: on a new lease, or
with `resumable` at the worker that still has the stream. Every position is delivered once.

Wire format: JSON-RPC 2.0, one object per line, on Unix sockets (ipc/control/messages.hpp).
Errors: `Error` with a code of common/errc.hpp. Needs Python 3.10 and Linux, and nothing else.
"""

from .aio import AsyncSession, AsyncTokenStream
from .request import EmbeddingOptions, Sampling, TextOptions
from .session import Session, TokenStream
from .values import Completed, Error, Lease, RetryPolicy, Token, broker_path

__version__ = "0.1.0"
__all__ = [
    "AsyncSession", "AsyncTokenStream", "Completed", "EmbeddingOptions", "Error", "Lease", "RetryPolicy", "Sampling",
    "Session", "TextOptions", "Token", "TokenStream", "broker_path",
]
