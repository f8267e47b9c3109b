"""What programs do with LiteLLM: chats, streams, completions, responses, errors.

    python litellm_client.py BASE_URL API_KEY MODEL
"""

import sys

import litellm

litellm.num_retries = 0
SERVED = {"api_base": sys.argv[1], "api_key": sys.argv[2]}
MODEL = sys.argv[3]
ASKED = {
    "model": f"openai/{MODEL}",
    "messages": [{"role": "user", "content": "Tell me a story."}],
    "max_tokens": 16,
    "seed": 3,
    **SERVED,
}


def chat_and_stream():
    whole = litellm.completion(**ASKED)
    assert whole.usage.completion_tokens <= 16
    text, usage = "", None
    for chunk in litellm.completion(**ASKED, stream=True, stream_options={"include_usage": True}):
        usage = getattr(chunk, "usage", None) or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
    assert text == whole.choices[0].message.content, (text, whole)
    assert usage.completion_tokens == whole.usage.completion_tokens


def completion():
    made = litellm.text_completion(
        model=f"text-completion-openai/{MODEL}", prompt="Once", max_tokens=4, temperature=0, **SERVED
    )
    assert made.choices[0].text


def responses():
    asked = {"model": f"openai/{MODEL}", "input": "Hi", "max_output_tokens": 16, **SERVED}
    made = litellm.responses(**asked)
    assert made.output[0].type == "message" and made.output[0].content[0].text, made
    assert 1 <= made.usage.output_tokens <= 16, made
    types = [event.type for event in litellm.responses(**asked, stream=True)]
    assert types[0] == "response.created", types
    assert types[-1] in ("response.completed", "response.incomplete"), types


def errors():
    try:
        litellm.completion(**{**ASKED, "api_key": "lh-0"})
        raise AssertionError("a wrong key was accepted")
    except litellm.AuthenticationError:
        pass
    try:
        litellm.completion(**{**ASKED, "messages": [{"role": "user", "content": "word " * 50000}]})
        raise AssertionError("the prompt is too long")
    except litellm.BadRequestError:  # it finds context_length_exceeded in few texts
        pass


for check in (chat_and_stream, completion, responses, errors):
    check()
    print("ok", check.__name__)
