"""The wheel of DLRover's names: they are there, what is not there says what to do, and DLRover itself is never in danger."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from conftest import BARE, ROOT, Environment, packed, run

VERSION = (ROOT / "VERSION").read_text().strip()
# DLRover as far as it matters: a package, its launcher, and a script of the same name.
REAL = {
    "dlrover/__init__.py": "",
    "dlrover/trainer/__init__.py": "",
    "dlrover/trainer/torch/__init__.py": "",
    "dlrover/trainer/torch/main.py": "def main():\n    print('the real one')\n\n\nif __name__ == '__main__':\n    main()\n",
    "dlrover-0.6.1.dist-info/entry_points.txt": "[console_scripts]\ndlrover-run = dlrover.trainer.torch.main:main\n",
}
TRAINING = """
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from dlrover.python.common.storage import KeepLatestStepStrategy
from dlrover.trainer.torch.elastic.dataloader import ElasticDataLoader
from dlrover.trainer.torch.elastic.sampler import ElasticDistributedSampler
from dlrover.trainer.torch.elastic.trainer import ElasticTrainer
from dlrover.trainer.torch.flash_checkpoint.checkpointer import StorageType
from dlrover.trainer.torch.flash_checkpoint.ddp import DdpCheckpointer

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
data = torch.randn(32, 4)
loader = ElasticDataLoader(data, batch_size=2, sampler=ElasticDistributedSampler(data))
trainer = ElasticTrainer(model, loader)
optimizer = trainer.prepare(torch.optim.SGD(model.parameters(), lr=0.1))
place = sys.argv[1]
checkpointer = DdpCheckpointer(place, deletion_strategy=KeepLatestStepStrategy(2, place))
state = checkpointer.load_checkpoint()
if state:
    model.load_state_dict(state["model"])
    loader.sampler.load_state_dict(state["sampler"])
for step, x in enumerate(loader, state.get("step", 0) + 1):
    with trainer.step(True):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    state = {"step": step, "model": model.state_dict(), "sampler": loader.sampler.state_dict(step, 2)}
    where = StorageType.DISK if step in (5, 8) else StorageType.MEMORY
    assert checkpointer.save_checkpoint(step, state, storage_type=where)
    if step == 5:
        break
assert checkpointer.wait_latest_checkpoint()
checkpointer.close()
if dist.get_rank() == 0:
    print("steps", step, state["sampler"]["completed_num"])
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def names(wheels: list[Path]) -> Path:
    return wheels[1]


@pytest.fixture(scope="module")
def environment(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("names"))
    made.install(*wheels)
    return made


@pytest.fixture
def real(tmp_path: Path) -> Path:
    return packed(tmp_path, "dlrover", "0.6.1", REAL)


def test_nothing_in_it_lies_where_dlrover_does(names: Path) -> None:
    own = ("troupe_dlrover_names/", "troupe_dlrover_names.pth", f"actor_launcher_dlrover_names-{VERSION}.dist-info/")
    assert all(path.startswith(own) for path in zipfile.ZipFile(names).namelist())
    assert names.name == f"actor_launcher_dlrover_names-{VERSION}-py3-none-any.whl"


def test_its_package_is_found(environment: Environment) -> None:
    said = environment.python("-c", "import dlrover; print(dlrover.__file__)")
    assert said.stdout.endswith("/troupe_dlrover_names/path/dlrover/__init__.py\n"), said.stderr
    said = environment.python("-m", "troupe_dlrover_names")
    assert (said.returncode, said.stdout[:30]) == (0, "import dlrover: Troupe's names")


def test_its_command_is_the_launcher(environment: Environment) -> None:
    said = environment.dlrover_run("--version")
    assert said.stdout.startswith(f"troupe {VERSION}"), said.stderr
    assert environment.python("-m", "dlrover.trainer.torch.main", "--version").stdout == said.stdout
    options = "--standalone --nnodes=1 --max_restarts=2 --nproc_per_node=2 --node_unit=1 --save_at_breakpoint --precheck 0"
    options += " --accelerator nvidia.com/gpu --training_port 60000 --membind-policy none --ucp_device_type cpu"
    ended = environment.dlrover_run(*options.split(), "--no-python", "echo", "x")
    assert (ended.returncode, ended.stdout) == (0, "x\nx\n"), ended.stderr
    ended = environment.dlrover_run("--logs-specs=x", "--standalone", "script.py")
    assert ended.returncode == 2 and "--logs-specs" in ended.stderr


def test_xpu_timers_commands_are_troupes(environment: Environment, tmp_path: Path) -> None:
    def command(name: str, *words: object) -> subprocess.CompletedProcess[str]:
        return run(environment.bin / name, *words, env={**BARE, "HOME": str(tmp_path)})

    shown = command("xpu_timer_launch", "sh", "-c", 'echo "$LD_PRELOAD $XPU_TIMER_TIMELINE_PATH $TROUPE_TRACE_DIR $1"', "-", "x")
    library = f"{environment.place}/libexec/troupe/libtroupe_trace.so"
    assert shown.stdout == f"{library} {tmp_path}/timeline {tmp_path}/timeline x\n", shown.stderr
    assert command("xpu_timer_launch", "sh", "-c", "exit 7").returncode == 7
    missing = command("xpu_timer_launch", tmp_path / "none")
    assert (missing.returncode, missing.stderr) == (127, f"xpu_timer_launch: {tmp_path}/none: No such file or directory\n")
    assert command("xpu_timer_launch").returncode == 2
    # A job below it runs as always.
    job = command("xpu_timer_launch", environment.bin / "actor-launcher", "--standalone", "--no-python", "echo", "job")
    assert (job.returncode, job.stdout) == (0, "job\n"), job.stderr
    viewed = command("xpu_timer_stacktrace_viewer", "--path", tmp_path)
    assert viewed.returncode == 1 and str(tmp_path) in viewed.stderr


