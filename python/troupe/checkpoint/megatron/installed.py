"""The Megatron-LM that is installed: where its checkpoints are made, and which arguments that takes.

`save_checkpoint` has had four arguments and has twenty now, and `load_checkpoint` has called its first one by two names. So
no list of versions is kept here: the function that is installed is asked what it takes.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from ..retention import StorageType

MODULES = ("megatron.training.checkpointing", "megatron.checkpointing")  # since 0.6, and before
NEEDED = (
    "save_checkpoint",
    "load_checkpoint",
    "get_args",
    "ensure_directory_exists",
    "get_checkpoint_tracker_filename",
)
FLOPS = "num_floating_point_operations_so_far"  # since 0.5

# Names that an argument has had, from version to version.
_SAME = (("model", "ddp_model"), ("opt_param_scheduler", "lr_scheduler"))


def checkpointing() -> ModuleType:
    """Megatron's module that saves and loads. Raises ImportError that names what to install, or what is not as it is known."""
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(f"{error.name}.")):
                continue
            raise ImportError(
                f"Megatron-LM's {name} cannot be imported, since Python has no {error.name}: pip install {error.name}"
            ) from error
        if lacking := [each for each in NEEDED if not callable(getattr(module, each, None))]:
            raise ImportError(
                f"{name} ({getattr(module, '__file__', None)}) has no {', '.join(lacking)}: this is no Megatron-LM that Troupe knows, which are "
                "those from 0.4 to 0.19"
            )
        return module
    core = _core()
    raise ImportError(
        (f"megatron-core {core} is installed, and that has no " if core else "Megatron-LM is not installed: Python finds no ")
        + f"{MODULES[0]}. Its checkpoints are made by Megatron-LM's own megatron/training, which is in no package: "
        "put a checkout of Megatron-LM into PYTHONPATH"
    )


def _core() -> str:
    try:
        return importlib.metadata.version("megatron-core")
    except importlib.metadata.PackageNotFoundError:
        return ""


def arguments(
    theirs: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> tuple[dict[str, Any], StorageType | None]:
    """By name, for a function of Megatron's, and the StorageType if that was given by its place, as DLRover's callers may.

    An argument of a later version is left out if it says nothing (None, False). Raises TypeError, which names function and
    argument, for any other that the function does not take, and for one that it needs.
    """
    parameters = inspect.signature(theirs).parameters
    names = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    what = f"{theirs.__name__} of the Megatron that is installed ({theirs.__module__})"
    places, storage_type = list(given), None
    if len(places) > 5 and isinstance(places[5], StorageType):
        storage_type = places.pop(5)
    if FLOPS not in parameters and theirs.__name__.startswith("save"):
        del places[4:5]
    if len(places) > len(names):
        raise TypeError(f"{what} takes {len(names)} arguments, and here are {len(places)}: {', '.join(names)}")
    values = dict(zip(names, places, strict=False))
    open_ended = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    for name, value in named.items():
        name = _name_there(name, parameters)
        if name in values:
            raise TypeError(f"{what}: {name} is given twice")
        if name in parameters or open_ended:
            values[name] = value
        elif value is not None and value is not False and name != FLOPS:
            raise TypeError(f"{what} has no argument {name}: it takes {', '.join(names)}")
    if FLOPS in parameters:
        values.setdefault(FLOPS, 0)
    needed = [name for name in names if parameters[name].default is inspect.Parameter.empty]
    if lacking := [name for name in needed if name not in values]:
        raise TypeError(f"{what} needs {', '.join(lacking)}")
    return values, storage_type


def _name_there(name: str, parameters: Mapping[str, Any]) -> str:
    for same in _SAME:
        if name in same:
            return next((one for one in same if one in parameters), name)
    return name
