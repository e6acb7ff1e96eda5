"""Rule files for Prometheus."""
import re

import yaml

HEADER = "# Written by scripts/generate_dashboards from scripts/dashboards/{source}; change that one.\n"


def dump(source, name, rules):
    text = yaml.safe_dump({"groups": [{"name": name, "rules": rules}]}, sort_keys=False, width=1000, allow_unicode=True)
    return HEADER.format(source=source) + text


def recording(source):
    return dump("rules.yaml", "distro.recording", [{"record": rule["record"], "expr": rule["expr"]}
                                                   for rule in source.recording])


def alert(rule, runbooks):
    """`runbooks` is the link to a runbook, without the alert's name at its end."""
    return {"alert": rule["alert"], "expr": rule["expr"], "for": rule["for"], "labels": {"severity": rule["severity"]},
            "annotations": {"summary": rule["summary"], "description": rule["description"], "runbook_url": runbooks + rule["alert"]}}


def alerts(source, runbooks):
    text = dump("alerts.yaml", "distro.alerts", [alert(rule, runbooks) for rule in source.alerts])
    # Quoted even if it begins with a ${name}: the chart's value may need quotes.
    return re.sub(r"^( +runbook_url: )([^'].*)$", r"\1'\2'", text, flags=re.MULTILINE)
