#ifndef TROUPE_CKPT_H
#define TROUPE_CKPT_H

/* What a training process needs of checkpoints, for any language that can call C. Sizes and places
 * are in bytes. A function that can fail returns 0, or -1 and one line in `why`, cut to `why_bytes`
 * with the 0 at its end. One thread at a time for each arena. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Memory for this process's images. It has no name and is gone with the last process that holds it. */
typedef struct troupe_arena troupe_arena;

typedef struct {
  uint64_t step;
  uint64_t generation; /* the state's place in the order of all states: of two the newer has the higher generation, */
  uint64_t save;       /* or, of one generation, was saved by a later save. Counted from 1, by all ranks alike. */
  uint32_t rank;
  uint32_t world_size;
  uint64_t bytes;     /* of the image, which is a file of torch.save, or several files with a list of them */
  uint64_t slot;      /* set by us */
  uint64_t sequence;  /* set by us: of two images of this arena the newer has the higher */
  int32_t descriptor; /* set by us: of the memory, whose size is `bytes`; belongs to the arena */
} troupe_image;

/* Where an image is written, if that is requested: <place>/<directory>/<file>, or <place>/<file> with "." for the directory. An image
 * of several files is written to <place>/<directory>/…, each under its own name, and `file` is what their list is called, as
 * troupe_list_name says; it has a directory.
 * No two steps have a directory in common, nor a file in the place itself; nor is a file replaced there that is of no step. */
typedef struct {
  const char* place;     /* an absolute path, at most 1023 bytes */
  const char* directory; /* of the step; at most 255 bytes, as the file's name */
  const char* file;
  uint32_t framework;    /* whose trackers: 0 DDP, 1 FSDP, 2 Megatron, 3 DeepSpeed */
  uint32_t shard;        /* the step is complete when the shards 0 … shards - 1 are written, */
  uint32_t shards;
  uint64_t save_within_ms; /* all within this time */
  uint64_t keep_latest;  /* of older steps: the newest so many (0: no such rule), */
  uint64_t keep_every;   /* and multiples of this (0: no such rule); without either rule, all */
  uint64_t resumed;      /* 1 + the step that training went on from; 0: not known. A later step that was complete before then may be
                          * replaced even if it is the newest: of an earlier generation, or of a save of this one up to */
  uint64_t resumed_after; /* this number: a process may go on from a step several times */
} troupe_destination;

/* The descriptors of an arena: a process that holds them holds its memory, after this process too. */
#define TROUPE_ARENA_DESCRIPTORS 19
#define TROUPE_ARENA_SLOTS 16

/* The memory of a process, which its arenas share: there is one for each checkpoint directory that it saves to. `left`: 0, or the
 * descriptors that a launcher has handed down, or of an arena whose process has ended; they are ours then. Fails if another living
 * process has that memory open, which is named. 0 on failure. */
typedef struct troupe_memory troupe_memory;
troupe_memory* troupe_memory_open(const int32_t* left, char* why, size_t why_bytes);
/* The memory of another process, which goes on using it: for troupe_arena_view alone. */
troupe_memory* troupe_memory_view(const int32_t* descriptors, char* why, size_t why_bytes);
/* It stays as long as an arena of it is open. */
void troupe_memory_close(troupe_memory* memory);

/* `images`: how many are to be kept at once, 2 to 4. `threads` copy, the caller's among them; 0: as many as this process
 * may run on, at most 8. `memory`: 0, for memory of its own. `place`: a number that stands for a checkpoint directory and the framework that
 * saves there, the same at all ranks; an arena sees the images of its own place alone. `place_name`: what people call it. 0 on failure. */
troupe_arena* troupe_arena_open(uint32_t images, uint32_t threads, troupe_memory* memory, uint64_t place, const char* place_name,
                                char* why, size_t why_bytes);
/* An arena in another process's memory, with 0 for all places, and for pieces of other nodes' images: only for troupe_images, troupe_open_for_mapping and troupe_load_view. */
troupe_arena* troupe_arena_view(troupe_memory* memory, uint64_t place, char* why, size_t why_bytes);
/* Those of its memory, which stay its own. */
void troupe_arena_descriptors(const troupe_arena* arena, int32_t* descriptors);
void troupe_arena_close(troupe_arena* arena);
/* Images of other places there, the newest of each: a line for each, with its step and what its place is called between tabs, cut to
 * `room` with the 0 at its end. */
