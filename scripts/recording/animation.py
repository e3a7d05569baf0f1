"""Recorded screens as one SVG that moves by itself, light and dark, without scripts and fonts of its own.

A row is drawn once for each content it has had. A viewer that wants no motion, or knows no CSS, shows the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

CELL, LINE, PAD, TITLE, GAP = 7.8, 18, 14, 26, 12
LONGEST_PAUSE, LAST_PAUSE = 1.5, 6.0
SGR = re.compile(r"\x1b\[([\d;]*)m")
OTHER = re.compile(r"\x1b\[[\d;?]*[^\dm;?]|\x1b[()].|[\x0e\x0f]")
NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
STYLE = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
text { white-space: pre; fill: #1f2328 }
.t { font-family: system-ui, sans-serif; font-size: 12px; fill: #59636e }
.w { fill: #f6f8fa; stroke: #d1d9e0 }
.b { font-weight: 600 } .d { fill: #59636e } .o { visibility: hidden }
.red { fill: #cf222e } .green { fill: #1a7f37 } .yellow { fill: #9a6700 } .blue { fill: #0969da }
.magenta { fill: #8250df } .cyan { fill: #1b7c83 } .black, .white { fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .t, .d, .black, .white { fill: #9198a1 } .w { fill: #0d1117; stroke: #3d444d }
.red { fill: #ff7b72 } .green { fill: #3fb950 } .yellow { fill: #d29922 } .blue { fill: #58a6ff }
.magenta { fill: #bc8cff } .cyan { fill: #39c5cf }
}
@media (prefers-reduced-motion: reduce) { * { animation: none !important } }
""".strip()


@dataclass
class Recording:
    """Of one terminal: every change of a row, and how many rows have left the screen, by time."""

    title: str
    columns: int
    lines: int
    rows: list[list[tuple[float, str]]] = field(default_factory=list)
    scrolled: list[tuple[float, int]] = field(default_factory=list)

    def saw(self, when: float, above: int, shown: Sequence[str]) -> None:
        shown = self_contained(shown)
        self.rows += [[] for _ in range(len(shown) - len(self.rows))]
        for number, versions in enumerate(self.rows):
            content = shown[number] if number < len(shown) else ""
            if content != (versions[-1][1] if versions else ""):
                versions.append((when, content))
        if above != (self.scrolled[-1][1] if self.scrolled else 0):
            self.scrolled.append((when, above))

    def times(self) -> set[float]:
        return {when for versions in self.rows for when, _ in versions} | {when for when, _ in self.scrolled}

    @property
    def width(self) -> float:
        return 2 * PAD + CELL * self.columns

    @property
    def height(self) -> float:
        return TITLE + LINE * self.lines + PAD


class Clock:
    """Recorded moments as shares of the film, in which long pauses are shorter."""

    def __init__(self, moments: set[float]) -> None:
        self.at: dict[float, float] = {}
        now, before = 0.0, None
        for moment in sorted(moments):
            now += min(LONGEST_PAUSE, moment - before) if before is not None else 0.5
            self.at[moment], before = now, moment
        self.length = now + LAST_PAUSE

    def percent(self, moment: float) -> str:
        return f"{100 * self.at[moment] / self.length:.2f}%"


def spans(row: str) -> str:
    """A row with its colours; backgrounds are refused, as they would be unreadable in one of light and dark."""
    parts, kinds, at = [], set(), 0
    row = OTHER.sub("", row)
    for found in [*SGR.finditer(row), None]:
        text = row[at : found.start() if found else None]
        if text:
            shown = escape(text, quote=False)
            parts.append(f'<tspan class="{" ".join(sorted(kinds))}">{shown}</tspan>' if kinds else shown)
        if found:
            at = found.end()
            kinds = styled(kinds, found[1])
    return "".join(parts)


def self_contained(rows: Sequence[str]) -> list[str]:
    """tmux says a colour once for all rows that have it; each row gets what holds at its beginning."""
    found, held = [], ""
    for row in rows:
        found.append(held + row)
        for code in SGR.finditer(row):
            held = "" if code[1] in ("", "0") else held + code[0]
    return found


def styled(kinds: set[str], codes: str) -> set[str]:
    kinds = set(kinds)
    for code in map(int, (codes or "0").split(";")):
        if code == 0:
            kinds.clear()
        elif code in (1, 2):
            kinds.add("b" if code == 1 else "d")
        elif code == 22:
            kinds -= {"b", "d"}
        elif 30 <= code <= 37 or 90 <= code <= 97 or code == 39:
            kinds -= set(NAMES)
            kinds |= set() if code == 39 else {NAMES[code % 10]}
        elif code not in (49,):
            raise ValueError(f"the terminal shows SGR {code}, which is no foreground colour of the sixteen")
    return kinds


class Film:
    """Rules for moments, each written once."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.rules: dict[str, str] = {}

    def rule(self, frames: str) -> str:
        """The name of an animation with these keyframes."""
        if frames not in self.rules:
            self.rules[frames] = f"k{len(self.rules)}"
        return self.rules[frames]

    def shown(self, begin: float, end: float | None) -> str:
        hidden, seen = "{visibility:hidden}", "{visibility:visible}"
        frames = f"0%{hidden}{self.clock.percent(begin)}{seen}"
        return self.rule(frames + (f"{self.clock.percent(end)}{hidden}" if end is not None else ""))

    def style(self) -> str:
        seconds = f"{self.clock.length:.1f}s"
        rules = [f"@keyframes {name} {{{frames}}}" for frames, name in self.rules.items()]
        uses = [f".{name} {{animation: {name} {seconds} step-end infinite}}" for name in self.rules.values()]
        return "\n".join([STYLE, *rules, *uses])


def drawn(one: Recording, y: float, film: Film) -> list[str]:
    shown = []
    for number, versions in enumerate(one.rows):
        ends = [when for when, _ in versions[1:]] + [None]
        for (begin, content), end in zip(versions, ends):
            if SGR.sub("", content).strip():
                kind = film.shown(begin, end) + (" o" if end is not None else "")
                place = f'x="{PAD}" y="{LINE * number + 13}"'
                shown.append(f'<text {place} class="{kind}" xml:space="preserve">{spans(content)}</text>')
    above = one.scrolled[-1][1] if one.scrolled else 0
    moved = [(film.clock.percent(when), -LINE * rows) for when, rows in one.scrolled]
    frames = "0%{transform:none}" + "".join(f"{at}{{transform:translateY({by}px)}}" for at, by in moved)
    return [
        f'<rect x="0.5" y="{y + 0.5}" width="{one.width - 1:.1f}" height="{one.height - 1:.1f}" rx="8"'
        ' class="w"/>',
        f'<text x="{PAD}" y="{y + 18}" class="t">{escape(one.title)}</text>',
        f'<svg x="0" y="{y + TITLE}" width="{one.width:.1f}" height="{LINE * one.lines}">',
        f'<g class="{film.rule(frames)}" style="transform:translateY({-LINE * above}px)">',
        *shown,
        "</g></svg>",
    ]


def animated(title: str, recordings: Sequence[Recording]) -> str:
    film = Film(Clock(set().union(*(one.times() for one in recordings))))
    body, y = [], 0.0
    for one in recordings:
        body += drawn(one, y, film)
        y += one.height + GAP
    width = max(one.width for one in recordings)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y - GAP:.0f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{film.style()}\n</style>",
            *body,
            "</svg>\n",
        ]
    )
