"""The rank of this process in its job, and how all ranks come to agree."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from .library import CheckpointError
from .memory import is_forked, is_of_another_process

log = logging.getLogger("troupe.checkpoint")

COUNTS_OF_A_TERM = 4096  # runtime/base/generations.hpp
WAIT_TOLD_AFTER, LOOK_EVERY = 30.0, 5.0  # seconds
TEXT_BYTES = 512  # of a reason that is told to other ranks


@dataclass(frozen=True)
class Rank:
    """A process's place, which it has for life."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    node: int = 0  # its place among the nodes
    generation: int = 0  # of the workers; grows from each start of them to the next
    launched: bool = False  # by actor-launcher

    @classmethod
    def of_this_process(cls) -> Rank:
        """From torch.distributed where that is initialised, and the variables that launchers set; else alone, as is a program that a
        worker has started and a child that it has forked: their environment is the worker's, and they are not.

        Raises CheckpointError for a job of several ranks whose torch.distributed is not initialised yet.
        """
        if is_of_another_process():
            return cls._beside_a_worker()
        rank, world_size = number("RANK", 0), number("WORLD_SIZE", 1)
        if dist.is_available() and dist.is_initialized():
            rank, world_size = dist.get_rank(), dist.get_world_size()
        elif world_size > 1:
            raise CheckpointError(
                f"this is one of {world_size} ranks and they have to agree on checkpoints: "
                "call torch.distributed.init_process_group first"
            )
        return cls(
            rank,
            number("LOCAL_RANK", rank),  # without a launcher all ranks are on one machine
            world_size,
            number("GROUP_RANK", 0),
            number("TROUPE_GENERATION", 0),
            "TROUPE_GENERATION" in os.environ,
        )


    @classmethod
    def _beside_a_worker(cls) -> Rank:
        log.info("this program was started by a worker of actor-launcher: it saves and loads as one that no launcher has started")
        if is_forked() or not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_rank(), dist.get_world_size())


def number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return otherwise
    if not text.isdecimal():
        raise CheckpointError(f"{variable} is '{text}', which is no number")
    return int(text)