int troupe_images_of_others(const troupe_arena* arena, char* lines, size_t room, char* why, size_t why_bytes);

/* Makes memory for images of these storages and so much more, in the background: a first save then is as fast as any. With
 * copy-on-write the storages' own memory is moved to huge pages, where there are some; they may be used, and freed, meanwhile. */
int troupe_arena_prepare(troupe_arena* arena, uint64_t more, const void* const* storages, const uint64_t* storage_bytes,
                         size_t storage_count, char* why, size_t why_bytes);
/* Waits until that is done. */
int troupe_arena_prepared(troupe_arena* arena, char* why, size_t why_bytes);
/* How many images are kept: as many as the node has memory for, the same for all its ranks. 1 if it does not suffice for two of
 * each; then a process that dies while saving has none. 0: not known before the first is made or prepared. */
uint32_t troupe_arena_images(const troupe_arena* arena);
/* What a person should know of that, in one line: 1, and the line in `what`. Each line is told once, to one process of the node; so
 * a process asks after troupe_arena_prepare, troupe_save and troupe_begin. 0: there is nothing to tell. */
int troupe_arena_notice(troupe_arena* arena, char* what, size_t what_bytes);

/* From now on saves return as soon as the state's memory is protected. It is copied behind that, as it was at the
 * moment of the call; a write to a part that is not copied yet waits until that part is. Fails where the system does not
 * let a process do that. To be said before troupe_arena_prepare. */
int troupe_arena_copy_on_write(troupe_arena* arena, char* why, size_t why_bytes);

/* How memory is made known to a device's driver. `pin` returns 0, or anything else if that cannot be: then nothing is pinned any
 * more. They are called by threads of the arena's own, one at a time. From now on the memory of images with storages elsewhere is
 * pinned, but for its end; to be said before troupe_arena_prepare, which does it beforehand. */
typedef int (*troupe_pin)(void* begin, uint64_t bytes);
typedef void (*troupe_unpin)(void* begin);
int troupe_arena_pin_by(troupe_arena* arena, troupe_pin pin, troupe_unpin unpin, char* why, size_t why_bytes);

/* The places of storages that are not in main memory. */
typedef struct {
  void** places;          /* room for one of each storage; of others 0 is put there */
  const void* pinned_end; /* set by us: what lies behind it in the image is not pinned. One copy does not go across it. */
} troupe_left;

/* Copies a state: what pickle made of it, and the storages that it names "0", "1", … Returns when everything is copied;
 * with copy-on-write before that, and then the storages (not these arrays) must stay until troupe_saved returns. Waits
 * for the copy before it, and fails with the reason if that one failed. `to` stays with the image; 0: it cannot be
 * requested. With `persist` writing it is requested as soon as it is whole. A storage whose address is 0 is elsewhere: the caller fills
 * its place, and the image is whole when the caller has said so by troupe_filled. `left` may be 0 where there is none. */
int troupe_save(troupe_arena* arena, const troupe_image* what, const troupe_destination* to, int persist,
                const void* pickle, uint64_t pickle_bytes,
                const void* const* storages, const uint64_t* storage_bytes, size_t storage_count, troupe_left* left,
                char* why, size_t why_bytes);
/* A file of an image that has several: its name below the step's directory, and so many of the parts that follow. */
typedef struct {
  const char* name;
  size_t parts;
} troupe_file;
/* A part of a file, behind the one before it. With `archive` it is a file of torch.save, at a multiple of 64: `head` is what pickle
 * made, and the storages are those that it names. Else the bytes of the head, and right behind them those of the storages. */
typedef struct {
  int archive;
  const void* head;
  uint64_t head_bytes;
  size_t storages;  /* so many of those that follow */
  uint64_t in_file; /* set by us: where it lies in its file, */
  uint64_t bytes;   /* and how long it is */
} troupe_part;
/* Copies several files, as troupe_save does; heads stay as storages do. With `last_file_room` the image is whole when troupe_last_file
 * was called as well: for a file of at most so many bytes whose content depends on where everything lies. */
int troupe_save_files(troupe_arena* arena, const troupe_image* what, const troupe_destination* to, int persist,
                      const troupe_file* files, size_t file_count, troupe_part* parts, size_t part_count,
                      const void* const* storages, const uint64_t* storage_bytes, size_t storage_count,
                      uint64_t last_file_room, troupe_left* left, char* why, size_t why_bytes);
