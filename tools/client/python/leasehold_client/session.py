"""The client for programs without an event loop: an AsyncSession on a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Coroutine, Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .aio import AsyncSession, AsyncTokenStream
from .request import EmbeddingOptions, TextOptions
from .values import Completed, Error, Lease, RetryPolicy, Token

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_Value = TypeVar("_Value")


class _LoopThread:
    """An event loop on a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="leasehold", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _Value]) -> Any:
        """A concurrent.futures.Future of what the coroutine returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        """What the coroutine returns."""
        value: _Value = self.start(work).result()
        return value

    def stop(self) -> None:
        """Cancels what still runs there, and ends the thread."""
        self.run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


class TokenStream(Iterator[Token]):
    """The tokens of one text. Afterwards `result` says how it ended. close() cancels the request, and
    so does forgetting the object."""

    def __init__(self, tokens: Generator[Token, None, None], stream: AsyncTokenStream) -> None:
        self._tokens = tokens
        self._stream = stream

    @property
    def request_id(self) -> str:
        return self._stream.request_id

    @property
    def result(self) -> Completed | None:
        return self._stream.result

    def __next__(self) -> Token:
        """Raises Error, StopIteration."""
        return next(self._tokens)

    def close(self) -> None:
        """Cancels the request, unless the text has ended."""
        self._tokens.close()

    def text(self) -> str:
        """The rest of the text, with what follows its last token. Raises Error."""
        parts = [token.text for token in self]
        return "".join(parts) + (self.result.text if self.result else "")


class Session:
    """A tenant's session with a broker. Use it as a context manager, or call close().

    The parameters are those of AsyncSession. Texts of one session may run at the same time, in
    several threads, under its one lease.
    """

    def __init__(self, tenant: str, broker: str | None = None, *, worker: str | None = None, blocks: int = 0,
                 api_key: str | None = None, rebind: bool = True, any_arithmetic: bool = False,
                 retry: RetryPolicy = RetryPolicy(), model: str | None = None,
                 rebind_timeout_s: float = 600.0) -> None:
        self._session = AsyncSession(
            tenant, broker, worker=worker, blocks=blocks, api_key=api_key, rebind=rebind,
            any_arithmetic=any_arithmetic, retry=retry, model=model, rebind_timeout_s=rebind_timeout_s)
        self._last: AsyncTokenStream | None = None
        self._changing = threading.Lock()
        self._is_closed = False
        self._thread: _LoopThread | None = None  # from the first text on: it would not survive a fork

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the lease. Texts that still run end with an error."""
        with self._changing:
            self._is_closed = True
            thread, self._thread = self._thread, None
        if thread:
            thread.run(self._session.aclose())
            thread.stop()

    @property
    def lease(self) -> Lease | None:
        """The lease held now, or None."""
        return self._session.lease

    @property
    def result(self) -> Completed | None:
        """How the text that was begun last ended; None while it runs, and when it failed."""
        return self._last.result if self._last else None

    def generate(self, prompt: str | None = None, **options: Unpack[TextOptions]) -> TokenStream:
        """The tokens of a text; TextOptions has the options. Raises BadRequest."""
        stream = self._session.generate(prompt, **options)
        thread = self._started()
        self._last = stream
        return TokenStream(_tokens(thread, stream), stream)

    def text(self, prompt: str | None = None, **options: Unpack[TextOptions]) -> str:
        """The whole text of `generate`, with what follows its last token. Raises Error."""
        return self.generate(prompt, **options).text()

    def embed(self, prompt: str | None = None, **options: Unpack[EmbeddingOptions]) -> list[float]:
        """The embedding of a prompt; EmbeddingOptions has the options. Raises Error."""
        return self._started().run(self._session.embed(prompt, **options))

    def _started(self) -> _LoopThread:
        """The thread of the session. Raises BadRequest once it is closed."""
        with self._changing:
            if self._is_closed:
                raise Error("BadRequest", "the session is closed; open another one")
            self._thread = self._thread or _LoopThread()
            return self._thread


def _tokens(thread: _LoopThread, stream: AsyncTokenStream) -> Generator[Token, None, None]:
    """The stream's tokens, for another thread than the loop's."""
    arrived: queue.SimpleQueue[Token | BaseException | None] = queue.SimpleQueue()
    pumping = thread.start(_pump(stream, arrived))
    event: Token | BaseException | None = None
    try:
        while isinstance(event := arrived.get(), Token):
            yield event
    finally:
        pumping.cancel()
        while isinstance(event, Token):  # left early: wait until the request is cancelled
            event = arrived.get()
    if event is not None:
        raise event


async def _pump(stream: AsyncTokenStream, arrived: queue.SimpleQueue[Token | BaseException | None]) -> None:
    """Puts the tokens and, last, None or the error."""
    end: BaseException | None = None
    try:
        async for token in stream:
            arrived.put(token)
    except asyncio.CancelledError:
        end = Error("BadRequest", "the session is closed; open another one")
    except BaseException as error:  # its reader gets it
        end = error
    finally:
        arrived.put(end)
