"""What is judged at the end of every cell: the commits of its workers, and the history of its etcd."""

import cell_local
import commits
import law


class Judges:
    def __init__(self):
        self.commits = {"steps": 0, "late": 0, "faults": []}
        self.law = {"revisions": 0, "sums": 0, "broken": 0, "faults": []}

    def add(self, hosts, tenants):
        """`hosts`: a BenchCell at its end. `tenants`: those of the cell that had requests."""
        judged = commits.judge(hosts, tenants)
        self.commits["steps"] += judged["steps"]
        self.commits["late"] += judged["late"]
        self.commits["faults"] += judged["shown"]
        client = hosts.etcd.client()
        history = law.judge(client, cell_local.CELL)
        client.close()
        self.law["revisions"] += history.revisions
        self.law["sums"] += history.sums_checked
        self.law["broken"] += len(history.broken)
        self.law["faults"] += history.broken[:commits.MOST_SHOWN]
