"""A real Prometheus with our rules, on a port that it picks itself."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import yaml

SOURCE = pathlib.Path(os.environ.get("DISTRO_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "scripts" / "dashboards"))  # the tables of rules and panels
LISTENING = re.compile(r'msg="Listening on" address=(\S+)')


def generate(folder, **constants):
    """Rules and consoles into `folder`, with other constants."""
    chosen = [f"--set={name}={value}" for name, value in constants.items()]
    subprocess.run([sys.executable, SOURCE / "scripts" / "generate_dashboards", "--out", folder, *chosen], check=True)


def labelled(targets):
    """With the labels that the chart's ServiceMonitors give: `targets` is {run: address}."""
    return [{"targets": [address], "labels": {"run": run}} for run, address in targets.items()]


class Prometheus:
    """`folder` has rules/ and consoles/; aggregators are {run: address of the HTTP port}."""

    def __init__(self, folder, aggregators):
        self.archivers = folder / "archivers.json"
        self.watch_archivers({})
        jobs = [{"job_name": "distro-aggregator", "static_configs": labelled(aggregators)},
                {"job_name": "distro-workers", "metrics_path": "/metrics/workers", "static_configs": labelled(aggregators)},
                {"job_name": "distro-archiver", "file_sd_configs": [{"files": [str(self.archivers)], "refresh_interval": "1s"}]}]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [f"{folder}/rules/*.yml"],
                  "scrape_configs": jobs}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.log_path = folder / "prometheus.log"
        with self.log_path.open("w") as log:
            self.child = subprocess.Popen(
                # ends with the thread that started it, also when ctest kills the test
                ["setpriv", "--pdeathsig", "KILL", "--", "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                 "--web.listen-address=127.0.0.1:0", f"--web.console.templates={folder}/consoles",
                 f"--web.console.libraries={folder}/consoles"], stderr=log, stdout=log, cwd=folder)
        end = time.monotonic() + 60
        while not (found := LISTENING.search(self.log_path.read_text())):
            assert self.child.poll() is None and time.monotonic() < end, self.log_path.read_text()
            time.sleep(0.05)
        self.url = f"http://{found[1]}"

    def close(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()

    def watch_archivers(self, targets):
        """{run: address}, in the place of those before."""
        new = self.archivers.with_suffix(".new")
        new.write_text(json.dumps(labelled(targets)))
        new.replace(self.archivers)

    def api(self, path, **values):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(values)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """[(labels, value)] now."""
        return [(one["metric"], float(one["value"][1])) for one in self.api("query", query=expression)["result"]]

    def value(self, expression):
        """The value of the only sample; None when there is not exactly one."""
        samples = self.query(expression)
        return samples[0][1] if len(samples) == 1 else None

    def rules(self):
        return [rule for group in self.api("rules")["groups"] for rule in group["rules"]]

    def raised(self):
        """{alert: [labels]} of all that are pending or firing."""
        found = {}
        for alert in self.api("alerts")["alerts"]:
            found.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return found
