"""The events of `--json-log`, found in the sources: level, name, text and fields of each.

An event is a list of arguments that has a level, and behind it a name and a text:

    note{{log::level::info, "node_returned", fmt::format("{} is back", node), {{"node", node}}}}
    sup::tell_log(s.ctx, log::level::error, "no_store", o.why);

Followed are `a ? b : c`, local variables, functions that return a level, and functions of the same
file that are given a level and make an event. A mention of a level that is none of that is an
error: no event may be missing from the page. What is computed stands as `…` in a text.
"""

import re
from dataclasses import dataclass, replace
from typing import Iterator, Mapping

from .cpp_tokens import Source, Token
from .project import Project, is_test

FOLDERS = ("actors/", "ckpt/", "kube/", "launch/", "messages/", "runtime/", "worker/")
LEVELS = ("debug", "info", "notice", "warning", "error")
VARIES = "…"
PLURALS = (["", "s"], ["", "es"])
WRAPPERS = ("move", "string", "string_view")


class Unclear(Exception):
    """An event that this module does not understand, or that it must not miss."""


@dataclass(frozen=True)
class Event:
    path: str
    line: int
    level: tuple[str, ...]
    name: str
    texts: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]  # (name, type in JSON)

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


Span = tuple[int, int]
Bound = Mapping[str, Span]


