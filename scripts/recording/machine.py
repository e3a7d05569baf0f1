"""A machine of namespaces: host name, process numbers, home and paths are the same wherever is recorded.

The programs are those of the checkout's release build, at ~/env/bin, where a wheel would put them.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

HOME = Path("/home/ada")
JOB = HOME / "job"
# The home lies over /home, where a checkout may be as well; so that is reached by another way.
CHECKOUT = Path("/mnt/checkout")
INSIDE = "TROUPE_RECORD_INSIDE"


def enter(root: Path) -> None:
    """Starts this program again inside, unless it is there already."""
    if os.environ.get(INSIDE):
        furnish(root)
        return
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    apart = ["unshare", *user, "--uts", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    environment = os.environ | {INSIDE: "1"}
    os.execvpe(apart[0], [*apart, sys.executable, *sys.argv], environment)


def mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def furnish(root: Path) -> None:
    socket.sethostname("node0")
    mount("-t", "tmpfs", "tmpfs", "/mnt")
    CHECKOUT.mkdir()
    mount("--bind", root, CHECKOUT)
    # /home and /tmp become empty here; what lies there outside is reached by another way.
    packages = make(Path("/mnt/packages"))
    mount("--bind", (root / ".venv").resolve(), packages)
    mount("-t", "tmpfs", "tmpfs", "/home")
    mount("-t", "tmpfs", "tmpfs", "/tmp")
    JOB.mkdir(parents=True)
    install(packages, make(HOME / "env"))
    hosts = Path("/mnt/hosts")
    hosts.write_text("127.0.0.1 localhost node0 node1\n")
    mount("--bind", hosts, "/etc/hosts")


def install(packages: Path, environment: Path) -> None:
    """The checkout's environment with what its release build made, as after `pip install` of the wheel."""
    upper, work = make(Path("/mnt/upper")), make(Path("/mnt/work"))
    layers = f"lowerdir={packages},upperdir={upper},workdir={work}"
    mount("-t", "overlay", "overlay", "-o", layers, environment)
    release = CHECKOUT / "build" / "release"
    for program in (release / "bin").iterdir():
        (environment / "bin" / program.name).unlink(missing_ok=True)
        shutil.copy2(program, environment / "bin", follow_symlinks=False)
    shutil.copytree(release / "libexec", environment / "libexec", dirs_exist_ok=True)
    [site] = environment.glob("lib/python3.*/site-packages")
    shutil.copytree(CHECKOUT / "python" / "troupe", site / "troupe", dirs_exist_ok=True)


def make(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    return place


def environment() -> dict[str, str]:
    """What a user's shell has, and nothing of the shell that started the recording."""
    return {
        "HOME": str(HOME),
        "USER": "ada",
        "LANG": "C.UTF-8",
        "PATH": f"{HOME}/env/bin:/usr/bin:/bin",
        "GLOO_SOCKET_IFNAME": "lo",
    }
