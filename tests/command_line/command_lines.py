"""Command lines by chance: mostly good ones, with what people get wrong mixed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

NUMBERS = ["0", "1", "2", "3", "7", "-1", " 4", "1_0", "+2", "1.5", "x", "", "99999999999"]
SECONDS = ["1", "5", "30", "0", "-3", "0.5", "x", "1e3", "7 "]
STREAMS = ["0", "1", "2", "3", "4", "0:3", "1:2,0:1", "3:3,3:1", "0:1,", "0:5", "12:3", ":1", "x", ""]
CONF = [
    "join_timeout=5",
    "last_call_timeout=1",
    "read_timeout=9",
    "close_timeout=3",
    "join_timeout=0",
    "join_timeout=x",
    "last_call_timeout=0.5",
    "last_call_timeout=0",
    "timeout=7",
    "timeout=x",
    "keep_alive_interval=2",
    "keep_alive_interval=y",
    "is_host=yes",
    "is_host=0",
    "is_host=maybe",
    "store_type=tcp",
    "store_type=file",
    "store_type=other",
    "unheard=of",
    "'join_timeout=5",
    " spaced = 1 ",
    "key=",
    "key",
    "=value",
    "endpoint=h:1",
]
CONFS = ["", "a=b,", *CONF, *(f"{one},{two}" for one, two in zip(CONF, CONF[3:], strict=False))]
HOSTS = ["head", "10.0.0.7", "[::1]", "::1", "head.example.org", "a b", "", "h_1", "[", "[x]", "h/x"]
ENDPOINTS = [
    "",
    "head",
    "head:29400",
    "head:0",
    " head:5 ",
    "[::1]:80",
    "[::1]",
    "::1",
    "fe80::1",
    "head:99999",
    "head:port",
    "head:",
    ":80",
    "head:000080",
    "a:b:c",
    "  ",
    "10.0.0.7:1234",
]
WORDS = ["", "error", "error,warn", "a,,b", ",,,", "x,"]
SIGNALS = ["SIGTERM", "SIGTERM,SIGUSR1", "SIGUSR1, SIGUSR2", "", "SIGTERM,,", "SIGNONE", "SIGKILL", "sigterm"]

# Name → the values it is given.
VALUED: dict[str, list[str]] = {
    "nnodes": ["1", "2", "4", "1:4", "2:2", "0", "3:2", "1:2:3", "x", "", ":", "1:", " 2", "100000"],
    "nproc-per-node": ["1", "2", "4", "cpu", "auto", "gpu", "xpu", "0", "-1", "x", "", "1_6", "5000"],
    "rdzv-backend": ["static", "c10d", "c10d", "static", "etcd", "etcd-v2", "zeus", ""],
    "rdzv-endpoint": ENDPOINTS,
    "rdzv-id": ["job", "none", "", "a b", "x" * 300, "-1"],
    "rdzv-conf": CONFS,
    "max-restarts": ["0", "3", "-1", "10_0", "x", "1.5", "", "99999999"],
    "monitor-interval": ["0.1", "5", "x", "inf", "nan", "-1", "1e-3", ""],
    "start-method": ["spawn", "fork", "forkserver", "thread", ""],
    "event-log-handler": ["null", "null", "null", "console", "mine"],
    "role": ["default", "trainer", "", "a b"],
    "log-dir": ["/logs", "", "/dev/null", "rel/ative"],
    "redirects": STREAMS,
    "tee": STREAMS,
    "local-ranks-filter": ["", "0", "0,1", "1,0,1", "x", ",", "-1", " 2 ,3", "5000"],
    "duplicate-stdout-filters": WORDS,
    "duplicate-stderr-filters": WORDS,
    "node-rank": NUMBERS,
    "master-addr": HOSTS,
    "master-port": ["29500", "0", "70000", "-1", "x", "1234", "", "+80"],
    "local-addr": ["10.0.0.1", "", "here"],
    "logs-specs": ["default", ""],
    "numa-binding": ["node", "socket", "exclusive", "core-complex", "none", ""],
    "signals-to-handle": SIGNALS,
    "shutdown-timeout": SECONDS,
}
FLAGS = ["standalone", "module", "no-python", "run-path", "virtual-local-rank"]
# Options of which most values mean nothing: not in every other command line.
RARE = {"logs-specs", "event-log-handler", "rdzv-id", "start-method", "numa-binding"}
# By torchrun's own spelling there is only one form of these.
SHORT = {"redirects": "-r", "tee": "-t", "module": "-m"}
OURS = ["-q", "--verbose", "--json-log=f", "--precheck=0", "--journal=f", "--version", "--propagate-exit-code"]
SCRIPTS = ["train.py", "pkg.train", "./run.sh", "a ${local_rank}.py", "-", "-5", "-a b", ""]
ARGUMENTS = ["--lr", "0.1", "--", "${local_rank}", "$local_rank", "$$x", "${rank}", "--nnodes", "-r3", "--n", "a b", "", "-h"]


@dataclass
class CommandLine:
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


def spelled(random: Random, name: str) -> str:
    """The option's name in one of the ways people write it."""
    if name in SHORT and random.random() < 0.5:
        return SHORT[name]
    written = name.replace("-", "_") if random.random() < 0.3 else name
    if random.random() < 0.15:
        written = written[: random.randint(1, len(written))]
    return f"--{written}"


