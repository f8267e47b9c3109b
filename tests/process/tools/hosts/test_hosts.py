"""The judge of texts through hosts that fail, and a gateway before modelled hosts. LEASEHOLD_BIN_DIR: the programs."""

import json
import os
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "checks/hosts"))
import client
import gateway_bench
import routers


def event(text, index=0, created=7, name="chatcmpl-1"):
    return json.dumps({"choices": [{"delta": {"content": text}, "index": index}], "created": created, "id": name},
                      separators=(",", ":")).encode()


def answer_of(*events, times=()):
    answer = client.Answer.__new__(client.Answer)
    answer.status, answer.fields, answer.document = 200, {"content-type": "text/event-stream"}, b""
    answer.events, answer.times = list(events), list(times)
    return answer


A, B, C, DONE = event("a"), event("b"), event("c"), b"[DONE]"
CALM = answer_of(A, B, C, DONE)


class JudgeTest(unittest.TestCase):
    def fault(self, *events):
        return client.fault_of(CALM, answer_of(*events)) or ""

    def test_other_ids_and_times_of_a_whole_text_are_the_same_answer(self):
        others = [event(text, created=9, name="chatcmpl-2") for text in "abc"]
        self.assertEqual("", self.fault(*others, DONE))

    def test_what_differs_is_named(self):
        self.assertIn("other events", self.fault(A, B, event("d"), DONE))
        self.assertIn("other events", self.fault(A, C, DONE))
        self.assertIn("other events", self.fault(A, B, B, C, DONE))
        self.assertIn("other events", self.fault(B, A, C, DONE))
        self.assertIn("created has the values", self.fault(A, B, event("c", created=8), DONE))
        self.assertIn("the ids are", self.fault(A, B, event("c", name="chatcmpl-2"), DONE))
        self.assertIn("ends after 2 of 4 events", self.fault(A, B))
        self.assertIn("ends after 2 of 4 events", self.fault(A, b'{"error":{"code":"HostLost"}}'))

    def test_only_the_order_within_a_choice_counts(self):
        first, second, other = event("x", 1), event("y", 1), event("a", 0)
        calm = answer_of(first, other, second, DONE)
        self.assertIsNone(client.fault_of(calm, answer_of(other, first, second, DONE)))
        self.assertIn("choice 1", client.fault_of(calm, answer_of(other, second, first, DONE)))

    def test_an_answer_without_a_stream_is_compared_whole(self):
        def document(text, length):
            answer = answer_of()
            answer.fields, answer.document = {"content-length": str(length)}, text
            return answer
        calm = document(A, len(A))
        self.assertIsNone(client.fault_of(calm, document(event("a", created=9), len(A))))
        self.assertIn("another one", client.fault_of(calm, document(event("b"), len(A))))
        self.assertIn("ends after", client.fault_of(calm, document(A, len(A) + 1)))

    def test_a_pause_ends_with_the_first_event_that_was_not_on_its_way(self):
        text = answer_of(*[A] * 9, times=(1.0, 2.001, 2.002, 2.5, 2.6, 2.7, 2.8, 2.9, 9.0))
        self.assertAlmostEqual(0.5, text.pause_after(2.0))
        self.assertIsNone(text.pause_after(9.0))
        self.assertAlmostEqual(6.1, text.longest_gap())


class QuantileTest(unittest.TestCase):
    def test_quantiles_are_measured_values(self):
        figures = gateway_bench.distribution([value / 1000 for value in range(200, 0, -1)])
        self.assertEqual((200, 100, 198, 200), tuple(round(figures[key]) for key in ("n", "p50", "p99", "max")))
        self.assertEqual({"n": 0}, gateway_bench.distribution([]))


class ReportTest(unittest.TestCase):
    def test_it_names_what_was_changed_cut_and_skipped(self):
        times = gateway_bench.distribution([0.1, 0.2])
        cost = {"paced_cpu_us_per_event": 2, "full_cpu_us_per_event": 1, "paced_events_per_core_s": 5e5,
                "full_events_per_core_s": 1e6, "cut_streams": 3, "streams": 16}
        text = gateway_bench.text_of({"gateway": {
            "texts": {"read": 7, "changed": 1, "faults": ["text 1/greedy/0 is another one"]},
            "killed": {"pause_ms": times}, "drain": {"gap_ms": {"n": 0}},
            "first_token": {"added_p50_ms": 0.25}, "memory": {"peak_mib": 40, "streams": 1000},
            "routers": {"gateway": cost}, "skipped": ["skipped: nginx is not installed"]}})
        for line in ("7 texts through failures, 1 changed", "text 1/greedy/0 is another one", "3 of 16",
                     "skipped: nginx is not installed", "0.25 ms more", "40.0 MiB with 1000 streams"):
            self.assertIn(line, text)
        self.assertRegex(text, r"killed.pause_ms +2 +100.0 +200.0 +200.0 +200.0")


class RouterTest(unittest.TestCase):
    def test_no_stream_through_the_gateway_is_cut_when_a_host_dies(self):
        settings = types.SimpleNamespace(bin_dir=os.environ["LEASEHOLD_BIN_DIR"], peers=None)
        with tempfile.TemporaryDirectory() as folder, routers.ModelledHosts(folder, 2, 5) as hosts:
            with routers.Router("gateway", routers.gateway_command, settings, hosts.addresses, folder) as router:
                cost_us, _ = routers.run_streams(router, 8, 5)
                self.assertGreater(cost_us, 0)
                self.assertEqual(0, routers.cut_streams(router, hosts, 8, 40))

    def test_a_router_that_is_missing_is_one_line(self):
        settings = types.SimpleNamespace(peers="/nowhere")
        known, missing = routers.known_routers(settings)
        self.assertIn("gateway", known)
        self.assertIn("skipped: vllm-router is not in /nowhere", missing)


if __name__ == "__main__":
    unittest.main()
