#include "launch/wiring/stacks_directory.hpp"

#include "diag/stacks/merged_message.hpp"
#include "launch/stacks/stack_outputs.hpp"
#include "runtime/os/io_thread.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <utility>

namespace troupe::launch {

namespace {

using merged = messages::msg<messages::MergedStacks>;

diag::stacks_written write_all(const std::string& directory, const std::vector<merged>& of) {
  diag::merged_stacks all;
  for (const auto& m : of) {
    const auto one = diag::read_merged(*m.read());
    if (one)
      all.merge(*one);
    else
      all.add_missing(fmt::format("node {}: {}", m.read()->getNode().cStr(), one.error().what), {});
  }
  diag::stacks_written done;
  done.ranks = static_cast<std::uint32_t>(all.ranks.size());
  done.world_size = all.world_size;
  if (of.empty()) {
    done.why = "no node has answered";
    return done;
  }
  if (const auto written = write_stacks(all, directory))
    done.directory = directory;
  else
    done.why = written.error().what;
  return done;
}

class directory_archive : public diag::stacks_archive {
 public:
  explicit directory_archive(std::string directory) : directory_(std::move(directory)) {}

  void write(std::uint64_t dump, const std::vector<merged>& of,
             std::function<void(diag::stacks_written)> done) override {
    boost::asio::post(thread_.context(), [where = fmt::format("{}/{}", directory_, dump), of,
                                          done = std::move(done)] { done(write_all(where, of)); });
  }

 private:
  std::string directory_;
  os::io_thread thread_{"troupe-pictures"};
};

} // namespace

std::shared_ptr<diag::stacks_archive> stacks_directory(const std::string& directory) {
  return std::make_shared<directory_archive>(directory);
}

} // namespace troupe::launch
