#include "runtime/os/journal/journal_file.hpp"

#include "runtime/base/limits.hpp"

#include <boost/crc.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

namespace troupe::os {

namespace {

/// "TRUP", in the file's header: tells our files from other SQLite databases.
constexpr std::int64_t application = 0x54525550;
constexpr int schema_version = 2;

constexpr const char* create_records = R"(
  CREATE TABLE records (number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL,
                        message BLOB NOT NULL) STRICT;
  PRAGMA application_id = 0x54525550;
)";

/// One row. `first` is the number of the first record that is kept.
constexpr const char* create_about = R"(
  CREATE TABLE about (job TEXT NOT NULL, run INTEGER, epoch INTEGER NOT NULL,
                      identity INTEGER NOT NULL, first INTEGER NOT NULL) STRICT;
  PRAGMA user_version = 2;
)";

std::int64_t signed_of(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

/// SQLite protects the log it recovers from with checksums, but not the file itself.
std::int64_t checksum(std::int64_t before, std::uint64_t number, const void* bytes,
                      std::size_t size) {
  boost::crc_32_type crc;
  crc.process_bytes(&before, sizeof(before));
  crc.process_bytes(&number, sizeof(number));
  crc.process_bytes(bytes, size);
  return crc.checksum();
}

std::uint64_t any_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 1;
}

std::uint64_t unix_milliseconds() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

} // namespace

result<journal_file> journal_file::open(const std::string& path, const journal_owner& mine,
                                        durability keeps) {
  auto db = database::open(path);
  if (!db)
    return tl::make_unexpected(db.error());
  journal_file file(path, std::move(*db));
  // A file that is refused stays as it is, and its log beside it.
  file.db_.leave_log_at_close(true);
  const auto found = file.look(keeps);
  if (!found)
    return tl::make_unexpected(found.error());
  file.about_ = *found;
  if (auto owned = check_owner(path, found->job, mine); !owned)
    return tl::make_unexpected(owned.error());
  const auto pages = limits::journal_bytes_max / limits::journal_page_size;
  const auto settings =
      fmt::format("PRAGMA page_size = {}; PRAGMA journal_mode = WAL; PRAGMA max_page_count = {};"
                  "PRAGMA wal_autocheckpoint = {};",
                  limits::journal_page_size, pages, limits::journal_log_pages);
  if (auto set = file.db_.run(settings.c_str()); !set)
    return tl::make_unexpected(set.error());
  const auto ready = found->version == 0   ? file.make(mine)
                     : found->version == 1 ? file.upgrade(mine)
                                           : result<void>{};
  if (!ready)
    return tl::make_unexpected(ready.error());
  journal_past past{found->job, found->run, {}, 0};
  auto records = file.read();
  if (!records)
    return tl::make_unexpected(records.error());
  past.records = std::move(*records);
  const auto count = journal_tail::read(path);
  if (count && count->journal == file.about_.identity && count->records > file.last_)
    past.missing = count->records - file.last_;
  // At least the wall clock's milliseconds: so a master whose journal was lost with its disk is
  // still newer than the one before it.
  file.as_ = term{std::max(unix_milliseconds(), file.about_.term + 1)};
  auto opening = open_over(path, past, mine, file.as_);
  file.taken_up_ = found->version != 0 && !opening.anew;
  if (auto begun = file.begin(mine, opening.anew); !begun)
    return tl::make_unexpected(begun.error());
  file.notices_ = std::move(opening.notices);
  file.tail_.emplace(path);
  file.tail_->write({file.about_.identity, file.last_});
  file.db_.leave_log_at_close(false);
  return file;
}

