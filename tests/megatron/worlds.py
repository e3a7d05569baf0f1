"""What a world makes of a step that another has saved.

    worlds.py save|load|theirs|theirs_of_theirs PLACE FORMAT TENSOR_PARALLEL DISTRIBUTED

"save" trains, and saves step 5 to the disk, by Troupe and by Megatron itself, and then step 6 to memory alone; "load" loads by Troupe;
"theirs" loads what Troupe has written by Megatron alone, "theirs_of_theirs" what Megatron has. All but "save" train a step more.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from megatron.training import checkpointing
from tiny_gpt import Training, end_writer
from training import write


def main(what: str, place: Path, fmt: str, tensor_parallel: int, distributed: bool) -> None:
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    more = {"ckpt_format": fmt, "dist_ckpt_optim_fully_reshardable": True}
    where = "theirs" if what == "theirs_of_theirs" else "ours"
    training = Training(str(place / where), tensor_parallel, distributed, **more)
    if what == "save":
        from troupe.checkpoint.megatron import StorageType, save_checkpoint, wait_latest_checkpoint

        training.train(5)
        assert save_checkpoint(5, *training.everything, 50)
        assert wait_latest_checkpoint(60)
        training.args.save = str(place / "theirs")
        checkpointing.save_checkpoint(5, *training.everything, 50)
        end_writer()
        training.args.save = str(place / "ours")
        before = training.digest()
        training.train(6)
        assert save_checkpoint(6, *training.everything, 60, storage_type=StorageType.MEMORY)
        said = [5, 50]
    else:
        if what == "load":
            from troupe.checkpoint.megatron import load_checkpoint as load
        else:
            load = checkpointing.load_checkpoint
        said = list(load(*training.everything))
        training.step = said[0]
        before = training.digest()
        training.train(6)
    assert (what in ("save", "load")) == ("troupe.checkpoint" in sys.modules)
    write(place / f"{what}-{rank}.json", {"said": said, "before": before, "after": training.digest()})
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5] == "true")
