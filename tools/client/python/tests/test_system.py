"""The client against real processes. LEASEHOLD_BIN_DIR: their folder; LEASEHOLD_MODEL: a model file."""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest

import context  # noqa: F401  pylint: disable=unused-import
import leasehold_client

BIN = os.environ.get("LEASEHOLD_BIN_DIR")
MODEL = os.environ.get("LEASEHOLD_MODEL")
LENGTH = 120


class System:
    """A broker and two workers in a folder of their own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.broker_path = str(self.folder / "broker.sock")
        self.processes = {}
        try:
            self.start_all()
        except BaseException:
            self.stop()
            raise

    def start_all(self):
        self.start("broker", "leasehold-broker", "--socket", self.broker_path, "--capacity", "64MiB")
        self.until(lambda: self.ctl("status") is not None)
        for name in ("w1", "w2"):
            self.start(name, "leasehold-worker", "--broker", self.broker_path, "--listen",
                       str(self.folder / f"{name}.sock"), "--name", name, "--model", MODEL,
                       "--slow-motion-us", "20")
        self.until(lambda: len(self.ready_workers()) == 2)
        assert self.ctl("tenants", "admit", "alice", "--max-concurrent", "4", "--max-blocks", "1024") is not None

    def start(self, name, program, *arguments):
        log = open(self.folder / f"{name}.log", "wb")
        with log:
            self.processes[name] = subprocess.Popen([os.path.join(BIN, program), *arguments], stdout=log, stderr=log)

    def ctl(self, *arguments):
        """The answer of brokerctl, or None."""
        command = [os.path.join(BIN, "brokerctl"), "--socket", self.broker_path, "-o", "json", *arguments]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def ready_workers(self):
        return [w for w in (self.ctl("workers") or {}).get("items", []) if w["state"] == "ready"]

    def kill(self, name):
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def until(self, condition):
        poll = threading.Event()
        for _ in range(600):
            if condition():
                return
            poll.wait(0.05)
        logs = [path.read_text()[-2000:] for path in sorted(self.folder.glob("*.log"))]
        raise AssertionError("the condition did not come true\n" + "\n".join(logs))

    def stop(self):
        for process in reversed(list(self.processes.values())):
            process.terminate()
        for process in self.processes.values():
            process.wait(timeout=60)


@unittest.skipUnless(BIN and MODEL, "LEASEHOLD_BIN_DIR and LEASEHOLD_MODEL are not set")
class SystemTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.system = System(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.system.stop()
        cls.folder.cleanup()

    def generate(self, at_token, act, **options):
        """(tokens, result) of a text that `act(session)` disturbs when a position arrives."""
        with leasehold_client.Session("alice", self.system.broker_path) as session:
            tokens = []
            for token in session.generate("Once upon a time", max_tokens=LENGTH, ignore_eos=True, **options):
                self.assertEqual(token.position, len(tokens))
                tokens.append(token.id)
                if token.position == at_token:
                    act(session)
            return tokens, session.result

    def test_texts_that_are_revoked_or_lose_their_worker_are_the_undisturbed_one(self):
        expected, result = self.generate(-1, None)
        self.assertEqual((len(expected), result.reason, len(result.leases)), (LENGTH, "MaxTokensReached", 1))

        revoked, result = self.generate(30, lambda s: self.system.ctl("revoke", s.lease.id, "--wait"))
        self.assertEqual((revoked, len(result.leases)), (expected, 2))

        killed, result = self.generate(40, lambda s: self.system.kill(s.lease.worker), resumable=True)
        self.assertEqual((killed, len(result.leases)), (expected, 2))

    def test_a_grammar_logprobs_and_tools_reach_the_worker(self):
        with leasehold_client.Session("alice", self.system.broker_path) as session:
            self.assertIn(session.text("Red?", grammar='root ::= "yes" | "no"'), ("yes", "no"))
            [token] = session.generate("Once", max_tokens=1, ignore_eos=True, logprobs=True, top_logprobs=2)
            self.assertEqual((len(token.top_logprobs), token.top_logprobs[0][0]), (2, token.id))
            self.assertLessEqual(token.logprob, 0)
            messages = [{"role": "user", "content": "Hi"},
                        {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": "{}"}}]},
                        {"role": "tool", "content": "7", "tool_call_id": "c1"}]
            self.assertEqual(len(list(session.generate(messages=messages, max_tokens=4, ignore_eos=True))), 4)
            prompt_tokens = session.result.prompt_tokens
            tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
            session.text(messages=messages, tools=[tool], max_tokens=4)
            self.assertGreater(session.result.prompt_tokens, prompt_tokens)

    async def disturb(self, at_token, act, **options):
        """(tokens, result) of a text in an event loop; `act(session)` disturbs it at a position."""
        async with leasehold_client.AsyncSession("alice", self.system.broker_path) as session:
            stream = session.generate("Once upon a time", max_tokens=LENGTH, ignore_eos=True, **options)
            tokens = []
            async for token in stream:
                tokens.append(token.id)
                if token.position == at_token:
                    await asyncio.to_thread(act, session)
            return tokens, stream.result

    def test_two_texts_in_one_loop_of_which_one_is_revoked_are_the_undisturbed_one(self):
        async def both():
            return await asyncio.gather(
                self.disturb(30, lambda s: self.system.ctl("revoke", s.lease.id, "--wait")),
                self.disturb(-1, None))

        expected, _ = self.generate(-1, None)
        (revoked, first), (calm, second) = asyncio.run(both())
        self.assertEqual((revoked, len(first.leases)), (expected, 2))
        self.assertEqual((calm, len(second.leases)), (expected, 1))

    def test_a_cancelled_task_leaves_no_request_and_its_session_goes_on(self):
        async def cancel_at_ten():
            async with leasehold_client.AsyncSession("alice", self.system.broker_path) as session:
                tenth = asyncio.Event()

                async def read():
                    async for token in session.generate("Once", max_tokens=400, ignore_eos=True):
                        if token.position == 10:
                            tenth.set()

                task = asyncio.create_task(read())
                await tenth.wait()
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                lease = session.lease.id
                text = await session.text("Once", max_tokens=4, ignore_eos=True)
                self.assertEqual((len(text) > 0, session.lease.id), (True, lease))

        asyncio.run(cancel_at_ten())

    def test_errors_have_the_codes_of_the_broker(self):
        with leasehold_client.Session("mallory", self.system.broker_path) as session:
            with self.assertRaises(leasehold_client.Error) as raised:
                session.text("x")
        self.assertEqual(raised.exception.code, "UnknownTenant")


if __name__ == "__main__":
    unittest.main()
