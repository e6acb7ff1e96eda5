"""Two runs of one name in two namespaces of a real cluster, with the rules and dashboards of one release of distro-monitoring, each
watched by a real Prometheus; a pod moves, one run is uninstalled, and the other's rules and dashboards remain.

What it needs of the environment: cluster.py. It makes namespaces of its own and deletes them at the end, volumes too."""
import contextlib
import json
import secrets
import subprocess

import helm_python as helm
import pytest

import cluster
from charts import CHART, MONITORING, SOURCE
from cluster import BIN, KUBECONFIG, LIMIT, SMALL, kubectl, wait_for
from cluster_prometheus import ClusterPrometheus, crd
from cluster_release import MODEL

pytestmark = cluster.needed

NAMESPACES = [f"distro-{name}-{secrets.token_hex(3)}" for name in ("one", "two")]
WATCH = f"distro-watch-{secrets.token_hex(3)}"
RUN = {"name": "two-runs", "rounds": 1000000, "warmup_rounds": 5, "sequence_length": 32, "samples_per_worker": 1, "held_out_fraction": 0,
       "start_workers": 1, "min_workers": 1, "probation_rounds": 0}
VALUES = {
    **cluster.IMAGES, "insecure": True, "resources": SMALL, "drainGraceSeconds": 10, "persistence": {"size": "1Gi"},
    "archiver": {"resources": SMALL, "persistence": {"size": "1Gi"}}, "run": {"config": RUN, "initModel": {"config": MODEL, "seed": 1}},
    "readinessProbe": {"periodSeconds": 1}, "serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}


def ensure_definitions(ends):
    """Those of the operator, where the cluster has none."""
    for kind in ("PrometheusRule", "ServiceMonitor"):
        definition = crd(kind)
        name = definition["metadata"]["name"]
        if subprocess.run(["kubectl", "get", "crd", name], capture_output=True).returncode:
            kubectl("default", "apply", "-f", "-", text=json.dumps(definition))
            ends.callback(kubectl, "default", "delete", "crd", name)
            kubectl("default", "wait", "--for=condition=established", f"crd/{name}", "--timeout=60s")


def release(ends, namespace):
    return ends.enter_context(helm.Config(kubeconfig_path=KUBECONFIG, namespace=namespace))


def start_worker(ends, folder, namespace):
    address = kubectl(namespace, "get", "service", "demo-distro", "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
    log = ends.enter_context((folder / f"{namespace}.log").open("w"))
    # ends with the thread that started it, also when ctest kills the test
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", BIN / "distro-worker", "--aggregator", address, "--insecure",
                                "--data", SOURCE / "docs/algorithm.md", "--name", "worker-1", "--hold_back", "200ms"], stdout=log, stderr=log)
    ends.callback(lambda: (process.kill(), process.wait()))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with contextlib.ExitStack() as ends:
        ensure_definitions(ends)
        for namespace in (WATCH, *NAMESPACES):
            kubectl(namespace, "create", "namespace", namespace)
            ends.callback(kubectl, namespace, "delete", "namespace", namespace, "--timeout=240s")
        release(ends, WATCH).install(str(MONITORING), "distro-monitoring", {}, wait="watcher", timeout=LIMIT)
        runs = {namespace: release(ends, namespace) for namespace in NAMESPACES}
        for namespace, config in runs.items():
            config.install(str(CHART), "demo", VALUES, wait="watcher", timeout=LIMIT)
            start_worker(ends, folder, namespace)
        prometheus = ClusterPrometheus(folder)
        ends.callback(prometheus.close)
        prometheus.follow()
        wait_for(prometheus.loaded, "Prometheus has the cluster's configuration")
        yield runs, prometheus


def values(prometheus, expression):
    """{namespace: value} of an expression that has one series a run."""
    found = prometheus.query(expression)
    assert len(found) == len({labels["namespace"] for labels, _ in found}), found
    return {labels["namespace"]: value for labels, value in found}


def alerts(prometheus):
    """{(alert, namespace)} pending or firing."""
    return {(name, labels.get("namespace")) for name, raised in prometheus.raised().items() for labels in raised}


