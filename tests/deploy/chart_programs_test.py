"""What the chart renders, given to the real programs: containers' arguments, probes, and the commands of the notes."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import yaml

from charts import INSECURE, SOURCE, find, notes, pod_spec, render

sys.path.insert(0, str(SOURCE / "tests/integration"))
from processes import hold_port  # noqa: E402

BIN = pathlib.Path(os.environ.get("DISTRO_BIN", SOURCE / "build/dev/bin"))
SECURE = {"tls": {"existingSecret": "distro-tls"}, "auth": {"existingSecret": "distro-auth"}}
CLIENT_CA = {**SECURE, "auth": {**SECURE["auth"], "clientCASecret": "distro-ca"}}
MODEL = {**json.loads((SOURCE / "examples/demo/config.json").read_text()), "hidden_size": 64, "intermediate_size": 64,
         "num_hidden_layers": 1}
RUN = {"name": "chart", "rounds": 100000, "warmup_rounds": 2, "sequence_length": 16, "samples_per_worker": 1, "held_out_fraction": 0}
WITH_RUN = {"run": {"config": RUN, "initModel": {"config": MODEL, "seed": 1}}}
LIMIT = 120


def wait_for(condition, what, process=None):
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        assert process is None or process.poll() is None, f"{what}: ended with {process.returncode}"
        assert time.monotonic() < end, f"not within {LIMIT} s: {what}"
        time.sleep(0.05)
    return found


def get(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


class Place:
    """A folder that stands for the file system of the pods, and the processes in it."""

    def __init__(self, root):
        self.root, self.processes = root, contextlib.ExitStack()
        for folder in ("data", "tmp", "etc/distro"):
            (root / folder).mkdir(parents=True)

    def here(self, argument):
        return re.sub(r"(^|=|\s)(/data|/etc/distro|/training-data)", rf"\g<1>{self.root}\g<2>", argument)

    def start(self, command, name, cwd=None):
        log = (self.root / f"{name}.log").open("w")
        # It ends with the thread that started it, also when ctest kills the test.
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", BIN / command[0], *command[1:]], stdout=log, stderr=log,
                                   cwd=cwd or self.root, env={**os.environ, "TMPDIR": str(self.root / "tmp")})
        self.processes.callback(lambda: (process.kill(), process.wait(), log.close()))
        return process

    def log(self, name):
        return (self.root / f"{name}.log").read_text()

    def mount(self, spec):
        """ConfigMaps and secrets of a pod, as files."""
        for folder, files in spec.items():
            (self.root / "etc/distro" / folder).mkdir(exist_ok=True)
            for name, content in files.items():
                (self.root / "etc/distro" / folder / name).write_text(content)

    def aggregator(self, spec):
        """The aggregator's container of a pod, on free ports; (grpc, http)."""
        for init in spec.get("initContainers", []):
            environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
            subprocess.run([self.here(a) for a in init["command"]], check=True, env=environment)
        container = spec["containers"][0]
        ports = self.root / "ports"
        command = [*container["command"], *(self.here(a) for a in container["args"])]
        process = self.start([*command, "--listen=127.0.0.1:0", "--http=127.0.0.1:0", f"--port_file={ports}"], "aggregator")
        wait_for(ports.exists, "the aggregator listens", process)
        return re.fullmatch(r"grpc=(\S+)\s+http=(\S+)\s*", ports.read_text()).groups()


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "root")
    yield made
    made.processes.close()


def credentials(place):
    """Certificates and tokens, made with the commands of the chart's README."""
    script = re.search(r"^distroctl certs.*?^done", (SOURCE / "helm/distro/README.md").read_text(), re.M | re.S).group()
    script = re.sub(r"^kubectl .*\n", "", script, flags=re.M)
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", script], cwd=place.root, env=environment, check=True, stdout=subprocess.DEVNULL)
    read = lambda name: (place.root / name).read_text()
    place.mount({"tls": {"tls.crt": read("tls/server.pem"), "tls.key": read("tls/server-key.pem")}, "ca": {"ca.crt": read("tls/ca.pem")},
                 "client-ca": {"ca.crt": read("tls/ca.pem")}, "auth": {"tokens": read("tokens")},
                 "token": {"token": read("archiver.token"), "demo-distro-worker-0": read("worker-1.token")}})
    (place.root / "ca.crt").write_text(read("tls/ca.pem"))


