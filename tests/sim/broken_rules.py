#!/usr/bin/env python3
"""Takes one rule of checkpoints out of the product at a time, and looks for a seed of the simulator that shows it.

A checker that finds nothing proves nothing until it has found what is broken. Each row below is a rule that once was missing, or
was wrong, and how to break it in the source. A tree of the last commit is made in build/broken and built once; each rule costs one
more file and one more link there.

    tests/sim/broken_rules.py               all rules; fails with the names of those that no seed has shown
    tests/sim/broken_rules.py order fence   only those
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "broken"


@dataclass(frozen=True)
class Rule:
    name: str
    says: str  # what the product promises
    edits: list[tuple[str, str, str]]  # file, its text, the text instead
    plan: list[str] = field(default_factory=lambda: ["--storage"])
    seeds: int = 1_200


CATALOG, WRITER = "ckpt/catalog/step_catalog_writing.cpp", "ckpt/catalog/place_writer.cpp"
READING, REMOVING = "ckpt/catalog/step_catalog.cpp", "ckpt/catalog/step_catalog_removing.cpp"
LOAD, FENCE = "ckpt/load/load_plan.cpp", "ckpt/catalog/newest_generation.cpp"
MASTER = "actors/master/catalog/catalog_core.cpp"
TWO_MASTERS = ["--two-masters"]
FENCE_IS_OPEN = (FENCE, "if (newest == all.end() || !(which < *newest))", "if (true)")

RULES = [
    Rule(
        "order",
        "a load takes the newest state, wherever it is; not what is in memory first",
        [
            (
                LOAD,
                "for (auto id = k.all.rbegin(); id != k.all.rend(); ++id) {",
                "std::vector<state_id> order(k.all.rbegin(), k.all.rend());\n"
                "  std::stable_partition(order.begin(), order.end(),\n"
                "                        [&k](const state_id& one) { return k.memory.count(one) != 0; });\n"
                "  for (auto id = order.begin(); id != order.end(); ++id) {",
            )
        ],
    ),
    Rule(
        "misfit",
        "a newer step of another world's size is told, and not passed over",
        [(LOAD, "else if (k.misfit && older_than(k.misfit->id)) {", "else if (false) {")],
    ),
    Rule(
        "look_deeper",
        "a load that finds nothing among the steps that were listed looks at older ones",
        [(LOAD, "else if (k.listed_down_to && older_than(*k.listed_down_to))", "else if (false)")],
    ),
    Rule(
        "unconfirmed",
        "retention counts only what all nodes have completed",
        [("ckpt/catalog/retention.cpp", "(s.confirmed || s.id == *committed)", "true")],
        seeds=10_000,
    ),
    Rule(
        "foreign_directory",
        "a directory without a marker is not ours",
        [(CATALOG, "if (auto own = check_own(step, directory); !own)", "if (auto own = result<void>{}; !own)")],
    ),
    Rule(
        "foreign_file",
        "a file in the place itself that no step has claimed is not ours",
        [
            (
                CATALOG,
                "    if (!there->empty())\n      return failure(\n          errc::refused,\n          "
                'fmt::format("step {} cannot be in',
                "    if (false)\n      return failure(\n          errc::refused,\n          "
                'fmt::format("step {} cannot be in',
            )
        ],
    ),
    Rule(
        "foreign_tracker",
        "a tracker that names a later step of other people's stays",
        [(CATALOG, "if (!foreign || foreign->step <= named.step)", "if (true)")],
    ),
    Rule(
        "commit_compares",
        "a commit looks whether the files are those that were reported",
        [
            (CATALOG, "if (auto there = check_sizes(known, m); !there)", "if (auto there = result<void>{}; !there)"),
            FENCE_IS_OPEN,  # alone it would catch most of what comes late
        ],
        TWO_MASTERS,
        400,
    ),
    Rule(
        "tracker_goes_on",
        "a tracker never goes back to an older step",
        [
            (
                CATALOG,
                "if (newest() != known)\n    return {};\n  return point(whose)",
                "return point_at(*known, whose)",
            )
        ],
    ),
    Rule(
        "complete_is_left_alone",
        "a shard of a complete step is not written again by its own save",
        [
            (WRITER, "if (known->says.id() == snapshot.id())", "if (false)"),
            (WRITER, "return same ? std::optional(found->file) : std::nullopt;", "(void)same;\n  return std::nullopt;"),
            (CATALOG, "if (known->is_complete() && known->says.id() == by && known->directory == directory)", "if (false)"),
            (CATALOG, "if (newest() == &known)", "if (false)"),
        ],
        seeds=3_000,
    ),
    Rule(
        "look_before_removing",
        "retention looks at a step once more before it removes it",
        [
            (REMOVING, "if (!look_before_removing(step)) {", "if (false) {"),
            (WRITER, "  return known.look_around();\n}\n\n} // namespace", "  return {};\n}\n\n} // namespace"),
        ],
    ),
    Rule(
        "gone_is_no_error",
        "a step that is removed while a load lists is no error",
        [
            (
                READING,
                "if (!text && text.error().code == errc::absent) {\n    steps_.erase(step);\n    return {};",
                "if (!text && text.error().code == errc::absent) {\n    return tl::make_unexpected(text.error());",
            )
        ],
    ),
    Rule(
        "checksums",
        "what is read is what was written",
        [(READING, "if (got->crc32 != which.file.crc32)", "if (false)")],
    ),
    Rule(
        "lost_followers",
        "a step is not called complete while a lost node has not completed it in a directory of its own",
        [(MASTER, "if (shared_places_.count(which.place) != 0)", "if (true)")],
    ),
    Rule(
        "fence",
        "an older generation saves nothing where a newer one has, not even what it was writing already",
        [
            FENCE_IS_OPEN,
            (WRITER, "[&] { return check_still_begun(snapshot); }", "[] { return result<void>{}; }"),
        ],
        TWO_MASTERS,
        400,
    ),
]


def run(command: list[str], **how) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}"}  # Debian's tools, as ./x has it
    return subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)


def build() -> None:
    done = run(["ninja", "-C", str(TREE / "build/release"), "swarm"])
    if done.returncode:
        sys.exit(f"broken_rules: the tree in {TREE} does not build:\n{done.stdout[-4000:]}")


def make_tree() -> None:
    if not TREE.exists():
        run(["git", "-C", str(ROOT), "worktree", "add", "--detach", str(TREE)], check=True)
    run(["git", "-C", str(TREE), "checkout", "--quiet", "--detach", run(["git", "-C", str(ROOT), "rev-parse", "HEAD"]).stdout.strip()], check=True)
    run(["cmake", "--preset", "release"], cwd=TREE, check=True)
    build()


def broken(rule: Rule) -> dict[Path, str]:
    """Breaks it in the tree; the texts as they were."""
    before: dict[Path, str] = {}
    for name, text, instead in rule.edits:
        path = TREE / name
        now = path.read_text()
        if now.count(text) != 1:
            sys.exit(f"broken_rules: {rule.name}: '{text}' stands {now.count(text)} times in {name}; bring the row up to date")
        before.setdefault(path, now)
        path.write_text(now.replace(text, instead))
    return before


def first_seed(rule: Rule) -> str | None:
    swarm = [str(TREE / "build/release/tests/swarm"), *rule.plan, "--seeds", "100"]
    for first in range(1, rule.seeds + 1, 100):
        found = re.search(r"^seed (\d+): (\w+) is broken", run([*swarm, "--seed", str(first)]).stdout, re.M)
        if found:
            return f"seed {found[1]} ({found[2]})"
    return None


def shown(rule: Rule) -> bool:
    began = time.monotonic()
    before = broken(rule)
    try:
        build()
        found = first_seed(rule)
    finally:
        for path, text in before.items():
            path.write_text(text)
    print(f"{rule.name:24} {found or f'not shown by {rule.seeds} seeds':40} {time.monotonic() - began:4.0f} s", flush=True)
    return found is not None


def main() -> int:
    chosen = [rule for rule in RULES if not sys.argv[1:] or rule.name in sys.argv[1:]]
    if unknown := set(sys.argv[1:]) - {rule.name for rule in RULES}:
        sys.exit(f"broken_rules: no rule is called {', '.join(sorted(unknown))}; there are: {' '.join(r.name for r in RULES)}")
    make_tree()
    missed = [rule.name for rule in chosen if not shown(rule)]
    build()
    print(f"{len(chosen) - len(missed)} shown, {len(missed)} not shown{': ' + ', '.join(missed) if missed else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
