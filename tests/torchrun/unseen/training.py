"""What PyTorch does for a script, seen as closely as a script can: graphs, numbers, tracebacks, warnings, profiles, pickles."""

from __future__ import annotations

import collections
import cProfile
import contextlib
import copy
import gc
import inspect
import io
import multiprocessing
import os
import pickle
import pstats
import sys
import tempfile
import warnings
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from observing import bits, case, error_of, frames, place, plain, raised
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.norm(self.one(x)))
        return self.two(x) if self.training else self.two(x) * 2


def model() -> tuple[Model, torch.Tensor]:
    torch.manual_seed(7)
    return Model(), torch.randn(6, 4)


class Numbers(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.full((4,), float(i))


def train(own: nn.Module, workers: int = 0) -> list[str]:
    """Two epochs, and what every training loop does."""
    one, two = torch.optim.AdamW(own.parameters(), lr=0.1), torch.optim.SGD(own.parameters(), lr=0.01, momentum=0.9)
    rates, seen = torch.optim.lr_scheduler.StepLR(one, 1), []
    for _ in range(2):
        own.train()
        for batch in DataLoader(Numbers(), batch_size=2, num_workers=workers):
            one.zero_grad()
            loss = own(batch).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(own.parameters(), 1.0)
            one.step()
            two.step(lambda: own(batch).sum())
            seen.append(bits(loss))
        rates.step()
        own.eval()
        with torch.no_grad():
            seen += [bits(own(batch)) for batch in DataLoader(Numbers(), batch_size=3)]
    return [*seen, bits(*own.state_dict().values())]


def switching(own: nn.Module, x: torch.Tensor) -> torch.Tensor:
    own.eval()
    y = own(x)
    own.train()
    with torch.no_grad():
        z = own.one(x)
    own.train(False)
    return y.sum() + z.sum() + own(x).sum()


class counted:
    """A compiler that counts what it is given."""

    def __init__(self) -> None:
        self.graphs: list[list[str]] = []

    def __call__(self, graph: Any, _: Any) -> Any:
        self.graphs.append([f"{node.op} {plain(str(node.target))}" for node in graph.graph.nodes])
        return graph.forward


def compiled(function: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    backend = counted()
    run = torch.compile(function, backend=backend, **options)
    results = [run(*arguments) for _ in range(2)]
    told = {name: dict(each) for name, each in torch._dynamo.utils.counters.items()}
    return {"graphs": backend.graphs, "numbers": [bits(each) for each in results if each is not None], "told": told}


def loop(own: nn.Module) -> torch.Tensor:
    optimizer, total = torch.optim.SGD(own.parameters(), lr=0.1), torch.zeros(())
    for batch in DataLoader(Numbers(), batch_size=2):
        optimizer.zero_grad()
        loss = own(batch).sum()
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
    own.eval()
    torch.save(own.state_dict(), io.BytesIO())
    return total


@case
def numbers() -> list[Any]:
    return [train(model()[0]), train(model()[0], workers=2)]


@case
def graphs() -> dict[str, Any]:
    own, x = model()
    own.norm = nn.Identity()
    optimizer = torch.optim.AdamW(own.parameters(), lr=0.1)
    own(x).sum().backward()
    explained = torch._dynamo.explain(switching)(own, x)
    seen = {
        "explained": [explained.graph_count, explained.graph_break_count, explained.op_count, len(explained.out_guards)],
        "switching": compiled(switching, own, x),
        "whole": compiled(switching, own, x, fullgraph=True),
        "step": compiled(optimizer.step),
        "loop": compiled(loop, own),
        "saving": compiled(lambda x: (torch.save(x, io.BytesIO()), x + 1)[1], x),
        "loading": error_of(compiled, lambda x: torch.load("not there") + x, x, fullgraph=True),
        "backward": error_of(compiled, lambda x: own(x).sum().backward(), x, fullgraph=True),
        "batches": error_of(compiled, lambda x: next(iter(DataLoader(Numbers()))), x, fullgraph=True),
    }
    return seen


@case
def inductor() -> list[str]:
    """The real compiler, with what it does to make a program short."""
    torch._dynamo.reset()
    own, x = model()
    own.drop = nn.Identity()
    run = torch.compile(switching, mode="reduce-overhead", fullgraph=True)
    loss = run(own, x)
    loss.backward()
    return [bits(loss), bits(*(each.grad for each in own.parameters() if each.grad is not None))]


@case
def exported() -> list[str]:
    own, x = model()
    own.eval()
    programs = [torch.export.export(own, (x,), strict=strict) for strict in (True, False)]
    return [plain(each.graph_module.code) for each in programs] + [bits(each.module()(x)) for each in programs]


@case
def scripted() -> dict[str, Any]:
    own, x = model()

    def branches(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if bool(x.sum() > 0) else x

    script = torch.jit.script(own)
    script.train()
    script.eval()
    with io.BytesIO() as file:
        torch.jit.save(script, file)
        file.seek(0)
        again = torch.jit.load(file)
    return {
        "script": [script.code, bits(script(x)), bits(again(x)), torch.jit.script(branches).code],
        "trace": torch.jit.trace(own.eval(), (x,)).code,
        "fx": [torch.fx.symbolic_trace(own).code, torch.fx.symbolic_trace(own.train()).code],
        "refused": error_of(torch.jit.script, lambda x: torch.save(x, "f")),
    }


@case
def sharded() -> dict[str, Any]:
    """FSDP2 compiled and not, tensor parallelism, and groups: of one rank."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
    seen: dict[str, Any] = {"mesh": plain(str(mesh))}
    for name in ("eager", "compiled"):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        own, x = model()
        own.drop = nn.Identity()
        fully_shard(own.one, mesh=mesh)
        fully_shard(own, mesh=mesh)
        run = own if name == "eager" else torch.compile(own, backend="aot_eager")
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        losses = []
        for _ in range(2):
            losses.append(run(x).square().sum())
            losses[-1].backward()
            optimizer.step()
            optimizer.zero_grad()
        told = {each: dict(torch._dynamo.utils.counters[each]) for each in ("stats", "frames", "graph_break")}
        seen[name] = [bits(*losses), bits(*(each.full_tensor() for each in own.parameters())), told]
    whole = distribute_tensor(torch.arange(12.0).view(4, 3), mesh, [Shard(0)])
    seen["tensor"] = [bits((whole @ whole.T).full_tensor()), isinstance(whole, DTensor), plain(repr(whole.placements))]
    group = dist.new_group([0], group_desc="own")
    dist.all_reduce(whole.to_local(), group=group)
    seen["group"] = [group.group_name, group.group_desc, group.size()]
    return seen


@case
def mixed() -> list[str]:
    own, x = model()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = own(x).sum()
    loss.backward()
    return [bits(loss), bits(own.one.weight.grad), str(loss.dtype)]


def all_that_is_hooked() -> None:
    own, x = model()
    train(own)
    file = io.BytesIO()
    torch.save(own.state_dict(), file)
    file.seek(0)
    torch.load(file)
    torch.autograd.grad(own(x).sum(), own.one.weight)
    with torch.inference_mode():
        own(x)


@case
def profiled() -> dict[str, Any]:
    all_that_is_hooked()  # what is made once is there
    gc.collect()
    gc.disable()  # a collection would come at another point of each run
    with torch.profiler.profile(with_stack=True) as profile:
        all_that_is_hooked()
    events = collections.Counter(plain(each.name) for each in profile.events())
    profiler = cProfile.Profile()
    profiler.runcall(all_that_is_hooked)
    calls: collections.Counter[str] = collections.Counter()
    for (file, _, name), row in pstats.Stats(profiler).stats.items():
        calls[plain(f"{place(file)} {name}")] += row[0]
    seen: collections.Counter[str] = collections.Counter()

    def look(frame: Any, event: str, argument: Any) -> Any:
        seen[f"{event} {place(frame.f_code.co_filename)} {frame.f_code.co_name}"] += 1
        return look

    for follow in (sys.settrace, sys.setprofile):
        follow(look)
        all_that_is_hooked()
        follow(None)
    gc.enable()
    return {"events": events, "calls": calls, "traced": seen, **monitored()}


def monitored() -> dict[str, Any]:
    if sys.version_info < (3, 12):
        return {}
    monitoring, seen = sys.monitoring, collections.Counter()
    monitoring.use_tool_id(4, "unseen")
    for name in ("CALL", "C_RETURN", "PY_START", "RAISE"):
        event = getattr(monitoring.events, name)
        monitoring.register_callback(4, event, lambda code, *_, name=name: seen.update([f"{name} {place(code.co_filename)} {code.co_name}"]))
    monitoring.set_events(4, monitoring.events.CALL | monitoring.events.PY_START | monitoring.events.RAISE)
    all_that_is_hooked()
    monitoring.set_events(4, 0)
    monitoring.free_tool_id(4)
    return {"monitored": seen}


def looks(of: Any) -> list[str]:
    code = getattr(of, "__code__", None)
    signature = ""
    with contextlib.suppress(Exception):
        signature = plain(str(inspect.signature(of)))
    return [type(of).__name__, str(getattr(of, "__qualname__", "")), place(code.co_filename) if code else "", signature]


@case
def objects() -> dict[str, Any]:
    """Every attribute of what was ever hooked, and the state of the interpreter that a hook might leave changed."""
    from torch.distributed import distributed_c10d
    from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
    from torch.optim import optimizer
    from torch.utils.data import dataloader

    places = [torch.serialization, torch.autograd, torch.autograd.graph, nn.Module, optimizer, optimizer.Optimizer, dataloader,
              dataloader._BaseDataLoaderIter, dataloader._SingleProcessDataLoaderIter, distributed_c10d, dist, dcp, state_dict_saver,
              state_dict_loader, torch._C._InferenceMode, type(torch.autograd.Variable._execution_engine)]  # fmt: skip
    seen = {f"{each.__name__}.{name}": looks(of) for each in places for name, of in vars(each).items() if callable(of)}
    hooks = [len(getattr(optimizer, f"_global_optimizer_{which}_hooks")) for which in ("pre", "post")]
    same = [torch.save is torch.serialization.save, dcp.save is state_dict_saver.save, dist.all_reduce is distributed_c10d.all_reduce]
    import copyreg
    import threading

    return {
        "looks": seen,
        "same": [hooks, same],
        "modules": sorted(name for name in sys.modules if not name.startswith("_troupe_hooks")),
        "finders": [[plain(repr(each)) for each in sys.meta_path], len(sys.path_hooks), sorted(set(sys.path_importer_cache) - set(sys.path))],
        "loader": sorted(vars(torch.__loader__)),
        "builtins": {name: looks(of) for name, of in vars(__import__("builtins")).items() if callable(of) and type(of) is not type},
        "rest": [plain(str(warnings.filters)), sorted(str(each) for each in copyreg.dispatch_table), len(gc.callbacks), sys.excepthook.__name__,
                 [each.name for each in threading.enumerate()], str(sys.gettrace()), os.environ.get("PYTHONPATH", "").count("hooks"), sys.path.count("hooks")],
    }  # fmt: skip


@case
def pickled() -> list[Any]:
    own, _ = model()
    functions = [torch.save, torch.load, torch.autograd.backward, nn.Module.train, nn.Module.eval, DataLoader.__iter__, dcp.save, dist.barrier]
    optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
    copied = pickle.loads(pickle.dumps(optimizer))
    copy.deepcopy(optimizer).step()
    file = io.BytesIO()
    torch.save(own, file)
    again = pickle.loads(pickle.dumps(own))
    return [[str(pickle.dumps(each)) for each in functions], bits(*again.state_dict().values()), sorted(vars(copied)), len(file.getvalue())]


@case
def tracebacks() -> dict[str, Any]:
    own, x = model()

    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            raise ValueError("in a backward pass")

    class Refuses(Model):
        def train(self, mode: bool = True) -> Model:
            raise ValueError("in a module")

    class Broken(Numbers):
        def __getitem__(self, i: int) -> torch.Tensor:
            raise ValueError("in a data set")

    class Writer(dcp.FileSystemWriter):
        def write_data(self, *arguments: Any) -> Any:
            raise ValueError("in a writer")

    def closure() -> float:
        raise ValueError("in a closure")

    y = own(x).sum()
    y.backward()
    with tempfile.TemporaryDirectory() as folder:
        return {
            "backward": error_of(Raises.apply(x.clone().requires_grad_()).sum().backward),
            "twice": error_of(y.backward),
            "grad": error_of(torch.autograd.grad, own(x).sum(), x),
            "module": [error_of(Refuses().eval), error_of(own.train, "yes")],
            "data": [error_of(list, DataLoader(Broken(), num_workers=workers)) for workers in (0, 1)],
            "over": error_of(next, iter(DataLoader([]))),
            "step": error_of(torch.optim.SGD(own.parameters(), lr=0.1).step, closure),
            "argument": error_of(torch.optim.SGD(own.parameters(), lr=0.1).step, 1, 2),
            "save": [error_of(torch.save, lambda: 1, io.BytesIO()), error_of(torch.save, own, f"{folder}/no/f")],
            "load": [error_of(torch.load, io.BytesIO(b"PK\3\4 broken")), error_of(torch.load, "/not/there")],
            "gradients": error_of(torch._C._set_grad_enabled, "yes"),
            "writer": error_of(dcp.save, {"x": x}, storage_writer=Writer(folder), no_dist=True),
            "reader": error_of(dcp.load, {"x": x}, checkpoint_id=f"{folder}/none", no_dist=True),
            "group": [error_of(dist.init_process_group, "gloo"), error_of(dist.new_group, [5]), error_of(dist.all_reduce, 1)],
            "values": error_of(collections.OrderedDict.values, {}),
            "exec": [error_of(exec, "1 / 0"), error_of(exec, "x ="), error_of(exec), error_of(exec, "pass", {}, 1)],
        }


@case
def warned() -> list[Any]:
    own, x = model()
    with warnings.catch_warnings(record=True) as told, tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        torch.optim.lr_scheduler.StepLR(optimizer, 1).step()
        own(x).sum().backward(create_graph=True)
        torch.nn.functional.softmax(x)
        dcp.save({"x": x}, checkpoint_id=folder, no_dist=True)
        dcp.load({"x": x}, checkpoint_id=folder, no_dist=True)
        torch.jit.script(own)
        dist.barrier()
        DataLoader(Numbers(), num_workers=200)
    return [[each.category.__name__, plain(str(each.message)), place(each.filename), each.lineno] for each in told]


@case
def changed_by_the_script() -> list[Any]:
    """A script that puts its own functions in the place of PyTorch's."""
    seen: list[Any] = []
    backward, following = torch.autograd.backward, DataLoader.__iter__
    kind = torch.utils.data.dataloader._BaseDataLoaderIter
    places = [(nn.Module, "train"), (nn.Module, "eval"), (torch.autograd, "backward"), (kind, "__next__"), (torch, "save"), (torch.optim.SGD, "step")]

    def watched(name: str, of: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            seen.append(name)
            return of(*arguments, **named)

        return call

    before = [(where, name, getattr(where, name)) for where, name in places]
    for where, name, of in before:
        setattr(where, name, watched(name, of))
    try:
        seen.append(train(model()[0]))
        torch.save(1, io.BytesIO())
    finally:
        for where, name, of in before:
            setattr(where, name, of)

    class Own(Model):
        def train(self, mode: bool = True) -> Model:
            super().train(mode)
            self.norm.eval()
            return self

    return [seen, train(model()[0]), train(Own()), backward is torch.autograd.backward, following is DataLoader.__iter__]


def in_child(queue: Any) -> None:
    torch_is_there = "torch" in sys.modules
    queue.put([[type(each).__name__ for each in sys.meta_path], torch_is_there and train(model()[0]), "_troupe_hooks" in sys.modules and not torch_is_there])


@case
def children() -> dict[str, Any]:
    seen = {}
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        child = context.Process(target=in_child if method == "fork" else print, args=(queue,) if method == "fork" else ())
        child.start()
        seen[method] = [queue.get() if method == "fork" else "", child.join(), child.exitcode]
    return seen


@case
def errors_of_this_file() -> Any:
    """That a traceback is told at all."""
    try:
        raise ValueError("own")
    except ValueError as error:
        return [frames(error.__traceback__), raised(error)]
