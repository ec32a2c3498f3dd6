"""The first boot of a server's machine, run: over the archives that scripts/dist packs, with stand-ins for the system's programs."""

import hashlib
import os
import pathlib
import re
import tempfile

from checks import DEPLOY, check, check_variables, run, version, want
from packages import packed

SCRIPT = DEPLOY / "terraform" / "server-boot"
ADDRESSES = {"private": "10.64.0.9", "public": "192.0.2.7", "host": "ip-10-64-0-9.eu-west-1.compute.internal"}
# A curl for files, the machine's metadata and the server's health, which is bad at first.
CURL = """#!/bin/sh
for url; do :; done
while [ "$1" != "$url" ]; do
    if [ "$1" = --output ]; then out=$2; fi
    shift
done
case $url in
    */latest/api/token) echo token ;;
    */local-ipv4) echo PRIVATE ;;
    */local-hostname) echo HOST ;;
    */v1/health) test -e ROOT/healthy || { touch ROOT/healthy; exit 22; } ;;
    https://releases/*) cp "ARCHIVES/${url##*/}" "$out" ;;
    *) exit 6 ;;
esac
"""


def boot(root, archives, digest, fails=False):
    """Runs the script in a folder that stands for the machine."""
    small = f"sojourn-{version()}-linux-x86_64.tar.gz"
    for there in ["etc/sojourn", "etc/systemd/system", "opt", "var", "programs"]:
        (root / there).mkdir(parents=True, exist_ok=True)
    sha256 = {name: hashlib.sha256((archives / name).read_bytes()).hexdigest() for name in (small, "programs.tar")}
    settings = {
        "PUBLIC_ADDRESS": ADDRESSES["public"],
        "PORT": "8642",
        "RELEASE_URL": f"https://releases/{small}",
        "RELEASE_SHA256": digest or sha256[small],
        "PROGRAMS_URL": "https://releases/programs.tar",
        "PROGRAMS_SHA256": sha256["programs.tar"],
    }
    (root / "etc/sojourn/boot.env").write_text("".join(f'{name}="{value}"\n' for name, value in settings.items()))
    curl = CURL.replace("PRIVATE", ADDRESSES["private"]).replace("HOST", ADDRESSES["host"]).replace("ROOT", str(root))
    stand_ins = {"curl": curl.replace("ARCHIVES", str(archives)), "sleep": "#!/bin/sh\n"}
    stand_ins["systemctl"] = f'#!/bin/sh\necho "$@" >>"{root}/told"\n'
    # The program that is packed is a stand-in too: it says how it was called.
    script = re.sub(r"(?<![\w}$/:])/(opt|etc|var)/", rf"{root}/\1/", SCRIPT.read_text(encoding="utf-8"))
    script = script.replace(f"{root}/opt/sojourn/sojourn token", "echo $$ sojourn token")
    stand_ins["boot"] = script
    for name, text in stand_ins.items():
        (root / "programs" / name).write_text(text, encoding="utf-8")
        (root / "programs" / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{root / 'programs'}:{os.environ['PATH']}"}
    return run(root / "programs/boot", env=env, fails=fails)


@check
def server_boot():
    """Archives by digest, a certificate for all addresses, settings that the server reads, a token, units; and a wrong digest."""
    with tempfile.TemporaryDirectory() as folder:
        archives = packed(folder)
        root = pathlib.Path(folder) / "machine"
        said = boot(root, archives, "")
        certificate = run("openssl", "x509", "-in", root / "etc/sojourn/server.pem", "-noout", "-ext", "subjectAltName")
        for address in [*ADDRESSES.values(), "127.0.0.1", "localhost"]:
            want(address in certificate, f"the certificate isn't for {address}: {certificate}")
        pem = (root / "etc/sojourn/server.pem").read_text(encoding="utf-8")
        want(pem in said, "the certificate isn't shown")
        want("PRIVATE KEY" not in said, "the key is shown")
        for secret in ("server.key", "autoscaler-token"):
            want((root / "etc/sojourn" / secret).stat().st_mode & 0o077 == 0, f"others can read {secret}")
        settings = (root / "etc/sojourn/server.env").read_text(encoding="utf-8")
        check_variables(re.findall(r"^([A-Z_]+)=", settings, re.MULTILINE), "the server's settings")
        want(f"https://{ADDRESSES['private']}:8642" in settings, settings)
        token = (root / "etc/sojourn/autoscaler-token").read_text(encoding="utf-8")
        want("--name autoscaler --rights administer" in token, token)
        want((root / "opt/sojourn/programs/trainer.tar.gz").is_file(), "there is no trainer for the machines")
        for unit in ("sojourn-server", "sojourn-autoscaler"):
            want((root / f"etc/systemd/system/{unit}.service").is_file(), f"there is no unit {unit}")
        told = (root / "told").read_text(encoding="utf-8").splitlines()
        want(told == ["daemon-reload", "enable --now sojourn-server.service", "enable --now sojourn-autoscaler.service"], told)
        want(not (root / "etc/sojourn/fleet.toml").exists(), "a fleet's file comes from nowhere")
        # Again, after a restart of the machine: certificate and token stay. A fleet's file that was sent along gets the address.
        sent = root / "etc/sojourn/fleet.toml.sent"
        sent.write_text('server = "https://{{private_address}}:8642"\n', encoding="utf-8")
        boot(root, archives, "")
        fleet = root / "etc/sojourn/fleet.toml"
        want(fleet.read_text(encoding="utf-8") == f'server = "https://{ADDRESSES["private"]}:8642"\n', "another file of the fleet")
        want(fleet.stat().st_mode & 0o077 == 0, "others can read the fleet's file")
        # What its owner changes on the machine stays.
        fleet.write_text("mine\n", encoding="utf-8")
        boot(root, archives, "")
        want(fleet.read_text(encoding="utf-8") == "mine\n", "the fleet's file is made anew")
        want((root / "etc/sojourn/server.pem").read_text(encoding="utf-8") == pem, "the certificate is made anew")
        want((root / "etc/sojourn/autoscaler-token").read_text(encoding="utf-8") == token, "the token is made anew")
    with tempfile.TemporaryDirectory() as folder:
        archives = packed(folder)
        root = pathlib.Path(folder) / "machine"
        boot(root, archives, "0" * 64, fails=True)
        want(not (root / "told").exists() and not (root / "opt/sojourn/sojourn").exists(), "another release was unpacked")
