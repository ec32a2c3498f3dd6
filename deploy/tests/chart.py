"""The Helm chart: lint, rendering with every set of values, Kubernetes' own schemas strictly, and what must hold of every pod."""

import tempfile

import kubernetes_validate
import yaml
from checks import DEPLOY, ROOT, TOOLS, check, check_proxy, check_variables, check_words, run, version, want
from cloudcoil.models.keda import v1alpha1 as keda

CHART = DEPLOY / "helm" / "sojourn"
# The oldest that the chart allows, and the newest that is known.
OLDEST, NEWEST = "1.27", kubernetes_validate.latest_version()
KEDA = {"ScaledObject": keda.ScaledObject, "TriggerAuthentication": keda.TriggerAuthentication}
# Values that the chart must refuse, and a word of its reason.
REFUSED = {
    "server.replicas=2": "journal",
    "server.replicas=2,journal.kind=redis": "store",
    "assimilators.enabled=true": "store",
    "server.replica=1": "replica",
    "journal.kind=postgres": "kind",
    "images.server.digest=sha256:12": "digest",
    "assimilators.autoscaling.min=9": "over max",
}


def value_sets():
    """The sets of values, by name: none, and all that are there."""
    found = {path.stem.removesuffix("-values"): ["--values", path] for path in sorted(CHART.glob("ci/*-values.yaml"))}
    want(len(found) >= 4, "sets of values are missing")
    return {"default": [], **found}


def rendered(values):
    """What the chart makes of values, as objects."""
    text = run(TOOLS / "helm", "template", "release", CHART, "--namespace", "ns", *values)
    return [item for item in yaml.safe_load_all(text) if item]


def has_all(given, kept, place):
    """That nothing of what was given is missing in what a type has kept of it: a type drops what it doesn't know."""
    if isinstance(given, dict):
        for key, value in given.items():
            want(isinstance(kept, dict) and key in kept, f"{place}.{key}: there is no such field")
            has_all(value, kept[key], f"{place}.{key}")
    elif isinstance(given, list):
        for index, (one, other) in enumerate(zip(given, kept, strict=True)):
            has_all(one, other, f"{place}[{index}]")