/* Where the parts of files will lie, before they are saved: sets `in_file` and `bytes` of each. */
int troupe_lay_out(const troupe_file* files, size_t file_count, troupe_part* parts, size_t part_count,
                   const uint64_t* storage_bytes, size_t storage_count, char* why, size_t why_bytes);
/* The last file of the save before, which is given up if this fails. troupe_saved says how that save ended. */
int troupe_last_file(troupe_arena* arena, const char* name, const void* content, uint64_t bytes, char* why,
                     size_t why_bytes);
/* There is none, and the save is given up for this reason. Nothing happens if none is awaited. */
void troupe_no_last_file(troupe_arena* arena, const char* why_not);
/* What a shard's list of files is called on a disk. */
#define TROUPE_LIST_NAME_BYTES 32
void troupe_list_name(uint32_t shard, char* name);
/* The files of an image in memory: a line for each, with where it begins, how many bytes it has, its crc32 (0 until the image is written)
 * and its name between tabs. Returns how many bytes these lines are with a 0 at their end, or -1; they are given if `room` is enough. An
 * image that is one file of torch.save has none: 1. */
int troupe_files(const void* image, uint64_t bytes, char* lines, size_t room, char* why, size_t why_bytes);
/* The same of a shard's list as it lies on a disk. */
int troupe_listed(const void* list, uint64_t bytes, char* lines, size_t room, char* why, size_t why_bytes);

/* The places that the last save left are filled, or are not to be, for a reason; 0: they are. Any thread may say it. */
void troupe_filled(troupe_arena* arena, const char* failed);

/* Persist requested: the image is to be written. The saver is told, and the image stays as it is until that is finalized. */
int troupe_request_persist(troupe_arena* arena, uint64_t slot, char* why, size_t why_bytes);
/* The rollback point: all ranks have an image of the same step as this one of this sequence. It stays until another is the
 * rollback point, and it is what is written at a breakpoint. 0: nothing is known of others, and the newest is what counts. */
void troupe_set_rollback_point(troupe_arena* arena, uint64_t sequence);
/* What became of an image whose writing was requested, waiting for at most so long. 1: it belongs to a complete step. 0: not
 * known yet. -1: its step was given up, and why. */
int troupe_finalized(troupe_arena* arena, uint64_t slot, uint64_t sequence, uint64_t within_ms, char* why,
                   size_t why_bytes);

/* An image that comes from elsewhere: memory for so many bytes, to be filled through `memory` before troupe_finish, or
 * given up. Sets the slot and descriptor of `made`. */
int troupe_begin(troupe_arena* arena, uint64_t bytes, troupe_image* made, void** memory, char* why, size_t why_bytes);
int troupe_finish(troupe_arena* arena, const troupe_image* made, const troupe_destination* to, char* why,
                  size_t why_bytes);
void troupe_abandon(troupe_arena* arena, uint64_t slot);

/* A load. All ranks say what they see, as numbers that troupe_load_view writes; each gathers those of all, plans by them with
 * troupe_plan_load, which gives the same plan at all, and carries out its part; then all look again, until the plan says that every
 * rank has the state in memory. ckpt/load/load_plan.hpp says what is planned, ckpt/load/load_numbers.hpp what the numbers are. */

/* What this rank could go on from: in its arena (0: it has none), in the memory for others' images (0: none), and of the newest
 * `steps` complete steps at a place (0: it is not looked at; one that does not exist has none). Storage that fails with what may
 * pass is tried again for half a minute; a step that could not be read in all that time is passed over.
 * Returns how many numbers there are, or -1; they are given if `room` is enough. */
int troupe_load_view(const troupe_arena* arena, troupe_arena* others, const char* place, uint64_t steps, uint32_t rank,
                     uint32_t world_size, uint32_t shards, uint64_t* numbers, size_t room, char* why, size_t why_bytes);
/* Returns how many numbers the plan is, or -1; they are given if `room` is enough. */
int troupe_plan_load(const uint64_t* question, size_t count, uint64_t* plan, size_t room, char* why, size_t why_bytes);
/* Of the complete step at a place that is this state (step, generation, save): sets `bytes` to the size of a shard's file. */
int troupe_shard_bytes(const char* place, troupe_image* of, uint32_t shard, char* why, size_t why_bytes);
/* Reads it into memory of so many bytes, and compares size and checksum with what the step's manifest says. Where the
 * manifest is that save's, both return TROUPE_LACKING if a file is not there or has another size, TROUPE_DAMAGED if its bytes are others. */
