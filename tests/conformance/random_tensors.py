"""What may happen to the tensors of a state between two saves."""

import random
from collections.abc import Sequence

import numpy
import torch
from random_states import States


def hook(gradient):
    return gradient


# After which a state is pickled, or refused, each time.
_OUTLANDISH = (
    *("then_something_holds_itself", "then_something_opaque_comes", "then_memory_is_two_types_or_not"),
    *("then_one_storage_is_two_types", "then_it_has_an_attribute", "then_it_is_of_another_layout"),
    "then_its_scale_changes",
)


class StatesOfTensors(States):
    def __init__(self, chance: random.Random, may: Sequence[str]):
        super().__init__(chance, may)
        self.memory = numpy.arange(64, dtype=numpy.float32)  # of which there may be several storages

    def _of_tensors(self, state, change) -> None:
        into, key, before = self._one(state, torch.Tensor)
        if before is not None:
            into[key] = change(before)

    def then_it_has_another_storage(self, state):
        self._of_tensors(state, lambda t: t.detach().clone())

    def then_it_is_another_object(self, state):
        self._of_tensors(state, lambda t: t.detach())

    def then_it_is_a_view_of_another(self, state):
        _, _, other = self._one(state, torch.Tensor)
        self._of_tensors(state, lambda t: other.detach()[..., :1] if other.dim() else other.detach())

    def then_its_stride_is_another(self, state):
        state["view"] = torch.as_strided(torch.arange(16.0), (3,), (self.chance.choice([1, 2, 5]),))

    def then_it_begins_elsewhere(self, state):
        state["view"] = torch.arange(16.0)[self.chance.choice([0, 1, 2]) :][:3]

    def then_it_shares_its_storage_or_not(self, state):
        base = torch.arange(16.0)
        state["view"], state["base"] = base[1:3], self.chance.choice([base, base.clone()])

    def then_nothing_is_on_another_device(self, state):
        state["nothing"] = torch.empty(0, device=self.chance.choice(["cpu", "meta"]))

    def then_nothing_is_shared_or_not(self, state):
        nothing = torch.empty(0)
        state["nothing"], state["nothing too"] = nothing, self.chance.choice([nothing.detach(), torch.empty(0)])

    def then_it_requires_a_gradient_or_not(self, state):
        _, _, tensor = self._one(state, torch.Tensor)
        if tensor is not None and tensor.is_leaf and tensor.is_floating_point():
            tensor.requires_grad_(not tensor.requires_grad)

    def then_it_has_another_type(self, state):
        types = [torch.float16, torch.float32, torch.int8, torch.float8_e5m2, torch.bool, torch.uint16]
        self._of_tensors(state, lambda t: t.detach().to(self.chance.choice(types)))

    def then_it_has_another_shape(self, state):
        self._of_tensors(state, lambda t: t.detach().unsqueeze(0))

    def then_a_dimension_moves_next_door(self, state):
        shapes = self.chance.choice([((1,), (1,)), ((1, 1), ())])
        state["left"], state["right"] = map(torch.ones, shapes)

    def then_it_is_turned(self, state):
        self._of_tensors(state, lambda t: t.detach().t() if t.dim() == 2 else t)

    def then_its_data_is_another(self, state):
        _, _, tensor = self._one(state, torch.Tensor)
        if tensor is not None and tensor.layout == torch.strided and type(tensor) is torch.Tensor:
            tensor.data = torch.rand(3, generator=self.generator).to(tensor.dtype)

    def then_its_storage_grows(self, state):
        _, _, tensor = self._one(state, torch.Tensor)
        if tensor is not None and tensor.layout == torch.strided and tensor.device.type == "cpu":
            storage = tensor.untyped_storage()
            if storage.resizable():
                storage.resize_(storage.nbytes() + 8)

    def then_a_storage_is_empty_or_not(self, state):
        """As FSDP does."""
        kept = state.setdefault("freed", torch.ones(4))
        if type(kept) is torch.Tensor and kept.shape == (4,) and kept.layout == torch.strided:
            kept.untyped_storage().resize_(0 if kept.untyped_storage().nbytes() else 16)

    def then_memory_has_two_storages(self, state):
        state["one"] = torch.frombuffer(self.memory, dtype=torch.float32)
        state["two"] = torch.frombuffer(self.memory, dtype=torch.float32)

    def then_memory_is_two_types_or_not(self, state):
        """Which cannot be saved."""
        state["one"] = torch.frombuffer(self.memory, dtype=torch.float32)
        state["two"] = torch.frombuffer(self.chance.choice([self.memory, self.memory.copy()]), dtype=torch.int32)

    def then_two_storages_are_other_memory(self, state):
        state["one"] = torch.frombuffer(self.memory.copy(), dtype=torch.float32)

    def then_one_storage_is_two_types(self, state):
        if self.chance.random() < 0.3:
            self._of_tensors(state, lambda t: t.detach().view(torch.int32) if t.dtype == torch.float32 else t)

    def then_it_is_a_parameter_or_not(self, state):
        def change(tensor):
            if type(tensor) is torch.nn.Parameter:
                return tensor.detach()
            return torch.nn.Parameter(tensor.detach(), requires_grad=tensor.is_floating_point())

        self._of_tensors(state, change)

    def then_it_has_an_attribute(self, state):
        _, _, tensor = self._one(state, torch.Tensor)
        if tensor is not None:
            tensor.note = self.chance.choice([1, "x", None])

    def then_it_has_none(self, state):
        for _, _, tensor in self.entries(state):
            if isinstance(tensor, torch.Tensor):
                tensor.__dict__.clear()

    def then_it_has_a_hook(self, state):
        _, _, tensor = self._one(state, torch.Tensor)
        if tensor is not None and tensor.requires_grad:
            tensor.register_hook(hook)

    def then_it_is_conjugate_or_negative(self, state):
        numbers = state.setdefault("complex", torch.rand(3, dtype=torch.complex64, generator=self.generator))
        state["maybe conjugate"] = self.chance.choice([numbers, numbers.conj()])
        state["maybe negative"] = self.chance.choice([numbers.real, numbers.conj().imag])

    def then_it_is_of_another_layout(self, state):
        dense = torch.rand(3, 3, generator=self.generator)
        made = self.chance.choice(
            [lambda: dense, dense.to_sparse, dense.to_sparse_csr, lambda: torch.quantize_per_tensor(dense, 0.1, 3, torch.qint8)]
            + [lambda: torch.nested.nested_tensor([dense[0], dense[0, :2]]), lambda: torch.empty(3, 3, device="meta")]
        )
        state["layout"] = made()

    def then_its_scale_changes(self, state):
        scale = self.chance.choice([0.1, 0.2])
        state["layout"] = torch.quantize_per_tensor(torch.ones(3, 3), scale, 3, torch.qint8)


ALL = sorted(name for name in dir(StatesOfTensors) if name.startswith("then_"))
PLAIN = sorted({*ALL} - {*_OUTLANDISH})
