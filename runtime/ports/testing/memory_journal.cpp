#include "runtime/ports/testing/memory_journal.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::ports::testing {

namespace {

result<std::vector<messages::any_msg>> admit_all(const std::vector<std::string>& stored) {
  std::vector<messages::any_msg> records;
  for (const std::string& bytes : stored) {
    auto record = messages::admit(bytes.data(), bytes.size());
    if (!record)
      return failure(errc::invalid, fmt::format("journal in memory: record {} is damaged: {}",
                                                records.size() + 1, record.error().what));
    records.push_back(std::move(*record));
  }
  return records;
}

} // namespace

result<std::unique_ptr<journal_store>> memory_journal::open(memory_disk& disk, deliver how) {
  if (disk.locked)
    return failure(errc::refused, "journal in memory: another master is using it");
  return std::unique_ptr<journal_store>(new memory_journal(disk, std::move(how)));
}

memory_journal::memory_journal(memory_disk& disk, deliver how)
    : disk_(disk), opened_as_(disk.openings.next()), deliver_(std::move(how)) {
  disk_.openings = opened_as_;
  disk_.locked = true;
}

memory_journal::~memory_journal() {
  disk_.locked = false;
}

void memory_journal::append(messages::any_msg record,
                            std::function<void(result<std::uint64_t>)> done) {
  result<std::uint64_t> answer;
  if (disk_.fault) {
    answer = tl::make_unexpected(*disk_.fault);
  } else {
    const auto bytes = record.words().asChars();
    disk_.records.emplace_back(bytes.begin(), bytes.end());
    answer = disk_.dropped + disk_.records.size();
  }
  deliver_([done = std::move(done), answer = std::move(answer)] { done(answer); });
}

void memory_journal::read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) {
  deliver_([done = std::move(done), answer = admit_all(disk_.records)] { done(answer); });
}

void memory_journal::compact(selection keep, std::function<void(result<void>)> done) {
  auto all = admit_all(disk_.records);
  result<void> answer;
  if (!all || disk_.fault) {
    answer = tl::make_unexpected(all ? *disk_.fault : all.error());
  } else {
    const auto before = all->size();
    const auto kept = keep(std::move(*all));
    disk_.dropped += before - kept.size();
    disk_.records.clear();
    for (const auto& record : kept) {
      const auto bytes = record.words().asChars();
      disk_.records.emplace_back(bytes.begin(), bytes.end());
    }
  }
  deliver_([done = std::move(done), answer] { done(answer); });
}

} // namespace troupe::ports::testing
