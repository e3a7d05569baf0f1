#pragma once

#include "runtime/base/result.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::os {

/// The little of SQLite that the journal needs, with errors as values. Used by one thread at a
/// time.
class database {
 public:
  /// Opens or creates. Nothing is read or written yet.
  static result<database> open(const std::string& path);

  /// Statements that answer nothing.
  result<void> run(const char* statements);
  /// A query that answers one number.
  result<std::int64_t> number(const char* query);
  /// Whether closing leaves what is in the write-ahead log there, so that nothing is changed.
  void leave_log_at_close(bool leave);
  /// Ends an open transaction without its changes. After some failures SQLite has done so itself.
  void roll_back();

  sqlite3* get() { return handle_.get(); }
  /// What went wrong last, as something the caller can act on: "journal '/x': disk is full".
  error last_error() const;

 private:
  database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}

  struct closer {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::string path_;
  std::unique_ptr<sqlite3, closer> handle_;
};

/// A prepared statement.
class statement {
 public:
  static result<statement> prepare(database& db, const char* sql);

  /// The next row: true while there is one.
  result<bool> step();
  void reset() { sqlite3_reset(handle_.get()); }

  void bind(int place, const std::string& text) {
    sqlite3_bind_text64(handle_.get(), place, text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  }
  void bind(int place, std::int64_t value) { sqlite3_bind_int64(handle_.get(), place, value); }
  /// The bytes must stay until the statement is reset.
  void bind(int place, const void* bytes, std::size_t size) {
    sqlite3_bind_blob64(handle_.get(), place, bytes, size, SQLITE_STATIC);
  }

  std::int64_t integer(int column) { return sqlite3_column_int64(handle_.get(), column); }
  bool is_null(int column) { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }
  std::string text(int column) {
    const auto* chars = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
    return chars ? std::string(chars, size(column)) : std::string();
  }
  /// Valid until the next step.
  const void* bytes(int column) { return sqlite3_column_blob(handle_.get(), column); }
  std::size_t size(int column) {
    return static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  }

 private:
  statement(database& db, sqlite3_stmt* handle) : db_(&db), handle_(handle) {}

  struct finalizer {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  database* db_;
  std::unique_ptr<sqlite3_stmt, finalizer> handle_;
};

} // namespace troupe::os