def check_schema(item, place):
    """An object against the schema of its kind: strictly, so that an unknown field is an error."""
    if item["apiVersion"] == "keda.sh/v1alpha1":
        kept = KEDA[item["kind"]].model_validate(item).model_dump(by_alias=True, exclude_unset=True, mode="json")
        has_all(item, kept, place)
        return
    for kubernetes in (OLDEST, NEWEST):
        try:
            kubernetes_validate.validate(item, kubernetes, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
            want(False, f"{place}, Kubernetes {kubernetes}: {error}")


def check_pod(pod, place):
    """What must hold of every pod: no rights, a read-only root, probes, limits, and variables and flags that there are."""
    security = pod["securityContext"]
    want(security["runAsNonRoot"] and security["runAsUser"] > 0, f"{place} runs as root")
    want(security["seccompProfile"] == {"type": "RuntimeDefault"}, f"{place} has no seccomp profile")
    want(pod["automountServiceAccountToken"] is False, f"{place} has a token of the cluster")
    want(pod.get("terminationGracePeriodSeconds", 30) >= 30, f"{place} ends too soon")
    for container in pod["containers"]:
        own = container["securityContext"]
        want(own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"], f"{place} may write to its root")
        want(own["capabilities"] == {"drop": ["ALL"]}, f"{place} has capabilities")
        want("memory" in container["resources"]["limits"], f"{place} has no limit of memory")
        want("requests" in container["resources"] or "limits" in container["resources"], f"{place} asks for nothing")
        # An assimilator has no port and no socket: it ends when it can't go on.
        if container["name"] != "assimilator":
            want("livenessProbe" in container, f"{place} has no liveness probe")
        env = container.get("env", [])
        want(len({entry["name"] for entry in env}) == len(env), f"{place} has a variable twice")
        check_variables([entry["name"] for entry in env], place)
        secret = [entry["name"] for entry in env if "value" in entry and "PASSWORD" in entry["name"]]
        want(not secret, f"{place} holds a secret: {secret}")
        check_words(container.get("args", []), place)
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        there = {volume["name"] for volume in pod.get("volumes", [])} | {"data"}
        want(mounted <= there, f"{place} mounts what isn't there: {mounted - there}")


def matches(selector, labels):
    """Whether labels have all of a selector's."""
    return all(labels.get(key) == value for key, value in selector.items())


def check_together(items, name):
    """That selectors find pods, that names are there, and that a policy holds for every pod where there are policies."""
    pods = {}
    for item in items:
        if item["kind"] in ("Deployment", "StatefulSet"):
            template = item["spec"]["template"]
            want(matches(item["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]), f"{name}: selector")
            pods[item["metadata"]["name"]] = template
    labels = [template["metadata"]["labels"] for template in pods.values()]
    for item in items:
        place = f"{name}: {item['kind']} {item['metadata']['name']}"
        want(item["kind"] != "Secret", f"{place}: the chart holds a secret")
        spec = item.get("spec", {})
        if item["kind"] == "Service":
            hit = [template for template in pods.values() if matches(spec["selector"], template["metadata"]["labels"])]
            want(len(hit) == 1, f"{place} selects {len(hit)} workloads")
            ports = {port["name"] for one in hit[0]["spec"]["containers"] for port in one.get("ports", [])}
            want(all(port["targetPort"] in ports for port in spec["ports"]), f"{place} has a port that no pod has")
        if item["kind"] == "PodDisruptionBudget":
            want(any(matches(spec["selector"]["matchLabels"], one) for one in labels), f"{place} selects no pod")
        target = spec.get("scaleTargetRef")
        if target:
            want(target["name"] in pods, f"{place} scales what isn't there")
    policies = [item["spec"]["podSelector"]["matchLabels"] for item in items if item["kind"] == "NetworkPolicy"]
    if policies:
        bare = [pod for pod, one in pods.items() if not any(matches(p, one["metadata"]["labels"]) for p in policies)]
        want(not bare, f"{name}: no network policy for {bare}")


@check
def chart_lint():
    """helm lint, with warnings as errors, of each set of values."""
    for values in value_sets().values():
        run(TOOLS / "helm", "lint", "--strict", CHART, *values)


@check
def chart_objects():
    """Every object of each set of values: its schema, and what must hold of it."""
    kinds = set()
    for name, values in value_sets().items():
        items = rendered(values)
        for item in items:
            kinds.add(item["kind"])
            place = f"{name}: {item['kind']} {item['metadata']['name']}"
            check_schema(item, place)
            if item["kind"] in ("Deployment", "StatefulSet"):
                check_pod(item["spec"]["template"]["spec"], place)
            if item["kind"] == "ConfigMap":
                check_proxy(item["data"]["haproxy.cfg"])
        check_together(items, name)
    wanted = {"HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "ScaledObject", "StatefulSet"}
    want(wanted <= kinds, f"no set of values makes {wanted - kinds}")


@check
def chart_refusals():
    """Values that make no deployment are refused, each for its reason."""
    for values, reason in REFUSED.items():
        said = run(TOOLS / "helm", "template", "release", CHART, "--set", values, fails=True)
        want(reason in said, f"--set {values} is refused for another reason: {said}")


@check
def chart_files():
    """The rendered files as YAML, and the chart's version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    want(chart["appVersion"] == version(), f"Chart.yaml has appVersion {chart['appVersion']}, and not {version()}")
    with tempfile.TemporaryDirectory() as folder:
        for name, values in value_sets().items():
            run(TOOLS / "helm", "template", "release", CHART, *values, "--output-dir", f"{folder}/{name}")
        rules = "{extends: relaxed, rules: {line-length: disable, indentation: {indent-sequences: consistent}, truthy: enable, empty-lines: disable}}"
        run(TOOLS / "yamllint", "--strict", "-d", rules, folder, cwd=ROOT)
