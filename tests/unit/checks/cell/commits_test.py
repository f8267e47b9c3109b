"""The judge of a cell's commits: which steps are late, by ceilings that agents log and beats that etcd shows."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../checks/cell"))
import commits

# The log's time 00:00:10 is the boot time 10.
OFFSET = 0.0
TTL_S = 2.0


def logged(second, ceiling_in_ms, what="beat arrived"):
    return f"1970-01-01T00:00:{second:09.6f} debug leasehold-cell {what} ceiling_in_ms={ceiling_in_ms}"


def step(at_s, lease="2.1"):
    return json.dumps({"event": "batched_decode_step", "at_boottime_ns": int(at_s * 1e9), "per_seq_leases": [lease]})


class CommitsTest(unittest.TestCase):
    def ceilings(self, *lines, shown=((10.0, TTL_S),)):
        return commits.ceilings_of("\n".join(lines), shown, OFFSET)

    def late(self, at_s, ceilings, lease="2.1"):
        steps, late = commits.late_steps([step(at_s, lease)], {"2.1"}, ceilings)
        return steps, len(late)

    def test_a_step_before_the_ceiling_is_in_time(self):
        self.assertEqual(self.late(11.79, self.ceilings(logged(10.001, 1799))), (1, 0))

    def test_a_step_past_the_ceiling_is_late(self):
        self.assertEqual(self.late(11.81, self.ceilings(logged(10.001, 1799))), (1, 1))

    def test_a_step_of_a_local_tenant_is_not_judged(self):
        self.assertEqual(self.late(11.81, self.ceilings(logged(10.001, 1799)), lease="3.1"), (0, 0))

    def test_a_later_ceiling_holds_from_its_own_time_on(self):
        ceilings = self.ceilings(logged(10.001, 1799), logged(15.0, 1799, "host joined cell=c"),
                                 shown=((10.0, TTL_S), (15.0, TTL_S)))
        self.assertEqual(self.late(14.9, ceilings), (1, 1))
        self.assertEqual(self.late(15.1, ceilings), (1, 0))

    def test_a_ceiling_that_the_agent_makes_too_late_is_cut_to_what_etcd_has_shown(self):
        self.assertEqual(self.late(12.5, self.ceilings(logged(10.001, 9999))), (1, 1))

    def test_a_step_before_any_ceiling_is_late(self):
        self.assertEqual(self.late(9.0, self.ceilings(logged(10.001, 1799))), (1, 1))

    def test_an_old_beat_that_is_found_later_lowers_nothing(self):
        ceilings = self.ceilings(logged(10.001, 1799), logged(11.0, -500))
        self.assertEqual(self.late(11.7, ceilings), (1, 0))

    def test_leases_are_those_of_the_tenants(self):
        lines = [json.dumps({"event": "lease_state", "tenant": tenant, "lease": lease})
                 for tenant, lease in (("ann", "2.1"), ("local", "3.1"), ("", "0.1"))]
        self.assertEqual(commits.leases_of(lines, {"ann"}), {"2.1"})


if __name__ == "__main__":
    unittest.main()
