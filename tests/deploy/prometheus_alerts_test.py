"""Every alert against made-up series, by promtool: silent just below its threshold, pending above it, firing after its `for`.

Each case is given twice, as two runs of the same name in two namespaces: each must raise its own alert, with its namespace."""
import os
import pathlib
import re
import subprocess

import pytest
import yaml

SOURCE = pathlib.Path(os.environ.get("DISTRO_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
RULES = SOURCE / "helm" / "distro-monitoring" / "rules"
NAMESPACES = ("one", "two")


def series(name, values, job="distro-aggregator", **labels):
    return {"name": name, "labels": {"instance": "demo-distro", "run": "demo", "job": job, **labels}, "values": values}


def written(entry, namespace):
    shown = ",".join(f'{key}="{value}"' for key, value in {"namespace": namespace, **entry["labels"]}.items())
    return {"series": f"{entry['name']}{{{shown}}}", "values": entry["values"]}


def aggregator(name, values, **labels):
    return series(f"distro_aggregator_{name}", values, **labels)


def worker(name, values, **labels):
    return series(f"distro_worker_{name}", values, job="distro-workers", **{"worker": "w1", **labels})


def archiver(name, values, **labels):
    return series(f"distro_archiver_{name}", values, job="distro-archiver", **labels)


def stall(state, last="0x99", deadline="20x99", rounds="5x99"):
    return [aggregator("last_round_timestamp_seconds", last), aggregator("round_deadline_seconds", deadline),
            aggregator("round", rounds), aggregator("round_duration_seconds_sum", "200x99"),
            aggregator("round_duration_seconds_count", "10x99"), aggregator("run_state", "1x99", state=state)]


def restarted(seconds, count):
    return [aggregator("last_round_timestamp_seconds", "0x150"), aggregator("round_deadline_seconds", "0x150"), aggregator("round", "5x150"),
            aggregator("round_duration_seconds_sum", seconds), aggregator("round_duration_seconds_count", count),
            aggregator("run_state", "1x150", state="training")]


def quorum(active, needed, done="0x40"):
    return [aggregator("workers", active, state="active"), aggregator("min_workers", needed), aggregator("run_state", done, state="done")]


def contributing(state, included, rounds="0+6x99", there="1x99"):
    return [aggregator("worker_state", there, worker="w1", state=state),
            aggregator("worker_included_updates_total", included, worker="w1"),
            aggregator("rounds_total", rounds, outcome="complete"), aggregator("rounds_total", "0x99", outcome="deadline")]


def snapshot(values, rounds="0+6x1000"):
    return [aggregator("snapshot_round", values), aggregator("rounds_total", rounds, outcome="complete")]


def disk(free, size="100x400"):
    return [aggregator("data_dir_free_bytes", free), aggregator("data_dir_size_bytes", size)]


def inodes(free, size="100x400"):
    return [*disk("50x400"), aggregator("data_dir_free_files", free), aggregator("data_dir_size_files", size)]


def excluded(reason, values):
    return [worker("updates_excluded_total", values, reason=reason), aggregator("updates_expected_total", "0+100x60")]


def rejected(reason, values):
    return [aggregator("updates_rejected_total", values, reason=reason), aggregator("updates_received_total", "0+98x60")]


def burst(count):
    """So many more every 20 minutes."""
    return " ".join(f"{count * i}x19" for i in range(6))


# A minute after the first at which a recorded series says so: groups of rules are evaluated in any order.
# (alert, what is tried, series at one sample a minute, state by minute; "" is silent)
CASES = [
    ("DistroAggregatorDown", "up", [series("up", "1x20")], {5: "", 19: ""}),
    ("DistroAggregatorDown", "down", [series("up", "1x5 0x20")], {5: "", 6: "pending", 7: "pending", 8: "firing"}),
    ("DistroAggregatorDown", "another target", [series("up", "0x20", job="other")], {9: ""}),
    ("DistroTrainingStalled", "5 deadlines", stall("training"), {1: "", 2: "pending", 4: "firing"}),
    ("DistroTrainingStalled", "rounds close", stall("training", last="0+60x99"), {9: "", 90: ""}),
    ("DistroTrainingStalled", "no deadline: 5 times the mean", stall("training", deadline="0x99"), {1: "", 2: "pending"}),
    ("DistroTrainingStalled", "no deadline, after a restart: 5 times the mean before", restarted("6000x2 0x150", "10x2 0x150"), {49: "", 51: "pending", 54: "firing"}),
    ("DistroTrainingStalled", "no deadline and no mean: an hour", restarted("0x150", "0x150"), {59: "", 61: "pending", 64: "firing"}),
    ("DistroTrainingStalled", "resumed after an hour", [*stall("training"), aggregator("round_opened_timestamp_seconds", "0x59 3600x40")],
     {58: "firing", 60: "", 61: "", 64: "firing"}),
    ("DistroTrainingStalled", "waiting after a round", stall("waiting"), {1: "", 2: "pending", 4: "firing"}),
    ("DistroTrainingStalled", "waiting for the first round", stall("waiting", rounds="0x99"), {9: ""}),
    ("DistroTrainingStalled", "paused", stall("paused"), {9: ""}),
    ("DistroReplicasDiverged", "none", [aggregator("state_hash_mismatches_total", "3x30")], {9: "", 29: ""}),
    ("DistroReplicasDiverged", "one", [aggregator("state_hash_mismatches_total", "0x9 1x30")], {9: "", 10: "pending", 11: "firing", 22: ""}),
    ("DistroReplicasDiverged", "restart", [aggregator("state_hash_mismatches_total", "3x9 0x30")], {12: ""}),
    ("DistroLossNotFinite", "none", [worker("nonfinite_steps_total", "2x30")], {12: ""}),
    ("DistroLossNotFinite", "two", [worker("nonfinite_steps_total", "0x9 2x30")], {9: "", 10: "pending warning", 11: "firing warning"}),
    ("DistroLossNotFinite", "three", [worker("nonfinite_steps_total", "0x9 3x30")], {11: "firing warning"}),
    ("DistroLossNotFinite", "five", [worker("nonfinite_steps_total", "0x9 5x30")], {11: "firing critical, firing warning", 25: ""}),
    ("DistroQuorumAtRisk", "one to spare", quorum("5x5 4x30", "3x40"), {20: ""}),
    ("DistroQuorumAtRisk", "none to spare", quorum("5x5 3x30", "3x40"), {5: "", 6: "pending", 11: "firing"}),
    ("DistroQuorumAtRisk", "the run is done", quorum("5x5 0x30", "3x40", "0x5 1x30"), {20: ""}),
    ("DistroQuorumAtRisk", "there were never more", quorum("3x40", "3x40"), {30: ""}),
    ("DistroUpdatesExcluded", "a tenth", excluded("late", "0+10x60"), {50: ""}),
    ("DistroUpdatesExcluded", "above", excluded("late", "0+11x60"), {2: "pending", 30: "firing"}),
    ("DistroUpdatesExcluded", "on probation", excluded("probation", "0+50x60"), {50: ""}),
    ("DistroUpdatesRejected", "2 %", rejected("malformed", "0+2x60"), {50: ""}),
    ("DistroUpdatesRejected", "above", rejected("malformed", "0+3x60"), {2: "pending", 30: "firing"}),
    ("DistroCallsRefused", "one a second", [aggregator("calls_refused_total", "0+60x60", reason="role")], {50: ""}),
    ("DistroCallsRefused", "more", [aggregator("calls_refused_total", "0+61x60", reason="unauthenticated")], {7: "pending", 30: "firing"}),
    ("DistroCallsRefused", "one and one", [aggregator("calls_refused_total", "0+40x60", reason=reason) for reason in ("role", "limit")], {50: ""}),
    ("DistroArchiverDown", "up", [series("up", "1x20", job="distro-archiver")], {5: "", 19: ""}),
    ("DistroArchiverDown", "a restart", [series("up", "1x5 0x8 1x20", job="distro-archiver")], {8: "pending", 15: "", 18: ""}),
    ("DistroArchiverDown", "down", [series("up", "1x5 0x20", job="distro-archiver")], {5: "", 6: "pending", 15: "pending", 16: "firing"}),
    ("DistroArchiverDown", "the run is done", [series("up", "1x5 0x20", job="distro-archiver", instance="archiver"),
                                               aggregator("run_state", "0x5 1x20", state="done")], {8: "", 20: ""}),
    ("DistroArchiverBehind", "ten rounds", [archiver("lag_rounds", "10x60")], {50: ""}),
    ("DistroArchiverBehind", "more", [archiver("lag_rounds", "0x4 11x60")], {4: "", 5: "pending", 34: "pending", 35: "firing"}),
    ("DistroArchiverBehind", "catches up", [archiver("lag_rounds", "90-5x18 0x60")], {10: "pending", 40: ""}),
    ("DistroUpdatesRejected", "in bursts, of rounds of 20 minutes",
     [aggregator("updates_rejected_total", burst(50), reason="malformed"), aggregator("updates_received_total", burst(50))], {47: "firing"}),
    ("DistroUpdatesRejected", "late ones", rejected("late", "0+50x60"), {50: ""}),
    ("DistroUpdatesRejected", "restart", rejected("malformed", "0+5x20 0+5x40"), {19: "firing", 21: "firing", 30: "firing"}),
    ("DistroWorkerNotContributing", "included at last", contributing("active", "0x29 1x70"), {29: "", 31: "", 45: ""}),
    ("DistroWorkerNotContributing", "not for half an hour", contributing("active", "0+1x9 9x90"), {35: "", 39: "pending", 42: "firing"}),
    ("DistroWorkerNotContributing", "in quarantine", contributing("quarantined", "0+1x9 9x90"), {20: "", 42: "firing"}),
    ("DistroWorkerNotContributing", "in quarantine for days", contributing("quarantined", "9x99"), {20: "", 90: ""}),
    ("DistroWorkerNotContributing", "back after half an hour", contributing("probation", "9x99", there="_x60 1x39"), {62: "", 89: "", 93: "firing"}),
    ("DistroWorkerNotContributing", "late", contributing("late", "9x99"), {20: "", 32: "firing"}),
    ("DistroWorkerNotContributing", "probation without end", contributing("probation", "0x99"), {20: "", 32: "firing"}),
    ("DistroWorkerNotContributing", "no round closes", contributing("active", "9x99", rounds="7x99"), {32: "", 60: ""}),
    ("DistroSnapshotStale", "a new one in time", snapshot("5x350 6x300"), {349: "", 500: ""}),
    ("DistroSnapshotStale", "none", snapshot("5x1000"), {350: "", 361: "pending", 367: "firing"}),
    ("DistroSnapshotStale", "no rounds", snapshot("5x1000", rounds="7x1000"), {900: ""}),
    ("DistroDiskFilling", "a tenth free", disk("10x400"), {200: ""}),
    ("DistroDiskFilling", "less", disk("10x9 9.9x400"), {9: "", 10: "pending", 16: "firing"}),
    ("DistroDiskFilling", "full in less than a day", disk("99-0.07x400"), {50: "", 62: "pending", 80: "firing"}),
    ("DistroDiskFilling", "full in more than a day", disk("99-0.05x400"), {300: ""}),
    ("DistroDiskFilling", "a tenth of the inodes free", inodes("10x400"), {200: ""}),
    ("DistroDiskFilling", "fewer", inodes("10x9 9.9x400"), {9: "", 10: "pending", 16: "firing"}),
    ("DistroDiskFilling", "no inodes in less than a day", inodes("99-0.07x400"), {50: "", 62: "pending", 80: "firing"}),
    ("DistroDiskFilling", "no limit of inodes", inodes("0x400", "0x400"), {200: ""}),
    ("DistroLogDamaged", "none", [aggregator("log_damaged_records", "0x30")], {29: ""}),
    ("DistroLogDamaged", "one, restored", [aggregator("log_damaged_records", "0x9 1x9 0x9")], {9: "", 10: "pending", 11: "firing", 18: "firing", 21: ""}),
    ("DistroCertificateExpiry", "above 7 days", [aggregator("tls_certificate_expiry_timestamp_seconds", "612001x120")], {119: ""}),
    ("DistroCertificateExpiry", "below", [aggregator("tls_certificate_expiry_timestamp_seconds", "604801x120")],
     {0: "", 1: "pending", 62: "firing"}),
    ("DistroCertificateExpiry", "none", [aggregator("tls_certificate_expiry_timestamp_seconds", "0x120")], {119: ""}),
    ("DistroWorkerStale", "reports", [worker("last_report_timestamp_seconds", "0+60x30")], {20: ""}),
    ("DistroWorkerStale", "120 s", [worker("last_report_timestamp_seconds", "0x30")], {2: "", 3: "pending", 5: "firing"}),
    ("DistroUplinkSaturated", "90 %", [worker("transfer_seconds_total", "0+54x60", direction="upload")], {50: ""}),
    ("DistroUplinkSaturated", "above", [worker("transfer_seconds_total", "0+55x60", direction="upload")], {6: "pending", 22: "firing"}),
    ("DistroUplinkSaturated", "the downlink", [worker("transfer_seconds_total", "0+59x60", direction="download")], {50: ""}),
]


def expected(states):
    samples = []
    for entry in filter(None, states.split(", ")):
        state, _, severity = entry.partition(" ")
        labels = f'alertstate="{state}", run="demo"' + (f', severity="{severity}"' if severity else "")
        samples += [{"labels": f'{{{labels}, namespace="{namespace}"}}', "value": 1} for namespace in NAMESPACES]
    return samples


def document(cases):
    tests = []
    for alert, what, given, states in cases:
        by = "namespace, run, alertstate" + (", severity" if any(" " in state for state in states.values()) else "")
        given = [written(entry, namespace) for entry in given for namespace in NAMESPACES]
        checks = [{"expr": f'count by ({by}) (ALERTS{{alertname="{alert}"}})', "eval_time": f"{minute}m",
                   "exp_samples": expected(state)} for minute, state in states.items()]
        tests.append({"name": f"{alert}: {what}", "interval": "1m", "input_series": given, "promql_expr_test": checks})
    return {"rule_files": [str(RULES / "distro-recording.yml"), str(RULES / "distro-alerts.yml")], "evaluation_interval": "1m",
            "tests": tests}


def promtool(tmp_path, cases):
    path = tmp_path / "tests.yml"
    path.write_text(yaml.safe_dump(document(cases), sort_keys=False))
    return subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True)


@pytest.mark.parametrize("alert", sorted({case[0] for case in CASES}))
def test_alert(tmp_path, alert):
    done = promtool(tmp_path, [case for case in CASES if case[0] == alert])
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_expectation_fails(tmp_path):
    assert promtool(tmp_path, [("DistroAggregatorDown", "up", [series("up", "1x20")], {5: "pending"})]).returncode == 1


def test_cases_see_alerts_silent_and_raised():
    alerts = {rule["alert"]: rule for rule in yaml.safe_load((RULES / "distro-alerts.yml").read_text())["groups"][0]["rules"]}
    assert set(alerts) == {case[0] for case in CASES}
    for alert in alerts:
        states = {state for case in CASES if case[0] == alert for state in case[3].values()}
        assert "" in states and any(state.startswith("firing") for state in states), alert
        assert any(state.startswith("pending") for state in states), alert


def test_alerts_have_prefix_and_wait():
    """A single sample raises nothing."""
    rules = yaml.safe_load((RULES / "distro-alerts.yml").read_text())["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules if not rule["alert"].startswith("Distro")] == []
    assert [rule["alert"] for rule in rules if not re.fullmatch("[1-9][0-9]*[mh]", rule["for"])] == []


def test_alerts_have_pages():
    rules = yaml.safe_load((RULES / "distro-alerts.yml").read_text())["groups"][0]["rules"]
    pages = {path.stem for path in (SOURCE / "docs" / "runbooks").glob("*.md")}
    assert pages - {"README"} == {rule["alert"] for rule in rules}
    for rule in rules:
        assert rule["annotations"]["runbook_url"].endswith(f"/consoles/distro-runbooks.html#{rule['alert']}")
