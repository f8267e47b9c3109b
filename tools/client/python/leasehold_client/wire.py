"""JSON-RPC 2.0, one object per line. Pure: turns bytes into messages and messages into bytes.

Source: ipc/control/messages.hpp. What a peer sends is input: it is a message or an Error.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
from collections.abc import Iterator
from typing import Any

from .values import Error, Lease

MAX_LINE_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Reply:
    """The answer to a call: its result, or its error."""

    call_id: object
    result: Any
    error: Error | None


@dataclasses.dataclass(frozen=True)
class Notification:
    """A message that wants no answer."""

    method: str
    params: Any


@dataclasses.dataclass(frozen=True)
class Answer:
    """A line to send: the peer called a method, and a client has none."""

    line: bytes


class Wire:
    """One connection's messages. `name` is the peer's address, for errors."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next_id = 0
        self._rest = b""  # bytes of a line that has not ended

    def call(self, method: str, params: object) -> tuple[int, bytes]:
        """The id of a new call, and the line to send. Raises MessageTooLarge."""
        self._next_id += 1
        return self._next_id, _line({"id": self._next_id, "method": method, "params": params})

    def receive(self, data: bytes) -> Iterator[Reply | Notification | Answer]:
        """The messages that `data` completes. Raises Error; the connection is then useless."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield self._message(line)
        if len(self._rest) > MAX_LINE_BYTES:
            raise Error("MessageTooLarge", f"{self._name} sent a line without an end")

    def _message(self, line: bytes) -> Reply | Notification | Answer:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise Error("MalformedMessage", f"{self._name} sent a line that is not an object")
        if "method" in message and "id" not in message:
            return Notification(str(message["method"]), message.get("params"))
        if "method" in message:
            refusal = {"code": -32601, "message": "no such method", "data": {"code": "UnknownMethod"}}
            return Answer(_line({"id": message["id"], "error": refusal}))
        error = _error_of(message["error"]) if "error" in message else None
        return Reply(message.get("id"), message.get("result"), error)


def _line(message: dict[str, Any]) -> bytes:
    line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise Error("MessageTooLarge", f"{len(line)} bytes, at most {MAX_LINE_BYTES}; send less")
    return line


def _error_of(error: Any) -> Error:
    data = error.get("data") if isinstance(error, dict) else None
    data = data if isinstance(data, dict) else {}
    after = data.get("retry_after_ms", 0)
    return Error(
        code=str(data.get("code") or "SystemError"),
        detail=str(error.get("message", "")) if isinstance(error, dict) else "",
        scope=str(data.get("scope") or "tenant"),
        retry_after_s=after / 1000 if isinstance(after, (int, float)) and after > 0 else 0.0,
    )


def _field(message: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    value = message.get(name) if isinstance(message, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Error("MalformedMessage", f"the peer's message lacks a valid field {name}")
    return value


def int_field(message: Any, name: str) -> int:
    """A field of a message from the peer. Raises MalformedMessage."""
    return int(_field(message, name, int))


def text_field(message: Any, name: str) -> str:
    """A field of a message from the peer. Raises MalformedMessage."""
    return str(_field(message, name, str))


def number_field(message: Any, name: str) -> float:
    """A field of a message from the peer. Raises MalformedMessage."""
    return float(_field(message, name, (int, float)))


def list_field(message: Any, name: str) -> list[Any]:
    """A field of a message from the peer; empty if it is missing. Raises MalformedMessage."""
    is_missing = isinstance(message, dict) and message.get(name) is None
    return [] if is_missing else list(_field(message, name, list))


def floats_field(message: Any, name: str) -> tuple[float, ...]:
    """The floats of a base64 text; none for a missing field. Raises MalformedMessage."""
    try:
        packed = base64.b64decode(message.get(name) or "", validate=True)
        return struct.unpack(f"<{len(packed) // 4}f", packed)
    except (ValueError, struct.error, TypeError) as error:
        raise Error("MalformedMessage", f"'{name}' is not the base64 of floats") from error


def lease_of(reply: Any) -> Lease:
    """The lease that the broker granted. Raises MalformedMessage."""
    return Lease(
        id=text_field(reply, "lease"),
        token=text_field(reply, "token"),
        address=text_field(reply, "address"),
        worker=text_field(reply, "worker"),
        arithmetic=text_field(reply, "arithmetic"),
        ttl_s=int_field(reply, "ttl_ms") / 1000,
        blocks=int_field(reply, "blocks"),
        deadline_boottime_ns=int_field(reply, "deadline_boottime_ns"),
        text_identity=text_field(reply, "text_identity") if "text_identity" in reply else "",
        max_context=int_field(reply, "max_context") if "max_context" in reply else 0,
    )