#define TROUPE_DAMAGED (-2)
#define TROUPE_LACKING (-3)
int troupe_read_shard(const char* place, const troupe_image* of, uint32_t shard, void* memory, char* why, size_t why_bytes);

/* The complete steps at a place, newest first, at most `room` of them. Returns how many, or -1. A place that does not
 * exist has none. */
int troupe_complete_steps(const char* place, uint64_t* steps, size_t room, char* why, size_t why_bytes);
/* Where a complete step at a place is: a directory below it, or "." for the place itself; empty if it is not there. */
int troupe_step_directory(const char* place, uint64_t step, char* directory, size_t room, char* why, size_t why_bytes);
/* Steps at a place that a load of this state (0: which found nothing) has passed over, as they are damaged, not complete or gone: a line
 * for each, with what it is, why, and 1 if it was complete once or 0, between tabs, cut to `room` with the 0 at its end. */
int troupe_steps_passed_over(const char* place, const troupe_image* than, char* lines, size_t room, char* why, size_t why_bytes);
/* A run is known at a place by the term of its saves, and stands upon the runs that it went on from: only their steps are removed by a
 * rule. A later life of a run has the same name and, of its master, the same term. */
typedef struct {
  const char* name;         /* empty: a process without a launcher, whose every life is a run of its own */
  uint64_t generation;      /* as the master numbers it, */
  uint64_t saves_as;        /* and what saves here are of: set by troupe_saves_as */
  uint64_t from_generation; /* the save that training went on from; of none if that is not known */
  uint64_t from_save;
  uint64_t from_step;       /* 1 + the step at this place that training went on from, where its save is not known; 0: of none */
  const uint64_t* damaged;  /* of steps there that could not be read, as they are damaged: generation, save and 1 for TROUPE_LACKING */
  size_t damaged_count;     /* of each of so many. Their numbers may be saved again */
  uint32_t taken;           /* set by us: troupe_begin_run has failed since another run saves as this by now */
} troupe_run;
/* When a process opens a place that it may save to. Fails, with what to do, if another run or a later master has begun to save there. */
int troupe_saves_as(const char* place, troupe_run* run, char* why, size_t why_bytes);
/* Before the first save of a process there. Returns how many complete steps are there that it does not stand upon, and gives the newest
 * of them, or -1. */
int troupe_begin_run(const char* place, troupe_run* run, uint64_t* others, size_t room, char* why, size_t why_bytes);

/* Checkpoints of other tools at a place, which their trackers name: a line for each, with its directory, its step and the tracker's
 * name between tabs, cut to `room` with the 0 at its end. */
int troupe_foreign_steps(const char* place, char* lines, size_t room, char* why, size_t why_bytes);

/* Waits until the last save is copied; fails while the places that it left are not filled. A failure is told once, here or by
 * the next save. */
int troupe_saved(troupe_arena* arena, char* why, size_t why_bytes);

/* The images that are whole, newest first; returns how many, at most TROUPE_ARENA_SLOTS. */
int troupe_images(const troupe_arena* arena, troupe_image* found);
/* To be called before a library opens an image as a file, by its descriptor's name in /proc, and maps it, and ended when it
 * has. From then on the arena does not write there as long as any of that is mapped, by this process or a child that it has
 * forked; where the kernel does not say whether it is, as long as the arena's process lives. (A process that maps the descriptor
 * itself has opened nothing, and is not seen.) The library will likely choose an address at which huge pages are mapped as
 * such, so that reading each page for the first time takes a twentieth. 0: the image of this sequence is no more, or cannot
 * be opened. */
typedef struct troupe_mapping troupe_mapping;
troupe_mapping* troupe_open_for_mapping(troupe_arena* arena, uint64_t slot, uint64_t sequence, char* why, size_t why_bytes);
void troupe_end_mapping(troupe_mapping* mapping);
/* Fills in the checksums of an image, so that it is the file. */
int troupe_seal(troupe_arena* arena, uint64_t slot, char* why, size_t why_bytes);

/* Copies at other nodes. The nodes of a group hold pieces of each other's images: of each stripe, to which all but the
 * targets give a piece of theirs, `parity` sums. So `parity` nodes may be lost. */

