"""Compares leasehold-verify with certificate.py: judge.py LEASEHOLD-VERIFY VERIFY_TEST.

VERIFY_TEST writes the certificates: sound ones of random logs, and the same with a flipped byte.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import certificate
except ModuleNotFoundError as error:
    print(f"{error.name} is missing; install python3-nacl")
    sys.exit(77)


def compare(verify, path):
    key = path.with_suffix(".pub").read_text().strip()
    answer = subprocess.run([verify, path, "--key", key, "-o", "json"], stdout=subprocess.PIPE)
    report = json.loads(answer.stdout)
    try:
        states = certificate.check(path.read_bytes(), key)
    except certificate.Forged as fault:
        assert report["result"] == "forged", (path.read_bytes(), fault, report)
    else:
        assert report["result"] != "forged", (path.read_bytes(), report)
        assert report["granted"] == len(states), (report, states)
        assert {each["lease"]: each["state"] for each in report["not_erased"]} == {
            lease: state for lease, state in states.items() if state != "erased"}, (report, states)
    assert answer.returncode == {"complete": 0, "forged": 1, "incomplete": 3}[report["result"]]
    return report["result"]


with tempfile.TemporaryDirectory() as directory:
    subprocess.run([sys.argv[2], "[.certificates]"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "CERTIFICATES": directory})
    results = [compare(sys.argv[1], path) for path in sorted(pathlib.Path(directory).glob("*.json"))]
    counts = {result: results.count(result) for result in ("complete", "incomplete", "forged")}
    assert min(counts.values()) > 5, counts
    print(f"both say the same: {counts}")