def shared():
    """Names of the rules and ConfigMaps of distro-monitoring."""
    return kubectl(WATCH, "get", "prometheusrule,configmap", "-l", "app.kubernetes.io/name=distro-monitoring", "-o", "name").split()


def test_watches_runs(world):
    _, prometheus = world
    wait_for(lambda: len(prometheus.query("up == 1")) == 6, "three targets of each run are up")
    wait_for(lambda: all(values(prometheus, "distro_aggregator_round").get(name, 0) >= 5 for name in NAMESPACES), "both runs train")
    # Recorded from series of both jobs of a run: joins that mixed the runs would fail.
    wait_for(lambda: set(values(prometheus, "instance_worker:distro_aggregator_included:ratio5m")) == set(NAMESPACES), "both are recorded")
    rules = prometheus.rules()
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
    assert {(labels["run"], labels["instance"]) for labels, _ in prometheus.query('up{job="distro-aggregator"}')} == {("demo", "demo-distro")}
    down = ("DistroAggregatorDown", "DistroArchiverDown")
    wait_for(lambda: not {name for name, _ in alerts(prometheus)}.intersection(down), "what was pending before their first samples is over")
    assert prometheus.query(f'count_over_time(ALERTS{{alertstate="firing",alertname=~"{"|".join(down)}"}}[1h])') == []


def test_series_stay_when_the_pod_moves(world):
    _, prometheus = world
    namespace = NAMESPACES[0]
    address = kubectl(namespace, "get", "pod", "demo-distro-0", "-o", "jsonpath={.status.podIP}")
    kubectl(namespace, "delete", "pod", "demo-distro-0")
    kubectl(namespace, "rollout", "status", "statefulset/demo-distro", f"--timeout={LIMIT}s")
    assert kubectl(namespace, "get", "pod", "demo-distro-0", "-o", "jsonpath={.status.podIP}") != address
    before = values(prometheus, "distro_aggregator_round").get(namespace, 0)
    wait_for(lambda: values(prometheus, "distro_aggregator_round").get(namespace, 0) > before + 3, "it trains and is scraped again")
    series = prometheus.query(f'count_over_time(up{{job="distro-aggregator",namespace="{namespace}"}}[1h])')
    assert len(series) == 1, "one series before and after"


def test_uninstall_leaves_other_run(world):
    runs, prometheus = world
    left, gone = NAMESPACES
    before, rules = shared(), len(prometheus.rules())
    assert len(before) == 5, before
    runs[gone].uninstall("demo", wait="watcher", timeout=LIMIT)
    kubectl(gone, "wait", "--for=delete", "pod/demo-distro-0", f"--timeout={LIMIT}s")
    prometheus.follow()
    wait_for(prometheus.loaded, "Prometheus has the new configuration")
    assert shared() == before, "rules, dashboards and pages are as they were"
    wait_for(lambda: len(prometheus.rules()) == rules - 2, "only the two rules of the run that is gone are missing")
    assert kubectl(gone, "get", "prometheusrule,servicemonitor", "-o", "name") == ""
    round_now = values(prometheus, "distro_aggregator_round")[left]
    wait_for(lambda: values(prometheus, "distro_aggregator_round").get(left, 0) > round_now + 5, "the other run goes on and is watched")
    wait_for(lambda: set(values(prometheus, "distro_aggregator_round")) == {left}, "the series of the run that is gone end")
    wait_for(lambda: gone not in {where for _, where in alerts(prometheus)}, "what was pending while its pods ended is over")
    fired = prometheus.query(f'count_over_time(ALERTS{{alertstate="firing",namespace="{gone}",alertname=~"Distro(Aggregator|Archiver).*"}}[1h])')
    assert fired == [], "a run that was removed raises no alert"


def test_remaining_run_raises_its_alert(world):
    _, prometheus = world
    left, _ = NAMESPACES
    kubectl(left, "scale", "statefulset", "demo-distro", "--replicas=0")
    wait_for(lambda: ("DistroAggregatorDown", left) in alerts(prometheus), "its pod is missing")
    assert {where for name, where in alerts(prometheus) if name == "DistroAggregatorDown"} == {left}
    kubectl(left, "scale", "statefulset", "demo-distro", "--replicas=1")
    wait_for(lambda: ("DistroAggregatorDown", left) not in alerts(prometheus), "it is back")
