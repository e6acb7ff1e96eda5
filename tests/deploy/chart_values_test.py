"""The chart's values: what is refused and how it is said, what they change, what README.md says of them, and hardening."""

import json
import re

import helm_python as helm
import kubernetes_validate
import pytest
import yaml

import charts
from charts import CHART, CI_VALUES, MONITORING, find, notes, objects, pod_spec, pods, read_values, render

SECURE = {"tls": {"existingSecret": "distro-tls"}, "auth": {"existingSecret": "distro-auth"}}
BUCKET = {"log": {"url": "s3://runs/demo", "existingSecret": "s"}}
RUN = {"config": {"name": "x"}, "initModel": {"config": {"vocab_size": 256}, "seed": 1}}
by_name = {"ids": lambda p: p.name.removesuffix("-values.yaml")}


@pytest.mark.parametrize("values, message", [
    ({"bogus": 1}, "additional properties 'bogus' not allowed"),
    ({"tls": {"existingsecret": "x"}}, "/tls.*additional properties 'existingsecret' not allowed"),
    ({"replicaCount": 3}, "/replicaCount.*must be one of 1, 2"),
    ({"log": {"url": "gs://runs"}}, "/log/url.*does not match pattern"),
    ({"insecure": "yes"}, "/insecure.*got string, want boolean"),
    ({"logLevel": "verbose"}, "/logLevel.*must be one of 'debug', 'info', 'warning', 'error'"),
    ({"persistence": {"size": "10GBx"}}, "/persistence/size.*does not match pattern"),
    ({"persistence": {"accessModes": ["ReadOnlyMany"]}}, "/persistence/accessModes/0.*must be one of"),
    ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy.*must be one of"),
    ({"image": {"digest": "sha256:12"}}, "/image/digest.*does not match pattern"),
    ({"image": {"registry": "https://registry.example"}}, "/image/registry.*does not match pattern"),
    ({"drainGraceSeconds": -1}, "/drainGraceSeconds.*minimum: got -1, want 0"),
    ({"extraArgs": ["log_level=debug"]}, "/extraArgs/0.*does not match pattern"),
    ({"service": {"publicAddress": "https://a.example"}}, "/service/publicAddress.*does not match pattern"),
])
def test_schema_refuses(values, message):
    with pytest.raises(helm.HelmValuesError, match=message):
        render({**charts.INSECURE, **values})


@pytest.mark.parametrize("values, message", [
    ({}, "TLS is required: set tls.existingSecret .* or tls.certManager.enabled.*insecure: true"),
    ({"tls": SECURE["tls"]}, "auth.existingSecret is required with TLS"),
    ({**SECURE, "insecure": True}, "insecure: true contradicts tls and auth"),
    ({**SECURE, "tls": {"existingSecret": "x", "certManager": {"enabled": True}}}, "contradict each other"),
    ({**SECURE, "tls": {"certManager": {"enabled": True}}}, "issuerRef.name is required"),
    ({"insecure": True, "run": {"config": RUN["config"]}}, "run.initModel.config is required with run.config"),
    ({"insecure": True, "run": {"initModel": RUN["initModel"]}}, "run.config is required with run.initModel.config"),
    ({"insecure": True, "prometheusRule": {"enabled": True}}, "prometheusRule.enabled needs serviceMonitor.enabled"),
    ({**SECURE, "tls": {"certManager": {"enabled": True, "issuerRef": {"name": "x"}, "includeInternalNames": False}}},
     "tls.certManager.dnsNames or gateway.hostname is required with includeInternalNames: false"),
    ({**charts.INSECURE, "replicaCount": 2}, "replicaCount: 2 needs log.url"),
    ({**charts.INSECURE, "log": {"url": "s3://runs"}}, "log.existingSecret is required with log.url"),
    ({**charts.INSECURE, **BUCKET, "replicaCount": 2, "podDisruptionBudget": {"enabled": True}}, "contradicts replicaCount: 2"),
    ({"insecure": True, "joinTest": {"enabled": True}}, "joinTest.volume and joinTest.path are required"),
    ({**SECURE, "joinTest": {"enabled": True, "volume": {"emptyDir": {}}, "path": "p"}}, "that of the worker demo-distro-join"),
    ({"insecure": True, "gateway": {"enabled": True}}, "gateway.enabled needs TLS"),
    ({**SECURE, "gateway": {"enabled": True}}, "gateway.hostname and gateway.parentRefs are required"),
    ({"insecure": True, "workers": {"enabled": True}}, "workers.data.existingClaim and workers.data.path are required"),
    ({**SECURE, "workers": {"enabled": True, "data": {"existingClaim": "c", "path": "p"}}}, "workers.tokensSecret is required"),
])
def test_contradictions_are_refused_with_the_remedy(values, message):
    with pytest.raises(helm.HelmRenderError, match=message):
        render(values)


