"""DeepSpeed's checkpoints in memory, if its JSON config says so: `"checkpoint": {"troupe": …}`.

DeepSpeed has no place in its config for a checkpoint engine of another package. What the key means is
python/troupe/checkpoint/deepspeed/plugin.py's; here nothing is imported before a config has it.
"""

from __future__ import annotations

import functools
from typing import Any

from . import attempt


def hook(_torch: Any, finder: Any) -> None:
    finder.when_imported("deepspeed.runtime.engine", lambda module: attempt(watch, module.DeepSpeedEngine))


def watch(engine: Any) -> None:
    configure = engine._configure_checkpointing

    @functools.wraps(configure)
    def configured(self: Any, *arguments: Any, **options: Any) -> Any:
        if asks(getattr(self._config, "_param_dict", None)):
            engine._configure_checkpointing = configure
            try:
                from troupe.checkpoint.deepspeed import install
            except ImportError as error:
                raise ImportError(
                    f"DeepSpeed's config has checkpoint.troupe, which needs the package troupe ({error}): pip install troupe"
                ) from error

            install()
            return engine._configure_checkpointing(self, *arguments, **options)
        return configure(self, *arguments, **options)

    engine._configure_checkpointing = configured


def asks(config: Any) -> bool:
    of_checkpoints = config.get("checkpoint") if isinstance(config, dict) else None
    return isinstance(of_checkpoints, dict) and "troupe" in of_checkpoints
