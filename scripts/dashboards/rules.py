"""Rule files for Prometheus."""
import yaml

HEADER = "# Written by scripts/generate_dashboards from scripts/dashboards/{source}; change that one.\n"


def dump(source, name, rules):
    text = yaml.safe_dump({"groups": [{"name": name, "rules": rules}]}, sort_keys=False, width=1000, allow_unicode=True)
    return HEADER.format(source=source) + text


def recording(source):
    return dump("rules.yaml", "distro.recording", [{"record": rule["record"], "expr": rule["expr"]}
                                                   for rule in source.recording])


def alert(rule, runbooks):
    entry = {"alert": rule["alert"], "expr": rule["expr"]}
    if "for" in rule:
        entry["for"] = rule["for"]
    entry["labels"] = {"severity": rule["severity"]}
    entry["annotations"] = {"summary": rule["summary"], "description": rule["description"],
                            "runbook_url": runbooks.replace("ALERT", rule["alert"])}
    return entry


def alerts(source, runbooks):
    return dump("alerts.yaml", "distro.alerts", [alert(rule, runbooks) for rule in source.alerts])
