#!/usr/bin/env python3
"""compare.py JUDGE…: compiles generated schemas with the command JUDGE, which may begin with an emulator, and
compares what the grammar accepts with python3-jsonschema. Prints the acceptance per cause. The environment may
have another SEED and COUNT of schemas.

Exit status 1: a text was accepted that the validator calls invalid, or fewer schemas or valid texts were
accepted than the bounds below. 77: python3-jsonschema is not installed and nothing was compared.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed; run tools/setup --ci")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import generate  # noqa: E402

SEED = 20261123
COUNT = 600
WALKS = 6
LEAST_SCHEMAS = 0.85
LEAST_VALID = 0.95  # the others have members that the schema does not name


def validator(schema):
    return jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)(schema)


def layouts(value):
    yield json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    yield json.dumps(value)
    yield json.dumps(value, indent=4)
    yield json.dumps(value, indent="\t", separators=(",", ":")).replace("\n", "\r\n")


def compare(schemas, answers):
    per_cause = collections.defaultdict(lambda: [0, 0])
    wrong, refused, n_valid, n_texts = [], [], 0, 0
    reasons = collections.Counter()
    for (cause, schema, texts), answer in zip(schemas, answers, strict=True):
        per_cause[cause][1] += 1
        if "error" in answer:
            reasons[f"{cause}: {answer['error']:.110}"] += 1
            continue
        per_cause[cause][0] += 1
        judge = validator(schema)
        for text, accepted in [*zip(texts, answer["accepted"], strict=True), *((w, True) for w in answer["walks"])]:
            n_texts += 1
            is_valid = judge.is_valid(json.loads(text))
            n_valid += is_valid
            if accepted and not is_valid:
                wrong.append((schema, text))
            elif is_valid and not accepted:
                refused.append((cause, schema, text))
    return per_cause, reasons, wrong, refused, n_valid, n_texts


def report(per_cause, reasons):
    for cause, (accepted, all_) in sorted(per_cause.items()):
        print(f"{cause:20} {accepted:4} of {all_:4}")
    for reason, n in reasons.most_common(40):
        print(f"  {n:3} refused, {reason}")


def main():
    seed, count = int(os.environ.get("SEED", SEED)), int(os.environ.get("COUNT", COUNT))
    schemas = [(cause, schema, [text for value in values for text in layouts(value)])
               for cause, schema, values in generate.cases(seed, count)]
    asked = [{"schema": json.dumps(schema), "texts": texts, "walks": WALKS, "seed": number}
             for number, (_, schema, texts) in enumerate(schemas)]
    done = subprocess.run(sys.argv[1:], input=json.dumps(asked), capture_output=True, check=True, encoding="utf-8")
    answers = json.loads(done.stdout)
    per_cause, reasons, wrong, refused, n_valid, n_texts = compare(schemas, answers)
    report(per_cause, reasons)
    for schema, text in wrong[:20]:
        print(f"accepted but invalid: {text[:200]!r} under {json.dumps(schema)[:600]}")
    for cause, schema, text in refused[:8]:
        print(f"refused but valid ({cause}): {text[:200]!r} under {json.dumps(schema)[:400]}")
    times = sorted(answer["us"] for answer in answers)
    accepted = sum(a for a, _ in per_cause.values())
    print(f"seed {seed}: {accepted} of {count} schemas compile, p99 {times[len(times) * 99 // 100]} us of CPU; "
          f"{n_texts} texts judged with jsonschema {jsonschema.__version__}, {len(wrong)} invalid accepted, "
          f"{len(refused)} of {n_valid} valid refused")
    failed = wrong or accepted < LEAST_SCHEMAS * count or len(refused) > (1 - LEAST_VALID) * n_valid
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
