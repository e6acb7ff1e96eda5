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


def scrape(job, path, targets):
    return {"job_name": job, "metrics_path": path, "static_configs": [{"targets": list(targets)}]}


class Prometheus:
    """`folder` has rules/ and consoles/."""

    def __init__(self, folder, targets, *flags):
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [f"{folder}/rules/*.yml"],
                  "scrape_configs": [scrape("distro-aggregator", "/metrics", targets),
                                     scrape("distro-workers", "/metrics/workers", targets)]}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.log_path = folder / "prometheus.log"
        with self.log_path.open("w") as log:
            self.child = subprocess.Popen(
                # ends with the thread that started it, also when ctest kills the test
                ["setpriv", "--pdeathsig", "KILL", "--", "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                 "--web.listen-address=127.0.0.1:0", f"--web.console.templates={folder}/consoles",
                 f"--web.console.libraries={folder}/consoles", *flags], stderr=log, stdout=log, cwd=folder)
        end = time.monotonic() + 60
        while not (found := LISTENING.search(self.log_path.read_text())):
            assert self.child.poll() is None and time.monotonic() < end, self.log_path.read_text()
            time.sleep(0.05)
        self.url = f"http://{found[1]}"

    def close(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()

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
