"""What the installed torchrun makes of a command line: its own code, up to where it would start something."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

from torch.distributed import run
from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.elastic.multiprocessing.api import to_map
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousTimeout, _get_timeout
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import create_rdzv_handler
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
from torch.distributed.elastic.utils import macros

RANKS_SHOWN = 13
PYTHON = "python3"

Outcome = dict[str, Any]


class Logs:
    """In the place of DefaultLogsSpecs, which makes directories."""

    def __init__(self, log_dir: Any, redirects: Any, tee: Any, local_ranks_filter: Any) -> None:
        self.log_dir, self.redirects, self.tee = log_dir, redirects, tee
        self.shown = local_ranks_filter


class Launch:
    """In the place of elastic_launch: keeps what would have been launched."""

    last: tuple[Any, Any, list[str]]

    def __init__(self, config: Any, entrypoint: Any) -> None:
        self.config, self.entrypoint = config, entrypoint

    def __call__(self, *arguments: str) -> None:
        Launch.last = (self.config, self.entrypoint, list(arguments))


@contextlib.contextmanager
def pretending(environment: dict[str, str]) -> Iterator[io.StringIO]:
    said = io.StringIO()
    logging.disable(logging.CRITICAL)
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(run, "elastic_launch", Launch),
        mock.patch.object(run, "DefaultLogsSpecs", Logs),
        mock.patch.object(run.uuid, "uuid4", lambda: "fresh"),
        mock.patch.object(sys, "executable", PYTHON),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(said),
    ):
        yield said
    logging.disable(logging.NOTSET)


def start_of(config: Any) -> tuple[str, int]:
    """Whatever torchrun still refuses before it waits for other nodes. Answers the endpoint."""
    if config.nproc_per_node < 1:
        raise ValueError("no workers")
    parameters = RendezvousParameters(
        backend=config.rdzv_backend,
        endpoint=config.rdzv_endpoint,
        run_id=config.run_id,
        min_nodes=config.min_nodes,
        max_nodes=config.max_nodes,
        local_addr=config.local_addr,
        **config.rdzv_configs,
    )
    if config.rdzv_backend == "static":
        handler = create_rdzv_handler(parameters)
        return handler.master_addr, handler.master_port
    if config.rdzv_backend != "c10d":
        raise ValueError("a backend that is not torch's")
    host, port = parse_rendezvous_endpoint(config.rdzv_endpoint, 29400)
    parameters.get_as_bool("is_host")
    if parameters.get_as_int("read_timeout", 60) <= 0:
        raise ValueError("read_timeout")
    if parameters.get("store_type", "tcp").strip().lower() not in ("tcp", "file"):
        raise ValueError("store_type")
    timeouts = ("join", "last_call", "close", "heartbeat")
    RendezvousTimeout(*(_get_timeout(parameters, each) for each in timeouts))
    for count in ("keep_alive_interval", "keep_alive_max_attempt"):
        parameters.get_as_int(count, 1)
    return host, port


def threads_set(environment: dict[str, str]) -> int | None:
    """What torchrun has set OMP_NUM_THREADS to, if it has."""
    if "OMP_NUM_THREADS" in environment or "OMP_NUM_THREADS" not in os.environ:
        return None
    return int(os.environ["OMP_NUM_THREADS"])


def choice(of: Any) -> list[int]:
    return [int(of_rank) for of_rank in to_map(of, RANKS_SHOWN).values()]


def described(config: Any, entrypoint: Any, arguments: list[str]) -> Outcome:
    host, port = start_of(config)
    conf = config.rdzv_configs
    logs = config.logs_specs
    run_path = callable(entrypoint)
    head = [] if run_path else [entrypoint]
    number = {key: float(conf[key]) if key in conf else None for key in TIMEOUTS}
    truth = RendezvousParameters("c10d", "", "", 1, 1, **{"is_host": conf.get("is_host")})
    return {
        "nodes": [config.min_nodes, config.max_nodes],
        "nproc_per_node": config.nproc_per_node,
        "max_restarts": config.max_restarts,
        "rdzv_backend": config.rdzv_backend,
        "host": host,
        "port": port,
        "run_id": config.run_id,
        "node_rank": conf.get("rank"),
        **(number if config.rdzv_backend == "c10d" else {}),
        "is_host": truth.get_as_bool("is_host"),
        "local_addr": config.local_addr or "",
        "log_dir": logs.log_dir or "",
        "redirects": choice(logs.redirects),
        "tee": choice(logs.tee),
        "shown": logs.shown and sorted(rank for rank in logs.shown if 0 <= rank < 1024),
        "prefix_template": config.log_line_prefix_template or "",
        "duplicate_stdout": config.duplicate_stdout_filters,
        "duplicate_stderr": config.duplicate_stderr_filters,
        "role": config.role,
        "signals": config.signals_to_handle,
        "shutdown_timeout": float(config.shutdown_timeout),
        "virtual_local_rank": config.virtual_local_rank,
        "numa_binding": config.numa_options.affinity_mode.value if config.numa_options else "",
        "start_method": config.start_method,
        "run_path": run_path,
        "argv": [head + macros.substitute(arguments, str(rank)) for rank in (0, 3)],
    }


TIMEOUTS = ("join_timeout", "last_call_timeout", "read_timeout")


def judged(arguments: list[str], environment: dict[str, str]) -> Outcome:
    """{"refused": exit code, "what": …}, {"printed": …}, or the configuration."""
    with pretending(environment) as said:
        try:
            run.run(run.parse_args(arguments))
            return described(*Launch.last) | {"omp_threads": threads_set(environment)}
        except SystemExit as end:
            if end.code == 0:
                return {"printed": said.getvalue()}
            return {"refused": end.code, "what": said.getvalue().strip().splitlines()[-1]}
        except Exception as wrong:
            return {"refused": 1, "what": f"{type(wrong).__name__}: {wrong}"}


assert Std.ALL == 3, "the bits that the probe writes"