def test_each_missing_name_says_what_to_do(environment: Environment) -> None:
    said = environment.python(
        "-c",
        "from troupe_dlrover_names.missing import INSTEAD\n"
        "for name, row in INSTEAD.items():\n"
        "    if name in ('dlrover', 'dlrover.python.common.storage'): continue\n"
        "    package, _, last = name.rpartition('.')\n"
        "    for how in (f'import {name}', f'from {package} import {last}', f'from {name} import something'):\n"
        "        try: exec(how)\n"
        "        except ImportError as error: assert 'torch' in str(error) or row in str(error), (how, error)\n"
        "        else: raise SystemExit(f'{how} went well')\n"
        "    print(name)\n",
    )
    assert said.returncode == 0, said.stderr + said.stdout
    assert len(said.stdout.splitlines()) >= 20
    for line, what in (
        ("from dlrover.trainer.torch.flash_checkpoint import megatron_engine", "megatron.save_checkpoint and load_checkpoint"),
        ("from dlrover.trainer.torch.flash_checkpoint import fsdp_engine", "FsdpShardCheckpointer"),
        ("from dlrover.trainer.torch.elastic import something", "inner part of DLRover"),
        ("import dlrover.nothing.at.all", "dlrover.nothing is not in actor-launcher-dlrover-names"),
    ):
        said = environment.python("-c", line)
        assert said.returncode == 1 and what in said.stderr.splitlines()[-1]
    said = environment.python("-c", "import dlrover; print(hasattr(dlrover, '__version__'))")
    assert said.stdout == "False\n"


def test_dlrover_is_not_touched_and_remains_what_is_imported(wheels: list[Path], real: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(real)
    site = next(environment.place.glob("lib/python3*/site-packages"))
    environment.install(*wheels)
    for path, text in REAL.items():
        assert (site / path).read_text() == text
    assert environment.python("-c", "import dlrover; print(dlrover.__file__)").stdout == f"{site}/dlrover/__init__.py\n"
    assert environment.python("-m", "dlrover.trainer.torch.main").stdout == "the real one\n"

    said = environment.python("-m", "troupe_dlrover_names")
    assert said.returncode == 1 and "DLRover 0.6.1 is installed as well as actor-launcher-dlrover-names" in said.stdout
    said = environment.dlrover_run("--version")
    assert said.returncode == 2 and "pip uninstall one of the two" in said.stderr
    folder = f"{site}/troupe_dlrover_names/path"
    said = environment.python("-c", "import dlrover", PYTHONPATH=folder)
    assert said.returncode == 1 and "only one of them can be `dlrover`" in said.stderr

    told = {"TROUPE_DLROVER_NAMES": "1"}
    worker = ("--standalone", "--no-python", environment.bin / "python", "-c", "import dlrover; print(dlrover.__file__)")
    assert environment.dlrover_run(*worker, **told).stdout == f"{folder}/dlrover/__init__.py\n"
    said = environment.dlrover_run(*worker, **told, PYTHONPATH="/nonexistent")
    assert said.stdout == f"{folder}/dlrover/__init__.py\n"

    environment.pip("uninstall", "-q", "-y", "dlrover")
    assert environment.python("-m", "troupe_dlrover_names").returncode == 0


@pytest.mark.long
def test_without_it_dlrover_is_what_it_was(wheels: list[Path], real: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(*wheels)
    environment.install(real)
    assert environment.dlrover_run().stdout == "the real one\n", "the later one has the command"
    environment.pip("uninstall", "-q", "-y", "actor-launcher-dlrover-names")
    assert environment.python("-m", "dlrover.trainer.torch.main").stdout == "the real one\n"


def test_a_folder_of_its_own_says_what_it_needs(names: Path, wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", tmp_path]
    subprocess.run([*pip, wheel, names], check=True)
    said = run("python3", "-m", "troupe_dlrover_names", env={**BARE, "PYTHONPATH": str(tmp_path)})
    folder = f"{tmp_path}/troupe_dlrover_names/path"
    assert said.returncode == 1 and f"Python does not look in {folder}" in said.stdout
    both = {**BARE, "PYTHONPATH": f"{tmp_path}:{folder}"}
    assert run("python3", "-m", "troupe_dlrover_names", env=both).returncode == 0


def test_a_script_of_dlrover_trains_and_goes_on(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    words = ("--standalone", "--nproc_per_node=2", "--max_restarts=1", tmp_path / "train.py", tmp_path / "kept")
    # The new environment has no torch: the tests' own is behind it.
    torch = {"PYTHONPATH": sysconfig.get_path("purelib"), "OMP_NUM_THREADS": "1"}
    for said in ("steps 5 20\n", "steps 8 32\n"):
        ended = environment.dlrover_run(*words, **torch)
        assert (ended.returncode, ended.stdout) == (0, said), ended.stderr
    assert (tmp_path / "kept/dlrover_latest.txt").read_text().strip() == "8"
    assert sorted(p.name for p in (tmp_path / "kept").iterdir() if p.name.isdigit()) == ["5", "8"]
