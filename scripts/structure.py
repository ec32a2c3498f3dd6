#!/usr/bin/env python3
"""Fails where modules of a package import each other in a cycle, a package depends on one of its own floor or above, one that
hears of events passes over those that it doesn't name, a documentation comment begins with a word that names nothing, or a cloud is
named outside of its package.

Reads the files of the checkout that git doesn't ignore, and runs nothing of it. Production code only. A parent module that
re-exports its children, and the root of a package, count as no imports. The floors are those in ARCHITECTURE.md's table of packages.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked(pattern):
    """The files that are in git, and new ones that could be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", pattern]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


def code(path):
    """The production code of a file, without comments."""
    text = (ROOT / path).read_text(encoding="utf-8")
    text = text.split("#[cfg(test)]\nmod tests {")[0]
    return re.sub(r"//.*", "", text)


def split(text):
    """The parts between commas that are in no braces."""
    depth, parts = 0, [""]
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def expand(prefix, tree):
    """The paths of a `use` tree."""
    for part in split(tree):
        head, brace, rest = part.partition("{")
        names = prefix + [name.strip() for name in head.split(" as ")[0].split("::") if name.strip()]
        if brace:
            yield from expand(names, rest[: rest.rindex("}")])
        else:
            yield names


USE = re.compile(r"^\s*(pub(?:\([a-z: ]+\))? )?use ([^;]+);", re.M)


def imports(module, text):
    """The modules' paths, from the package's root, that a module names; and whether it only re-exports them."""
    for public, tree in USE.findall(text):
        for path in expand([], tree):
            yield path, bool(public)
    for path in re.findall(r"\b(?:crate|super)(?:::\w+)+", USE.sub("", text)):
        yield path.split("::"), False


def absolute(module, path):
    if path[0] == "crate":
        return path[1:]
    if path[0] in ("super", "self"):
        base = list(module)
        for name in path:
            if name == "super":
                base = base[:-1]
        return base + [name for name in path if name not in ("super", "self")]
    return None


def graph(files):
    """Which module of a package uses which: `files` by module."""
    edges = collections.defaultdict(set)
    for module, path in files.items():
        for named, public in imports(module, code(path)):
            target = absolute(module, named)
            while target and tuple(target) not in files:
                target.pop()
            target = tuple(target or ())
            child = target[: len(module)] == module
            if target and module and target != module and not (public and child):
                edges[module].add(target)
    return edges


def circles(edges):
    """The strongly connected components of more than one module (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


# Packages whose folders, too, use each other in one direction only.
WITHOUT_FOLDER_CYCLES = ("server/state", "server/scheduling", "server/core")


def by_folder(edges):
    """The same between the folders of a package, a file at its root being one."""
    folders = collections.defaultdict(set)
    for module, others in edges.items():
        folders[module[:1]].update(other[:1] for other in others if other[:1] != module[:1])
    return folders


def cycles():
    packages = collections.defaultdict(dict)
    for path in tracked("*.rs"):
        package, source, file = ("/" + path).rpartition("/src/")
        if not source or "/tests/" in path or path.endswith("tests.rs"):
            continue
        module = tuple(file.removesuffix(".rs").split("/"))
        if module[-1] in ("mod", "lib", "main"):
            module = module[:-1]
        packages[package.lstrip("/") or "."][module] = path
    for package, files in sorted(packages.items()):
        edges = graph(files)
        for circle in circles(edges):
            yield f"{package}: a cycle of {len(circle)}: " + ", ".join("::".join(module) for module in circle)
        for circle in circles(by_folder(edges) if package in WITHOUT_FOLDER_CYCLES else {}):
            yield f"{package}: a cycle of {len(circle)} folders: " + ", ".join(folder for (folder,) in circle)


ROW = re.compile(r"^\| (\d+) \| `([^`]+)` \| `([^`]+)` \|", re.M)


def arrows_up():
    rows = ROW.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    floors = {folder: int(floor) for floor, _, folder in rows}
    told = {folder: name for _, name, folder in rows}
    names, depends = {}, {}
    for path in tracked("*Cargo.toml"):
        text = (ROOT / path).read_text(encoding="utf-8")
        package = path.removesuffix("Cargo.toml").rstrip("/") or "."
        name = re.search(r'^\[package\]\nname = "([^"]+)"', text, re.M)
        body = re.search(r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S)
        if name:
            names[name.group(1)] = package
            depends[package] = re.findall(r"^(sojourn[\w-]*)", body.group(1) if body else "", re.M)
    for name, package in sorted(names.items()):
        if told.get(package) != name:
            yield f"{package}: the table of packages in ARCHITECTURE.md has no row with `{name}` and `{package}`"
    for folder in sorted(set(told) - set(depends)):
        yield f"{folder}: ARCHITECTURE.md has a package there, and there is none"
    for package, others in sorted(depends.items()):
        for other in (names[name] for name in others if name in names):
            if package in floors and floors.get(other, 0) >= floors[package]:
                yield f"{package} depends on {other}, which isn't below it"


LISTENERS = ("server/state/src/", "server/scheduling/src/", "server/core/src/")
MATCH = re.compile(r"\bmatch [^;{]*\{")


def arms(body):
    """The patterns of a match's arms, from what is between its braces."""
    depth, pattern, in_pattern = 0, "", True
    for at, letter in enumerate(body):
        if in_pattern and depth == 0 and body.startswith("=>", at):
            yield pattern.strip()
            pattern, in_pattern = "", False
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(letter, 0)
        if in_pattern:
            pattern += letter
        elif depth == 0 and letter in ",}":
            pattern, in_pattern = "", True
        if depth < 0:
            return


