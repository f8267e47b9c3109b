"""The client against a broker and a worker that fail in chosen ways."""

import json
import os
import tempfile
import threading
import unittest
import unittest.mock

import context  # noqa: F401  pylint: disable=unused-import
import fakes
import leasehold_client
from fakes import FakeServer, Refusal
from leasehold_client.text import Text, TextPolicy
from scene import FAST, TEXT, Scene, complete, identity_of, send_tokens


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.scene = Scene(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def deliver(self, **options):
        """The tokens of one text, checked to be each position once."""
        with self.scene.session(**options.pop("session", {})) as session:
            tokens = list(session.generate("x", request_id="r", **options))
            self.result = session.result
        self.assertEqual([(t.id, t.text) for t in tokens], TEXT)
        self.assertEqual([t.position for t in tokens], [0, 1, 2, 3])

    def test_a_text_is_delivered_and_the_lease_released(self):
        self.deliver(max_tokens=4, temperature=0.5, seed=7)
        self.assertEqual(self.result, leasehold_client.Completed("MaxTokensReached", "", 4, 5, ("1.1",)))
        request = self.scene.worker.params_of("request.submit")[0]
        self.assertEqual(request["sampling"], {"temperature": 0.5, "seed": 7})
        self.assertEqual(self.scene.broker.params_of("lease.release")[0]["lease"], "1.1")

    def test_tools_and_earlier_calls_are_sent_as_json(self):
        tools = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
        calls = [{"id": "c1", "function": {"name": "add", "arguments": "{}"}}]
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": calls},
                    {"role": "tool", "content": "7", "tool_call_id": "c1"}]
        with self.scene.session() as session:
            text = session.text(messages=messages, tools=tools, chat_template_kwargs={"mood": "calm"},
                                logprobs=True, grammar="root ::= [a-z]*")
        self.assertEqual(text, "Once upon a time")
        request = self.scene.worker.params_of("request.submit")[0]
        self.assertEqual(json.loads(request["tools"]), tools)
        self.assertEqual(json.loads(request["chat_template_kwargs"]), {"mood": "calm"})
        self.assertEqual([messages[0], messages[2]], [request["messages"][0], request["messages"][2]])
        self.assertEqual(request["messages"][1]["content"], "")
        self.assertEqual(json.loads(request["messages"][1]["tool_calls"]), calls)
        self.assertEqual((request["sampling"]["logprobs"], request["sampling"]["grammar"]), (True, "root ::= [a-z]*"))

    def test_a_last_message_is_continued_where_that_is_asked_for(self):
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "The"}]
        with self.scene.session() as session:
            session.text(messages=messages, continue_final_message=True, min_tokens=3, regex="a*")
        request = self.scene.worker.params_of("request.submit")[0]
        self.assertEqual((request["continue_final_message"], request["add_generation_prompt"]), (True, False))
        self.assertEqual((request["sampling"]["min_tokens"], request["sampling"]["regex"]), (3, "a*"))

    def test_a_revoked_lease_is_replaced_and_the_text_continues(self):
        def disturb(submission, request, send):
            if submission == 1:
                send_tokens(send, "r", 0, 2)
                complete(send, "r", "Revoked", scope="tenant", revoke_reason="operator", cached_tokens=16)
            return submission == 1

        self.scene.disturb = disturb
        self.deliver()
        again = self.scene.worker.params_of("request.submit")[1]
        self.assertEqual((again["emitted"], again["rebound_from"], again["token"]), ([11, 12], "1.1", "t2"))
        self.assertEqual(self.scene.broker.params_of("lease.acquire")[1]["replaces"], "1.1")
        self.assertEqual(self.result.leases, ("1.1", "2.1"))
        self.assertEqual(self.result.cached_tokens, 16)

    def test_without_rebind_the_error_is_raised(self):
        def disturb(_submission, _request, send):
            send_tokens(send, "r", 0, 1)
            complete(send, "r", "Revoked", scope="tenant")
            return True

        self.scene.disturb = disturb
        with self.scene.session(rebind=False) as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r"))
        self.assertEqual((raised.exception.code, raised.exception.scope), ("LeaseRevoked", "tenant"))

    def test_an_engine_that_restores_its_weights_keeps_the_lease(self):
        def disturb(submission, _request, send):
            if submission == 1:
                complete(send, "r", "WeightsLoading", scope="engine")
            return submission == 1

        self.scene.disturb = disturb
        self.deliver()
        self.assertEqual(self.result.leases, ("1.1",))
        self.assertNotIn("rebound_from", self.scene.worker.params_of("request.submit")[1])

    def revoke_adapter(self, most):
        def disturb(submission, _request, send):
            if submission <= most:
                complete(send, "r", "Revoked", scope="adapter", lease="7.1", revoke_reason="operator")
            return submission <= most

        self.scene.disturb = disturb

    def test_a_revoked_adapter_is_asked_for_again_once_under_the_same_lease(self):
        self.revoke_adapter(most=1)
        self.deliver(adapter="tuned")
        self.assertEqual(self.result.leases, ("1.1",))
        again = self.scene.worker.params_of("request.submit")[1]
        self.assertEqual((again["adapter"], "rebound_from" in again), ("tuned", False))
        self.revoke_adapter(most=self.scene.submissions + 2)
        with self.scene.session(rebind=True) as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r", adapter="tuned"))
        self.assertEqual((raised.exception.code, raised.exception.scope), ("LeaseRevoked", "adapter"))

    def test_a_text_names_the_adapter_version_of_its_tokens(self):
        def disturb(submission, _request, send):
            if submission <= 2:
                send_tokens(send, "r", 0, submission - 1)
                complete(send, "r", "Revoked", scope="tenant", revoke_reason="operator")
            return submission <= 2

        self.scene.disturb = disturb
        self.deliver(adapter="tuned")
        digests = [request.get("adapter_digest") for request in self.scene.worker.params_of("request.submit")]
        self.assertEqual(digests, [None, None, "a" * 64])

    def test_a_worker_that_lost_its_weights_costs_the_lease(self):
        def disturb(submission, _request, send):
            if submission == 1:
                complete(send, "r", "MissingWeight", scope="engine")
            return submission == 1

        self.scene.disturb = disturb
        self.deliver()
        self.assertEqual(self.result.leases, ("1.1", "2.1"))

    def test_when_no_worker_has_its_weights_the_error_is_raised(self):
        self.scene.refuse_acquire = [Refusal("MissingWeight")]
        with self.scene.session(rebind=True) as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r"))
        self.assertEqual(raised.exception.code, "MissingWeight")

    def test_a_broken_connection_of_a_resumable_request_is_resumed(self):
        def disturb(_submission, _request, send):
            send_tokens(send, "r", 0, 3)
            send(FakeServer.DROP, None)
            return True

        def resume(send, begin):
            send_tokens(send, "r", begin, len(TEXT))
            complete(send, "r", "MaxTokensReached")
            return {"request": "r", "prompt_tokens": 5}

        self.scene.disturb, self.scene.resume = disturb, resume
        self.deliver(resumable=True)
        self.assertEqual(self.scene.worker.params_of("request.resume"), [{"request_id": "r", "after_position": 2}])
        self.assertEqual(self.scene.submissions, 1)

    def test_a_worker_that_forgot_the_request_gets_it_again(self):
        def disturb(submission, _request, send):
            if submission == 1:
                send_tokens(send, "r", 0, 3)
                send(FakeServer.DROP, None)
            return submission == 1

        self.scene.disturb = disturb
        self.deliver(resumable=True)
        self.assertEqual(self.scene.worker.params_of("request.submit")[1]["emitted"], [11, 12, 13])

    def test_a_position_that_repeats_ends_the_text(self):
        def disturb(_submission, _request, send):
            send_tokens(send, "r", 0, 2)
            send_tokens(send, "r", 1, 2)
            return True

        self.scene.disturb = disturb
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r"))
        self.assertEqual(raised.exception.code, "MalformedMessage")
        self.assertEqual(self.scene.submissions, 1)

    def test_another_arithmetic_continues_only_when_asked(self):
        def disturb(submission, _request, send):
            if submission == 1:
                send_tokens(send, "r", 0, 2)
                complete(send, "r", "Revoked", scope="tenant")
            return submission == 1

        self.scene.disturb = disturb
        self.scene.arithmetic = ["int8", "f32"]
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r"))
        self.assertEqual(raised.exception.code, "UnsupportedModel")
        self.scene.leases = self.scene.submissions = 0
        self.deliver(session={"any_arithmetic": True})

    def revoke_after_two_tokens(self):
        def disturb(submission, request, send):
            if submission == 1:
                send_tokens(send, request["request_id"], 0, 2)
                complete(send, request["request_id"], "Revoked", scope="tenant")
            return submission == 1

        self.scene.disturb = disturb

    def test_a_continuation_asks_for_the_identity_that_it_began_on(self):
        self.scene.identities = [identity_of("a"), identity_of("a")]
        self.scene.contexts = [4096]
        self.revoke_after_two_tokens()
        self.deliver(session={"model": "tiny"}, max_tokens=100)
        self.assertEqual(self.scene.acquires[0]["model"], "tiny")
        self.assertNotIn("text_identity", self.scene.acquires[0])
        self.assertEqual(self.scene.acquires[1]["text_identity"], identity_of("a"))
        self.assertEqual(self.scene.acquires[1]["min_context"], 105)

    def test_another_model_never_continues_a_text(self):
        for options, other in (({}, identity_of("b")), ({"any_arithmetic": True}, identity_of("b")),
                               ({}, identity_of("a", "f32"))):
            self.scene.leases = self.scene.submissions = 0
            self.scene.identities = [identity_of("a"), other]
            self.revoke_after_two_tokens()
            with self.scene.session(**options) as session, self.assertRaises(leasehold_client.Error) as raised:
                list(session.generate("x"))
            self.assertEqual(raised.exception.code, "UnknownWorker")
            self.assertEqual(self.scene.submissions, 1)
        self.scene.leases = self.scene.submissions = 0
        self.revoke_after_two_tokens()
        self.deliver(session={"any_arithmetic": True})
        self.assertEqual(self.scene.acquires[-1]["model"], "sha256:" + "a" * 64)

    def test_a_text_does_not_continue_where_it_does_not_fit(self):
        self.scene.identities = [identity_of("a")]
        self.scene.contexts = [4096, 50]
        self.revoke_after_two_tokens()
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", max_tokens=100))
        self.assertEqual(raised.exception.code, "PromptTooLong")

    def test_tokens_of_another_process_continue_on_their_identity_only(self):
        self.scene.identities = [identity_of("b")]
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", emitted=[11], text_identity=identity_of("a")))
        self.assertEqual(raised.exception.code, "UnknownWorker")
        self.assertEqual(self.scene.acquires[0]["text_identity"], identity_of("a"))
        self.assertEqual(self.scene.submissions, 0)

    def test_a_busy_broker_is_asked_again_and_an_unknown_tenant_is_final(self):
        self.scene.refuse_acquire = [Refusal("PoolExhausted", retry_after_ms=5), Refusal("QuotaConcurrent")]
        self.deliver()
        self.scene.refuse_acquire = [Refusal("UnknownTenant")]
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x"))
        self.assertEqual(raised.exception.code, "UnknownTenant")

    def test_a_broker_that_never_answered_is_a_wrong_address(self):
        with leasehold_client.Session("alice", self.folder.name + "/none.sock", retry=FAST) as session:
            with self.assertRaises(leasehold_client.Error) as raised:
                list(session.generate("x"))
        self.assertEqual(raised.exception.code, "FileNotFound")

    def test_retries_without_a_token_are_bounded(self):
        def disturb(_submission, _request, send):
            complete(send, "r", "OutOfBlocks", scope="tenant")
            return True

        self.scene.disturb = disturb
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r"))
        self.assertEqual(raised.exception.code, "OutOfBlocks")
        self.assertEqual(self.scene.submissions, FAST.max_attempts + 1)

    def test_a_passed_deadline_is_not_retried(self):
        def disturb(_submission, _request, send):
            send_tokens(send, "r", 0, 2)
            complete(send, "r", "DeadlineExceeded", scope="tenant")
            return True

        self.scene.disturb = disturb
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r", deadline_s=1.0))
        self.assertEqual(raised.exception.code, "TimedOut")
        self.assertEqual(self.scene.submissions, 1)

    def test_refusals_that_say_when_to_retry_do_not_count(self):
        for code in ("PoolExhausted", "RebindRateLimited"):
            refusals = FAST.max_attempts + 2
            self.scene.refuse_acquire = [Refusal(code, retry_after_ms=1) for _ in range(refusals)]
            self.deliver()

    def refuse_rebinds(self, refusals):
        """Revokes the lease after two tokens, and refuses the next acquires."""
        def disturb(submission, _request, send):
            if submission == 1:
                self.scene.refuse_acquire = refusals
                send_tokens(send, "r", 0, 2)
                complete(send, "r", "Revoked", scope="tenant")
            return submission == 1

        self.scene.disturb = disturb

    def test_a_rebind_waits_for_memory_in_turn(self):
        self.refuse_rebinds([Refusal("PoolExhausted", retry_after_ms=1)] * 20
                            + [Refusal("QuotaBlocks", retry_after_ms=1)])
        self.deliver()

    def test_a_named_worker_may_be_unknown_to_a_broker_that_restarted(self):
        self.refuse_rebinds([Refusal("UnknownWorker")])
        self.deliver(session={"worker": "w1"})

    def test_a_rebind_waits_no_longer_than_it_may(self):
        self.refuse_rebinds([Refusal("PoolExhausted", retry_after_ms=1)] * 20)
        with self.scene.session(rebind_timeout_s=0.0) as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r"))
        self.assertIn("given up after 0 s", raised.exception.detail)

    def test_a_lease_revoked_after_each_token_backs_off(self):
        def disturb(submission, _request, send):
            if submission <= 3:
                send_tokens(send, "r", submission - 1, submission)
                complete(send, "r", "Revoked", scope="tenant")
            return submission <= 3

        self.scene.disturb = disturb
        with unittest.mock.patch.object(leasehold_client.aio, "pause") as pause:
            self.deliver()
        self.assertEqual([call.args[0] for call in pause.call_args_list], [0.0, 0.002, 0.004])

    def test_progress_ends_the_back_off(self):
        retry = leasehold_client.RetryPolicy(progress_tokens=2)
        text = Text({"emitted": [], "max_emitted_tokens": 4}, TextPolicy(retry=retry))
        text.pause_after(leasehold_client.Error("ConnectionLost", ""), True, False, 0.0)
        lease = leasehold_client.Lease("1.1", "t", "a", "w1", "int8", 0.3, 64, 1)
        text.began_under(lease, {"prompt_tokens": 5}, 0.0)
        for position, setbacks in ((0, 1), (1, 0)):
            text.take("token.emitted", {"position": position, "token": 1, "text": "x"}, 0.0)
            self.assertEqual((text.failures, text.setbacks), (0, setbacks))

    def test_the_broker_is_found_as_by_every_program(self):
        own, machine = "/none/leasehold/broker.sock", "/run/leasehold/broker.sock"
        for variables, path in (({"LEASEHOLD_BROKER": "/b", "XDG_RUNTIME_DIR": "/none"}, "/b"),
                                ({"LEASEHOLD_BROKER": "", "XDG_RUNTIME_DIR": "/none"}, own),
                                ({"XDG_RUNTIME_DIR": ""}, machine), ({}, machine)):
            with unittest.mock.patch.dict(os.environ, variables, clear=True):
                self.assertEqual(leasehold_client.broker_path(), path)

    def test_a_lease_whose_worker_died_before_its_first_use_is_replaced_once(self):
        self.scene.refuse_tokens = 1
        self.deliver()
        self.assertEqual(self.result.leases, ("2.1",))
        self.scene.refuse_tokens = 2
        with self.scene.session() as session, self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x", request_id="r"))
        self.assertEqual(raised.exception.code, "BadToken")

    def test_leaving_the_iterator_cancels_the_request(self):
        def disturb(_submission, _request, send):
            send_tokens(send, "r", 0, 1)
            return True

        self.scene.disturb = disturb
        with self.scene.session() as session:
            tokens = session.generate("x", request_id="r")
            next(tokens)
            tokens.close()
        self.assertTrue(self.scene.cancelled.is_set())

    def test_the_lease_is_renewed_and_claimed_from_a_broker_that_restarted(self):
        with self.scene.session() as session:
            list(session.generate("x"))
            wait_for(lambda: self.scene.broker.params_of("lease.renew"))
            first = self.scene.broker
            first.close()
            self.scene.broker = FakeServer(self.scene.broker_path, self.scene._broker)
            wait_for(lambda: self.scene.broker.params_of("lease.hold"))
            self.assertEqual(self.scene.broker.params_of("lease.hold")[0]["token"], "t1")
            self.deliver_under(session, "1.1")

    def test_a_notice_of_revocation_makes_the_next_text_acquire_a_lease(self):
        with self.scene.session() as session:
            list(session.generate("x"))
            self.scene.broker.notify_all("lease.revoked", {"lease": "1.1", "reason": "operator", "scope": "tenant"})
            wait_for(lambda: session.lease is None)
            self.deliver_under(session, "2.1")

    def deliver_under(self, session, lease):
        list(session.generate("x"))
        self.assertEqual(session.result.leases, (lease,))

    def test_a_line_that_cannot_be_read_ends_the_connection(self):
        def disturb(submission, _request, send):
            if submission == 1:
                send_tokens(send, "r", 0, 2)
                send("token.emitted", "[" * 5000 + "]" * 5000)
            return submission == 1

        sent = fakes._send

        def send_raw(connection, message):
            if isinstance(message.get("params"), str):
                return connection.sendall(message["params"].encode() + b"\n")
            return sent(connection, message)

        self.scene.disturb = disturb
        with unittest.mock.patch.object(fakes, "_send", send_raw):
            self.deliver()
        self.assertEqual(self.scene.submissions, 2)

    def test_a_closed_session_generates_nothing(self):
        session = self.scene.session()
        list(session.generate("x"))
        session.close()
        self.assertIsNone(session.lease)
        with self.assertRaises(leasehold_client.Error) as raised:
            list(session.generate("x"))
        self.assertEqual(raised.exception.code, "BadRequest")
        self.assertEqual(self.scene.leases, 1)

    def test_a_session_that_was_made_before_a_fork_works_after_it(self):
        session = self.scene.session()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = int(session.text("x") != "Once upon a time")
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        session.close()

    def test_exactly_one_prompt_is_wanted(self):
        with self.scene.session() as session:
            for prompts in ({}, {"prompt": "x", "prompt_tokens": [1]}):
                with self.assertRaises(leasehold_client.Error) as raised:
                    session.generate(**prompts)
                self.assertEqual(raised.exception.code, "BadRequest")

    def test_withheld_text_follows_the_last_token(self):
        def disturb(_submission, _request, send):
            send_tokens(send, "r", 0, 1)
            complete(send, "r", "StopSequence", text=" <")
            return True

        self.scene.disturb = disturb
        with self.scene.session() as session:
            self.assertEqual(session.text("x", request_id="r"), "Once <")


def wait_for(condition):
    """Bounded, so that a failure is a failure and not a hang."""
    poll = threading.Event()
    for _ in range(2000):
        if condition():
            return
        poll.wait(0.01)
    raise AssertionError("the condition did not come true")


if __name__ == "__main__":
    unittest.main()
