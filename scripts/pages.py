"""Parts of pages that programs write: between two comments that name the part; the rest is written by people."""

from __future__ import annotations

import re


def with_part(page: str, name: str, body: str) -> str:
    """The page with `body` as the part that stands between `<!-- NAME: … -->` and `<!-- end of NAME -->`."""
    part = re.compile(
        rf"(?P<begin><!-- {re.escape(name)}: [^\n]*-->\n).*?(?P<end><!-- end of {re.escape(name)} -->)",
        re.S,
    )
    found = part.findall(page)
    if len(found) != 1:
        raise ValueError(f"the page has {len(found)} parts called {name}, not one")
    return part.sub(lambda at: f"{at['begin']}\n{body.strip()}\n\n{at['end']}", page)
