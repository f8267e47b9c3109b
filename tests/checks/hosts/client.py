"""Clients that read many texts at the same time, and the judge of what they read.

One thread serves all clients, so that the time of an event is the time at which it arrived. Requests are HTTP/1.0:
an answer ends with its connection, and is whole if its own end was read. Needs Python 3.9 and no package.
"""

import json
import re
import selectors
import time

import cell

READ_BYTES = 1 << 16
POLL_S = 0.01
EVENTS_AROUND_PAUSE = 6
IDS = re.compile(rb'"((?:chatcmpl|cmpl|resp|msg|rs|call|fc|toolu|item)[-_][0-9A-Za-z_-]+)"')
TIMES = re.compile(rb'"((?:created|completed)(?:_at)?)":(\d+)')
# What a host's cache saved. Anthropic's input tokens are those that were not cached.
CACHED = re.compile(rb'"(cached_tokens|cache_read_input_tokens|input_tokens)":\d+')
CHOICE = re.compile(rb'"index":(\d+)')
ENDINGS = (b"[DONE]", b'{"type":"message_stop"', b'{"type":"response.completed"', b'{"type":"response.incomplete"',
           b'{"response":{')
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer"},
                                           "friends": {"type": "array", "items": {"type": "string", "maxLength": 12},
                                                       "minItems": 3, "maxItems": 5}},
          "required": ["name", "age", "friends"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "remember", "parameters": SCHEMA}}
THINGS = ("a dog", "the sea", "a red ball", "two friends", "a lost key", "the moon", "a small house", "a kind bear")

