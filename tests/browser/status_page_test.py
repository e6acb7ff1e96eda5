"""The status page of a live run, in Chromium: it shows the aggregator's values, and peers' texts are never markup."""
import json
import os
import pathlib
import sys
import types
import urllib.request

import pytest
import yaml

SOURCE = pathlib.Path(os.environ["DISTRO_SOURCE"])
BIN = pathlib.Path(os.environ["DISTRO_BIN"])
sys.path.append(str(SOURCE / "tests/integration"))

import browser
import crowd_report
import processes
import status_schema

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>&lt;b&gt;"
SCREEN = {"viewport": {"width": 1140, "height": 850}}
PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def chromium():
    with browser.browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def run():
    """An aggregator with workers a, b and c that train; .aggregator, .space, .url."""
    binaries = types.SimpleNamespace(aggregator=BIN / "distro-aggregator", worker=BIN / "distro-worker", distroctl=BIN / "distroctl")
    space = processes.Workspace(binaries)
    try:
        aggregator = space.create_run(rounds=1000000, start_workers=3, evaluation_interval_rounds=10, samples_per_worker=16)
        workers = {name: space.start_worker(name, aggregator.grpc) for name in "abc"}
        aggregator.await_round(12)
        yield types.SimpleNamespace(aggregator=aggregator, space=space, workers=workers, url=f"http://{aggregator.http()}/")
    finally:
        space.close()


def get(run, path):
    with urllib.request.urlopen(run.url.rstrip("/") + path, timeout=20) as answer:
        return answer.headers, answer.read().decode()


def status(run):
    return json.loads(get(run, "/status.json")[1])


def row(name):
    """JavaScript: the row of a worker, or undefined."""
    return f"[...document.querySelectorAll('#workers tbody tr')].find((one) => one.querySelector('td.name').textContent === '{name}')"


def answered(report):
    """A route that answers /status.json with a made-up report."""
    return [("**/status.json", lambda route: route.fulfill(json=report))]


def test_live_answer_is_as_documented(run):
    page = (SOURCE / "docs/status_page.md").read_text()
    assert status_schema.faults(page, status(run)) == []
    assert status_schema.faults(page, crowd_report.report(40)) == []
    assert status_schema.faults(page, {**status(run), "more": 1, "time": "now"}) == [
        "time is 'now', not number", "more is not documented"]


def test_page_has_numbers_of_metrics(run):
    run.space.distroctl("run", "pause", run.aggregator.grpc, "--insecure")
    processes.until(lambda: (report := status(run))["run"]["state"] == "paused" and report["round"]["open_seconds"] is None, "paused")

    def equal():
        report, metric = status(run), run.aggregator.metric
        own = {w["name"]: w for w in report["workers"]}
        of_worker = lambda name, kind="": sum(float(line.split()[-1]) for line in get(run, "/metrics/workers")[1].splitlines()
                                              if line.startswith(f"distro_worker_{name}{{") and kind in line and 'worker="a"' in line)
        pairs = [
            (report["round"]["number"], metric("distro_aggregator_round")),
            (report["round"]["complete"], metric("distro_aggregator_rounds_total", outcome="complete")),
            (report["totals"]["loss"], metric("distro_aggregator_loss")),
            (report["totals"]["tokens"], metric("distro_aggregator_tokens_total")),
            (report["totals"]["updates_received"], metric("distro_aggregator_updates_received_total")),
            (report["totals"]["log_bytes"], metric("distro_aggregator_log_bytes")),
            (report["bytes"]["received_update_bytes"], metric("distro_aggregator_received_bytes_total", kind="update")),
            (report["bytes"]["sent_result_bytes"], metric("distro_aggregator_sent_bytes_total", kind="result")),
            (report["states"]["active"], metric("distro_aggregator_workers", state="active")),
            (own["a"]["included_rounds"], metric("distro_aggregator_worker_included_updates_total", worker="a")),
            (own["a"]["tokens"], of_worker("tokens_total")),
            (own["a"]["sent_bytes"], of_worker("sent_bytes_total", 'kind="update"')),
            (own["a"]["received_bytes"], of_worker("received_bytes_total", 'kind="result"'))]
        return all(shown == pytest.approx(said) for shown, said in pairs) and report["round"]["complete"] > 0
    processes.until(equal, "equal numbers", 60)
    run.space.distroctl("run", "resume", run.aggregator.grpc, "--insecure")


