#!/usr/bin/env python3
"""Puts libtorch into the user's cache folder and links it into a checkout.

libtorch comes out of the Python wheel of PyTorch, of which only the headers and the libraries that
a CPU needs are kept, with the two CUDA libraries that `libtorch_cpu.so` asks for at start. Standard
library only. The result appears under its final name in one rename, so that what is there is whole;
a lock keeps two runs apart; the wheels are deleted once unpacked.
"""

import argparse
import contextlib
import fcntl
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib

VERSION = "2.11.0"
RECIPE = f"libtorch {VERSION} recipe 1\n"  # another text makes every user's copy anew
REQUIREMENTS = [f"torch=={VERSION}", "nvidia-cuda-runtime==13.0.*", "nvidia-cuda-cupti==13.0.*"]
# Found by `ldd libtorch_cpu.so`; by their file names in the wheels.
LIBRARIES = ["libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13"]
NEEDED_BYTES = 2_500_000_000  # wheels and unpacked files, for the time of the set-up


class SetupError(Exception):
    """Something that the user must mend; its text says what and how."""


def say(text):
    print(f"setup: {text}", flush=True)


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):
        raise SetupError(f"XDG_CACHE_HOME is `{base}`, it must be an absolute path")
    return pathlib.Path(base) / "sojourn"


@contextlib.contextmanager
def locked(path):
    with open(path, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_whole(folder):
    stamp = folder / "stamp"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == RECIPE


def download(cache):
    """The wheels, by pip in an environment of its own: the system's Python stays as it is."""
    wheels = cache / "wheels"
    wheels.mkdir(exist_ok=True)
    environment = cache / "venv"
    python = environment / "bin" / "python"
    if not (environment / "whole").exists():
        say("making a Python environment for pip")
        shutil.rmtree(environment, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(environment)])
        (environment / "whole").touch()
    say(f"downloading libtorch {VERSION} (530 MB)")
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-cache-dir"]
    # A wheel that an interrupted run has left whole is not fetched again.
    run([str(python), "-m", "pip", "download", *options, "--dest", str(wheels), *REQUIREMENTS])
    return [newest(wheels, name) for name in ("torch", "nvidia_cuda_runtime", "nvidia_cuda_cupti")]


def newest(folder, name):
    found = sorted(folder.glob(f"{name}-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if not found:
        raise SetupError(f"pip left no wheel of `{name}` in {folder}")
    return found[-1]


def run(command):
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"`{' '.join(command)}` failed: {error}") from error


def wanted(name):
    """Where a wheel's file goes in the libtorch folder, or None."""
    if name.startswith("torch/include/"):
        return name.removeprefix("torch/")
    base = name.rsplit("/", 1)[-1]
    return f"lib/{base}" if base in LIBRARIES and "/lib/" in name else None


def unpack(wheels, folder):
    members = []
    archives = [zipfile.ZipFile(wheel) for wheel in wheels]
    for archive in archives:
        for info in archive.infolist():
            target = None if info.is_dir() else wanted(info.filename)
            if target is not None and ".." not in pathlib.PurePosixPath(target).parts:
                members.append((archive, info, folder / target))
    total = sum(info.file_size for _, info, _ in members)
    done, shown = 0, 0
    for archive, info, target in members:
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(info) as source, open(target, "wb") as sink:
            while chunk := source.read(1 << 22):  # checks the member's CRC at its end
                sink.write(chunk)
                done += len(chunk)
                if done * 10 // total > shown:
                    shown = done * 10 // total
                    say(f"unpacking {shown * 10} %")
    for archive in archives:
        archive.close()
    absent = [name for name in LIBRARIES if not (folder / "lib" / name).is_file()]
    if absent:
        raise SetupError(f"the wheels lack {', '.join(absent)}")


def finish(folder):
    """What the wheels don't have: the library that torch-sys links, and its version."""
    (folder / "lib" / "libtorch.so").write_text("INPUT(libtorch_cpu.so)\n", encoding="utf-8")
    (folder / "build-version").write_text(f"{VERSION}\n", encoding="utf-8")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "lib")}
    command = ["ldd", str(folder / "lib" / "libtorch_cpu.so")]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    unmet = [line.strip() for line in listed.stdout.splitlines() if "not found" in line]
    if listed.returncode != 0 or unmet:
        raise SetupError(f"libtorch can't be loaded here: {unmet or listed.stderr.strip()}")
    (folder / "stamp").write_text(RECIPE, encoding="utf-8")
    os.sync()  # the stamp must not outlive a power cut that the libraries don't


def install(cache):
    folder = cache / f"libtorch-{VERSION}"
    if is_whole(folder):
        return folder
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        place = f"{platform.system()} {platform.machine()}"
        raise SetupError(f"the trainer is built for Linux x86_64 only, this is {place}")
    free = shutil.disk_usage(cache).free
    if free < NEEDED_BYTES:
        needed = f"{NEEDED_BYTES / 1e9:.1f} GB are needed for the set-up, {free / 1e9:.1f} are free"
        raise SetupError(f"not enough space in {cache}: {needed}; set XDG_CACHE_HOME to use another disk")
    for leftover in cache.glob("libtorch-*.partial*"):
        shutil.rmtree(leftover, ignore_errors=True)
    wheels = download(cache)
    partial = pathlib.Path(tempfile.mkdtemp(prefix=f"libtorch-{VERSION}.partial", dir=cache))
    partial.chmod(0o755)
    try:
        unpack(wheels, partial)
    except (zipfile.BadZipFile, zlib.error) as error:
        shutil.rmtree(cache / "wheels", ignore_errors=True)
        raise SetupError(f"a wheel is damaged ({error}); run this again to fetch it anew") from error
    finish(partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    shutil.rmtree(cache / "wheels", ignore_errors=True)
    say(f"libtorch {VERSION} is in {folder}")
    return folder


def link(checkout, name, folder):
    """`.cache/NAME` in the checkout, where builds and tests look; False if it was there."""
    place = checkout / ".cache"
    place.mkdir(exist_ok=True)
    target = place / name
    if target.is_symlink() and os.readlink(target) == str(folder):
        return False
    if target.exists() and not target.is_symlink():
        raise SetupError(f"{target} is in the way: remove it")
    fresh = place / f"{name}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder)
    fresh.replace(target)
    return True


def prepare(description, name, install):
    """A script's whole run: `install(cache)` makes a folder, once for all checkouts, and the checkout gets
    a link `.cache/NAME` to it; True where that is new. Ends the process where it can't be done."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--checkout", type=pathlib.Path, required=True, help="the checkout to link")
    arguments = parser.parse_args()
    try:
        cache = cache_folder()
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / "setup.lock"):
            folder = install(cache)
        return link(arguments.checkout.resolve(), name, folder)
    except (SetupError, OSError, zipfile.BadZipFile) as error:
        print(f"setup: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("setup: interrupted; run it again to go on", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    # `.cargo/config.toml` names this link.
    if prepare("puts libtorch where `cargo build` finds it", "libtorch", install):
        say("this checkout is ready: `cargo build`")
