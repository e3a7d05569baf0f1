"""What PyTorch's own launcher tests ask of torchrun as a program, asked of ours.

Restated from test/distributed/launcher/test_run.py and launch_test.py: those cases that touch nothing but the
command line, the environment, files and exit codes. Arguments and assertions are upstream's.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from launchers import PYTHON, TAG, base_environment, free_port

SCRIPTS = Path(__file__).with_name("scripts")
TOUCH, SHELL = SCRIPTS / "touch.py", SCRIPTS / "touch.sh"
USUAL = ["--monitor-interval=1", "--start-method=spawn"]

Launch = Callable[..., subprocess.Popen]


@pytest.fixture
def launch(launcher: Path, tag: str, tmp_path: Path) -> Launch:
    def started(*arguments: object, **environment: str) -> subprocess.Popen:
        inherited = {k: v for k, v in base_environment().items() if not k.startswith("PET_")}
        ours = {"SENTINEL_OF_THE_PARENT": "seen", "TMPDIR": str(tmp_path), TAG: tag}
        return subprocess.Popen(
            [str(launcher), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=inherited | ours | environment,
        )

    return started


@pytest.fixture
def touched(tmp_path: Path) -> Path:
    (tmp_path / "touched").mkdir()
    return tmp_path / "touched"


def succeeds(process: subprocess.Popen, within: float = 180) -> str:
    out, err = process.communicate(timeout=within)
    assert process.returncode == 0, err + out
    return out


def fails(process: subprocess.Popen, within: float = 180) -> str:
    """With one line that says why, at least."""
    _, err = process.communicate(timeout=within)
    assert process.returncode in (1, 2)
    assert err
    return err


def ranks_in(touched: Path) -> set[str]:
    return {file.name for file in touched.iterdir()}


def all_ranks(world: int) -> set[str]:
    return {str(rank) for rank in range(world)}


def job_id() -> str:
    return f"--rdzv-id={uuid.uuid4().int}"


def elastic(nodes: str = "1:2", port: int | None = None) -> list[str]:
    endpoint = f"localhost:{port or free_port()}"
    return [f"--nnodes={nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}", *USUAL]


# Upstream passes it in quotation marks of its own, so the first key is unknown.
ODD_SETTINGS = "--rdzv-conf='join_timeout=5,last_call_timeout=1,timeout=5'"


def test_launch_user_script_python(launch: Launch, touched: Path) -> None:
    options = ["--nnodes=1", "--nproc-per-node=4", job_id(), *USUAL]
    succeeds(launch(*options, TOUCH, f"--touch-file-dir={touched}"))
    assert ranks_in(touched) == all_ranks(4)


def test_launch_user_script_python_caffe2_bc(launch: Launch, touched: Path) -> None:
    static = ["--master-addr=localhost", f"--master-port={free_port()}", "--node-rank=0"]
    options = ["--nnodes=1", "--nproc-per-node=4", *USUAL, *static]
    succeeds(launch(*options, TOUCH, f"--touch-file-dir={touched}"))
    assert ranks_in(touched) == all_ranks(4)


@pytest.mark.parametrize(
    ("count", "world"),
    [
        pytest.param(["--nproc-per-node=4"], 4, id="launch_user_script_bash"),
        pytest.param([], 1, id="launch_user_script_default_nproc"),
        pytest.param(
            ["--nproc-per-node=auto"],
            len(os.sched_getaffinity(0)),
            id="nproc_launch_auto_configurations",
        ),
        pytest.param(["--nproc-per-node=4"], 4, id="nproc_launch_number_configurations"),
    ],
)
def test_shell_script(launch: Launch, touched: Path, count: list[str], world: int) -> None:
    options = ["--nnodes=1", *count, job_id(), *USUAL, "--no-python"]
    fails(launch(*options, "--module", SHELL, touched))
    assert ranks_in(touched) == set()
    succeeds(launch(*options, SHELL, touched))
    assert ranks_in(touched) == all_ranks(world)


def test_nproc_launch_unknown_configurations(launch: Launch, touched: Path) -> None:
    said = fails(launch("--nnodes=1", "--nproc-per-node=unknown", "--no-python", SHELL, touched))
    assert "unknown" in said
    assert ranks_in(touched) == set()


def test_launch_with_env_vars(launch: Launch, touched: Path) -> None:
    options = {
        "PET_NNODES": "1",
        "PET_NPROC_PER_NODE": "4",
        "PET_RDZV_ID": str(uuid.uuid4().int),
        "PET_MONITOR_INTERVAL": "1",
        "PET_START_METHOD": "spawn",
        "PET_NO_PYTHON": "1",
    }
    fails(launch(SHELL, touched, **options, PET_MODULE="1"))
    succeeds(launch(SHELL, touched, **options, PET_MODULE="0"))
    assert ranks_in(touched) == all_ranks(4)


def test_launch_elastic(launch: Launch, touched: Path) -> None:
    options = [*elastic(), "--nproc-per-node=4", job_id(), ODD_SETTINGS]
    succeeds(launch(*options, TOUCH, f"--touch-file-dir={touched}"))
    assert ranks_in(touched) == all_ranks(4)


def test_launch_elastic_worker_raise_exception(launch: Launch) -> None:
    options = [*elastic(), "--nproc-per-node=4", job_id(), ODD_SETTINGS, "--max-restarts=0"]
    assert "FAILED" in fails(launch(*options, TOUCH, "--fail"))


def test_launch_standalone(launch: Launch, touched: Path) -> None:
    options = ["--nnodes=1", "--nproc-per-node=4", "--standalone", *USUAL]
    succeeds(launch(*options, TOUCH, f"--touch-file-dir={touched}"))
    assert ranks_in(touched) == all_ranks(4)


def test_launch_run_path(launch: Launch, touched: Path) -> None:
    options = ["--run-path", "--nnodes=1", "--nproc-per-node=4", *USUAL]
    succeeds(launch(*options, TOUCH, f"--touch-file-dir={touched}"))
    assert ranks_in(touched) == all_ranks(4)


def test_launch_elastic_multiple_agents(launch: Launch, touched: Path) -> None:
    # Upstream does not say how long the second agent is waited for: torchrun waits 30 s, we do not.
    conf = "--rdzv_conf=timeout=5,last_call_timeout=60"
    options = [*elastic(), "--nproc-per-node=4", job_id(), conf]
    agents = [launch(*options, TOUCH, f"--touch-file-dir={touched}") for _ in range(2)]
    for agent in agents:
        succeeds(agent)
    assert ranks_in(touched) == all_ranks(8)


def test_min_max_nodes_parse(launch: Launch, touched: Path) -> None:
    succeeds(launch("--nnodes=1", "--no-python", SHELL, touched))
    assert "2:20:30" in fails(launch("--nnodes=2:20:30", "--no-python", SHELL, touched))


def test_is_torchelastic_launched(launch: Launch, tmp_path: Path) -> None:
    options = ["--run-path", "--nnodes=1", "--nproc-per-node=1", "--monitor-interval=1"]
    succeeds(launch(*options, SCRIPTS / "is_launched.py", tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "True"


def test_is_not_torchelastic_launched(tmp_path: Path) -> None:
    subprocess.run([PYTHON, SCRIPTS / "is_launched.py", tmp_path / "out"], check=True)
    assert (tmp_path / "out").read_text() == "False"


def test_logs_logs_spec_entrypoint_must_be_defined(launch: Launch, tmp_path: Path) -> None:
    options = ["--run-path", "--nnodes=1", "--nproc-per-node=1", "--monitor-interval=1"]
    script = SCRIPTS / "is_launched.py"
    fails(launch(*options, "--logs_specs=DOESNOT_EXIST", script, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_init_method_tcp_with_torchelastic(launch: Launch) -> None:
    port = free_port()
    static = ["--master-addr=localhost", f"--master-port={port}", "--monitor-interval=1"]
    options = ["--run-path", "--nnodes=1", "--nproc-per-node=4", *static]
    succeeds(launch(*options, SCRIPTS / "all_reduce.py", f"tcp://localhost:{port}"))


def test_init_method_env_with_torchelastic(launch: Launch) -> None:
    static = ["--master-addr=localhost", f"--master-port={free_port()}", "--monitor-interval=1"]
    options = ["--run-path", "--nnodes=1", "--nproc-per-node=4", *static]
    succeeds(launch(*options, SCRIPTS / "all_reduce.py", "env://"))


def test_capture_logs_using_default_logs_specs(launch: Launch, touched: Path) -> None:
    options = ["--nnodes=1", "--nproc-per-node=4", job_id(), "--redirect=3", "--tee=3", *USUAL]
    template = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank${rank}]: "}
    seen = succeeds(launch(*options, "--no-python", SHELL, touched, **template))
    for rank in range(4):
        assert f"[rank{rank}]: creating {touched}/{rank}\n" in seen


@pytest.mark.parametrize("use_env", [False, True])
def test_launch_local_rank(launch: Launch, touched: Path, use_env: bool) -> None:
    """launch_test.py: without --use-env each worker is told its local rank as an argument."""
    options = ["--nnodes=1", "--nproc-per-node=4", *USUAL, *elastic("1")[1:3]]
    told = [] if use_env else ["--local-rank-argument"]
    succeeds(launch(*options, *told, TOUCH, f"--touch-file-dir={touched}"))
    assert ranks_in(touched) == all_ranks(4)
