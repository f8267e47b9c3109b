"""Drives the page of leasehold-monitor, and compares it with what brokerctl prints.

page.py ADDRESS WORK BIN BROKER_PID [SCREENSHOTS]
"""
import base64
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.request

import page_checks
from browser import Browser

ADDRESS, WORK, BIN, BROKER_PID = sys.argv[1:5]
SCREENSHOTS = sys.argv[5] if len(sys.argv) > 5 else ""
MARKUP = "<img src=x onerror=\"document.title='owned'\">"


def control(*arguments, check=True):
    command = [f"{BIN}/brokerctl", "--socket", f"{WORK}/broker.sock", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def document(*arguments):
    return json.loads(control(*arguments, "-o", "json"))


def equal(actual, expected, what):
    if actual != expected:
        raise AssertionError(f"{what}: the page has {actual!r}, brokerctl {expected!r}")


def start_tenant(name, tokens):
    log = open(f"{WORK}/tenant-{name}.log", "w")
    return subprocess.Popen(
        [f"{BIN}/leasehold-tenant", "--socket", f"{WORK}/broker.sock", "--tenant", name, "--prompt", "Once upon a time",
         "--max-tokens", str(tokens), "--ignore-eos"], stdout=log, stderr=log)


def table(browser, name):
    """The cells of a table, a list for each row."""
    return browser.run(f"[...document.querySelectorAll('#{name} tbody tr')].map(r => [...r.cells].map(c => c.innerText.trim()))")


def take_screenshot(browser, name):
    if SCREENSHOTS:
        os.makedirs(SCREENSHOTS, exist_ok=True)
        browser.screenshot(f"{SCREENSHOTS}/{name}.png")


def check_server():
    """Which fields the page is served with, and which requests are refused."""
    def ask(method, path, host=ADDRESS):
        connection = http.client.HTTPConnection(ADDRESS)
        connection.request(method, path, headers={"Host": host})
        reply = connection.getresponse()
        return reply, reply.read()

    for path in ("/", "/main.js", "/style.css", "/api/overview", "/api/history", "/api/leases", "/api/extents", "/api/events",
                 "/api/workers", "/api/cell"):
        reply, body = ask("GET", path)
        assert reply.status == 200 and body, path
        policy = reply.getheader("Content-Security-Policy")
        assert policy.startswith("default-src 'none';") and "unsafe" not in policy, policy
        assert reply.getheader("X-Content-Type-Options") == "nosniff"
        head, nothing = ask("HEAD", path)
        assert head.status == 200 and nothing == b"", path
        assert ask("GET", path, "attacker.example")[0].status == 421, path
        assert ask("POST", path)[0].status == 405, path
    assert ask("GET", "/metrics", "attacker.example")[0].status == 421
    assert ask("GET", "/nothing")[0].status == 404


def check_without_tenants(browser):
    browser.wait("document.getElementById('state')?.dataset.state === 'live'", "the page gets no answer")
    browser.wait("!document.getElementById('tenants-none').hidden", "no word about missing tenants")
    equal(browser.run("document.getElementById('tenant-table').hidden"), True, "the empty table")
    assert "0 of 0" in browser.run("document.getElementById('totals').innerText")
    assert "No lease was revoked yet" in browser.run("document.getElementById('revocations').innerText")
    page_checks.accessible(browser)


def check_64_tenants(browser):
    for i in range(63):
        control("tenants", "admit", f"tenant-{i:02}", "--max-blocks", str(100 + i), "--weight", str(1 + i % 5))
    control("tenants", "admit", "ann", "--max-blocks", "2000", "--max-concurrent", "4", "--ttl-ms", "60000")
    browser.wait("document.querySelectorAll('#tenant-table tbody tr').length === 64", "64 tenants")
    shown = {row[0]: (row[3], row[5].split("/")[1].strip().replace(",", ""), row[6]) for row in table(browser, "tenant-table")}
    policies = [each["policy"] for each in document("tenants")["items"]]
    equal(shown, {each["tenant"]: (str(each["weight"]), str(each["max_blocks"]), each["tier"]) for each in policies}, "policies")
    page_checks.accessible(browser)


def check_stream(browser):
    """A tenant decodes; its lease is then revoked."""
    tenant = start_tenant("ann", 480)
    row = "[...document.querySelectorAll('#tenant-table tbody tr')].find(r => r.cells[0].innerText === 'ann')"
    browser.wait(f"parseFloat({row}.cells[1].innerText) > 0", "ann has no throughput")
    equal(browser.run(f"{row}.cells[2].innerText.trim()"), "100 %", "the share of the only tenant")
    browser.wait("document.querySelector('#token-chart path.area')", "no throughput is drawn")
    browser.wait("[...document.querySelectorAll('#owner-table tbody th')].some(c => c.innerText === 'ann')", "ann owns no extent")
    browser.wait("document.querySelector('#request-table tbody')?.rows[0]?.cells[1].innerText === '1'", "no request runs")
    browser.wait("document.querySelector('#request-table tbody').rows[0].cells[3].innerText.startsWith('≤')", "no time to a first token")
    browser.wait("document.querySelector('#activity-table tbody')?.rows[0]?.cells[2].innerText === 'decode'", "no request is listed")
    equal(browser.run("document.querySelector('#activity-table tbody').rows[0].cells[4].innerText.split('/')[1].trim()"), "480", "most tokens")
    take_screenshot(browser, "desktop-streaming")
    control("revoke", "--tenant", "ann", "--wait")
    tenant.wait(60)
    [lease] = [each for each in document("leases")["items"] if each["tenant"] == "ann"]
    reuse = "document.querySelector('#timeline-chart [data-clock=t_reuse]')"
    browser.wait(f"{reuse} && {reuse}.dataset.ns > 0", "the revocation is not drawn to its end")
    return lease["lease"]


def check_timeline(browser, lease):
    steps = {each["step"]: each.get("since_revoked_ns", -1) for each in document("timeline", lease)["steps"]}
    names = {"t_refuse": "refused", "t_error": "error", "t_quiet": "quiet", "t_reuse": "reusable"}
    drawn = browser.run("Object.fromEntries([...document.querySelectorAll('#timeline-chart [data-clock]')]"
                        ".map(e => [e.dataset.clock, Number(e.dataset.ns)]))")
    equal(drawn, {clock: steps[step] for clock, step in names.items()}, "the four clocks")
    assert f"Lease {lease} of ann on w1" in browser.run("document.getElementById('timeline-text').innerText")
    [row] = [each for each in table(browser, "revocation-table") if each[0] == lease]
    equal(row[1:4], ["ann", "operator", "Fenced"], "the row of the revocation")


def check_numbers(browser):
    """Nothing runs, so the page shows what brokerctl prints."""
    status = document("status")
    browser.wait(f"document.getElementById('totals').innerText.includes('Fenced in all\\n{status['leases_fenced']}')", "fenced leases")
    clocks = {row[0]: row[1] for row in table(browser, "clock-table")}
    equal(clocks, {each["clock"]: str(each["since_start"]["count"]) for each in status["clocks"]}, "the clocks of all")
    extents = sorted(f"extent {each['extent']}, {each['state']}" for each in document("extents")["items"])
    squares = "[...document.querySelectorAll('#memory-chart rect title')].map(t => t.textContent.split(', ').slice(0, 2).join(', ')).sort()"
    browser.wait(f"JSON.stringify({squares}) === {json.dumps(json.dumps(extents, separators=(',', ':')))}", "the map of extents")
    [worker] = table(browser, "worker-table")
    equal(worker[:3], ["w1", "ready", "serving"], "the worker")
    [ann] = [each for each in document("tenants")["items"] if each["policy"]["tenant"] == "ann"]
    [row] = [each for each in table(browser, "tenant-table") if each[0] == "ann"]
    equal(row[7].replace(",", ""), str(ann["served"]["tokens"]), "tokens of ann")
    history = json.load(urllib.request.urlopen(f"http://{ADDRESS}/api/history"))
    assert max(history["live"]) >= 1 and len(history["live"]) == len(history["at_boottime_ns"]), history["live"]


def check_events(browser):
    browser.run("{ const s = document.getElementById('event-kind'); s.value = 'operator_action'; s.dispatchEvent(new Event('change')) }")
    equal({row[0] for row in table(browser, "event-table")}, {"operator_action"}, "the chosen kind of event")
    assert any("object tenant:ann" in row[2] for row in table(browser, "event-table")), "the admission of ann"


@contextlib.contextmanager
def rewritten(browser, change):
    """The page gets `change(path, document)` instead of each document of the monitor."""
    def answer(paused):
        url = paused["request"]["url"]
        body = json.dumps(change(url.rsplit("/", 1)[-1], json.load(urllib.request.urlopen(url)))).encode()
        browser.send("Fetch.fulfillRequest", {
            "requestId": paused["requestId"], "responseCode": 200,
            "responseHeaders": [{"name": "Content-Type", "value": "application/json"}],
            "body": base64.b64encode(body).decode()})

    browser.handlers["Fetch.requestPaused"] = answer
    browser.call("Fetch.enable", patterns=[{"urlPattern": "*/api/*"}])
    yield
    browser.call("Fetch.disable")


def check_hostile_names(browser):
    """No broker admits such names; a page must not depend on that."""
    def poisoned(value):
        if isinstance(value, dict):
            return {key: poisoned(each) for key, each in value.items()}
        if isinstance(value, list):
            return [poisoned(each) for each in value]
        return MARKUP + value if isinstance(value, str) and value in ("ann", "w1", "operator", "standard", "cpu", "tenant:ann") else value

    with rewritten(browser, lambda _, document: poisoned(document)):
        for place in ("tenant-table", "worker-table", "revocation-table", "timeline-text", "event-table", "broker"):
            browser.wait(f"document.getElementById('{place}').innerText.includes({json.dumps(MARKUP)})", f"the name in {place}")
        page_checks.no_markup(browser)


def check_cut_lists(browser):
    """Lists that are too long for the page say how much they show, also to a screen reader."""
    def longer(path, body):
        if path == "leases":
            ended = next(each for each in body["items"] if each["times"]["revoked_boottime_ns"] > 0)
            body["items"] = [dict(ended, lease=f"{slot}.1") for slot in range(120)]
            body["total"] = 7120
        if path == "extents":
            body["total"] = len(body["items"]) + 1000
        if path == "events":
            [first] = body["items"][:1]
            body["items"] = [dict(first, event="operator_action", sequence=i + 1) for i in range(500)]
            body["newest"] = 12345
        return body

    extents = len(document("extents")["items"])
    wanted = {
        "revocations-more": "The newest 50 of 120 revocations among the first 120 of 7,120 leases; brokerctl leases shows all.",
        "memory-more": f"The first {extents:,} of {extents + 1000:,} extents; brokerctl extents shows all.",
        "events-more": "The newest 200 of 500 events of this kind, from the newest 500 of 12,345; brokerctl events shows more.",
    }
    for place in ("revocations-more", "memory-more"):
        equal(browser.run(f"document.getElementById('{place}').innerText"), "", f"{place} of a whole list")
    with rewritten(browser, longer):
        for place, text in wanted.items():
            browser.wait(f"document.getElementById('{place}').innerText === {json.dumps(text)}", f"{place} is not \"{text}\"")
            equal(browser.run(f"document.querySelectorAll('[role=region][aria-describedby={place}] table').length"), 1, f"the list that {place} describes")
        page_checks.accessible(browser)
        take_screenshot(browser, "desktop-cut")
    browser.wait("document.getElementById('revocations-more').hidden", "a whole list is said to be cut")


def check_alerts(browser):
    """Alerts, refusals, a loading worker, and a revocation that the broker no longer lists."""
    def troubled(path, body):
        if path == "overview":
            body["status"].update(workers_lost=1, free_bytes=0)
            body["workers"].append(dict(body["workers"][0], worker="w2", pid=2, state="attached"))
        if path == "workers":
            body["items"][0].update(refused={"QueueFull": 3}, refused_keys=4)
            body["items"].append({"error": "127.0.0.1:1 does not answer"})
        if path == "leases":
            body["past"] = [each for each in body["items"] if each["reason"] == "operator"]
            body["items"] = []
        return body

    equal(browser.run("document.getElementById('alerts').hidden"), True, "no alert")
    lease = browser.run("document.querySelector('#revocation-table tbody th').innerText")
    with rewritten(browser, troubled):
        browser.wait("document.getElementById('alert-list').children.length === 2", "two alerts")
        alerts = browser.run("document.getElementById('alert-list').innerText")
        assert "LeaseholdWorkerLost" in alerts and "LeaseholdPoolFull" in alerts and "run brokerctl tenants" in alerts, alerts
        equal(sorted(row[0::3] for row in table(browser, "refusal-table")), [["API key not valid", "4"], ["QueueFull", "3"]], "refusals")
        assert "does not answer" in browser.run("document.getElementById('requests-errors').innerText")
        assert ["w2", "loading its weights"] in [row[:2] for row in table(browser, "worker-table")], "the loading worker"
        assert any(row[0] == lease for row in table(browser, "revocation-table")), "the past revocation"
        page_checks.accessible(browser)
        take_screenshot(browser, "desktop-alerts")
    browser.wait("document.getElementById('alerts').hidden", "the alerts stay")


def check_cell(browser):
    """The hosts of a cell, one that is silent, and an etcd that does not answer."""
    def silent(path, body):
        if path == "cell":
            body["items"].append(dict(body["items"][0], host="h2", state="silent", beat_age_ms=5_000_000, models=[MARKUP]))
        return body

    def without_etcd(path, body):
        if path == "cell":
            body["error"] = {"code": "TimedOut", "detail": "no member answers"}
        return body

    browser.wait("!document.getElementById('cell').hidden && !document.getElementById('cell-link').hidden", "no cell")
    equal([row[:2] for row in table(browser, "cell-table")], [["h1", "member"]], "the hosts of the cell")
    with rewritten(browser, silent):
        browser.wait("document.getElementById('alert-list').innerText.includes('LeaseholdCellHostSilent')", "no alert")
        equal([row[:3] for row in table(browser, "cell-table")][0], ["h2", "silent", "83 min ago"], "the silent host comes first")
        page_checks.no_markup(browser)
        page_checks.accessible(browser)
        take_screenshot(browser, "desktop-cell")
    with rewritten(browser, without_etcd):
        browser.wait("document.getElementById('cell-error').innerText.includes('TimedOut: no member answers')", "no error of etcd")
        equal([row[:2] for row in table(browser, "cell-table")], [["h1", "member"]], "the known hosts stay")
    browser.wait("document.getElementById('alerts').hidden", "the alerts stay")


def check_keyboard(browser):
    start_tenant("ann", 20).wait(60)  # a lease that ends by itself is no revocation
    tenant = start_tenant("ann", 480)
    browser.wait("document.querySelector('#owner-table tbody th')?.innerText === 'ann'", "ann owns no extent")
    control("revoke", "--tenant", "ann", "--wait")
    tenant.wait(60)
    browser.wait("document.querySelectorAll('#revocation-table tbody button').length >= 2", "two revocations")
    reached = page_checks.tab_through(browser)
    for needed in ("a.skip", "#pause", "nav a", "#revocation-table button", "#event-kind", "summary", ".scroll"):
        assert any(browser.run(f"document.querySelectorAll('[data-reached]')[{i}].matches('{needed}')") for i in range(reached)), needed
    browser.run("document.querySelector('#revocation-table button[aria-pressed=false]').focus()")
    wanted = browser.run("document.activeElement.innerText")
    browser.press("Enter", "\r")
    browser.wait(f"document.getElementById('timeline-text').innerText.startsWith('Lease {wanted} ')", "Enter chooses a lease")
    equal(browser.run("document.activeElement.innerText"), wanted, "the focus after an update")
    browser.run("document.getElementById('pause').focus()")
    browser.press(" ", " ")
    browser.wait("document.getElementById('state').dataset.state === 'paused'", "Space pauses")
    rounds = browser.run("new Promise(done => setTimeout(() => done(document.documentElement.dataset.rounds), 500))")
    equal(browser.run("new Promise(done => setTimeout(() => done(document.documentElement.dataset.rounds), 2500))"), rounds,
          "the answers that a paused page asked for")
    browser.press(" ", " ")
    browser.wait("document.getElementById('state').dataset.state === 'live'", "Space continues")


def check_looks(browser):
    browser.run("document.querySelector('details').open = true")
    for name, width, height, is_phone in (("wide", 1440, 900, False), ("large-phone", 420, 900, True), ("phone", 360, 740, True),
                                          ("narrow", 320, 640, True)):
        browser.size(width, height, is_phone)
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            browser.wait(f"innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches", "the emulated screen")
            browser.wait(f"document.querySelector('#lease-chart svg').clientWidth <= {width}", "the charts are drawn for the new width")
            page_checks.fits(browser, width)
            page_checks.readable(browser, f"{name} {scheme}")
            take_screenshot(browser, f"{name}-{scheme}")
    page_checks.accessible(browser)


def check_lost_broker(browser):
    os.kill(int(BROKER_PID), signal.SIGKILL)
    browser.wait("document.getElementById('state').dataset.state === 'down'", "the page does not notice a dead broker")
    assert "The broker does not answer" in browser.run("document.getElementById('problem').innerText")
    equal(browser.run("document.getElementById('announcement').textContent"), "No answer", "what a screen reader hears")
    assert browser.run("document.querySelectorAll('#tenant-table tbody tr').length") == 64, "the last answer is gone"


def main():
    check_server()
    with open(f"{WORK}/chromium.txt", "w") as log:
        browser = Browser("chromium", f"{WORK}/profile", log)
        browser.size(1280, 900, False)
        browser.open(f"http://{ADDRESS}/")
        check_without_tenants(browser)
        check_64_tenants(browser)
        lease = check_stream(browser)
        check_timeline(browser, lease)
        check_numbers(browser)
        check_alerts(browser)
        check_cell(browser)
        check_keyboard(browser)
        check_looks(browser)
        check_events(browser)
        check_hostile_names(browser)
        check_cut_lists(browser)
        equal(browser.problems(), [], "errors of the console")
        check_lost_broker(browser)
        foreign = [url for url in browser.requests() if not url.startswith(f"http://{ADDRESS}/")]
        equal(foreign, [], "requests to elsewhere")
        requests = len(browser.requests())
        browser.close()
    print(f"the page agrees with brokerctl in {requests} requests, without a tenant and with 64")


main()
