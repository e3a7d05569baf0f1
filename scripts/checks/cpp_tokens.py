"""C++ as tokens with matched brackets: enough to find a call and to take its arguments apart."""

import re
from dataclasses import dataclass
from typing import Iterator

TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/|\#[ \t]*\w+(?:[^\n\\]|\\.)*)
    | (?P<raw>R"(?P<fence>[^(\s]*)\((?P<inner>.*?)\)(?P=fence)")
    | (?P<string>"(?:\\.|[^"\\\n])*")
    | (?P<number>\.?\d(?:[\w.']|(?<=[eE])[+-])*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<character>'(?:\\.|[^'\\\n])+')
    | (?P<mark>::|->|==|!=|<=|>=|&&|\|\||\+=|.)""",
    re.S | re.X,
)
OPENING, CLOSING = "({[", ")}]"
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\", "0": "\0"}


@dataclass(frozen=True)
class Token:
    kind: str  # string, number, word, character or mark
    text: str  # of a string: what it says
    line: int

    def is_mark(self, text: str) -> bool:
        return self.kind == "mark" and self.text == text


def said_by(literal: str) -> str:
    return re.sub(
        r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|.)",
        lambda m: ESCAPES.get(m[1], ""),
        literal[1:-1],
        flags=re.S,
    )


def tokens_of(text: str) -> list[Token]:
    """Comments and preprocessor lines are left out; strings side by side are one."""
    found: list[Token] = []
    line = 1
    for m in TOKEN.finditer(text):
        kind, said = m.lastgroup, m[0]
        if m["raw"] is not None:
            kind, said = "string", m["inner"]
        elif kind == "string":
            said = said_by(said)
        if kind == "string" and found and found[-1].kind == "string":
            found[-1] = Token("string", found[-1].text + said, found[-1].line)
        elif kind != "blank":
            found.append(Token(kind, said, line))
        line += m[0].count("\n")
    return found


class Source:
    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.tokens = tokens_of(text)
        self.partner: dict[int, int] = {}
        self.around: list[int] = []  # the innermost open bracket at each token, -1 outside all
        self._pair()

    def _pair(self) -> None:
        open_at: list[int] = []
        for at, token in enumerate(self.tokens):
            closes = token.kind == "mark" and token.text in CLOSING
            if closes and open_at:
                begin = open_at.pop()
                self.partner[begin], self.partner[at] = at, begin
            self.around.append(open_at[-1] if open_at else -1)
            if token.kind == "mark" and token.text in OPENING:
                open_at.append(at)
        if open_at:
            raise ValueError(f"{self.path}:{self.tokens[open_at[-1]].line}: a bracket stays open")

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """What stands between commas in a bracket, as [begin, end) of tokens."""
        end = self.partner[opening]
        cuts = [opening]
        at = opening + 1
        while at < end:
            if self.tokens[at].is_mark(","):
                cuts.append(at)
            at = self.partner[at] + 1 if self.opens(at) else at + 1
        spans = [(begin + 1, to) for begin, to in zip(cuts, [*cuts[1:], end])]
        return spans if end > opening + 1 else []

    def opens(self, at: int) -> bool:
        return self.tokens[at].kind == "mark" and self.tokens[at].text in OPENING

    def body_around(self, at: int) -> tuple[int, int]:
        """The outermost braces that follow a `)`: those of the function that a token is in."""
        best = (0, len(self.tokens))
        opening = self.around[at]
        while opening >= 0:
            before = next(
                (b for b in range(opening - 1, -1, -1) if self.tokens[b].text not in QUALIFIERS), -1
            )
            if self.tokens[opening].text == "{" and before >= 0 and self.tokens[before].text == ")":
                best = (opening, self.partner[opening])
            opening = self.around[opening]
        return best

    def functions(self) -> Iterator[tuple[str, int, int, int]]:
        """Of every definition: name, the token before it, parameters' bracket, body's brace."""
        for at, token in enumerate(self.tokens):
            if not (token.is_mark("(") and at and self.tokens[at - 1].kind == "word"):
                continue
            after = self.partner[at] + 1
            while after < len(self.tokens) and self.tokens[after].text in QUALIFIERS:
                after += 1
            if after < len(self.tokens) and self.tokens[after].is_mark("{"):
                yield self.tokens[at - 1].text, at - 2, at, after


QUALIFIERS = ("const", "noexcept", "override", "mutable")
