"""A state's skeleton, made anew or of the last one's: byte for byte what torch.save writes."""

import copyreg
import io
import random
import warnings
import weakref
import zipfile
from array import array
from collections import OrderedDict

import pytest
import torch
from random_tensors import ALL, PLAIN, StatesOfTensors, hook

from troupe.checkpoint import kept_skeleton, tensor_facts
from troupe.checkpoint.kept_skeleton import Skeletons
from troupe.checkpoint.outline import Same
from troupe.checkpoint.skeleton import dumped, pickled

TURNS = 25


def written_by_torch(state):
    """What is in the records of a file of torch.save: the pickle, and each storage."""
    file = io.BytesIO()
    torch.save(state, file)
    with zipfile.ZipFile(file) as archive:
        count = sum("/data/" in name for name in archive.namelist())
        storages = [archive.read(f"archive/data/{which}") for which in range(count)]
        return archive.read("archive/data.pkl"), storages


def bytes_of(storage):
    return bytes(storage.tolist()) if storage.device.type == "cpu" else None


def outcome(make, state):
    """Pickle and contents of the storages; or that there are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of hooks, and of what PyTorch will give up
            return make(state)
    except (ValueError, RuntimeError, TypeError, NotImplementedError):
        return "refused"


def ours(make):
    def made(state):
        skeleton = make(state)
        if located := skeleton.located:
            assert list(located.addresses) == [storage.data_ptr() for storage in skeleton.storages]
            assert list(located.sizes) == [storage.nbytes() for storage in skeleton.storages]
        return skeleton.pickle, [bytes_of(storage) for storage in skeleton.storages]

    return made


@pytest.fixture(params=["by PyTorch's functions", "by properties"])
def reading(request, monkeypatch):
    """How tensors are looked at: as this PyTorch lets us, or as any does."""
    if request.param == "by properties":
        monkeypatch.setattr(tensor_facts, "_functions", lambda: None)
    else:
        assert tensor_facts._functions()


def all_kept_right(may, seed):
    states = StatesOfTensors(random.Random(seed), may)
    state, skeletons, happened = states.state(), Skeletons(), []
    for _ in range(TURNS):
        expected = outcome(written_by_torch, state)
        assert outcome(ours(pickled), state) == expected, happened
        assert outcome(ours(skeletons.of), state) == expected, happened
        if states.chance.random() < 0.1:
            state = states.state()
        happened += [states.happens(state) for _ in range(states.chance.choice([0, 1, 1, 2]))]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("may", [ALL, PLAIN], ids=["all", "plain"])
def test_whatever_happened_since_the_last_one_it_is_what_torch_writes(reading, may, seed):
    all_kept_right(may, seed)


@pytest.mark.parametrize("what", ALL)
def test_what_happens_again_and_again_is_seen_each_time(reading, what):
    for seed in range(2):
        all_kept_right([what], seed)


# ---- When it is made anew ----


def trained():
    """A model and its optimizer after a step."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(3)])
    optimizer = torch.optim.AdamW([{"params": model[:2].parameters()}, {"params": model[2:].parameters()}])
    model(torch.rand(2, 4)).sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.fixture
def dumps(monkeypatch):
    """The picklers that were used for a whole state."""
    used = []

    def counted(state, kind):
        used.append(kind.__name__)
        return dumped(state, kind)

    monkeypatch.setattr(kept_skeleton, "dumped", counted)
    return used


def test_a_state_that_has_not_changed_is_pickled_once(dumps):
    model, optimizer = trained()
    skeletons = Skeletons()
    for _ in range(4):  # each time of other containers and, of the model, other tensors
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "none": None}
        assert ours(skeletons.of)(state) == written_by_torch(state)
    assert dumps == ["Pickler"]


def seen_as(x, *layout):
    x.set_(x.untyped_storage(), *layout)


def of_type(x, dtype):
    x.data = torch.zeros(12, dtype=dtype)[:6].view(2, 3)


def divided_otherwise(state):
    seen_as(state["x"], 0, (2,), (3,))
    seen_as(state["y"], 0, (3,), (1,))


BUFFER = bytearray(8)  # of which there may be two storages

