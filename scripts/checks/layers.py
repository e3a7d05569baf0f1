"""Which folder may include which: the table of docs/architecture.md."""

import re
from typing import Iterator

from .project import Finding, Project, is_core, is_pure, is_test, line_of

BASE, MESSAGES, PORTS, LINK = "runtime/base", "messages", "runtime/ports", "runtime/link"
SUP, ACTORS, OS = "runtime/sup", "actors", "runtime/os"
OPTIONS, WORKER, WIRING = "launch/options", "launch/worker", "launch/wiring"
KEEPER, SHELL, DOCTOR, MAINS = "launch/keeper", "launch/shell", "launch/doctor", "launch/mains"
STACKS = "launch/stacks"
TCPSTORE = "runtime/tcpstore"
CKPT, CATALOG, COPIES, LOAD = "ckpt", "ckpt/catalog", "ckpt/copies", "ckpt/load"
TRAINING, TRACE = "worker", "trace"
DIAG = "diag"
TOPOLOGY = "topology"
METRICS = "metrics"
KUBE = "kube"
# JSON that knows its lines: for all files that people write by hand.
LOCATED_JSON = "topology/located_json.hpp"
PROBE = "probe"
# Numbers that a folder shares with those that may not use the rest of it.
CKPT_LIMITS, ACTORS_LIMITS = "ckpt/limits.hpp", "actors/limits.hpp"
PROBE_LIMITS = "probe/limits.hpp"
LIMITS = (CKPT_LIMITS, ACTORS_LIMITS, PROBE_LIMITS)
# A port of the actors; what is behind it is no business of theirs.
REPLICATION = "ckpt/copies/replication_host.hpp"

BELOW_LAUNCH = (
    *(BASE, MESSAGES, PORTS, LINK, SUP, CKPT, CATALOG, COPIES, LOAD, REPLICATION, ACTORS, OS),
    *(DIAG, PROBE, TOPOLOGY, *LIMITS),
)

# folder or header -> the folders and headers of ours it may include besides itself
MAY_USE = {
    BASE: (),
    MESSAGES: (BASE,),
    PORTS: (BASE, MESSAGES),
    LINK: (BASE, MESSAGES, PORTS),
    SUP: (BASE, MESSAGES),
    TCPSTORE: (BASE,),
    CKPT_LIMITS: (BASE,),
    CKPT: (BASE, PORTS, CKPT_LIMITS),
    CATALOG: (BASE, PORTS, CKPT, CKPT_LIMITS),
    COPIES: (BASE, MESSAGES, PORTS, CKPT, CATALOG, REPLICATION, CKPT_LIMITS),
    LOAD: (BASE, PORTS, CKPT, CATALOG, CKPT_LIMITS),
    REPLICATION: (BASE, MESSAGES, CATALOG),
    DIAG: (BASE, MESSAGES),
    LOCATED_JSON: (BASE,),
    TOPOLOGY: (BASE, LOCATED_JSON),
    PROBE_LIMITS: (BASE, MESSAGES),
    PROBE: (BASE, MESSAGES, LOCATED_JSON, PROBE_LIMITS),
    METRICS: (BASE, DIAG),
    KUBE: (BASE,),
    TRAINING: (BASE, MESSAGES, PORTS, CKPT, CATALOG, LOAD, DIAG, OS, CKPT_LIMITS),
    TRACE: (BASE, DIAG),
    ACTORS_LIMITS: (BASE, MESSAGES, CKPT_LIMITS),
    ACTORS: (
        *(BASE, MESSAGES, PORTS, LINK, SUP, CATALOG, REPLICATION, DIAG, KUBE, PROBE, TOPOLOGY),
        *LIMITS,
    ),
    OS: (
        *(BASE, MESSAGES, PORTS, LINK, TCPSTORE, CKPT, CATALOG, COPIES, REPLICATION, DIAG),
        *(PROBE, KUBE, CKPT_LIMITS, PROBE_LIMITS),
    ),
    OPTIONS: (BASE, MESSAGES, PORTS, OS, *LIMITS),
    WORKER: (BASE, MESSAGES, PORTS, CKPT, CATALOG, DIAG, ACTORS, OS, OPTIONS, *LIMITS),
    KEEPER: (BASE, MESSAGES, PORTS, OS),
    WIRING: (*BELOW_LAUNCH, METRICS, KUBE, OPTIONS, WORKER, KEEPER, STACKS),
    SHELL: (*BELOW_LAUNCH, OPTIONS, WIRING),
    STACKS: (BASE, DIAG, OS),
    DOCTOR: (*BELOW_LAUNCH, OPTIONS, WORKER, KEEPER, WIRING, SHELL),
    MAINS: (*BELOW_LAUNCH, OPTIONS, WORKER, KEEPER, WIRING, SHELL, STACKS, DOCTOR),
    "tests/sim": (
        *(BASE, MESSAGES, PORTS, LINK, SUP, CKPT, CATALOG, COPIES, LOAD, REPLICATION, DIAG),
        *(PROBE, TOPOLOGY, ACTORS, *LIMITS),
    ),
    "tests": (*BELOW_LAUNCH, KUBE, TCPSTORE, OPTIONS, WORKER, KEEPER, WIRING, SHELL),
    "bench": (*BELOW_LAUNCH, TCPSTORE, OPTIONS, WORKER, KEEPER, WIRING, SHELL),
}

