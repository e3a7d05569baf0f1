"""What `dlrover` has and this package has not, and what to do instead. A name that comes is a row that goes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

CHECKPOINT = "dlrover.trainer.torch.flash_checkpoint"
MEGATRON = "; dlrover…megatron.save_checkpoint and load_checkpoint are what scripts use"
STRATEGIES = "KeepLatestStepStrategy and KeepStepIntervalStrategy are here"
STORAGE = (
    f"files are written by actor-launcher, into directories, without plug-ins for other storage; {STRATEGIES}"
)
NO_TENSORFLOW = "TensorFlow is not a part of Troupe, which starts PyTorch's processes"
LOGGER = "it is an inner part of DLRover; for default_logger use logging.getLogger"
INNER = "it is an inner part of DLRover, without a counterpart"

# The longest row that a name begins with is the one for it.
INSTEAD = {
    f"{CHECKPOINT}.fsdp": INNER + "; dlrover…fsdp.FsdpShardCheckpointer is what scripts use",
    f"{CHECKPOINT}.fsdp_engine": INNER + "; dlrover…fsdp.FsdpShardCheckpointer is what scripts use",
    f"{CHECKPOINT}.megatron": INNER + MEGATRON,
    f"{CHECKPOINT}.megatron_engine": INNER + MEGATRON,
    f"{CHECKPOINT}.megatron_dist_ckpt": INNER + MEGATRON,
    f"{CHECKPOINT}.deepspeed": INNER + "; dlrover…deepspeed.DeepSpeedCheckpointer is what scripts use",
    f"{CHECKPOINT}.deepspeed_engine": INNER + "; dlrover…deepspeed.DeepSpeedCheckpointer is what scripts use",
    f"{CHECKPOINT}.hf_trainer": INNER + "; dlrover…hf_trainer.FlashCkptTrainer is what scripts use",
    f"{CHECKPOINT}.engine": INNER + "; dlrover…ddp.DdpCheckpointer is what scripts use",
    f"{CHECKPOINT}.full_ckpt_engine": INNER + "; dlrover…ddp.DdpCheckpointer is what scripts use",
    f"{CHECKPOINT}.replica": INNER + "; replica_count= is an argument of DdpCheckpointer",
    "dlrover.trainer.torch.elastic_run": "dlrover-run is actor-launcher; from Python it is troupe.launch(LaunchConfig(…), "
    "function)",
    "dlrover.trainer.torch.node_check": "actor-launcher --network-check looks at nodes and network, troupe-probe at one node",
    "dlrover.trainer.tensorflow": NO_TENSORFLOW,
    "dlrover.trainer.worker": NO_TENSORFLOW,
    "dlrover.trainer.util": LOGGER,
    "dlrover.python.common.log": LOGGER,
    "dlrover.python.common.storage": STORAGE,
    "dlrover.python.common.storage.CheckpointDeletionStrategy": "which steps are kept is decided where they are written, so a "
    f"class of one's own cannot be called there; {STRATEGIES}",
    "dlrover.python.common.store": "DLRover's guide names it, but the module is dlrover.python.common.storage, there and here",
    "dlrover.python.elastic_agent": "the agent of a node is in actor-launcher. Handing out shards of a data set (sharding.client) "
    "is not a part of Troupe; dlrover.trainer.torch.elastic.sampler shares one out among ranks, in worlds of any size",
    "dlrover.python.master": "the master is actor-master, or in the launcher at the job's endpoint",
    "dlrover.python.unified": "jobs of several roles on Ray are not a part of Troupe",
    "dlrover.dashboard": "actor-shell shows a running job",
    "dlrover": INNER,
}


def explanation(name: str) -> str:
    """One line about a name of `dlrover` that is not here."""
    row = name
    while row not in INSTEAD:
        row = row.rpartition(".")[0] or "dlrover"
    return f"{name} is not in actor-launcher-dlrover-names: {INSTEAD[row]}"


class Finder(MetaPathFinder):
    """Comes last: for modules below `dlrover` that no other finder has found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("dlrover."):
            raise ModuleNotFoundError(explanation(name), name=name)


def names_of(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__`: a package's submodules, and for the rest an ImportError that says what to do. `from … import`
    would put a line of its own in the place of an AttributeError's."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        whole = f"{module}.{name}"
        if hasattr(sys.modules[module], "__path__"):
            return importlib.import_module(whole)
        raise ImportError(explanation(whole), name=module)

    return get
