"""What the checkpointers of all frameworks have in common."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..programs import ProgramNotFound
from .arena import Arena, View
from .contents import Files, list_name
from .copies import NONE, Copies, Redundancy, agreed_group
from .files import directory_of, load_file, manifest_of, not_writable, placed
from .image import DDP, Destination, Image, Place
from .library import CheckpointError
from .loadable import refusal, remedy
from .loads import FoundFiles, Loads
from .memory import OF_OTHERS, PLACE_BITS, place_number
from .private_saver import PrivateSaver
from .progress import is_checkpoint, tell_first_step
from .ranks import Agreement, Rank, begun_now, summary
from .retention import DeletionStrategy, StorageType, kept, require_positive
from .runs import Run, tell_of_others
from .saves import Names, Saves, objections, require_valid
from .waiting import settled, wait_for_copies, wait_for_disk

if TYPE_CHECKING:
    from typing import Self  # Python 3.11

log = logging.getLogger("troupe.checkpoint")

PATIENCE = 1800.0  # seconds; ranks that are further apart have lost each other
SHARDS_MAX = 65536
SAVE_TIMEOUT_MAX = 3600  # seconds; the launcher waits no longer


class Checkpointer(ABC):
    """Keeps a state of all ranks in memory, writes it to a disk from there, and brings it back.

    Ranks with LOCAL_RANK < `local_shard_num` save; the first `global_shard_num` of them, in the order of ranks, make the
    shards of a step. With one shard the state is the same at all ranks, and a node that lacks it gets it from another. All
    ranks take part in every agreement: the constructor, `save_checkpoint`, `wait_latest_checkpoint`, `wait_latest_copies` and
    `load_checkpoint` (but for a path after the first load or save) are collective, to be called by every rank in the same
    order. (They agree through a gloo group of their own, if torch.distributed is initialised and the world is larger than one.)

    What a framework's own checkpointer adds:

    - `framework`: whose trackers are written (see Destination).
    - `default_file`: FSDP has `__<rank>_0.distcp` there, Megatron `iter_%07d/mp_rank_XX/model_optim_rng.pt`, Transformers
      `checkpoint-<step>`.
    - `restored`: what the user gets of what was read. A framework that puts states in their place itself does it here; one
      that collects them itself, as FSDP and DeepSpeed do, does that before it calls `save_checkpoint`.
    """

    framework = DDP
    _made_by = 0  # of a process without a launcher: one run, whatever it opens
    _saves_begun: ClassVar[dict[int, int]] = {}  # at a place, by this process and by all ranks: see `_next_save`

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike,
        *,
        local_shard_num: int = 1,
        global_shard_num: int = 1,
        deletion_strategy: DeletionStrategy | None = None,
        save_timeout: float = 600,
        images: int = 2,
        copy_on_write: bool = False,
        redundancy: Redundancy | None = None,
        optimizers: Sequence[torch.optim.Optimizer] = (),
    ):
        """`redundancy`: of several shards, how many nodes may be lost with their memory. With one shard the state is in the
        memory of every node anyway. `optimizers`: tensors of devices that one of these alone changes (its parameters, its state)
        are copied while training goes on, until its next step; else whatever a device does after a save waits for all copies.

        Raises ValueError for wrong arguments. Raises CheckpointError at all ranks, with one line that names rank and
        reason, if a shard's rank can neither write to `checkpoint_dir` (which is made if there is none) nor read it, has no memory
        that outlives it though actor-launcher started it, or could not protect its memory for `copy_on_write`; and if another run
        has begun to save there since this one has.
        """
        require_positive("local_shard_num", local_shard_num, SHARDS_MAX)
        require_positive("global_shard_num", global_shard_num, SHARDS_MAX)
        if not 0 < save_timeout <= SAVE_TIMEOUT_MAX:
            raise ValueError(
                f"save_timeout is {save_timeout!r}; it is seconds, above 0 and at most {SAVE_TIMEOUT_MAX}"
            )
        if not os.fspath(checkpoint_dir):
            raise ValueError("checkpoint_dir is empty; '.' is the directory that the program runs in")
        self.place = os.path.abspath(checkpoint_dir)
        self.keep_latest, self.keep_every = kept(deletion_strategy, self.place)
        self.save_timeout = save_timeout
        self.shards = global_shard_num
        self.me = Rank.of_this_process()
        self.shard: int | None = None  # this rank's
        self._arena: Arena | None = None  # of a rank that saves
        self._view: View | None = None  # of one that does not, where its node has memory
        self._others: View | None = None  # where its node holds pieces of other nodes' images
        self._saver: PrivateSaver | None = None
        self.run = Run(self.place, self.me)
        self._not_writable: list[str] = []  # why saves to the disk cannot be, the same at all ranks
        self._fresh = True  # nothing was loaded or saved by this process
        self._loads_all = False  # the last load was one with weights_only=False
        self._resumed: tuple[int | None, int] = None, 0  # `resumed_from`, and the last save of this process before that
        self._behind = False  # the last save may still be copied at some rank
        self._copies: Copies | None = None  # of a rank whose image other nodes hold
        self._optimizers = tuple(optimizers)
        self._ranks = Agreement(self.me, max(save_timeout, PATIENCE))
        self._names = Names(self._ranks)
        try:
            self._open(local_shard_num, images, copy_on_write)
            if redundancy and self.shards > 1:
                self._open_copies(redundancy)
        except BaseException:
            self.close()
            raise
        self._saves = Saves(self._arena) if self._arena else None
        if self.me.rank == 0:
            tell_first_step()

    def _open(self, local_shard_num: int, images: int, copy_on_write: bool) -> None:
        saves = self.me.local_rank < local_shard_num
        made_by = self.me.generation if self.me.launched else Checkpointer._made_by or begun_now()
        # A link may lead elsewhere by the next stage: what it leads to now is the place.
        real = os.path.realpath(self.place)
        number, named = place_number(real, self.framework), place_number(self.place, self.framework)
        rows = self._ranks.gather([saves, made_by, Checkpointer._saves_begun.get(number, 0), number, named])
        saving = [rank for rank, row in enumerate(rows) if row[0]]
        self.me = self._ranks.me = replace(self.me, generation=max(row[1] for row in rows))
        if not self.me.launched:
            Checkpointer._made_by = self.me.generation
        self._identity = Place(rows[0][3], self.place)  # rank 0's: each node may have a directory of its own
        self._written_to = real if all(row[3] == number for row in rows) else self.place
        Checkpointer._saves_begun[self._identity.number] = max(row[2] for row in rows)
        other_name = self.shards > 1 and saves and named != rows[0][4]
        self._ranks.require(
            f"{self.place} is not what rank 0 names: with several shards all ranks name the directory alike, also where each node has its own"
            if other_name
            else ""
        )
        if len(saving) < self.shards:
            raise ValueError(
                f"global_shard_num is {self.shards}, and of {self.me.world_size} ranks only {len(saving)} save "
                f"(those with LOCAL_RANK < {local_shard_num})"
            )
        if self.me.rank in saving[: self.shards]:
            self.shard = saving.index(self.me.rank)
        for step in (self._open_arena, self._open_view):  # nothing can be seen before it is there
            reason = ""
            try:
                step(saves, images, copy_on_write)
            except (CheckpointError, ProgramNotFound) as error:
                reason = str(error)
            self._ranks.require(reason)
        self._not_writable = self._ranks.objections(self._not_writable[0] if self._not_writable else "")
        self.run = Run(self.place, self.me)
        self.me = self._ranks.me = replace(self.me, generation=self.run.agreed(self._ranks, self._speaks_for_node))

    @property
    def _speaks_for_node(self) -> bool:
        """Of each node that has a shard one rank has to do with the place alone."""
        return self.shard is not None and self.me.local_rank == 0

    def _open_arena(self, saves: bool, images: int, copy_on_write: bool) -> None:
        if self.shards > 1 and not self.me.launched:
            raise CheckpointError(
                f"global_shard_num is {self.shards}, and only actor-launcher's master can say when so many are written: "
                "start the workers with actor-launcher, which takes torchrun's arguments"
            )
        if self.shard is not None and (why := not_writable(self.place)):
            self._not_writable = [why]
        if saves and self.me.launched:
            self._arena = Arena.of_this_worker(
                images,
                place=self._identity,
                copy_on_write=copy_on_write,
                agreed=True,
                optimizers=self._optimizers,
            )
        elif saves:
            self._arena = Arena(
                images,
                place=self._identity,
                copy_on_write=copy_on_write,
                optimizers=self._optimizers,
            )
            if self.shard is not None and not self._not_writable:
                self._saver = PrivateSaver(self._arena)

    def _open_view(self, saves: bool, *_: object) -> None:
        if not saves and self.me.launched:
            self._view = View.of_this_node(self._identity)
        if self.shards > 1 and OF_OTHERS in os.environ:
            try:
                self._others = View.of_others()
            except CheckpointError as error:  # a rank that has lost its image cannot use them
                log.warning("rank %d: pieces of other nodes' images: %s", self.me.rank, error)

    def _open_copies(self, how: Redundancy) -> None:
        saves = self._arena is not None
        group = agreed_group(self._ranks, how, saves, self.save_timeout)
        if group and self._arena:
            self._copies = Copies(self._arena, group)

    # ---- A framework's part ----

    @abstractmethod
    def default_file(self, step: int) -> tuple[str, str]:
        """Directory of a step, and file of this rank's shard there."""

    def found_file(self, step: int) -> tuple[str, str]:
        """The same for a step that is loaded, which another process may have put elsewhere."""
        directory, file = self.default_file(step)
        return directory_of(self.place, step) or directory, file

    def restored(self, state: Any) -> Any:
        """What the user gets of a state that was read."""
        return state

    # ---- Saving ----

    def prepare(self, state_dict: Any) -> None:
        """Makes memory for states like this one, in the background, so that the first save is as fast as any. Not collective."""
        if self._arena:
            self._arena.prepare(state_dict)

    @is_checkpoint
    def save_checkpoint(
        self,
        step: int,
        state_dict: Any,
        path: str = "",
        storage_type: StorageType = StorageType.DISK,
    ) -> bool:
        """Keeps the state of this moment in memory; with DISK it is also written, while training goes on.

        `step`: 0 to 2⁶³ - 1. `path`: `<checkpoint_dir>/<file>` or `<checkpoint_dir>/<directory>/<file>` instead of the default;
        its name has to differ from step to step, since no step is written over another, nor `<checkpoint_dir>/<file>` over a
        file that is there and no step's: then it is `wait_latest_checkpoint` that returns False and says why.

        Tensors of a device are copied behind the call: what the device is told to do after it waits for that, on the device.

        Returns False at all ranks, and logs why, if it could not be kept at any: there is not enough memory, or all of it holds
        images that are still being written. What was saved before is as it was. Raises ValueError for wrong arguments and what
        pickle raises for what it cannot write, at the ranks where that happens; the others return False. Raises
        CheckpointError if the ranks have lost each other, or with DISK if `checkpoint_dir` can only be read.
        """

        def where() -> tuple[str, str]:
            return placed(self.place, path) if path else self.default_file(step)

        return self._save(step, state_dict, where, storage_type)

    def save_files(
        self, step: int, files: Files, storage_type: StorageType = StorageType.DISK
    ) -> bool:
        """As `save_checkpoint`, for a rank that has files of other kinds than torch.save's, or several. They are written to the step's
        directory under their own names. Files of a rank without a shard are written nowhere.

        With room for a last file, that is given by `last_file` when the save has returned True, at ranks that have one.
        """
        mine = files.names if self.shard is not None else []
        if against := self._names.objections(mine):
            log.error("rank %d: step %s is not saved: %s", self.me.rank, step, summary(against))
            return False

        def where() -> tuple[str, str]:
            return self.default_file(step)[0], list_name(self.shard or 0)

        return self._save(step, files, where, storage_type)

    def last_file(self, name: str, content: bytes) -> None:
        """See `Arena.last_file`. Not collective."""
        if self._arena:
            self._arena.last_file(name, content)

    def _save(
        self, step: int, content: Any, where: Callable[[], tuple[str, str]], storage_type: StorageType
    ) -> bool:
        reason, wrong, to = "", None, None
        disk = storage_type is StorageType.DISK
        if disk and self._not_writable:
            raise CheckpointError(f"step {step} cannot be saved: {summary(self._not_writable)}")
        self._fresh = False
        number = self._next_save()
        if self._behind:
            self._agree_on_last()
        try:
            if disk and self._saver:
                self._saver.require_alive()
            require_valid(step, storage_type)
            if disk and self._speaks_for_node and self.run.begin(self.me.generation, self.resumed_from) and not self.shard:
                tell_of_others(self.place, self.run.others, bool(self.keep_latest or self.keep_every))
            to = self._destination(*where())
            if self._saves:
                self._saves.keep(self.me, number, step, content, to, disk)
                self._tell_of_refused(step, content)
        except CheckpointError as error:
            reason = str(error)
        except Exception as error:
            wrong, reason = error, f"{type(error).__name__}: {error}"
        against, self._behind, copies = objections(
            self._ranks,
            step,
            disk,
            to,
            reason,
            self._saves is not None and self._saves.behind,
            self._copies.state() if self._copies else NONE,
        )
        next_copies = self._copies and self._copies.agree(copies)
        if self._copies:
            self._copies.skipped = None  # what was saved last is another now, or is not the same at all ranks
        if wrong:
            raise wrong
        if against:
            log.error("rank %d: step %s is not saved: %s", self.me.rank, step, summary(against))
            return False
        if self._saves and not self._behind:
            self._saves.agree()
        if disk and to and self._saves:
            self._saves.want()
        if self._copies:
            (self._copies.want if next_copies else self._copies.skip)(step, self.me.generation)
        return True

    def _tell_of_refused(self, step: int, state: Any) -> None:
        """Once for each new kind of object, by the first shard: workers that have failed could not go on from this state."""
        pickled = self._arena.take_unknown() if self._arena else b""
        if pickled and self.shard == 0 and not self._loads_all and (why := refusal(state, pickled)):
            log.warning("step %d is saved, but by itself load_checkpoint() cannot give it back: %s; %s", step, why, remedy())

    def _next_save(self) -> int:
        """With the generation it orders all states of a place (docs/adr/0020), and it tells them from those of other places."""
        Checkpointer._saves_begun[self._identity.number] += 1
        return self._last_save

    @property
    def _last_save(self) -> int:
        number = self._identity.number
        return Checkpointer._saves_begun[number] << PLACE_BITS | number % (1 << PLACE_BITS)

    def _agree_on_last(self) -> None:
        """The last save was copied behind its call at some rank, and by now that has ended: what all have stays while the next one
        is copied."""
        image = self._saves.last_whole() if self._saves else None
        made = [image.generation, image.save, image.step] if image else [0, 0, -1]
        rows = self._ranks.gather([self._saves is not None, *made])
        if self._saves and image and all(row[1:] == made for row in rows if row[0]):
            self._saves.agree(image)

    def _destination(self, directory: str, file: str) -> Destination | None:
        """Of this rank's shard; None for a rank without one, which writes nothing."""
        if self.shard is None:
            return None
        return Destination(
            self._written_to,
            directory,
            file,
            self.framework,
            self.shard,
            self.shards,
            self.save_timeout,
            self.keep_latest,
            self.keep_every,
            *self._resumed,
        )

    @property
    def resumed_from(self) -> int | None:
        """The step that training went on from, the same at all ranks; see Destination."""
        return self._resumed[0]

    @resumed_from.setter
    def resumed_from(self, step: int | None) -> None:
        self._resumed = step, self._last_save

    @is_checkpoint
    def wait_latest_checkpoint(self, timeout: float = 1800) -> bool:
        """Waits until the last step that was saved to disk is complete, on all ranks. False, and logged why, if it was not kept,
        or that is not known after `timeout` seconds. Without such a step there is nothing to wait for: True.
        """
        return wait_for_disk(self._ranks, self.me.rank, timeout, self._last_settled, self.run.level_of_loss)

    def wait_latest_copies(self, timeout: float = 60) -> int | None:
        """Waits until copies of what was saved last are at other nodes, or have failed, at all ranks, or `timeout` seconds have
        passed. Of saves that came faster than copies are made, the last is given now. Returns the newest step that all ranks
        have there: whatever node is lost next, training goes on from that or a later one. None: there is none. Collective.
        """
        if self._saves:
            self._saves.hear()
        return wait_for_copies(self._ranks, self._copies, timeout)

    def _last_settled(self, until: float) -> tuple[bool, str]:
        return settled(self._saves, self._saver, until)

    # ---- Loading ----

    @is_checkpoint
    def load_checkpoint(
        self, resume_path: str = "", *, weights_only: bool = True, map_location: Any = "cpu"
    ) -> Any:
        """The newest state: from memory, from a peer's memory, or from the disk; {} if there is none. Checkpoints of other tools
        in `checkpoint_dir` are named in a warning and not loaded by themselves.

        `resume_path`: the file that the job begins with, instead of the disk's newest step; workers that are started again have
        something newer in memory, which is taken. After the first load or save it is just a file, read by this rank alone.
        Tensors are the image's memory; a page is copied when the program first writes to it. `weights_only` and `map_location` as
        in torch.load, but that tensors are in main memory unless it says otherwise: None has each on the device that it was
        saved from, which may be another rank's. Raises CheckpointError if what there is cannot be read or is refused, or if there are several
        shards and they were saved by a world of another size.
        """
        first, self._fresh = self._fresh, False
        self._loads_all = not weights_only

        def read(seen: View, image: Image) -> Any:
            return seen.load(image, weights_only=weights_only, map_location=map_location)

        if first or not resume_path:
            found = self._loads().newest(not resume_path, read)
            if found:
                self._has(found[0])
            if found or not resume_path:
                return self.restored(found[1]) if found else {}
        state = load_file(resume_path, weights_only=weights_only, map_location=map_location)
        if first:
            self.begins_with(os.path.dirname(os.path.abspath(resume_path)))
        return self.restored(state)

    def load_files(self, *, disk: bool = True) -> FoundFiles | None:
        """The newest step that was saved by `save_files`, from wherever it is to be had; None if there is none. If a world of another
        size has saved it, each rank has some of its files. `disk`: steps at the place are looked for, not only memory. Collective.
        Raises CheckpointError as `load_checkpoint` does."""
        self._fresh = False
        if not (found := self._loads().files_of_any_world(disk)):
            return None
        image, files = found
        if image:
            self._has(image)
        self.resumed_from = files.step
        if not image:
            self.run.goes_on_from(None)
        return files

    def _loads(self) -> Loads:
        return Loads(
            self._ranks,
            self._arena,
            self._view,
            self._others,
            self.place,
            self.shards,
            self.shard,
            lambda step: self._destination(*self.found_file(step)),
            lambda what, lacks: self.run.passes_over(what.generation, what.save, lacks),
        )

    def _has(self, image: Image) -> None:
        """All ranks have the state of this image, and go on from it."""
        self.resumed_from = image.step
        self.run.goes_on_from((image.generation, image.save))
        if self._saves:
            self._saves.agree(image)
        if self._copies:
            self._copies.want(image.step, image.generation, image)  # the nodes may be others

    def begins_with(self, directory: str) -> None:
        """The user has named what training begins with: a directory, which may be that of one of the steps here."""
        said = manifest_of(directory) if os.path.dirname(directory) == self.place else {}
        step = said.get("step")
        self.resumed_from = step if isinstance(step, int) else None
        made = said.get("generation"), said.get("save")
        self.run.goes_on_from(made if all(isinstance(number, int) for number in made) else None)

    def close(self) -> None:
        """Gives memory back, but for what loaded tensors use. Not collective. Without actor-launcher it waits until what is to
        be written is written, at most `save_timeout`; under it that goes on anyway."""
        if self._arena:
            self._arena.close()
        if self._view:
            self._view.close()
        if self._others:
            self._others.close()
        if self._saver:
            self._saver.close(self.save_timeout)
        self._arena = self._view = self._others = self._saver = self._saves = self._copies = None
        self._ranks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
