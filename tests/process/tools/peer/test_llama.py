"""The driver of gpu-check's stage llama beside programs that act as llama.cpp's."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import context
import peer

sys.path.insert(0, str(context.ROOT / "tests/checks/gpu_check"))
import llama  # noqa: E402


class LlamaTest(unittest.TestCase):
    def test_programs_that_do_not_end_in_their_time_are_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("llama-bench", "llama-batched-bench"):
                context.write_program(pathlib.Path(folder), name, "#!/bin/sh\nexec tail -f /dev/null\n")
            errors = io.StringIO()
            arguments = ["llama.py", "--peer", folder, "--model", "m", "--out", f"{folder}/out", "--seconds", "0"]
            with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(errors):
                self.assertEqual(llama.main(), peer.EXIT_CODES["TimedOut"])
            self.assertIn("llama-bench runs for more than 1 s", errors.getvalue())
            self.assertFalse(pathlib.Path(folder, "out").exists())


if __name__ == "__main__":
    unittest.main()
