"""How Megatron's functions are called, whichever version is installed, by stand-ins that have their arguments and names."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from troupe.checkpoint import StorageType
from troupe.checkpoint import megatron as ours
from troupe.checkpoint.megatron.installed import arguments

OLDEST = "iteration, model, optimizer, opt_param_scheduler"
SAVES = {  # docs: facts of Megatron's tags
    "0.4": OLDEST,
    "0.5": OLDEST + ", num_floating_point_operations_so_far",
    "0.7": OLDEST + ", num_floating_point_operations_so_far, checkpointing_context=None",
    "0.16": OLDEST
    + ", num_floating_point_operations_so_far, checkpointing_context=None, pipeline_rank=None, expert_rank=None, tensor_rank=None, "
    "pipeline_parallel=None, expert_parallel=None, non_persistent_ckpt=False, train_data_iterator=None, "
    "preprocess_common_state_dict_fn=None, release=False, tp_group=None, pp_group=None, dp_cp_group=None",
}


def function(name: str, parameters: str) -> Any:
    made: dict[str, Any] = {}
    exec(f"def {name}({parameters}): ...", made)
    return made[name]


@pytest.mark.parametrize("version", SAVES)
def test_each_version_gets_the_arguments_that_it_has(version: str):
    theirs = function("save_checkpoint", SAVES[version])
    four = {"iteration": 1, "model": 2, "optimizer": 3, "opt_param_scheduler": 4}
    flops = {"num_floating_point_operations_so_far": 0} if version != "0.4" else {}
    assert arguments(theirs, (1, 2, 3, 4), {}) == (four | flops, None)
    assert arguments(theirs, (1, 2, 3, 4), {"num_floating_point_operations_so_far": 0})[0] == four | flops
    assert arguments(theirs, (1, 2, 3), {"lr_scheduler": 4})[0] == four | flops
    assert arguments(theirs, (1, 2, 3, 4, 0, StorageType.MEMORY), {}) == (four | flops, StorageType.MEMORY)
    assert arguments(theirs, (1, 2, 3, 4), {"ft_client": None})[0] == four | flops
    with pytest.raises(TypeError, match="has no argument ft_client"):
        arguments(theirs, (1, 2, 3, 4), {"ft_client": object()})
    with pytest.raises(TypeError, match="needs optimizer, opt_param_scheduler"):
        arguments(theirs, (1, 2), {})
    with pytest.raises(TypeError, match="model is given twice"):
        arguments(theirs, (1, 2, 3, 4), {"model": 2})


def test_the_first_argument_of_load_has_two_names():
    for name in ("model", "ddp_model"):
        theirs = function("load_checkpoint", f"{name}, optimizer, opt_param_scheduler, load_arg='load', strict=True")
        wanted = {name: 1, "optimizer": 2, "opt_param_scheduler": 3, "strict": False}
        assert arguments(theirs, (1, 2, 3), {"strict": False})[0] == wanted
        assert arguments(theirs, (), {"model": 1, "optimizer": 2, "opt_param_scheduler": 3, "strict": False})[0] == wanted


def test_without_megatron_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "megatron", types.ModuleType("megatron"))
    with pytest.raises(ImportError, match=r"megatron\.training\.checkpointing.*PYTHONPATH"):
        ours.save_checkpoint(1, 2, 3, 4)
    stand_in(monkeypatch, Path("."), save_checkpoint=None)
    with pytest.raises(ImportError, match="has no save_checkpoint: this is no Megatron-LM that Troupe knows"):
        ours.load_checkpoint(1, 2, 3)


# ---- One rank, through a stand-in that saves and loads as Megatron does ----


def stand_in(monkeypatch: pytest.MonkeyPatch, place: Path, **other: Any) -> Any:
    module: Any = types.ModuleType("megatron.training.checkpointing")
    args = types.SimpleNamespace(
        save=str(place), load=str(place), ckpt_step=None, finetune=False, save_retain_interval=None, async_save=False,
        no_load_optim=None, no_load_rng=None, no_save_optim=None, no_save_rng=None,
    )  # fmt: skip

    def ensure_directory_exists(filename: str, check_parent: bool = True) -> None:
        os.makedirs(os.path.dirname(filename) if check_parent else filename, exist_ok=True)

    def get_checkpoint_tracker_filename(directory: str) -> str:
        return os.path.join(directory, "latest_checkpointed_iteration.txt")

    def get_checkpoint_name(directory: str, iteration: int) -> str:
        return os.path.join(directory, f"iter_{iteration:07d}", "mp_rank_00", "model_optim_rng.pt")

    def save_checkpoint(iteration: int, model: Any, optimizer: Any, opt_param_scheduler: Any) -> None:
        name = get_checkpoint_name(args.save, iteration)
        module.ensure_directory_exists(name)
        torch.save({"model": model, "args": args, "iteration": iteration}, name)
        if optimizer == "fails":
            raise ZeroDivisionError("in Megatron")
        with open(module.get_checkpoint_tracker_filename(args.save), "w") as file:
            file.write(str(iteration))

    def load_checkpoint(model: Any, optimizer: Any, opt_param_scheduler: Any, load_arg: str = "load") -> int:
        with open(module.get_checkpoint_tracker_filename(getattr(args, load_arg))) as file:
            iteration = int(file.read())
        try:
            state = torch.load(get_checkpoint_name(getattr(args, load_arg), iteration), weights_only=False)
        except Exception:
            sys.exit()  # as Megatron does
        model["w"] = state["model"]["w"]
        module.parts_left_out = args.no_load_optim, args.no_load_rng, args.finetune
        return iteration

    values = {**locals(), "get_args": lambda: args, "args": args, **other}
    for name, value in values.items():
        setattr(module, name, value)
    for name in ("megatron", "megatron.training"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def megatron(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    yield stand_in(monkeypatch, tmp_path / "c")
    ours.close()


def test_a_save_to_memory_leaves_the_disk_alone_and_one_to_disk_names_the_step_when_it_is_there(megatron: Any, tmp_path: Path):
    place, tracker = tmp_path / "c", tmp_path / "c/latest_checkpointed_iteration.txt"
    assert ours.save_checkpoint(3, {"w": torch.tensor([3.0])}, None, None)
    assert ours.wait_latest_checkpoint(60)
    assert tracker.read_text().strip() == "3"
    before = sorted(place.rglob("*"))
    assert ours.save_checkpoint(4, {"w": torch.tensor([4.0])}, None, None, storage_type=StorageType.MEMORY)
    assert sorted(place.rglob("*")) == before
    assert tracker.read_text().strip() == "3"
    state = torch.load(place / "iter_0000003/mp_rank_00/model_optim_rng.pt", weights_only=False)
    assert state["args"].save == str(place)
    model: dict[str, Any] = {}
    assert ours.load_checkpoint(model, None, None) == (4, 0)
    assert model["w"].item() == 4.0
    ours.close()  # and with it the memory
    assert ours.load_checkpoint(model, None, None) == (3, 0)
    assert model["w"].item() == 3.0


def test_what_megatron_raises_is_raised_and_nothing_stays_as_it_was_meanwhile(megatron: Any, tmp_path: Path):
    before = (torch.save, torch.load, megatron.ensure_directory_exists, megatron.get_checkpoint_tracker_filename)
    with pytest.raises(ZeroDivisionError):
        ours.save_checkpoint(5, {"w": torch.zeros(1)}, "fails", None)
    after = (torch.save, torch.load, megatron.ensure_directory_exists, megatron.get_checkpoint_tracker_filename)
    assert before == after
    assert not (tmp_path / "c/iter_0000005").exists()
    # What cannot be pickled is named, with its file.
    with pytest.raises(Exception, match=r"iter_0000006/mp_rank_00/model_optim_rng\.pt.*state\['model'\]\['w'\]"):
        ours.save_checkpoint(6, {"w": lambda: 0}, None, None)
    with pytest.raises(ValueError, match="replica_count=1.*replica_count=0"):
        ours.save_checkpoint(6, {"w": torch.zeros(1)}, None, None, replica_count=1)
    with pytest.raises(ValueError, match="storage: a object"):
        ours.save_checkpoint(6, {"w": torch.zeros(1)}, None, None, storage=object())


def test_a_damaged_file_ends_no_job_as_if_all_were_well(megatron: Any, tmp_path: Path):
    megatron.save_checkpoint(7, {"w": torch.zeros(1)}, None, None)  # by Megatron itself
    file = tmp_path / "c/iter_0000007/mp_rank_00/model_optim_rng.pt"
    assert ours.load_checkpoint({}, None, None) == (7, 0)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(Exception, match=f"rank 0: {file} of step 7: "):
        ours.load_checkpoint({}, None, None)


def test_calls_as_dlrovers_users_make_them(megatron: Any, tmp_path: Path):
    from troupe.checkpoint import megatron_dist_ckpt

    model: dict[str, Any] = {"w": torch.tensor([1.0])}
    how = {"comm_backend": "nccl", "save_timeout": 300}
    assert ours.save_checkpoint(1, model, None, None, 0, StorageType.MEMORY, storage=None, replica_count=0, **how)
    named = {"iteration": 2, "model": model, "optimizer": None, "opt_param_scheduler": None}
    assert megatron_dist_ckpt.save_checkpoint(
        **named, num_floating_point_operations_so_far=0, storage_type=StorageType.MEMORY, deletion_strategy=None, **how
    )
    assert ours.load_checkpoint(model, None, None, storage=None, replica_count=0, **how) == (2, 0)
    assert ours.load_checkpoint(model, optimizer=None, opt_param_scheduler=None, **how) == (2, 0)
    assert not (tmp_path / "c/latest_checkpointed_iteration.txt").exists()
    with pytest.raises(ValueError, match="storage: a object"):
        ours.load_checkpoint(model, None, None, storage=object(), **how)


@pytest.mark.parametrize("missing", ["TorchDistSaveShardedStrategy", "FileSystemWriterAsync", "of the writer", "of the strategy"])
def test_a_core_whose_writer_is_another_is_refused_and_the_format_torch_is_not(
    monkeypatch: pytest.MonkeyPatch, megatron: Any, tmp_path: Path, missing: str
):
    def save(state: Any, checkpoint_dir: str, sharded_strategy: Any = None) -> None:
        raise AssertionError("it is not to be called")

    class Writer:
        prepare_write_data = retrieve_write_results = None
        finish = None

    class Strategy:
        _get_save_and_finalize_callbacks = None

    if missing == "of the writer":
        del Writer.finish
    if missing == "of the strategy":
        del Strategy._get_save_and_finalize_callbacks
    name = "megatron.core.dist_checkpointing"
    contents = {
        name: {"save": save},
        name + ".strategies.torch": {"TorchDistSaveShardedStrategy": Strategy},
        name + ".strategies.filesystem_async": {"FileSystemWriterAsync": Writer},
    }
    for module, values in contents.items():
        made = types.ModuleType(module)
        for each, value in values.items():
            if each != missing:
                setattr(made, each, value)
        monkeypatch.setitem(sys.modules, module, made)
    for package in ("megatron.core", name + ".strategies"):
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
    model = {"w": torch.tensor([1.0])}
    save.__module__ = __name__
    assert ours.save_checkpoint(1, model, None, None, storage_type=StorageType.MEMORY)

    def save_sharded(iteration: int, model: Any, optimizer: Any, opt_param_scheduler: Any) -> None:
        sys.modules[name].save(model, os.path.join(megatron.args.save, f"iter_{iteration:07d}"))

    monkeypatch.setattr(megatron, "save_checkpoint", save_sharded)
    with pytest.raises(Exception, match=r"in a way that Troupe does not know \(.+\): known are 0\.11 to 0\.19"):
        ours.save_checkpoint(2, model, None, None, storage_type=StorageType.MEMORY)
    assert ours.load_checkpoint(model, None, None) == (1, 0)


def test_what_a_job_began_with_leaves_nothing_out_of_what_it_goes_on_with(megatron: Any):
    megatron.args.no_load_optim = megatron.args.no_load_rng = megatron.args.finetune = True
    assert ours.save_checkpoint(1, {"w": torch.tensor([1.0])}, None, None, storage_type=StorageType.MEMORY)
    assert ours.load_checkpoint({}, None, None) == (1, 0)
    assert megatron.parts_left_out == (None, None, False)
    megatron.args.no_save_optim = True  # then there is none to load
    assert ours.load_checkpoint({}, None, None) == (1, 0)
    assert megatron.parts_left_out == (True, None, False)
    assert (megatron.args.no_load_optim, megatron.args.no_load_rng, megatron.args.finetune) == (True, True, True)