def passed_over():
    """Matches over events or changes with an arm for all others: a new one would be missed in silence."""
    for path in tracked("*.rs"):
        if not path.startswith(LISTENERS) or path.endswith("tests.rs"):
            continue
        text = code(path)
        for found in MATCH.finditer(text):
            patterns = list(arms(text[found.end() :]))
            heard = [pattern for pattern in patterns if re.match(r"[|,\s]*(Event|Change)::", pattern)]
            if heard and any(pattern.lstrip(",} \n") == "_" for pattern in patterns):
                line = text.count("\n", 0, found.start()) + 1
                yield f"{path}:{line}: a match over events or changes has `_ =>`: name all that it passes over"


DOC = re.compile(r"\s*//[/!] ?(.*)")
NAMES_NOTHING = re.compile(r"(What|Who|Whoever|Whose|Whatever|It|Its|They|Their|Them|That|Those|He|She)\b|[\w']+[.?]$")


def misbegun():
    """Paragraphs of documentation that begin with a word which names nothing, or that are one word long."""
    for path in tracked("*.rs"):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        begins, in_code = True, False
        for number, (line, after) in enumerate(zip(lines, [*lines[1:], ""]), start=1):
            found = DOC.match(line)
            text = found.group(1).strip() if found else ""
            in_code = bool(found) and in_code != text.startswith("```")
            named = NAMES_NOTHING.match(text) if begins and not in_code else None
            if named and (named.group(1) or not DOC.match(after)):
                yield f"{path}:{number}: a comment begins with `{named.group()}`: say what the thing is"
            begins = not text


# Only the packages of clouds name one, and the program that lists them, each behind a feature of its name.
WITHOUT_CLOUDS = ("deploy/autoscaler/src/", "deploy/fleet/src/", "deploy/clouds/src/")
LISTS_CLOUDS = "deploy/autoscaler/src/main.rs"
OTHER_NAMES = [r"(?<![a-z])aws(?![a-z])"]


def named_clouds():
    """Lines that name a cloud where any cloud is meant."""
    features = re.findall(r'#\[cfg\(feature = "([\w-]+)"\)\]', (ROOT / LISTS_CLOUDS).read_text(encoding="utf-8"))
    names = re.compile("|".join([*features, *OTHER_NAMES]), re.I)
    for path in tracked("*.rs"):
        if not path.startswith(WITHOUT_CLOUDS) or path == LISTS_CLOUDS:
            continue
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), start=1):
            found = names.search(line)
            if found:
                yield f"{path}:{number}: `{found.group()}` is named, and any cloud is meant: its package says it"


def main():
    sys.setrecursionlimit(10_000)
    faults = [*cycles(), *arrows_up(), *passed_over(), *misbegun(), *named_clouds()]
    for fault in faults:
        print(f"structure: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