class Reader:
    """Of one file. `assumed`: which way a condition goes; `bound`: what a parameter stands for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens
        self.levels_by_function: dict[str, dict[str, str]] = {}
        self.forwarders: dict[str, tuple[int, int]] = (
            {}
        )  # name -> (parameters' bracket, body's brace)
        self.consumed: set[int] = set()
        self.assumed: dict[str, bool] = {}
        self.case: str | None = None
        self.tables = dict(self._tables())
        for name, before, parameters, body in source.functions():
            if self.said((before - 2, before + 1)) == "log::level":
                self.levels_by_function[name] = self.tables.get(name, {})
                self.consumed |= set(range(body, source.partner[body]))
            elif self._level_parameter(parameters):
                self.forwarders[name] = (parameters, body)

    # ---- finding ----

    def events(self) -> list[Event]:
        found = []
        for opening in range(len(self.tokens)):
            if self.source.opens(opening) and self.tokens[opening].text != "[":
                found += self._events_in(opening)
        for at in self._mentions():
            if at not in self.consumed and not self._is_no_event(at):
                self._fail(at, "a level that belongs to no event")
        return found

    def _events_in(self, opening: int) -> Iterator[Event]:
        arguments = self.source.arguments(opening)
        which = next((n for n, a in enumerate(arguments) if self._is_level(a)), None)
        if which is None or opening in {p for p, _ in self.forwarders.values()}:
            return
        callee = self.tokens[opening - 1]
        if callee.kind == "word" and callee.text in self.forwarders:
            yield from self._forwarded(callee.text, arguments, opening)
        elif len(arguments) >= which + 3:
            if not self._is_parameter(arguments[which]):
                fields = arguments[which + 3] if len(arguments) > which + 3 else None
                yield from self._read(arguments[which : which + 3], fields, {}, opening)

    def _forwarded(self, name: str, given: list[Span], at: int) -> Iterator[Event]:
        parameters, body = self.forwarders[name]
        named = [self.tokens[end - 1].text for _, end in self.source.arguments(parameters)]
        bound = dict(zip(named, given))
        end = self.source.partner[body]
        for opening in range(body + 1, end):
            if self.source.opens(opening):
                made = self.source.arguments(opening)
                which = next((n for n, a in enumerate(made) if self._is_parameter(a)), None)
                if which is not None and len(made) >= which + 3:
                    fields = made[which + 3] if len(made) > which + 3 else None
                    yield from self._read(made[which : which + 3], fields, bound, at)
                    return
        self._fail(at, f"{name}() is given a level and makes no event of it")

    def _read(
        self, parts: list[Span], fields: Span | None, bound: Bound, at: int
    ) -> Iterator[Event]:
        level, name, text = parts
        self.consumed |= set(range(*self._resolved(level, bound)))
        condition = self._condition_of(self._resolved(name, bound))
        for holds in (True, False) if condition else (True,):
            self.assumed = {condition: holds} if condition else {}
            for self.case in self._cases(level):
                yield from self._variant(level, name, text, fields, bound, at)
        self.assumed, self.case = {}, None

    def _variant(self, level, name, text, fields, bound, at) -> Iterator[Event]:
        names = self._texts(name, bound, at)
        if self.case:
            names = [n.replace(VARIES, self.case) for n in names]
        if len(names) != 1 or not re.fullmatch(r"[a-z][a-z0-9_]+", names[0]):
            self._fail(at, f"an event whose name cannot be read: {names}")
        first = Event(
            self.source.path,
            self.tokens[at].line,
            tuple(dict.fromkeys(self._levels(self._resolved(level, bound)))),
            names[0],
            tuple(dict.fromkeys(shortened(t) for t in self._texts(text, bound, at))),
            tuple(self._fields(fields, bound, at)) if fields else (),
        )
        yield from self._changed_later(first, at)

    def _changed_later(self, event: Event, opening: int) -> Iterator[Event]:
        """`log::event e{…};` and then `e.fields.emplace_back(…)`, `e.text = …`, `e.name = …`."""
        before = [t.text for t in self.tokens[max(0, opening - 4) : opening]]
        if before[:3] != ["log", "::", "event"]:
            yield event
            return
        variable, at = before[3], self.source.partner[opening]
        end = self.source.body_around(opening)[1]
        while at < end:
            said = [t.text for t in self.tokens[at : at + 5]]
            if said[:2] == [variable, "."] and said[3] == "=":
                stop = next(n for n in range(at, end) if self.tokens[n].is_mark(";"))
                value = self._texts((at + 4, stop), {}, at)
                if said[2] == "name":
                    yield event
                    event = replace(event, name=value[0], line=self.tokens[at].line)
                elif said[2] == "text":
                    event = replace(event, texts=tuple(map(shortened, value)))
            elif said[:4] == [variable, ".", "fields", "."]:
                name, value = self.source.arguments(at + 5)
                event = replace(event, fields=(*event.fields, self._field(name, value, {})))
            at += 1
        yield event

    # ---- levels ----

    def _mentions(self) -> Iterator[int]:
        for at in range(len(self.tokens) - 4):
            if self.said((at, at + 4)) == "log::level::" and self.tokens[at + 4].text in LEVELS:
                yield at

    def _is_no_event(self, at: int) -> bool:
        """Compared, assigned, or told to spdlog."""
        before, after = self.tokens[at - 1].text, self.tokens[at + 5].text
        comparing = ("==", "!=", "<", ">", "<=", ">=")
        return (
            before in (*comparing, "=", "case", "::")
            or after in comparing
            or (before == "return" and not self._in_event_function(at))
        )

    def _in_event_function(self, at: int) -> bool:
        return any(b < at < self.source.partner[b] for _, b in self.forwarders.values())

    def _is_level(self, span: Span) -> bool:
        return bool(self._levels(span)) or self._is_parameter(span)

    def _levels(self, span: Span) -> list[str]:
        if ternary := self._ternary(span):
            condition, yes, no = ternary
            both = [self._levels(yes), self._levels(no)]
            if (goes := self.assumed.get(self.said(condition))) is not None:
                return both[0 if goes else 1]
            return both[0] + both[1] if all(both) else []
        said = self.said(span)
        if re.fullmatch(r"log::level::(" + "|".join(LEVELS) + ")", said):
            return [said.rpartition(":")[2]]
        word = self.tokens[span[0]].text if span[0] < span[1] else ""
        if word in self.levels_by_function and self.tokens[span[0] + 1].is_mark("("):
            table = self.levels_by_function[word]
            return [table[self.case]] if self.case else list(table.values()) or list(LEVELS)
        return []

    def _cases(self, level: Span) -> list[str | None]:
        word = self.tokens[level[0]].text
        return list(self.levels_by_function.get(word, {})) or [None]

    def _level_parameter(self, parameters: int) -> str | None:
        for begin, end in self.source.arguments(parameters):
            if end - begin == 4 and self.said((begin, begin + 3)) == "log::level":
                return self.tokens[end - 1].text
        return None

    def _is_parameter(self, span: Span) -> bool:
        """A level that a forwarding function was given."""
        if span[1] - span[0] != 1:
            return False
        return any(
            body < span[0] < self.source.partner[body]
            and self.tokens[span[0]].text == self._level_parameter(parameters)
            for parameters, body in self.forwarders.values()
        )

    def _tables(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Functions that are one switch: what they return for each enumerator, level or text."""
        for name, _, _, body in self.source.functions():
            if not self.tokens[body + 1].text == "switch":
                continue
            told, open_cases = {}, []
            for at in range(body, self.source.partner[body]):
                if self.tokens[at].text == "case":
                    open_cases.append(self.tokens[at + 3].text)
                elif self.tokens[at].text == "return":
                    last = (
                        next(n for n in range(at, len(self.tokens)) if self.tokens[n].is_mark(";"))
                        - 1
                    )
                    told |= dict.fromkeys(open_cases, self.tokens[last].text)
                    open_cases = []
            yield name, told

    # ---- texts ----

    def _resolved(self, span: Span, bound: Bound) -> Span:
        for _ in range(4):
            inner = self._unwrapped(span)
            word = self.tokens[inner[0]].text if inner[1] - inner[0] == 1 else None
            span = bound[word] if word in bound else inner
        return span

    def _unwrapped(self, span: Span) -> Span:
        """std::move(x), std::string(x) and (x) are x."""
        begin, end = span
        while (
            begin + 2 < end
            and self.tokens[begin].text == "std"
            and self.tokens[begin + 1].text == "::"
        ):
            begin += 2
        if begin < end and self.tokens[begin].text in WRAPPERS:
            begin += 1
        whole = begin < end and self.source.opens(begin) and self.source.partner[begin] == end - 1
        return (begin + 1, end - 1) if whole and end - begin > 2 else span

    def _texts(self, span: Span, bound: Bound, at: int, depth: int = 0) -> list[str]:
        """All that an expression may say."""
        span = self._resolved(span, bound)
        if span[0] >= span[1] or depth > 6:
            return [VARIES]
        if ternary := self._ternary(span):
            condition, yes, no = ternary
            goes = self.assumed.get(self.said(condition))
            chosen = [yes, no] if goes is None else [yes if goes else no]
            said = [t for c in chosen for t in self._texts(c, bound, at, depth + 1)]
            # `n == 1 ? "" : "s"`: of several.
            return said[1:] if sorted(said) in PLURALS else said
        if parts := self._sum(span):
            said = [self._texts(p, bound, at, depth + 1) for p in parts]
            return ["".join(s[0] if len(s) == 1 else VARIES for s in said)]
        first = self.tokens[span[0]]
        if span[1] - span[0] == 1:
            if first.kind == "string":
                return [first.text]
            return self._variable(first.text, span[0], bound, depth)
        if self.said((span[0], min(span[0] + 4, span[1]))) == "fmt::format(":
            return self._formatted(span[0] + 3, bound, at, depth)
        if first.text in self.tables and self.case in self.tables[first.text]:
            return [self.tables[first.text][self.case]]
        return [VARIES]

    def _formatted(self, opening: int, bound: Bound, at: int, depth: int) -> list[str]:
        form, *values = self.source.arguments(opening)
        filled = []
        for value in values:
            said = self._texts(value, bound, at, depth + 1)
            filled.append(said[0] if len(said) == 1 else VARIES)
        out = []
        for text in self._texts(form, bound, at, depth + 1):
            left = iter(filled)
            out.append(
                re.sub(
                    r"\{\{|\}\}|\{[^{}]*\}",
                    lambda m: m[0][0] if m[0] in ("{{", "}}") else next(left, VARIES),
                    text,
                )
            )
        return out

    def _variable(self, name: str, at: int, bound: Bound, depth: int) -> list[str]:
        """What a local variable was set to last, before here and in this function."""
        begin, _ = self.source.body_around(at)
        for n in range(at - 1, begin, -1):
            if (
                self.tokens[n].text != name
                or self.tokens[n - 1].kind == "mark"
                and self.tokens[n - 1].text in (".", "->")
            ):
                continue
            if self.tokens[n + 1].is_mark("="):
                end = next(m for m in self._at_this_depth(n + 2) if self.tokens[m].is_mark(";"))
                return self._texts((n + 2, end), bound, n, depth + 1)
        return [VARIES]

    def _at_this_depth(self, at: int) -> Iterator[int]:
        while at < len(self.tokens):
            yield at
            at = self.source.partner[at] + 1 if self.source.opens(at) else at + 1

    # ---- fields ----

    def _fields(self, span: Span, bound: Bound, at: int) -> Iterator[tuple[str, str]]:
        if not (self.tokens[span[0]].is_mark("{") and self.source.partner[span[0]] == span[1] - 1):
            if self.said(span).startswith("std::move("):
                return
            self._fail(at, "fields that are no list in braces")
        for begin, end in self.source.arguments(span[0]):
            pair = self.source.arguments(begin) if self.source.opens(begin) else []
            if len(pair) != 2 or self.source.partner[begin] != end - 1:
                self._fail(begin, "a field that is not {name, value}")
            yield self._field(*pair, bound)

    def _field(self, name: Span, value: Span, bound: Bound) -> tuple[str, str]:
        said = self.tokens[name[0]]
        if said.kind != "string":
            self._fail(name[0], "a field whose name is no literal")
        return said.text, self._type_of(self._resolved(value, bound))

    def _type_of(self, span: Span) -> str:
        words = {t.text for t in self.tokens[span[0] : span[1]]}
        if "int64_t" in words:
            return "integer"
        if "milliseconds_of" in words or "double" in words:
            return "number"
        lone = self.tokens[span[1] - 1].text if span[1] - span[0] in (1, 3) else ""
        return "boolean" if lone in ("true", "false") or self._is_bool(lone, span[0]) else "string"

    def _is_bool(self, name: str, at: int) -> bool:
        begin, _ = self.source.body_around(at)
        names = ("success",)
        return name in names or any(
            self.tokens[n].text == name and self.tokens[n - 1].text == "bool"
            for n in range(max(1, begin - 60), at)
        )

    # ---- expressions ----

    def _ternary(self, span: Span) -> tuple[Span, Span, Span] | None:
        question = colon = None
        nested = 0
        at = span[0]
        while at < span[1]:
            token = self.tokens[at]
            if token.is_mark("?"):
                nested += 1
                question = at if question is None else question
            elif token.is_mark(":"):
                nested -= 1
                if nested == 0 and colon is None:
                    colon = at
            at = self.source.partner[at] + 1 if self.source.opens(at) else at + 1
        if question is None or colon is None:
            return None
        return (span[0], question), (question + 1, colon), (colon + 1, span[1])

    def _sum(self, span: Span) -> list[Span]:
        cuts = [
            n for n in self._at_this_depth(span[0]) if n < span[1] and self.tokens[n].is_mark("+")
        ]
        if not cuts:
            return []
        return [(b, e) for b, e in zip([span[0], *(c + 1 for c in cuts)], [*cuts, span[1]])]

    def _condition_of(self, span: Span) -> str | None:
        ternary = self._ternary(span)
        return self.said(ternary[0]) if ternary else None

    def said(self, span: Span) -> str:
        return "".join(t.text for t in self.tokens[max(0, span[0]) : span[1]])

    def _fail(self, at: int, what: str) -> None:
        raise Unclear(f"{self.source.path}:{self.tokens[at].line}: {what}")


def shortened(text: str) -> str:
    return re.sub(rf"{VARIES}(?:{VARIES})+", VARIES, re.sub(r"\s+", " ", text)).strip()


def events_of(project: Project) -> list[Event]:
    found: list[Event] = []
    for path in project.sources(*FOLDERS):
        if not is_test(path) and "log::" in project.text(path):
            found += Reader(Source(path, project.text(path))).events()
    return found
