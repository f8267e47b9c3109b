"""The speeds of this engine beside programs that act as llama.cpp's."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import context
import peer
import peer_output
import peer_ratios

# Prints other speeds in each run: 10, 40, 20 for the answer, 1000 for the prompt.
BENCH = r"""#!/bin/sh
echo "$@" >> "$0.arguments"
run=$(wc -l < "$0.arguments")
speed=$(echo "10 40 20" | cut -d ' ' -f "$run")
line='"build_commit": "fake", "build_number": 3, "model_type": "shape Q8_0", "n_threads": 1'
echo "{$line, \"n_prompt\": 20, \"n_gen\": 0, \"avg_ts\": 1000}"
echo "{$line, \"n_prompt\": 0, \"n_gen\": 2, \"avg_ts\": $speed.0}"
"""
BATCHED = r"""#!/bin/sh
echo "$@" >> "$0.arguments"
echo '{"n_threads": 1, "pl": 8, "speed_tg": 80}'
echo '{"n_threads": 1, "pl": 32, "speed_tg": 320}'
"""
# As programs that print only tables, and that need an argument of their own.
BENCH_TABLE = r"""#!/bin/sh
[ "$*" != "${*%-fa 1}" ] || exit 2
cat <<'END'
| model                          |       size |     params | backend    | threads |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | ------: | --------------: | -------------------: |
| shape Q8_0                     | 639.45 MiB |   494.03 M | CPU        |       1 |            pp20 |        500.25 ± 1.50 |
| shape Q8_0                     | 639.45 MiB |   494.03 M | CPU        |       1 |             tg2 |          5.00 ± 0.00 |