def test_only_this_port_is_asked_and_nothing_else_may_run(run):
    for path in ("/", "/status.json", "/page/page.js", "/page/page.css", "/favicon.ico", "/runbooks/DistroQuorumAtRisk"):
        headers, body = get(run, path)
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';"), path
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Connection"] == "close" and body
    assert get(run, "/favicon.ico")[0]["Content-Type"] == "image/svg+xml"
    assert get(run, "/status.json")[0]["Content-Type"] == "application/json"
    assert "http" not in get(run, "/")[1]


def test_page_serves_runbooks(run):
    alerts = [alert["alert"] for alert in yaml.safe_load((SOURCE / "scripts/dashboards/alerts.yaml").read_text())["alerts"]]
    assert len(alerts) > 10
    for alert in alerts:
        headers, body = get(run, f"/runbooks/{alert}")
        assert headers["Content-Type"].startswith("text/plain") and alert in body.splitlines()[0], alert


def test_page_shows_worker_that_drops_out(run, chromium):
    watched = browser.Watched(chromium, run.url)
    watched.until("document.querySelectorAll('#workers tbody tr').length === 3 && document.querySelector('#chart path.training')")
    assert watched.texts("#workers td.name") == ["a", "b", "c"]
    assert watched.page.text_content("#state") == "training"
    before = watched.page.text_content("#round")
    watched.until("(before) => document.querySelector('#round').textContent !== before", before)
    watched.until(f"{row('a')}.querySelector('td.tokens').textContent !== '–'")
    watched.until("document.querySelector('#chart path.held-out')")
    run.workers["c"].kill()
    watched.until(f"['suspect', 'left'].includes({row('c')}.querySelector('td.state span').textContent)")
    watched.until(f"{row('c')}.className !== 'good' && {row('c')} === document.querySelector('#workers tbody tr')")
    assert any(text.startswith("c") for text in watched.texts("#problems li"))
    watched.close()


def test_words_of_peers_are_text(run, chromium):
    run.space.distroctl("evict", "b", run.aggregator.grpc, "--reason", HOSTILE, "--insecure")
    watched = browser.Watched(chromium, run.url)
    watched.until(f"{row('b')}?.querySelector('td.state span').textContent === 'quarantined'")
    assert HOSTILE in watched.page.evaluate(f"{row('b')}.querySelector('td.note').textContent")
    assert any(HOSTILE in text for text in watched.texts("#problems li"))
    assert watched.page.query_selector("main img, main script") is None
    assert watched.page.title() != "owned"
    watched.close()


def test_hostile_names_too(run, chromium):
    hostile = crowd_report.without_rates(HOSTILE, state=HOSTILE, reason=HOSTILE, severity="warning", problem=HOSTILE, runbook=HOSTILE)
    report = crowd_report.report(3, [hostile])
    report["run"].update(id=HOSTILE, reason=HOSTILE + "\u202e\u009b\u2028")
    report["warnings"] = [{"name": HOSTILE, "critical": True, "what": HOSTILE}]
    report["readiness"]["checks"][0].update(name=HOSTILE, detail=HOSTILE)
    watched = browser.Watched(chromium, run.url, answered(report))
    watched.until("document.querySelectorAll('#workers tbody tr').length === 4")
    assert HOSTILE in watched.texts("#workers td.name")
    assert watched.page.text_content("#run") == HOSTILE
    assert watched.page.text_content("#reason") == HOSTILE + r"\u202e\u009b\u2028"
    assert watched.page.query_selector("body img, body script") is None
    assert all(link.startswith("/runbooks/%3Cimg") for link in watched.page.eval_on_selector_all(
        "#problems a", "all => all.map(one => one.getAttribute('href'))") if "Uplink" not in link)
    watched.close()


