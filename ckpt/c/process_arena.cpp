#include "ckpt/c/process_arena.hpp"

#include "ckpt/image/torch_file.hpp"
#include "runtime/os/memory/huge_pages.hpp"
#include "runtime/os/memory/memory_room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace troupe::ckpt {

namespace {

/// Pickles of the same structure differ by a few bytes from save to save.
std::uint64_t with_slack(std::uint64_t bytes) {
  return bytes + bytes / 64 + (1u << 20);
}

/// Rounded up, so that nobody is told that 0 MiB are missing.
std::uint64_t mib(std::uint64_t bytes) {
  return (bytes >> 20) + 1;
}

} // namespace

result<std::unique_ptr<process_arena>> process_arena::open(std::size_t slots, unsigned threads) {
  if (slots < 2 || slots > slot_table::slots_max)
    return failure(errc::invalid, fmt::format("{} images at once: there can be 2 to {}", slots,
                                              slot_table::slots_max));
  auto table = os::shared_memory::create("troupe-ckpt-table", sizeof(slot_table));
  if (!table)
    return tl::make_unexpected(table.error());
  new (table->data()) slot_table;
  std::unique_ptr<process_arena> made(new process_arena(std::move(*table), slots, threads));
  made->slots_.format();
  return made;
}

process_arena::process_arena(os::shared_memory table, std::size_t slots, unsigned threads)
    : table_(std::move(table)), wanted_(slots),
      slots_(*reinterpret_cast<slot_table*>(table_.data()), slots), copier_(threads) {}

process_arena::~process_arena() {
  background_.reset();
  stop_filling();
}

result<void> process_arena::copy_on_write() {
  if (background_)
    return {};
  auto watch = os::write_watch::open();
  if (!watch)
    return tl::make_unexpected(watch.error());
  background_ = std::make_unique<background_copy>(std::move(*watch));
  return {};
}

result<void> process_arena::decide_count(std::uint64_t bytes) {
  if (decided_)
    return {};
  const auto room = os::find_memory_room();
  if (!room)
    return tl::make_unexpected(room.error());
  if (room->bytes < bytes)
    return failure(
        errc::refused,
        fmt::format("an image of this state needs {} MiB of memory and only {} are left: {}",
                    mib(bytes), room->bytes >> 20, room->bound));
  slots_.use(
      std::clamp<std::uint64_t>(room->bytes / std::max<std::uint64_t>(bytes, 1), 1, wanted_));
  decided_ = true;
  return {};
}

/// Memory for an image of that size, unless the slot has it. What the slot held is lost.
result<void> process_arena::fit(std::size_t slot, std::uint64_t bytes) {
  auto& memory = memory_[slot];
  if (memory && memory.bytes() >= bytes)
    return memory.show(memory.bytes());
  stop_filling();
  memory = os::shared_memory();
  const auto room = os::find_memory_room();
  if (!room)
    return tl::make_unexpected(room.error());
  if (room->bytes < bytes)
    return failure(
        errc::refused,
        fmt::format("an image of this state needs {} MiB of memory and only {} are left: {}",
                    mib(bytes), room->bytes >> 20, room->bound));
  auto made = os::shared_memory::create(fmt::format("troupe-ckpt-{}", slot), with_slack(bytes));
  if (!made)
    return tl::make_unexpected(made.error());
  memory = std::move(*made);
  return {};
}

result<void> process_arena::prepare(std::uint64_t bytes, std::vector<bytes_at> storages) {
  (void)saved(); // whose outcome the next save tells
  stop_filling();
  if (const auto decided = decide_count(bytes); !decided)
    return decided;
  for (std::size_t i = 0; i < slots_.count(); ++i)
    if (slots_.word(i).state == slot_state::empty)
      if (const auto fitted = fit(i, bytes); !fitted)
        return fitted;
  fill(bytes, std::move(storages));
  return {};
}

