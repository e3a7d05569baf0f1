"""Clean systems in folders, made by mmdebstrap and entered with chroot; as root. The commands are those of README.md."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import tarfile
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build/chroots"
# Their components; mmdebstrap knows where each release's packages are.
SUITES = {"bookworm": "main", "trixie": "main", "noble": "main,universe"}
UBUNTU_KEYS = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# How pip reaches its index, where that is not the way it goes by itself.
PASSED = ("PIP_DEFAULT_TIMEOUT", "PIP_INDEX_URL", "PIP_PROXY")
AUTHORITY = "/etc/pip-authority.crt"

# In namespaces of its own: what is mounted goes with the command, and so does each process that it leaves.
ENTER = """
set -e
root=$1 cache=$2
shift 2
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
for folder in archives ccache; do
  case $folder in archives) at=/var/cache/apt/archives ;; ccache) at=/root/.cache/ccache ;; esac
  mkdir -p "$cache/$folder" "$root/$at"
  mount --bind "$cache/$folder" "$root/$at"
done
exec chroot "$root" "$@"
"""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)


def block(first: str, page: str = "README.md", language: str = "sh") -> str:
    """The page's block that begins so, as it stands there."""
    found = [text for text in blocks(page, language) if text.startswith(first)]
    assert len(found) == 1, f"{page} has {len(found)} blocks that begin with '{first}'"
    return found[0]


@dataclass
class Ended:
    status: int
    output: str


def finish(process: subprocess.Popen, descriptor: int, answer: str, limit: float) -> Ended:
    """Reads until the end, and types the answer whenever a question is asked."""
    output, asked, ends = b"", 0, time.monotonic() + limit
    try:
        while (left := ends - time.monotonic()) > 0:
            if not select.select([descriptor], [], [], left)[0]:
                break
            try:
                piece = os.read(descriptor, 65536)
            except OSError:  # a terminal whose other end is closed
                piece = b""
            if not piece:
                break
            output += piece
            if output.count(b"[y/N] ") > asked and answer:
                asked += 1
                os.write(descriptor, answer.encode() + b"\n")
        status = process.wait(max(1.0, ends - time.monotonic()))
    except subprocess.TimeoutExpired:
        status = -1
    finally:
        process.kill()
        process.wait()
    return Ended(status, output.decode(errors="replace").replace("\r\n", "\n"))


@dataclass
class System:
    suite: str
    root: Path

    @property
    def checkout(self) -> Path:
        """At the same path as ours, so that the compiler's cache serves both."""
        return self.root / ROOT.relative_to("/")

    def start(self, line: str, *, terminal: bool, machine: str = "") -> tuple[subprocess.Popen, int]:
        """In the checkout's folder, by a shell that stops at the first failure; output is read from the descriptor."""
        inside = ["ip", "netns", "exec", machine] if machine else []
        inside += ["unshare", "--mount", "--pid", "--fork", "--uts", "--kill-child", "sh", "-c", ENTER, "sh"]
        inside += [str(self.root), str(CACHE / "shared" / self.suite), "/usr/bin/env", "-i", f"PATH={PATH}"]
        inside += ["HOME=/root", "LANG=C.UTF-8", "TERM=dumb", f"JOBS={os.environ.get('JOBS', os.cpu_count())}"]
        inside += [f"{name}={value}" for name, value in os.environ.items() if name in PASSED]
        if (self.root / AUTHORITY.lstrip("/")).exists():
            inside.append(f"PIP_CERT={AUTHORITY}")
        inside += ["bash", "-ec", f"cd {ROOT}\n{line}"]
        if terminal:
            ours, theirs = pty.openpty()
            process = subprocess.Popen(inside, stdin=theirs, stdout=theirs, stderr=theirs)
        else:
            ours, theirs = os.pipe()
            process = subprocess.Popen(inside, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        return process, ours

    def run(self, line: str, *, answer: str = "", machine: str = "", limit: float = 300) -> Ended:
        """With an answer to each question on a terminal, else without a terminal."""
        process, descriptor = self.start(line, terminal=bool(answer), machine=machine)
        try:
            return finish(process, descriptor, answer, limit)
        finally:
            os.close(descriptor)

    def must(self, line: str, **how: object) -> str:
        ended = self.run(line, **how)
        assert ended.status == 0, f"{self.suite}: {line}\n{ended.output[-4000:]}"
        return ended.output

    def install(self, *packages: str) -> None:
        command = "apt-get install -y -qq --no-install-recommends"
        self.must(f"apt-get update -qq && DEBIAN_FRONTEND=noninteractive {command} {' '.join(packages)}")

    def put_checkout(self) -> None:
        """The sources as a clone has them."""
        list_files = "git -c safe.directory='*' ls-files -z -co --exclude-standard --deduplicate"
        subprocess.run(
            f"{list_files} | tar --null --ignore-failed-read -T - -c 2>/dev/null | tar -x -C '{self.checkout}'",
            shell=True, check=True, cwd=ROOT,
        )  # fmt: skip

    def put(self, file: Path, folder: str) -> None:
        into = self.checkout / folder
        into.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, into)


def made(path: Path, *command: object) -> Path:
    """A file that the command writes, kept for the next time."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.tar")
        subprocess.run([str(part) if word is made else str(word) for word in command], check=True)
        part.rename(path)
    return path


def base(suite: str) -> Path:
    """The smallest system that has apt: no python3, git, sudo."""
    options = []
    if suite == "noble":
        # Debian 13 has Ubuntu's keys; so they are as trustworthy as Debian's packages.
        mmdebstrap = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract"]
        keys = made(
            CACHE / "keys.tar", *mmdebstrap, "--include=ubuntu-archive-keyring", "trixie", made,
        )  # fmt: skip
        with tarfile.open(keys) as tar:
            (CACHE / "ubuntu.gpg").write_bytes(tar.extractfile(f"./{UBUNTU_KEYS}").read())
        options = [f"--keyring={CACHE / 'ubuntu.gpg'}"]
    make = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=apt", "--dpkgopt=force-unsafe-io", *options]
    return made(CACHE / f"{suite}.tar", *make, f"--components={SUITES[suite]}", suite, made)


@contextmanager
def clean(suite: str) -> Iterator[System]:
    systems = CACHE / "systems"
    systems.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix=f"{suite}-", dir=systems))
    root.chmod(0o755)
    try:
        subprocess.run(["tar", "-xf", base(suite), "-C", root, "--exclude=./dev/*"], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        system = System(suite, root)
        system.checkout.mkdir(parents=True)
        if authority := os.environ.get("PIP_CERT"):
            shutil.copy(authority, root / AUTHORITY.lstrip("/"))
        yield system
    finally:
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def bookworm() -> Iterator[System]:
    """Debian 12 with the checkout; test_build builds there what the others install."""
    with clean("bookworm") as system:
        system.put_checkout()
        yield system


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wheel", type=Path, help="install this one, instead of building one in a clean Debian 12")


@pytest.fixture(scope="session")
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What README's command packs."""
    if given := request.config.getoption("--wheel"):
        return given.resolve(strict=True)
    bookworm = request.getfixturevalue("bookworm")
    bookworm.must(block("./x wheel"), answer="y", limit=3600)
    packed = list((bookworm.checkout / "build/wheel").glob("actor_launcher-*.whl"))
    assert len(packed) == 1
    return Path(shutil.copy(packed[0], tmp_path_factory.mktemp("wheel")))
