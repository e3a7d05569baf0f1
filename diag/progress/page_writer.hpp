#pragma once

#include "diag/progress/page.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

/// The writer's end of a page. Every call is a few atomic stores, whatever happens to the process
/// in between: a reader sees what was said until then. Time is an argument.
namespace troupe::diag {

/// Steps and phases are those of one thread, the script's; a communicator's are those of any
/// thread.
class page_writer {
 public:
  using row = std::size_t;
  /// Of a communicator for which the page has no row left. It is counted nowhere.
  static constexpr row no_row = progress_page::communicators_max;
  /// Phases that lie in each other. Deeper ones are not told apart from the one around them.
  static constexpr std::size_t depth_max = 16;

  constexpr explicit page_writer(progress_page& page) : page_(page) {}

  /// For a new process: what an earlier one has left is gone.
  void take(std::uint64_t pid, std::uint64_t now);
  void feeds(feed from);
  std::uint64_t feeds_now() const { return page_.feeds.load(std::memory_order_relaxed); }

  void step(std::uint64_t number, std::uint64_t now);
  /// The next one.
  void step(std::uint64_t now);
  void touch(std::uint64_t now);
  /// The kernel's number of the thread that makes steps, or collectives where no step was made.
  void script_thread(std::uint64_t id);

  void enter(phase which, std::string_view name, std::uint64_t now);
  /// Leaves the innermost phase of this kind, wherever it lies. Without one nothing happens.
  void leave(phase which, std::uint64_t now);
  bool is_in(phase which) const;
  /// Inside no phase.
  bool is_outside() const { return depth_ == 0; }

  /// The row of this name, a new one if there is none. `members` 0: unknown.
  row communicator(std::string_view name, std::uint64_t members, std::uint64_t members_hash);
  /// Calls it otherwise from now on.
  void rename(row which, std::string_view name, std::uint64_t members, std::uint64_t members_hash);
  std::array<char, communicator_words::name_bytes> name_of(row which) const;
  /// It is gone: the row is another one's next.
  void release(row which);

  void entered(row which, collective kind, std::uint64_t bytes, std::uint64_t now);
  void left(row which, std::uint64_t now);
  /// As `entered`, of a communicator that does not say when its collectives are finished.
  void entered_only(row which, collective kind, std::uint64_t now);

 private:
  void turn_to(phase which, std::string_view name, std::uint64_t now);
  void note(std::uint64_t now);

  row new_row();

  struct open_phase {
    phase which = phase::other;
    std::array<char, progress_page::user_phase_bytes> name{};
  };
  struct in_flight {
    std::atomic<std::uint32_t> count{0};
    std::atomic<std::uint64_t> since{0};
  };

  progress_page& page_;
  std::array<open_phase, depth_max> open_{};
  std::size_t depth_ = 0;
  std::size_t deeper_ = 0; ///< entered when there was no room
  std::array<std::atomic<bool>, progress_page::communicators_max> taken_{};
  std::array<in_flight, progress_page::communicators_max> in_flight_{};
};

} // namespace troupe::diag
