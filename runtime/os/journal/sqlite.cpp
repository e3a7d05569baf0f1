#include "runtime/os/journal/sqlite.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace troupe::os {

namespace {

errc code_of(int primary) {
  switch (primary) {
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT:
    return errc::invalid;
  case SQLITE_FULL:
  case SQLITE_IOERR:
  case SQLITE_NOMEM:
    return errc::unavailable;
  default:
    return errc::refused;
  }
}

std::string words_for(int primary, const char* as_sqlite_has_it) {
  switch (primary) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return "another master is using it";
  case SQLITE_NOTADB:
    return "the file is not a journal of Troupe";
  case SQLITE_FULL:
    return "the disk is full, or the journal as long as it may get";
  default:
    return as_sqlite_has_it;
  }
}

} // namespace

result<database> database::open(const std::string& path) {
  if (path.empty())
    return failure(errc::invalid, "no journal file was given");
  // An absolute path, because SQLite gives names such as ":memory:" a meaning of their own.
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed).string();
  if (failed)
    return failure(errc::refused, fmt::format("journal '{}': {}", path, failed.message()));
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(absolute.c_str(), &handle, flags, nullptr);
  database db(path, handle);
  if (opened != SQLITE_OK)
    return tl::make_unexpected(db.last_error());
  return db;
}

error database::last_error() const {
  if (!handle_)
    return {errc::unavailable, fmt::format("journal '{}': out of memory", path_)};
  const int primary = sqlite3_errcode(handle_.get()) & 0xff;
  return {code_of(primary), fmt::format("journal '{}': {}", path_,
                                        words_for(primary, sqlite3_errmsg(handle_.get())))};
}

result<void> database::run(const char* statements) {
  if (sqlite3_exec(handle_.get(), statements, nullptr, nullptr, nullptr) != SQLITE_OK)
    return tl::make_unexpected(last_error());
  return {};
}

result<std::int64_t> database::number(const char* query) {
  auto asking = statement::prepare(*this, query);
  if (!asking)
    return tl::make_unexpected(asking.error());
  const auto row = asking->step();
  if (!row)
    return tl::make_unexpected(row.error());
  return *row ? asking->integer(0) : 0;
}

void database::leave_log_at_close(bool leave) {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave ? 1 : 0, nullptr);
}

void database::roll_back() {
  if (sqlite3_get_autocommit(handle_.get()) == 0)
    sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

result<statement> statement::prepare(database& db, const char* sql) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v2(db.get(), sql, -1, &handle, nullptr) != SQLITE_OK)
    return tl::make_unexpected(db.last_error());
  return statement(db, handle);
}

result<bool> statement::step() {
  const int answer = sqlite3_step(handle_.get());
  if (answer == SQLITE_ROW)
    return true;
  if (answer == SQLITE_DONE)
    return false;
  return tl::make_unexpected(db_->last_error());
}

} // namespace troupe::os
