#include "launch/wiring/stacks_directory.hpp"

#include "diag/stacks/merged_message.hpp"
#include "launch/stacks/stack_outputs.hpp"
#include "runtime/os/io_thread.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

namespace troupe::launch {

namespace {

/// A directory of such a name is of some other making.
constexpr std::uint64_t numbers_end = 1'000'000'000;

diag::rank_set ranks_from(std::uint32_t first, std::uint32_t count) {
  diag::rank_set all;
  for (std::uint32_t i = 0; i < count; ++i)
    all.add(first + i);
  return all;
}

diag::stacks_written write_all(const std::string& directory, const diag::stacks_to_write& what) {
  diag::merged_stacks all;
  for (const auto& m : what.of) {
    const auto one = diag::read_merged(*m.read());
    if (one)
      all.merge(*one);
    else
      all.add_missing(fmt::format("node {}: {}", m.read()->getNode().cStr(), one.error().what), {});
  }
  for (const auto& absent : what.absent) {
    all.add_missing(absent.why, ranks_from(absent.first_rank, absent.ranks));
    all.world_size = std::max(all.world_size, absent.first_rank + absent.ranks);
  }
  diag::stacks_written done;
  done.ranks = static_cast<std::uint32_t>(all.ranks.size());
  done.world_size = all.world_size;
  if (what.of.empty())
    done.why = "no node has answered";
  else if (const auto written = write_stacks(all, directory))
    done.directory = directory;
  else
    done.why = written.error().what;
  all.native = {};
  done.shown = std::make_shared<const diag::merged_stacks>(std::move(all));
  return done;
}

/// Behind the highest number that is there: an earlier life of this program had the same place.
std::uint64_t free_number_in(const std::string& directory) {
  std::uint64_t next = 1;
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(directory, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const auto name = at->path().filename().string();
    std::uint64_t number = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong == std::errc{} && rest == name.data() + name.size() && number < numbers_end)
      next = std::max(next, number + 1);
  }
  return next;
}

class directory_archive : public diag::stacks_archive {
 public:
  explicit directory_archive(std::string directory)
      : directory_(std::move(directory)), free_(free_number_in(directory_)) {}

  std::uint64_t free_number() override { return free_; }

  void write(diag::stacks_to_write what, std::function<void(diag::stacks_written)> done) override {
    free_ = std::max(free_.load(), what.dump + 1);
    boost::asio::post(thread_.context(),
                      [where = fmt::format("{}/{}", directory_, what.dump), what = std::move(what),
                       done = std::move(done)] { done(write_all(where, what)); });
  }

 private:
  std::string directory_;
  std::atomic<std::uint64_t> free_; ///< an actor and its successor may be on different threads
  os::io_thread thread_{"troupe-pictures"};
};

} // namespace

std::shared_ptr<diag::stacks_archive> stacks_directory(const std::string& directory) {
  return std::make_shared<directory_archive>(directory);
}

} // namespace troupe::launch
