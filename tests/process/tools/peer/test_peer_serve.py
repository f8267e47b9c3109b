"""A real broker and worker beside a program that acts as llama-server, and rounds with servers that answer wrongly."""

import json
import pathlib
import shutil
import socket
import tempfile
import threading
import unittest

import context
import peer
import peer_serve

HEAD = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(event):
    text = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
    return f"{len(text):x}\r\n{text}\r\n"


WORD = chunk({"choices": [{"text": " a", "index": 0, "logprobs": None, "finish_reason": None}]})
END = chunk("[DONE]") + "0\r\n\r\n"


def last_chunk(tokens):
    return chunk({"choices": [{"text": "", "finish_reason": "length"}], "usage": {"completion_tokens": tokens}})


class AnsweringServer:
    """Sends the same pieces to each client and closes the connection."""

    def __init__(self, *pieces):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.server = peer_serve.Server(self.listening.getsockname()[1], "k", "m", [])
        self.pieces = pieces
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client = self.listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            client.recv(1 << 16)
            for piece in self.pieces:
                client.sendall(piece.encode())


class RoundTest(unittest.TestCase):
    def round_with(self, *pieces):
        answering = AnsweringServer(*pieces)
        self.addCleanup(answering.listening.close)
        return peer_serve.run_round(answering.server, peer_serve.make_prompts(3, 4, 0), 2)

    def test_figures_are_of_all_streams_together_and_of_each_from_its_first_token(self):
        quick = peer_serve.Stream(sent=1.0, first=1.01, last=1.11, tokens=11)
        slow = peer_serve.Stream(sent=1.01, first=1.04, last=1.24, tokens=21)
        figures = peer_serve.figures_of([quick, slow, quick])
        for name, expected in (("tokens_per_s", 43 / 0.24), ("decode_tokens_per_s", 300), ("first_token_ms", 10),
                               ("slowest_first_token_ms", 30)):
            self.assertAlmostEqual(figures[name], expected, msg=name)

    def test_prompts_are_words_and_none_begins_as_another(self):
        prompts = peer_serve.make_prompts(peer_serve.WORDS, 5, 7)
        self.assertEqual(len({prompt[0] for prompt in prompts}), peer_serve.WORDS)
        for prompt in prompts:
            self.assertEqual(len(prompt), 5)
            self.assertTrue(all(0 <= token - peer_serve.FIRST_WORD < peer_serve.WORDS for token in prompt))
        self.assertEqual(peer_serve.make_prompts(1, 5, 8)[0], prompts[1])

    def test_each_stream_has_the_tokens_that_the_server_counts_in_order_of_time(self):
        streams = self.round_with(HEAD + WORD, WORD + last_chunk(2) + END)
        self.assertEqual(len(streams), 3)
        for stream in streams:
            self.assertEqual(stream.tokens, 2)
            self.assertLess(stream.sent, stream.first)
            self.assertLess(stream.first, stream.last)

    def test_answers_that_cannot_be_compared_are_errors(self):
        error = chunk({"error": {"message": "the lease was revoked"}})
        for code, answer in (("MalformedMessage", HEAD + WORD + WORD + last_chunk(1) + END),
                             ("MalformedMessage", HEAD + WORD + WORD + END),
                             ("MalformedMessage", HEAD + WORD + last_chunk(2) + END),
                             ("ConnectionLost", HEAD + WORD + error + END), ("ConnectionLost", HEAD + WORD),
                             ("BadRequest", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
                             ("ConnectionLost", "")):
            with self.subTest(answer=answer), self.assertRaises(peer.Failure) as raised:
                self.round_with(answer)
            self.assertEqual(raised.exception.exit_code, peer.EXIT_CODES[code])

    def test_a_server_that_is_not_there_is_an_error(self):
        nobody = peer_serve.Server(peer_serve.free_port(), "k", "m", [])
        with self.assertRaises(peer.Failure) as raised:
            peer_serve.run_round(nobody, [[1]], 2)
        self.assertEqual(raised.exception.exit_code, peer.EXIT_CODES["ConnectionRefused"])


@unittest.skipUnless(context.BIN, "LEASEHOLD_BIN_DIR is not set")
class ServeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(context.HERE / "fake_llama_server.py", self.folder / "llama-server")
        (self.folder / "llama-server").chmod(0o700)

    def run_driver(self, *arguments, limit=None):
        if limit:
            (self.folder / "limits.json").write_text(json.dumps({"limits": [limit]}))
            arguments += ("--check", str(self.folder / "limits.json"))
        return context.run_driver(peer_serve, "peer-serve", self.folder / "report", "--peer", str(self.folder),
                                  "--model", context.MODEL, "--prompt-tokens", "8", "--generated-tokens", "4",
                                  "--rounds", "2", *arguments)

    def test_the_report_has_both_servers_figures_their_ratios_and_the_command_line(self):
        code, report, errors = self.run_driver(
            "--streams", "1", "--streams", "3", limit={"name": "peer_serve.3_streams.ratio.tokens_per_s", "min": 0})
        self.assertEqual(code, 0, errors)
        everything = report["peer_serve"]
        self.assertEqual(everything["version"], "fake 7")
        for streams in (1, 3):
            run = everything[f"{streams}_streams"]
            self.assertTrue(run["peer_command"].startswith(
                f"llama-server -m {context.MODEL} -np {streams} -c {256 * streams} --host 127.0.0.1 --port "))
            self.assertTrue(run["worker_options"].startswith("--http 127.0.0.1:"))
            self.assertNotIn("--threads", run["worker_options"])
            self.assertGreater(run["ours"]["resident_mib"], 5)  # broker and worker with the model of 4 MB
            for figure in ("tokens_per_s", "decode_tokens_per_s", "first_token_ms", "cpu_ms_per_token", "health_ms",
                           "resident_mib"):
                with self.subTest(figure=figure):
                    self.assertGreater(run["ours"][figure], 0)
                    self.assertEqual(run["ratio"][figure], run["ours"][figure] / run["peer"][figure])
        self.assertIn("llama.cpp fake 7", (self.folder / "report/peer-serve.txt").read_text())

    def test_with_adapters_each_stream_has_its_own_on_both_servers(self):
        adapters = self.folder / "adapters"
        adapters.mkdir()
        for name in ("sailor", "lines"):
            file = pathlib.Path(context.MODEL).with_name(f"leasehold-stories-{name}.gguf")
            shutil.copy(file, adapters / f"{name}.gguf")
        code, report, errors = self.run_driver("--streams", "2", "--adapters", str(adapters))
        self.assertEqual(code, 0, errors)
        run = report["peer_serve"]["2_adapters"]
        self.assertIn(f"--lora {adapters}/lines.gguf --lora {adapters}/sailor.gguf --lora-init-without-apply",
                      run["peer_command"])
        self.assertIn(f"--adapters {adapters}", run["worker_options"])
        self.assertGreater(run["ours"]["tokens_per_s"], 0)
        asked = [json.loads(line) for line in (self.folder / "llama-server.bodies").read_text().splitlines()]
        self.assertEqual({body["lora"][0]["id"] for body in asked}, {0, 1})
        self.assertTrue(all(body["cache_prompt"] is False for body in asked))

    def test_a_ratio_beyond_its_limit_is_exit_code_1(self):
        code, report, _ = self.run_driver(
            "--streams", "1", limit={"name": "peer_serve.1_streams.ratio.tokens_per_s", "min": 1e9})
        self.assertEqual(code, 1)
        self.assertIsNotNone(report)

    def test_a_server_that_ends_at_its_start_is_an_error_with_the_end_of_its_log(self):
        code, _, errors = self.run_driver("--streams", "1", "--threads", "1")
        self.assertEqual(code, peer.EXIT_CODES["ConnectionLost"])
        self.assertIn("llama-server ended with 3", errors)
        self.assertIn("no threads here", errors)


if __name__ == "__main__":
    unittest.main()