# third-party and system headers -> the folders that may include them (test code may include anything)
THIRD_PARTY = {
    r"caf/": (SUP, ACTORS, WIRING, SHELL),
    r"(capnp|kj)/": (MESSAGES, LINK, SUP, PORTS),
    # Manifests are JSON, for readers who are not us.
    r"boost/json/": (OS, WORKER, WIRING, SHELL, DOCTOR, CATALOG, TOPOLOGY, KUBE),
    r"(boost(?!/json/)|openssl)/|sqlite3\.h|spdlog/|liburing": (OS, KEEPER, WIRING),
    r"libdeflate\.h": (CKPT, TRAINING, CATALOG, COPIES, OS, TOPOLOGY, KUBE),
    r"isa-l/": (CKPT,),
    # xpu_timer's files are protobuf.
    r"protozero/": (DIAG, "bench"),
    r"elfutils/|(libelf|gelf|dwarf|seccomp)\.h": (OS,),
    r"(cuda|cublas|nccl|nvml)": (TRACE, OS),
    r"Eigen/": (OS,),
    r"CLI/": (OPTIONS, SHELL),
    r"(sys|netinet|arpa|linux|net)/|(unistd|fcntl|poll|signal|spawn|pthread|sched|netdb)\.h$": (
        OS,
        OPTIONS,
        WORKER,
        KEEPER,
        WIRING,
        SHELL,
        DOCTOR,
        MAINS,
        TRAINING,
        TRACE,
        "bench",
    ),
    r"doctest/": (),
}

# Headers of the world: threads, files, the system.
NOT_PURE = re.compile(
    r"caf/|sys/|(thread|(shared_)?mutex|condition_variable|future|iostream|fstream|filesystem|cstdio)$"
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def layer_of(path: str) -> str | None:
    """The longest entry of the table that is the path or holds it."""
    holding = [entry for entry in MAY_USE if f"{path}/".startswith(entry + "/")]
    return max(holding, key=len, default=None)


def includes(project: Project, path: str) -> Iterator[tuple[int, str, bool]]:
    """(line, what, ours) of every include; ours are the quoted ones."""
    text = project.text(path)
    for found in INCLUDE.finditer(text):
        yield line_of(text, found.start()), found[1] or found[2], found[1] is not None


def rule(project: Project) -> Iterator[Finding]:
    for path in project.sources():
        layer = layer_of(path)
        if layer is None:
            yield Finding(path, 0, "is in none of the folders that scripts/checks/layers.py knows")
        for line, name, ours in includes(project, path):
            problem = (
                ours_problem(project, path, layer, name)
                if ours
                else foreign_problem(path, layer, name)
            )
            if problem:
                yield Finding(path, line, problem)
    yield from cores_without_caf(project)


def ours_problem(project: Project, path: str, layer: str | None, name: str) -> str | None:
    target = layer_of(name)
    generated = name.endswith(".capnp.h") and name.removesuffix(".h") in project
    if target is None or not (generated or name in project):
        return f'"{name}" is no file; includes are written from the repository root'
    if is_test(name) and not is_test(path):
        return f"{name} is for tests"
    if target == layer or layer is None:
        return sideways_problem(path, name) if layer == ACTORS else None
    if is_test(path) and target.startswith("tests"):
        return None
    if target not in MAY_USE[layer]:
        return f"{layer} must not know {target} ({name})"
    return None


def foreign_problem(path: str, layer: str | None, name: str) -> str | None:
    if is_test(path) or layer is None:
        return None
    for pattern, allowed in THIRD_PARTY.items():
        if re.match(pattern, name) and layer not in allowed:
            return f"<{name}> has no place in {layer}"
    if is_pure(path) and NOT_PURE.match(name):
        return f"<{name}> has no place in a core" + ("" if is_core(path) else f", as all of {layer} is")
    return None


def sideways_problem(path: str, name: str) -> str | None:
    """Of another actor only what it publishes: x/x.hpp. Files beside topology or at a tree's top belong to all."""
    folder, _, file = name.rpartition("/")
    if path.rpartition("/")[0] == folder or is_test(path):
        return None
    if file.removesuffix(".hpp") == folder.rpartition("/")[2] or folder.count("/") <= 1:
        return None
    return f"{name} is private to its actor; use {folder}/{folder.rpartition('/')[2]}.hpp"


def cores_without_caf(project: Project) -> Iterator[Finding]:
    """A core must not reach CAF through any header of ours either."""
    reaches: dict[str, str | None] = {}

    def caf_via(path: str) -> str | None:
        if path in reaches or path not in project:
            return reaches.get(path)
        reaches[path] = None
        for _, name, ours in includes(project, path):
            found = caf_via(name) if ours else (name if name.startswith("caf/") else None)
            if found:
                reaches[path] = f"{path} -> {found}"
                break
        return reaches[path]

    for path in project.sources(ACTORS + "/", CKPT + "/", "runtime/", KEEPER + "/"):
        if is_pure(path) and (chain := caf_via(path)):
            yield Finding(path, 0, f"a core must not reach CAF: {chain}")
