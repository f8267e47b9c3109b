"""A host that computes nothing: it answers each request with as many events as the body has `max_tokens`.

Its events have the size and form of a worker's. It speaks a worker's form of continuable streams too
(tools/gateway/decide/host_stream.hpp), so leasehold-gateway and any other router can stand before it.

    python3 modelled_host.py NAME PAUSE_MS ADDRESS    # the address is HOST:PORT, and the port may be 0

Prints its address. A stream has an event each PAUSE_MS; 0: as fast as it is read. Needs Python 3.9 and no package.
"""

import asyncio
import contextlib
import json
import sys

MODEL = "modelled"
IDENTITY = "sha256:" + "1" * 64 + "/int8/f16/1"
WORDS = ("Once", " upon", " a", " time", " there", " was", " a", " little", " dog", ".")
GET_ANSWERS = {
    "/health": {"status": "ok"},
    "/get_model_info": {"model_path": MODEL, "tokenizer_path": MODEL, "is_generation": True},
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "test"}]},
}


def event(position):
    """The data of the event of a position."""
    word = WORDS[position % len(WORDS)]
    return ('data: {"choices":[{"delta":{"content":"%s"},"finish_reason":null,"index":0,"logprobs":null}],'
            '"created":1795939172,"id":"chatcmpl-req-7e810789387b","model":"modelled",'
            '"object":"chat.completion.chunk","at":%d}\n\n') % (word, position)


def chunk(text):
    return f"{len(text):x}\r\n{text}\r\n".encode()


class ModelledHost:
    def __init__(self, name, pause_ms):
        self.name, self.pause_s = name, pause_ms / 1000
        self.running = 0

    def report(self):
        return {"host": self.name, "models": [{"id": MODEL, "identity": IDENTITY}], "ready": True, "code": "",
                "running": self.running, "waiting": 0}

    async def serve(self, reader, writer):
        # Anything else than a request, such as the beginning of HTTP/2, ends its connection.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, IndexError, ValueError):
            while await self.serve_one(reader, writer):
                pass
        writer.close()

    async def serve_one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = {name.lower(): value.strip() for name, _, value in
                  (line.partition(":") for line in head.split("\r\n")[1:])}
        body = await self.read_body(reader, fields)
        target = head.split(" ")[1]
        if head.startswith("POST /v1/chat/completions "):
            await self.stream(writer, json.loads(body), "leasehold-stream" in fields)
        else:
            known = self.report() if target == "/leasehold/host" else GET_ANSWERS.get(target)
            answer = json.dumps(known or {})
            writer.write(f"HTTP/1.1 {'404 Not Found' if known is None else '200 OK'}\r\nContent-Type: application/json"
                         f"\r\nContent-Length: {len(answer)}\r\n\r\n{answer}".encode())
            await writer.drain()
        return fields.get("connection", "").lower() != "close"

    @staticmethod
    async def read_body(reader, fields):
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return await reader.readexactly(int(fields.get("content-length", 0)))
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body

    async def stream(self, writer, body, is_marked):
        self.running += 1
        try:
            await self.send_events(writer, body, is_marked)
        finally:
            self.running -= 1

    async def send_events(self, writer, body, is_marked):
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nLeasehold-Host: {self.name}\r\n"
                     f"Leasehold-Identity: {IDENTITY}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        known = len((body.get("emitted") or [[]])[0])
        due = asyncio.get_running_loop().time()
        for position in range(known, body.get("max_tokens") or body.get("max_completion_tokens") or 1):
            mark = f": t 0 {position} {position}\n\n" if is_marked else ""
            writer.write(chunk(event(position) + mark))
            await writer.drain()
            due += self.pause_s
            await asyncio.sleep(max(0, due - asyncio.get_running_loop().time()) if self.pause_s else 0)
        writer.write(chunk("data: [DONE]\n\n" + (": e\n\n" if is_marked else "")) + b"0\r\n\r\n")
        await writer.drain()


async def main(name, pause_ms, address):
    host, port = address.rsplit(":", 1)
    server = await asyncio.start_server(ModelledHost(name, int(pause_ms)).serve, host, int(port), backlog=2048)
    print("%s:%d" % server.sockets[0].getsockname()[:2], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
