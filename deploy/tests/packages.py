"""What is packed for other machines: the archives of `make dist` and the wheels, as far as that needs no compiler."""

import os
import pathlib
import re
import shutil
import tarfile
import tempfile
import tomllib

from checks import DEPLOY, ROOT, TOOLS, check, read, run, version, want

PROGRAMS = ["release/sojourn", "release/sojourn-trainer", "release/sojourn-autoscaler", "daemon/sojourn-daemon"]
EPOCH = 1_700_000_000
LIBRARIES = ["libtorch_cpu.so", "libc10.so", "libgomp.so.1"]


def packed(folder):
    """Runs scripts/dist over stand-ins for what is compiled; the folder of archives."""
    build, torch, out = (pathlib.Path(folder) / name for name in ("build", "torch", "dist"))
    for program in PROGRAMS:
        (build / program).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("/bin/true", build / program)
    (torch / "lib").mkdir(parents=True, exist_ok=True)
    for library in LIBRARIES:
        (torch / "lib" / library).write_text(library, encoding="utf-8")
    run(
        "scripts/dist",
        "--built",
        env={
            **os.environ,
            "CARGO_TARGET_DIR": str(build),
            "LIBTORCH": str(torch),
            "SOJOURN_DIST": str(out),
            "SOURCE_DATE_EPOCH": str(EPOCH),
        },
    )
    return out


@check
def dist_archives():
    """What is in the archives, their checksums, and that they are the same twice."""
    platform = f"{version()}-linux-x86_64"
    with tempfile.TemporaryDirectory() as folder:
        out = packed(folder)
        run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=out)
        sums = (out / "SHA256SUMS").read_text(encoding="utf-8")
        files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()} - {"SHA256SUMS"}
        want({line.split()[1] for line in sums.splitlines()} == files, f"other files than {files}:\n{sums}")
        with tarfile.open(out / f"sojourn-{platform}.tar.gz") as archive:
            small = set(archive.getnames())
        wanted = {f"sojourn/{name}" for name in ("sojourn", "sojourn-daemon", "LICENSE-MIT", "cloud-init/user-data.yaml")}
        wanted |= {f"sojourn/systemd/{path.name}" for path in (DEPLOY / "systemd").iterdir()}
        wanted |= {"sojourn/terraform/autoscaler-policy.json"}
        want(wanted <= small, f"missing: {wanted - small}")
        with tarfile.open(out / f"sojourn-trainer-{platform}.tar.gz") as archive:
            trainer = set(archive.getnames())
            modes = {member.mode & 0o777 for member in archive if member.name.endswith("/sojourn-trainer")}
        want({"sojourn/sojourn-trainer", *(f"sojourn/lib/{name}" for name in LIBRARIES)} <= trainer, trainer)
        want(modes == {0o755}, f"the trainer can't be run: {modes}")
        for path in out.glob("*.tar*"):
            check_same_each_time(path)
        first = sums
    with tempfile.TemporaryDirectory() as folder:
        second = (packed(folder) / "SHA256SUMS").read_text(encoding="utf-8")
    want(first == second, f"the archives differ from run to run:\n{first}\n{second}")


def check_same_each_time(path):
    """That nothing in an archive depends on when, by whom or in which order it was packed."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    names = [member.name.split("/") for member in members]
    want(names == sorted(names), f"{path.name} isn't in order")
    want({(member.mtime, member.uid, member.uname) for member in members} == {(EPOCH, 0, "")}, f"{path.name} tells who packed it")
    if path.suffix == ".gz":
        # RFC 1952: neither a name (a flag) nor a time is in the head.
        head = path.read_bytes()[:8]
        want(head[3] == 0 and head[4:8] == bytes(4), f"{path.name} has a name or a time")


@check
def wheel_metadata():
    """What maturin makes of the wheels' projects: names, the workspace's version, dependencies of the right versions, the package."""
    torch = re.search(r'^VERSION = "(.+)"$', read("scripts/libtorch.py"), re.MULTILINE).group(1)
    extras = tomllib.loads(read("python/pyproject.toml"))["project"]["optional-dependencies"]
    own_models = [f"Requires-Dist: {need} ; extra == '{extra}'" for extra, needs in extras.items() for need in needs]
    wanted = {
        "sojourn": [f"Requires-Dist: sojourn-trainer=={version()} ; extra == 'trainer'", *own_models],
        "sojourn-trainer": [f"Requires-Dist: torch=={torch}"],
    }
    want(f"torch=={torch}" in extras["torch"], f"models are exported with another torch than {torch}: {extras}")
    run("scripts/wheels", "--projects")
    for name, requires in wanted.items():
        project = ROOT / "target/wheel-projects" / name
        settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["maturin"]
        want(settings["bindings"] == "bin", f"{name} isn't a program's wheel")
        want((project / settings["manifest-path"]).resolve().is_file(), f"{name}: there is no {settings['manifest-path']}")
        with tempfile.TemporaryDirectory() as folder:
            command = [TOOLS / "maturin", "pep517", "write-dist-info", "--metadata-directory", folder]
            run(*command, "--interpreter", TOOLS / "python", cwd=project)
            text = next(pathlib.Path(folder).glob("*.dist-info/METADATA")).read_text(encoding="utf-8")
        for line in (f"Name: {name}", f"Version: {version()}", *requires):
            want(line in text.replace('"', "'"), f"{name} lacks `{line}`:\n{text}")
    packed_package, source = ROOT / "target/wheel-projects/sojourn/sojourn", ROOT / "python/sojourn"
    packed_files = {str(path.relative_to(packed_package)) for path in packed_package.rglob("*") if path.is_file()}
    package = {str(path.relative_to(source)) for path in source.rglob("*") if path.suffix in (".py", ".css", ".js")} | {"py.typed"}
    want(packed_files == package, f"the wheel has {packed_files}, the package {package}")
    want({"torch.py", "search/search.py", "server/supervise.py", "notebook/board.js"} <= package, f"the package lacks modules: {package}")
