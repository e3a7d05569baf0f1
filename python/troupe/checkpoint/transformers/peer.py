"""DLRover's classes for trainers that save by their own code: what is in its `hf_trainer`, with its names and signatures.

A trainer (ms-swift's, or a copy of DLRover's own) puts `ckpt_agent.save` in the place of `torch.save`, saves as ever, and calls
`save_checkpoint_to_storage(step)`. What came to the agent is kept in memory then, at each rank its own files, and written to
`<checkpoint_dir>/checkpoint-<step>/` behind training. What the trainer wrote there by other ways (its configuration) is taken from
the directory into the snapshot: the directory is there when the step is being written, and whole when it is complete.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..checkpointer import Checkpointer
from ..contents import File, Files, Part, list_name
from ..directories.capture import SMALL, noting_tensors
from ..directories.checkpointer import PREFIX
from ..directories.safetensors import part_of
from ..files import is_own, is_step
from ..image import Image
from ..library import SLOTS, CheckpointError
from ..ranks import Rank, number, tell_backend
from ..retention import StorageType
from ..waiting import SLICE

if TYPE_CHECKING:
    from typing import Self  # Python 3.11

log = logging.getLogger("troupe.checkpoint")

_native_save, _native_load = torch.save, torch.load
NO_IMAGE = (0, 0, -1)
OTHER_WORLDS_WITHIN = 60.0  # seconds, in which what a world of another size has saved is written
FLAG = "safe_serialization"  # the trainer's weights are to be files of safetensors
KEYS = {"model_states.pt": "model_states", "optim_states.pt": "optim_states"}  # DeepSpeed's files


def renamed(name: str) -> str | None:
    """What a file of weights is called as one of safetensors; None for any other file."""
    above, base = os.path.split(name)
    stem, ending = os.path.splitext(base)
    if ending != ".bin" or not stem.startswith(("adapter_model", "pytorch_model")):
        return None
    stem = "model" + stem.removeprefix("pytorch_model") if stem.startswith("pytorch_model") else stem
    return os.path.join(above, f"{stem}.safetensors")


def as_safetensors(tensors: Mapping[str, torch.Tensor]) -> Part:
    """Of tensors that are one, the first: an embedding comes before the head that is tied to it, which is what `save_pretrained`
    leaves out. Raises ValueError if they cannot be a file of safetensors."""
    seen: set[tuple[Any, ...]] = set()
    plain = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"'{name}' is no tensor but a {type(tensor).__name__}")
        place = (str(tensor.device), tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if tensor.numel() and place in seen:
            continue
        seen.add(place)
        plain[name] = tensor.detach().contiguous()
    part = part_of(plain, {"format": "pt"})
    # Parts of one memory are not what is usual, and each is a copy then.
    part = part or part_of({name: tensor.clone() for name, tensor in plain.items()}, {"format": "pt"})
    if not part:
        raise ValueError("it has tensors of a type that safetensors does not know")
    return part


class CheckpointAgent:
    """What takes the place of `torch.save`. With `create` and `commit` it is a checkpoint engine of DeepSpeed, too. `directory`: with
    the directories of steps, in which it keeps files of safetensors, too, while it is `torch.save`."""

    def __init__(self, directory: str = "") -> None:
        self._directory = directory
        self.state_dict: dict[str, Any] = {}
        self.paths: dict[str, str] = {}

    def create(self, tag: Any) -> None:
        pass

    def save(self, state_dict: Any, path: Any, *more: Any, **named: Any) -> None:
        """What is no path's name is written by torch.save itself, at once."""
        if not isinstance(path, str):
            return _native_save(state_dict, path, *more, **named)
        self._keep(state_dict, path)
        return None

    def note_tensors(self, tensors: Any, path: Any, metadata: Any) -> bool:
        """Whether it keeps what safetensors was to write: Transformers since 5.0 does not ask torch.save for weights."""
        if getattr(torch.save, "__self__", None) is not self or not isinstance(path, (str, os.PathLike)):
            return False
        absolute = os.path.abspath(os.fspath(path))
        part = part_of(tensors, metadata) if absolute.startswith(f"{self._directory}{os.sep}") else None
        if part:
            self._keep(part, absolute)
        return part is not None

    def _keep(self, state: Any, path: str) -> None:
        base = os.path.basename(path)
        key = next((key for ending, key in KEYS.items() if base.endswith(ending)), base)
        if self.paths.get(key, path) != path:
            key = path
        self.state_dict[key], self.paths[key] = state, path

    def load(self, path: str, map_location: Any = None) -> Any:
        for key, known in self.paths.items():
            if known == path and not isinstance(self.state_dict[key], Part):
                return self.state_dict[key]
        return _native_load(path, map_location=map_location)

    def commit(self, tag: Any) -> bool:
        return True

    def files(self, directory: str) -> list[File]:
        """Those that were saved below it. Raises ValueError for one that was saved elsewhere, or cannot be what it is to be."""
        safe = bool(self.state_dict.get(FLAG))
        found = []
        for key, state in self.state_dict.items():
            if key == FLAG:
                continue
            name = os.path.relpath(self.paths[key], directory)
            if name.split(os.sep)[0] == os.pardir:
                raise ValueError(f"{self.paths[key]} is not below {directory}, where this step's files are")
            found.append(_file_of(name, state, renamed(name) if safe else None))
        return found

    def clear(self) -> None:
        self.state_dict.clear()
        self.paths.clear()


