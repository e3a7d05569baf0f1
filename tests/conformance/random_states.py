"""States of all that may stand in one, and what may happen to them between two saves."""

import collections
import contextlib
import enum
import random
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import torch

NUMBERS = [0, 1, 255, 256, 65535, 65536, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**70, True, False, None]
NUMBERS += [0.0, -0.0, 1.0, 1e-3, float("inf"), float("nan"), -float("nan")]
NAMES = ["step", "lr", "", "5", "0", "cpu", "storage", "cuda", "é", "\udc80", "a name that is longer than the others"]


@dataclass
class Custom:
    words: str
    tensor: torch.Tensor


class Kind(enum.IntEnum):
    ONE, TWO = 1, 2


class Subclass(torch.Tensor):
    pass


class Name(str):
    pass


Pair = collections.namedtuple("Pair", "first second")  # noqa: PYI024 — as programs write it


def another(name: str) -> str:
    """An equal string that is another object, where there can be one."""
    return "".join(list(name))


def is_freed(one) -> bool:
    """A tensor that must not be read."""
    if not isinstance(one, torch.Tensor) or one.layout != torch.strided or one.is_nested:
        return False
    return one.numel() > 0 and one.untyped_storage().nbytes() == 0


def anew(one, made: dict, names_too: bool):
    """The same with containers that are others; what was one object is one object again."""
    if id(one) in made:
        return made[id(one)][1]
    new = one
    if type(one) is str and names_too:
        new = another(one)
    elif type(one) in (dict, OrderedDict, list):
        new = type(one)()
    made[id(one)] = one, new
    if type(one) in (dict, OrderedDict):
        new.update((anew(key, made, names_too), anew(value, made, names_too)) for key, value in one.items())
        vars(new).update(vars(one)) if type(one) is OrderedDict else None
    elif type(one) is list:
        new += [anew(value, made, names_too) for value in one]
    return new