def begun_now() -> int:
    """A generation for processes that no master has numbered: later than those of all masters and jobs before, by this
    machine's clock (runtime/base/generations.hpp)."""
    return (time.time_ns() // 1_000_000 - 1) * COUNTS_OF_A_TERM + 1


class Agreement:
    """What all ranks say to each other, over a gloo group of their own. Every method but `pass_on` is a collective call: it
    returns when all ranks have made it. Raises CheckpointError if one of them has gone, or did not come within `patience` seconds.
    """

    def __init__(self, me: Rank, patience: float):
        self.me = me
        self.patience = timedelta(seconds=patience)
        self.group = None
        self._closed = threading.Event()
        self._waiting_since: float | None = None
        if me.world_size > 1:
            threading.Thread(target=self._tell_of_waiting, daemon=True).start()
            self.group = dist.new_group(backend="gloo", timeout=self.patience)
            # A thread of the group may still be letting go of the last call's tensors. It needs the interpreter's lock
            # for that, and aborts the process if the interpreter is being torn down (pytorch/pytorch#117762).
            self._process = os.getpid()
            atexit.register(self._close_at_exit)

    def _tell_of_waiting(self) -> None:
        """One line for each call in which this rank waits for long: by then a rank may have left it out, in an `if rank == 0`."""
        told = None
        while not self._closed.wait(LOOK_EVERY):
            since = self._waiting_since
            if since is None or since == told or time.monotonic() - since < WAIT_TOLD_AFTER:
                continue
            told = since
            log.warning(
                "rank %d has waited %g s for other ranks in a call that all have to make in the same order: "
                "a Checkpointer's constructor, save_checkpoint, load_checkpoint or wait_latest_…. Is there one inside an "
                "`if rank == 0`? It goes on waiting, at most %g min",
                self.me.rank, WAIT_TOLD_AFTER, self.patience.total_seconds() / 60,
            )  # fmt: skip

    def close(self) -> None:
        """Not collective. Ends the group's threads."""
        self._closed.set()
        if self.group is not None:
            atexit.unregister(self._close_at_exit)
        if self.group is not None and dist.is_initialized():
            with contextlib.suppress(ValueError):  # the script has destroyed all groups and made others
                dist.destroy_process_group(self.group)
        self.group = None

    def _close_at_exit(self) -> None:
        if os.getpid() == self._process:  # a forked child has none of the group's threads and would wait for them
            self.close()

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Of every rank its numbers, of which all give as many. Exact for 64 bits with a sign."""
        mine = torch.tensor(numbers, dtype=torch.int64)
        return [theirs.tolist() for theirs in self._gathered(mine)]

    def texts(self, text: str) -> list[str]:
        """Of every rank its text, cut to 512 bytes."""
        mine = torch.zeros(TEXT_BYTES, dtype=torch.uint8)
        encoded = text.encode()[:TEXT_BYTES]
        mine[: len(encoded)] = torch.tensor(list(encoded), dtype=torch.uint8)
        return [
            bytes(theirs.tolist()).rstrip(b"\0").decode(errors="replace")
            for theirs in self._gathered(mine)
        ]

    def blobs(self, mine: bytes) -> list[bytes]:
        """Of every rank its bytes, few enough that every rank may have those of all."""
        sizes = [row[0] for row in self.gather([len(mine)])]
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        if mine:
            padded[: len(mine)] = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        rows = self._gathered(padded) if len(padded) else [padded] * len(sizes)
        return [row[:size].numpy().tobytes() for row, size in zip(rows, sizes, strict=True)]

    def objections(self, reason: str) -> list[str]:
        """The reasons of all ranks that have one, each with its rank's number; one gather if no rank has one."""
        if not any(flag for [flag] in self.gather([bool(reason)])):
            return []
        return self.spoken(reason)

    def spoken(self, reason: str) -> list[str]:
        """As `objections`, for when it is known that a rank has one."""
        return [f"rank {rank}: {text}" for rank, text in enumerate(self.texts(reason)) if text]

    def require(self, reason: str) -> None:
        """Raises CheckpointError at all ranks if any has a reason."""
        if found := self.objections(reason):
            raise CheckpointError(summary(found))

    def said_by_first(self, text: str) -> str:
        """Rank 0's, at all ranks. A path may be any bytes."""
        return self.blobs(text.encode(errors="surrogateescape"))[0].decode(errors="surrogateescape")

    def together(self, what: Callable[[], None]) -> None:
        """Each rank does it, and none goes on before all have. Raises CheckpointError at all ranks, with file and reason, for an OSError
        at any."""
        reason = ""
        try:
            what()
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}"
        self.require(reason)

    def send(self, memory: torch.Tensor | None, source: int, to: Sequence[int], piece: int) -> None:
        """From rank `source` to some others, `piece` bytes at once: the source and those ranks give memory of the same size, the other ranks give none."""
        with self._told():
            few = dist.new_group(sorted([source, *to]), backend="gloo", timeout=self.patience)
            if memory is not None:
                for part in memory.split(piece):
                    dist.broadcast(part, src=source, group=few)
        self.gather([0])  # no rank closes its end before all have read theirs
        if memory is not None:
            dist.destroy_process_group(few)

    def pass_on(self, part: torch.Tensor, source: int, to: int) -> None:
        """From one rank to another, which alone call it and give memory of the same size."""
        with self._told():
            if self.me.rank == source:
                dist.send(part, dst=to, group=self.group)
            else:
                dist.recv(part, src=source, group=self.group)

    def exchange(
        self,
        outgoing: Sequence[tuple[torch.Tensor, int]],
        incoming: Sequence[tuple[torch.Tensor, int]],
        piece: int,
    ) -> None:
        """Memory to, and into memory from, other ranks, all at once and `piece` elements at a time. What one rank has going out
        to another is of the same size there, and only one at a time goes from a rank to another."""
        longest = max((memory.numel() for memory, _ in (*outgoing, *incoming)), default=0)
        with self._told():
            for begin in range(0, longest, piece):
                end = begin + piece
                under_way = [
                    dist.isend(memory[begin:end], dst=to, group=self.group)
                    for memory, to in outgoing
                    if begin < memory.numel()
                ] + [
                    dist.irecv(memory[begin:end], src=source, group=self.group)
                    for memory, source in incoming
                    if begin < memory.numel()
                ]
                for one in under_way:
                    one.wait()

    def _gathered(self, mine: torch.Tensor) -> list[torch.Tensor]:
        if self.group is None:
            return [mine]
        theirs = [torch.empty_like(mine) for _ in range(self.me.world_size)]
        with self._told():
            dist.all_gather(theirs, mine, group=self.group)
        return theirs

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What a failed conversation of the ranks means, in one line."""
        self._waiting_since = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            raise CheckpointError(
                f"rank {self.me.rank}: the ranks could not agree, since one has ended or has not made the same call: "
                + str(error).partition("\n")[0]
            ) from error
        finally:
            self._waiting_since = None


def tell_backend(asked_for: str) -> None:
    """DLRover's `comm_backend`: ranks agree through gloo, whatever it says."""
    if asked_for not in ("", "gloo"):
        log.info("comm_backend: ranks agree on checkpoints through gloo, not %s", asked_for)


def summary(reasons: Sequence[str], most: int = 3) -> str:
    """One line, however many ranks there are."""
    more = f"; and {len(reasons) - most} more" if len(reasons) > most else ""
    return "; ".join(reasons[:most]) + more