# Each changes one thing that is compared, and nothing else that is.
CHANGES = {
    "shape": lambda state: seen_as(state["x"], 0, (2, 2), (3, 1)),
    "strides": lambda state: seen_as(state["x"], 0, (2, 3), (1, 2)),
    "offset": lambda state: seen_as(state["x"], 5, (2, 3), (3, 1)),
    "dimensions": divided_otherwise,
    "type": lambda state: of_type(state["x"], torch.int32),
    "storage's size": lambda state: state["x"].untyped_storage().resize_(80),
    "device": lambda state: state.update(x=torch.empty(12, device="meta")[:6].view(2, 3)),
    "gradient": lambda state: state["x"].requires_grad_(),
    "attribute": lambda state: setattr(state["x"], "mark", "weight"),
    "negation": lambda state: state.update(x=torch._neg_view(state["x"])),
    "storage": lambda state: state.update(view=torch.frombuffer(BUFFER, dtype=torch.int8)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_all_that_is_written_of_a_tensor_is_seen_when_it_changes(reading, dumps, what):
    whole = torch.frombuffer(BUFFER, dtype=torch.int8)
    y = torch.ones(3)
    seen_as(y, 0, (), ())
    state = {"x": torch.arange(12.0)[:6].view(2, 3), "y": y, "whole": whole, "view": whole.view(8)}
    skeletons = Skeletons()
    for _ in range(2):
        ours(skeletons.of)(state)
    assert dumps == ["Pickler"]
    CHANGES[what](state)
    assert skeletons.of(state).pickle == pickled(state).pickle
    assert dumps == ["Pickler", "Pickler"]


def test_data_that_comes_to_be_viewed_as_two_types_is_refused(reading):
    one, other = bytearray(8), bytearray(8)
    state = {"x": torch.frombuffer(one, dtype=torch.int32), "y": torch.frombuffer(other, dtype=torch.float32)}
    skeletons = Skeletons()
    for _ in range(2):
        ours(skeletons.of)(state)
    state["y"] = torch.frombuffer(one, dtype=torch.float32)
    with pytest.raises(ValueError, match="as torch.int32 and as torch.float32"):
        skeletons.of(state)


def test_data_elsewhere_in_memory_is_found_though_nothing_else_has_changed(reading, dumps):
    state, skeletons = {"x": torch.arange(6.0), "y": torch.ones(3)}, Skeletons()
    for _ in range(4):
        before = state["x"].untyped_storage()  # stays, so that its address is no other's
        assert ours(skeletons.of)(state) == written_by_torch(state)
        state["x"].data = state["x"].clone()
        assert state["x"].untyped_storage().data_ptr() != before.data_ptr()
    assert ours(skeletons.of)(state) == written_by_torch(state)
    assert dumps == ["Pickler"]


def test_storages_elsewhere_have_no_address(reading):
    skeletons = Skeletons()
    for _ in range(3):
        assert skeletons.of({"x": torch.ones(2), "meta": torch.empty(3, device="meta")}).located is None


def test_functions_that_say_something_else_are_not_used(monkeypatch):
    functions = tensor_facts._Functions()
    assert tensor_facts._says_what_python_says(functions)
    for wrong in ("dtype", "offset", "storage_bytes", "sizes"):
        other = tensor_facts._Functions()
        names = {"dtype": "layout", "offset": "dimensions", "storage_bytes": "offset", "sizes": "strides"}
        setattr(other._raw, wrong, getattr(other._raw, names[wrong]))
        assert not tensor_facts._says_what_python_says(other), wrong


def test_identities_are_compared_by_which_are_the_same():
    chance = random.Random(1)
    known, equal = {7: -1, 8: -2}, set()
    for _ in range(3000):
        count = chance.randrange(7)
        some, others = ([chance.choice([1, 2, 3, 7, 8]) for _ in range(count)] for _ in range(2))
        one, other = Same(array("Q", some), known), Same(array("Q", others), known)
        assert (one == other) == (one.first() == other.first()), (some, others)
        equal.add((one == other, some == others))
    assert equal == {(True, True), (True, False), (False, False)}
    assert Same(array("Q", [1, 2]), known) != Same(array("Q", [1]), known)


def test_numbers_that_change_are_written_where_they_stand(dumps):
    model, optimizer = trained()
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    skeletons = Skeletons()
    for step in [0, 1, 255, 256, 65536, -1, 1 << 40, 3, 3]:
        scheduler.step()
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        state |= {"scheduler": scheduler.state_dict(), "random": random.getstate(), "last": step / 3}
        state["again"] = state["optimizer"]
        random.random()
        assert ours(skeletons.of)(state) == written_by_torch(state)
    assert dumps == ["Pickler", "Pickler", "_MarkingPickler"]


def test_what_was_prepared_is_not_pickled_again(dumps):
    skeletons = Skeletons()
    for step in range(3):
        state = {"x": torch.rand(3), "step": step}
        assert ours(skeletons.of if step else skeletons.prepare)(state) == written_by_torch(state)
    assert dumps == ["Pickler", "_MarkingPickler"]


def test_a_state_whose_names_look_like_marks_is_pickled_anew(dumps):
    skeletons = Skeletons()
    mark = (b"G" + kept_skeleton._TAG + b"\0\0\0\0Q").decode("latin1")
    for step in range(4):
        state = {"step": step, "bytes": mark.encode("latin1").decode("utf8", "surrogateescape"), mark: step}
        assert ours(skeletons.of)(state) == written_by_torch(state)


def test_what_is_kept_holds_no_tensor():
    skeletons = Skeletons()
    gone = []
    for step in range(4):
        state = {"x": torch.rand(3), "step": step, "p": torch.nn.Parameter(torch.rand(3))}
        skeletons.of(state)
        gone += [weakref.ref(state["x"]), weakref.ref(state["p"]), weakref.ref(state["x"].untyped_storage())]
        del state
        assert not any(one() for one in gone)


def test_what_programs_register_is_used_from_the_next_save_on(monkeypatch):
    skeletons, state = Skeletons(), {"x": torch.ones(2), "o": OrderedDict(a=1)}
    before = ours(skeletons.of)(state)
    monkeypatch.setitem(copyreg.dispatch_table, torch.Tensor, lambda tensor: (float, (2.5,)))
    assert before != ours(skeletons.of)(state) == written_by_torch(state)
    monkeypatch.undo()
    assert ours(skeletons.of)(state) == before
    registry = [(1, lambda storage: "somewhere", None), *torch.serialization._package_registry]
    monkeypatch.setattr(torch.serialization, "_package_registry", registry)
    assert before != ours(skeletons.of)(state) == written_by_torch(state)


def test_a_state_of_containers_in_containers_without_end_is_pickled():
    state = inner = {}
    for _ in range(100):
        inner["x"] = inner = {}
    many = [1]
    for _ in range(40):
        many = [many, many]
    for one in (state, many):
        assert ours(Skeletons().of)(one) == written_by_torch(one)


def test_a_hook_is_told_of_when_a_tensor_is_pickled():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    with pytest.warns(UserWarning, match="hook"):
        Skeletons().of({"x": x})
