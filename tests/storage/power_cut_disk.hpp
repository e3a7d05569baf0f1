#pragma once

#include "runtime/base/random.hpp"
#include "runtime/os/storage/file_ops.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

/// What happens at one system call.
enum class mishap : std::uint8_t {
  none,
  kill,      ///< the process ends before the call
  power_cut, ///< the same, and the disk forgets what was not synced, or a part of it
  no_space,
  io_error,
  short_write,
};

const char* to_string(mishap m);

/// A process of a simulation has ended: thrown through whatever it was doing.
struct process_ended {};

/// A disk in memory, with processes that write to it. What is not synced may be lost, at a power
/// cut, in every way that a file system does not exclude: each sector of 512 bytes for itself, each
/// size, each change of a directory, in no order; only that a rename happens or does not. That is
/// harsher than any file system with a journal. Used by one thread.
class power_cut_disk {
 public:
  explicit power_cut_disk(std::uint64_t seed) : random_(seed) {}

  /// What shall happen, and at which of the coming system calls (from 0). One that does not fit the
  /// call happens at the next that it fits.
  void plan(mishap what, std::uint64_t at_call);
  bool has_happened() const { return planned_ == mishap::none; }
  /// System calls since the last plan.
  std::uint64_t calls() const { return calls_; }
  /// So many bytes fit beside what is there; writing fails without room.
  void set_room(std::uint64_t bytes) { capacity_ = used() + bytes; }

  /// What this kernel and its file system do not do.
  struct refusals {
    bool direct_open = false;
    bool direct_write = false;
    bool queue = false;
    bool reserve = false;
    bool lock = false;
  };
  void refuse(refusals what) { refused_ = what; }

  /// A new process: descriptors and locks of the one before are gone.
  std::unique_ptr<os::file_ops> new_process();

  /// Changes a random bit of a file that is there; which one it was.
  std::string rot();
  /// All files, by path.
  std::map<std::string, std::string> files() const;

 private:
  friend class simulated_process;
  friend class simulated_queue;

  /// One thing that has been done to a file and not been synced: a sector, or a size.
  struct file_change {
    std::uint64_t at = 0; ///< or the size
    std::string bytes;
    bool is_size = false;
  };
  struct directory_change {
    std::string name;
    std::optional<int> node; ///< none: the name is taken away
    std::string also_gone;   ///< by the same rename
  };
  struct node {
    bool directory = false;
    std::string bytes;
    std::string durable_bytes;
    std::vector<file_change> file_changes;
    std::map<std::string, int> names;
    std::map<std::string, int> durable_names;
    std::vector<directory_change> directory_changes;
    int locked_by = -1;
    int links = 0;
  };

  /// Counts a call and lets happen what is planned for it: 0, or the -errno to answer with.
  int step(bool may_lack_space, bool may_fail);
  bool step_short();
  void cut_power();
  void lose(node& file);
  std::optional<int> find(const std::string& path) const;
  std::optional<int> parent_of(const std::string& path, std::string& name) const;
  void change(int directory, directory_change what);
  std::int64_t write(int file, const std::byte* from, std::size_t bytes, std::uint64_t at);
  void resize(int file, std::uint64_t size);
  std::uint64_t used() const;
  void walk(int from, const std::string& path, std::map<std::string, std::string>& into) const;

  random_source random_;
  std::map<int, node> nodes_{{0, node{true}}};
  int next_node_ = 1;
  mishap planned_ = mishap::none;
  std::uint64_t at_call_ = 0;
  std::uint64_t calls_ = 0;
  refusals refused_;
  std::uint64_t capacity_ = std::uint64_t{1} << 40;
};

} // namespace troupe::testing