void process_arena::fill(std::uint64_t bytes, std::vector<bytes_at> storages) {
  stop_ = false;
  filled_ = {};
  filler_ = std::thread([this, bytes, storages = std::move(storages)] {
    for (std::size_t i = 0; i < slots_.count() && filled_; ++i)
      if (memory_[i])
        filled_ = memory_[i].populate(bytes, stop_);
    // Protecting a state costs its pages: the fewer the better. Theirs is who owns them to write
    // to.
    if (background_)
      for (const auto& s : storages)
        os::move_to_huge_pages(const_cast<char*>(s.data), s.bytes, stop_);
    for (std::size_t i = 0; i < slots_.count() && filled_; ++i)
      if (memory_[i])
        os::move_to_huge_pages(memory_[i].data(), bytes, stop_);
  });
}

void process_arena::stop_filling() {
  stop_ = true;
  if (filler_.joinable())
    filler_.join();
}

result<void> process_arena::prepared() {
  if (filler_.joinable())
    filler_.join();
  return filled_;
}

/// A slot to write to; one that is lent gets new memory, and a further one is added before a save
/// has to be refused.
result<std::size_t> process_arena::begin() {
  const auto only = slots_.count() == 1;
  if (const auto slot = slots_.begin(only))
    return *slot;
  for (std::size_t i = 0; i < slots_.count(); ++i)
    if (const auto w = slots_.word(i); w.lent && w.readers == 0 && slots_.newest() != i) {
      stop_filling();
      memory_[i] = os::shared_memory();
      slots_.renew(i);
    }
  if (const auto slot = slots_.begin(only))
    return *slot;
  if (slots_.count() < slot_table::slots_max)
    slots_.use(slots_.count() + 1);
  if (const auto slot = slots_.begin(only))
    return *slot;
  return failure(
      errc::overloaded,
      fmt::format("all {} images in memory are still being written out or read", slots_.count()));
}

result<void> process_arena::save(const slot_image& what, bytes_at pickle,
                                 const std::vector<bytes_at>& storages) {
  if (const auto before = saved(); !before)
    return std::exchange(saved_, result<void>{});
  std::vector<std::uint64_t> sizes(storages.size());
  std::transform(storages.begin(), storages.end(), sizes.begin(),
                 [](const bytes_at& s) { return s.bytes; });
  const torch_file file(pickle.bytes, sizes);
  const auto bytes = file.layout().bytes();
  if (const auto decided = decide_count(bytes); !decided)
    return decided;
  const auto slot = begin();
  if (!slot)
    return tl::make_unexpected(slot.error());
  if (const auto fitted = fit(*slot, bytes); !fitted) {
    slots_.abandon(*slot);
    return fitted;
  }
  auto* const image = memory_[*slot].data();
  file.write_frame(image);
  std::vector<piece> pieces{{image + file.pickle_at(), pickle.data, pickle.bytes}};
  for (std::size_t i = 0; i < storages.size(); ++i)
    pieces.push_back({image + file.storage_at(i), storages[i].data, storages[i].bytes});
  auto made = what;
  made.bytes = bytes;
  if (!background_) {
    copier_.run(pieces);
    return finish(*slot, made);
  }
  background_->start(pieces, copier_, [this, slot = *slot, made] { saved_ = finish(slot, made); });
  return {};
}

result<void> process_arena::finish(std::size_t slot, const slot_image& image) {
  if (auto shown = memory_[slot].show(image.bytes); !shown) {
    slots_.abandon(slot);
    return shown;
  }
  slots_.finish(slot, image);
  return {};
}

result<void> process_arena::saved() {
  if (background_)
    background_->wait();
  return saved_;
}

result<void> process_arena::lend(std::size_t slot) {
  if (slot >= slots_.count() || !slots_.lend(slot))
    return failure(errc::invalid, fmt::format("there is no image in slot {}", slot));
  return {};
}

result<void> process_arena::seal(std::size_t slot) {
  if (slot >= slots_.count() || !slots_.hold(slot))
    return failure(errc::invalid, fmt::format("there is no image in slot {}", slot));
  auto done = ckpt::seal(memory_[slot].data(), slots_.image(slot).bytes);
  if (done)
    slots_.mark_sealed(slot);
  slots_.release(slot);
  return done;
}

} // namespace troupe::ckpt