/// Takes the lock and looks whose file this is, without changing it.
result<journal_file::about> journal_file::look(durability keeps) {
  // A new file is written as soon as it is looked at, and by default synced several times.
  if (auto locked = db_.run(fmt::format("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = {};"
                                        "BEGIN EXCLUSIVE",
                                        keeps == durability::power_cut ? "NORMAL" : "OFF")
                                .c_str());
      !locked)
    return tl::make_unexpected(locked.error());
  const auto id = db_.number("PRAGMA application_id");
  const auto version = db_.number("PRAGMA user_version");
  const auto tables = db_.number("SELECT count(*) FROM sqlite_schema");
  for (const auto* answer : {&id, &version, &tables})
    if (!*answer)
      return tl::make_unexpected(answer->error());
  about found;
  if (*id == 0 && *version == 0 && *tables == 0) {
    if (auto looked = db_.run("COMMIT"); !looked)
      return tl::make_unexpected(looked.error());
    return found;
  }
  if (*id != application)
    return failure(errc::invalid,
                   fmt::format("journal '{}': the file is not a journal of Troupe", path_));
  if (*version < 1 || *version > schema_version)
    return failure(errc::refused,
                   fmt::format("journal '{}': its version is {}, this program knows versions up to "
                               "{}; finish that job with the program that began it",
                               path_, *version, schema_version));
  found.version = static_cast<int>(*version);
  if (found.version == schema_version) {
    auto row =
        statement::prepare(db_, "SELECT job, run, epoch, identity, first FROM about LIMIT 1");
    if (!row)
      return tl::make_unexpected(row.error());
    const auto there = row->step();
    if (!there)
      return tl::make_unexpected(there.error());
    if (!*there)
      return failure(errc::invalid,
                     fmt::format("journal '{}': it does not say whose it is", path_));
    found.job = row->text(0);
    if (!row->is_null(1))
      found.run = static_cast<std::uint64_t>(row->integer(1));
    found.term = static_cast<std::uint64_t>(row->integer(2));
    found.identity = static_cast<std::uint64_t>(row->integer(3));
    found.first = static_cast<std::uint64_t>(row->integer(4));
  }
  if (auto looked = db_.run("COMMIT"); !looked)
    return tl::make_unexpected(looked.error());
  return found;
}

/// The tables go to the file itself, not only to its log, so that a log that is lost never makes a
/// journal look like a new one.
result<void> journal_file::make(const journal_owner& mine) {
  about_.identity = any_number();
  const auto made = in_one([this, &mine]() -> result<void> {
    if (auto tables = db_.run(create_records); !tables)
      return tables;
    if (auto table = db_.run(create_about); !table)
      return table;
    auto row = statement::prepare(db_, "INSERT INTO about VALUES (?, NULL, 0, ?, 1)");
    if (!row)
      return tl::make_unexpected(row.error());
    row->bind(1, mine.job);
    row->bind(2, signed_of(about_.identity));
    if (const auto done = row->step(); !done)
      return tl::make_unexpected(done.error());
    return {};
  });
  return made ? db_.run("PRAGMA wal_checkpoint(TRUNCATE)") : made;
}

/// Version 1 had a checksum for each record alone, a table with the term, and no job.
result<void> journal_file::upgrade(const journal_owner& mine) {
  const auto old = read_version_1();
  if (!old)
    return tl::make_unexpected(old.error());
  const auto opened = db_.number("SELECT count(*) FROM sqlite_schema WHERE name = 'opened'");
  const auto before = opened && *opened != 0 ? db_.number("SELECT max(epoch) FROM opened")
                                             : result<std::int64_t>(0);
  if (!before)
    return tl::make_unexpected(before.error());
  about_.identity = any_number();
  about_.term = static_cast<std::uint64_t>(*before);
  return in_one([&]() -> result<void> {
    if (auto table = db_.run(create_about); !table)
      return table;
    if (auto gone = db_.run("DROP TABLE IF EXISTS opened; DELETE FROM records"); !gone)
      return gone;
    auto row = statement::prepare(db_, "INSERT INTO about VALUES (?, NULL, ?, ?, 1)");
    if (!row)
      return tl::make_unexpected(row.error());
    row->bind(1, mine.job);
    row->bind(2, *before);
    row->bind(3, signed_of(about_.identity));
    if (const auto done = row->step(); !done)
      return tl::make_unexpected(done.error());
    return insert(*old, 1);
  });
}

/// A disk without room need not keep a successor from going on with what it has read: its term
/// goes to the file with its first record. A new run has to be told apart from the old one first.
result<void> journal_file::begin(const journal_owner& mine, bool anew) {
  about_.run = mine.run;
  if (anew)
    about_.first = last_ + 1;
  const auto begun = in_one([this, anew]() -> result<void> {
    if (anew)
      if (auto emptied = db_.run("DELETE FROM records"); !emptied)
        return emptied;
    return save_life();
  });
  if (anew && begun)
    checksum_ = 0;
  life_saved_ = begun.has_value();
  if (begun || (!anew && begun.error().code == errc::unavailable))
    return {};
  return begun;
}

result<void> journal_file::save_life() {
  auto row = statement::prepare(db_, "UPDATE about SET run = ?, epoch = ?, first = ?");
  if (!row)
    return tl::make_unexpected(row.error());
  if (about_.run)
    row->bind(1, signed_of(*about_.run));
  row->bind(2, signed_of(as_.value));
  row->bind(3, signed_of(about_.first));
  if (const auto done = row->step(); !done)
    return tl::make_unexpected(done.error());
  return {};
}