class States:
    """`chance`: of a state and what happens to it, of what `may`."""

    def __init__(self, chance: random.Random, may: Sequence[str]):
        self.chance = chance
        self.may = may
        self.generator = torch.Generator().manual_seed(chance.getrandbits(32))
        self.tensors = [self.tensor() for _ in range(4)]
        self.names = [another(name) for name in NAMES]

    # ---- What there is ----

    def tensor(self) -> torch.Tensor:
        shape = self.chance.choice([(), (0,), (3,), (2, 3), (3, 2), (1, 2, 2)])
        made = torch.rand(shape, generator=self.generator)
        return self.chance.choice([made, made, made, made.double(), made.to(torch.int64), made.bfloat16()])

    def name(self) -> str:
        chosen = self.chance.choice(self.names)
        return self.chance.choice([chosen, another(chosen), chosen + str(self.chance.randrange(3))])

    def number(self):
        return self.chance.choice([*NUMBERS, self.chance.randrange(1 << 40), self.chance.random()])

    def leaf(self):
        kind = self.chance.randrange(10)
        if kind < 4:
            return self.number()
        if kind < 6:
            return self.name()
        return self.chance.choice(self.tensors) if kind < 8 else self.tensor()

    def container(self, depth: int):
        inside = [self.value(depth + 1) for _ in range(self.chance.choice([0, 1, 2, 3, 4, 5]))]
        keys = [self.chance.choice([self.name(), self.number(), (self.name(), 1)]) for _ in inside]
        made = self.chance.choice([list, tuple, dict, OrderedDict])
        if made in (list, tuple):
            return made(inside)
        return made(zip(keys, inside, strict=True))

    def value(self, depth: int = 0):
        return self.leaf() if depth > 3 or self.chance.random() < 0.6 else self.container(depth)

    def state(self) -> dict:
        values = [self.value() for _ in range(self.chance.randrange(1, 8))]
        parts = {f"part {which}": value for which, value in enumerate(values)}
        parts["model"] = OrderedDict((f"layer {which}", self.tensor()) for which in range(3))
        parts["list"] = [1, 2.5, "x", self.tensor()]
        return parts

    # ---- What happens to it ----

    def entries(self, state):
        """Places in it that can be written to: containers and keys; each once."""
        ahead, met, found = [state], set(), []
        while ahead:
            one = ahead.pop()
            if id(one) in met or not isinstance(one, (dict, list, tuple)):
                continue
            met.add(id(one))
            entries = list(one.items() if isinstance(one, dict) else enumerate(one))
            ahead += [value for _, value in entries]
            if not isinstance(one, tuple):
                found += [(one, key, value) for key, value in entries]
        return found

    def happens(self, state: dict) -> str:
        """Changes one thing, in the state or of what it holds; the name of what happened."""
        name = self.chance.choice(self.may)
        with contextlib.suppress(RuntimeError, TypeError, ValueError, AttributeError, LookupError):  # not to all of them
            getattr(self, name)(state)
        return name

    def _one(self, state, kinds):
        """Of these kinds; where it stands and what it is."""
        entries = self.entries(state)
        found = [one for one in entries if isinstance(one[2], kinds) and not is_freed(one[2])]
        return self.chance.choice(found) if found else ({}, 0, None)

    def then_a_number_changes(self, state):
        into, key, _ = self._one(state, (int, float))
        into[key] = self.number()

    def then_a_number_of_its_type_changes(self, state):
        into, key, before = self._one(state, (int, float))
        into[key] = before if before is None or isinstance(before, bool) else before + type(before)(1)

    def then_zero_has_another_sign(self, state):
        state["zero"] = self.chance.choice([0.0, -0.0])

    def then_a_name_changes(self, state):
        into, key, _ = self._one(state, str)
        into[key] = self.name()

    def then_a_name_is_another_object(self, state):
        into, key, before = self._one(state, str)
        into[key] = another(before or "")

    def then_two_names_are_one_object(self, state):
        into, key, before = self._one(state, str)
        _, _, other = self._one(state, str)
        into[key] = other
        state["again"] = before

    def then_a_key_is_another_object(self, state):
        into, key, value = self._one(state, object)
        if isinstance(into, dict) and isinstance(key, str):
            entries = list(into.items())
            into.clear()
            into.update((another(k) if k is key else k, v) for k, v in entries)

    def then_all_is_made_anew(self, state):
        """As a module's state_dict() is."""
        made = anew(state, {}, self.chance.random() < 0.5)
        state.clear()
        state.update(made)

    def then_something_moves_next_door(self, state):
        state["left"], state["right"] = self.chance.choice(
            [("ab", "c"), ("a", "bc"), ([1], [2]), ([1, 2], []), ((), (1, 2)), ({1: 2}, [1]), ({}, [1])]
        )

    def then_the_order_changes(self, state):
        into, key, value = self._one(state, object)
        if isinstance(into, dict):
            into[key] = into.pop(key, value)

    def then_something_moves_to_the_end(self, state):
        into, key, _ = self._one(state, object)
        if isinstance(into, OrderedDict):
            into.move_to_end(key, last=self.chance.random() < 0.5)

    def then_two_are_one(self, state):
        into, key, _ = self._one(state, object)
        _, _, other = self._one(state, object)
        into[key] = other

    def then_something_holds_itself(self, state):
        into, key, _ = self._one(state, object)
        into[key] = self.chance.choice([into, [into]])

    def then_a_container_is_of_another_kind(self, state):
        into, key, before = self._one(state, (dict, list, tuple))
        if isinstance(before, dict):
            into[key] = (OrderedDict if type(before) is dict else dict)(before)
        else:
            into[key] = (tuple if type(before) is list else list)(before or ())

    def then_a_container_is_a_copy(self, state):
        into, key, before = self._one(state, (dict, list))
        into[key] = before.copy() if before is not None else None

    def then_something_comes_or_goes(self, state):
        into, key, _ = self._one(state, object)
        if self.chance.random() < 0.3:
            into.pop(key) if into else None
        elif isinstance(into, list):
            into.insert(key, self.value())
        else:
            into[self.name()] = self.value()

    def then_a_module_has_metadata(self, state):
        _, _, module = self._one(state, OrderedDict)
        module._metadata = OrderedDict({"": {"version": self.chance.randrange(3)}})

    def then_an_attribute_comes_or_goes(self, state):
        _, _, module = self._one(state, OrderedDict)
        if vars(module):
            vars(module).clear()
        else:
            module.note = self.value()

    def then_something_opaque_comes(self, state):
        into, key, _ = self._one(state, object)
        into[key] = self.chance.choice(
            [Custom("a", self.tensor()), Kind.TWO, Name("cpu"), Pair(1, self.tensor()), b"bytes", {1, 2}, 2j]
            + [numpy.arange(3), numpy.float64(2), torch.Size([1]), torch.float32, OrderedDict, range(3)]
            + [collections.defaultdict(list, a=[1]), Subclass([1.0]), torch.FloatStorage(2), torch.device("cpu")]
        )

    def then_what_is_opaque_changes(self, state):
        for _, _, value in self.entries(state):
            if isinstance(value, Custom):
                value.words += "!"
            if isinstance(value, numpy.ndarray):
                value += 1

    def then_all_that_is_opaque_goes(self, state):
        plain = (int, float, str, list, tuple, dict, OrderedDict, bool, type(None), torch.Tensor, torch.nn.Parameter)
        for into, key, value in self.entries(state):
            if type(value) not in plain:
                into[key] = None
