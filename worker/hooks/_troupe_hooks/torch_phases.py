"""Steps and phases of a PyTorch script, from C functions that every training loop passes."""

from __future__ import annotations

import collections
import inspect
from typing import Any, Callable, Iterator

from . import attempt, debug, native


def hook(torch: Any, when_imported: Callable[[str, Any], None]) -> None:
    fed = 0
    for feed, each in (
        (native.FEED_OPTIMIZER, hook_optimizers),
        (native.FEED_PHASES, hook_backward),
        (native.FEED_INPUT, hook_data_loaders),
        (0, hook_gradients),
        (0, hook_files),
    ):
        try:
            each(torch)
            fed |= feed
        except Exception as e:
            debug(f"{each.__name__}: {type(e).__name__}: {e}")
    native.library.troupe_feeds(fed)
    for name, module_name in (("save", "state_dict_saver"), ("load", "state_dict_loader")):
        when_imported(
            f"torch.distributed.checkpoint.{module_name}",
            lambda module, name=name: attempt(hook_checkpoint, module, name),
        )


def hook_optimizers(torch: Any) -> None:
    from torch.optim import optimizer as module

    if not asks_tables(module):
        from . import seen_hooks

        seen_hooks.hook_optimizers(torch, module)
        return
    native.looks_on(
        native.python.troupe_python_optimizers(
            collections.OrderedDict.values, module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks
        ),
        "a step of an optimizer",
    )


def asks_tables(module: Any) -> bool:
    """Whether a step asks for hooks in the order that worker/python/optimizers.hpp needs."""
    tables = [getattr(module, f"_global_optimizer_{which}_hooks", None) for which in ("pre", "post")]
    if any(type(each) is not collections.OrderedDict for each in tables):
        return False
    asked = [
        "_global_optimizer_pre_hooks",
        "values",
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_global_optimizer_post_hooks",
    ]
    names = [code.co_names for code in codes_in(module.Optimizer.profile_hook_step.__code__)]
    return any([name for name in each if name in asked] == asked for each in names)


def codes_in(code: Any) -> Iterator[Any]:
    yield code
    for each in code.co_consts:
        if hasattr(each, "co_names"):
            yield from codes_in(each)


def hook_backward(torch: Any) -> None:
    engine = type(torch.autograd.Variable._execution_engine)
    native.looks_on(
        native.python.troupe_python_moments(engine.run_backward, native.BACKWARD_BEGINS, native.BACKWARD_ENDS),
        "a backward pass",
    )


def hook_data_loaders(torch: Any) -> None:
    from torch.utils.data import dataloader

    for kind in dataloader._BaseDataLoaderIter.__subclasses__():
        native.looks_on(
            native.python.troupe_python_next(kind, native.INPUT_BEGINS, native.INPUT_ENDS, native.INPUT_IS_OVER),
            f"a batch of {kind.__name__}",
        )


def hook_gradients(torch: Any) -> None:
    """Whether gradients are recorded is PyTorch's to say: here is only when to ask."""
    switches = [torch._C._set_grad_enabled]
    inference = getattr(torch._C, "_InferenceMode", None)
    for name in ("__enter__", "__exit__"):
        if hasattr(inference, name):
            switches.append(getattr(inference, name))
    for each in switches:
        native.looks_on(
            native.python.troupe_python_moments(native.builtin(each), native.NONE, native.GRADIENTS_SWITCHED),
            f"a switch of gradients ({each})",
        )


def hook_files(torch: Any) -> None:
    """A file of PyTorch's is written and read by an object, which is there for as long as that takes."""
    writer, reader = torch._C.PyTorchFileWriter, torch._C.PyTorchFileReader
    for function, when in (
        (writer.__init__, native.ENTERS),
        (writer.write_end_of_file, native.LEAVES),
        (reader.__init__, native.ENTERS),
    ):
        native.looks_on(
            native.python.troupe_python_phase(native.builtin(function), native.CHECKPOINT, when), f"a file ({function})"
        )
    plain = type("Plain", (), {})
    native.looks_on(native.python.troupe_python_end(reader, plain, native.CHECKPOINT), "the end of a file's reader")


def hook_checkpoint(module: Any, name: str) -> None:
    function = getattr(module, name, None)
    if function is None:
        return  # not in this version
    innermost = inspect.unwrap(function)  # called with `*arguments` by what stands around it
    native.looks_on(
        native.python.troupe_python_phase(innermost, native.CHECKPOINT, native.ENTERS | native.LEAVES), name
    )
