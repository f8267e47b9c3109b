"""The client for programs with an event loop. Decisions are those of Text."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

from .connection import Connection
from .holder import LeaseHolder
from .request import EmbeddingOptions, Request, TextOptions, embedding_request_of, request_of
from .text import Text, TextPolicy
from .values import Completed, Error, Lease, RetryPolicy, Token, broker_path

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_CANCEL_TIMEOUT_S = 2.0
_SUBMIT_TIMEOUT_S = 600.0  # the engine replies between two steps


async def pause(delay_s: float) -> None:
    """Waits before an attempt."""
    await asyncio.sleep(delay_s)


class _Stream:
    """One request on a connection to a worker: its notifications, in order, and its end."""

    def __init__(self, lease: Lease) -> None:
        self._events: asyncio.Queue[tuple[str, Any] | Error] = asyncio.Queue()
        self._worker = Connection(lease.address, self._notified, self._events.put_nowait)

    async def begin(self, text: Text, lease: Lease) -> Any:
        """The worker's reply to the request. Raises Error."""
        await self._worker.open()
        await self._worker.call("connection.authenticate", {"token": lease.token})
        if text.resume:
            try:
                return await self._worker.call("request.resume", text.resume_request(), _SUBMIT_TIMEOUT_S)
            except Error as error:
                # BadRequest: the worker has less of the text than was delivered.
                if error.code not in ("UnknownRequest", "BadRequest"):
                    raise
        return await self._worker.call("request.submit", text.request_under(lease), _SUBMIT_TIMEOUT_S)

    async def next(self) -> tuple[str, Any]:
        """Method and parameters of the next notification. Raises ConnectionLost."""
        event = await self._events.get()
        if isinstance(event, Error):
            raise Error("ConnectionLost", event.detail)
        return event

    async def cancel(self, request: Request) -> None:
        """Cancels the request; returns when the worker has ended it, or after two seconds."""
        try:
            await self._worker.call("request.cancel", {"request_id": request["request_id"]}, _CANCEL_TIMEOUT_S)
        except Error:
            pass  # it is over already, or the worker is gone

    def close(self) -> None:
        self._worker.close()

    def _notified(self, method: str, params: Any) -> None:
        if method in ("token.emitted", "request.completed"):
            self._events.put_nowait((method, params))


class AsyncTokenStream(AsyncIterator[Token]):
    """The tokens of one text. Afterwards `result` says how it ended.

    The request is cancelled when the task that awaits a token is cancelled, and by aclose().
    """

    def __init__(self, session: AsyncSession, request: Request, text: Text) -> None:
        self.request_id: str = request["request_id"]
        self.result: Completed | None = None
        self._tokens = session._run(text, self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Token:
        """Raises Error, StopAsyncIteration."""
        return await self._tokens.__anext__()

    async def aclose(self) -> None:
        """Cancels the request, unless the text has ended. Only while no task awaits a token."""
        await self._tokens.aclose()

    async def text(self) -> str:
        """The rest of the text, with what follows its last token. Raises Error."""
        parts = [token.text async for token in self]
        return "".join(parts) + (self.result.text if self.result else "")


class AsyncSession:
    """A tenant's session with a broker. Use it as an asynchronous context manager, or call aclose().

    tenant: an admitted tenant. broker: the broker's socket; None: broker_path(). worker: a worker's
    name; None: any. model: what new texts are generated with, as a worker names it or as "sha256:"
    and 8 digits of its content; None: what every ready worker serves. blocks: KV blocks of 16
    tokens; 0: one extent's worth. api_key: acts for the tenant whatever user this process has.
    rebind: continue a text after its lease ended. any_arithmetic: also on a worker whose tokens may
    differ. rebind_timeout_s: how long a text that has begun waits in turn for its next lease when
    memory is short.

    Texts of one session run at the same time under its one lease. Threads: one event loop.
    """

    def __init__(self, tenant: str, broker: str | None = None, *, worker: str | None = None, blocks: int = 0,
                 api_key: str | None = None, rebind: bool = True, any_arithmetic: bool = False,
                 retry: RetryPolicy = RetryPolicy(), model: str | None = None,
                 rebind_timeout_s: float = 600.0) -> None:
        acquire: dict[str, Any] = {"tenant": tenant, "blocks": blocks, "ttl_ms": 0}
        named = {"worker": worker, "model": model, "api_key": api_key}
        acquire.update({name: value for name, value in named.items() if value is not None})
        self._holder = LeaseHolder(broker or broker_path(), acquire)
        self._acquiring = asyncio.Lock()
        self._policy = TextPolicy(rebind, any_arithmetic, worker is not None, rebind_timeout_s, retry)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Releases the lease. Texts that still run end with an error."""
        await self._holder.release()

    @property
    def lease(self) -> Lease | None:
        """The lease held now, or None."""
        return self._holder.lease

    def generate(self, prompt: str | None = None, **options: Unpack[TextOptions]) -> AsyncTokenStream:
        """The tokens of a text; TextOptions has the options. Raises BadRequest."""
        request = request_of(prompt, options)
        return AsyncTokenStream(self, request, Text(request, self._policy, options.get("text_identity", "")))

    async def text(self, prompt: str | None = None, **options: Unpack[TextOptions]) -> str:
        """The whole text of `generate`, with what follows its last token. Raises Error."""
        return await self.generate(prompt, **options).text()

    async def embed(self, prompt: str | None = None, **options: Unpack[EmbeddingOptions]) -> list[float]:
        """The embedding of a prompt; EmbeddingOptions has the options. Raises Error."""
        request = embedding_request_of(prompt, options)
        stream = AsyncTokenStream(self, request, Text(request, self._policy))
        async for _ in stream:
            pass  # an embedding has no tokens
        assert stream.result
        return list(stream.result.embedding)

    async def _run(self, text: Text, stream: AsyncTokenStream) -> AsyncGenerator[Token, None]:
        """Tokens over as many leases as the text needs; then sets the stream's result."""
        while stream.result is None:
            at_worker = False
            try:
                lease = await self._lease_for(text)
                at_worker = True
                async with contextlib.aclosing(self._events(text, lease)) as events:
                    async for event in events:
                        if isinstance(event, Completed):
                            stream.result = event
                        else:
                            yield event
            except Error as error:
                await pause(text.pause_after(error, at_worker, self._holder.lease is not None, time.monotonic()))

    async def _lease_for(self, text: Text) -> Lease:
        async with self._acquiring:
            lease = self._holder.lease
            # Another text of this session may have replaced the lease already.
            if lease is None or (text.wants_fresh and lease is text.tried_lease):
                lease = await self._holder.acquire(text.lease.id if text.lease else None, text.offer())
            if lease is not text.tried_lease:
                text.resume = False
        text.admit(lease)
        return lease

    @staticmethod
    async def _events(text: Text, lease: Lease) -> AsyncGenerator[Token | Completed, None]:
        """One request. Leaving it early, other than by an error, cancels the request."""
        stream = _Stream(lease)
        try:
            text.began_under(lease, await stream.begin(text, lease), time.monotonic())
            while True:
                method, params = await stream.next()
                event = text.take(method, params, time.monotonic())
                yield event
                if isinstance(event, Completed):
                    return
        except Error:
            raise
        except BaseException:  # the iterator was closed, or its task cancelled
            await stream.cancel(text.request)
            raise
        finally:
            stream.close()