def taken(directory: str, step: int) -> list[File]:
    """What a trainer has written there. A directory that is no step's yet goes: a step's has no files that others have written."""
    found = []
    for above, _, names in os.walk(directory):
        for name in sorted(names):
            path = os.path.join(above, name)
            if not is_own(name):
                found.append(File.of_bytes(os.path.relpath(path, directory), Path(path).read_bytes()))
    place, name = os.path.split(directory)
    if not is_step(place, name, step):
        shutil.rmtree(directory, ignore_errors=True)
    return found


def _file_of(name: str, state: Any, safe_name: str | None) -> File:
    if isinstance(state, Part):
        return File(name, [state])
    if safe_name:
        try:
            return File(safe_name, [as_safetensors(state)])
        except ValueError as error:
            raise ValueError(f"'{name}' cannot be {safe_name}: {error}") from error
    part = Part.of_state(state)
    if sum(storage.nbytes() for storage in part.storages) >= SMALL:
        return File(name, [part])
    with tempfile.TemporaryDirectory(prefix="troupe-small-") as directory:
        path = Path(directory, os.path.basename(name))  # torch.save writes the file's name into it
        _native_save(state, path)
        return File.of_bytes(name, path.read_bytes())


class SaveEngine(Checkpointer):
    """Each rank is a shard, with what its own agent was given. DLRover's name for it is `async_save_engine`."""

    _prepared: dict[str, SaveEngine] = {}  # by directory: made before the trainer's checkpointer

    @classmethod
    def prepared(cls, checkpoint_dir: str | os.PathLike) -> Self:
        """The one that the checkpointer of this directory takes. Collective."""
        place = os.path.abspath(checkpoint_dir)
        if place not in cls._prepared:
            cls._prepared[place] = cls(place)
        return cls._prepared[place]

    @classmethod
    def taken(cls, checkpoint_dir: str) -> Self:
        """For a checkpointer. Collective."""
        # The trainer may save elsewhere than it said, as in a search for parameters.
        return cls._prepared.pop(checkpoint_dir, None) or cls(checkpoint_dir)

    def __init__(self, checkpoint_dir: str | os.PathLike, save_timeout: float = 600):
        world_size = Rank.of_this_process().world_size
        local_size = number("LOCAL_WORLD_SIZE", world_size)
        super().__init__(
            checkpoint_dir,
            local_shard_num=local_size,
            global_shard_num=world_size,
            save_timeout=save_timeout,
        )

    def default_file(self, step: int) -> tuple[str, str]:
        return f"{PREFIX}{step}", list_name(self.shard or 0)

    def in_turn(self, take: Callable[[], list[File]]) -> list[File]:
        """At rank 0, and then at the first rank of each other node, which may have a directory of its own; when all are here."""
        self._ranks.gather([0])
        found = take() if self.me.rank == 0 else []
        self._ranks.gather([0])
        return take() if self.me.rank != 0 and self.me.local_rank == 0 else found

    def finish_earlier(self) -> int | None:
        """Has what processes before this one have kept in memory written to its end, and waits for it: the newest step that all ranks
        have. None: there is none, or it could not be written. Collective."""
        images = [image for image in self._arena.found() if image.generation < self.me.generation] if self._arena else []
        mine = [image for image in images if (image.rank, image.world_size) == (self.me.rank, self.me.world_size)]
        rows = self._ranks.gather([number for place in range(SLOTS) for number in _made(mine, place)])
        saved = [set(zip(*[iter(row)] * 3, strict=True)) for row in rows]
        common = max(set.intersection(*saved) - {NO_IMAGE}, default=None)
        self._until_settled([image for image in images if image not in mine], OTHER_WORLDS_WITHIN)
        self._ranks.gather([0])
        if common is None or not self._saves:
            return None
        self._saves.want_found(next(image for image in mine if _made([image], 0) == common))
        return common[2] if super().wait_latest_checkpoint(self.save_timeout) else None

    def _until_settled(self, images: Sequence[Image], within: float) -> None:
        """Images of a world of another size: that is asked for already, or never was."""
        until = time.monotonic() + within
        for image in images:
            with contextlib.suppress(CheckpointError):  # it is not complete: then an older step is
                while self._arena and time.monotonic() < until and not self._arena.settled(image, SLICE):
                    pass

    def require(self, reason: str) -> None:
        """Raises CheckpointError at all ranks if any has a reason."""
        self._ranks.require(reason)

    def said_by_first(self, text: str, objection: Callable[[str], str]) -> str:
        """Rank 0's text, at all ranks; `objection`: why a rank cannot do with it, if it is not empty. Raises CheckpointError then."""
        said = self._ranks.said_by_first(text)
        self._ranks.require(objection(said) if said else "")
        return said

    def wait_latest_checkpoint(self, timeout: float | None = 1800, max_steps: int | None = None) -> bool:
        """Of this rank alone, as trainers call it after errors, too: whether the last save is complete. Raises nothing. `max_steps` is
        DLRover's, and says nothing that is not known here."""
        within = 1800 if timeout is None else timeout
        done, reason = self._last_settled(time.monotonic() + within)
        if reason:
            log.error("rank %d: the last checkpoint was not kept: %s", self.me.rank, reason)
        elif not done:
            log.error("rank %d: after %g s the last checkpoint is not complete", self.me.rank, within)
        return done and not reason


