"""The Terraform module: its policy, its form, and that it is made, changes nothing a second time, and goes without a trace, in a
stand-in for AWS."""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.request

import yaml
from checks import DEPLOY, ROOT, Skipped, check, run, want
from machine import MOST_BYTES, check_cloud_config

MODULE = DEPLOY / "terraform"
FLEET = "check"
# The managed policy's limit, without white space.
MOST_POLICY_BYTES = 6_144
# Folders in which providers lie for machines without a network, beside those that Terraform looks in itself.
MIRRORS = ["~/.terraform.d/plugins", "/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins", "/opt/tf-plugins"]
USES = """
provider "aws" {
  region                      = "eu-west-1"
  skip_requesting_account_id  = false
  skip_credentials_validation = true
}

module "fleet" {
  source        = "./module"
  fleet         = "FLEET"
  allowed_cidrs = ["192.0.2.0/24"]
  WORDS
}

output "fleet" {
  value = module.fleet
}
"""
SERVER = """server = {
    image           = "IMAGE"
    release_url     = "https://example.org/sojourn.tar.gz"
    release_sha256  = "DIGEST"
    programs_url    = "https://example.org/programs.tar"
    programs_sha256 = "DIGEST"
  }""".replace("DIGEST", "0" * 64)


def policy():
    """The autoscaler's policy, filled in as the module does it."""
    text = (MODULE / "autoscaler-policy.json").read_text(encoding="utf-8")
    for name, value in {"partition": "aws", "account": "1" * 12, "fleet": FLEET}.items():
        text = text.replace("${" + name + "}", value)
    want("${" not in text, "a name in the policy that the module doesn't fill in")
    return json.loads(text)


@check
def autoscaler_policy():
    """Rights by name, on resources of this account, and what is made or ended by the fleet's tag."""
    document = policy()
    want(len(json.dumps(document, separators=(",", ":"))) <= MOST_POLICY_BYTES, "the policy is too long for AWS")
    tags = {"aws:RequestTag/sojourn:fleet", "aws:ResourceTag/sojourn:fleet", "ec2:ResourceTag/sojourn:fleet"}
    tagged = set()
    for statement in document["Statement"]:
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        sid = statement["Sid"]
        want(statement["Effect"] == "Allow" and not any("*" in action for action in actions), f"{sid}: {actions}")
        if statement["Resource"] == "*":
            want(all(action.startswith("ec2:Describe") for action in actions), f"{sid} changes anything")
        condition = statement.get("Condition", {}).get("StringEquals", {})
        if tags & set(condition):
            want(all(condition[tag] == FLEET for tag in tags & set(condition)), f"{sid} is for another fleet")
            tagged |= set(actions)
    for action in ["CreateFleet", "RunInstances", "CreateTags", "TerminateInstances", "DeleteVolume", "DeleteLaunchTemplate"]:
        want(f"ec2:{action}" in tagged, f"ec2:{action} isn't bound to the fleet's tag")


def provider():
    """The folder with the provider of AWS, where there is one."""
    given = [os.environ.get("TF_PLUGIN_CACHE_DIR"), *MIRRORS]
    for folder in filter(None, given):
        if list(pathlib.Path(folder).expanduser().glob("*/hashicorp/aws/*/linux_amd64/terraform-provider-aws*")):
            return pathlib.Path(folder).expanduser()
    return None


def terraform():
    """Terraform's program and its environment; skipped where either it or its provider isn't there."""
    program, folder = shutil.which("terraform"), provider()
    if not program:
        raise Skipped("there is no `terraform` on PATH: the module is NOT checked")
    if not folder:
        raise Skipped(f"there is no provider of AWS in {', '.join(MIRRORS)} or TF_PLUGIN_CACHE_DIR: the module is NOT checked")
    return program, folder


