"""What programs do with OpenAI's client: chat, streams, choices, schemas, errors, cancellation.

    python openai_client.py BASE_URL API_KEY
"""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
MODEL = client.models.list().data[0].id
ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "Tell me a story."}], "seed": 3}
SCHEMA = {
    "type": "object",
    "properties": {"way": {"enum": ["left", "right"]}},
    "required": ["way"],
    "additionalProperties": False,
}


def chat_and_stream():
    whole = client.chat.completions.create(**ASKED, max_tokens=24)
    assert whole.choices[0].message.role == "assistant"
    assert whole.usage.completion_tokens <= 24
    stream = client.chat.completions.create(
        **ASKED, max_tokens=24, stream=True, stream_options={"include_usage": True}
    )
    text, usage = "", None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
    assert text == whole.choices[0].message.content, (text, whole)
    assert usage.completion_tokens == whole.usage.completion_tokens


def choices_and_logprobs():
    made = client.completions.create(
        model=MODEL, prompt=["Once", "The"], n=2, max_tokens=5, echo=True, temperature=0
    )
    assert [choice.index for choice in made.choices] == [0, 1, 2, 3]
    assert made.choices[2].text.startswith("The")
    said = client.chat.completions.create(**ASKED, max_tokens=4, logprobs=True, top_logprobs=2)
    tokens = said.choices[0].logprobs.content
    assert len(tokens) == said.usage.completion_tokens
    assert all(len(token.top_logprobs) == 2 and token.logprob <= 0 for token in tokens)


def embeddings():
    texts = ["Once upon a time", "The dog", "The dog ran"]
    made = client.embeddings.create(model=MODEL, input=texts)  # asks for base64
    assert [each.index for each in made.data] == [0, 1, 2] and made.object == "list"
    vectors = [each.embedding for each in made.data]
    assert all(abs(sum(x * x for x in vector) - 1) < 1e-5 for vector in vectors)
    assert made.usage.prompt_tokens == made.usage.total_tokens > len(texts)
    numbers = client.embeddings.create(model=MODEL, input=texts[1], encoding_format="float")
    assert numbers.data[0].embedding == vectors[1], "a vector depends on its request"
    mean = client.embeddings.create(model=MODEL, input=texts[1:], extra_body={"pooling": "mean"})
    assert mean.data[0].embedding != vectors[1] and len(mean.data) == 2
    many = client.embeddings.create(model=MODEL, input=[f"text {i}" for i in range(100)])
    assert len({tuple(each.embedding) for each in many.data}) == 100
    for fields, param in (
        ({"input": ["a", "word " * 5000]}, "input/1"),
        ({"input": "a", "dimensions": 3}, "dimensions"),
        ({"input": []}, "input"),
    ):
        try:
            client.embeddings.create(model=MODEL, **fields)
            raise AssertionError(f"{param} is wrong")
        except openai.BadRequestError as error:
            assert error.param == param, error


def schema():
    said = client.chat.completions.create(
        **ASKED,
        max_tokens=40,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "way", "strict": True, "schema": SCHEMA},
        },
    )
    assert json.loads(said.choices[0].message.content)["way"] in ("left", "right")


def names():
    assert client.models.retrieve(MODEL).id == MODEL
    try:
        client.models.retrieve("org/other model")
        raise AssertionError("no model has this name")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error


def errors():
    try:
        openai.OpenAI(base_url=sys.argv[1], api_key="lh-0", max_retries=0).models.list()
        raise AssertionError("a wrong key was accepted")
    except openai.AuthenticationError as error:
        assert error.code == "invalid_api_key", error
    try:
        client.completions.create(model=MODEL, prompt="word " * 50000)
        raise AssertionError("the prompt is too long")
    except openai.BadRequestError as error:
        assert error.code == "context_length_exceeded", error


def cancellation():
    stream = client.completions.create(
        model=MODEL, prompt="Once", max_tokens=400, stream=True, extra_body={"ignore_eos": True}
    )
    for _, _ in zip(range(3), stream):
        pass
    stream.close()


for check in (chat_and_stream, choices_and_logprobs, embeddings, schema, names, errors, cancellation):
    check()
    print("ok", check.__name__)
