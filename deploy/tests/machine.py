"""What runs on a machine: systemd's units, and the boot script of a bought machine, which is run here with stand-ins for the system's
programs."""

import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import threading

import yaml
from checks import DEBIAN, DEPLOY, TOOLS, Failed, check, check_variables, check_words, run, want

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
TEMPLATE = DEPLOY / "cloud-init" / "user-data.yaml"
CLOUD_INIT = DEBIAN / "usr" / "lib" / "python3" / "dist-packages"
# EC2's limit of user data in bytes.
MOST_BYTES = 16_384
# Of `systemd-analyze security`, in tenths: 0 is closed, 100 open.
MOST_EXPOSURE = 25
NAMES = {"server", "enrolment_token", "machine", "client_sha256", "trainer_sha256", "idle", "boot_minutes", "ca"}


@check
def systemd_units():
    """systemd-analyze verify, with warnings as errors; how open each unit is; variables and flags that there are."""
    want(shutil.which("systemd-analyze"), "systemd-analyze is missing; install it with: apt-get install systemd")
    want(len(UNITS) == 4, f"units: {UNITS}")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        place = root / "etc/systemd/system"
        place.mkdir(parents=True)
        programs = root / "opt/sojourn"
        programs.mkdir(parents=True)
        for unit in UNITS:
            shutil.copy(unit, place)
            text = unit.read_text(encoding="utf-8")
            words = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE).group(1).split()
            program = root / words[0].lstrip("/")
            program.write_text("#!/bin/sh\n", encoding="utf-8")
            program.chmod(0o755)
            check_words(words, unit.name)
            want("\nDynamicUser=yes\n" in text, f"{unit.name} runs as root")
            check_variables(re.findall(r"^Environment=([A-Z_]+)=", text, re.MULTILINE), unit.name)
        stand_in_units(place)
        for unit in UNITS:
            said = run("systemd-analyze", "verify", "--man=no", f"--root={root}", place / unit.name)
            want(not said.strip(), f"{unit.name}: {said}")
            said = run("systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSURE}", place / unit.name)


def stand_in_units(place):
    """Units of the system's that every unit depends on."""
    for name in ["basic.target", "multi-user.target", "network-online.target", "shutdown.target", "sysinit.target"]:
        (place / name).write_text(f"[Unit]\nDescription={name}\n", encoding="utf-8")


