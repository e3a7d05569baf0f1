"""A PyTorch of a few lines, for interpreters that have none: what hooks look on at is there, made of builtin functions that are called
nowhere else. Each module is one text of FILES."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "torch/__init__.py": """
        import collections
        from . import _C, autograd, distributed, nn, optim, serialization, utils
        from .distributed import distributed_c10d
        from .utils.data import dataloader
        __version__ = "0.small"
    """,
    "torch/_C/__init__.py": """
        import io, math
        from . import _distributed_c10d
        class Engine(io.BytesIO):
            run_backward = io.BytesIO.getvalue
        _set_grad_enabled = math.gamma
        class PyTorchFileWriter:
            __init__ = math.lgamma
            write_end_of_file = math.erf
        class PyTorchFileReader:  # its end is refused, since it is a class of Python's
            __init__ = math.erfc
    """,
    "torch/_C/_distributed_c10d.py": """
        import math
        class Backend:
            _set_sequence_number_for_group = math.expm1
    """,
    "torch/autograd.py": """
        from . import _C
        class Variable:
            _execution_engine = _C.Engine(b"gradients")
        def backward():
            return Variable._execution_engine.run_backward()
    """,
    "torch/nn.py": "class Module: pass\n",
    "torch/serialization.py": "",
    "torch/utils/__init__.py": "",
    "torch/utils/data/__init__.py": "from . import dataloader\n",
    "torch/utils/data/dataloader.py": """
        class _BaseDataLoaderIter:
            def __init__(self, count):
                self.left = count
            def __iter__(self):
                return self
            def __next__(self):
                if self.left == 0:
                    raise StopIteration
                self.left -= 1
                return self.left
        class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
            pass
        class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
            pass
    """,
    "torch/optim/__init__.py": "from . import optimizer\nfrom .optimizer import Optimizer\n",
    "torch/optim/optimizer.py": """
        import functools
        from collections import OrderedDict
        from itertools import chain
        _global_optimizer_pre_hooks, _global_optimizer_post_hooks = OrderedDict(), OrderedDict()
        class Optimizer:
            def __init__(self):
                self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
            @staticmethod
            def profile_hook_step(function):
                @functools.wraps(function)
                def wrapper(self):
                    for hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                        hook(self)
                    function(self)
                    for hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                        hook(self)
                return wrapper
            def step(self):
                OrderedDict(a=1).values()
        Optimizer.step = Optimizer.profile_hook_step(Optimizer.step)
    """,
    "torch/distributed/__init__.py": "from . import distributed_c10d\n",
    "torch/distributed/distributed_c10d.py": """
        import functools, itertools
        from .. import _C
        ProcessGroup = object
        made = {}
        def _new_process_group_helper(group_size, global_ranks_in_group, group_name, group_desc=None):
            pg = object()
            _C._distributed_c10d.Backend._set_sequence_number_for_group(1.0)
            made[group_name] = pg
            return pg, None
        def logged(function):
            @functools.wraps(function)
            def wrapper(*arguments, **named):
                return function(*arguments, **named)
            return wrapper
        @logged
        def all_reduce(tensor, op=None, group=None, async_op=False):
            return tensor
        @logged
        def barrier(group=None, async_op=False):
            raise ValueError("in a barrier")
    """,
    "deepspeed/__init__.py": "",
    "deepspeed/runtime/__init__.py": "",
    "deepspeed/runtime/engine.py": """
        import types
        class DeepSpeedEngine:
            def __init__(self, config):
                self._config = types.SimpleNamespace(_param_dict=config)
                self._configure_checkpointing(1)
            def _configure_checkpointing(self, number):
                raise ValueError("in an engine")
    """,
    "torch/distributed/checkpoint/__init__.py": "from .state_dict_saver import save\n",
    "torch/distributed/checkpoint/state_dict_saver.py": """
        from ..distributed_c10d import logged
        @logged
        def save(state, then):
            return then(state)
    """,
}


def make(folder: Path) -> Path:
    import textwrap

    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return folder
