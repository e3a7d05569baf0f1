"""A bar chart as SVG, plain enough to be compared byte by byte: how many times better than the peer, on a log scale.

No library draws it: the check that the committed picture is what the results give runs everywhere, with Python alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 960, 24, 24, 46, 76, 52
STYLE = """
  svg { color-scheme: light dark; }
  text { font-family: system-ui, sans-serif; font-size: 14px; fill: #1f2328;
    paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
  .ground { fill: #ffffff; } .grid { stroke: #d1d9e0; } .one { stroke: #59636e; }
  .bar { fill: #1f6feb; } .worse { fill: #bc4c00; } .limit { stroke: #1a7f37; stroke-width: 3; }
  .title { font-size: 17px; font-weight: 600; } .small { font-size: 12px; fill: #59636e; }
  .ratio { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; stroke: #0d1117; } .ground { fill: #0d1117; } .grid { stroke: #3d444d; } .one { stroke: #9198a1; }
    .bar { fill: #388bfd; } .worse { fill: #db6d28; } .limit { stroke: #3fb950; } .small { fill: #9198a1; }
  }
""".strip("\n")


@dataclass(frozen=True)
class Bar:
    name: str
    ratio: float  # above 1: better than the peer
    figures: str  # ours and the peer's, as text
    limit: float | None = None  # the ratio that the machine would allow


def times(ratio: float) -> str:
    digits = 0 if ratio >= 10 else 1 if ratio >= 1 else 2
    return f"{ratio:,.{digits}f} ×"


class Scale:
    """From a ratio to a place; 1 always has one."""

    def __init__(self, ratios: Sequence[float]) -> None:
        self.low = math.floor(math.log10(min([1.0, *ratios])))
        self.high = max(self.low + 1, math.ceil(math.log10(max([1.0, *ratios]))))

    def __call__(self, ratio: float) -> float:
        room = WIDTH - LEFT - RIGHT - 64  # for the last bar's figure
        return LEFT + room * (math.log10(ratio) - self.low) / (self.high - self.low)

    def powers(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    shown = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{shown}>{escape(words)}</text>'


def line(x: float, begin: float, end: float, kind: str) -> str:
    return f'<line x1="{x:.1f}" y1="{begin:.1f}" x2="{x:.1f}" y2="{end:.1f}" class="{kind}"/>'


def row(bar: Bar, y: float, place: Scale) -> list[str]:
    begin, end = sorted((place(1.0), place(bar.ratio)))
    kind = "bar" if bar.ratio >= 1 else "worse"
    drawn = [
        text(LEFT, y - 5, bar.name),
        text(WIDTH - RIGHT, y - 5, bar.figures, "small", "end"),
        f'<rect x="{begin:.1f}" y="{y:.1f}" width="{max(1.0, end - begin):.1f}" height="14" rx="2" class="{kind}"/>',
    ]
    beside = end
    if bar.limit:
        drawn.append(line(place(bar.limit), y - 2, y + 16, "limit"))
        if 0 <= place(bar.limit) - end < 64:
            beside = place(bar.limit)
    return [*drawn, text(beside + 7, y + 12, times(bar.ratio), "ratio")]


def chart(title: str, bars: Sequence[Bar], note: str) -> str:
    place = Scale([one for bar in bars for one in (bar.ratio, bar.limit) if one])
    bottom = TOP + ROW * len(bars)
    height = bottom + BOTTOM
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" class="ground"/>',
        text(LEFT, 32, title, "title"),
    ]
    for power in place.powers():
        drawn.append(line(place(power), TOP - 24, bottom, "one" if power == 1 else "grid"))
        drawn.append(text(place(power), bottom + 16, f"{power:,g} ×", "small", "middle"))
    for number, bar in enumerate(bars):
        drawn += row(bar, TOP + ROW * number + 8, place)
    drawn += [text(LEFT, bottom + 38, note, "small"), "</svg>"]
    return "\n".join(drawn) + "\n"
