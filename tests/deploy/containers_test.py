"""The images and the compose file, run for real with Podman.

    DISTRO_IMAGE_PREFIX, DISTRO_IMAGE_TAG   images that were built: PREFIX/aggregator:TAG and so on (docs/deploy.md)

Skipped without podman, or where an image is missing. Compose wants an image prom/prometheus too.
"""

import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from charts import SOURCE

PREFIX, TAG = os.environ.get("DISTRO_IMAGE_PREFIX"), os.environ.get("DISTRO_IMAGE_TAG", "test")
PROGRAMS = {"aggregator": "distro-aggregator", "tools": "distroctl", "worker-cpu": "distro-worker"}
LIMIT = 300
pytestmark = pytest.mark.skipif(not (PREFIX and shutil.which("podman")), reason="needs podman and DISTRO_IMAGE_PREFIX (docs/deploy.md)")


def podman(*arguments, check=True):
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 or not check, f"podman {' '.join(arguments)}: {done.stderr}"
    return done


def need(image):
    if podman("image", "exists", image, check=False).returncode:
        pytest.skip(f"there is no image {image}")
    return image


def image(name):
    return need(f"{PREFIX}/{name}:{TAG}")


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {LIMIT} s: {what}"
        time.sleep(0.2)
    return found


def get(port, path):
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()
    return ""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_image(name):
    """Its settings, and that the program starts read-only, as nobody, with all that it links."""
    about = json.loads(podman("image", "inspect", image(name)).stdout)[0]
    config = about["Config"]
    assert config["User"] == "65532:65532" and config["Entrypoint"][0] == PROGRAMS[name]
    assert {"title", "version", "revision", "licenses"} <= {k.removeprefix("org.opencontainers.image.") for k in config["Labels"]}
    assert "Healthcheck" in about and "/healthz" in about["Healthcheck"]["Test"][-1]
    print(name, round(about["Size"] / 1e6), "MB")
    assert name != "aggregator" or about["Size"] < 125e6
    shown = podman("run", "--rm", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL", image(name), "--help", check=False)
    assert PROGRAMS[name] in shown.stdout


def test_aggregator_as_a_cluster_would_run_it():
    name, port = f"distro-test-{secrets.token_hex(3)}", free_port()
    podman("run", "-d", "--name", name, "--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL", "--security-opt",
           "no-new-privileges", "-v", f"{name}:/data", "-p", f"127.0.0.1:{port}:7701", image("aggregator"), "--insecure")
    try:
        wait_for(lambda: "distro_aggregator_build_info" in get(port, "/metrics"), "metrics")
        assert podman("exec", name, "id", "-u").stdout.strip() == "65532"
        assert podman("exec", name, "cat", "/proc/1/comm").stdout.startswith("distro-aggre")
        podman("healthcheck", "run", name)
        podman("stop", "-t", "20", name)
        assert podman("inspect", name, "--format", "{{.State.ExitCode}}").stdout.strip() == "0"
    finally:
        podman("rm", "-f", name)
        podman("volume", "rm", name)


def metric(text, name):
    """The sum of its series."""
    return sum(map(float, re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)$", text, re.M)))


class Compose:
    """A project of the compose files on ports of its own."""

    def __init__(self, *files):
        self.files = [part for file in files for part in ("-f", SOURCE / "docker" / file)]
        self.ports = {name: str(free_port()) for name in ("GRPC", "HTTP", "PROMETHEUS")}
        self.environment = {**os.environ, **{f"DISTRO_{name}_PORT": port for name, port in self.ports.items()},
                            "DISTRO_IMAGE_PREFIX": PREFIX, "DISTRO_TAG": TAG, "DISTRO_DATA": str(SOURCE / "docs/protocol.md")}

    def __call__(self, *arguments):
        program = pathlib.Path(sys.executable).parent / "podman-compose"
        return subprocess.run([program, "-p", "distro-test", *self.files, *arguments], env=self.environment, capture_output=True, text=True)

    def metric(self, name, path="/metrics"):
        return metric(get(self.ports["HTTP"], path), name)

    def query(self, path):
        return json.loads(get(self.ports["PROMETHEUS"], path) or '{"data": {}}')["data"]


@contextlib.contextmanager
def compose(*files):
    """Up, and ten rounds trained; down at the end."""
    for name in PROGRAMS:
        image(name)
    need("prom/prometheus:v2.42.0")
    project = Compose(*files)
    try:
        up = project("up", "-d", "--no-build")
        wait_for(lambda: project.metric("distro_aggregator_round") >= 10, f"ten rounds\n{up.stdout}{up.stderr}")
        yield project
    finally:
        project("down", "-v")


def test_compose_trains_and_is_watched():
    with compose("compose.yaml") as project:
        query = project.query
        wait_for(lambda: sorted(t["labels"]["job"] for t in query("/api/v1/targets").get("activeTargets", []) if t["health"] == "up")
                 == ["distro-aggregator", "distro-archiver", "distro-workers"], "three targets are up")
        rules = wait_for(lambda: [r for g in query("/api/v1/rules").get("groups", []) for r in g["rules"]], "rules")
        wait_for(lambda: {r["health"] for g in query("/api/v1/rules")["groups"] for r in g["rules"]} == {"ok"}, "rules are evaluated")
        wait_for(lambda: len(query("/api/v1/query?query=distro_worker_round").get("result", [])) == 2, "both workers are seen")
        assert "<html" in get(project.ports["PROMETHEUS"], "/consoles/distro.html").lower()
        print(len(rules), "rules ok")
        before = project.metric("distro_aggregator_round")
        project("restart", "aggregator")
        wait_for(lambda: project.metric("distro_aggregator_round") >= before + 5, "the run goes on after a restart")


def test_mirror_of_compose_sends_results():
    need("varnish:7.1")
    with compose("compose.yaml", "compose.mirror.yaml") as project:
        def of_workers(name):
            return project.metric(f"distro_worker_mirror_{name}_total", "/metrics/workers")
        first = wait_for(lambda: of_workers("bytes"), "bytes come from the mirror")
        failures = of_workers("failures")  # before it was up
        wait_for(lambda: of_workers("bytes") > 2 * first, "more bytes come from the mirror")
        assert of_workers("failures") == failures