# What is added to a request for a chat of each kind.
KINDS = {
    "greedy": {"temperature": 0, "ignore_eos": True},
    "sampled": {"temperature": 0.8, "ignore_eos": True},
    "schema": {"temperature": 0.8,
               "response_format": {"type": "json_schema",
                                   "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}},
    "tools": {"temperature": 0.8, "tools": [TOOL],
              "tool_choice": {"type": "function", "function": {"name": "remember"}}},
    "choices": {"temperature": 0.8, "n": 3, "ignore_eos": True},
    "logprobs": {"temperature": 0.8, "logprobs": True, "top_logprobs": 3, "ignore_eos": True},
}


# Requests of other forms.
FORMS = {
    "document": ("/v1/chat/completions", {"temperature": 0.8, "stream": False}),
    "responses": ("/v1/responses", {"temperature": 0.8}),
    "messages": ("/v1/messages", {"temperature": 0.8}),
}


def chat(kind, number, model, tokens, **more):
    """The body of a request of a kind. Equal numbers have equal prompts and seeds."""
    return {"model": model, "messages": [{"role": "user", "content": prompt_of(number)}], "max_tokens": tokens,
            "seed": number, "stream": True, **KINDS[kind], **more}


def request(kind, number, model, tokens, **more):
    """(path, body) of a request of a kind or form."""
    if kind in KINDS:
        return "/v1/chat/completions", chat(kind, number, model, tokens, **more)
    target, fields = FORMS[kind]
    body = {"model": model, "seed": number, "stream": True, **fields, **more}
    if kind == "responses":
        return target, {**body, "input": prompt_of(number), "max_output_tokens": tokens}
    return target, {**body, "messages": [{"role": "user", "content": prompt_of(number)}], "max_tokens": tokens}


def prompt_of(number):
    return f"Tell story {number} of {THINGS[number % len(THINGS)]}."


class Answer:
    """A request and what its client has read so far."""

    def __init__(self, address, key, body, target="/v1/chat/completions", fields=()):
        text = json.dumps(body)
        lines = [f"POST {target} HTTP/1.0", "Host: localhost", f"Authorization: Bearer {key}",
                 "Content-Type: application/json", f"Content-Length: {len(text)}", *fields]
        self.body = body
        self.status, self.fields = None, {}
        self.events, self.times = [], []  # the data of each event, and when it was read
        self.last_id = None  # of an event
        self.document = b""  # of an answer without a stream
        self.is_ended = False
        self.unread = b""
        self.sent = time.monotonic()
        self.peer = cell.connect(address)
        self.peer.sendall(("\r\n".join(lines) + "\r\n\r\n" + text).encode())
        self.peer.setblocking(False)

    def read(self):
        """Takes what has arrived."""
        try:
            piece = self.peer.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self.close()
            return
        now = time.monotonic()
        self.unread += piece
        if self.status is None:
            head, end, rest = self.unread.partition(b"\r\n\r\n")
            if not end:
                return
            lines = head.decode().split("\r\n")
            self.status, self.unread = int(lines[0].split()[1]), rest
            pairs = [line.partition(":") for line in lines[1:]]
            self.fields = {name.lower(): value.strip() for name, _, value in pairs}
        if not self.is_stream():
            self.document += self.unread
            self.unread = b""
            return
        *blocks, self.unread = self.unread.split(b"\n\n")
        for block in blocks:
            for line in block.split(b"\n"):
                if line.startswith(b"data: "):
                    self.events.append(line[len(b"data: "):])
                    self.times.append(now)
                elif line.startswith(b"id: "):
                    self.last_id = line[len(b"id: "):].decode()

    def is_stream(self):
        return self.fields.get("content-type", "").startswith("text/event-stream")

    def close(self):
        self.is_ended = True
        self.peer.close()

    def is_whole(self):
        if self.is_stream():
            return bool(self.events) and self.events[-1].startswith(ENDINGS)
        return self.status == 200 and len(self.document) == int(self.fields.get("content-length", -1))

    def host(self):
        """The name of the host that began the answer."""
        return self.fields.get("leasehold-host")

    def pause_after(self, moment):
        """Seconds from `moment` to the event that ended the pause behind it; None without one. Events that were on
        their way at `moment` come before the pause, so it is the longest of the first ones."""
        times = [one for one in self.times if one > moment][:EVENTS_AROUND_PAUSE]
        pauses = [(end - begin, end - moment) for begin, end in zip([moment, *times], times)]
        return max(pauses)[1] if pauses else None

    def longest_gap(self, since=0.0):
        times = [one for one in self.times if one >= since]
        return max((end - begin for begin, end in zip(times, times[1:])), default=None)


class Readers:
    """Reads the answers that were opened with it."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.open_answers = 0

    def open(self, *arguments, **more):
        answer = Answer(*arguments, **more)
        self.selector.register(answer.peer, selectors.EVENT_READ, answer)
        self.open_answers += 1
        return answer

    def close(self, answer):
        """The client leaves."""
        if not answer.is_ended:
            self.selector.unregister(answer.peer)
            self.open_answers -= 1
            answer.close()

    def run(self, until=lambda: False, timeout_s=60.0):
        """Reads until it holds or all answers have ended. Returns whether that came in time."""
        deadline = time.monotonic() + timeout_s
        while not until() and self.open_answers:
            for key, _ in self.selector.select(POLL_S):
                peer = key.fileobj
                number = peer.fileno()
                key.data.read()
                if key.data.is_ended:
                    self.selector.unregister(number if peer.fileno() < 0 else peer)
                    self.open_answers -= 1
            if time.monotonic() > deadline:
                return False
        return True


def without_ids(data):
    """The bytes with each id replaced by its number in the order of appearance, and by 0 the times and what a cache
    saved."""
    known = {}
    data = CACHED.sub(lambda found: b'"' + found[1] + b'":0', data)
    data = IDS.sub(lambda found: b'"id%d"' % known.setdefault(found[1], len(known)), data)
    return TIMES.sub(lambda found: b'"' + found[1] + b'":0', data)


def by_choice(events):
    """The events of each choice, joined. Choices are sampled side by side, so only the order within one is fixed."""
    joined = {}
    for event in events:
        found = CHOICE.search(event)
        joined.setdefault(int(found[1]) if found and b'"choices":[{' in event else -1, []).append(event)
    return {choice: b"\n".join(some) for choice, some in joined.items()}


def fault_of(calm, seen):
    """None if the client read the same answer as in the undisturbed run; else what differs."""
    if seen.status != calm.status:
        return f"status {seen.status} instead of {calm.status}: {(seen.document or b'').decode()[:200]}"
    if not seen.is_whole():
        end = seen.events[-1:] or [seen.document[-200:]]
        return f"the answer ends after {len(seen.events)} of {len(calm.events)} events with {end[0].decode()[:200]}"
    read = b"\n".join(seen.events) if seen.is_stream() else seen.document
    for name in (b"created", b"created_at"):
        times = {value for field, value in TIMES.findall(read) if field == name}
        if len(times) > 1:
            return f"{name.decode()} has the values {sorted(times)}"
    if len(set(IDS.findall(read))) != len(set(IDS.findall(b"\n".join(calm.events) or calm.document))):
        return f"the ids are {sorted(set(IDS.findall(read)))}"
    if not seen.is_stream():
        return None if without_ids(read) == without_ids(calm.document) else "the answer is another one"
    wanted, got = (by_choice(without_ids(b"\n".join(one.events)).split(b"\n")) for one in (calm, seen))
    for choice in sorted(wanted.keys() | got.keys()):
        if wanted.get(choice) != got.get(choice):
            return f"choice {choice} has other events: {difference(wanted.get(choice, b''), got.get(choice, b''))}"
    return None


def difference(wanted, got):
    at = next((i for i, (a, b) in enumerate(zip(wanted, got)) if a != b), min(len(wanted), len(got)))
    return f"{got[max(0, at - 60):at + 60]!r} instead of {wanted[max(0, at - 60):at + 60]!r}"
