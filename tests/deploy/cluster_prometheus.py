"""A real Prometheus that watches a cluster by the ServiceMonitors and PrometheusRules in it. What the Prometheus operator makes of
these objects, its rules, jobs and targets, is made of them here; Debian's Prometheus cannot ask a cluster itself."""
import json
import signal
import threading
import urllib.request

import yaml

import prometheus_server
from cluster import kubectl


def crd(kind):
    """A definition that takes any fields, for a cluster without the operator."""
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.monitoring.coreos.com"},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


def listed(kind):
    return json.loads(kubectl("default", "get", kind, "--all-namespaces", "-o", "json"))["items"]


def matches(monitor, endpoints):
    """Endpoints have the labels of their service."""
    spec, about = monitor["spec"], endpoints["metadata"]
    return about["namespace"] in spec["namespaceSelector"]["matchNames"] and \
        spec["selector"]["matchLabels"].items() <= about.get("labels", {}).items()


def addresses(endpoints, port):
    """(address, pod) of a named port, of pods that are not ready as well."""
    for subset in endpoints.get("subsets", []):
        for number in [one["port"] for one in subset["ports"] if one["name"] == port]:
            for one in subset.get("addresses", []) + subset.get("notReadyAddresses", []):
                yield f"{one['ip']}:{number}", one["targetRef"]["name"]


def targets(monitor, endpoint, services):
    """As the operator labels them, relabelled as the ServiceMonitor says."""
    given = {one["targetLabel"]: one["replacement"] for one in endpoint["relabelings"]}
    return [{"targets": [address], "labels": {"namespace": service["metadata"]["namespace"], "pod": pod, **given}}
            for service in services if matches(monitor, service) for address, pod in addresses(service, endpoint["port"])]


class ClusterPrometheus(prometheus_server.Prometheus):
    """follow() reads rules and monitors of the cluster again; its endpoints are read all the time."""

    def __init__(self, folder):
        (folder / "rules").mkdir()
        (folder / "consoles").mkdir()
        super().__init__(folder, {})
        self.folder, self.jobs, self.ends = folder, {}, threading.Event()
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    def close(self):
        self.ends.set()
        self.watcher.join()
        super().close()

    def watch(self):
        while not self.ends.wait(2):
            self.discover()

    def follow(self):
        for old in (self.folder / "rules").iterdir():
            old.unlink()
        for rule in listed("prometheusrule"):
            name = f"{rule['metadata']['namespace']}-{rule['metadata']['name']}.yml"
            (self.folder / "rules" / name).write_text(yaml.safe_dump(rule["spec"]))
        self.jobs = {f"{monitor['metadata']['namespace']}-{monitor['metadata']['name']}-{number}": (monitor, endpoint)
                     for monitor in listed("servicemonitor") for number, endpoint in enumerate(monitor["spec"]["endpoints"])}
        jobs = [{"job_name": name, "metrics_path": endpoint["path"], "file_sd_configs": [{"files": [f"{self.folder}/{name}.json"]}]}
                for name, (_, endpoint) in self.jobs.items()]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [f"{self.folder}/rules/*.yml"],
                  "scrape_configs": jobs}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.child.send_signal(signal.SIGHUP)

    def discover(self):
        jobs, services = self.jobs, listed("endpoints")
        for name, (monitor, endpoint) in jobs.items():
            new = self.folder / f"{name}.new"
            new.write_text(json.dumps(targets(monitor, endpoint, services)))
            new.replace(self.folder / f"{name}.json")

    def loaded(self):
        """Whether the last configuration was read, and is the one in use."""
        in_use = yaml.safe_load(self.api("status/config")["yaml"])
        metrics = urllib.request.urlopen(f"{self.url}/metrics", timeout=30).read().decode()
        return {one["job_name"] for one in in_use["scrape_configs"]} == set(self.jobs) and \
            "prometheus_config_last_reload_successful 1" in metrics
