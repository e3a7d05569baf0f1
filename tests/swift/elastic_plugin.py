"""For `swift sft --external_plugins`: DeepSpeed on CPUs, and steps that take a while.

Accelerate takes a machine without devices for one without ranks, if DeepSpeed is asked for: on CPUs it has to be told.
"""

from __future__ import annotations

import os
import time
from typing import Any

from accelerate.state import DistributedType, PartialState
from swift.callbacks import callbacks_map
from swift.callbacks.base import TrainerCallback


class Paced(TrainerCallback):
    def on_step_end(self, *_: Any, **__: Any) -> None:
        time.sleep(float(os.environ["STEP_TAKES"]))


callbacks_map["paced"] = Paced
PartialState._prepare_backend = lambda *_, **__: ("gloo", DistributedType.MULTI_GPU)
