"""The verdict on divergences, and the driver beside a program that acts as llama-perplexity."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import context
import peer
import peer_perplexity

FLOOR = 1e-5
TEXT = str(context.ROOT / "tests/data/texts/story.txt")
# Copies the file that a test prepared for the model.
PEER = """#!/bin/sh
echo "$@" >> "$0.arguments"
[ "$1" != --version ] || { echo 'version: fake 7' >&2; exit 0; }
while [ $# -gt 1 ]; do
  [ "$1" != -m ] || model=$(basename "$2" .gguf)
  [ "$1" != --kl-divergence-base ] || file=$2
  shift
done
cp "$(dirname "$0")/$model.logits" "$file"
"""
# Prints the file of --peer-logits, and its arguments to a file.
OURS = """#!/bin/sh
echo "$@" >> "$0.arguments"
while [ $# -gt 1 ]; do
  [ "$1" != --peer-logits ] || cat "$2"
  shift
done
"""


def compared(of_peer, ours):
    return {"file": "m", "positions": 10, "peer": of_peer, "ours": ours, "ours_exact": ours,
            "difference_error": of_peer / 4, "code_floor": FLOOR}


FAILED = {"file": "lost", "error": "it is too short"}


class VerdictTest(unittest.TestCase):
    def test_a_file_is_within_1_1_times_the_peers_divergence(self):
        self.assertTrue(peer_perplexity.is_within(compared(1e-3, 1.1e-3)))
        self.assertFalse(peer_perplexity.is_within(compared(1e-3, 1.101e-3)))
        self.assertFalse(peer_perplexity.is_within(FAILED))

    def test_below_the_floor_the_floor_replaces_the_peers_divergence(self):
        self.assertTrue(peer_perplexity.is_within(compared(0, FLOOR)))
        self.assertTrue(peer_perplexity.is_within(compared(-1e-9, 1e-9)))
        self.assertFalse(peer_perplexity.is_within(compared(0, 1.2 * FLOOR)))
        self.assertTrue(peer_perplexity.passes([compared(0, 0.9 * FLOOR)]))

    def test_over_all_files_ours_is_at_most_the_peers(self):
        self.assertTrue(peer_perplexity.passes([compared(1e-3, 1.05e-3), compared(2e-3, 1.9e-3)]))
        for rows in ([compared(1e-3, 1.05e-3), compared(2e-3, 1.96e-3)],
                     [compared(1e-3, 1.2e-3), compared(9e-3, 1e-3)], [compared(1e-3, 1e-4), FAILED], []):
            with self.subTest(rows=rows):
                self.assertFalse(peer_perplexity.passes(rows))

    def test_the_mean_weighs_each_compared_file_once(self):
        mean = peer_perplexity.mean_of([compared(1, 2), FAILED, compared(3, 6)])
        self.assertEqual((mean["files"], mean["peer"], mean["ours"]), (2, 2, 4))

    def test_the_table_has_each_file_the_mean_what_was_compared_and_what_failed(self):
        options = peer_perplexity.parse_options(["--bin-dir", ".", "--peer", ".", "--model", "m", "--text", "t",
                                                 "--window", "64"])
        text = peer_perplexity.text_of(options, "fake 7", [compared(1e-3, 2e-3), compared(0, 0), FAILED])
        for part in ("1.000e-03   2.000e-03", "2.000 ± 0.250", "BEYOND", "not compared", "mean of 2 files",
                     "lost: it is too short", "llama.cpp fake 7; ours: int8", "f32 keys and values. Peer",
                     "both with f16 keys", "Windows of 64"):
            self.assertIn(part.replace("   ", "  "), text.replace("   ", "  "))


class DriverTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        context.write_program(self.folder, "llama-perplexity", PEER)
        context.write_program(self.folder, "leasehold-perplexity", OURS)

    def run_driver(self, *arguments, models=("m.gguf",), bin_dir=None, text=TEXT):
        model_options = [word for model in models for word in ("--model", model)]
        options = peer_perplexity.parse_options(["--bin-dir", bin_dir or str(self.folder), "--peer", str(self.folder),
                                                 "--text", text, *model_options, *arguments])
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = peer_perplexity.run(options)
        return code, output.getvalue(), errors.getvalue()

    def prepare(self, model, of_peer, ours):
        (self.folder / f"{model}.logits").write_text(json.dumps(compared(of_peer, ours)))

    def arguments_of(self, program):
        return (self.folder / f"{program}.arguments").read_text().splitlines()

    def test_a_peer_as_far_from_the_reference_passes_the_check(self):
        self.prepare("m", 1e-3, 1e-3)
        code, output, _ = self.run_driver("--check")
        self.assertEqual(code, 0, output)
        self.assertIn("1.000", output)

    def test_a_peer_that_is_nearer_fails_the_check_with_1_and_is_printed(self):
        self.prepare("m", 1e-4, 1e-3)
        code, output, _ = self.run_driver("--check")
        self.assertEqual(code, 1)
        self.assertIn("BEYOND", output)
        self.assertEqual(self.run_driver(), (0, output, ""))

    def test_both_engines_get_the_same_file_text_window_threads_and_kv_type(self):
        self.prepare("m", 1e-3, 1e-3)
        self.run_driver("--window", "24", "--windows", "3")
        self.assertRegex("\n".join(self.arguments_of("llama-perplexity")),
                         rf"^--version\n-m m.gguf -f {TEXT} -c 24 -t 1 -ngl 0 -ctk f16 -ctv f16 "
                         r"--kl-divergence-base \S+ --chunks 3$")
        common = (f"--model m.gguf --text {TEXT} --window 24 --threads 1 --kv-type f16 --reference-kv-type f32 "
                  "--arithmetic int8")
        first, second = self.arguments_of("leasehold-perplexity")
        self.assertEqual(first, f"{common} --check-window")
        self.assertTrue(second.startswith(f"{common} --peer-logits "))

    def test_both_engines_get_the_adapter(self):
        self.prepare("m", 1e-3, 1e-3)
        self.run_driver("--adapter", "a.gguf")
        self.assertIn(" --lora a.gguf", self.arguments_of("llama-perplexity")[-1])
        for line in self.arguments_of("leasehold-perplexity"):
            self.assertIn(" --adapter a.gguf ", line)

    def test_the_error_of_a_file_is_in_its_row_and_the_next_file_is_compared(self):
        self.prepare("m", 1e-3, 1e-3)
        code, output, _ = self.run_driver("--check", models=("lost.gguf", "m.gguf"))
        self.assertEqual(code, 1)
        self.assertRegex(output, r"(?m)^lost .*not compared\nm .*within$")
        self.assertIn("lost: llama-perplexity ended with 1", output)

    def test_a_peer_or_a_text_that_is_missing_and_a_peer_without_a_version_are_errors(self):
        code, _, errors = self.run_driver(text="/nowhere")
        self.assertEqual(code, peer.EXIT_CODES["FileNotFound"], errors)
        context.write_program(self.folder, "llama-perplexity", "#!/bin/sh\nexit 0\n")
        self.assertEqual(self.run_driver()[0], peer.EXIT_CODES["MalformedMessage"])
        (self.folder / "llama-perplexity").unlink()
        self.assertEqual(self.run_driver()[0], peer.EXIT_CODES["FileNotFound"])

    @unittest.skipUnless(context.BIN, "LEASEHOLD_BIN_DIR is not set")
    def test_our_program_names_a_file_that_was_cut_off_and_a_window_that_does_not_fit(self):
        model = pathlib.Path(context.MODEL)
        (self.folder / f"{model.stem}.logits").write_bytes(b"_logits_" + bytes(8))
        code, output, _ = self.run_driver("--check", "--window", "32", models=[str(model)], bin_dir=context.BIN)
        self.assertEqual(code, 1)
        self.assertRegex(output, r"not compared[^$]*does not begin with _logits_")
        _, output, _ = self.run_driver("--window", "3", models=[str(model)], bin_dir=context.BIN)
        self.assertIn("a window of 3 tokens does not fit", output)


if __name__ == "__main__":
    unittest.main()