def test_losses_that_a_step_does_not_change_are_drawn(run, chromium):
    report = crowd_report.report(3)
    report["loss"].update(training=[[0, 1e17], [1, 1e17 + 16]], held_out=[])
    watched = browser.Watched(chromium, run.url, answered(report))
    watched.until("document.querySelector('#chart path.training')")
    assert 0 < len(watched.texts("#chart line.grid")) <= 20
    watched.close()


def test_200_workers_stay_usable(run, chromium):
    watched = browser.Watched(chromium, run.url, answered(crowd_report.report(200)))
    watched.until("document.querySelectorAll('#workers tbody tr').length === 200")
    names = watched.texts("#workers td.name")
    assert names[0] == "node-017" and names[1:3] == ["node-001", "node-002"]
    assert watched.texts("#problems li b") == ["node-017"]
    watched.page.click("#workers th.up button")
    rates = watched.texts("#workers td.up")
    assert watched.texts("#workers td.name")[0] == "node-017" and rates[0] == "250 kB/s"
    watched.page.click("#workers th.up button")
    assert watched.texts("#workers td.up")[-1] == "250 kB/s"
    assert watched.page.get_attribute("#workers th.up", "aria-sort") == "descending"
    watched.page.click("#workers th.up button")
    assert watched.texts("#workers td.name") == names
    watched.page.fill("#find", "node-19")
    assert watched.texts("#workers td.name") == [f"node-{number}" for number in range(190, 200)]
    watched.page.fill("#find", "")
    watched.page.check("#only-problems")
    assert watched.texts("#workers td.name") == ["node-017"]
    watched.close()


@pytest.mark.parametrize("name, options", [
    ("light", {"color_scheme": "light", **SCREEN}), ("dark", {"color_scheme": "dark", **SCREEN}), ("phone", {"color_scheme": "light", **PHONE})])
def test_forty_workers_and_a_bad_uplink(run, chromium, name, options):
    others = [crowd_report.without_rates("node-041", state="probation", severity="good", probation_left=3, excluded="probation",
                                         in_state_seconds=40),
              crowd_report.without_rates("node-042", state="left", severity="gone", reason="left: stopped by a signal",
                                         in_state_seconds=5400, silent_seconds=5400)]
    watched = browser.Watched(chromium, run.url, answered(crowd_report.report(40, others)), **options)
    watched.until("document.querySelectorAll('#workers tbody tr').length === 42")
    first = watched.page.query_selector("#workers tbody tr")
    assert first.query_selector("td.name").text_content() == "node-017"
    assert first.query_selector("td.up .culprit").text_content() == "250 kB/s"
    wide = watched.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, "the page must not scroll sideways"
    watched.keep(f"status_{name}")
    watched.close()


def test_page_says_what_comes_from_mirrors(run, chromium):
    report = crowd_report.report(2)
    watched = browser.Watched(chromium, run.url, answered(report))
    watched.until("document.querySelectorAll('#workers tbody tr').length === 2")
    assert "workers receive" not in watched.texts("#facts dt")
    watched.close()
    for worker, received in zip(report["workers"], (60, 40)):
        worker.update(received_bytes=received, received_snapshot_bytes=50, mirror_bytes=received, mirror_failures=received // 60)
    watched = browser.Watched(chromium, run.url, answered(report))
    watched.until("document.querySelectorAll('#workers tbody tr').length === 2")
    assert dict(zip(watched.texts("#facts dt"), watched.texts("#facts dd")))["workers receive"] == "50 % from mirrors, failed requests: 1"
    assert "55 % from mirrors, failed requests: 1" in watched.page.get_attribute("#workers tbody tr td.down", "title")
    watched.close()


def test_page_says_that_aggregator_is_silent(run, chromium):
    page = chromium.new_page()
    page.goto(run.url)
    page.wait_for_selector("main:not([hidden])")
    run.aggregator.kill()
    page.wait_for_selector("#offline:not([hidden])", timeout=1000 * browser.LIMIT_SECONDS)
    assert "has not answered" in page.text_content("#offline")
    page.close()
