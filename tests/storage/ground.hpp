#pragma once

#include "runtime/os/storage/posix_storage.hpp"
#include "runtime/ports/testing/memory_storage.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

namespace troupe::testing {

using files = std::map<std::string, std::string>;

/// A directory that people and programs other than ours put files into.
class ground {
 public:
  virtual ~ground() = default;
  virtual std::unique_ptr<ports::storage> open() = 0;
  virtual files all() const = 0;
  virtual void put(const std::string& name, const std::string& content) = 0;
  virtual void erase(const std::string& name) = 0; ///< or all below it
  /// What comes with it, and is no regular file.
  virtual void put_odd_entries() {}
};

class memory_ground final : public ground {
 public:
  std::unique_ptr<ports::storage> open() override {
    return std::make_unique<ports::testing::memory_storage>(place_);
  }
  files all() const override { return place_.files; }
  void put(const std::string& name, const std::string& content) override {
    place_.files[name] = content;
  }
  void erase(const std::string& name) override {
    REQUIRE(ports::testing::memory_storage(place_).remove(name));
  }

 private:
  ports::testing::memory_place place_;
};

class real_ground final : public ground {
 public:
  std::unique_ptr<ports::storage> open() override {
    os::posix_storage_options how;
    how.direct = how.ring = false;
    return std::make_unique<os::posix_storage>(at_.path.string(), how);
  }
  files all() const override {
    files found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(at_.path))
      if (entry.is_regular_file() && !entry.is_symlink()) {
        std::ifstream in(entry.path(), std::ios::binary);
        found[entry.path().lexically_relative(at_.path).string()] =
            std::string(std::istreambuf_iterator<char>(in), {});
      }
    return found;
  }
  void put(const std::string& name, const std::string& content) override {
    const auto path = at_.path / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  void erase(const std::string& name) override { std::filesystem::remove_all(at_.path / name); }
  void put_odd_entries() override {
    std::filesystem::create_directory_symlink("nowhere", at_.path / "dangling");
    std::filesystem::create_symlink("/dev/null", at_.path / "null");
    std::filesystem::create_directory(at_.path / "empty");
  }

 private:
  temporary_directory at_;
};

/// A mount for reading only, or another user's directory: nothing can be written there.
class read_only_storage final : public ports::storage {
 public:
  explicit read_only_storage(std::unique_ptr<ports::storage> of) : of_(std::move(of)) {}

  result<ports::receipt> put_if(const std::string& name, ports::bytes_view,
                                const std::atomic<bool>&, const ports::may_replace&) override {
    return refused(name);
  }
  result<ports::receipt> get(const std::string& name, ports::bytes_room into,
                             const std::atomic<bool>& stop) override {
    return of_->get(name, into, stop);
  }
  result<std::string> get_small(const std::string& name, std::size_t limit) override {
    return of_->get_small(name, limit);
  }
  result<void> replace(const std::string& name, std::string_view) override { return refused(name); }
  result<std::vector<ports::stored_file>> list(const std::string& below) override {
    return of_->list(below);
  }
  result<std::vector<ports::stored_entry>> entries() override { return of_->entries(); }
  result<void> remove(const std::string& name) override { return refused(name); }
  std::string describe() const override { return "read only"; }
  std::size_t writes() const { return writes_; } ///< that were tried

 private:
  tl::unexpected<error> refused(const std::string& name) {
    ++writes_;
    return failure(errc::refused, "'" + name + "' cannot be written: read-only file system");
  }

  std::unique_ptr<ports::storage> of_;
  std::size_t writes_ = 0;
};

} // namespace troupe::testing
