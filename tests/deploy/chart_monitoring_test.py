"""The chart distro-monitoring: what it renders is valid, is what the files of Prometheus and Grafana hold, and follows its values."""
import json
import re
import shutil

import helm_python as helm
import pytest
import yaml

import charts
from chart_manifests_test import check
from charts import CI_MONITORING, MONITORING, notes, objects, read_values, render

by_name = {"ids": lambda p: p.name.removesuffix("-values.yaml")}


def listed(values=None, name="distro-monitoring"):
    return objects(render(values or {}, chart=MONITORING, name=name, namespace="monitoring"))


def rules(values=None):
    """{name of the file: spec} of the PrometheusRules."""
    return {o["metadata"]["name"].removeprefix("distro-monitoring-"): o["spec"] for o in listed(values) if o["kind"] == "PrometheusRule"}


def alerts(values=None):
    return {rule["alert"]: rule for rule in rules(values)["distro-alerts"]["groups"][0]["rules"]}


@pytest.mark.parametrize("values", CI_MONITORING, **by_name)
@pytest.mark.parametrize("kube", ["1.27", "1.37"])
def test_renders_valid_objects(values, kube):
    found = objects(render(read_values(values), chart=MONITORING, kube_version=f"v{kube}.0"))
    assert len(found) >= 4
    for manifest in found:
        check(manifest, kube)


@pytest.mark.parametrize("values", CI_MONITORING, **by_name)
def test_lint(values):
    result = helm.lint(str(MONITORING), read_values(values), strict=True, kube_version="v1.30.0")
    assert not result["errors"], result
    assert [m for m in result["messages"] if m["severity"] >= 2] == []


def test_by_default_it_carries_the_files_unchanged():
    """Prometheus, Grafana, Compose and the tests read the same rules, dashboards and pages."""
    assert rules() == {f.stem: yaml.safe_load(f.read_text()) for f in MONITORING.glob("rules/*.yml")}
    maps = {o["metadata"]["name"]: o for o in listed() if o["kind"] == "ConfigMap"}
    boards = {k: json.loads(v) for o in maps.values() if o["metadata"]["labels"].get("grafana_dashboard") == "1" for k, v in o["data"].items()}
    assert boards == {f.name: json.loads(f.read_text()) for f in MONITORING.glob("dashboards/*.json")}
    pages = maps["distro-monitoring-consoles"]["data"]
    assert pages == {f.name: f.read_text() for f in MONITORING.glob("consoles/*")}


@pytest.mark.parametrize("path", ["dashboards/distro.json", "consoles/distro.lib", "parameters/distro-alerts.yml"])
@pytest.mark.parametrize("change", [lambda file: file.unlink(), lambda file: file.write_text(file.read_text() + "\n")], ids=["missing", "old"])
def test_refuses_to_install_without_generated_files(tmp_path, path, change):
    chart = shutil.copytree(MONITORING, tmp_path / "distro-monitoring")
    change(chart / path)
    with pytest.raises(helm.HelmRenderError, match=f"{path} is missing or .*: run scripts/generate_dashboards"):
        render({}, chart=chart)


def test_values_have_the_defaults_of_the_rules():
    constants = yaml.safe_load((charts.SOURCE / "scripts/dashboards/rules.yaml").read_text())["constants"]
    assert read_values(MONITORING / "values.yaml")["thresholds"] == constants


def test_threshold_changes_its_rules():
    changed = {"thresholds": {"reportSeconds": 300, "uplinkBusyRatio": 0.8, "rateWindow": "30m"}}
    assert alerts(changed)["DistroWorkerStale"]["expr"].endswith("> 300")
    assert alerts(changed)["DistroUplinkSaturated"]["expr"].endswith("> 0.8")
    recording = {rule["record"]: rule["expr"] for rule in rules(changed)["distro-recording"]["groups"][0]["rules"]}
    assert recording["instance:distro_aggregator_rounds:rate5m"].endswith("[30m]))")
    same = [name for name, rule in alerts().items() if alerts(changed)[name] == rule]
    assert set(alerts()) - set(same) == {"DistroWorkerStale", "DistroUplinkSaturated", "DistroCallsRefused"}


@pytest.mark.parametrize("base", ["https://wiki.example/runbooks/", "https://wiki.example/page#"])
def test_runbooks_may_be_anywhere(base):
    for name, rule in alerts({"runbookBaseUrl": base}).items():
        assert rule["annotations"]["runbook_url"] == base + name


def test_links_avoid_aggregator_that_is_down():
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook_url"] == "{{ $externalURL }}/consoles/distro-runbooks.html#" + name
    (page,) = [o["data"]["distro-runbooks.html"] for o in listed() if o["metadata"]["name"].endswith("-consoles")]
    assert set(re.findall(r'<section id="(Distro\w+)">', page)) == set(alerts())


@pytest.mark.parametrize("values, error, message", [
    ({"bogus": 1}, helm.HelmValuesError, "additional properties 'bogus' not allowed"),
    ({"thresholds": {"reportSecond": 1}}, helm.HelmValuesError, "additional properties 'reportSecond' not allowed"),
    ({"thresholds": {"rateWindow": "5 min"}}, helm.HelmValuesError, "/thresholds/rateWindow.*does not match pattern"),
    ({"thresholds": {"excludedRatio": 10}}, helm.HelmValuesError, "/thresholds/excludedRatio.*maximum: got 10, want 1"),
    ({"runbookBaseUrl": "https://wiki.example/runbooks"}, helm.HelmValuesError, "/runbookBaseUrl.*does not match pattern"),
    ({"consoles": {"enabled": False}}, helm.HelmRenderError, "runbookBaseUrl is required with consoles.enabled: false"),
])
def test_refuses_values(values, error, message):
    with pytest.raises(error, match=message):
        listed(values)


def test_notes_say_how_to_see_it():
    said = notes(render({}, chart=MONITORING))
    assert "prometheusrule" in said and "/consoles/distro.html" in said and "/d/distro" in said
