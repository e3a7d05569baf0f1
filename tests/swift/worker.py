"""`swift sft` itself, of which is noted what it asks of the checkpointer, and what is there at that moment.

    worker.py NOTES DEED ARGUMENT…

NOTES: a directory; rank-<rank>.jsonl there has a line for each save. DEED, in the job's first life: "-"; "stop:<step>": the node
supervisor, which writes, is stopped when this step's save begins, until the keeper has it go on, after 10 s; "before:<step>": rank 1
ends by SIGKILL when the step's save begins; "after:<step>": it does when that has returned, and nothing was written yet; "last:<step>": rank 0 does when that has returned.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
from dlrover.trainer.torch.flash_checkpoint.hf_trainer import HfDdpCheckpointer
from swift.pipelines import sft_main

from troupe.checkpoint.transformers.peer import CheckpointAgent

NATIVE = torch.save
RANK, LIFE = int(os.environ.get("RANK", 0)), int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))


def supervisor() -> int:
    """Of this node: a sibling, since the keeper starts both."""
    above = os.getppid()
    for task in Path(f"/proc/{above}/task").iterdir():
        for child in (task / "children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == "troupe-node":
                return int(child)
    raise RuntimeError("this node has no supervisor")


def note(notes: Path, row: dict) -> None:
    with open(notes / f"rank-{RANK}.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")


def watched(notes: Path, deed: str, at: int) -> None:
    save, keep = HfDdpCheckpointer.save_checkpoint_to_storage, CheckpointAgent.save

    def noted(self: CheckpointAgent, obj: object, path: object, *more: object, **others: object) -> object:
        answer = keep(self, obj, path, *more, **others)
        if isinstance(path, str):
            assert torch.save == self.save, "ms-swift saves while it has replaced torch.save"
            assert not os.path.exists(path), f"{path} was to come later"
            buffer = io.BytesIO()
            torch.save({"a": 1}, buffer)  # of third parties
            assert torch.load(io.BytesIO(buffer.getvalue())) == {"a": 1}
        return answer

    def save_checkpoint_to_storage(self: HfDdpCheckpointer, step: int, blocking: bool = False) -> bool:
        assert torch.save is NATIVE, "it is as it was when the step is saved"
        run, now = Path(self.checkpoint_dir), LIFE == 0 and step == at
        there = sorted(path.name for path in (run / f"checkpoint-{step}").iterdir())
        if now and RANK == 0 and deed in ("stop", "after"):
            os.kill(supervisor(), signal.SIGSTOP)
        if now and RANK == 1 and deed == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        begun = time.monotonic()
        kept = save(self, step, blocking)
        took, tracker = time.monotonic() - begun, run / "dlrover_latest.txt"
        tracked = int(tracker.read_text()) if tracker.exists() else None
        row = {"life": LIFE, "run": run.name, "step": step, "blocking": blocking, "kept": kept, "there": there, "tracked": tracked}
        if now and deed == "stop":
            row["waited"] = self.async_save_engine.wait_latest_checkpoint(0.2, step)
            row["waited_seconds"] = time.monotonic() - begun - took
        note(notes, row | {"seconds": took, "left": [*self.ckpt_agent.state_dict, *self.ckpt_agent.paths]})
        if now and (deed, RANK) in (("after", 1), ("last", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        return kept

    CheckpointAgent.save = noted  # type: ignore[method-assign]
    HfDdpCheckpointer.save_checkpoint_to_storage = save_checkpoint_to_storage  # type: ignore[method-assign]


if __name__ == "__main__":
    deed, _, at = sys.argv[2].partition(":")
    watched(Path(sys.argv[1]), deed, int(at or 0))
    sft_main(sys.argv[3:])
