"""Checkpoints of DistributedDataParallel: one state, the same at all ranks, or one for each of several shards."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from .checkpointer import Checkpointer
from .copies import Redundancy
from .ranks import tell_backend
from .retention import DeletionStrategy


class DdpCheckpointer(Checkpointer):
    """Keeps states in `<checkpoint_dir>/<step>/rank_<rank>.pt`. The arguments before the star are those of DLRover's.

    `comm_backend`: ranks agree through gloo, whatever is said here. `deletion_strategy`: KeepLatestStep or KeepStepInterval;
    without one all steps are kept. `save_timeout`: seconds in which all shards of a step have to be written.
    `replica_count`: the shards of a step are in the memory of so many nodes each, up to 5: one less of a group of so many
    nodes may be lost. `parity`: instead of copies, sums: 1 (XOR) or 2 (Reed-Solomon) of each `parity_group` nodes may be
    lost, and a node holds parity / (parity_group - parity) of a shard's bytes for the others. A state with one shard is in the
    memory of every node anyway. `images`: how many are kept in memory, 2 to 4. `copy_on_write`: a save returns
    when memory is protected, and it is copied behind that. `optimizers`: with tensors on devices, see Checkpointer, as for the
    rest.
    """

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike,
        local_shard_num: int = 1,
        global_shard_num: int = 1,
        comm_backend: str = "",
        deletion_strategy: DeletionStrategy | None = None,
        save_timeout: float = 600,
        replica_count: int = 0,
        *,
        images: int = 2,
        copy_on_write: bool = False,
        parity: int = 0,
        parity_group: int = 8,
        optimizers: Sequence[torch.optim.Optimizer] = (),
    ):
        tell_backend(comm_backend)
        super().__init__(
            checkpoint_dir,
            local_shard_num=local_shard_num,
            global_shard_num=global_shard_num,
            deletion_strategy=deletion_strategy,
            save_timeout=save_timeout,
            images=images,
            copy_on_write=copy_on_write,
            redundancy=Redundancy.chosen(replica_count, parity, parity_group),
            optimizers=optimizers,
        )

    def default_file(self, step: int) -> tuple[str, str]:
        return str(step), f"rank_{self.me.rank}.pt"
