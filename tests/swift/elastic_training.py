"""`swift sft --callbacks deepspeed_elastic graceful_exit`: its runs, and what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Start
from launchers import Run, until
from sft import HERE, arguments, runs

WITHIN = 600.0  # a start of ms-swift takes a minute on a busy machine
STEPS, SAVE_STEPS = 24, 4
BATCH = 8  # of all ranks together, in a world of any size
UCP = ["--elastic-mode=ucp", "--graceful-save-within=300", "--graceful-within=300"]
# DeepSpeed on CPUs.
ENVIRONMENT = {"DS_ACCELERATOR": "cpu", "ACCELERATE_TORCH_DEVICE": "cpu", "MODELSCOPE_OFFLINE": "1"}
MODULE = ["-m", "swift.cli.sft"]  # the script's own directory on sys.path has a package called deepspeed


def config(stage: int) -> dict[str, object]:
    """Of several gathers DeepSpeed waits for the last alone, and then for the device; on CPUs there is none, and an earlier one may
    still write when Transformers has loaded that parameter. So they are made one after another."""
    sharding = {"stage": stage} | ({"stage3_allgather_sequential": True} if stage == 3 else {})
    return {
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "train_batch_size": "auto",
        "gradient_clipping": "auto",
        "fp16": {"enabled": False},
        "bf16": {"enabled": False},
        "zero_optimization": sharding,
        "elasticity": {
            "enabled": True,
            "max_train_batch_size": BATCH,
            "micro_batch_sizes": [4, 2],
            "min_gpus": 1,
            "max_gpus": 4,
            "version": 0.1,
            "ignore_non_elastic_batch_info": True,
        },
    }


class Training:
    """Runs of one model with one kind of sharding."""

    def __init__(self, start: Start, data: Path, directory: Path, stage: int, steps: int = STEPS, save_steps: int = SAVE_STEPS):
        self.start, self.data, self.directory, self.stage = start, data, directory, stage
        self.steps, self.save_steps = steps, save_steps

    def words(self, output: Path, **more: object) -> list[str]:
        """A command, as it is typed after the interpreter."""
        file = self.directory / f"zero{self.stage}.json"
        file.write_text(json.dumps(config(self.stage)))
        more = {"deepspeed": file, "use_cpu": "false", "fp16": "false", "bf16": "false", "external_plugins": HERE / "elastic_plugin.py"} | more
        words = arguments(self.data, output, self.steps, self.save_steps, **more)
        return [*MODULE, *words, "--callbacks", "deepspeed_elastic", "graceful_exit", "paced"]

    def run(self, output: Path, step_takes: float, arguments: dict[str, object] | None = None, **how: object) -> Run:
        how = {"procs": 2, "restarts": 3, "ranked": False, "environment": paced(step_takes)} | how
        return self.start(self.words(output, **(arguments or {})), **how)

    def made_alone(self, **arguments: object) -> Path:
        """The output of two ranks that nothing has happened to."""
        said = "-".join(str(value) for pair in arguments.items() for value in pair)
        output = self.data / f"alone-zero{self.stage}-{self.steps}-{said}"
        if not output.exists():
            run = self.run(output, 0, arguments)
            assert run.wait(WITHIN) == [0], run.err()
        return output


def paced(step_takes: float) -> dict[str, str]:
    return ENVIRONMENT | {"STEP_TAKES": str(step_takes)}


def losses(output: Path, of: list[Path] | None = None) -> dict[int, list[float]]:
    """Of each step, in the order of the runs that have made it: of all below `output`, or of some."""
    found: dict[int, list[float]] = {}
    for run in of or runs(output):
        log = run / "logging.jsonl"
        for line in log.read_text().splitlines() if log.exists() else []:
            said = json.loads(line)
            if "loss" in said and "global_step/max_steps" in said:
                found.setdefault(int(said["global_step/max_steps"].split("/")[0]), []).append(float(said["loss"]))
    return found


def last(output: Path, tracker: str = "dlrover_latest.txt") -> int:
    """Of all runs."""
    return max((int((run / tracker).read_text()) for run in runs(output) if (run / tracker).exists()), default=0)


def makes(run: Run, output: Path, step: int) -> None:
    until(lambda: max(losses(output), default=0) >= step, WITHIN, f"step {step}\n{run.err()[-3000:]}")


def require_same_curve(output: Path, alone: Path, steps: int = STEPS) -> None:
    """The same sums in another order: a step of another state is farther away."""
    ours, theirs = losses(output), losses(alone)
    assert sorted(ours) == list(range(1, steps + 1))
    for step, found in ours.items():
        for loss in found:  # a step that was made twice is the same step
            assert loss == pytest.approx(theirs[step][0], rel=1e-5), f"step {step}: {found}, alone {theirs[step]}"
