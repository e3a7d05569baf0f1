"""Which step a load has to take, at least, and whether it did: by what the ranks of storage.py say.

A promise is a step that was told to training, or that training went on from:

- on disk: `wait_latest_checkpoint` called it complete, or a load read it there, or it was found complete on all disks while
  all machines were down. Holds unless a disk was replaced since.
- in memory: a save returned True at any rank, so all ranks had made it; or a load took it. Holds unless a machine has lost its
  memory since, or ranks are at other machines than then.
- at other nodes: `wait_latest_copies` said so. Holds for as many lost machines as there are copies or parities, in all.

What a rank's life is told holds from its end on only if it said so before the next life loaded: later words are of no life.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from storage_state import Reference

GRACE = 5.0  # seconds for which trouble is felt after its end
LOST_EACH_OTHER = ("could not agree", "lost each other", "Connection", "connection", "Timed out", "timed out", "peer", "Socket", "socket")


@dataclass
class Promise:
    step: int
    since: float  # the beginning of the life in which it was made
    told: float
    how: str
    at: dict[int, int] = field(default_factory=dict)  # machines by rank


@dataclass
class Life:
    """One generation of the workers."""

    generation: int
    began: float
    machines: dict[int, int] = field(default_factory=dict)  # by rank
    pids: dict[int, int] = field(default_factory=dict)
    loaded: dict[int, int] = field(default_factory=dict)  # steps by rank
    sources: Counter[str] = field(default_factory=Counter)
    promised: str = ""
    took: float = 0  # seconds until the first rank had loaded
    told: bool = False
    wrong: bool = False


class Judge:
    def __init__(self, told: Path, reference: Reference, spared: int, say: Callable[[str], None]) -> None:
        """`spared`: how many machines may be lost with their memory."""
        self.told, self.reference, self.spared, self.say = told, reference, spared, say
        self.read_to: dict[Path, int] = {}
        self.waiting: list[dict] = []
        self.lives: dict[int, Life] = {}
        self.last: Life | None = None  # that has loaded
        self.disk: Promise | None = None
        self.memory: Promise | None = None
        self.copies: Promise | None = None
        self.losses: list[tuple[float, float, int]] = []  # of a machine's memory
        self.replaced: list[float] = []  # disks
        self.troubles: list[list[float]] = []  # with disks, their beginnings and ends
        self.counts: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.violations: list[str] = []
        self.finals: dict[int, dict] = {}
        self.newest_event = (0.0, 0)  # of a step: when, and which
        self.newest_complete = (0.0, 0)

    # ---- What is done to the job ----

    def lost(self, machine: int, began: float) -> None:
        self.losses.append((began, time.monotonic(), machine))

    def found_on_disks(self, step: int) -> None:
        """While all machines were down."""
        now = time.monotonic()
        if self.disk is None or step > self.disk.step:
            self.disk = Promise(step, now, now, "found complete on all disks")

    def violated(self, what: str) -> None:
        self.violations.append(what)
        self.say(f"VIOLATION: {what}")

    # ---- What the ranks say ----

    def read(self, lag: float = 0.5) -> None:
        """Judges all that was said until `lag` seconds ago, in its order."""
        for file in self.told.glob("*.jsonl"):
            with open(file, "rb") as more:
                more.seek(self.read_to.get(file, 0))
                whole = more.read().rpartition(b"\n")[0].splitlines()
            self.waiting += map(json.loads, whole)
            self.read_to[file] = self.read_to.get(file, 0) + sum(len(line) + 1 for line in whole)
        self.waiting.sort(key=lambda event: event["t"])
        until = time.monotonic() - lag
        while self.waiting and self.waiting[0]["t"] <= until:
            event = self.waiting.pop(0)
            self.counts[event["event"]] += 1
            if handle := getattr(self, f"_{event['event']}", None):
                handle(event)

    def _life(self, event: dict) -> Life:
        number = event["generation"]
        return self.lives.setdefault(number, Life(number, event["t"]))

    def _current(self, event: dict) -> Life | None:
        """Its life, if no later one has loaded."""
        life = self._life(event)
        return life if self.last is None or life.generation >= self.last.generation else None

    def _begin(self, event: dict) -> None:
        life = self._life(event)
        life.machines[event["rank"]] = event["machine"]
        life.pids[event["rank"]] = event["pid"]

    def _loaded(self, event: dict) -> None:
        life, step, rank = self._life(event), event["step"], event["rank"]
        if not life.loaded:
            self._first_loaded(life, step, event)
        life.loaded[rank] = step
        source = event["source"].split(",")[0]
        self.sources[source] += 1
        life.sources[source] += 1
        if len(life.loaded) == self.reference.world:
            self._tell(life)
        if len(set(life.loaded.values())) > 1:
            self._wrong(life, f"ranks went on from different steps: {life.loaded}")
        if event["sum"] != self.reference.digest(rank, step):
            self._wrong(life, f"rank {rank} loaded a state that is not that of step {step}, from {event['source']}")

    def _wrong(self, life: Life, what: str) -> None:
        if not life.wrong:
            self.violated(f"generation {number_of(life.generation)}: {what}")
        life.wrong = True

    def _first_loaded(self, life: Life, step: int, event: dict) -> None:
        self.counts["loads"] += 1
        if self.last:
            self._tell(self.last)
        promises = self.promises(life, event["t"])
        floor = max(promises, key=lambda p: p.step, default=None)
        life.promised = f"promised {floor.step} ({floor.how})" if floor else "nothing promised"
        life.took = event["t"] - life.began
        if self.last and life.generation < self.last.generation:
            self._wrong(life, f"it loaded after generation {number_of(self.last.generation)} had")
        if floor and step < floor.step:
            self._wrong(
                life,
                f"step {step} was loaded from {event['source']}, and step {floor.step} was {floor.how} "
                f"{event['t'] - floor.told:.1f} s before",
            )
        self.last = life
        # What was lost is no promise any more; nor what was just seen to be broken, which is told once.
        if self.disk not in promises or self.disk.step > step:
            self.disk = None
        if self.copies not in promises or self.copies.step > step:
            self.copies = None
        told = (life.began, event["t"])
        self.memory = Promise(step, *told, "what a load took", life.machines)
        if "disk" in event["source"] and (self.disk is None or self.disk.step <= step):
            self.disk = Promise(step, *told, "read from disk", life.machines)

    def _tell(self, life: Life) -> None:
        if life.told:
            return
        life.told = True
        sources = ", ".join(f"{source} {times}" for source, times in life.sources.items())
        part = "" if len(life.loaded) == self.reference.world else ", not by all"
        self.say(
            f"        life {number_of(life.generation)}: step {max(life.loaded.values())} from {sources}{part}; "
            f"{life.promised}; {life.took:.1f} s"
        )

    def promises(self, life: Life, when: float) -> list[Promise]:
        """That hold for the load of this life."""
        found = []
        lost = lambda since: [at for began, ended, at in self.losses if since < ended and began < when]
        if self.disk and not any(self.disk.since < at < when for at in self.replaced):
            found.append(self.disk)
        if self.memory and not set(lost(self.memory.since)) & set(self.memory.at.values()):
            if all(life.machines.get(rank) == at for rank, at in self.memory.at.items()):
                found.append(self.memory)
        if self.copies:
            there = set(self.copies.at.values())
            gone = [at for at in lost(self.copies.since) if at in there]
            away = there - set(life.machines.values()) - set(gone)
            if len(gone) + len(away) <= self.spared and not self._moved(self.copies, life, {*gone, *away}):
                found.append(self.copies)
        return found

    def _moved(self, promise: Promise, life: Life, but: set[int]) -> bool:
        """Whether a machine that is still there has another rank now: what it holds is of no use then."""
        return any(life.machines.get(rank) != at for rank, at in promise.at.items() if at not in but)

    def _made(self, event: dict, memory: bool) -> None:
        life = self._current(event)
        if event["t"] > self.newest_event[0]:
            self.newest_event = (event["t"], event["step"])
        if life and memory and self.last is life and self.memory and event["step"] > self.memory.step:
            self.memory = Promise(event["step"], life.began, event["t"], "saved", life.machines)

    def _saved(self, event: dict) -> None:
        self._made(event, memory=True)

    def _unsaved(self, event: dict) -> None:
        self._made(event, memory=False)

    def _complete(self, event: dict) -> None:
        life = self._current(event)
        self.newest_complete = (event["t"], event["step"])
        if life and (self.disk is None or event["step"] > self.disk.step):
            self.counts["complete steps"] += 1
            self.disk = Promise(event["step"], life.began, event["t"], "complete", life.machines)

    def _held(self, event: dict) -> None:
        life = self._current(event)
        if life and (self.copies is None or event["step"] > self.copies.step or life.began > self.copies.since):
            self.copies = Promise(event["step"], life.began, event["t"], "held at other nodes", life.machines)

    def _raised(self, event: dict) -> None:
        why, life = event["why"], self._life(event)
        if any(words in why for words in LOST_EACH_OTHER):
            return
        if any(began < event["t"] and life.began < ended + GRACE for began, ended in self.troubles):
            self.counts["loads or saves that a disk did not allow"] += 1
            return
        self._wrong(life, f"rank {event['rank']} raised {event['what']}: {why}")

    def _final(self, event: dict) -> None:
        self.finals[event["rank"]] = event
        if event["sum"] != self.reference.digest(event["rank"], event["step"]):
            self.violated(f"rank {event['rank']} ends with other weights than an undisturbed run of {event['step']} steps")


def number_of(generation: int) -> str:
    """As logs have it: the count, without the term before it."""
    return str(generation % 4096)