def client(container, grpc, secure):
    """A client's command, at this aggregator: by address, with the name of its certificate."""
    name = ["--server_name=demo-distro.distro.svc"] if secure else []
    return [re.sub(r"demo-distro\.prod\.svc:7700", grpc, a) for a in container["command"] + container["args"]] + name


@pytest.mark.parametrize("security", [INSECURE, SECURE, CLIENT_CA], ids=["insecure", "tls", "client-ca"])
def test_containers_and_probes(place, security):
    values, secure = {**security, **WITH_RUN}, "tls" in security
    if secure:
        credentials(place)
    rendered = render(values)
    place.mount({"run": find(rendered, "ConfigMap", "-run")["data"]})
    spec = pod_spec(find(rendered, "StatefulSet"))
    grpc, http = place.aggregator(spec)
    container = spec["containers"][0]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "http"
        wait_for(lambda: get(http, container[probe]["httpGet"]["path"])[0] == 200, probe)
    assert re.search(r'distro_aggregator_run_info\{.*run_id="chart-', get(http, "/metrics")[1])

    check = pod_spec(find(rendered, "Pod", "-check"))["containers"][0]
    command = [place.here(a).replace("demo-distro-headless.prod.svc:7701", http) for a in client(check, grpc, secure)]
    assert "--require_run" in command
    place.mount({"token": {"token": (place.root / "viewer.token").read_text() if secure else ""}})
    subprocess.run([BIN / command[0], *command[1:]], check=True, timeout=LIMIT)
    place.mount({"token": {"token": (place.root / "archiver.token").read_text() if secure else ""}})

    archiver = pod_spec(find(rendered, "StatefulSet", "-archiver"))["containers"][0]
    command = [place.here(a) for a in client(archiver, grpc, secure)]
    process = place.start([*command, "--http=127.0.0.1:0"], "archiver")
    address = wait_for(lambda: re.search(r"serving metrics.*?(127\.0\.0\.1:\d+)", place.log("archiver")), "the archiver's port", process)
    assert get(address[1], archiver["livenessProbe"]["httpGet"]["path"])[0] == 200
    wait_for(lambda: get(address[1], "/readyz")[0] == 200, "the archiver follows the run", process)


def test_second_start_keeps_the_initial_model(place):
    rendered = render({**INSECURE, **WITH_RUN})
    place.mount({"run": find(rendered, "ConfigMap", "-run")["data"]})
    place.aggregator(pod_spec(find(rendered, "StatefulSet")))
    place.processes.close()
    (place.root / "ports").unlink()
    place.aggregator(pod_spec(find(rendered, "StatefulSet")))


def join_test(security):
    """The container of the join test, as a command here: token and data are where the pod has them, the port is free."""
    values = {**security, **WITH_RUN, "joinTest": {"enabled": True, "volume": {"emptyDir": {}}, "path": "text.txt", "timeoutSeconds": 60,
                                                   **({"tokenSecret": "t"} if "tls" in security else {})}}
    return pod_spec(find(render(values), "Pod", "-join"))["containers"][0]


@pytest.mark.parametrize("security", [INSECURE, SECURE], ids=["insecure", "tls"])
def test_join_test_joins_and_leaves(place, security):
    secure = "tls" in security
    if secure:
        credentials(place)
        subprocess.run(f"{BIN}/distroctl token new demo-distro-join --role worker > join.txt; awk '$1 == \"line\" {{ sub(/^line +/, \"\"); print }}' "
                       "join.txt >> etc/distro/auth/tokens", shell=True, cwd=place.root, check=True)
        token = re.search(r"^token +(\S+)", (place.root / "join.txt").read_text(), re.M)[1]
        place.mount({"token": {"token": token}})
    rendered = render({**security, **WITH_RUN})
    place.mount({"run": find(rendered, "ConfigMap", "-run")["data"]})
    grpc, http = place.aggregator(pod_spec(find(rendered, "StatefulSet")))
    (place.root / "training-data").mkdir()
    shutil.copy(SOURCE / "docs/algorithm.md", place.root / "training-data/text.txt")
    with hold_port() as held:
        port = str(held.getsockname()[1])
        command = [re.sub(r"\b7703\b", port, place.here(a)) for a in client(join_test(security), grpc, secure)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=place.root,
                              env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "TMPDIR": str(place.root / "tmp")})
    assert done.returncode == 0, done.stdout + done.stderr
    assert " joined " in done.stderr
    wait_for(lambda: 'distro_aggregator_worker_changes_total{reason="left"} 1\n' in get(http, "/metrics")[1], "the aggregator saw it leave")


