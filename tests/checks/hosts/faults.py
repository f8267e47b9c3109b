"""Rounds of texts through gateways whose hosts fail: what clients read, and how long they waited.

Every text is read once while nothing fails. In a round the same texts run at the same time; once each has some events,
hosts fail, and the judge compares what was read. The samples are seconds by name.
"""

import collections
import signal
import time

import cell
import client

EVENTS_BEFORE_FAULT = 4
EVENTS_AFTER_FAULT = 6
ROUND_TIMEOUT_S = 90
STEADY_KINDS = ("greedy", "sampled", "choices", "logprobs")  # an event for each token
ONE_CHOICE_KINDS = ("greedy", "sampled", "schema", "tools", "logprobs")


def is_steady(name):
    """Whether the text of this X-Request-Id has an event for each token."""
    return name.split("/")[1] in STEADY_KINDS


class Rounds:
    def __init__(self, hosts, model, tokens, texts_of_kind, kinds=tuple(client.KINDS)):
        self.cell, self.model, self.tokens = hosts, model, tokens
        self.requests = [(kind, number) for kind in kinds for number in range(texts_of_kind)]
        self.readers = client.Readers()
        self.samples = collections.defaultdict(list)
        self.whole = 0  # texts that were read as in the undisturbed run
        self.faults = []  # of the other ones
        self.calm = {}
        self.rounds = 0

    def open(self, gateway, only_kinds=client.KINDS, **more):
        """Begins the texts, and returns them by X-Request-Id. `more` is added to each body."""
        self.rounds += 1
        answers = {}
        for kind, number in self.requests:
            if kind in only_kinds:
                name = f"{self.rounds}/{kind}/{number}"
                body = client.chat(kind, number, self.model, self.tokens, **more)
                if "resumable" in body:
                    body["request_id"] = name.replace("/", "-")
                answers[name] = self.readers.open(gateway.address, self.cell.key, body,
                                                  fields=[f"X-Request-Id: {name}"])
        return answers

    def await_events(self, answers):
        """Waits until each text that has an event for each token has begun."""
        begun = [answer for name, answer in answers.items() if is_steady(name)]
        self.readers.run(lambda: all(len(one.events) >= EVENTS_BEFORE_FAULT or one.is_ended for one in begun),
                         ROUND_TIMEOUT_S)

    def read_calm(self, gateway):
        """The texts that the others are compared with, and their longest gaps."""
        answers = self.open(gateway)
        self.readers.run(timeout_s=ROUND_TIMEOUT_S)
        for name, answer in answers.items():
            text = name.split("/", 1)[1]
            if answer.status != 200 or not answer.is_whole():
                raise cell.Failure("SystemError", f"the undisturbed text {text} ends early: "
                                          f"status {answer.status}, {(answer.events[-1:] or [answer.document])[0]!r}")
            if text in self.calm:
                self.judge(name, answer, "calm")
            self.calm.setdefault(text, answer)
            if text.startswith(STEADY_KINDS):
                self.samples["calm_gap"].append(answer.longest_gap())

    def judge(self, name, answer, what):
        fault = client.fault_of(self.calm[name.split("/", 1)[1]], answer)
        if fault:
            self.faults.append(f"{what}, text {name}: {fault}")
        else:
            self.whole += 1

    def finish(self, answers, what):
        self.readers.run(timeout_s=ROUND_TIMEOUT_S)
        for name, answer in answers.items():
            self.readers.close(answer)
            self.judge(name, answer, what)

    def hosts_of(self, gateway, answers):
        """The hosts of texts that run, with the names of their texts, those with most texts first."""
        address = {name: self.cell.host(answer.host()).address for name, answer in answers.items() if answer.host()}
        for name, _, to in gateway.moves():
            if name in address:
                address[name] = to
        texts = collections.defaultdict(list)
        for name, host in address.items():
            if not answers[name].is_ended:
                texts[host].append(name)
        return sorted(((next(host for host in self.cell.hosts if host.address == at), names)
                       for at, names in texts.items()), key=lambda one: -len(one[1]))

    def fail_in_turn(self, gateway, fault, what, times=2):
        """The fault hits the host with most texts; once these go on, the next one."""
        answers = self.open(gateway)
        self.await_events(answers)
        for _ in range(times):
            hosts = self.hosts_of(gateway, answers)
            if not hosts:
                break
            host, names = hosts[0]
            hit = [answers[name] for name in names if is_steady(name)]
            moment = time.monotonic()
            fault(host)
            known = [len(one.events) for one in hit]
            self.readers.run(lambda: all(one.is_ended or len(one.events) > count + EVENTS_AFTER_FAULT
                                         for one, count in zip(hit, known)), ROUND_TIMEOUT_S)
            self.add_pauses(what, self.moved_from(host, gateway, answers), moment)
        self.finish(answers, what)

    @staticmethod
    def moved_from(host, gateway, answers):
        """The texts that left the host. One whose last events were already on their way does not move."""
        return {name: answers[name] for name, origin, _ in gateway.moves()
                if name in answers and origin == host.address}

    def add_pauses(self, what, answers, moment):
        for name, answer in answers.items():
            pause = answer.pause_after(moment)
            if is_steady(name) and pause is not None:
                self.samples[what].append(pause)

    def kill_worker(self, gateway):
        self.fail_in_turn(gateway, lambda host: host.kill_worker(), "killed")
        self.cell.mend()

    def kill(self, gateway):
        self.fail_in_turn(gateway, lambda host: host.kill(), "killed")
        self.cell.mend()

    def freeze(self, gateway):
        """Two hosts are stopped in turn, so that the second gets texts of the first."""
        self.fail_in_turn(gateway, lambda host: host.stop(), "frozen")
        self.cell.mend()

    def drain(self, gateway):
        """The longest gap of a text that moves, from the moment at which its host was asked to stop."""
        answers = self.open(gateway)
        self.await_events(answers)
        host, names = self.hosts_of(gateway, answers)[0]
        moment = time.monotonic()
        host.drain()
        self.finish(answers, "drain")
        for name in names:
            gap = answers[name].longest_gap(moment)
            if is_steady(name) and gap is not None:
                self.samples["drain_gap"].append(gap)
        self.cell.mend()

    def kill_gateway(self, first, second):
        """Texts that are resumable go on through another gateway."""
        answers = self.open(first, ONE_CHOICE_KINDS, resumable=True)
        self.await_events(answers)
        moment = time.monotonic()
        first.process.end(signal.SIGKILL)
        self.readers.run(timeout_s=ROUND_TIMEOUT_S)
        for name, answer in list(answers.items()):
            if answer.is_whole():
                continue
            fields = [f"Last-Event-ID: {answer.last_id}"] if answer.last_id else []
            rest = self.readers.open(second.address, self.cell.key, answer.body, fields=fields)
            rest.events, rest.times = answer.events[:], answer.times[:]
            answers[name] = rest
        self.finish(answers, "gateway killed")
        self.add_pauses("gateway_killed", answers, moment)
        first.start()
        first.await_ready()
        self.cell.await_all_known()

    def cut_link(self, gateway, cut, mend):
        """The host behind the link loses it, or one direction of it."""
        answers = self.open(gateway)
        self.await_events(answers)
        far = next(host for host in self.cell.hosts if host.prefix)
        moment = time.monotonic()
        cut()
        self.finish(answers, "link down")
        self.add_pauses("link_down", self.moved_from(far, gateway, answers), moment)
        mend()
        cell.wait_for(far.is_ready, "the far host does not answer")
        self.cell.await_all_known()
