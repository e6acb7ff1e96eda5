"""Dockerfiles and the compose file: linted, and what they share does not differ. Running them: containers_test.py."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from charts import CHART, MONITORING, SOURCE, objects, read_values, render

DOCKER = SOURCE / "docker"
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
COMPOSE, MIRROR = DOCKER / "compose.yaml", DOCKER / "compose.mirror.yaml"
TOOLS = pathlib.Path(sys.executable).parent
by_name = {"ids": lambda p: p.name.removesuffix(".Dockerfile")}


def lint(path):
    # DL3008 wants versions of Debian's packages: the suite is the pin.
    return subprocess.run([TOOLS / "hadolint", "--no-color", "--ignore", "DL3008", path], capture_output=True, text=True)


def compose_problems(path):
    return subprocess.run([TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", path], capture_output=True, text=True)


@pytest.mark.parametrize("dockerfile", DOCKERFILES, **by_name)
def test_hadolint(dockerfile):
    done = lint(dockerfile)
    assert done.returncode == 0, done.stdout


def test_hadolint_sees_a_mistake(tmp_path):
    bad = tmp_path / "bad.Dockerfile"
    bad.write_text("FROM debian\nRUN cd /tmp && apt-get install x\n")
    assert lint(bad).returncode == 1


def last_stage(dockerfile):
    return re.split(r"^FROM .*\n", dockerfile.read_text(), flags=re.M)[-1]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, **by_name)
def test_program_is_process_1_and_not_root(dockerfile):
    stage = last_stage(dockerfile)
    assert re.findall(r"^USER (.*)$", stage, re.M) == ["65532:65532"]
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", stage, re.M)[1])
    assert entry[0] in ("distro-aggregator", "distro-worker", "distroctl")
    assert "VOLUME" not in stage
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in stage


def test_aggregator_and_tools_are_built_alike():
    """So that the second image is made from the first one's cache."""
    stages = {re.search(r"^FROM .*? AS build\n.*?(?=^FROM )", (DOCKER / f"{name}.Dockerfile").read_text(), re.M | re.S).group()
              for name in ("aggregator", "tools")}
    assert len(stages) == 1


def copy_context(folder):
    """What .dockerignore lets into an image's build; its lines are `*` and then what is kept."""
    first, *kept = (SOURCE / ".dockerignore").read_text().split()
    assert first == "*" and all(re.fullmatch(r"![\w./-]+", line) for line in kept)
    for path in (pathlib.Path(line[1:]) for line in kept):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (SOURCE / path).is_dir() else shutil.copy)(SOURCE / path, folder / path)


def plan_build(folder, dockerfile):
    """Configures as a Dockerfile does and plans its targets, which names an input that is not there; nothing is compiled."""
    text = (DOCKER / f"{dockerfile}.Dockerfile").read_text()
    flags = re.search(r"cmake --preset release (.*?) --log-level", text)[1].split()
    cache = (pathlib.Path(os.environ["DISTRO_BIN"]).parent / "CMakeCache.txt").read_text()
    flags.append("-DDISTRO_TORCH_DIR=" + re.search("^DISTRO_TORCH_DIR:[A-Z]+=(.+)", cache, re.M)[1])
    targets = re.search(r"--target (.*?) *\\\n", text)[1].split()
    for command in (["cmake", "--preset", "release", *flags], ["cmake", "--build", "build/release", "--target", *targets, "--", "-n"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            return done.stdout[-1000:] + done.stderr
    return ""


@pytest.mark.parametrize("dockerfile", ["aggregator", "worker-cpu"])  # tools is built like aggregator; -cuda needs a toolkit
def test_build_has_what_it_needs(dockerfile, tmp_path):
    copy_context(tmp_path)
    assert plan_build(tmp_path, dockerfile) == ""


def test_sees_what_build_lacks(tmp_path):
    copy_context(tmp_path)
    shutil.rmtree(tmp_path / "docs/runbooks")
    assert "docs/runbooks" in plan_build(tmp_path, "aggregator")


def test_compose_schema(tmp_path):
    for file in (COMPOSE, MIRROR):
        assert compose_problems(file).returncode == 0, compose_problems(file).stdout
    bad = tmp_path / "compose.yaml"
    bad.write_text(COMPOSE.read_text().replace("stop_grace_period", "stop_grace"))
    assert compose_problems(bad).returncode == 1


def services(file=COMPOSE):
    return yaml.safe_load(file.read_text())["services"]


def test_compose_has_the_whole_run():
    assert set(services()) == {"aggregator", "create-run", "archiver", "worker-1", "worker-2", "prometheus", "grafana"}
    for name, service in {**services(), "mirror": services(MIRROR)["mirror"]}.items():
        assert service["cap_drop"] == ["ALL"] and service["read_only"] and service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name


def test_mirror_of_compose_adds_to_the_aggregator():
    plain, mirrored = (services(file)["aggregator"]["command"] for file in (COMPOSE, MIRROR))
    assert mirrored[:len(plain)] == plain
    assert mirrored[len(plain):] == ["--objects=[::]:7704", "--mirrors=http://mirror:8080"]
    rules = (CHART / "files/objects.vcl").read_text()
    assert 'host = "aggregator"' in rules and 'port = "7704"' in rules


def test_compose_names_the_images_of_the_dockerfiles():
    own = {re.fullmatch(r"\$\{DISTRO_IMAGE_PREFIX:-distro\}/([\w-]+):\$\{DISTRO_TAG:-[\d.]+\}", service["image"])[1]: service["build"]["dockerfile"]
           for service in services().values() if "build" in service}
    assert own == {name: f"docker/{name}.Dockerfile" for name in ("aggregator", "tools", "worker-cpu")}


def test_compose_mounts_files_of_the_checkout():
    """Those that generate_dashboards writes must be there before; otherwise Compose would make empty folders in their places."""
    volumes = [v for s in [*services().values(), services(MIRROR)["mirror"]] for v in s.get("volumes", [])]
    generated = [v for v in volumes if isinstance(v, dict)]
    assert [v["source"] for v in generated] == [f"../helm/distro-monitoring/{name}" for name in ("rules", "consoles", "dashboards")]
    assert all(v["type"] == "bind" and v["read_only"] and v["bind"] == {"create_host_path": False} for v in generated)
    mounted = [v["source"] for v in generated] + [v.split(":")[0] for v in volumes if str(v).startswith(".")]
    assert "./prometheus/prometheus.yml" in mounted
    for path in mounted:
        assert (DOCKER / path).exists(), path


def test_prometheus_configuration(tmp_path):
    shutil.copytree(MONITORING / "rules", tmp_path / "rules")
    text = (DOCKER / "prometheus/prometheus.yml").read_text()
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/etc/prometheus/rules", str(tmp_path / "rules")))
    done = subprocess.run(["promtool", "check", "config", config], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "rule files found" in done.stdout or "SUCCESS" in done.stdout
    jobs = {(j.get("metrics_path", "/metrics"), j["job_name"]) for j in yaml.safe_load(text)["scrape_configs"]}
    monitors = [o for o in objects(render(read_values(CHART / "ci/monitoring-values.yaml"))) if o["kind"] == "ServiceMonitor"]
    assert jobs == {(e["path"], e["relabelings"][0]["replacement"]) for o in monitors for e in o["spec"]["endpoints"]}


def test_run_configuration_has_the_workers_of_the_file():
    run = json.loads((DOCKER / "run.json").read_text())
    assert run["start_workers"] == len([s for s in services() if s.startswith("worker-")])
