"""A few ranks of one job as forks of a process that has torch, with the memory that a launcher would give them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from troupe.checkpoint import Arena
from troupe.checkpoint.memory import OF_NODE, OF_OTHERS, VARIABLE

PATIENCE = 60

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["torch", "torch.distributed", "troupe.checkpoint"])


class Job:
    """`nodes`: how many local ranks each has. Memory stays from generation to generation, but for nodes that are lost."""

    def __init__(self, directory: Path, nodes: Sequence[int], launched: bool = True):
        self.directory = directory
        self.nodes = list(nodes)
        self.launched = launched
        self.generation = 0
        self.memory = [[Arena() for _ in range(procs)] for procs in nodes]
        self.others: dict[int, Arena] = {}  # of local rank 0 of a node

    def loses(self, node: int) -> None:
        for arena in self.memory[node]:
            arena.close()
        self.memory[node] = [Arena() for _ in range(self.nodes[node])]
        if others := self.others.pop(node, None):
            others.close()

    def close(self) -> None:
        for node in range(len(self.nodes)):
            for arena in self.memory[node]:
                arena.close()
        for others in self.others.values():
            others.close()

    def run(self, function: Callable[..., Any], *arguments: object) -> list[Any]:
        """`function(rank, *arguments)` at all ranks: what they returned, by rank. Raises the first error."""
        self.generation += 1
        world, started = sum(self.nodes), []
        for node, procs in enumerate(self.nodes):
            for local in range(procs):
                environment = {
                    "RANK": len(started),
                    "WORLD_SIZE": world,
                    "LOCAL_RANK": local,
                    "LOCAL_WORLD_SIZE": procs,
                    "GROUP_RANK": node,
                }
                memory = {}
                if self.launched:
                    environment["TROUPE_GENERATION"] = self.generation
                    memory[VARIABLE] = duplicates(self.memory[node][local])
                if self.launched and local > 0:
                    memory[OF_NODE] = duplicates(self.memory[node][0])
                if local == 0 and node in self.others:
                    memory[OF_OTHERS] = duplicates(self.others[node])
                meeting = f"file://{self.directory}/meeting-{self.generation}"
                ours, theirs = context.Pipe()
                what = (theirs, environment, memory, meeting, function, arguments)
                process = context.Process(target=live, args=what)
                process.start()
                theirs.close()
                started.append((process, ours))
        try:
            return [told(process, answer) for process, answer in started]
        finally:
            for process, _ in started:
                process.kill()
                process.join()


def duplicates(arena: Arena) -> list[Any]:
    return [DupFd(descriptor) for descriptor in arena.descriptors]


def told(process: Any, answer: Connection) -> Any:
    if not answer.poll(PATIENCE):
        raise AssertionError("a rank says nothing")
    try:
        good, what = answer.recv()
    except EOFError:
        process.join()
        return process.exitcode
    if not good:
        raise AssertionError(what)
    return what


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


said = Lines()  # by troupe.checkpoint in this process


def live(
    answer: Connection,
    environment: dict[str, int],
    memory: dict[str, list[Any]],
    meeting: str,
    function: Callable[..., Any],
    arguments: Sequence[object],
) -> None:
    import torch.distributed as dist

    os.environ.update({name: str(value) for name, value in environment.items()})
    for name, descriptors in memory.items():
        os.environ[name] = ",".join(str(d.detach()) for d in descriptors)
    logger = logging.getLogger("troupe.checkpoint")
    logger.setLevel(logging.INFO)
    logger.addHandler(said)
    rank, world = environment["RANK"], environment["WORLD_SIZE"]
    try:
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
        answer.send((True, function(rank, *arguments)))
    except BaseException:
        answer.send((False, traceback.format_exc()))
    answer.recv()  # a rank leaves only when all have finished: that ends this process
