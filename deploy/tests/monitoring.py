"""Monitoring: Prometheus' own checks of the example configuration and the alert rules, and that rules and dashboard ask for metrics
that there are, by the page that a test compares with what a server prints."""

import json
import pathlib
import re
import tempfile

import yaml
from checks import DEBIAN, DEPLOY, check, read, run, want

FOLDER = DEPLOY / "monitoring"
PROMTOOL = DEBIAN / "usr" / "bin" / "promtool"
# A panel's interval, as Grafana puts it in.
INTERVAL = "$__rate_interval"


def metrics():
    """The names of the samples that a server has, with their labels."""
    found = {}
    for name, kind, labels in re.findall(r"^\| `(sojourn_\w+)` \| (\w+) \| (.*?) \|", read("docs/operate/metrics.md"), re.MULTILINE):
        labels = set(re.findall(r"`(\w+)`", labels)) | {"instance"}
        if kind == "histogram":
            found |= {f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels, f"{name}_count": labels}
        else:
            found[name] = labels
    want(len(found) > 50, f"docs/operate/metrics.md names {sorted(found)}")
    return found


def check_names(expression, place):
    """That an expression asks for metrics and labels that there are. It returns the metrics."""
    known = metrics()
    asked = re.findall(r"(sojourn_\w+)(?:\{([^}]*)\})?", expression)
    for name, selectors in asked:
        want(name in known, f"{place}: there is no metric {name}")
        labels = set(re.findall(r"(\w+)\s*[=!]~?\"", selectors))
        want(labels <= known[name], f"{place}: {name} has no label {', '.join(sorted(labels - known[name]))}")
    grouped = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")}
    of_all = set().union(*(known[name] for name, _ in asked))
    want(grouped <= of_all, f"{place}: no metric there has the label {', '.join(sorted(grouped - of_all))}")
    return {name for name, _ in asked}


@check
def alert_rules():
    """promtool over the rules and over their tests; a test of every rule; metrics that there are."""
    run(PROMTOOL, "check", "rules", FOLDER / "alerts.yml")
    run(PROMTOOL, "test", "rules", "alerts-test.yml", cwd=FOLDER)
    rules = [rule for group in yaml.safe_load(read("deploy/monitoring/alerts.yml"))["groups"] for rule in group["rules"]]
    tests = yaml.safe_load(read("deploy/monitoring/alerts-test.yml"))["tests"]
    fires = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    quiet = {case["alertname"] for test in tests for case in test["alert_rule_test"] if not case.get("exp_alerts")}
    always = {"SojournInvariantViolated", "SojournJournalFails", "SojournResultsRejected"}  # their tests have series that don't fire
    page = read("docs/operate/metrics.md")
    for rule in rules:
        name = rule["alert"]
        want(name in fires, f"no test has {name} fire")
        want(name in quiet | always, f"no test has {name} not fire")
        want(f"| `{name}` |" in page, f"docs/operate/metrics.md has no row for {name}")
        check_names(rule["expr"], name)
    want(len(rules) >= 10, f"rules: {rules}")


@check
def prometheus_configuration():
    """promtool over the example, with a token that is there."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "token").write_text("secret", encoding="utf-8")
        (root / "alerts.yml").write_text(read("deploy/monitoring/alerts.yml"), encoding="utf-8")
        text = read("deploy/monitoring/prometheus.yml").replace("/etc/prometheus/sojourn-token", str(root / "token"))
        (root / "prometheus.yml").write_text(text, encoding="utf-8")
        run(PROMTOOL, "check", "config", root / "prometheus.yml")
        # It reads the rules too.
        (root / "alerts.yml").write_text("groups: [{name: a, rules: [{alert: A, expr: sum(}]}]", encoding="utf-8")
        run(PROMTOOL, "check", "config", root / "prometheus.yml", fails=True)


@check
def dashboard():
    """Every query of the dashboard is PromQL over metrics that there are, and panels lie beside each other."""
    panels = json.loads(read("deploy/monitoring/dashboard.json"))["panels"]
    want(len({panel["id"] for panel in panels}) == len(panels), "two panels have one id")
    expressions, taken = [], set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        want(not cells & taken and place["x"] + place["w"] <= 24, f"{panel['title']} lies over another panel")
        taken |= cells
        for target in panel.get("targets", []):
            check_names(target["expr"], panel["title"])
            expressions.append(target["expr"].replace(INTERVAL, "5m").replace("$instance", ".*"))
    want(len(expressions) > 25, f"queries: {expressions}")
    rules = [{"record": f"query:{number}", "expr": expression} for number, expression in enumerate(expressions)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        file.flush()
        run(PROMTOOL, "check", "rules", file.name)