def _made(images: Sequence[Image], place: int) -> tuple[int, int, int]:
    """In the order in which images are made."""
    if place >= len(images):
        return NO_IMAGE
    image = images[place]
    return image.generation, image.save, image.step


class HfFlashCheckpointer:
    """`storage` of DLRover is code of its own, which has no place here."""

    def __init__(self, checkpoint_dir: str | os.PathLike, storage: Any = None, comm_backend: str = ""):
        if storage is not None:
            raise ValueError(f"storage: a {type(storage).__name__} is code of its own; leave it out, files are written to the disk")
        tell_backend(comm_backend)
        self.checkpoint_dir = os.path.abspath(checkpoint_dir)
        self.ckpt_agent = CheckpointAgent(self.checkpoint_dir)
        self.async_save_engine = SaveEngine.taken(self.checkpoint_dir)
        self._undone = contextlib.ExitStack()
        self._undone.enter_context(noting_tensors(self.ckpt_agent.note_tensors))

    def save_checkpoint_to_memory(self, step: int, blocking: bool = False) -> bool:
        return self._save(step, StorageType.MEMORY, blocking)

    def save_checkpoint_to_storage(self, step: int, blocking: bool = False) -> bool:
        """Whether the step is kept, the same at all ranks; it is complete when `dlrover_latest.txt` says so. `blocking`: waits for memory
        that is still being written, and then until the step is complete: a trainer that removes old steps next counts it. Raises ValueError, with the file's name, for what cannot be a file of the step."""
        return self._save(step, StorageType.DISK, blocking)

    def _save(self, step: int, storage_type: StorageType, blocking: bool) -> bool:
        directory = os.path.join(self.checkpoint_dir, f"{PREFIX}{step}")
        try:
            mine = self.ckpt_agent.files(directory)
            written = self.async_save_engine.in_turn(lambda: taken(directory, step))
            files = Files(mine + [file for file in written if file.name not in {one.name for one in mine}])
            kept = self.async_save_engine.save_files(step, files, storage_type)
            if not kept and blocking:
                self.async_save_engine.wait_latest_checkpoint(self.async_save_engine.save_timeout)
                kept = self.async_save_engine.save_files(step, files, storage_type)
            if kept and blocking and storage_type is StorageType.DISK:
                self.async_save_engine.wait_latest_checkpoint(self.async_save_engine.save_timeout)
            return kept
        finally:
            self.ckpt_agent.clear()

    def close(self) -> None:
        self._undone.close()
        self.async_save_engine.close()


class HfDdpCheckpointer(HfFlashCheckpointer):
    """For `DistributedDataParallel`, and for one process."""


class HfDeepSpeedCheckpointer(HfFlashCheckpointer):
    """For an engine of DeepSpeed, whose own `save_checkpoint` is what calls the agent."""

    def __init__(
        self, engine: Any, checkpoint_dir: str | os.PathLike, storage: Any = None, comm_backend: str = ""
    ):
        if not hasattr(engine, "save_checkpoint"):
            raise ValueError(f"engine: a {type(engine).__name__} is no engine of DeepSpeed")
        super().__init__(checkpoint_dir, storage, comm_backend)
        self.engine = engine
