"""Tensors that are not in main memory: how they come into an image, behind the call and in the order of their device's work.

Devices are used through PyTorch's own module of each (`torch.cuda`, which is ROCm's as well, `torch.xpu`, …), of which streams and events
are needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import torch

from . import library
from .files import first_line
from .library import CheckpointError

log = logging.getLogger("troupe.checkpoint")

PATIENCE = 1800.0  # seconds; a device that delivers nothing for so long does not any more
PERIOD = 0.0005  # seconds, between two questions to a device
HOST = "cpu"
WITHOUT_DATA = "meta"
PORTABLE = 1  # cudaHostRegisterPortable: pinned for all devices of the process


@dataclass
class Left:
    """A storage of a device, and its place in the image."""

    storage: torch.UntypedStorage
    address: int


def is_elsewhere(storage: torch.UntypedStorage) -> bool:
    """Not in main memory. Raises CheckpointError for tensors that have no data."""
    if storage.device.type == WITHOUT_DATA:
        raise CheckpointError(f"a tensor is on {storage.device}: it has no data to be saved")
    return storage.device.type != HOST


def module_of(device: torch.device) -> Any:
    """Raises CheckpointError for a device whose work is not in streams: there is no way to learn when a copy is done."""
    module = getattr(torch, device.type, None)
    if not all(hasattr(module, name) for name in ("Stream", "current_stream", "stream", "device")):
        raise CheckpointError(
            f"a tensor is on {device}, whose torch.{device.type} has no streams: save a copy of it in main memory"
        )
    return module


# ---- Pinning ----


class CudaPinning:
    """Of CUDA and ROCm. `index`: of any of this process's devices."""

    def __init__(self, index: int):
        self._index = index
        self._runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]

    def pin(self, address: int, count: int) -> str:
        """Why it was refused, or nothing."""
        with torch.cuda.device(self._index):  # else a thread's first call would take the first one
            code = int(self._runtime.cudaHostRegister(address, count, PORTABLE))
            return str(torch.cuda.CudaError(code)) if code else ""

    def unpin(self, address: int) -> None:
        with torch.cuda.device(self._index):
            self._runtime.cudaHostUnregister(address)


PINNINGS: dict[str, Callable[[int], Any]] = {"cuda": CudaPinning}


class Pinning:
    """What the native library calls, for as long as this lives."""

    def __init__(self, own: Any):
        self.own = own
        self.pin = library.PIN(self._pin)
        self.unpin = library.UNPIN(self._unpin)

    @classmethod
    def of(cls, device: torch.device) -> Pinning | None:
        """None, and logged, for a device whose driver we do not know: its copies take longer."""
        if how := PINNINGS.get(device.type):
            return cls(how(device.index or 0))
        log.warning("memory is not pinned for %s devices: copies from there take longer", device.type)
        return None

    def _pin(self, address: int, count: int) -> int:
        try:
            refusal = self.own.pin(address, count)
        except Exception as error:
            refusal = f"{type(error).__name__}: {error}"
        if refusal:
            log.warning(
                "%d MiB of memory could not be pinned, so that copies from devices take longer: %s",
                count >> 20, refusal,
            )  # fmt: skip
        return 1 if refusal else 0

    def _unpin(self, address: int) -> None:
        with contextlib.suppress(Exception):  # the driver may have ended before the memory does
            self.own.unpin(address)


# ---- Copies ----


def place_of(storage: torch.UntypedStorage) -> tuple[torch.device, int]:
    """The same for all views of it."""
    return storage.device, storage.data_ptr()


