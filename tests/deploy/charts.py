"""The charts, rendered by Helm itself as a library, and what its tests compare."""

import json
import os
import pathlib

import helm_python as helm
import yaml
from helm_python import _native

SOURCE = pathlib.Path(os.environ.get("DISTRO_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
CHART = SOURCE / "helm" / "distro"
MONITORING = SOURCE / "helm" / "distro-monitoring"
CI_VALUES = sorted(CHART.glob("ci/*-values.yaml"))
CI_MONITORING = sorted(MONITORING.glob("ci/*-values.yaml"))
# What .Capabilities.APIVersions sees of a cluster with the operators.
OPERATORS = ["policy/v1", "policy/v1/PodDisruptionBudget", "monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor"]
INSECURE = {"insecure": True}
OF_HOOKS = "templates/tests/"


def read_values(path):
    return yaml.safe_load(path.read_text())


def in_a_registry(values):
    """Every release says where its images are."""
    return {**values, "image": {"registry": "registry.example", **values.get("image", {})}}


def render(values=None, *, chart=CHART, api_versions=OPERATORS, kube_version="v1.30.0", name="demo", namespace="prod"):
    """File name -> text of every template."""
    values = in_a_registry(values or {}) if chart == CHART else values
    options = {"name": name, "namespace": namespace, "kube_version": kube_version, "api_versions": list(api_versions)}
    with helm.Chart.load(str(chart)) as loaded:
        return json.loads(_native.call_string("helm_render", loaded._raw(), json.dumps(values or {}), json.dumps(options)))


class UniqueKeys(yaml.SafeLoader):
    """Of two equal keys Helm and kubectl keep the last without a word."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"duplicate key {node.start_mark}"
        return super().construct_mapping(node, deep)


def objects(files):
    return [o for path, text in sorted(files.items()) if not path.endswith("NOTES.txt")
            for o in yaml.load_all(text, UniqueKeys) if o]


def notes(files):
    return next(text for path, text in files.items() if path.endswith("NOTES.txt"))


def find(rendered, kind, suffix=""):
    """The object of a kind and a name that ends so, of a rendering or a list of objects."""
    listed = objects(rendered) if isinstance(rendered, dict) else rendered
    found = [o for o in listed if o["kind"] == kind and o["metadata"]["name"] == f"demo-distro{suffix}"]
    assert len(found) == 1, f"{len(found)} of {kind} demo-distro{suffix}"
    return found[0]


def pod_spec(workload):
    return workload["spec"] if workload["kind"] == "Pod" else workload["spec"]["template"]["spec"]


def pods(listed):
    return [o for o in listed if o["kind"] in ("StatefulSet", "Pod", "Deployment", "Job")]


def dropped(given, kept, path=""):
    """What a typed model did not keep of a document."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [x for k, v in given.items() for x in (dropped(v, kept[k], f"{path}.{k}") if k in kept else [f"{path}.{k}"])]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [x for i, (a, b) in enumerate(zip(given, kept)) for x in dropped(a, b, f"{path}[{i}]")]
    return [] if given == kept else [f"{path}: {given!r} became {kept!r}"]
