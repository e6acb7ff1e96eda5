"""Two runs of one name in two namespaces, watched by the rules of one release of distro-monitoring and by the rule that each
run's own release brings. By promtool: what is wrong with one run raises an alert of that run alone, and what is left when a
run is uninstalled watches the other."""
import subprocess

import pytest
import yaml

import charts
from charts import CHART, MONITORING, objects, render

WATCHED = {"insecure": True, "serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}

def rules_of(chart, values, namespace, name):
    """{file name: text} of the PrometheusRules of a release."""
    listed = objects(render(values, chart=chart, namespace=namespace, name=name))
    return {f"{namespace}-{o['metadata']['name']}.yml": yaml.safe_dump(o["spec"]) for o in listed if o["kind"] == "PrometheusRule"}


def installed(*namespaces):
    """Of the cluster's monitoring, and of a run `demo` in each of the namespaces."""
    files = rules_of(MONITORING, {}, "monitoring", "distro-monitoring")
    for namespace in namespaces:
        files.update(rules_of(CHART, WATCHED, namespace, "demo"))
    return files


def series(namespace, name, values, job="distro-aggregator", instance="demo-distro", **labels):
    given = {"namespace": namespace, "run": "demo", "instance": instance, "job": job, **labels}
    return {"series": name + "{" + ",".join(f'{key}="{value}"' for key, value in given.items()) + "}", "values": values}


def run(namespace, up="1x60", archiver="1x60", last="0+60x60"):
    """The series of a run that trains: a round a minute."""
    return [series(namespace, "up", up), series(namespace, "up", archiver, job="distro-archiver", instance="demo-distro-archiver"),
            series(namespace, "distro_aggregator_last_round_timestamp_seconds", last),
            series(namespace, "distro_aggregator_round_deadline_seconds", "60x60"),
            series(namespace, "distro_aggregator_round", "0+1x60"),
            series(namespace, "distro_aggregator_run_state", "1x60", state="training")]


def raised(tmp_path, files, given, minute):
    """{(alert, namespace, run, instance)} that fire at a minute. promtool compares, so what it found is read from its report."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    asked = 'count by (alertname, namespace, run, instance) (ALERTS{alertstate="firing"})'
    test = {"interval": "1m", "input_series": given,
            "promql_expr_test": [{"expr": asked, "eval_time": f"{minute}m", "exp_samples": [{"labels": '{no="such"}', "value": 1}]}]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": sorted(files), "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run(["promtool", "test", "rules", tmp_path / "tests.yml"], capture_output=True, text=True)
    got = (done.stdout + done.stderr).partition("got: ")[2].split("\n")[0]
    assert done.returncode == 1 and got, done.stdout + done.stderr
    labels = [yaml.safe_load("{" + part.partition("}")[0].replace("=", ": ") + "}") for part in got.split("{")[1:]]
    return {(one["alertname"], one["namespace"], one["run"], one["instance"]) for one in labels}


def test_healthy_runs_raise_nothing(tmp_path):
    assert raised(tmp_path, installed("one", "two"), run("one") + run("two"), 30) == set()


def test_names_stalled_run_only(tmp_path):
    found = raised(tmp_path, installed("one", "two"), run("one") + run("two", last="600x60"), 40)
    assert found == {("DistroTrainingStalled", "two", "demo", "demo-distro")}


def test_names_run_with_missing_pods(tmp_path):
    found = raised(tmp_path, installed("one", "two"), run("one") + run("two", up="1x10 _x50", archiver="1x10 _x50"), 40)
    assert found == {("DistroAggregatorDown", "two", "demo", "demo-distro"), ("DistroArchiverDown", "two", "demo", "demo-distro-archiver")}


def test_names_run_that_never_came_up(tmp_path):
    found = raised(tmp_path, installed("one", "two"), run("one"), 40)
    assert found == {("DistroAggregatorDown", "two", "demo", "demo-distro"), ("DistroArchiverDown", "two", "demo", "demo-distro-archiver")}


def test_uninstalled_run_raises_nothing(tmp_path):
    gone = run("two", up="1x10 _x50", archiver="1x10 _x50", last="0+60x10 _x50")
    assert raised(tmp_path, installed("one"), run("one") + gone, 40) == set()
    found = raised(tmp_path, installed("one"), run("one", up="1x30 0x30") + gone, 40)
    assert found == {("DistroAggregatorDown", "one", "demo", "demo-distro")}


def test_tells_runs_of_namespace_apart(tmp_path):
    files = {**installed("one"), **rules_of(CHART, WATCHED, "one", "second")}
    found = raised(tmp_path, files, run("one"), 40)
    assert found == {("DistroAggregatorDown", "one", "second", "second-distro"), ("DistroArchiverDown", "one", "second", "second-distro-archiver")}


def test_releases_share_no_name():
    """Rules, groups, targets and pods of two runs in one namespace."""
    names = [{(o["kind"], o["metadata"]["name"]) for o in objects(render(WATCHED, name=name))} for name in ("demo", "second")]
    assert names[0] & names[1] == set()
    groups = [group["name"] for files in (installed("one", "two"), rules_of(CHART, WATCHED, "one", "second"))
              for text in files.values() for group in yaml.safe_load(text)["groups"]]
    assert len(groups) == len(set(groups))


@pytest.mark.parametrize("values", charts.CI_MONITORING, ids=lambda p: p.stem)
def test_prometheus_reads_the_rules_of_each_values_file(tmp_path, values):
    files = rules_of(MONITORING, charts.read_values(values), "monitoring", "distro-monitoring")
    assert sorted(files) == ["monitoring-distro-monitoring-distro-alerts.yml", "monitoring-distro-monitoring-distro-recording.yml"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert "${" not in text, "a name of a threshold is left"
    done = subprocess.run(["promtool", "check", "rules", *map(str, tmp_path.glob("*.yml"))], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