def filled(**given):
    """The user data, filled in."""
    values = {
        "server": "https://sojourn.example.org:8642",
        "enrolment_token": "token-0",
        "machine": "m-0",
        "client_sha256": "0" * 64,
        "trainer_sha256": "1" * 64,
        "idle": "10min",
        "boot_minutes": "10",
        "ca": "",
        **given,
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    named = set(re.findall(r"\{\{(.*?)\}\}", text))
    want(named == NAMES, f"the template's names are {named}, and README.md's {NAMES}")
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def largest():
    """The user data with the longest values that there are."""
    return filled(
        server=",".join(["https://ec2-255-255-255-255.eu-central-1.compute.amazonaws.com:8642"] * 3),
        enrolment_token="t" * 128,
        machine="m" * 64,
        idle="9999min",
        boot_minutes="999",
        ca=base64.b64encode(b"-" * 4096).decode(),
    )


def check_cloud_config(text):
    """cloud-init's own check of user data, keys that it doesn't know, and EC2's limit."""
    want(len(text.encode()) <= MOST_BYTES, f"the user data have {len(text.encode())} bytes")
    schema = json.loads((CLOUD_INIT / "cloudinit/config/schemas/schema-cloud-config-v1.json").read_text(encoding="utf-8"))
    known = {key for part in schema["$defs"].values() for key in part.get("properties", {})}
    unknown = set(yaml.safe_load(text)) - known
    want(not unknown, f"cloud-init doesn't know {unknown}")
    program = f"import sys; sys.path.insert(0, {str(CLOUD_INIT)!r}); from cloudinit.cmd.main import main; sys.exit(main())"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        said = run(sys.executable, "-c", program, "schema", "--config-file", file.name)
        want("Valid" in said and "deprecat" not in said.lower(), said)


@check
def cloud_init_schema():
    """The user data with its longest values and with others: cloud-init's own check; and README.md's list of names."""
    for text in (filled(), largest()):
        check_cloud_config(text)
    readme = (TEMPLATE.parent / "README.md").read_text(encoding="utf-8")
    want(set(re.findall(r"^\| `([a-z_0-9]+)` \|", readme, re.MULTILINE)) == NAMES, "README.md lists other names")


class Machine:
    """A folder that stands for a fresh machine: the files of the user data, and stand-ins for the system's programs."""

    def __init__(self, folder, text):
        self.root = pathlib.Path(folder)
        self.data = yaml.safe_load(text)
        self.told = self.root / "told"
        self.told.touch()
        programs = self.root / "programs"
        programs.mkdir()
        # The machine's disks: a root, and an empty one that goes with it.
        disks = "100 nvme0n1 Amazon Elastic Block Store\\n900 nvme1n1 Amazon EC2 NVMe Instance Storage\\n"
        stand_ins = {
            "systemctl": "",
            "sync": "",
            "sleep": "",
            "poweroff": "",
            "mkfs.ext4": "",
            "mount": "",
            "lsblk": f"case $* in *MODEL*) printf '{disks}';; esac",
        }
        for name, does in stand_ins.items():
            script = programs / name
            script.write_text(f"#!/bin/sh\necho {name} \"$@\" >>'{self.told}'\n{does}\n", encoding="utf-8")
            script.chmod(0o755)
        self.env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        (self.root / "dev").mkdir()
        # The folders that are there on a fresh machine.
        for there in ["etc/systemd/system", "usr/local/sbin", "var/lib/private", "proc"]:
            (self.root / there).mkdir(parents=True)
        for file in self.data["write_files"]:
            path = self.path(file["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            content = file["content"]
            if file.get("encoding") == "b64":
                content = base64.b64decode(content).decode()
            path.write_text(self.moved(content) if file["path"].endswith("sojourn-boot") else content, encoding="utf-8")
            path.chmod(int(file["permissions"], 8))

    def path(self, path):
        """A path of the machine, in its folder."""
        return self.root / path.lstrip("/")

    def moved(self, script):
        """A script whose paths are in the machine's folder."""
        return re.sub(r"(?<![\w}$/])/(opt|etc|var|dev(?!/null)|proc|usr)/", rf"{self.root}/\1/", script)

    def boot(self, fails=False):
        """Runs what cloud-init would run, and returns what the system's programs were told."""
        (self.root / "dev/console").touch()
        run(self.path(self.data["runcmd"][0][0]), env=self.env, fails=fails)
        return self.told.read_text(encoding="utf-8")

    def watch(self):
        """Runs the watch to its end."""
        (self.root / "dev/console").touch()
        # In the foreground: `wait` for what it leaves behind.
        run("sh", "-c", self.moved(self.data["bootcmd"][0]) + "\nwait", env=self.env)
        return self.told.read_text(encoding="utf-8")


def programs(folder):
    """A client that prints a unit, and a trainer's archive: their bytes by SHA-256, and both digests."""
    client = b"#!/bin/sh\necho \"[Service]\"\necho \"# $*\"\n"
    trainer = pathlib.Path(folder) / "sojourn-trainer"
    trainer.write_text("trainer\n", encoding="utf-8")
    archive = pathlib.Path(folder) / "trainer.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(trainer, "sojourn/sojourn-trainer")
    files = {hashlib.sha256(bytes_).hexdigest(): bytes_ for bytes_ in (client, archive.read_bytes())}
    return files, *files


class Programs(http.server.ThreadingHTTPServer):
    """A server of programs: of two, of which one stands by; and one that at first breaks off, and sends others bytes."""

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the server does, badly for the first two times."""

    def do_GET(self):  # noqa: N802: the library's name
        self.server.asked += 1
        body = self.server.files.get(self.path.removeprefix("/v1/programs/"))
        if body is None or self.server.asked == 1:
            self.send_error(404 if body is None else 503)
            return
        if self.server.asked == 2:
            body = body[:-1] + b"?"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@check
def cloud_init_scripts():
    """shellcheck over the scripts in the user data."""
    data = yaml.safe_load(largest())
    scripts = {"boot": next(file["content"] for file in data["write_files"] if file["path"].endswith("sojourn-boot"))}
    scripts["watch"] = "#!/bin/sh\n" + data["bootcmd"][0]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in scripts.items():
            path = pathlib.Path(folder) / name
            path.write_text(text, encoding="utf-8")
            run(TOOLS / "shellcheck", path)


@check
def cloud_init_boot():
    """The boot script, run: programs that come late and damaged at first, a standby before the server, an authority, a disk."""
    with tempfile.TemporaryDirectory() as folder:
        files, client, trainer = programs(folder)
        with Programs({}) as standby, Programs(files) as server:
            text = filled(server=f"{standby.url()},{server.url()}", client_sha256=client, trainer_sha256=trainer)
            machine = Machine(tempfile.mkdtemp(dir=folder), text)
            told = machine.boot()
        want(server.asked == 4 and "sleep 5" in told, f"{server.asked} requests:\n{told}")
        want(machine.path("/opt/sojourn/sojourn").stat().st_mode & 0o777 == 0o755, "the client can't be run")
        want(machine.path("/opt/sojourn/sojourn-trainer").read_text(encoding="utf-8") == "trainer\n", "another trainer")
        unit = machine.path("/etc/systemd/system/sojourn-client.service").read_text(encoding="utf-8")
        want("service show --system" in unit, f"another unit: {unit}")
        want(told.splitlines()[-2:] == ["systemctl daemon-reload", "systemctl enable --now sojourn-client.service"], told)
        disk = f"mount -o noatime,nosuid,nodev {machine.path('/dev/nvme1n1')}"
        want(disk in told and "poweroff" not in told, told)
        drop_in = machine.path("/etc/systemd/system/sojourn-client.service.d/machine.conf").read_text(encoding="utf-8")
        check_words(re.search(r"^ExecStart=(/.*)$", drop_in, re.MULTILINE).group(1).split(), "the boot script's unit")
        want(all(f"{when}Action=poweroff" in drop_in for when in ("Success", "Failure", "StartLimit")), drop_in)
        settings = machine.path("/etc/sojourn/client.env").read_text(encoding="utf-8")
        want("SOJOURN_CA" not in settings, settings)
        check_variables(re.findall(r"^([A-Z_]+)=", settings, re.MULTILINE), "the boot script's settings")
        check_drop_in(unit_of(machine, drop_in))


def unit_of(machine, drop_in):
    """The client's unit with the boot script's drop-in, in a root of its own."""
    place = machine.root / "root/etc/systemd/system"
    (place / "sojourn-client.service.d").mkdir(parents=True)
    stand_in_units(place)
    shutil.copy(DEPLOY / "systemd/sojourn-client.service", place)
    (place / "sojourn-client.service.d/machine.conf").write_text(drop_in, encoding="utf-8")
    program = machine.root / "root/opt/sojourn/sojourn"
    program.parent.mkdir(parents=True)
    shutil.copy(machine.path("/opt/sojourn/sojourn"), program)
    return place / "sojourn-client.service"


def check_drop_in(unit):
    """That systemd understands the unit together with its drop-in."""
    root = unit.parents[3]
    said = run("systemd-analyze", "verify", "--man=no", f"--root={root}", unit)
    want(not said.strip(), said)


@check
def cloud_init_failures():
    """A machine whose boot fails ends itself: by the script's trap, and by the watch where the script hangs for good."""
    with tempfile.TemporaryDirectory() as folder:
        files, client, trainer = programs(folder)
        # The archive is none: the script fails after the downloads.
        broken = hashlib.sha256(b"no archive").hexdigest()
        with Programs({**files, broken: b"no archive"}) as server:
            text = filled(server=server.url(), client_sha256=client, trainer_sha256=broken)
            machine = Machine(tempfile.mkdtemp(dir=folder), text)
            told = machine.boot(fails=True)
        want("systemctl poweroff --no-block" in told and "enable" not in told, told)
        # The watch sees no identity: it sleeps for all its minutes, and ends the machine.
        machine = Machine(tempfile.mkdtemp(dir=folder), filled(boot_minutes="10"))
        told = machine.watch()
        want(told.count("sleep 5") == 10 * 60 // 5 and "systemctl poweroff" in told, told)
        # It lets a machine be that has become a host.
        machine = Machine(tempfile.mkdtemp(dir=folder), filled(boot_minutes="10"))
        identity = machine.path("/var/lib/private/sojourn-client/identity.json")
        identity.parent.mkdir(parents=True)
        identity.touch()
        told = machine.watch()
        want(told == "sleep 5\n", told)


@check
def cloud_init_authority():
    """With an authority, the client and the downloads trust it alone."""
    with tempfile.TemporaryDirectory() as folder:
        files, client, trainer = programs(folder)
        pem = b"-----BEGIN CERTIFICATE-----\n"
        with Programs(files) as server:
            ca = base64.b64encode(pem).decode()
            text = filled(server=server.url(), client_sha256=client, trainer_sha256=trainer, ca=ca)
            machine = Machine(tempfile.mkdtemp(dir=folder), text)
            # A curl that notes what it is told.
            curl = machine.root / "programs/curl"
            curl.write_text(f"#!/bin/sh\necho curl \"$@\" >>'{machine.told}'\nexec {shutil.which('curl')} \"$@\"\n")
            curl.chmod(0o755)
            # Over http curl doesn't read the file; that it is asked to is what counts.
            try:
                told = machine.boot()
            except Failed:
                told = machine.told.read_text(encoding="utf-8")
        want(f"curl --cacert {machine.path('/etc/sojourn/ca.pem')} --fail" in told, told)
        want(machine.path("/etc/sojourn/ca.pem").read_bytes() == pem, "another authority")
        settings = machine.path("/etc/sojourn/client.env").read_text(encoding="utf-8")
        want(settings.count("SOJOURN_CA=") == 1, settings)
