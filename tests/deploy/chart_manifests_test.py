"""What the chart renders, for each values file of ci/: valid for Kubernetes and the operators, closed, and as recorded."""

import difflib
import json
import os
import pathlib

import cloudcoil.models.cert_manager.v1 as cert_manager
import cloudcoil.models.prometheus_operator.v1 as prometheus_operator
import helm_python as helm
import kubernetes_validate
import pytest
import yaml

import charts
from charts import CHART, CI_VALUES, find, objects, pod_spec, pods, read_values, render

GOLDEN = pathlib.Path(__file__).parent / "golden"
MODELS = {"monitoring.coreos.com/v1": prometheus_operator, "cert-manager.io/v1": cert_manager}
by_name = {"ids": lambda p: p.name.removesuffix("-values.yaml")}


def check(manifest, kube):
    if manifest["apiVersion"] in MODELS:
        model = getattr(MODELS[manifest["apiVersion"]], manifest["kind"]).model_validate(manifest)
        assert charts.dropped(manifest, model.model_dump(by_alias=True, exclude_unset=True, mode="json")) == []
    elif manifest["kind"] == "TLSRoute":
        check_tls_route(manifest)
    else:
        kubernetes_validate.validate(manifest, kube, strict=True)


def check_tls_route(route):
    """Of gateway.networking.k8s.io/v1alpha2 and v1; no package has the schema."""
    assert set(route["spec"]) == {"parentRefs", "hostnames", "rules"}
    assert all(set(p) <= {"group", "kind", "namespace", "name", "sectionName", "port"} for p in route["spec"]["parentRefs"])
    (rule,) = route["spec"]["rules"]
    assert [set(backend) for backend in rule["backendRefs"]] == [{"name", "port"}]


@pytest.mark.parametrize("values", CI_VALUES, **by_name)
@pytest.mark.parametrize("kube", ["1.27", "1.37"])
def test_renders_valid_objects(values, kube):
    listed = objects(render(read_values(values), kube_version=f"v{kube}.0"))
    assert len(listed) >= 6
    for manifest in listed:
        check(manifest, kube)


@pytest.mark.parametrize("break_it", [
    lambda o: o["spec"].update(replica=1), lambda o: pod_spec(o)["containers"][0].update(imagePullpolicy="Always"),
    lambda o: o["spec"].update(replicas="one")], ids=["unknown field", "misspelt field", "wrong type"])
def test_check_refuses_broken_object(break_it):
    manifest = find(render(charts.INSECURE), "StatefulSet")
    break_it(manifest)
    with pytest.raises(kubernetes_validate.ValidationError):
        check(manifest, "1.30")


def test_check_refuses_misspelt_field_of_operator():
    monitor = find(render(read_values(CHART / "ci/monitoring-values.yaml")), "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["scrapeTimeOut"] = "1s"
    with pytest.raises(AssertionError, match="scrapeTimeOut"):
        check(monitor, "1.30")


@pytest.mark.parametrize("values", CI_VALUES, **by_name)
def test_lint(values):
    result = helm.lint(str(CHART), read_values(values), strict=True, kube_version="v1.30.0")
    assert not result["errors"], result
    assert [m for m in result["messages"] if m["severity"] >= 2] == []


@pytest.mark.parametrize("values", CI_VALUES, **by_name)
def test_pods_mount_what_is_there(values):
    listed = objects(render(read_values(values)))
    for workload in pods(listed):
        spec = pod_spec(workload)
        claims = [c["metadata"]["name"] for c in workload["spec"].get("volumeClaimTemplates", [])]
        have = {v["name"] for v in spec.get("volumes", [])} | set(claims)
        used = {m["name"] for c in spec["containers"] + spec.get("initContainers", []) for m in c.get("volumeMounts", [])}
        assert used == have, workload["metadata"]["name"]
        for volume in spec.get("volumes", []):
            if "configMap" in volume:
                assert volume["configMap"]["name"] in [o["metadata"]["name"] for o in listed if o["kind"] == "ConfigMap"]


@pytest.mark.parametrize("values", CI_VALUES, **by_name)
def test_services_and_policies_select_pods_that_exist(values):
    listed = objects(render(read_values(values)))
    labels = [o["spec"]["template"]["metadata"]["labels"] if o["kind"] != "Pod" else o["metadata"]["labels"] for o in pods(listed)]
    for manifest in listed:
        selector = {"Service": lambda o: o["spec"]["selector"], "NetworkPolicy": lambda o: o["spec"]["podSelector"]["matchLabels"],
                    "PodDisruptionBudget": lambda o: o["spec"]["selector"]["matchLabels"]}.get(manifest["kind"])
        if selector:
            chosen = [x for x in labels if selector(manifest).items() <= x.items()]
            assert len(chosen) == 1, manifest["metadata"]["name"]
    for manifest in listed:
        if manifest["kind"] == "StatefulSet":
            assert manifest["spec"]["serviceName"] in [o["metadata"]["name"] for o in listed if o["kind"] == "Service"]


def test_default_rendering_is_as_recorded():
    """DISTRO_UPDATE_GOLDEN=1 writes the record anew."""
    text = "".join(f"# {path}\n{body.strip()}\n" for path, body in sorted(render(charts.INSECURE).items()) if body.strip())
    record = GOLDEN / "chart-default.yaml"
    if os.environ.get("DISTRO_UPDATE_GOLDEN"):
        record.write_text(text)
    changes = list(difflib.unified_diff(record.read_text().splitlines(), text.splitlines(), "recorded", "rendered", lineterm=""))
    assert not changes, "\n".join(changes)


def immutable_fields(listed):
    """What the API server refuses to change in place: an upgrade that changes one fails."""
    kept = {}
    for o in listed:
        key = f"{o['kind']} {o['metadata']['name']}"
        if o["kind"] == "StatefulSet":
            kept[key] = {k: o["spec"].get(k) for k in ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")}
        elif o["kind"] == "Service":
            kept[key] = {"headless": o["spec"].get("clusterIP") == "None"}
    return kept


@pytest.mark.parametrize("values", CI_VALUES, **by_name)
def test_upgrades_from_recorded_versions(values):
    listed = immutable_fields(objects(render(read_values(values), kube_version="v1.37.0")))
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    record = GOLDEN / f"chart-immutable-{version}.json"
    if os.environ.get("DISTRO_UPDATE_GOLDEN"):
        old = json.loads(record.read_text()) if record.exists() else {}
        record.write_text(json.dumps({**old, values.name: listed}, indent=1, sort_keys=True) + "\n")
    for recorded in sorted(GOLDEN.glob("chart-immutable-*.json")):
        before = json.loads(recorded.read_text()).get(values.name, {})
        assert {k: v for k, v in listed.items() if k in before} == before, recorded.name
    assert values.name in json.loads(record.read_text()), f"record {version} with DISTRO_UPDATE_GOLDEN=1"
