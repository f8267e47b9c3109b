"""The judge of a cell's history in etcd: at every revision, the counting parts of a tenant are together at most its
limits.

It reads what etcd has stored, and shares no code with the agents. A part counts if its host still has the part's
incarnation, which is the revision that created the host's key. A part with `instead_of` counts once with the part that
it replaces, while that one counts. After an operator has lowered a limit, the sum may be above it until hosts have
lowered their parts, but must not rise.
"""

import json

AMOUNTS = ("concurrent", "blocks", "reserved", "tokens_per_minute")


def owner_of(part):
    return part["host"], part["incarnation"]


class Law:
    """`add` every revision in order; `broken` has a sentence for each revision that breaks the law."""

    def __init__(self, cell):
        self.prefix = f"/leasehold/{cell}/"
        self.members = {}  # host -> incarnation
        self.limits = {}  # tenant -> the limits of its policy
        self.ledgers = {}  # tenant -> its parts
        self.sums = {}  # tenant -> what counted at the previous revision
        self.revisions = self.sums_checked = 0
        self.broken = []

    def add(self, revision, changes):
        self.revisions += 1
        touched = set()
        for is_deleted, entry in changes:
            if entry.key.startswith(self.prefix):
                touched |= self.apply(is_deleted, entry)
        for tenant in touched:
            self.check(revision, tenant)

    def apply(self, is_deleted, entry):
        """Returns the tenants whose sums may have changed."""
        kind, _, name = entry.key[len(self.prefix):].partition("/")
        if kind == "hosts":
            before = self.members.get(name)
            if is_deleted:
                self.members.pop(name, None)
            else:
                self.members[name] = entry.created
            return set(self.ledgers) if self.members.get(name) != before else set()
        if kind == "tenants":
            self.limits[name] = {} if is_deleted else json.loads(entry.value)["limits"]
            return {name}
        if kind == "ledger":
            self.ledgers[name] = [] if is_deleted else json.loads(entry.value)["parts"]
            return {name}
        return set()

    def counts(self, owner):
        return self.members.get(owner[0]) == owner[1]

    def counting(self, parts, amount):
        """The sum of the parts that count, of one of their amounts."""
        of = {owner_of(part): part.get(amount, 0) for part in parts if self.counts(owner_of(part))}
        replacing, total = {}, 0
        for part in parts:
            owner, replaced = owner_of(part), part.get("instead_of")
            if owner not in of:
                continue
            if replaced and owner_of(replaced) in of:
                replacing[owner_of(replaced)] = replacing.get(owner_of(replaced), 0) + of[owner]
            else:
                total += of[owner]
        return total + sum(max(0, amount_of - of[owner]) for owner, amount_of in replacing.items())

    def check(self, revision, tenant):
        limits = self.limits.get(tenant, {})
        for amount in AMOUNTS:
            total, limit = self.counting(self.ledgers.get(tenant, []), amount), limits.get(amount, 0)
            before = self.sums.get((tenant, amount), 0)
            self.sums[tenant, amount] = total
            self.sums_checked += 1
            if total > limit and total > before:
                self.broken.append(f"revision {revision}: the parts of tenant {tenant} have {total} {amount}, of "
                                   f"{limit} (before: {before}): {json.dumps(self.ledgers[tenant])}, members "
                                   f"{self.members}")


def judge(client, cell):
    """The Law after the whole history of etcd."""
    law = Law(cell)
    for revision, changes in client.history():
        law.add(revision, changes)
    return law
