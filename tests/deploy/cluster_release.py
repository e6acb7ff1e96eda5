"""A release of the chart on the cluster: its secrets, its pods, and workers outside the cluster that train through its Service."""
import contextlib
import json
import os
import re
import socket
import subprocess

import helm_python as helm
import pytest

import cluster
from charts import CHART, SOURCE
from cluster import BIN, KUBECONFIG, LIMIT, SMALL, wait_for

MODEL = {**json.loads((SOURCE / "examples/demo/config.json").read_text()), "num_hidden_layers": 1}
RUN = {"name": "cluster", "rounds": 1000000, "warmup_rounds": 5, "sequence_length": 32, "samples_per_worker": 1, "held_out_fraction": 0,
       "start_workers": 2, "round_deadline": "10s", "probation_rounds": 0}
VALUES = {
    **cluster.IMAGES,
    "tls": {"existingSecret": "distro-tls"}, "auth": {"existingSecret": "distro-auth"}, "resources": SMALL, "drainGraceSeconds": 10,
    "run": {"config": RUN, "initModel": {"config": MODEL, "seed": 1}}, "readinessProbe": {"periodSeconds": 1}}
PODS = "app.kubernetes.io/instance=demo,app.kubernetes.io/component=aggregator"


def host(namespace):
    return f"demo-distro.{namespace}.svc"


@contextlib.contextmanager
def secrets_in(namespace, folder):
    """The namespace with the release's secrets, made by the commands of the chart's README. Deleted at the end, volumes too."""
    readme = (CHART / "README.md").read_text()
    script = re.search(r"^distroctl certs.*?viewer.token$", readme, re.M | re.S).group()
    script = script.replace("demo-distro.distro.svc", host(namespace)).replace("-n distro ", f"-n {namespace} ")
    script = script.replace(" worker-1;", " worker-1 worker-2 demo-distro-join;")
    script = script.replace("${name%-1}", "$(case $name in *-*) echo worker;; *) echo $name; esac)")
    cluster.kubectl(namespace, "create", "namespace", namespace)
    try:
        subprocess.run(["bash", "-euc", script], cwd=folder, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, check=True)
        yield folder
    finally:
        cluster.kubectl(namespace, "delete", "namespace", namespace, "--timeout=240s")


@contextlib.contextmanager
def release_in(namespace, folder, values):
    with helm.Config(kubeconfig_path=KUBECONFIG, namespace=namespace) as config:
        made = Release(config, namespace, folder, values)
        yield made
        made.workers.close()
        with contextlib.suppress(Exception):
            config.uninstall("demo", wait="watcher", timeout=120)


class Release:
    def __init__(self, helm_config, namespace, folder, values):
        self.helm, self.namespace, self.folder, self.values = helm_config, namespace, folder, values
        self.workers = contextlib.ExitStack()

    def kubectl(self, *arguments, text=None):
        return cluster.kubectl(self.namespace, *arguments, text=text)

    def install(self):
        try:
            self.helm.install(str(CHART), "demo", self.values, wait="watcher", timeout=LIMIT)
        except helm.HelmError:
            print(self.kubectl("get", "events"), self.kubectl("describe", "pods"))
            for pod in ("demo-distro-0", "demo-distro-archiver-0"):
                with contextlib.suppress(AssertionError):
                    print(self.kubectl("logs", pod, "--all-containers"))
            raise

    def pods(self):
        """{name: whether it is ready} of the aggregator's pods that are not being deleted."""
        listed = json.loads(self.kubectl("get", "pods", "-l", PODS, "-o", "json"))["items"]
        return {pod["metadata"]["name"]: any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
                for pod in listed if "deletionTimestamp" not in pod["metadata"]}

    def leader(self):
        """The pod that is ready."""
        return wait_for(lambda: next((name for name, ready in self.pods().items() if ready), None), "a pod is ready")

    @property
    def address(self):
        return self.kubectl("get", "service", "demo-distro", "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")

    def client(self, token):
        return ["--ca", f"{self.folder}/tls/ca.pem", "--token_file", f"{self.folder}/{token}.token", "--server_name", host(self.namespace)]

    def show(self):
        done = subprocess.run([BIN / "distroctl", "run", "show", self.address, *self.client("viewer")], capture_output=True, text=True)
        return dict(re.findall(r"^(\w+) +(.+)$", done.stdout, re.M)) if done.returncode == 0 else None

    def round(self):
        shown = self.show()
        return int(shown["round"].split()[0]) if shown else -1

    def log(self, command, *arguments):
        """`distroctl log` in the pod that leads."""
        return self.kubectl("exec", self.leader(), "-c", "aggregator", "--", "distroctl", "log", command, "--data_dir", "/data/run", *arguments)

    def hash(self, number):
        listed = self.log("ls", "--from", str(number), "--to", str(number + 1))
        return re.search(r"\b[0-9a-f]{16}\b", listed.splitlines()[1]).group()

    def start_worker(self, name):
        address = self.address
        with contextlib.suppress(OSError), socket.create_connection(address.split(":"), timeout=5):
            log = (self.folder / f"{name}.log").open("a")
            # ends with the thread that started it, also when ctest kills the test
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", BIN / "distro-worker", "--aggregator", address,
                                        "--data", SOURCE / "docs/algorithm.md", "--name", name,
                                        "--summary", self.folder / f"{name}.json", *self.client(name)], stdout=log, stderr=log)
            self.workers.callback(lambda: (process.kill(), process.wait(), log.close()))
            return process
        pytest.skip(f"service addresses do not answer from this machine: {address}")

    def trains(self, what, rounds=5):
        before = wait_for(lambda: max(self.round(), 0) or None, f"{what}: the aggregator answers")
        wait_for(lambda: self.round() >= before + rounds, f"{what}: {rounds} rounds more")


class Watch:
    """Checks that a release is the same run after each thing that happens to it: rounds go on, and those seen keep their hashes."""

    def __init__(self, release):
        self.release, self.run, self.known = release, release.show()["run"], {}

    def goes_on(self, what):
        self.release.trains(what)
        assert self.release.show()["run"] == self.run
        for number, was in self.known.items():
            assert self.release.hash(number) == was, f"{what}: round {number} has another hash"
        newest = self.release.round() - 1
        self.known[newest] = self.release.hash(newest)
        print(f"{what}: round {newest} {self.known[newest]}, {len(self.known)} hashes hold")
