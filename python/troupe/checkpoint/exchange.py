"""Files that ranks hold in memory: which there are, and how they come to ranks that need those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from .ranks import Agreement
from .recovery import PIECE

NAME_BYTES_MAX = 1 << 20  # of the names of one rank's files


def exchanged(
    ranks: Agreement, own: Mapping[str, memoryview], needs: Callable[[dict[str, int]], set[str]]
) -> tuple[dict[str, int], dict[str, memoryview]]:
    """All ranks' files by name, each with the rank that holds it, in the order of names; and this rank's files with those of others
    that it `needs`. Collective."""
    owners, sizes = listed(ranks, own)
    mine = needs(owners) - set(own)
    wanted = ranks.gather([name in mine for name in owners]) if owners else []
    files = dict(own)
    for i, (name, owner) in enumerate(owners.items()):
        to = [rank for rank, row in enumerate(wanted) if row[i]]
        if not to:
            continue
        memory = None
        if ranks.me.rank == owner:
            memory = torch.frombuffer(own[name], dtype=torch.uint8)
        elif name in mine:
            memory = torch.empty(sizes[name], dtype=torch.uint8)
            files[name] = memoryview(memory.numpy())
        ranks.send(memory, owner, to, PIECE)
    return owners, files


def listed(ranks: Agreement, own: Mapping[str, memoryview]) -> tuple[dict[str, int], dict[str, int]]:
    """Of each file, in the order of names, the rank that holds it, and its bytes. Collective."""
    text = "\0".join(f"{len(content)}\t{name}" for name, content in own.items()).encode(errors="surrogateescape")
    if len(text) > NAME_BYTES_MAX:
        raise ValueError(f"the names of {len(own)} files have {len(text)} bytes, above {NAME_BYTES_MAX}")
    found: dict[str, tuple[int, int]] = {}
    for rank, row in enumerate(ranks.blobs(text)):
        for one in filter(None, row.decode(errors="surrogateescape").split("\0")):
            size, _, name = one.partition("\t")
            found[name] = rank, int(size)
    names = sorted(found)
    return {name: found[name][0] for name in names}, {name: found[name][1] for name in names}
