"""A JSON-RPC connection in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .values import Error
from .wire import Answer, Notification, Reply, Wire

if TYPE_CHECKING:
    from typing_extensions import Self

CALL_TIMEOUT_S = 10.0
_READ_BYTES = 1 << 16


class Connection:
    """A JSON-RPC connection. `on_notification(method, params)` and `on_closed(error)`, called once,
    run in the event loop and do not wait."""

    def __init__(self, path: str, on_notification: Callable[[str, Any], None],
                 on_closed: Callable[[Error], None]) -> None:
        self._path = path
        self._on_notification = on_notification
        self._on_closed = on_closed
        self._wire = Wire(path)
        self._replies: dict[object, asyncio.Future[Reply]] = {}
        self._error: Error | None = None  # once closed
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> Self:
        """Connects. Raises FileNotFound, ConnectionRefused, SystemError."""
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._path)
        except FileNotFoundError as error:
            raise Error("FileNotFound", f"no socket at {self._path}; check that the program runs") from error
        except OSError as error:
            code = "ConnectionRefused" if isinstance(error, ConnectionRefusedError) else "SystemError"
            raise Error(code, f"cannot connect to {self._path}: {error.strerror}") from error
        self._reading = asyncio.create_task(self._read(reader))
        return self

    @property
    def is_open(self) -> bool:
        return self._error is None

    async def call(self, method: str, params: object, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """The result of a call. Raises Error."""
        if self._error:
            raise self._error
        call_id, line = self._wire.call(method, params)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        late = Error("TimedOut", f"{self._path} did not answer {method} in {timeout_s:g} s")
        # Not asyncio.wait_for: until Python 3.12 it loses a cancellation that meets the reply.
        timer = loop.call_later(timeout_s, _fail_future, future, late)
        self._replies[call_id] = future
        try:
            self._send(line)
            reply = await future
        finally:
            timer.cancel()
            del self._replies[call_id]
        if reply.error:
            raise reply.error
        return reply.result

    def close(self) -> None:
        """Ends the connection. Calls that wait raise ConnectionLost."""
        self._fail(Error("ConnectionLost", f"the connection to {self._path} was closed"))

    def _send(self, line: bytes) -> None:
        if self._writer:
            self._writer.write(line)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        error = Error("ConnectionLost", f"{self._path} closed the connection")
        try:
            while data := await reader.read(_READ_BYTES):
                for message in self._wire.receive(data):
                    self._take(message)
        except OSError:
            pass  # the peer closed it with bytes unread
        except Error as malformed:
            error = malformed
        self._fail(error)

    def _take(self, message: Reply | Notification | Answer) -> None:
        if isinstance(message, Answer):
            self._send(message.line)
        elif isinstance(message, Notification):
            self._on_notification(message.method, message.params)
        elif (future := self._replies.get(message.call_id)) and not future.done():
            future.set_result(message)

    def _fail(self, error: Error) -> None:
        if self._error:
            return
        self._error = error
        if self._reading and self._writer:
            self._reading.cancel()
            self._writer.close()
        for future in self._replies.values():
            _fail_future(future, error)
        self._on_closed(error)


def _fail_future(future: asyncio.Future[Reply], error: Error) -> None:
    if not future.done():
        future.set_exception(error)
