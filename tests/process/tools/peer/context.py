"""Finds the drivers of tests/checks/peer, and what they run. LEASEHOLD_BIN_DIR: the folder of the programs."""

import contextlib
import io
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[3]
BIN = os.environ.get("LEASEHOLD_BIN_DIR")
MODEL = str(ROOT / "tools/models/leasehold-stories-q8_0.gguf")

sys.path.insert(0, str(ROOT / "tests/checks/peer"))


def run_driver(driver, name, folder, *arguments):
    """(exit code, report or None, stderr of the driver) of one run, with the report in `folder`."""
    import peer
    options = driver.parse_options(["--bin-dir", BIN, "--out", str(folder), *arguments])
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        code = peer.run(name, options, driver.measure, driver.text_of)
    path = pathlib.Path(folder) / f"{name}.json"
    text = path.read_text() if path.exists() else ""
    return code, json.loads(text) if text else None, errors.getvalue()


def write_program(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    path.chmod(0o700)
    return path
