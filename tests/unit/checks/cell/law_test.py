"""The judge of a cell's history: what it accepts, and that it finds each way to break the law."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../checks/cell"))
from law import Law

A, B = 3, 4  # incarnations of the hosts a and b


class Stored:
    """An entry of etcd."""

    def __init__(self, name, value, created):
        self.key, self.value, self.created = "/leasehold/c/" + name, json.dumps(value), created


def part(host, incarnation, concurrent, replaced=None):
    one = {"host": host, "incarnation": incarnation, "concurrent": concurrent}
    return {**one, "instead_of": {"host": replaced[0], "incarnation": replaced[1]}} if replaced else one


class LawTest(unittest.TestCase):
    def setUp(self):
        self.law, self.revision = Law("c"), 0
        self.put("hosts/a", {}, A)
        self.put("hosts/b", {}, B)
        self.limit(8)

    def put(self, name, value, created=1):
        self.change(False, name, value, created)

    def delete(self, name):
        self.change(True, name, None, 0)

    def change(self, is_deleted, name, value, created):
        self.revision += 1
        self.law.add(self.revision, [(is_deleted, Stored(name, value, created))])

    def limit(self, concurrent):
        self.put("tenants/ann", {"limits": {"concurrent": concurrent}})

    def ledger(self, *parts):
        self.put("ledger/ann", {"parts": parts})

    def test_parts_up_to_the_limit_obey(self):
        self.ledger(part("a", A, 5), part("b", B, 3))
        self.assertEqual(self.law.broken, [])

    def test_parts_above_the_limit_break_it(self):
        self.ledger(part("a", A, 5), part("b", B, 4))
        self.assertIn("have 9 concurrent, of 8", self.law.broken[0])

    def test_parts_of_an_earlier_incarnation_do_not_count(self):
        self.ledger(part("a", A - 1, 8), part("b", B, 8))
        self.assertEqual(self.law.broken, [])

    def test_the_part_of_a_gone_host_can_be_taken(self):
        self.ledger(part("a", A, 8))
        self.delete("hosts/a")
        self.ledger(part("b", B, 8))
        self.assertEqual(self.law.broken, [])

    def test_a_part_taken_before_its_host_is_gone_breaks_it(self):
        self.ledger(part("a", A, 8))
        self.ledger(part("a", A, 8), part("b", B, 8))
        self.delete("hosts/a")
        self.assertEqual(len(self.law.broken), 1)

    def test_a_part_that_replaces_another_counts_once_with_it(self):
        self.ledger(part("a", A, 6), part("b", B, 8, replaced=("a", A)))
        self.assertEqual(self.law.broken, [])
        self.ledger(part("a", A, 6), part("b", B, 9, replaced=("a", A)))
        self.assertEqual(len(self.law.broken), 1)

    def test_a_part_whose_replaced_part_is_gone_counts_by_itself(self):
        self.ledger(part("b", B, 8, replaced=("a", A)), part("a", A, 8))
        self.delete("hosts/a")
        self.ledger(part("b", B, 9, replaced=("a", A)), part("a", A, 8))
        self.assertEqual(len(self.law.broken), 1)

    def test_parts_above_a_lowered_limit_may_fall_but_not_rise(self):
        self.ledger(part("a", A, 4), part("b", B, 4))
        self.limit(4)
        self.ledger(part("a", A, 4), part("b", B, 3))
        self.assertEqual(self.law.broken, [])
        self.ledger(part("a", A, 5), part("b", B, 3))
        self.assertEqual(len(self.law.broken), 1)

    def test_a_tenant_without_a_policy_has_no_part(self):
        self.put("ledger/bob", {"parts": [part("a", A, 1)]})
        self.assertEqual(len(self.law.broken), 1)


if __name__ == "__main__":
    unittest.main()
