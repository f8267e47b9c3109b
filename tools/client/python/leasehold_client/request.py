"""Turns the arguments of `generate` into a request of the wire."""

from __future__ import annotations

import difflib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from .values import Error


class Sampling(TypedDict, total=False):
    """How tokens are chosen; names and ranges are those of ipc/control/messages/tenant.hpp."""

    temperature: float  # 0: greedy, the default
    seed: int  # missing: a random one
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: Mapping[str, float]  # token ids as text
    logprobs: bool
    top_logprobs: int
    stop: str | Sequence[str]
    include_stop_str_in_output: bool
    stop_token_ids: Sequence[int]
    min_tokens: int
    response_format: Mapping[str, Any]
    grammar: str
    regex: str


class TextOptions(Sampling, total=False):
    """Options of a text. Give exactly one of the prompt, `messages` and `prompt_tokens`."""

    messages: Sequence[Mapping[str, Any]]  # as in OpenAI's API, for the model's chat template
    prompt_tokens: Sequence[int]
    parse_special: bool  # names of control tokens in the prompt become control tokens
    tools: Sequence[Mapping[str, Any]]  # with messages
    chat_template_kwargs: Mapping[str, Any]  # with messages: further variables of the template
    continue_final_message: bool  # with messages: the text continues the last one
    max_tokens: int  # 128 if missing
    ignore_eos: bool
    priority: int
    deadline_s: float
    adapter: str  # the name of an adapter that the tenant may use
    request_id: str  # random if missing
    resumable: bool  # the request outlives a broken connection for a minute
    emitted: Sequence[int]  # ids of tokens that were delivered before, perhaps to another process
    text_identity: str  # Lease.text_identity of the lease that `emitted` came under


class EmbeddingOptions(TypedDict, total=False):
    """Options of an embedding. Give exactly one of the prompt and `prompt_tokens`."""

    prompt_tokens: Sequence[int]
    parse_special: bool  # names of control tokens in the prompt become control tokens
    pooling: str  # "last" or "mean"; missing: as the model's file says
    dimensions: int  # leading elements to keep; missing: all
    priority: int
    deadline_s: float
    request_id: str  # random if missing


Request = dict[str, Any]


def new_request_id() -> str:
    """An id that no other request has."""
    return secrets.token_hex(16)


def request_of(prompt: str | None, options: TextOptions) -> Request:
    """The request, as `request.submit` names its fields, without a lease. Takes what is missing from
    the machine's clock and random numbers. Raises BadRequest."""
    _refuse_unknown(options, TextOptions, "a text")
    given = {"prompt": prompt, "messages": _with_texts(options.get("messages")),
             "prompt_tokens": options.get("prompt_tokens")}
    prompts = {name: value for name, value in given.items() if value is not None}
    if len(prompts) != 1:
        raise Error("BadRequest", "give exactly one of prompt, messages and prompt_tokens, "
                    f"not {' and '.join(prompts) or 'none'}")
    sampling = {name: options[name] for name in Sampling.__annotations__ if name in options}  # type: ignore[literal-required]
    request: Request = {
        **prompts,
        "request_id": options.get("request_id") or new_request_id(),
        "emitted": list(options.get("emitted", ())),
        "sampling": {"temperature": 0.0, "seed": secrets.randbits(63), **sampling},
        "max_emitted_tokens": options.get("max_tokens", 128),
        "asked_at_unix_s": int(time.time()),
    }
    for name, default in (("ignore_eos", False), ("priority", 0), ("resumable", False), ("parse_special", False)):
        request[name] = options.get(name, default)
    if options.get("adapter"):
        request["adapter"] = options["adapter"]
    for name in ("tools", "chat_template_kwargs"):
        if options.get(name) is not None:
            request[name] = json.dumps(options[name])  # type: ignore[literal-required]
    if options.get("continue_final_message"):
        request.update(continue_final_message=True, add_generation_prompt=False)
    if (deadline_s := options.get("deadline_s")) is not None:
        request["deadline_ms"] = int(deadline_s * 1000)
    return request


def embedding_request_of(prompt: str | None, options: EmbeddingOptions) -> Request:
    """The request of an embedding. Raises BadRequest."""
    _refuse_unknown(options, EmbeddingOptions, "an embedding")
    form = ("pooling", "dimensions")
    rest = {name: value for name, value in options.items() if name not in form}
    request = request_of(prompt, {**rest, "max_tokens": 0})  # type: ignore[typeddict-item]
    request["embedding"] = {name: value for name, value in options.items() if name in form}
    return request


def _refuse_unknown(options: Mapping[str, Any], known_options: type, what: str) -> None:
    known = known_options.__annotations__
    for name in options:
        if name not in known:
            alike = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{alike[0]}'?" if alike else f"{known_options.__name__} has them all"
            raise Error("BadRequest", f"{what} has no option '{name}'; {hint}")


def _with_texts(messages: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]] | None:
    """The messages with their calls as text, which is the form of the wire."""
    def encoded(message: Mapping[str, Any]) -> Mapping[str, Any]:
        calls = message.get("tool_calls")
        if calls is None or isinstance(calls, str):
            return message
        return {**message, "content": message.get("content") or "", "tool_calls": json.dumps(calls)}

    return None if messages is None else [encoded(message) for message in messages]