def test_requires_registry():
    with pytest.raises(helm.HelmRenderError, match="(?s)image.registry is required.*docker build.*docker push.*--set image.registry="):
        render({**charts.INSECURE, "image": {"registry": ""}})


def images(values):
    return {c["image"] for o in pods(objects(render(values))) for c in pod_spec(o)["containers"] + pod_spec(o).get("initContainers", [])}


def test_images_are_those_of_the_registry():
    assert images({**charts.INSECURE, "image": {"registry": "registry.example:5000/team"}}) == {
        "registry.example:5000/team/distro/aggregator:0.1.0", "registry.example:5000/team/distro/tools:0.1.0"}


def test_digest_replaces_tag():
    digest = "sha256:" + 64 * "a"
    found = images({**charts.INSECURE, "image": {"tag": "1", "digest": digest}, "toolsImage": {"tag": "2"}})
    assert found == {f"registry.example/distro/aggregator@{digest}", "registry.example/distro/tools:2"}


def test_workers_are_of_the_image_that_was_run():
    values = {**charts.INSECURE, "workers": {"enabled": True, "data": {"existingClaim": "c", "path": "p"}}}
    container = pod_spec(find(render(values), "StatefulSet", "-worker"))["containers"][0]
    assert container["image"] == "registry.example/distro/worker-cpu:0.1.0"
    assert "limits" not in container["resources"] and "--device=cuda" not in container["args"]


def test_public_certificate_has_public_names_only():
    listed = objects(render(read_values(CHART / "ci/public-issuer-values.yaml")))
    assert find(listed, "Certificate")["spec"]["dnsNames"] == ["aggregator.example"]
    for workload in (find(listed, "StatefulSet", "-archiver"), find(listed, "Pod", "-check")):
        args = pod_spec(workload)["containers"][0]["args"]
        assert "--server_name=aggregator.example" in args and not [a for a in args if a.startswith("--ca=")]
    inside = find(render(read_values(CHART / "ci/cert-manager-values.yaml")), "Certificate")["spec"]["dnsNames"]
    assert inside == ["demo-distro.prod.svc", "demo-distro-headless.prod.svc", "aggregator.example"]


def test_pods_get_what_the_values_add():
    listed = objects(render(read_values(CHART / "ci/extras-values.yaml")))
    for suffix, variable, mount in (("", "TZ", "/scratch"), ("-archiver", "RCLONE_CONFIG", "/etc/rclone"), ("-worker", "POD_NAME", "/dev/shm")):
        spec = pod_spec(find(listed, "StatefulSet", suffix))
        assert variable in [e["name"] for e in spec["containers"][0]["env"]], suffix
        assert mount in [m["mountPath"] for m in spec["containers"][0]["volumeMounts"]], suffix
        assert spec["topologySpreadConstraints"], suffix


def egress(listed, suffix):
    """(peer, port) of each rule."""
    rules = find(listed, "NetworkPolicy", suffix)["spec"]["egress"]
    return [(json.dumps(rule.get("to")), port["port"]) for rule in rules for port in rule.get("ports", [{"port": None}])]


def test_archiver_and_workers_reach_names_the_aggregator_and_what_is_added():
    listed = objects(render(read_values(CHART / "ci/extras-values.yaml")))
    for suffix, added in (("-archiver", ('[{"ipBlock": {"cidr": "198.51.100.0/24"}}]', 443)), ("-worker", (None, None))):
        found = egress(listed, suffix)
        assert [port for _, port in found[:3]] == [53, 53, "grpc"]
        assert '"app.kubernetes.io/component": "aggregator"' in found[2][0]
        assert len(found) == 4 and (added[1] is None or found[3] == added)
        policy = find(listed, "NetworkPolicy", suffix)["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"] and [p["port"] for p in policy["ingress"][0]["ports"]] == ["http"]
    assert find(listed, "NetworkPolicy")["spec"]["egress"] == []