def value_of(random: Random, values: list[str]) -> str:
    """Mostly one of the first, which are good ones; long lists are grammars of their own."""
    grammar = len(values) > 15
    return random.choice(values if grammar or random.random() < 0.3 else values[:3])


def option(random: Random, line: list[str]) -> None:
    if random.random() < 0.25:
        line.append(spelled(random, random.choice(FLAGS)) + ("=1" if random.random() < 0.05 else ""))
        return
    name = random.choice(list(VALUED))
    if name in RARE and random.random() < 0.5:
        name = random.choice(["nnodes", "nproc-per-node", "rdzv-endpoint", "rdzv-backend", "tee"])
    value = value_of(random, VALUED[name])
    written = spelled(random, name)
    form = random.random()
    if not written.startswith("--"):
        line.extend([f"{written}{value}"] if form < 0.5 and value else [written, value])
    elif form < 0.5:
        line.append(f"{written}={value}")
    else:
        line.extend([written, value])


def oddity(random: Random, line: list[str]) -> None:
    line.extend(
        random.choice(
            [["--no-such-option"], ["-x"], ["-h"], ["--help"], ["-mr3"], ["-mt", "1"], ["--"], ["--rdzv-id"], ["-mx"], ["-m="]]
            + [[each] for each in OURS]
        )
    )


def environment(random: Random) -> dict[str, str]:
    made: dict[str, str] = {}
    while random.random() < 0.35:
        name = random.choice([*VALUED, *FLAGS])
        values = VALUED.get(name, ["0", "1", "1", "2", "yes", "", " 1"])
        value = value_of(random, values)
        made["PET_" + name.replace("-", "_").upper()] = value
    for name, values in {
        "OMP_NUM_THREADS": ["4", ""],
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": ["7", "-1", "x", ""],
        "PYTHON_EXEC": ["/opt/python"],
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": ["[${rank}]: "],
        "CUDA_VISIBLE_DEVICES": ["0,1"],
    }.items():
        if random.random() < 0.08:
            made[name] = random.choice(values)
    return made


def command_line(random: Random) -> CommandLine:
    line: list[str] = []
    for _ in range(random.choice([0, 1, 1, 2, 2, 3, 4, 6])):
        option(random, line)
        if random.random() < 0.03:
            oddity(random, line)
    if random.random() < 0.05:
        line.append("--")
    if random.random() < 0.97:
        line.append(SCRIPTS[0] if random.random() < 0.7 else random.choice(SCRIPTS))
        line.extend(random.choice(ARGUMENTS) for _ in range(random.choice([0, 0, 1, 2, 4])))
    return CommandLine(line, environment(random))
