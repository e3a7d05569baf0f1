"""Small disks that can be filled, frozen, broken, replaced, and lose what was not made durable. Needs root.

A disk is a file with ext4 in it, mounted by a loop device. What a disk does by itself is done to its file system: that
hits all that use it, io_uring included. Errors and slowness for the programs of one machine alone come from a library
that is loaded into them (disk_trouble.c), as long as a file says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
import time
from pathlib import Path

EXT4_IOC_SHUTDOWN = 0x8004587D
WITHOUT_FLUSH = 2  # what only the cache has is lost
OF_SOURCE = Path(__file__).with_name("disk_trouble.c")


def sh(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


class Disk:
    """Mounted at `place` as long as the context lasts."""

    def __init__(self, place: Path, mib: int) -> None:
        self.place, self.mib = place, mib
        self.number = 0  # of the file; see `restore`
        self.ballast = place / "ballast"
        self.frozen = False

    @property
    def image(self) -> Path:
        return self.place.with_suffix(f".{self.number}.img")

    def __enter__(self) -> Disk:
        self.place.mkdir()
        self._make()
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        subprocess.run(["umount", "-l", str(self.place)], capture_output=True)

    def _make(self) -> None:
        with open(self.image, "wb") as image:
            image.truncate(self.mib << 20)
        sh("mkfs.ext4", "-q", "-m", "0", "-E", "root_owner=0:0", self.image)

    def _mount(self) -> None:
        sh("mount", "-o", "loop", self.image, self.place)
        (self.place / "checkpoints").mkdir(exist_ok=True)

    def free(self) -> int:
        found = os.statvfs(self.place)
        return found.f_bavail * found.f_frsize

    def heal(self) -> None:
        """Undoes what can be undone while it is used."""
        if self.frozen:
            subprocess.run(["fsfreeze", "-u", str(self.place)], capture_output=True)
            self.frozen = False
        if os.statvfs(self.place).f_flag & os.ST_RDONLY:
            subprocess.run(["mount", "-o", "remount,rw", str(self.place)], capture_output=True)
        with contextlib.suppress(OSError):
            self.ballast.unlink(missing_ok=True)

    def fill(self, but: int) -> None:
        """Leaves so many bytes."""
        taken = max(4096, self.free() - but)
        subprocess.run(["fallocate", "-l", str(taken), str(self.ballast)], capture_output=True)

    def freeze(self) -> None:
        """From now on writers wait, without a bound, and cannot even be killed."""
        sh("fsfreeze", "-f", self.place)
        self.frozen = True

    def read_only(self, within: float = 3) -> bool:
        """Only possible at a moment when no file is open for writing."""
        end = time.monotonic() + within
        while subprocess.run(["mount", "-o", "remount,ro", str(self.place)], capture_output=True).returncode:
            if time.monotonic() > end:
                return False
            time.sleep(0.003)
        return True

    def cut_power(self) -> None:
        """Whatever is not durable is lost; until `restore` there are but errors."""
        self.heal()
        place = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(place)

    def restore(self, *, empty: bool = False) -> None:
        """Once its processes have ended: as after a boot, or a new disk in its place.

        The file system that was cut off may still be mounted elsewhere, since each machine's mount namespace began as a copy
        of ours, and stays as it is there. So this is another, of what the old one had written.
        """
        sh("umount", "-l", self.place)
        before = self.image
        self.number += 1
        if empty:
            self._make()
        else:
            sh("cp", "--sparse=always", before, self.image)
        before.unlink()
        self._mount()


class Troubles:
    """The library, and for each machine the file that says what it does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.library = directory / "disk_trouble.so"
        sh("cc", "-O1", "-shared", "-fPIC", "-o", self.library, OF_SOURCE, "-ldl")

    def _file(self, machine: int) -> Path:
        return self.directory / f"trouble-{machine}"

    def environment(self, machine: int, place: Path) -> dict[str, str]:
        told = {"CHAOS_DISK_TROUBLE": str(self._file(machine)), "CHAOS_DISK_PLACE": str(place)}
        return {"LD_PRELOAD": str(self.library), **told}

    def make(self, machine: int, what: str) -> None:
        """`error N`: each Nth operation fails; `slow MS`: each takes so much longer."""
        part = self._file(machine).with_suffix(".part")
        part.write_text(what)
        part.rename(self._file(machine))

    def end(self, machine: int) -> None:
        self._file(machine).unlink(missing_ok=True)