class Devices:
    """The streams on which images are filled. `optimizers`: what they alone change may be copied until their next step."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer] = ()):
        self._optimizers = tuple(optimizers)
        self._streams: dict[torch.device, Any] = {}
        self._before_step: list[tuple[torch.device, Any]] = []  # events
        self._hooks = [
            optimizer.register_step_pre_hook(lambda *_: self._wait_before_step())
            for optimizer in self._optimizers
        ]

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def begin(self, left: Sequence[Left], pinned_end: int) -> list[Any]:
        """Queues the copies. The events of their ends: whatever is queued on the current streams from now on comes after
        them, but for what only the optimizers change: of that, the next step does.

        Memory from `pinned_end` on is not pinned. The storages must stay until those events have come. Raises what PyTorch
        raises; then nothing is being copied any more.
        """
        later = self._of_optimizers()
        self._before_step = []  # of the save before, which has ended
        ends: list[Any] = []
        try:
            for device in {one.storage.device for one in left}:
                here = [one for one in left if one.storage.device == device]
                ends += self._begin_at(
                    device,
                    [one for one in here if place_of(one.storage) not in later],
                    [one for one in here if place_of(one.storage) in later],
                    pinned_end,
                )
        except BaseException:
            for stream in self._streams.values():
                with contextlib.suppress(Exception):  # of a device that has failed
                    stream.synchronize()
            raise
        return ends

    def _begin_at(
        self, device: torch.device, now: list[Left], later: list[Left], pinned_end: int
    ) -> Iterator[Any]:
        module = module_of(device)
        with module.device(device):
            stream = self._streams.get(device)
            if stream is None:
                stream = self._streams[device] = module.Stream(device)
            stream.wait_stream(module.current_stream(device))
            for some in (now, later):
                if not some:
                    continue
                with module.stream(stream):
                    for one in some:
                        copy(one, pinned_end)
                end = stream.record_event()
                if some is now:
                    module.current_stream(device).wait_event(end)
                else:
                    self._before_step.append((device, end))
                yield end

    def _of_optimizers(self) -> set[tuple[torch.device, int]]:
        """The places of their storages."""
        tensors: list[Any] = []
        for optimizer in self._optimizers:
            tensors += [one for group in optimizer.param_groups for one in group["params"]]
            for state in optimizer.state.values():
                tensors += [one for one in state.values() if isinstance(one, torch.Tensor)]
        return {place_of(one.untyped_storage()) for one in tensors}

    def _wait_before_step(self) -> None:
        waits, self._before_step = self._before_step, []
        for device, event in waits:
            module_of(device).current_stream(device).wait_event(event)


def copy(one: Left, pinned_end: int) -> None:
    """Queued on the current stream of the storage's device."""
    device, count = one.storage.device, one.storage.nbytes()
    source = torch.empty(0, dtype=torch.uint8, device=device).set_(one.storage)
    memory = (library.Bytes * count).from_address(one.address)
    into = torch.frombuffer(memory, dtype=torch.uint8)
    pinned = min(max(pinned_end - one.address, 0), count)
    for begin, end in ((0, pinned), (pinned, count)):  # no driver copies across the end
        if begin < end:
            into[begin:end].copy_(source[begin:end], non_blocking=True)


class Arrival:
    """Waits for copies in a thread of its own, and says `how` they ended: "" or why not."""

    def __init__(self, ends: Iterable[Any], how: Callable[[str], None]):
        self._ends = list(ends)
        self._how = how
        self._thread = threading.Thread(target=self._wait, name="troupe-arrival", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        reason = ""
        for end in self._ends:
            try:
                while not end.query():
                    time.sleep(PERIOD)
            except Exception as error:  # the device failed: it does not write there any more
                reason = f"the device failed while it was copied: {first_line(error)}"
        self._how(reason)

    def wait(self, within: float = PATIENCE) -> None:
        """Raises CheckpointError if they have not ended within so many seconds."""
        self._thread.join(within)
        if self._thread.is_alive():
            raise CheckpointError(
                f"a device has not copied the last save's tensors within {within:g} s: its work does not go on"
            )


def left_of(storages: Sequence[torch.UntypedStorage], places: ctypes.Array) -> list[Left]:
    if not bytes(places).strip(b"\0"):
        return []
    return [Left(*one) for one in compress(zip(storages, places, strict=True), places)]
