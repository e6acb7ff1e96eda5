"""The life of a release on a real cluster: install, `helm test` with a worker that joins and leaves, training through the
Service, a pod that is killed, upgrade, rollback, uninstall, install again. The run goes on each time, and what was committed
keeps its hashes.

What it needs of the environment: cluster.py. It makes a namespace of its own and deletes it at the end, volumes too.
"""

import copy
import json
import os
import re
import secrets

import pytest

import cluster
import cluster_release
from charts import CHART, SOURCE, objects, pod_spec, pods, render
from cluster import LIMIT, SMALL, wait_for
from cluster_release import Watch

pytestmark = cluster.needed

NAMESPACE = f"distro-test-{secrets.token_hex(3)}"
VALUES = {
    **cluster_release.VALUES, "persistence": {"size": "1Gi"}, "archiver": {"resources": SMALL, "persistence": {"size": "1Gi"}},
    "joinTest": {"enabled": True, "volume": {"configMap": {"name": "corpus"}}, "path": "algorithm.md", "tokenSecret": "distro-join",
                 "resources": SMALL}}
if VARNISH := os.environ.get("DISTRO_VARNISH_IMAGE"):
    VALUES["mirror"] = {"enabled": True, "image": VARNISH, "cacheSize": "64M", "resources": SMALL}


def kubectl(*arguments, text=None):
    return cluster.kubectl(NAMESPACE, *arguments, text=text)


@pytest.fixture(scope="module")
def credentials(tmp_path_factory):
    with cluster_release.secrets_in(NAMESPACE, tmp_path_factory.mktemp("credentials")) as folder:
        kubectl("create", "secret", "generic", "distro-join", f"--from-file=token={folder}/demo-distro-join.token")
        kubectl("create", "configmap", "corpus", f"--from-file={SOURCE}/docs/algorithm.md")
        yield folder


@pytest.fixture(scope="module")
def release(credentials):
    with cluster_release.release_in(NAMESPACE, credentials, VALUES) as made:
        yield made


def test_server_takes_pods(credentials):
    """Servers do not look into a StatefulSet's template; into a pod they do."""
    for workload in pods(objects(render(VALUES, namespace=NAMESPACE))):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "template"}, "spec": copy.deepcopy(pod_spec(workload))}
        pod["spec"]["serviceAccountName"] = "default"
        for claim in workload["spec"].get("volumeClaimTemplates", []):
            pod["spec"].setdefault("volumes", []).append({"name": claim["metadata"]["name"], "emptyDir": {}})
        kubectl("apply", "--dry-run=server", "--validate=true", "-f", "-", text=json.dumps(pod))


def test_life_of_a_release(release):
    release.install()
    said = release.helm.test("demo", timeout=LIMIT, logs=True)
    print(said["logs"] if "logs" in said else said)
    assert " joined " in kubectl("logs", "demo-distro-join"), "a worker joined the run, and left"
    workers = [release.start_worker(name) for name in ("worker-1", "worker-2")]
    release.trains("installed")
    goes_on = Watch(release).goes_on
    goes_on("trains")
    if VARNISH:
        wait_for(lambda: int(re.search(r"MAIN.s_fetch +(\d+)", kubectl("exec", "deployment/demo-distro-mirror", "--", "varnishstat", "-n", "/work", "-1",
                                                                       "-f", "MAIN.s_fetch"))[1]) > 5, "the archiver has results from the mirror")
    kubectl("delete", "pod", "demo-distro-0")
    kubectl("rollout", "status", "statefulset/demo-distro", f"--timeout={LIMIT}s")
    goes_on("pod killed")

    release.helm.upgrade(str(CHART), "demo", {**VALUES, "extraArgs": ["--log_level=debug"]}, wait="watcher", timeout=LIMIT)
    kubectl("rollout", "status", "statefulset/demo-distro", f"--timeout={LIMIT}s")
    assert "--log_level=debug" in kubectl("get", "pod", "demo-distro-0", "-o", "jsonpath={.spec.containers[0].args}")
    goes_on("upgraded")

    release.helm.rollback("demo", version=1, wait="watcher", timeout=LIMIT)
    kubectl("rollout", "status", "statefulset/demo-distro", f"--timeout={LIMIT}s")
    assert "--log_level=debug" not in kubectl("get", "pod", "demo-distro-0", "-o", "jsonpath={.spec.containers[0].args}")
    goes_on("rolled back")
    assert [r["status"] for r in release.helm.history("demo")] == ["superseded", "superseded", "deployed"]

    address = release.address
    release.helm.uninstall("demo", wait="watcher", timeout=LIMIT)
    kubectl("wait", "--for=delete", "pod/demo-distro-0", f"--timeout={LIMIT}s")
    release.install()
    if release.address != address:  # the workers' address is the Service's, which is a new one
        for worker in workers:
            worker.terminate()
            worker.wait(LIMIT)
        workers = [release.start_worker(name) for name in ("worker-1", "worker-2")]
    goes_on("installed again")
    release.helm.test("demo", timeout=LIMIT)

    for worker in workers:
        worker.terminate()
        worker.wait(LIMIT)
    replay = release.log("replay")
    print(replay)
    assert ", 0 differ" in replay