result<void> journal_file::append(const std::vector<messages::any_msg>& records) {
  const auto before = checksum_;
  const auto appended = in_one([this, &records]() -> result<void> {
    if (!life_saved_)
      if (auto saved = save_life(); !saved)
        return saved;
    return insert(records, last_ + 1);
  });
  if (!appended) {
    checksum_ = before;
    return appended;
  }
  life_saved_ = true;
  last_ += records.size();
  tail_->write({about_.identity, last_});
  return {};
}

result<void> journal_file::replace(const std::vector<messages::any_msg>& records) {
  const auto before = checksum_;
  const auto first_before = about_.first;
  const auto replaced = in_one([this, &records]() -> result<void> {
    if (auto emptied = db_.run("DELETE FROM records"); !emptied)
      return emptied;
    checksum_ = 0;
    about_.first = last_ + 1 - records.size();
    if (auto saved = save_life(); !saved)
      return saved;
    return insert(records, about_.first);
  });
  if (!replaced) {
    checksum_ = before;
    about_.first = first_before;
  }
  return replaced;
}

result<void> journal_file::insert(const std::vector<messages::any_msg>& records,
                                  std::uint64_t first) {
  auto row = statement::prepare(db_, "INSERT INTO records VALUES (?, ?, ?)");
  if (!row)
    return tl::make_unexpected(row.error());
  auto number = first;
  for (const auto& record : records) {
    const auto bytes = record.words().asBytes();
    checksum_ = checksum(checksum_, number, bytes.begin(), bytes.size());
    row->bind(1, signed_of(number++));
    row->bind(2, checksum_);
    row->bind(3, bytes.begin(), bytes.size());
    if (const auto done = row->step(); !done)
      return tl::make_unexpected(done.error());
    row->reset();
  }
  return {};
}

result<std::vector<messages::any_msg>> journal_file::read() {
  auto rows = statement::prepare(db_, "SELECT number, checksum, message FROM records ORDER BY 1");
  if (!rows)
    return tl::make_unexpected(rows.error());
  std::vector<messages::any_msg> records;
  std::int64_t before = 0;
  for (;;) {
    const auto row = rows->step();
    if (!row)
      return tl::make_unexpected(row.error());
    const auto number = about_.first + records.size();
    if (!*row) {
      last_ = number - 1;
      checksum_ = before;
      return records;
    }
    if (rows->integer(0) != signed_of(number))
      return tl::make_unexpected(damaged(number, "is missing"));
    before = checksum(before, number, rows->bytes(2), rows->size(2));
    if (rows->integer(1) != before)
      return tl::make_unexpected(damaged(number, "is damaged: its checksum does not match"));
    auto record = messages::admit(rows->bytes(2), rows->size(2));
    if (!record)
      return tl::make_unexpected(damaged(number, "is damaged: " + record.error().what));
    records.push_back(std::move(*record));
  }
}

result<std::vector<messages::any_msg>> journal_file::read_version_1() {
  auto rows = statement::prepare(db_, "SELECT number, checksum, message FROM records ORDER BY 1");
  if (!rows)
    return tl::make_unexpected(rows.error());
  std::vector<messages::any_msg> records;
  for (;;) {
    const auto row = rows->step();
    if (!row)
      return tl::make_unexpected(row.error());
    if (!*row)
      return records;
    const auto number = records.size() + 1;
    boost::crc_32_type crc;
    crc.process_bytes(rows->bytes(2), rows->size(2));
    if (rows->integer(0) != signed_of(number))
      return tl::make_unexpected(damaged(number, "is missing"));
    if (rows->integer(1) != static_cast<std::int64_t>(crc.checksum()))
      return tl::make_unexpected(damaged(number, "is damaged: its checksum does not match"));
    auto record = messages::admit(rows->bytes(2), rows->size(2));
    if (!record)
      return tl::make_unexpected(damaged(number, "is damaged: " + record.error().what));
    records.push_back(std::move(*record));
  }
}

error journal_file::damaged(std::uint64_t number, const std::string& why) const {
  return {errc::invalid,
          fmt::format("journal '{}': record {} {}. Without this file the next master "
                      "begins with what the nodes tell it",
                      path_, number, why)};
}

result<void> journal_file::in_one(const std::function<result<void>()>& changes) {
  if (auto begun = db_.run("BEGIN"); !begun)
    return begun;
  auto done = changes();
  if (done)
    done = db_.run("COMMIT");
  if (!done)
    db_.roll_back();
  return done;
}

} // namespace troupe::os
