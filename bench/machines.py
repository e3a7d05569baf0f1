"""Several machines on this one: network namespaces, each with one cable to a common switch.

Only the network is apart: file system and processor are this machine's, as are the process numbers.
Needs root. What is made here is gone when the context is left, processes excepted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

CARD = "eth0"  # each machine's network card
NOBODY = "02:00:00:00:00:01"  # a hardware address that no card has
_networks = itertools.count()


def _sh(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class Network:
    """Machines 0, 1, … at 10.213.0.1, 10.213.0.2, …"""

    def __init__(self, machines: int, hosts: Path) -> None:
        """`hosts` is what all machines see as /etc/hosts; changes of its content are seen at once."""
        prefix = f"troupe-{os.getpid()}-{next(_networks)}"
        self.switch = f"{prefix}-switch"
        self.machines = [f"{prefix}-{number}" for number in range(machines)]
        self.hosts = hosts

    def address(self, machine: int) -> str:
        return f"10.213.0.{machine + 1}"

    def name(self, **machines: int) -> None:
        """Gives machines names; an earlier name is forgotten."""
        lines = [f"{self.address(at)} {name}\n" for name, at in machines.items()]
        self.hosts.write_text("".join(["127.0.0.1 localhost\n", *lines]))

    def command(self, machine: int, line: Sequence[str]) -> list[str]:
        """The same command line, on that machine."""
        # `ip netns exec` gives the command mounts of its own, so this hides the file for that command only.
        shell = f'mount --bind "{self.hosts}" /etc/hosts && exec "$@"'
        return ["ip", "netns", "exec", self.machines[machine], "sh", "-c", shell, "sh", *line]

    def connect(self) -> None:
        _sh("ip", "netns", "add", self.switch)
        _sh(*f"ip -n {self.switch} link add switch type bridge forward_delay 0".split())
        _sh(*f"ip -n {self.switch} link set switch up".split())
        for number, machine in enumerate(self.machines):
            _sh("ip", "netns", "add", machine)
            card = f"ip -n {machine} link add {CARD} type veth"
            _sh(*f"{card} peer name port-{number} netns {self.switch}".split())
            _sh(*f"ip -n {self.switch} link set port-{number} master switch up".split())
            _sh(*f"ip -n {machine} addr add {self.address(number)}/24 dev {CARD}".split())
            _sh(*f"ip -n {machine} link set {CARD} up".split())
            _sh(*f"ip -n {machine} link set lo up".split())

    def cut_off(self, machine: int) -> None:
        """Frames to and from it are lost without a word; its card still says that it is connected."""
        _sh(*f"bridge -n {self.switch} link set dev port-{machine} state 0".split())

    def reconnect(self, machine: int) -> None:
        _sh(*f"bridge -n {self.switch} link set dev port-{machine} state 3".split())

    def mute(self, machine: int, towards: int) -> None:
        """What `machine` sends to `towards` is lost; the other direction works."""
        other = f"{self.address(towards)} lladdr {NOBODY} nud permanent"
        _sh(*f"ip -n {self.machines[machine]} neigh replace {other} dev {CARD}".split())

    def unmute(self, machine: int, towards: int) -> None:
        _sh(*f"ip -n {self.machines[machine]} neigh del {self.address(towards)} dev {CARD}".split())

    def take_down(self) -> None:
        for name in [*self.machines, self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextlib.contextmanager
def network(machines: int, hosts: Path) -> Iterator[Network]:
    made = Network(machines, hosts)
    try:
        made.name()
        made.connect()
        yield made
    finally:
        made.take_down()