def test_bucket_has_two_pods_of_which_one_waits():
    listed = objects(render(read_values(CHART / "ci/bucket-values.yaml")))
    workload = find(listed, "StatefulSet")
    assert workload["spec"]["updateStrategy"] == {"type": "OnDelete"}
    container = pod_spec(workload)["containers"][0]
    assert "--log=s3://runs/demo" in container["args"] and "--standby" in container["args"]
    assert container["envFrom"] == [{"secretRef": {"name": "distro-bucket"}}]
    assert {"name": "AWS_ENDPOINT_URL_S3", "value": "https://store.example"} in container["env"]
    assert find(listed, "NetworkPolicy")["spec"]["egress"] == [{}]
    (apart,) = pod_spec(workload)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"] == workload["spec"]["selector"]["matchLabels"]
    assert apart["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    own = {"podAffinity": {}}
    assert pod_spec(find(render({**charts.INSECURE, **BUCKET, "replicaCount": 2, "affinity": own}), "StatefulSet"))["affinity"] == own
    for endpoint in find(listed, "ServiceMonitor")["spec"]["endpoints"]:
        assert endpoint["relabelings"][0]["action"] == "keep"


def test_one_pod_on_a_bucket_does_not_wait():
    container = pod_spec(find(render({**charts.INSECURE, **BUCKET}), "StatefulSet"))["containers"][0]
    assert "--log=s3://runs/demo" in container["args"] and "--standby" not in container["args"]
    assert "env" not in container
    assert "affinity" not in pod_spec(find(render({**charts.INSECURE, **BUCKET}), "StatefulSet"))


def test_mirror_is_between_the_aggregator_and_its_clients():
    listed = objects(render(read_values(CHART / "ci/mirror-values.yaml"), name="demo", namespace="distro"))
    of = {(o["kind"], o["metadata"]["name"]): o for o in listed}
    vcl = of["ConfigMap", "demo-distro-mirror"]["data"]["objects.vcl"]
    assert '.host = "demo-distro-objects.distro.svc";' in vcl and '.port = "7704";' in vcl
    args = pod_spec(of["StatefulSet", "demo-distro"])["containers"][0]["args"]
    assert "--objects=[::]:7704" in args
    assert "--mirrors=https://mirror.example,http://192.0.2.7:8080,http://demo-distro-mirror.distro.svc:80" in args
    (_, rule) = of["NetworkPolicy", "demo-distro-mirror"]["spec"]["egress"]
    assert rule["ports"] == [{"port": "objects", "protocol": "TCP"}]
    reach = [r for r in of["NetworkPolicy", "demo-distro"]["spec"]["ingress"] if {"port": "objects", "protocol": "TCP"} in r["ports"]]
    assert reach[0]["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "mirror"
    assert any({"port": "http", "protocol": "TCP"} in r["ports"] for r in of["NetworkPolicy", "demo-distro-archiver"]["spec"]["egress"])


def test_mirror_is_told_by_its_service_without_urls():
    values = read_values(CHART / "ci/mirror-values.yaml")
    values["mirror"] |= {"urls": [], "service": {"port": 8000}}
    listed = objects(render(values, name="demo", namespace="distro"))
    args = pod_spec(next(o for o in listed if o["kind"] == "StatefulSet" and o["metadata"]["name"] == "demo-distro"))["containers"][0]["args"]
    assert "--mirrors=http://demo-distro-mirror.distro.svc:8000" in args


def test_join_test_uses_its_own_credential():
    pod = pod_spec(find(render(read_values(CHART / "ci/extras-values.yaml")), "Pod", "-join"))
    args = pod["containers"][0]["args"]
    assert "--name=demo-distro-join" in args and "--token_file=/etc/distro/token/token" in args
    assert [v["secret"]["secretName"] for v in pod["volumes"] if v["name"] == "token"] == ["distro-join-token"]


def examples():
    return {p.name: yaml.safe_load(p.read_text()) for p in (CHART / "examples").glob("*.yaml")}


def test_examples_are_about_the_objects_of_a_release():
    listed = objects(render(read_values(CHART / "ci/gateway-values.yaml"), namespace="distro"))
    claim = find(listed, "StatefulSet")["spec"]["volumeClaimTemplates"][0]
    name = f"{claim['metadata']['name']}-{find(listed, 'StatefulSet')['metadata']['name']}-0"
    snapshot, restored = examples()["volume-snapshot.yaml"], examples()["restore-volume.yaml"]
    assert snapshot["spec"]["source"] == {"persistentVolumeClaimName": name}
    assert restored["metadata"]["name"] == name and restored["spec"]["dataSource"]["name"] == snapshot["metadata"]["name"]
    assert restored["metadata"]["labels"].items() >= find(listed, "StatefulSet")["spec"]["selector"]["matchLabels"].items()
    assert {k: restored["spec"][k] for k in ("accessModes", "resources")} == claim["spec"]
    (listener,) = examples()["gateway.yaml"]["spec"]["listeners"]
    text = (CHART / "examples/gateway.yaml").read_text()
    assert f"sectionName: {listener['name']}" in text.split("apiVersion")[0]


def test_examples_have_the_fields_of_their_kinds():
    """A claim by its schema; of a VolumeSnapshot and a Gateway no package here has one, so that their fields are compared with a list."""
    kubernetes_validate.validate(examples()["restore-volume.yaml"], "1.37", strict=True)
    snapshot, gateway = examples()["volume-snapshot.yaml"], examples()["gateway.yaml"]
    assert (snapshot["apiVersion"], snapshot["kind"]) == ("snapshot.storage.k8s.io/v1", "VolumeSnapshot")
    assert set(snapshot["spec"]) == {"volumeSnapshotClassName", "source"}
    assert set(gateway["spec"]) == {"gatewayClassName", "listeners"}
    for listener in gateway["spec"]["listeners"]:
        assert set(listener) == {"name", "protocol", "port", "tls", "allowedRoutes"} and listener["tls"] == {"mode": "Passthrough"}
        assert set(listener["allowedRoutes"]) == {"namespaces", "kinds"}


def test_readme_says_what_losing_a_node_does():
    text = (CHART / "README.md").read_text()
    for words in ("RTO", "RPO", "out-of-service=nodeshutdown:NoExecute", "kubectl delete node", "--force"):
        assert words in text, words


def restricted(spec):
    """What the restricted Pod Security Standard, and this project, ask of a pod; the complaints."""
    wrong = [k for k in ("hostNetwork", "hostPID", "hostIPC") if spec.get(k)]
    pod = spec.get("securityContext", {})
    wrong += ["runAsNonRoot"] * (pod.get("runAsNonRoot") is not True) + ["runAsUser"] * (pod.get("runAsUser", 0) == 0)
    wrong += ["seccomp"] * (pod.get("seccompProfile") != {"type": "RuntimeDefault"})
    wrong += ["service account token"] * (spec.get("automountServiceAccountToken") is not False)
    kinds = {"configMap", "secret", "emptyDir", "persistentVolumeClaim", "projected"}
    wrong += [f"volume {v['name']}" for v in spec.get("volumes", []) if not (set(v) - {"name"}) <= kinds]
    for container in spec["containers"] + spec.get("initContainers", []):
        context = container.get("securityContext", {})
        wrong += ["privilege escalation"] * (context.get("allowPrivilegeEscalation") is not False)
        wrong += ["privileged"] * bool(context.get("privileged"))
        wrong += ["root is writable"] * (context.get("readOnlyRootFilesystem") is not True)
        wrong += ["capabilities"] * (context.get("capabilities") != {"drop": ["ALL"]})
        wrong += ["host port"] * any("hostPort" in p for p in container.get("ports", []))
        wrong += ["latest"] * (":" not in container["image"] or container["image"].endswith(":latest"))
    return wrong


@pytest.mark.parametrize("values", CI_VALUES, **by_name)
def test_pods_are_restricted(values):
    listed = pods(objects(render(read_values(values))))
    assert [(o["metadata"]["name"], restricted(pod_spec(o))) for o in listed] == [(o["metadata"]["name"], []) for o in listed]


def test_sees_unrestricted_pod():
    weak = {**charts.INSECURE, "securityContext": {"readOnlyRootFilesystem": False}, "podSecurityContext": {"runAsUser": 0}}
    assert set(restricted(pod_spec(find(render(weak), "StatefulSet")))) == {"root is writable", "runAsUser"}


def test_pod_is_killed_after_drain():
    spec = pod_spec(find(render({**charts.INSECURE, "drainGraceSeconds": 300}), "StatefulSet"))
    assert "--drain_grace=300s" in spec["containers"][0]["args"]
    assert spec["terminationGracePeriodSeconds"] == 300 + 60


def test_service_for_workers_offers_grpc_only():
    assert [p["name"] for p in find(render(charts.INSECURE), "Service")["spec"]["ports"]] == ["grpc"]


def test_targets_have_the_labels_of_their_release():
    monitors = [o for o in objects(render(read_values(CHART / "ci/monitoring-values.yaml"))) if o["kind"] == "ServiceMonitor"]
    labels = [{"path": e["path"], **{r["targetLabel"]: r["replacement"] for r in e["relabelings"]}} for o in monitors for e in o["spec"]["endpoints"]]
    assert labels == [{"path": "/metrics", "job": "distro-aggregator", "instance": "demo-distro", "run": "demo"},
                      {"path": "/metrics/workers", "job": "distro-workers", "instance": "demo-distro", "run": "demo"},
                      {"path": "/metrics", "job": "distro-archiver", "instance": "demo-distro-archiver", "run": "demo"}]
    assert all(o["metadata"]["labels"]["release"] == "kube-prometheus-stack" for o in monitors)


@pytest.mark.parametrize("kube, api, retention", [("v1.20.2", "policy/v1beta1", False), ("v1.37.0", "policy/v1", True)])
def test_newer_features_wait_for_a_server_that_has_them(kube, api, retention):
    listed = objects(render(read_values(CHART / "ci/hardened-values.yaml"), kube_version=kube))
    assert find(listed, "PodDisruptionBudget")["apiVersion"] == api
    assert ("persistentVolumeClaimRetentionPolicy" in find(listed, "StatefulSet")["spec"]) == retention


def test_notes_warn():
    said = notes(render({**charts.INSECURE, "archiver": {"enabled": False}, "persistence": {"enabled": False}}))
    assert [w for w in ("insecure is set", "no archiver", "persistence is off") if w not in said] == []
    assert "WARNING" not in notes(render(SECURE))


def test_notes_do_not_create_a_run_that_the_chart_creates():
    assert "distroctl run create" in notes(render(SECURE))
    assert "distroctl run create" not in notes(render({**SECURE, "run": RUN}))


def leaves(value, path=""):
    if isinstance(value, dict) and value:
        return [x for k, v in value.items() for x in leaves(v, f"{path}.{k}" if path else k)]
    return [(path, json.dumps(value))]


def known_paths(node, path=""):
    """Paths of the values that a schema names."""
    if node.get("additionalProperties") is False:
        return [x for k, v in node["properties"].items() for x in known_paths(v, f"{path}.{k}" if path else k)]
    return [path]


@pytest.mark.parametrize("chart", [CHART, MONITORING], ids=lambda p: p.name)
def test_readme_has_a_row_for_each_value(chart):
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]*)` \| [^|]+ \|$", (chart / "README.md").read_text(), re.M)
    assert rows == leaves(yaml.safe_load((chart / "values.yaml").read_text()))


@pytest.mark.parametrize("chart", [CHART, MONITORING], ids=lambda p: p.name)
def test_schema_has_every_value(chart):
    schema = json.loads((chart / "values.schema.json").read_text())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    optional = {f"{p}.{f}" for p in ("startupProbe", "readinessProbe", "livenessProbe")
                for f in ("initialDelaySeconds", "successThreshold")} | {"global", "resources.limits", "archiver.resources.limits", "mirror.resources.limits"}
    optional |= {f"{p}.resources.{k}" for p in ("workers", "joinTest") for k in ("limits", "requests")}
    named = {path for path, _ in leaves(values)}
    for path in set(known_paths(schema)) - optional:
        assert any(n == path or n.startswith(path + ".") for n in named), path
