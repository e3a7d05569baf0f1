"""What callbacks, the Hub, a second `train`, evaluations and sweeps see with `flash` is what they see without: differential."""

from __future__ import annotations

import concurrent.futures
import gc
import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_trainer import losses, trainer
from transformers import TrainerCallback
from transformers.trainer_utils import HubStrategy

from troupe.checkpoint.transformers import flash

Row = tuple[Any, ...]


def contents(directory: Path) -> dict[str, str]:
    """Files by name, in a form that is the same for equal contents."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if not path.is_file() or Path(name).name.startswith(("troupe-", ".troupe")):
            continue
        if path.suffix == ".pt":
            found[name] = repr(torch.load(path))  # the archive's inner folder has another name
        elif name == "training_args.bin":
            found[name] = repr(torch.load(path, weights_only=False).to_dict() | {"output_dir": "", "logging_dir": ""})
        elif name == "trainer_state.json":
            state = json.loads(path.read_text().replace(str(directory.parent), "PLACE"))
            log = [{key: value for key, value in row.items() if not key.endswith(("_runtime", "_second"))} for row in state["log_history"]]
            found[name] = json.dumps(state | {"log_history": log})
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


class Watches(TrainerCallback):
    """Writes down each call, with what state says and what is in the directories."""

    def __init__(self, place: Path):
        self.place = place
        self.rows: list[Row] = []

    def told(self, what: str, state: Any, control: Any) -> None:
        flags = control.should_save, control.should_evaluate, control.should_log, control.should_training_stop
        here = threading.current_thread() is threading.main_thread()
        best = (state.best_model_checkpoint or "").replace(str(self.place), "PLACE")
        kept = json.dumps(state.stateful_callbacks, default=str)
        self.rows.append((what, state.global_step, flags, best, kept, here))

    def on_save(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        self.told("save", state, control)
        directory = self.place / f"checkpoint-{state.global_step}"
        self.rows.append(("files", contents(directory)))
        self.rows.append(("weights", float(sum(p.detach().double().sum() for p in named["model"].parameters()))))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.told("step", state, control)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.told("evaluated", state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.told("end", state, control)


class Stops(TrainerCallback):
    """An order that on_save gives is obeyed."""

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        control.should_training_stop = state.global_step >= 10
        return control


SHAPES: dict[str, dict[str, Any]] = {
    "steps": {},
    "epochs": {"save_strategy": "epoch", "max_steps": -1, "num_train_epochs": 2, "per_device_train_batch_size": 16},
    "best": {
        "eval_strategy": "steps",
        "eval_steps": 4,
        "save_strategy": "best",
        "metric_for_best_model": "loss",
        "load_best_model_at_end": True,
    },
    "stops": {"callbacks": [Stops]},
    "only the model": {"save_only_model": True},
    "limit": {"save_total_limit": 1},
    "two of one kind": {"callbacks": [lambda: transformers.EarlyStoppingCallback(3), lambda: transformers.EarlyStoppingCallback(4)],
                        "eval_strategy": "steps", "eval_steps": 5, "metric_for_best_model": "loss", "load_best_model_at_end": True},
}  # fmt: skip


def seen(place: Path, how: dict[str, Any], options: dict[str, Any] | None) -> tuple[list[Row], Any]:
    watches = Watches(place)
    arguments = dict(how)
    callbacks = [make() for make in arguments.pop("callbacks", [])]
    made = trainer(place, arguments.pop("max_steps", 12), callbacks=[*callbacks, watches], **arguments)
    made = made if options is None else flash(made, **options)
    made.train()
    return watches.rows, made


@pytest.mark.parametrize("options", [pytest.param({}, marks=pytest.mark.long), {"memory_steps": 2}], ids=["disk", "memory, too"])
@pytest.mark.parametrize("shape", SHAPES)
def test_callbacks_see_what_they_see_without_us(tmp_path: Path, shape: str, options: dict[str, Any]):
    theirs, own = seen(tmp_path / "own", SHAPES[shape], None)
    ours, made = seen(tmp_path / "ours", SHAPES[shape], options)
    assert [row[:2] for row in ours] == [row[:2] for row in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one == other
    assert losses(made) == losses(own)
    directories = [sorted(path.name for path in at.glob("checkpoint-*")) for at in (tmp_path / "ours", tmp_path / "own")]
    assert directories[0] == directories[1]


def test_a_step_that_could_not_be_written_is_not_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Without us the save would have raised; here training goes on, and no callback is sent to a directory that lacks files."""

    class InTheWay(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 5:
                (tmp_path / "c/checkpoint-5").mkdir(parents=True)
                (tmp_path / "c/checkpoint-5/mine").touch()

    watches = Watches(tmp_path / "c")
    flash(trainer(tmp_path / "c", 10, callbacks=[InTheWay(), watches])).train()
    assert [row[1] for row in watches.rows if row[0] == "save"] == [10]
    assert any("checkpoint-5" in record.getMessage() for record in caplog.records)


def test_nothing_is_waited_for_where_it_is_not_wanted(tmp_path: Path):
    waited = []
    for name, options, callbacks in (
        ("plain", {}, []),
        ("at once", {"wait_for_callbacks": False}, [Watches(tmp_path / "none")]),
        ("asked", {}, [Watches(tmp_path / "none")]),
    ):
        made = flash(trainer(tmp_path / name, 12, callbacks=callbacks), **options)
        settle, calls = made._flash.settle, []
        made._flash.settle = lambda settle=settle, calls=calls, made=made: (calls.append(made.state.global_step), settle())[1]
        made.train()
        waited.append(calls[:2])
    assert waited == [[12, 12], [12, 12], [5, 10]]


# ---- Several trainings in one process ----


def evaluated(made: Any) -> list[Any]:
    metrics = {key: value for key, value in made.evaluate().items() if "time" not in key and "second" not in key}
    return [metrics, made.predict(made.eval_dataset).predictions.sum().item()]


def again_and_again(place: Path, ours: bool) -> list[Any]:
    """A second `train`, evaluations before, between and after, another Trainer that resumes, and a sweep."""
    made = trainer(place / "a", 10)
    made = flash(made, memory_steps=3) if ours else made
    rows = evaluated(made)
    made.train()
    rows += [losses(made), evaluated(made)]
    made.args.max_steps = 15
    made.train(resume_from_checkpoint=True)
    rows += [losses(made), evaluated(made)]
    made.save_model(str(place / "saved"))
    other = trainer(place / "a", 20)
    rows += evaluated(other := flash(other) if ours else other)
    other.train(resume_from_checkpoint=str(place / "a/checkpoint-10"))
    rows += [losses(other), evaluated(other)]
    for rate in (1e-3, 1e-2):
        one = trainer(place / f"sweep-{rate}", 5, learning_rate=rate)
        (flash(one) if ours else one).train()
        rows += [losses(one), evaluated(one)]
    rows.append(sorted(str(path.relative_to(place)) for path in place.glob("*/checkpoint-*")))
    return rows


def test_a_second_train_an_evaluation_and_a_sweep_are_as_without_us(tmp_path: Path):
    assert again_and_again(tmp_path / "ours", True) == again_and_again(tmp_path / "own", False)


def test_a_sweep_gives_memory_back(tmp_path: Path):
    def open_files() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    counts = []
    for trial in range(4):
        flash(trainer(tmp_path / str(trial), 1)).train()
        counts.append(open_files())
    assert counts[-1] <= counts[0]


# ---- The Hub ----


class Hub:
    """In the place of huggingface_hub's client."""

    def __init__(self) -> None:
        self.pushes: list[Row] = []

    def upload_folder(self, folder_path: str, commit_message: str, path_in_repo: str = "", **_: Any) -> Any:
        self.pushes.append((path_in_repo, commit_message, contents(Path(folder_path)) if path_in_repo else {}))
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        done.set_result(None)
        done.repo_url = ""  # type: ignore[attr-defined]
        return done

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


@pytest.mark.parametrize("strategy", ["every_save", "checkpoint", "all_checkpoints", "end"])
def test_what_is_pushed_is_whole(tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch):
    pushed = []
    for name in ("own", "ours"):
        hub = Hub()
        monkeypatch.setattr(transformers.trainer, "hf_api", lambda hub=hub: hub)
        made = trainer(tmp_path / name, 10)
        made.args.push_to_hub, made.args.hub_strategy, made.hub_model_id = True, HubStrategy(strategy), "me/it"
        made.args.hub_always_push, made.push_in_progress = True, None
        (flash(made, memory_steps=3) if name == "ours" else made).train()
        pushed.append([hub.pushes, (tmp_path / name / "model.safetensors").exists()])
    for rows in pushed:  # what differs is where it is
        for _, _, files in rows[0]:
            files.pop("trainer_state.json", None), files.pop("training_args.bin", None)
    assert pushed[0] == pushed[1]
    if strategy == "end":
        assert pushed[1][0] == []
