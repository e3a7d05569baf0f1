"""torch.fake: what torch.cuda is to CUDA, and what a test steers the device with.

    hold(device)              the streams that are not the default one stop before their next entry
    go(device)                they go on
    entries(device)           how many copies, events, waits and releases of memory are queued or under way, in all
                              streams
    until_waited_for(device)  returns when some thread computes or copies on the device and so waits for a stream of it
    fail_next_copy()          the next copy that is enqueued fails: the event recorded after it raises RuntimeError from
                              then on; without an event, the next wait for its stream is told once
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

Stream = torch.Stream


class Event(torch.Event):
    def __new__(cls, **options: bool) -> Event:
        return super().__new__(cls, device="fake", **options)


def device_count() -> int:
    return 2


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def current_device() -> int:
    return torch.accelerator.current_device_index()


def set_device(device: torch.types.Device) -> None:
    torch.accelerator.set_device_index(_index(device))


def synchronize(device: torch.types.Device = None) -> None:
    torch.accelerator.synchronize(_index(device))


def current_stream(device: torch.types.Device = None) -> torch.Stream:
    return torch.accelerator.current_stream(_index(device))


def default_stream(device: torch.types.Device = None) -> torch.Stream:
    return torch.Stream(stream_id=0, device_index=_index(device), device_type=_type())


def set_stream(stream: torch.Stream) -> None:
    torch.accelerator.set_stream(stream)


@contextlib.contextmanager
def device(index: torch.types.Device) -> Iterator[None]:
    with torch.accelerator.device_index(_index(index)):
        yield


def stream(chosen: torch.Stream | None) -> contextlib.AbstractContextManager:
    return chosen or contextlib.nullcontext()


def hold(device: torch.types.Device = None) -> None:
    torch.ops.fake.hold(_index(device), True)


def go(device: torch.types.Device = None) -> None:
    torch.ops.fake.hold(_index(device), False)


def entries(device: torch.types.Device = None) -> int:
    return torch.ops.fake.entries(_index(device))


def until_waited_for(device: torch.types.Device = None) -> None:
    torch.ops.fake.until_waited_for(_index(device))


def fail_next_copy() -> None:
    torch.ops.fake.fail_next_copy()


def manual_seed_all(seed: int) -> None:
    """Random numbers come from the CPU's generator, which torch.manual_seed seeds itself."""


def _is_in_bad_fork() -> bool:
    return False


def _index(device: torch.types.Device) -> int:
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return current_device() if index is None else index


def _type() -> int:
    return int(torch._C._autograd.DeviceType.PrivateUse1)
