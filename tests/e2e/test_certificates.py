"""Jobs whose links are proven by certificates, made as SECURITY.md says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import Start
from launchers import Launcher, Run, free_port, until

WITHIN = 60.0
TRAINS = 'touch "$1/rank-$RANK"; until [ -e "$1/enough" ]; do sleep 0.05; done'


class Authority:
    """A job's own; each certificate carries the names that say what its owner may do."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=job "
                     "-keyout authority.key -out authority.pem")  # fmt: skip
        self.place.joinpath("issued.txt").touch()
        self.place.joinpath("ca.conf").write_text(
            "[ca]\ndefault_ca=job\n[job]\ndatabase=issued.txt\ndefault_md=sha256\ndefault_crl_days=30\n"
            "certificate=authority.pem\nprivate_key=authority.key\n"
        )

    def openssl(self, words: str) -> None:
        done = subprocess.run(["openssl", *words.split()], cwd=self.place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def issue(self, owner: str, *names: str) -> None:
        self.openssl(f"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={owner} "
                     f"-keyout {owner}.key -out {owner}.csr")  # fmt: skip
        said = ",".join(f"DNS:{name}" for name in names)
        self.place.joinpath(f"{owner}.ext").write_text(f"subjectAltName={said}\n")
        self.openssl(f"x509 -req -in {owner}.csr -CA authority.pem -CAkey authority.key -CAcreateserial "
                     f"-days 30 -out {owner}.pem -extfile {owner}.ext")  # fmt: skip

    def revoke(self, *owners: str) -> None:
        for owner in owners:
            self.openssl(f"ca -config ca.conf -revoke {owner}.pem")
        self.openssl("ca -config ca.conf -gencrl -out revoked.pem")

    def proof(self, owner: str) -> list[str]:
        key = self.place / f"{owner}.key"
        key.chmod(0o600)
        return [
            f"--certificate={self.place / owner}.pem",
            f"--key={key}",
            f"--authority={self.place}/authority.pem",
        ]


class Proven(Launcher):
    """Each node comes with a certificate of its own."""

    def command(self, worker: list[str], **how: object) -> list[str]:
        # The options of node 0, "--", those of node 1.
        options, node = list(how["options"]), how["node"]
        cut = options.index("--")
        how["options"] = ["-v", *(options[cut + 1 :] if node else options[:cut])]
        return super().command(worker, **how)


@pytest.fixture
def job(tmp_path: Path) -> Authority:
    place = tmp_path / "authority"
    place.mkdir()
    made = Authority(place)
    made.issue("node-0", "node-0", "troupe-master")
    made.issue("node-1", "node-1")
    made.issue("looker", "troupe-shell")
    made.issue("admin", "troupe-admin")
    return made


@pytest.fixture
def nodes(launcher: Launcher, shell: Start, job: Authority, tmp_path: Path) -> Start:
    def start(of_node_0: list[str], of_node_1: list[str]) -> Run:
        who = Proven(launcher.name, launcher.program)
        return shell(TRAINS, tmp_path, launcher=who, nodes=2, port=free_port(),
                     options=[*of_node_0, "--", *of_node_1])  # fmt: skip

    return start


def looked(
    launcher: Launcher, run: Run, proof: list[str], *verb: str
) -> subprocess.CompletedProcess[str]:
    program = Path(launcher.program).with_name("actor-shell")
    words = [program, *proof, f"--master=127.0.0.1:{run.port}", *(verb or ["tree"])]
    return subprocess.run(words, capture_output=True, text=True, timeout=WITHIN)


def test_two_nodes_train_and_a_shell_looks(
    launcher: Launcher, nodes: Start, job: Authority, tmp_path: Path
) -> None:
    run = nodes(job.proof("node-0"), job.proof("node-1"))
    until(lambda: len(list(tmp_path.glob("rank-*"))) == 2, WITHIN, "two workers")
    seen = looked(launcher, run, job.proof("looker"))
    assert seen.returncode == 0, seen.stderr
    for node in ("node-0", "node-1"):
        assert re.search(rf" {node} +running .*\n.* node_supervisor +running ", seen.stdout), seen.stdout
    # A node's certificate makes its owner that node, and nothing else.
    seen = looked(launcher, run, job.proof("node-1"))
    assert seen.returncode == 1
    assert "only one that carries the name troupe-shell may look at the job" in seen.stderr
    # To look is not to change; the right to change is one to look as well.
    seen = looked(launcher, run, job.proof("looker"), "scale", "2:3")
    assert seen.returncode == 1
    assert "only one that carries the name troupe-admin may change the job" in seen.stderr
    seen = looked(launcher, run, job.proof("admin"), "scale", "2:3")
    assert seen.returncode == 0, seen.stderr
    assert looked(launcher, run, job.proof("admin")).returncode == 0
    (tmp_path / "enough").touch()
    assert run.wait(WITHIN) == [0, 0], run.err()


def test_another_nodes_name_is_refused(nodes: Start, job: Authority) -> None:
    job.issue("stranger", "node-7", "troupe-shell")
    for owner in ("stranger", "looker"):
        run = nodes(job.proof("node-0"), job.proof(owner))
        assert run.launchers[1].wait(WITHIN) == 1
        assert 'not for a node named "node-1"' in run.err(1)
        assert 'not for a node named "node-1"' in run.err(0)
        run.__exit__()


def test_a_revoked_certificate_is_refused(nodes: Start, job: Authority, tmp_path: Path) -> None:
    job.revoke()
    listed = [f"--crl={job.place}/revoked.pem"]
    run = nodes([*job.proof("node-0"), *listed], [*job.proof("node-1"), *listed])
    (tmp_path / "enough").touch()
    assert run.wait(WITHIN) == [0, 0], run.err()
    job.revoke("node-1")
    run = nodes([*job.proof("node-0"), *listed], [*job.proof("node-1"), *listed])
    assert run.launchers[1].wait(WITHIN) == 1
    assert "certificate revoked" in run.err(1)
    assert "certificate revoked" in run.err(0)