/* A group of ranks, and at which addresses their nodes hold pieces. */
#define TROUPE_GROUP_MEMBERS 16
typedef struct {
  uint32_t members;        /* 2 to 16; */
  uint32_t parity;         /* 1 or 2, or members - 1 up to 4 */
  uint32_t me;             /* which of them this is */
  const uint32_t* ranks;   /* of the members, */
  const char* const* addresses; /* and "host:port" of each, at most 127 bytes */
  uint64_t within_ms;      /* they are to be made within this time */
} troupe_group;

/* Copies of an image are requested: the node is told, and it stays as it is until that is finalized. `slot` names it, or is
 * TROUPE_LAST_SAVE, with copy-on-write before it is whole as well, and then says its slot. Fails if copies of it are being
 * made already. */
#define TROUPE_LAST_SAVE UINT64_MAX
int troupe_request_copies(troupe_arena* arena, uint64_t* slot, const troupe_group* by, char* why, size_t why_bytes);
/* What became of them, as troupe_finalized says it. 1: all of the group that gave to the same stripes have done so, and all is held. */
int troupe_copies_finalized(troupe_arena* arena, uint64_t slot, uint64_t sequence, uint64_t within_ms, char* why,
                          size_t why_bytes);
/* The replica base: from now on the image of this sequence stays, because other ranks go on from its step if they must, and the
 * one that did before need not. 0: none stays. Fails where memory suffices for one image. */
int troupe_set_replica_base(troupe_arena* arena, uint64_t sequence, char* why, size_t why_bytes);

/* In its slot a parity that this node holds begins so many bytes after the memory's begin. */
#define TROUPE_HELD_BEFORE 4096

/* These need no arena. A group that cannot be has no pieces or targets. */

/* Of each piece of an image; the last may be shorter. */
uint64_t troupe_piece_bytes(uint32_t members, uint32_t parity, uint64_t image_bytes);
/* Which piece of its image a member gives to a stripe; -1: none. */
int32_t troupe_piece_of(uint32_t members, uint32_t parity, uint32_t member, uint32_t stripe);
/* Which member holds a stripe's parity; -1: there is none. */
int32_t troupe_target(uint32_t members, uint32_t parity, uint32_t stripe, uint32_t row);

/* into += times * from, in the field that pieces are summed in. They do not overlap. */
void troupe_accumulate(void* into, const void* from, uint64_t bytes, uint32_t times);
/* Of these bytes behind those that have `before`; 0: there are none. */
uint32_t troupe_crc32(uint32_t before, const void* bytes, uint64_t count);

/* What PyTorch says of a tensor, by functions of C that its library offers (torch/csrc/inductor/aoti_torch/c/shim.h). Each returns 0, or
 * anything else if it cannot say it. Their `tensor` is the address of a pointer: of what Python calls `_cdata`. */
typedef struct {
  int32_t (*dtype)(void* tensor, int32_t* found);
  int32_t (*layout)(void* tensor, int32_t* found);
  int32_t (*device_type)(void* tensor, int32_t* found);
  int32_t (*device_index)(void* tensor, int32_t* found);
  int32_t (*dimensions)(void* tensor, int64_t* found);
  int32_t (*offset)(void* tensor, int64_t* found);
  int32_t (*storage_bytes)(void* tensor, int64_t* found);
  int32_t (*sizes)(void* tensor, int64_t** found);
  int32_t (*strides)(void* tensor, int64_t** found);
  int32_t strided; /* what `layout` finds of a tensor with strides */
} troupe_tensor_functions;
/* `kinds`: of each tensor one number, the same for the same type of number, layout and device. `numbers`: of each, one behind another,
 * how many dimensions it has, where it begins in its storage, that one's bytes, its sizes and its strides. Returns how many numbers
 * that are, which are there if `room` is enough; -1: PyTorch could not say something. */
int64_t troupe_describe_tensors(const troupe_tensor_functions* by, void* const* tensors, size_t count, int64_t* kinds,
                                int64_t* numbers, size_t room);
/* to[i] = values[order[i]] + more[i]; `more` may be 0 */
void troupe_in_order(const uint64_t* values, const uint32_t* order, const uint64_t* more, size_t count, uint64_t* to);

/* Whether two lists are the same up to the numbers that they consist of: where one has the same number twice, so has the other. The
 * `known` numbers stand for themselves. */
int troupe_same_pattern(const uint64_t* some, const uint64_t* others, size_t count, const uint64_t* known, size_t known_count);

/* Whether these bytes are a whole, undamaged file of torch.save. */
int troupe_verify(const void* file, uint64_t bytes, char* why, size_t why_bytes);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
