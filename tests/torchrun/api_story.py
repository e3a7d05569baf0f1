"""Plays the launch API's cases on one side, `torch` or `troupe`; prints what came of each as JSON.

The two sides share everything but the import, which is what a user changes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any


def adds(a: int, b: int) -> dict[str, int]:
    return {"rank": int(os.environ["RANK"]), "sum": a + b}


def environment() -> list[str | None]:
    names = ["LOCAL_RANK", "WORLD_SIZE", "ROLE_NAME", "TORCHELASTIC_MAX_RESTARTS"]
    return [os.environ.get(name) for name in names]


def raises() -> None:
    if os.environ["RANK"] == "1":
        raise KeyError("not there")
    time.sleep(600)


def leaves(code: int) -> None:
    sys.exit(code)


def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def succeeds_the_second_time() -> str:
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise RuntimeError("once")
    return os.environ["TORCHELASTIC_RESTART_COUNT"]


CASES: dict[str, tuple[dict[str, Any], Callable[..., Any] | str, tuple[Any, ...]]] = {
    "values by rank": ({"nproc_per_node": 2}, adds, (1, 2)),
    "what workers are told": ({"role": "trainer", "max_restarts": 2}, environment, ()),
    "an exception": ({"nproc_per_node": 2}, raises, ()),
    "exit 0": ({}, leaves, (0,)),
    "exit 3": ({}, leaves, (3,)),
    "a signal": ({}, is_killed, ()),
    "a restart": ({"max_restarts": 1}, succeeds_the_second_time, ()),
    "a command": ({"nproc_per_node": 2}, "sh", ("-c", "exit $(( ${local_rank} - $LOCAL_RANK ))")),
    "a failing command": ({}, "sh", ("-c", "exit 7")),
}


def outcome(launch: Any, config: Any, entrypoint: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        return {"returned": sorted(launch(config, entrypoint)(*arguments).items())}
    except Exception as e:
        rank, failure = e.get_first_failure()
        message = failure.message
        if isinstance(message, dict):
            message = [message["message"], message["extraInfo"]["py_callstack"].split("\n")[-2]]
        return {
            "raised": type(e).__name__,
            "name": e.name,
            "rank": [rank, failure.local_rank],
            "exit": [failure.exitcode, failure.signal_name()],
            "has an error file": failure.error_file != "<N/A>",
            "message": message
            if isinstance(message, list)
            else message.replace(str(failure.pid), "PID"),
        }


def main(side: str) -> None:
    if side == "torch":
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch
    else:
        from troupe import LaunchConfig
        from troupe import launch as elastic_launch
    story = {}
    for name, (fields, entrypoint, arguments) in CASES.items():
        usual = {"nproc_per_node": 1, "max_restarts": 0, "rdzv_endpoint": "localhost:0"}
        # Forked workers spare torch's side two seconds for each case; ours are never forked.
        method = {"start_method": "fork"} if side == "torch" else {}
        config = LaunchConfig(1, 1, rdzv_backend="c10d", run_id="job", **usual | fields | method)
        story[name] = outcome(elastic_launch, config, entrypoint, arguments)
    print(json.dumps({"story": story, "torch is loaded": "torch" in sys.modules}))


if __name__ == "__main__":
    main(sys.argv[1])
