"""What the checks of deploy/ share: their table, how one fails, programs, and what the sources say of flags and variables."""

import functools
import os
import pathlib
import re
import signal
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
TOOLS = ROOT / ".cache" / "deploy" / "bin"
# Debian's packages, unpacked.
DEBIAN = ROOT / ".cache" / "deploy" / "debian"
CHECKS = {}
# What doesn't end by then hangs.
MOST_SECONDS = 240


class Failed(Exception):
    """A check found something wrong; the text says what."""


class Skipped(Exception):
    """A check can't be made on this machine; the text says why."""


def check(function):
    """Puts a function into the table of checks."""
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


def want(holds, text):
    """Fails with this text where something doesn't hold."""
    if not holds:
        raise Failed(text)


def run(*command, fails=False, **options):
    """Runs a program to its end, and returns all that it says. It must succeed, or, with `fails`, must not."""
    options = {"cwd": ROOT, "text": True, "stdin": subprocess.DEVNULL, "start_new_session": True, **options}
    words = [str(word) for word in command]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    shown = " ".join(words)
    try:
        said = process.communicate(timeout=MOST_SECONDS)[0]
    except subprocess.TimeoutExpired:
        # The program, and all that it has started.
        os.killpg(process.pid, signal.SIGKILL)
        raise Failed(f"doesn't end: {shown}\n{process.communicate()[0]}") from None
    if fails:
        want(process.returncode != 0, f"succeeds, and shouldn't: {shown}\n{said}")
    else:
        want(process.returncode == 0, f"fails with {process.returncode}: {shown}\n{said}")
    return said


def check_proxy(text):
    """haproxy's own check of a configuration. Its user and its certificate aren't on this machine: there are stand-ins."""
    libraries = DEBIAN / "usr/lib/x86_64-linux-gnu"
    with tempfile.TemporaryDirectory() as folder:
        pem = pathlib.Path(folder) / "server.pem"
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=check"]
        run(*make, "-keyout", f"{pem}.key", "-out", pem)
        text = re.sub(r"^ +(user|group) .*\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"(ssl crt )\S+", rf"\1{pem}", text)
        path = pathlib.Path(folder) / "haproxy.cfg"
        path.write_text(text, encoding="utf-8")
        for insecure in ("true", "false"):
            env = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "PROXY_INSECURE": insecure}
            said = run(DEBIAN / "usr/sbin/haproxy", "-c", "-f", path, env=env)
            want("[WARNING]" not in said and "[ALERT]" not in said, said)


def read(path):
    """A file's text."""
    return (ROOT / path).read_text(encoding="utf-8")


def tracked(*patterns):
    """The files of the checkout that git knows or would take, of these patterns."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns)
    paths = [ROOT / name for name in listed.split("\0") if name]
    return sorted(path for path in paths if path.is_file())


@functools.cache
def version():
    """The version of the workspace."""
    return re.search(r'^version = "(.+)"$', read("Cargo.toml"), re.MULTILINE).group(1)


@functools.cache
def variables():
    """The variables that the programs read, by their sources."""
    sources = "".join(path.read_text(encoding="utf-8") for path in tracked("*.rs"))
    return set(re.findall(r'"(SOJOURN_[A-Z_]+)"', sources))


@functools.cache
def flags(command):
    """The flags of a command, by the page that a test compares with its help."""
    page = read("docs/commands.md")
    section = re.search(rf"^## `sojourn {command}`\n(.*?)^##", page, re.MULTILINE | re.DOTALL)
    want(section, f"docs/commands.md has no section of `sojourn {command}`")
    return set(re.findall(r"`(--[a-z-]+)", section.group(1))) | {"--server", "--token", "--token-file", "--ca"}


def check_words(words, place):
    """That a command line names flags of its command alone."""
    words = [str(word) for word in words]
    names = [word.rsplit("/", 1)[-1] for word in words[:1]]
    if names != ["sojourn"] or len(words) < 2 or words[1] not in ("serve", "client", "assimilate"):
        return
    # `client ctl` has flags of its own.
    if words[1:3] == ["client", "ctl"]:
        return
    unknown = [word for word in words[2:] if word.startswith("--") and word.split("=")[0] not in flags(words[1])]
    want(not unknown, f"{place}: `sojourn {words[1]}` has no {', '.join(unknown)}")


def check_variables(names, place):
    """That programs read all of these variables that are ours."""
    unknown = sorted(name for name in names if name.startswith("SOJOURN_") and name not in variables())
    want(not unknown, f"{place}: nothing reads {', '.join(unknown)}")
