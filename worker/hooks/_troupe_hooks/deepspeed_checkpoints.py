"""DeepSpeed's checkpoints in memory, if its JSON config says so: `"checkpoint": {"troupe": …}`.

DeepSpeed has no place in its config for a checkpoint engine of another package. What the key means is
python/troupe/checkpoint/deepspeed/plugin.py's; here nothing is imported before a config has it.
"""

from __future__ import annotations

from typing import Any, Callable

from . import attempt


def hook(when_imported: Callable[[str, Any], None]) -> None:
    when_imported("deepspeed.runtime.engine", lambda module: attempt(watch, module.DeepSpeedEngine))


def watch(engine: Any) -> None:
    engine._configure_checkpointing = Asked(engine, engine._configure_checkpointing)


class Asked:
    """In the place of a method: looks at the config when an engine asks for the method, and then is gone from the call."""

    def __init__(self, engine: Any, method: Any) -> None:
        self.engine, self.method = engine, method

    def __get__(self, engine: Any, owner: Any) -> Any:
        if engine is None or not asks(getattr(getattr(engine, "_config", None), "_param_dict", None)):
            return self.method.__get__(engine, owner)
        self.engine._configure_checkpointing = self.method
        try:
            from troupe.checkpoint.deepspeed import install
        except ImportError as error:
            raise ImportError(
                f"DeepSpeed's config has checkpoint.troupe, which needs the package of actor-launcher ({error}): "
                "pip install the wheel actor_launcher-*.whl"
            ) from error

        install()
        return engine._configure_checkpointing


def asks(config: Any) -> bool:
    of_checkpoints = config.get("checkpoint") if isinstance(config, dict) else None
    return isinstance(of_checkpoints, dict) and "troupe" in of_checkpoints
