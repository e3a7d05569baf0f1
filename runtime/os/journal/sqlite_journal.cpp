#include "runtime/os/journal/sqlite_journal.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/call_on.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <utility>

namespace troupe::os {

result<std::unique_ptr<sqlite_journal>> sqlite_journal::open(const std::string& path,
                                                             const journal_owner& mine,
                                                             durability keeps, sync_call sync) {
  auto file = journal_file::open(path, mine, keeps);
  if (!file)
    return tl::make_unexpected(file.error());
  std::unique_ptr<journal_syncer> syncing;
  if (keeps == durability::power_cut) {
    auto started = journal_syncer::start(path, std::move(sync));
    if (!started)
      return tl::make_unexpected(started.error());
    syncing = std::move(*started);
  }
  return std::unique_ptr<sqlite_journal>(
      new sqlite_journal(path, std::move(*file), std::move(syncing)));
}

sqlite_journal::sqlite_journal(std::string path, journal_file file,
                               std::unique_ptr<journal_syncer> sync)
    : path_(std::move(path)), file_(std::move(file)), opened_as_(file_.opened_as()),
      taken_up_(file_.taken_up()), notices_(file_.notices()), sync_(std::move(sync)) {}

sqlite_journal::~sqlite_journal() {
  call_on(thread_, [this] { work(); });
}

/// False when too much waits already.
bool sqlite_journal::queue(request asked) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= limits::journal_queue_max)
    return false;
  queue_.push_back(std::move(asked));
  if (queue_.size() == 1)
    boost::asio::post(thread_.context(), [this] { work(); });
  return true;
}

error sqlite_journal::too_many_wait() const {
  return {errc::overloaded, fmt::format("journal '{}': too many records wait", path_)};
}

// What is not queued is answered behind the work that is waiting, so that answers come in the order
// of the calls.

void sqlite_journal::append(messages::any_msg record,
                            std::function<void(result<std::uint64_t>)> done) {
  if (!queue(append_request{std::move(record), done}))
    boost::asio::post(thread_.context(), [this, done = std::move(done)] {
      done(tl::make_unexpected(too_many_wait()));
    });
}

void sqlite_journal::read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) {
  if (!queue(read_request{done}))
    boost::asio::post(thread_.context(), [this, done = std::move(done)] {
      done(tl::make_unexpected(too_many_wait()));
    });
}

void sqlite_journal::compact(selection keep, std::function<void(result<void>)> done) {
  if (!queue(compact_request{std::move(keep), done}))
    boost::asio::post(thread_.context(), [this, done = std::move(done)] {
      done(tl::make_unexpected(too_many_wait()));
    });
}

void sqlite_journal::work() {
  std::deque<request> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(queue_);
  }
  std::vector<append_request> group;
  for (request& next : asked) {
    if (auto* append = std::get_if<append_request>(&next)) {
      group.push_back(std::move(*append));
      continue;
    }
    append_group(std::exchange(group, {}));
    if (auto* compaction = std::get_if<compact_request>(&next))
      compaction->done(compact_now(compaction->keep));
    else
      std::get<read_request>(next).done(file_.read());
  }
  append_group(group);
}

void sqlite_journal::append_group(const std::vector<append_request>& group) {
  if (group.empty())
    return;
  auto index = file_.last();
  const auto committed = commit(group);
  if (committed && sync_)
    sync_->later();
  for (const append_request& one : group) {
    if (committed)
      one.done(++index);
    else
      one.done(tl::make_unexpected(committed.error()));
  }
}

result<void> sqlite_journal::commit(const std::vector<append_request>& group) {
  if (sync_)
    if (auto sound = sync_->state(); !sound)
      return sound;
  std::vector<messages::any_msg> records;
  records.reserve(group.size());
  for (const append_request& one : group)
    records.push_back(one.record);
  return file_.append(records);
}

result<void> sqlite_journal::compact_now(const selection& keep) {
  auto all = file_.read();
  if (!all)
    return tl::make_unexpected(all.error());
  const auto before = all->size();
  const auto kept = keep(std::move(*all));
  if (kept.size() == before)
    return {};
  if (auto replaced = file_.replace(kept); !replaced)
    return replaced;
  if (sync_)
    sync_->later();
  return {};
}

} // namespace troupe::os
