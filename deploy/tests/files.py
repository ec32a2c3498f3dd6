"""Files of kinds that are all over the repository: shell scripts and YAML."""

import re

from checks import DEPLOY, ROOT, TOOLS, check, run, tracked, want

# Lines are as long as elsewhere in the repository; a flow mapping fits on one line; `on` isn't used.
YAML = """{extends: default, rules: {line-length: {max: 140}, document-start: disable, comments: {min-spaces-from-content: 1, require-starting-space: false},
  braces: {max-spaces-inside: 0}, indentation: {indent-sequences: consistent}, truthy: {allowed-values: ['true', 'false']}}}"""
TEMPLATES = DEPLOY / "helm" / "sojourn" / "templates"


@check
def shell_scripts():
    """shellcheck over every shell script of the repository."""
    scripts = []
    for path in tracked():
        with path.open("rb") as file:
            if re.match(rb"#!/bin/(ba|da)?sh\n", file.readline()):
                scripts.append(path)
    want(len(scripts) >= 8, f"scripts: {scripts}")
    run(TOOLS / "shellcheck", *scripts)


@check
def yaml_files():
    """yamllint over every YAML file that is no template."""
    paths = [path for path in tracked("*.yaml", "*.yml") if path.parent != TEMPLATES]
    want(len(paths) >= 8, f"files: {paths}")
    run(TOOLS / "yamllint", "--strict", "-d", YAML, *paths)


@check
def lock_files():
    """No lock file that names a registry is in the repository."""
    names = ["*.terraform.lock.hcl", "*package-lock.json", "*yarn.lock", "*uv.lock", "*poetry.lock", "*Chart.lock"]
    found = [str(path.relative_to(ROOT)) for path in tracked(*names)]
    want(not found, f"lock files: {found}")
