#pragma once

#include "runtime/ports/storage.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ports::testing {

/// The files of a simulated place: they outlive the storages opened on it. Used by one thread.
struct memory_place {
  std::map<std::string, std::string> files;
  /// Asked before each operation ("put", "get", "list", "entries", "remove") on a name; what it
  /// answers is the operation's answer. A full disk, or one that fails.
  std::function<std::optional<error>(const char* operation, const std::string& name)> fault;
};

/// The twin of a real storage in tests and simulations: same promises, no file.
class memory_storage final : public storage {
 public:
  /// `place` outlives the storage.
  explicit memory_storage(memory_place& place) : place_(place) {}

  result<receipt> put_if(const std::string& name, bytes_view bytes, const std::atomic<bool>& stop,
                         const may_replace& may) override;
  result<receipt> get(const std::string& name, bytes_room into,
                      const std::atomic<bool>& stop) override;
  result<std::string> get_small(const std::string& name, std::size_t limit) override;
  result<void> replace(const std::string& name, std::string_view content) override;
  result<std::vector<stored_file>> list(const std::string& below) override;
  result<std::vector<stored_entry>> entries() override;
  result<void> remove(const std::string& name) override;
  std::string describe() const override { return "memory"; }

 private:
  result<void> begin(const char* operation, const std::string& name) const;
  result<const std::string*> find(const std::string& name) const;

  memory_place& place_;
};

} // namespace troupe::ports::testing