build: fork (4)
END
"""
BATCHED_TABLE = r"""#!/bin/sh
[ "$*" != "${*%-fa 1}" ] || exit 2
cat <<'END'
main: n_kv_max = 4096, n_batch = 2048

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|     2 |      2 |    8 |     32 |    0.028 |   554.31 |    0.400 |    40.00 |    0.428 |    74.77 |
|     2 |      2 |   32 |    128 |    0.070 |   914.00 |    0.400 |   160.00 |    0.470 |   272.34 |
END
"""
FILE = "leasehold-stories-q8_0"
LINE = {"build_commit": "abc1234", "build_number": 17, "model_type": "qwen2 1B Q8_0", "n_threads": 2}
PROMPT = json.dumps(LINE | {"n_prompt": 512, "n_gen": 0, "avg_ts": 412.25}) + "\n"
ANSWER = json.dumps(LINE | {"n_prompt": 0, "n_gen": 16, "avg_ts": 55.5}) + "\n"
BATCHES = "".join(json.dumps({"n_threads": 2, "pl": pl, "speed_tg": speed}) + "\n"
                  for pl, speed in ((8, 180.5), (32, 210.25)))


class OutputTest(unittest.TestCase):
    def test_the_lines_of_a_prompt_and_an_answer_give_both_speeds_and_the_version(self):
        self.assertEqual(peer_output.parse_bench(PROMPT + ANSWER, 2),
                         ("abc1234 (17)", "qwen2 1B Q8_0", {"prefill": 412.25, "decode": 55.5}))

    def test_the_lines_of_two_batches_give_both_speeds_and_other_lines_none(self):
        self.assertEqual(peer_output.parse_batches("banner\n\n" + BATCHES, 2), {"batch_8": 180.5, "batch_32": 210.25})

    def test_output_that_cannot_be_used_is_an_error_that_shows_it(self):
        both = PROMPT + ANSWER
        wrong_bench = ["", "| model | size |\n", PROMPT, ANSWER, both.replace("55.5", "0"),
                       both.replace("avg_ts", "ts"), both.replace('"abc1234"', "null"),
                       both.replace('"n_threads": 2', '"n_threads": 1'), both + '{"n_threads": \n']
        wrong_batches = ["", BATCHES.split("\n", maxsplit=1)[0], BATCHES.replace('"pl": 32', '"pl": 31'),
                         BATCHES.replace("180.5", "-1"), BATCHES.replace("180.5", '"fast"'),
                         BATCHES.replace('"n_threads": 2', '"n_threads": 1')]
        for parse, program, texts in ((peer_output.parse_bench, "llama-bench", wrong_bench),
                                      (peer_output.parse_batches, "llama-batched-bench", wrong_batches)):
            for text in texts:
                with self.subTest(program=program, text=text), self.assertRaises(peer.Failure) as raised:
                    parse(text, 2)
                self.assertEqual(raised.exception.exit_code, peer.EXIT_CODES["MalformedMessage"])
                self.assertTrue(str(raised.exception).startswith(f"{program} printed"))


@unittest.skipUnless(context.BIN, "LEASEHOLD_BIN_DIR is not set")
class RatiosTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        context.write_program(self.folder, "llama-bench", BENCH)
        context.write_program(self.folder, "llama-batched-bench", BATCHED)

    def run_driver(self, *arguments, model=context.MODEL):
        return context.run_driver(peer_ratios, "peer", self.folder / "report", "--peer", str(self.folder), "--model",
                                  model, "--prompt-tokens", "20", "--decoded-tokens", "2", *arguments)

    def arguments_of(self, program):
        return (self.folder / f"{program}.arguments").read_text().splitlines()[0]

    def test_a_report_has_both_medians_their_ratio_the_version_and_the_format(self):
        code, report, _ = self.run_driver("--rounds", "3")
        self.assertEqual(code, 0)
        everything = report["peer"]
        self.assertEqual((everything["version"], everything["rounds"], everything[FILE]["format"]),
                         ("fake (3)", 3, "shape Q8_0"))
        run = everything[FILE]["1_threads"]
        self.assertEqual(run["peer"], {"decode": 20, "batch_8": 80, "batch_32": 320, "prefill": 1000})
        for figure, ours in run["ours"].items():
            self.assertGreater(ours, 0)
            self.assertEqual(run["ratio"][figure], ours / run["peer"][figure])
        text = (self.folder / "report/peer.txt").read_text()
        self.assertIn("llama.cpp fake (3)", text)
        self.assertRegex(text, rf"(?m)^FILE +FORMAT +THREADS +FIGURE +OURS +PEER +RATIO +NAME\n{FILE} +shape Q8_0 +1_threads")

    def test_the_peer_gets_the_same_file_threads_prompt_and_batches(self):
        self.assertEqual(self.run_driver("--rounds", "1")[0], 0)
        self.assertEqual(self.arguments_of("llama-bench"),
                         f"-m {context.MODEL} -t 1 -ngl 0 -p 20 -n 2 -r 1 -o jsonl")
        self.assertEqual(self.arguments_of("llama-batched-bench"),
                         f"-m {context.MODEL} -t 1 -tb 1 -ngl 0 -c 4096 -npp 2 -ntg 2 -npl 8,32 --output-format jsonl")

    def test_our_simd_path_is_the_one_that_is_asked_for_and_the_report_names_it(self):
        code, report, _ = self.run_driver("--rounds", "1", "--simd", "scalar")
        self.assertEqual((code, report["peer"]["simd"]), (0, "scalar"))
        self.assertIn("our SIMD path is scalar", (self.folder / "report/peer.txt").read_text())
        with self.assertRaises(SystemExit):
            self.run_driver("--simd", "sse")

    def test_a_program_that_is_missing_fails_or_prints_no_result_is_an_error(self):
        context.write_program(self.folder, "llama-batched-bench", "#!/bin/sh\necho hello\n")
        self.assertEqual(self.run_driver()[0], peer.EXIT_CODES["MalformedMessage"])
        context.write_program(self.folder, "llama-bench", "#!/bin/sh\necho 'no such model' >&2\nexit 3\n")
        code, _, errors = self.run_driver()
        self.assertEqual(code, peer.EXIT_CODES["ConnectionLost"])
        self.assertIn("llama-bench ended with 3", errors)
        self.assertIn("no such model", errors)
        (self.folder / "llama-batched-bench").unlink()
        code, _, errors = self.run_driver()
        self.assertEqual(code, peer.EXIT_CODES["FileNotFound"])
        self.assertIn("llama-batched-bench", errors)

    def test_tables_and_arguments_of_a_program_without_json_lines_give_the_same_figures(self):
        context.write_program(self.folder, "llama-bench", BENCH_TABLE)
        context.write_program(self.folder, "llama-batched-bench", BATCHED_TABLE)
        code, report, _ = self.run_driver("--rounds", "1", "--peer-tables", "--peer-args=-fa 1")
        self.assertEqual((code, report["peer"]["version"]), (0, "fork (4)"))
        self.assertEqual(report["peer"][FILE]["1_threads"]["peer"],
                         {"decode": 5, "batch_8": 40, "batch_32": 160, "prefill": 500.25})

    def test_tables_that_cannot_be_used_are_errors(self):
        bench, batched = BENCH_TABLE.split("END'")[0], BATCHED_TABLE
        wrong = [(peer_output.parse_bench_table, text) for text in
                 ("", PROMPT, BENCH_TABLE.replace("tg2 ", "pp9 "), BENCH_TABLE.replace("5.00 ±", "none ±"),
                  BENCH_TABLE.replace("|       1 |", "|       2 |"), bench)]
        wrong += [(peer_output.parse_batches_table, text) for text in
                  ("", batched.replace("|   32 |", "|   31 |"), batched.replace("40.00", "0.00"), batched.replace("B |", "X |"))]
        for parse, text in wrong:
            with self.subTest(parse=parse.__name__, text=text), self.assertRaises(peer.Failure) as raised:
                parse(text, 1)
            self.assertEqual(raised.exception.exit_code, peer.EXIT_CODES["MalformedMessage"])
            self.assertIn("whose tables have these columns", str(raised.exception))

    def test_a_further_peer_has_a_name_a_version_and_a_ratio_of_its_own(self):
        with tempfile.TemporaryDirectory() as other:
            context.write_program(pathlib.Path(other), "llama-bench", BENCH.replace("1000", "100").replace("fake", "fork"))
            context.write_program(pathlib.Path(other), "llama-batched-bench", BATCHED)
            code, report, _ = self.run_driver("--rounds", "1", "--peer", f"fork={other}")
            self.assertEqual(code, 0)
            for without_name in (other, f"={other}", f"ratio={other}"):
                self.assertEqual(self.run_driver("--peer", without_name)[0], peer.EXIT_CODES["BadRequest"])
        run = report["peer"][FILE]["1_threads"]
        self.assertEqual((report["peer"]["versions"], run["peer"]["prefill"]), ({"fork": "fork (3)"}, 1000))
        self.assertEqual(run["fork"]["peer"]["prefill"], 100)
        self.assertEqual(run["fork"]["ratio"]["prefill"], run["ours"]["prefill"] / 100)
        self.assertRegex((self.folder / "report/peer.txt").read_text(), r"(?m)1_threads +prefill .* fork$")

    def test_two_files_of_one_name_and_a_model_that_cannot_be_read_are_errors(self):
        self.assertEqual(self.run_driver("--model", f"/elsewhere/{FILE}.gguf")[0], peer.EXIT_CODES["BadRequest"])
        self.assertEqual(self.run_driver(model="/nowhere.gguf")[0], peer.EXIT_CODES["FileNotFound"])

    def test_a_report_that_is_none_is_an_error(self):
        for text in ("", "[]", '{"report": {}}', '{"report": {}, "text": 1}'):
            with self.subTest(text=text):
                done = subprocess.run([f"{context.BIN}/leasehold-bench", "peer"], input=text.encode(), check=False,
                                      capture_output=True)
                self.assertEqual(done.returncode, peer.EXIT_CODES["MalformedMessage"])

    def test_a_file_of_limits_that_cannot_be_read_ends_the_driver_before_it_measures(self):
        with self.assertRaises(SystemExit) as raised:
            self.run_driver("--check", "/nowhere.json", "--rounds", "1000")
        self.assertEqual(raised.exception.code, peer.EXIT_CODES["FileNotFound"])


if __name__ == "__main__":
    unittest.main()
