#include "runtime/os/journal/sqlite_journal.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/call_on.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/crc.hpp>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>

namespace troupe::os {

namespace {

/// "TRUP", in the file's header: tells our files from other SQLite databases.
constexpr std::int64_t application = 0x54525550;
constexpr std::int64_t schema_version = 1;

constexpr const char* create_schema = R"(
  CREATE TABLE records (number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL,
                        message BLOB NOT NULL) STRICT;
  PRAGMA application_id = 0x54525550;
  PRAGMA user_version = 1;
)";

/// SQLite protects the log it recovers from with checksums, but not the file itself.
std::int64_t checksum(const void* bytes, std::size_t size) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes, size);
  return crc.checksum();
}

/// Takes the lock and looks whose file this is, without changing it.
result<bool> is_new(database& db, const std::string& path) {
  if (auto locked = db.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE"); !locked)
    return tl::make_unexpected(locked.error());
  const auto id = db.number("PRAGMA application_id");
  const auto version = db.number("PRAGMA user_version");
  const auto tables = db.number("SELECT count(*) FROM sqlite_schema");
  for (const auto* answer : {&id, &version, &tables})
    if (!*answer)
      return tl::make_unexpected(answer->error());
  if (auto looked = db.run("COMMIT"); !looked)
    return tl::make_unexpected(looked.error());
  if (*id == 0 && *version == 0 && *tables == 0)
    return true;
  if (*id != application)
    return failure(errc::invalid,
                   fmt::format("journal '{}': the file is not a journal of Troupe", path));
  if (*version != schema_version)
    return failure(errc::refused,
                   fmt::format("journal '{}': its version is {}, this program knows version {}",
                               path, *version, schema_version));
  return false;
}

result<void> prepare(database& db, const std::string& path, durability keeps) {
  const auto* how =
      keeps == durability::power_cut ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = OFF";
  if (auto set = db.run(how); !set)
    return set;
  const auto fresh = is_new(db, path);
  if (!fresh)
    return tl::make_unexpected(fresh.error());
  const auto pages = limits::journal_bytes_max / limits::journal_page_size;
  const auto settings = fmt::format("PRAGMA page_size = {}; PRAGMA journal_mode = WAL;"
                                    "PRAGMA max_page_count = {}; PRAGMA wal_autocheckpoint = {};",
                                    limits::journal_page_size, pages, limits::journal_log_pages);
  if (auto set = db.run(settings.c_str()); !set)
    return set;
  if (!*fresh)
    return {};
  return db.run(fmt::format("BEGIN; {} COMMIT", create_schema).c_str());
}

/// The next epoch, kept in the file. It is at least the wall clock's milliseconds: so a master
/// whose journal was lost with its disk is still newer than the one before it.
result<epoch> next_epoch(database& db) {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  const auto step =
      fmt::format("BEGIN; CREATE TABLE IF NOT EXISTS opened (epoch INTEGER PRIMARY KEY) STRICT;"
                  "INSERT INTO opened SELECT max({}, 1 + coalesce(max(epoch), 0)) FROM opened;"
                  "DELETE FROM opened WHERE epoch < (SELECT max(epoch) FROM opened); COMMIT",
                  now);
  if (auto stepped = db.run(step.c_str()); !stepped)
    return tl::make_unexpected(stepped.error());
  const auto number = db.number("SELECT epoch FROM opened");
  if (!number)
    return tl::make_unexpected(number.error());
  return epoch{static_cast<std::uint64_t>(*number)};
}

} // namespace

/// Syncs the write-ahead log: what is in it is recovered after a power cut. SQLite itself would do
/// that as a part of a checkpoint only, with the database held.
class sqlite_journal::syncer {
 public:
  static result<std::unique_ptr<syncer>> start(const std::string& path, sync_call sync) {
    auto log = path + "-wal";
    const int descriptor = ::open(log.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      return failure(errc::unavailable,
                     fmt::format("journal '{}': cannot open its log: {}", path, text_of(errno)));
    return std::unique_ptr<syncer>(new syncer(path, descriptor, std::move(sync)));
  }

  /// Waits for a sync that is under way: it uses the descriptor.
  ~syncer() {
    call_on(thread_, [this] { timer_.reset(); });
    ::close(descriptor_);
  }

  /// There is something new to sync.
  void later() {
    if (due_.exchange(true))
      return;
    boost::asio::post(thread_.context(), [this] {
      timer_.emplace(thread_.context(), limits::journal_sync_within);
      timer_->async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled && timer_) // it may have expired just before the destructor took it away
          sync();
      });
    });
  }

  /// An error once the disk has failed to take something. What it was cannot be known again: the
  /// kernel tells only once and then forgets the bytes.
  result<void> state() const {
    if (const int number = error_; number != 0)
      return failure(errc::unavailable, fmt::format("journal '{}': the disk did not take it: {}",
                                                    path_, text_of(number)));
    return {};
  }

 private:
  syncer(std::string path, int descriptor, sync_call sync)
      : path_(std::move(path)), descriptor_(descriptor), sync_(std::move(sync)) {}

  static std::string text_of(int number) { return std::generic_category().message(number); }

  void sync() {
    due_ = false;
    if (sync_(descriptor_) != 0)
      error_ = errno;
    else if (!named_)
      sync_name();
  }

  /// A new file is found again only once its directory is on the disk as well.
  void sync_name() {
    const auto directory = std::filesystem::absolute(path_).parent_path();
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    named_ = descriptor >= 0 && sync_(descriptor) == 0;
    if (!named_)
      error_ = errno;
    if (descriptor >= 0)
      ::close(descriptor);
  }

  std::string path_;
  int descriptor_;
  sync_call sync_;
  bool named_ = false;
  std::atomic<bool> due_{false};
  std::atomic<int> error_{0};
  std::optional<boost::asio::steady_timer> timer_; ///< the thread's
  io_thread thread_{"troupe-sync"}; ///< the last member: what it runs uses all others
};

