"""The asynchronous client against a broker and a worker that fail in chosen ways."""

import asyncio
import tempfile
import threading
import unittest

import context  # noqa: F401  pylint: disable=unused-import
import leasehold_client
from scene import FAST, TEXT, Scene, complete, send_tokens


class AsyncSessionTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.scene = Scene(self.folder.name)

    def session(self, **options):
        return leasehold_client.AsyncSession("alice", self.scene.broker_path, retry=FAST, **options)

    def stop_after_two_tokens(self):
        """Each text gets two tokens, and no end."""
        def disturb(_submission, request, send):
            send_tokens(send, request["request_id"], 0, 2)
            return True

        self.scene.disturb = disturb

    @staticmethod
    async def read(session, second):
        """Reads a text; sets the event at its second token."""
        async for token in session.generate("x", request_id="r"):
            if token.position == 1:
                second.set()

    def revoke_first(self, count):
        """The first `count` texts are revoked after two tokens."""
        def disturb(submission, request, send):
            if submission <= count:
                send_tokens(send, request["request_id"], 0, 2)
                complete(send, request["request_id"], "Revoked", scope="tenant")
            return submission <= count

        self.scene.disturb = disturb

    async def test_a_text_is_delivered_with_its_result_and_the_lease_released(self):
        async with self.session() as session:
            stream = session.generate("x", request_id="r")
            tokens = [(token.id, token.text) async for token in stream]
            self.assertEqual(await session.text("x"), "Once upon a time")
        self.assertEqual(tokens, TEXT)
        self.assertEqual(stream.result, leasehold_client.Completed("MaxTokensReached", "", 4, 5, ("1.1",)))
        self.assertEqual(len(self.scene.broker.params_of("lease.release")), 1)

    async def test_an_embedding_is_asked_for_again_after_a_revocation(self):
        asked = []

        def disturb(submission, request, send):
            asked.append((request["max_emitted_tokens"], request["embedding"]))
            if submission == 1:
                complete(send, request["request_id"], "Revoked", scope="tenant")
            else:
                complete(send, request["request_id"], "MaxTokensReached", embedding="AAAAPwAAAL8=")
            return True

        self.scene.disturb = disturb
        async with self.session() as session:
            self.assertEqual(await session.embed("x", pooling="mean"), [0.5, -0.5])
            with self.assertRaises(leasehold_client.Error) as refused:
                await session.embed("x", max_tokens=3)
        self.assertEqual(refused.exception.code, "BadRequest")
        self.assertEqual(asked, [(0, {"pooling": "mean"})] * 2)

    async def test_a_cancelled_task_cancels_its_request_before_it_ends(self):
        self.stop_after_two_tokens()
        second = asyncio.Event()
        async with self.session() as session:
            task = asyncio.create_task(self.read(session, second))
            await second.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(self.scene.cancelled.is_set())
            self.scene.disturb = lambda *_: False
            self.assertEqual(await session.text("x"), "Once upon a time")
        self.assertEqual(self.scene.leases, 1)

    async def test_a_closed_stream_cancels_its_request_and_yields_no_more(self):
        self.stop_after_two_tokens()
        async with self.session() as session:
            stream = session.generate("x", request_id="r")
            await stream.__anext__()
            await stream.aclose()
            self.assertTrue(self.scene.cancelled.is_set())
            self.assertEqual(([token async for token in stream], stream.result), ([], None))

    async def test_two_texts_of_a_session_replace_their_lease_once(self):
        self.revoke_first(2)
        async with self.session() as session:
            texts = await asyncio.gather(session.text("x"), session.text("y"))
        self.assertEqual(texts, ["Once upon a time"] * 2)
        self.assertEqual(self.scene.leases, 2)
        continued = [again["rebound_from"] for again in self.scene.worker.params_of("request.submit")[2:]]
        self.assertEqual(continued, ["1.1", "1.1"])

    async def test_a_task_cancelled_while_the_broker_decides_leaves_a_session_that_works(self):
        asked, go_on = threading.Event(), threading.Event()

        def wait_once():
            asked.set()
            go_on.wait(20)

        self.scene.before_acquire = wait_once
        async with self.session() as session:
            task = asyncio.create_task(session.text("x"))
            await asyncio.to_thread(asked.wait, 20)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            go_on.set()
            self.assertEqual(await session.text("x"), "Once upon a time")
        # With that connection the broker ends the lease that was asked for.
        self.assertEqual(self.scene.broker.accepted, 2)

    async def test_the_end_of_a_session_ends_its_texts_with_an_error(self):
        self.stop_after_two_tokens()
        second = asyncio.Event()
        session = self.session()
        task = asyncio.create_task(self.read(session, second))
        await second.wait()
        await session.aclose()
        self.scene.worker.close()  # which would end the request of a released lease
        with self.assertRaises(leasehold_client.Error) as raised:
            await task
        self.assertEqual((raised.exception.code, raised.exception.detail),
                         ("BadRequest", "the session is closed; open another one"))

    async def test_an_unknown_option_is_named_with_what_was_meant(self):
        async with self.session() as session:
            with self.assertRaises(leasehold_client.Error) as raised:
                session.generate("x", max_token=3)
        self.assertEqual(raised.exception.code, "BadRequest")
        self.assertIn("'max_token'; did you mean 'max_tokens'?", raised.exception.detail)


if __name__ == "__main__":
    unittest.main()
