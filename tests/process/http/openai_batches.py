"""What programs do with files and batches through OpenAI's client.

    python openai_batches.py BASE_URL API_KEY OTHER_TENANTS_KEY STEP [ID]

begin and long print the id of a batch; end and failed wait for it. Between begin and end, the test
revokes leases and kills the worker; between long and failed, it revokes the key of the batch.
"""

import json
import sys
import time

import openai

BASE_URL, KEY, OTHER_KEY = sys.argv[1:4]
client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
other = openai.OpenAI(base_url=BASE_URL, api_key=OTHER_KEY, max_retries=0)
MODEL = client.models.list().data[0].id
ENDPOINT = "/v1/completions"
LINES = 24


def body_of(number):
    return {"model": MODEL, "prompt": f"Once {number}", "max_tokens": 40, "temperature": 0}


def line_of(number, **changes):
    line = {"custom_id": f"line-{number}", "method": "POST", "url": ENDPOINT, "body": body_of(number)}
    return json.dumps({**line, **changes})


def upload(text, of=client):
    return of.files.create(file=("my lines.jsonl", text.encode()), purpose="batch")


def create(text, **fields):
    file = upload(text)
    return client.batches.create(
        **{
            "input_file_id": file.id,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {"made": "by a test"},
            **fields,
        }
    )


def wait_for(batch, status):
    for _ in range(600):
        batch = client.batches.retrieve(batch.id)
        if batch.status == status:
            return batch
        assert batch.status not in ("completed", "failed", "expired"), batch
        time.sleep(0.05)
    raise AssertionError(batch)


def refused(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error as refusal:
        return refusal
    raise AssertionError("no refusal")


def files():
    text = line_of(0) + "\n"
    file = upload(text)
    assert (file.bytes, file.filename, file.purpose) == (len(text), "my lines.jsonl", "batch")
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).text == text
    assert file.id in [each.id for each in client.files.list(purpose="batch", limit=1)]
    for call in (other.files.retrieve, other.files.content, other.files.delete):
        assert file.id in refused(openai.NotFoundError, call, file.id).message
    assert client.files.delete(file.id).deleted
    refused(openai.NotFoundError, client.files.content, file.id)
    wrong = refused(openai.BadRequestError, client.files.create, file=b"x", purpose="assistants")
    assert "assistants" in wrong.message and wrong.param == "purpose", wrong
    assert refused(openai.APIStatusError, upload, "x" * (5 << 20)).status_code == 413
    most = upload("x" * (3 << 20))
    over = refused(openai.APIStatusError, upload, "x" * (2 << 20))
    assert (over.status_code, over.code) == (413, "file_quota_exceeded"), over
    client.files.delete(most.id)
    assert list(client.files.list()) == [], "nothing is kept"


def bad_lines():
    same = line_of(1)
    lines = [same, same, line_of(2, url="/v1/embeddings"), "{", line_of(3, body={"model": "gpt-4"})]
    batch = create("\n".join(lines))
    batch = wait_for(batch, "failed")
    found = [(error.line, error.code) for error in batch.errors.data]
    assert found == [
        (2, "duplicate_custom_id"),
        (3, "mismatched_endpoint"),
        (4, "invalid_line"),
        (5, "model_not_found"),
    ], batch
    refused(openai.BadRequestError, create, same, endpoint="/v1/images")
    refused(openai.BadRequestError, create, same, completion_window="1h")
    refused(openai.NotFoundError, create, same, input_file_id="file-unknown")
    refused(openai.NotFoundError, other.batches.retrieve, batch.id)
    assert refused(openai.ConflictError, client.batches.cancel, batch.id).code == "batch_ended"


def embeddings():
    body = {"model": MODEL, "input": ["Once", "The dog"]}
    line = line_of(1, url="/v1/embeddings", body=body)
    batch = wait_for(create(line, endpoint="/v1/embeddings"), "completed")
    [result] = [json.loads(text) for text in client.files.content(batch.output_file_id).iter_lines()]
    vectors = [each["embedding"] for each in result["response"]["body"]["data"]]
    alone = client.embeddings.create(**body, encoding_format="float")
    assert vectors == [each.embedding for each in alone.data]


def begin():
    lines = [line_of(number) for number in range(LINES)]
    # One line is refused alone, and the others run.
    lines.append(line_of("bad", body={"model": MODEL, "prompt": "x", "temperature": "hot"}))
    batch = create("\n".join(lines) + "\n")
    while batch.request_counts is None or batch.request_counts.completed < 2:
        batch = client.batches.retrieve(batch.id)
        assert batch.status in ("validating", "in_progress"), batch
    refused(openai.ConflictError, client.files.delete, batch.input_file_id)
    print(batch.id)


def end(batch_id):
    batch = wait_for(client.batches.retrieve(batch_id), "completed")
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (LINES + 1, LINES, 1), batch
    assert batch.metadata == {"made": "by a test"}
    results = [json.loads(line) for line in client.files.content(batch.output_file_id).iter_lines()]
    texts = {result["custom_id"]: result["response"]["body"]["choices"][0]["text"] for result in results}
    # A line has the time of its batch, so that it is the same whenever it runs.
    assert {result["response"]["body"]["created"] for result in results} == {batch.created_at}
    assert len(results) == len(texts) == LINES, [result["custom_id"] for result in results]
    for number in range(LINES):
        alone = client.completions.create(**body_of(number)).choices[0].text
        assert texts[f"line-{number}"] == alone, (number, texts[f"line-{number}"], alone)
    [failed] = [json.loads(line) for line in client.files.content(batch.error_file_id).iter_lines()]
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("line-bad", 400), failed

    long = create("\n".join(line_of(number) for number in range(2_000)))
    assert client.batches.cancel(long.id).status in ("cancelling", "cancelled")
    wait_for(long, "cancelled")
    assert batch_id in [each.id for each in client.batches.list(limit=2)]


def long():
    batch = create("\n".join(line_of(number) for number in range(2_000)))
    while batch.status != "in_progress":
        batch = client.batches.retrieve(batch.id)
    print(batch.id)


def failed(batch_id):
    batch = wait_for(client.batches.retrieve(batch_id), "failed")
    [error] = batch.errors.data
    assert error.code == "BadToken" and "key" in error.message, batch


if sys.argv[4] == "begin":
    files()
    bad_lines()
    embeddings()
    begin()
elif sys.argv[4] == "end":
    end(sys.argv[5])
elif sys.argv[4] == "long":
    long()
else:
    failed(sys.argv[5])