result<std::unique_ptr<sqlite_journal>> sqlite_journal::open(const std::string& path,
                                                             durability keeps, sync_call sync) {
  auto db = database::open(path);
  if (!db)
    return tl::make_unexpected(db.error());
  if (auto prepared = prepare(*db, path, keeps); !prepared)
    return tl::make_unexpected(prepared.error());
  const auto last = db->number("SELECT max(number) FROM records");
  if (!last)
    return tl::make_unexpected(last.error());
  const auto opened_as = next_epoch(*db);
  if (!opened_as)
    return tl::make_unexpected(opened_as.error());
  std::unique_ptr<syncer> syncing;
  if (keeps == durability::power_cut) {
    auto started = syncer::start(path, std::move(sync));
    if (!started)
      return tl::make_unexpected(started.error());
    syncing = std::move(*started);
  }
  return std::unique_ptr<sqlite_journal>(new sqlite_journal(
      path, std::move(*db), *opened_as, static_cast<std::uint64_t>(*last), std::move(syncing)));
}

sqlite_journal::sqlite_journal(std::string path, database db, epoch opened_as, std::uint64_t last,
                               std::unique_ptr<syncer> sync)
    : path_(std::move(path)), db_(std::move(db)), opened_as_(opened_as), last_(last),
      sync_(std::move(sync)) {}

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

void sqlite_journal::append(messages::any_msg record,
                            std::function<void(result<std::uint64_t>)> done) {
  if (queue(append_request{std::move(record), done}))
    return;
  // Posted behind the work that is waiting, so that answers come in the order of the calls.
  boost::asio::post(thread_.context(), [this, done = std::move(done)] {
    done(failure(errc::overloaded, fmt::format("journal '{}': too many records wait", path_)));
  });
}

void sqlite_journal::read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) {
  if (queue(read_request{done}))
    return;
  boost::asio::post(thread_.context(), [this, done = std::move(done)] {
    done(failure(errc::overloaded, fmt::format("journal '{}': too many records wait", path_)));
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
    std::get<read_request>(next).done(read());
  }
  append_group(group);
}

void sqlite_journal::append_group(const std::vector<append_request>& group) {
  if (group.empty())
    return;
  const auto committed = commit(group);
  if (!committed)
    db_.roll_back();
  else if (sync_)
    sync_->later();
  for (const append_request& one : group) {
    if (committed)
      one.done(++last_);
    else
      one.done(tl::make_unexpected(committed.error()));
  }
}

result<void> sqlite_journal::commit(const std::vector<append_request>& group) {
  if (sync_) {
    if (auto sound = sync_->state(); !sound)
      return sound;
  }
  if (auto begun = db_.run("BEGIN"); !begun)
    return begun;
  auto insert = statement::prepare(db_, "INSERT INTO records VALUES (?, ?, ?)");
  if (!insert)
    return tl::make_unexpected(insert.error());
  auto number = last_;
  for (const append_request& one : group) {
    const auto bytes = one.record.words().asBytes();
    insert->bind(1, static_cast<std::int64_t>(++number));
    insert->bind(2, checksum(bytes.begin(), bytes.size()));
    insert->bind(3, bytes.begin(), bytes.size());
    if (const auto done = insert->step(); !done)
      return tl::make_unexpected(done.error());
    insert->reset();
  }
  return db_.run("COMMIT");
}

result<std::vector<messages::any_msg>> sqlite_journal::read() {
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
    const auto corrupt = [this, number](const std::string& why) {
      return failure(errc::invalid, fmt::format("journal '{}': record {} {}", path_, number, why));
    };
    if (rows->integer(0) != static_cast<std::int64_t>(number))
      return corrupt("is missing");
    if (rows->integer(1) != checksum(rows->bytes(2), rows->size(2)))
      return corrupt("is damaged: its checksum does not match");
    auto record = messages::admit(rows->bytes(2), rows->size(2));
    if (!record)
      return corrupt("is damaged: " + record.error().what);
    records.push_back(std::move(*record));
  }
}

} // namespace troupe::os
