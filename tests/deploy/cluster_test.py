"""The life of a release on a real cluster: install, `helm test` with a worker that joins and leaves, training through the
Service, a pod that is killed, upgrade, rollback, uninstall, install again. The run goes on each time, and what was committed
keeps its hashes.

What it needs of the environment: cluster.py. It makes a namespace of its own and deletes it at the end, volumes too.
"""

import contextlib
import copy
import json
import os
import re
import secrets
import socket
import subprocess

import helm_python as helm
import pytest

import cluster
from charts import CHART, SOURCE, objects, pod_spec, pods, render
from cluster import BIN, KUBECONFIG, LIMIT, SMALL, wait_for

pytestmark = cluster.needed

NAMESPACE = f"distro-test-{secrets.token_hex(3)}"
HOST = f"demo-distro.{NAMESPACE}.svc"
MODEL = {**json.loads((SOURCE / "examples/demo/config.json").read_text()), "num_hidden_layers": 1}
RUN = {"name": "cluster", "rounds": 1000000, "warmup_rounds": 5, "sequence_length": 32, "samples_per_worker": 1, "held_out_fraction": 0,
       "start_workers": 2, "round_deadline": "10s", "probation_rounds": 0}
VALUES = {
    **cluster.IMAGES,
    "tls": {"existingSecret": "distro-tls"}, "auth": {"existingSecret": "distro-auth"}, "resources": SMALL, "drainGraceSeconds": 10,
    "persistence": {"size": "1Gi"}, "archiver": {"resources": SMALL, "persistence": {"size": "1Gi"}},
    "run": {"config": RUN, "initModel": {"config": MODEL, "seed": 1}}, "readinessProbe": {"periodSeconds": 1},
    "joinTest": {"enabled": True, "volume": {"configMap": {"name": "corpus"}}, "path": "algorithm.md", "tokenSecret": "distro-join",
                 "resources": SMALL}}


def kubectl(*arguments, text=None):
    return cluster.kubectl(NAMESPACE, *arguments, text=text)


@pytest.fixture(scope="module")
def credentials(tmp_path_factory):
    """The secrets, with the commands of the chart's README."""
    folder = tmp_path_factory.mktemp("credentials")
    readme = (CHART / "README.md").read_text()
    script = re.search(r"^distroctl certs.*?viewer.token$", readme, re.M | re.S).group()
    script = script.replace("demo-distro.distro.svc", HOST).replace("-n distro ", f"-n {NAMESPACE} ")
    script = script.replace(" worker-1;", " worker-1 worker-2 demo-distro-join;")
    script = script.replace("${name%-1}", "$(case $name in *-*) echo worker;; *) echo $name; esac)")
    kubectl("create", "namespace", NAMESPACE)
    subprocess.run(["bash", "-euc", script], cwd=folder, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, check=True)
    kubectl("create", "secret", "generic", "distro-join", f"--from-file=token={folder}/demo-distro-join.token")
    kubectl("create", "configmap", "corpus", f"--from-file={SOURCE}/docs/algorithm.md")
    yield folder
    kubectl("delete", "namespace", NAMESPACE, "--timeout=240s")


class Release:
    def __init__(self, helm_config, folder):
        self.helm, self.folder, self.workers = helm_config, folder, contextlib.ExitStack()

    def install(self):
        try:
            self.helm.install(str(CHART), "demo", VALUES, wait="watcher", timeout=LIMIT)
        except helm.HelmError:
            print(kubectl("get", "events"), kubectl("describe", "pods"))
            for pod in ("demo-distro-0", "demo-distro-archiver-0"):
                with contextlib.suppress(AssertionError):
                    print(kubectl("logs", pod, "--all-containers"))
            raise

    @property
    def address(self):
        return kubectl("get", "service", "demo-distro", "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")

    def client(self, token):
        return ["--ca", f"{self.folder}/tls/ca.pem", "--token_file", f"{self.folder}/{token}.token", "--server_name", HOST]

    def show(self):
        done = subprocess.run([BIN / "distroctl", "run", "show", self.address, *self.client("viewer")], capture_output=True, text=True)
        return dict(re.findall(r"^(\w+) +(.+)$", done.stdout, re.M)) if done.returncode == 0 else None

    def round(self):
        shown = self.show()
        return int(shown["round"].split()[0]) if shown else -1

    def hash(self, number):
        listed = kubectl("exec", "demo-distro-0", "-c", "aggregator", "--", "distroctl", "log", "ls", "--data_dir", "/data/run",
                         "--from", str(number), "--to", str(number + 1))
        return re.search(r"\b[0-9a-f]{16}\b", listed.splitlines()[1]).group()

    def start_worker(self, name):
        host = self.address
        with contextlib.suppress(OSError), socket.create_connection(host.split(":"), timeout=5):
            log = (self.folder / f"{name}.log").open("a")
            # ends with the thread that started it, also when ctest kills the test
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", BIN / "distro-worker", "--aggregator", host,
                                        "--data", SOURCE / "docs/algorithm.md", "--name", name,
                                        "--summary", self.folder / f"{name}.json", *self.client(name)], stdout=log, stderr=log)
            self.workers.callback(lambda: (process.kill(), process.wait(), log.close()))
            return process
        pytest.skip(f"service addresses do not answer from this machine: {host}")

    def trains(self, what, rounds=5):
        before = wait_for(lambda: max(self.round(), 0) or None, f"{what}: the aggregator answers")
        wait_for(lambda: self.round() >= before + rounds, f"{what}: {rounds} rounds more")


@pytest.fixture(scope="module")
def release(credentials):
    with helm.Config(kubeconfig_path=KUBECONFIG, namespace=NAMESPACE) as config:
        made = Release(config, credentials)
        yield made
        made.workers.close()
        with contextlib.suppress(Exception):
            config.uninstall("demo", wait="watcher", timeout=120)


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
    run, known = release.show()["run"], {}

    def goes_on(what):
        release.trains(what)
        assert release.show()["run"] == run
        for number, was in known.items():
            assert release.hash(number) == was, f"{what}: round {number} has another hash"
        newest = release.round() - 1
        known[newest] = release.hash(newest)
        print(f"{what}: round {newest} {known[newest]}, {len(known)} hashes hold")

    goes_on("trains")
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
    replay = kubectl("exec", "demo-distro-0", "-c", "aggregator", "--", "distroctl", "log", "replay", "--data_dir", "/data/run")
    print(replay)
    assert ", 0 differ" in replay
