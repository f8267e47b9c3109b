"""Holds one lease in an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from .connection import Connection
from .request import new_request_id
from .values import Error, Lease
from .wire import lease_of

_ACQUIRE_TIMEOUT_S = 30.0
_RECONNECT_DELAYS_S = (0.02, 0.05, 0.1, 0.2) + (0.5,) * 16


class LeaseHolder:
    """Acquires a lease and renews it at a third of its TTL, also over a restart of the broker."""

    def __init__(self, path: str, acquire: dict[str, Any]) -> None:
        self._path = path
        self._acquire = acquire  # parameters of lease.acquire, without request_id and replaces
        self._connecting = asyncio.Lock()
        self._broker: Connection | None = None
        self._broker_closed = asyncio.Event()
        self._is_closed = False
        self._keeper: asyncio.Task[None] | None = None  # of the lease
        self._live: Lease | None = None

    @property
    def lease(self) -> Lease | None:
        """The lease, unless it has ended as far as the holder knows."""
        return self._live

    async def acquire(self, replaces: str | None, offer: dict[str, Any]) -> Lease:
        """A fresh lease instead of the one held. `offer`: what its worker must offer."""
        params = {**self._acquire, **offer, "request_id": new_request_id()}
        if replaces:
            params["replaces"] = replaces
        broker = await self._connected()
        try:
            reply = await broker.call("lease.acquire", params, _ACQUIRE_TIMEOUT_S)
        except asyncio.CancelledError:
            broker.close()  # the broker ends the lease that was asked for
            raise
        except Error as error:
            if error.code == "UnknownLease" and replaces:  # the broker restarted without it
                return await self.acquire(None, offer)
            if error.code == "TimedOut":
                broker.close()  # the broker ends a lease that is granted too late
            raise
        lease = lease_of(reply)
        self._end()
        self._live = lease
        self._keeper = asyncio.create_task(self._keep(lease))
        return lease

    async def release(self) -> None:
        """Gives the lease up and ends the connection."""
        self._is_closed = True
        lease, broker = self._live, self._broker
        self._end()
        if lease and broker:
            try:
                await broker.call("lease.release", {"lease": lease.id, "request_id": new_request_id()})
            except Error:
                pass  # the lease may have ended; without a connection the broker ends it
        if broker:
            broker.close()

    async def _connected(self) -> Connection:
        async with self._connecting:
            if self._is_closed:
                raise Error("BadRequest", "the session is closed; open another one")
            if self._broker is None or not self._broker.is_open:
                opened = Connection(self._path, self._notified, lambda _: self._broker_closed.set())
                self._broker = await opened.open()
                self._broker_closed.clear()
                if self._is_closed:  # meanwhile
                    self._broker.close()
            return self._broker

    def _notified(self, method: str, params: Any) -> None:
        lease = self._live
        if method == "lease.revoked" and lease and isinstance(params, dict) and params.get("lease") == lease.id:
            self._end()

    def _end(self) -> None:
        """Forgets the lease and stops its renewal."""
        keeper, self._keeper, self._live = self._keeper, None, None
        if keeper and keeper is not asyncio.current_task():
            keeper.cancel()

    async def _keep(self, lease: Lease) -> None:
        """Renews the lease until it ends, which cancels the task."""
        interval_s = max(lease.ttl_s / 3, 0.05) if lease.ttl_s else None
        while self._live is lease:
            try:
                await asyncio.wait_for(self._broker_closed.wait(), interval_s)
                await self._hold_again(lease)
            except asyncio.TimeoutError:
                await self._renew(lease)

    async def _renew(self, lease: Lease) -> None:
        try:
            if self._broker:
                await self._broker.call("lease.renew", {"lease": lease.id, "request_id": new_request_id()})
        except Error as error:
            if not error.retryable:
                self._end()

    async def _hold_again(self, lease: Lease) -> None:
        """The broker may be restarting: claims the lease on a new connection."""
        claim = {"lease": lease.id, "token": lease.token}
        for delay_s in _RECONNECT_DELAYS_S:
            await asyncio.sleep(delay_s)
            try:
                broker = await self._connected()
                await broker.call("lease.hold", {**claim, "request_id": new_request_id()})
                return
            except Error as error:
                if not error.retryable and error.code != "FileNotFound":
                    break
        self._end()
