"""The Containerfile and the compose files."""

import contextlib
import http.server
import os
import re
import threading

import yaml
from checks import DEPLOY, ROOT, TOOLS, check, check_proxy, check_variables, check_words, read, run, want

CONTAINERFILE = DEPLOY / "containers" / "Containerfile"
HEALTH = DEPLOY / "containers" / "health"
FINAL = {"server", "client", "client-cuda"}


def stages(text):
    """The stages of a Containerfile: name, base, and instructions as (word, rest)."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    found = {}
    for line in filter(None, (line.strip() for line in joined.splitlines())):
        word, rest = line.split(maxsplit=1)
        if word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
            lines = found.setdefault(name, (base, []))[1]
        elif found:
            lines.append((word, rest))
    return found


@check
def containers_hadolint():
    """hadolint, in which an information is an error too."""
    run(TOOLS / "hadolint", "--failure-threshold", "info", CONTAINERFILE)


@check
def containers_stages():
    """Bases are arguments; images run as nobody, with a health check; what is copied is there; versions are the workspace's."""
    text = CONTAINERFILE.read_text(encoding="utf-8")
    found = stages(text)
    want(set(found) >= FINAL, f"targets are missing: {FINAL - set(found)}")
    for name, (base, lines) in found.items():
        want(base in found or re.fullmatch(r"\$\{[A-Z_]+\}", base), f"{name}: the base {base} is no argument")
        for word, rest in lines:
            if word != "COPY":
                continue
            words = rest.split()
            source = next((one for one in words if one.startswith("--from=")), None)
            if source:
                want(source.removeprefix("--from=") in found, f"{name}: there is no stage {source}")
                continue
            for path in words[:-1]:
                want((ROOT / path).exists(), f"{name}: there is no {path} to copy")
    for name in FINAL:
        inherited, at = [], name
        while at in found:
            inherited = found[at][1] + inherited
            at = found[at][0]
        last = dict(inherited)
        want(re.fullmatch(r"[1-9]\d*:[1-9]\d*", last.get("USER", "")), f"{name} runs as root")
        want("HEALTHCHECK" in last and last["HEALTHCHECK"] != "NONE", f"{name} has no health check")
        want("CMD" in last, f"{name} starts nothing")
        check_variables(re.findall(r"(SOJOURN_[A-Z_]+)=", " ".join(rest for word, rest in inherited if word == "ENV")), name)
        check_words(yaml.safe_load(last["CMD"]), name)
    rust = re.search(r'^rust-version = "(.+)"$', read("Cargo.toml"), re.MULTILINE).group(1)
    want(f"RUST_IMAGE=rust:{rust}." in text, f"the Rust of the image isn't the workspace's {rust}")
    torch = re.search(r'^VERSION = "(.+)"$', read("scripts/libtorch.py"), re.MULTILINE).group(1)
    want(f"ARG TORCH_VERSION={torch}\n" in text, f"the PyTorch of the image isn't the trainer's {torch}")


@contextlib.contextmanager
def answering(status):
    """A server that answers this status; its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802: the library's name
            self.send_response(status if self.path == "/v1/health" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@check
def containers_health():
    """The health check, run: a server that serves, one that stands by, one that is broken, and none."""
    for status, fails in [(200, False), (503, False), (500, True), (404, True)]:
        with answering(status) as port:
            run(HEALTH, port, fails=fails)
    # Nobody listens at the port of a server that has ended.
    run(HEALTH, port, fails=True)
    with answering(500) as port:
        run(HEALTH, port, env={**os.environ, "SOJOURN_TLS_CERT": "server.pem"})


def environment(service):
    """The variables of a service."""
    return service.get("environment") or {}


@check
def compose_schema():
    """Both compose files against the schema of compose files."""
    files = sorted((DEPLOY / "compose").glob("*.yaml"))
    want(len(files) == 2, f"compose files: {files}")
    run(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *files)


@check
def compose_proxy():
    """haproxy's own check of the proxy's configuration, with and without a certificate."""
    check_proxy(read("deploy/compose/haproxy.cfg"))


@check
def compose_embedded():
    """The embedded one starts by one command: it wants no variable, builds its images, and is reached from this machine alone."""
    path = DEPLOY / "compose" / "embedded.yaml"
    text = path.read_text(encoding="utf-8")
    want("${" not in re.sub(r"\$\{[A-Z_]+:-[a-z-]+\}", "", text), "it wants a variable to be set")
    file = yaml.safe_load(text)
    found = stages(CONTAINERFILE.read_text(encoding="utf-8"))
    for name, service in file["services"].items():
        check_variables(environment(service), name)
        check_words(service.get("command", []), name)
        want(service["read_only"] and service["cap_drop"] == ["ALL"], f"{name} has rights")
        if "build" in service:
            build = service["build"]
            context = (path.parent / build["context"]).resolve()
            want(context == ROOT and (context / build["dockerfile"]) == CONTAINERFILE, f"{name} is built from elsewhere")
            want(build["target"] in found, f"{name}: there is no target {build['target']}")
        for port in service.get("ports", []):
            want(port.startswith("127.0.0.1:"), f"{name} is reached from outside, in the clear")
        for volume in service.get("volumes", []):
            want(volume.split(":")[0] in file["volumes"], f"{name}: there is no volume {volume}")
        for other in service.get("depends_on", []):
            want(other in file["services"], f"{name} waits for {other}, which isn't there")
    want("server:/" not in str(file["services"]["client"]["volumes"]), "the client can read the server's tokens")
