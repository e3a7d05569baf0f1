"""What to launch, in torch's words, and the launcher's command line for it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class LogsSpecs:
    """Where the workers' output goes; the arguments of torch's DefaultLogsSpecs.

    `log_dir`: None is a fresh temporary directory, "/dev/null" no files at all. `redirects` and `tee`:
    0 none, 1 stdout, 2 stderr, 3 both, or a dictionary of these by local rank. `local_ranks_filter`: the local
    ranks whose output is seen on the console; None is all of them.
    """

    log_dir: str | None = None
    redirects: int | dict[int, int] = 0
    tee: int | dict[int, int] = 0
    local_ranks_filter: set[int] | None = None


@dataclass
class LaunchConfig:
    """torch's LaunchConfig with the same fields; see there. torch's own objects serve as well.

    Times are in seconds. What differs: `rdzv_backend` is c10d unless given (torch: etcd).
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None


def command_line(config: Any) -> list[str]:
    """The launcher's options that mean `config`, ours or torch's.

    Raises ValueError for what cannot be said on a command line or is not supported.
    """
    c = config
    if c.metrics_cfg:
        raise ValueError("LaunchConfig.metrics_cfg is not supported")
    options = {
        "nnodes": f"{c.min_nodes}:{c.max_nodes}",
        "nproc-per-node": c.nproc_per_node,
        "rdzv-backend": c.rdzv_backend,
        "rdzv-endpoint": c.rdzv_endpoint,
        "rdzv-id": c.run_id or uuid.uuid4().int,
        "rdzv-conf": rendezvous_settings(c),
        "node-rank": c.rdzv_configs.get("rank") if c.rdzv_backend == "static" else None,
        "max-restarts": c.max_restarts,
        "monitor-interval": c.monitor_interval,
        "start-method": c.start_method,
        "role": c.role,
        "local-addr": c.local_addr,
        "event-log-handler": c.event_log_handler,
        "numa-binding": c.numa_options and c.numa_options.affinity_mode.value,
        "signals-to-handle": c.signals_to_handle,
        "shutdown-timeout": c.shutdown_timeout,
        "log-line-prefix-template": c.log_line_prefix_template,
        "duplicate-stdout-filters": words(c.duplicate_stdout_filters),
        "duplicate-stderr-filters": words(c.duplicate_stderr_filters),
        **log_options(c.logs_specs),
    }
    # One argument each: a value may begin with a dash.
    line = [f"--{name}={value}" for name, value in options.items() if value not in (None, "")]
    return line + ["--virtual-local-rank"] * bool(c.virtual_local_rank)


def rendezvous_settings(config: Any) -> str:
    settings = {k: v for k, v in config.rdzv_configs.items() if k != "rank"}
    if config.rdzv_timeout != -1:
        settings["timeout"] = config.rdzv_timeout
    pairs = [f"{name}={value}" for name, value in settings.items()]
    for pair in pairs:
        if "," in pair or pair.count("=") != 1 or pair.startswith("=") or pair.endswith("="):
            raise ValueError(f"LaunchConfig.rdzv_configs: '{pair}' cannot be passed on")
    return ",".join(pairs)


def words(filters: list[str] | None) -> str | None:
    return ",".join(word.replace(",", ",,") for word in filters) if filters else None


def log_options(specs: Any) -> dict[str, Any]:
    """`specs`: our LogsSpecs, or torch's DefaultLogsSpecs, which keeps the same in private fields."""
    if specs is None:
        return {}
    if isinstance(specs, LogsSpecs):
        fields = (specs.log_dir, specs.redirects, specs.tee, specs.local_ranks_filter)
    elif type(specs).__name__ == "DefaultLogsSpecs":
        fields = (
            specs.root_log_dir,
            specs._redirects,
            specs._tee,
            specs._local_ranks_filter,
        )
    else:
        raise ValueError(
            f"LaunchConfig.logs_specs: a {type(specs).__name__} is code of its own; "
            "use troupe.LogsSpecs or torch's DefaultLogsSpecs"
        )
    log_dir, redirects, tee, shown = fields
    return {
        "log-dir": log_dir,
        "redirects": streams(redirects),
        "tee": streams(tee),
        "local-ranks-filter": ",".join(str(rank) for rank in sorted(shown)) if shown else None,
    }


def streams(choice: int | Mapping[int, int]) -> str | None:
    if isinstance(choice, Mapping):
        return ",".join(f"{rank}:{int(value)}" for rank, value in sorted(choice.items()))
    return str(int(choice))