@contextlib.contextmanager
def moto():
    """A stand-in for AWS on a free port; its address."""
    python = ROOT / ".cache/python/bin/python"
    program = "\n".join(
        [
            "from moto.server import ThreadedMotoServer",
            "server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)",
            "server.start()",
            "print(server.get_host_and_port()[1], flush=True)",
            "input()",
        ]
    )
    environment = {**os.environ, "MOTO_IAM_LOAD_MANAGED_POLICIES": "true"}
    process = subprocess.Popen(
        [python, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        port = process.stdout.readline().strip()
        want(port, "moto doesn't start")
        yield f"http://127.0.0.1:{port}"
    finally:
        # It ends with its input.
        process.stdin.close()
        process.wait()


def call(url, action, service="ec2", version="2016-11-15", **parameters):
    """A request of EC2's or IAM's, signed by nobody; its answer as text."""
    credential = f"AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/{service}/aws4_request, SignedHeaders=host, Signature=0"
    body = "&".join([f"Action={action}", f"Version={version}", *(f"{name}={value}" for name, value in parameters.items())])
    request = urllib.request.Request(url, data=body.encode(), headers={"Authorization": credential, "X-Amz-Date": "20260101T000000Z"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


# What DescribeKIND names by which id, of all that the module or a machine makes.
KINDS = {
    "Addresses": "allocationId",
    "InternetGateways": "internetGatewayId",
    "LaunchTemplates": "launchTemplateId",
    "NetworkInterfaces": "networkInterfaceId",
    "RouteTables": "routeTableId",
    "SecurityGroups": "groupId",
    "Subnets": "subnetId",
    "Volumes": "volumeId",
    "Vpcs": "vpcId",
}


def tagged(url):
    """The resources with the fleet's tag that are there, by their ids."""
    ours = {"Filter.1.Name": "tag:sojourn:fleet", "Filter.1.Value.1": FLEET}
    found = set()
    for kind, name in KINDS.items():
        found |= set(re.findall(rf"<{name}>(.+?)</{name}>", call(url, f"Describe{kind}", **ours)))
    # Machines that have ended are known for a while.
    alive = {"Filter.2.Name": "instance-state-name", "Filter.2.Value.1": "pending", "Filter.2.Value.2": "running"}
    found |= set(re.findall(r"<instanceId>(.+?)</instanceId>", call(url, "DescribeInstances", **ours, **alive)))
    return sorted(found)


@check
def terraform_module():
    """fmt, validate; then apply, a second plan that is empty, what was opened, and destroy."""
    program, mirror = terraform()
    run(program, "fmt", "-check", "-diff", "-recursive", MODULE)
    with tempfile.TemporaryDirectory() as folder, moto() as url:
        place = pathlib.Path(folder)
        settings = place / "terraform.rc"
        settings.write_text(
            f'disable_checkpoint = true\nprovider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n',
            encoding="utf-8",
        )
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TF_"))}
        environment |= {
            "TF_CLI_CONFIG_FILE": str(settings),
            "TF_IN_AUTOMATION": "1",
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": folder,
        }

        def call_terraform(*words):
            return run(program, *words, "-no-color", cwd=place, env=environment)

        shutil.copytree(MODULE, place / "module")
        use(place, 'vpc_id = "vpc-0"\n  subnet_ids = ["subnet-0"]')
        call_terraform("init", "-input=false")
        said = call_terraform("validate")
        want("Success" in said and "Warning" not in said, said)
        # A network and a server of somebody else's: less is made.
        said = call_terraform("plan", "-input=false")
        want("aws_vpc.own" not in said and "aws_instance.server" not in said and "aws_iam_policy.autoscaler" in said, said)
        image = re.search(r"<imageId>(ami-.+?)</imageId>", call(url, "DescribeImages")).group(1)
        use(place, SERVER.replace("IMAGE", image))
        call_terraform("apply", "-input=false", "-auto-approve")
        # 0: nothing to do; 2: something.
        call_terraform("plan", "-input=false", "-detailed-exitcode")
        check_open(url)
        outputs = json.loads(run(program, "output", "-json", "fleet", cwd=place, env=environment))
        want(len(outputs["subnet_ids"]) == 3, outputs)
        check_server_data(url, outputs["server_instance_id"])
        made = {name.split("-")[0] for name in tagged(url)}
        want(made >= {"eipalloc", "i", "igw", "rtb", "sg", "subnet", "vol", "vpc"}, f"the fleet's tag is missing: only {made}")
        call_terraform("destroy", "-input=false", "-auto-approve")
        left = tagged(url)
        want(not left, f"destroy leaves {left}")
        roles = call(url, "ListRoles", service="iam", version="2010-05-08") + call(url, "ListPolicies", "iam", "2010-05-08", Scope="Local")
        want(f"sojourn-{FLEET}" not in roles, "destroy leaves a role or a policy")


def use(place, words):
    """Writes what uses the module."""
    text = USES.replace("FLEET", FLEET).replace("WORDS", words)
    (place / "main.tf").write_text(text, encoding="utf-8")


def check_open(url):
    """That one port is open, and nothing else."""
    answer = call(url, "DescribeSecurityGroups", **{"Filter.1.Name": "tag:sojourn:fleet", "Filter.1.Value.1": FLEET})
    groups = set(re.findall(rf"<groupName>sojourn-{FLEET}-(\w+)</groupName>", answer))
    want({"machine", "server"} <= groups, f"security groups: {groups}")
    ingress = re.findall(r"<ipPermissions>(.*?)</ipPermissions>", answer, re.DOTALL)
    ports = set(re.findall(r"<(?:fromPort|toPort)>(.+?)</", "".join(ingress)))
    want(ports == {"8642"}, f"open ports: {ports}")
    want("0.0.0.0/0" not in "".join(ingress), "the port is open to everybody")


def check_server_data(url, instance):
    """The server's user data: cloud-init's form, its limit, and the script."""
    answer = call(url, "DescribeInstanceAttribute", InstanceId=instance, Attribute="userData")
    packed = re.search(r"<value>(.+?)</value>", answer, re.DOTALL).group(1)
    text = base64.b64decode(packed).decode()
    want(len(text.encode()) <= MOST_BYTES, f"the server's user data have {len(text.encode())} bytes")
    script = next(file for file in yaml.safe_load(text)["write_files"] if file["path"].endswith("-boot"))["content"]
    want(base64.b64decode(script).decode() == (MODULE / "server-boot").read_text(encoding="utf-8"), "another script")
    check_cloud_config(text)