def test_join_test_fails_with_nothing_to_join(place):
    (place.root / "training-data").mkdir()
    shutil.copy(SOURCE / "docs/algorithm.md", place.root / "training-data/text.txt")
    command = [place.here(a) for a in client(join_test(INSECURE), "127.0.0.1:1", False)] + ["--connect_timeout=1s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=place.root,
                          env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "TMPDIR": str(place.root / "tmp")})
    assert 11 <= done.returncode <= 18, (done.returncode, done.stderr)


def quantity(text):
    """In bytes or cores."""
    number, unit = re.fullmatch(r"(\d+)(m|Gi)", text).groups()
    return int(number) * {"m": 0.001, "Gi": 2**30}[unit]


def test_plan_gives_values_that_fit_chart():
    """README.md, "Sizes": the defaults fit 1.2 B parameters and 8 workers of deltas."""
    done = subprocess.run([BIN / "distroctl", "plan", "--model", SOURCE / "examples/llama_1b2", "--workers", "8", "--output", "helm"],
                          capture_output=True, text=True, check=True)
    planned = yaml.safe_load(done.stdout)
    listed = render({**INSECURE, **planned})
    aggregator = find(listed, "StatefulSet")["spec"]
    assert aggregator["template"]["spec"]["containers"][0]["resources"] == planned["resources"]
    assert aggregator["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] == planned["persistence"]["size"]
    defaults = yaml.safe_load((SOURCE / "helm/distro/values.yaml").read_text())
    for part, least in ((defaults, planned), (defaults["archiver"], planned["archiver"])):
        for name in ("cpu", "memory"):
            assert quantity(part["resources"]["requests"][name]) >= quantity(least["resources"]["requests"][name]), name
        assert quantity(part["persistence"]["size"]) >= quantity(least["persistence"]["size"])


def test_sees_unknown_argument(place):
    spec = pod_spec(find(render({**INSECURE, "extraArgs": ["--no_such_flag=1"]}), "StatefulSet"))
    with pytest.raises(AssertionError, match="ended with 2"):
        place.aggregator(spec)


def worker_of_the_cluster(values):
    values = {**values, "workers": {"enabled": True, "gpus": 0, "tokensSecret": "t", "data": {"existingClaim": "c", "path": "text.txt"}}}
    return pod_spec(find(render(values), "StatefulSet", "-worker"))["containers"][0]


def test_notes_commands_as_printed(place):
    """The run is created and a worker started with the lines of the notes; then with the container of the chart's workers."""
    credentials(place)
    rendered = render(SECURE)
    grpc, http = place.aggregator(pod_spec(find(rendered, "StatefulSet")))
    shutil.copy(SOURCE / "docs/algorithm.md", place.root / "text.txt")
    (place.root / "config.json").write_text(json.dumps(MODEL))
    (place.root / "run.json").write_text(json.dumps(RUN))
    commands = [shlex.split(line) for line in notes(rendered).splitlines() if re.match(r"  distro(ctl|-worker) ", line)]
    assert [c[:2] for c in commands] == [["distroctl", "init-model"], ["distroctl", "run"], ["distro-worker", "--aggregator"],
                                         ["distroctl", "token"]]
    for command in commands[:3]:
        if "demo-distro.prod.svc:7700" in command:
            command[command.index("demo-distro.prod.svc:7700")] = grpc
            command.append("--server_name=demo-distro.distro.svc")
    for command in commands[:2]:
        subprocess.run([BIN / command[0], *command[1:]], cwd=place.root, check=True, timeout=LIMIT)

    def committed():
        return float(re.search(r"^distro_aggregator_round ([0-9.e+]+)$", get(http, "/metrics")[1], re.M)[1])

    worker = place.start(commands[2], "worker")
    wait_for(lambda: committed() >= 2, "two rounds", worker)
    worker.terminate()
    worker.wait(LIMIT)

    pod = worker_of_the_cluster(SECURE)
    (place.root / "training-data").mkdir()
    shutil.copy(place.root / "text.txt", place.root / "training-data")
    command = [place.here(a).replace("/token/$(POD_NAME)", "/token/demo-distro-worker-0").replace("$(POD_NAME)", "worker-1")
               for a in client(pod, grpc, True)]
    before = committed()
    worker = place.start([*command, "--http=127.0.0.1:0"], "worker-of-the-cluster")
    wait_for(lambda: committed() >= before + 2, "two rounds more", worker)
