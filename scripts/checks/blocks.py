"""Parts of a page that a program writes, between `<!-- NAME: begin … -->` and its `end`."""

import re


def replaced(page: str, name: str, inner: str) -> str:
    pattern = re.compile(rf"(<!-- {name}: begin[^\n]*-->\n).*?(<!-- {name}: end -->)", re.S)
    if len(pattern.findall(page)) != 1:
        raise ValueError(f"a page needs one block '{name}'")
    return pattern.sub(lambda m: f"{m[1]}\n{inner.strip()}\n\n{m[2]}", page)
