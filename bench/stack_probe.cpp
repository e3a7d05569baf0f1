// Stacks of a made-up job, for stacks.py: 40 threads of 60 native frames in each rank, mostly
// equal, some ranks elsewhere.
//
//     stack_probe write DIRECTORY RANKS troupe|xpu_timer    dumps of that kind
//     stack_probe gather RANKS                               prints seconds: messages of as many
//                                                            ranks are read, merged and drawn
#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/flame_graph.hpp"
#include "diag/stacks/merged_message.hpp"
#include "messages/msg.hpp"
#include "runtime/base/random.hpp"

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::diag;

namespace {

constexpr std::size_t threads_of_rank = 40, native_frames = 60, python_frames = 20;
constexpr std::size_t python_threads = 8, kinds_of_threads = 12;
/// One rank of so many stands where no other does.
constexpr std::uint32_t outlier_every = 97;

stack_frame native_frame(std::size_t kind, std::size_t depth, const char* what) {
  // As long as demangled names of PyTorch are.
  return {
      fmt::format("c10d::ProcessGroupNCCL::{}_{}(std::vector<at::Tensor, "
                  "std::allocator<at::Tensor> >&, c10d::AllreduceOptions const&)_{}",
                  what, kind, depth),
      fmt::format("/usr/local/lib/python3.11/site-packages/torch/lib/libtorch_{}.so", depth % 5),
      0};
}

std::vector<stack_frame> native_stack(std::uint32_t rank, std::size_t thread) {
  const auto kind = thread % kinds_of_threads;
  std::vector<stack_frame> out;
  for (auto depth = native_frames; depth-- > 0;) {
    const bool common = depth < 5; // start of a thread, or of Python
    const bool elsewhere = thread == 0 && rank % outlier_every == 5 && depth > 40;
    out.push_back(native_frame(common ? 0 : kind, depth, elsewhere ? "read" : "wait"));
  }
  return out;
}

std::vector<stack_frame> python_stack(std::uint32_t rank, std::size_t thread) {
  std::vector<stack_frame> out;
  for (auto depth = python_frames; depth-- > 0;) {
    const bool elsewhere = thread == 0 && rank % outlier_every == 5 && depth > 12;
    out.push_back({fmt::format("{}_{}_{}", elsewhere ? "next_data" : "forward", thread, depth),
                   fmt::format("/workspace/megatron/core/layer_{}.py", depth),
                   static_cast<std::uint32_t>(depth * 10 + (depth > 17 ? rank % 3 : 0))});
  }
  return out;
}

process_stacks process_of(std::uint32_t rank, std::uint32_t world) {
  process_stacks p;
  p.rank = rank;
  p.world_size = world;
  p.pid = 1'000 + rank;
  p.python_version = "3.11.2";
  for (std::size_t t = 0; t < threads_of_rank; ++t)
    p.threads.push_back({10'000 + t,
                         "pt_autograd_0",
                         'S',
                         native_stack(rank, t),
                         t < python_threads ? python_stack(rank, t) : std::vector<stack_frame>{},
                         t == 0,
                         {}});
  return p;
}

template<class Id>
void write_thread(protozero::pbf_writer& file, unsigned tag, unsigned id_tag, unsigned frames_tag,
                  Id id, const std::vector<stack_frame>& stack) {
  protozero::pbf_writer thread(file, tag);
  thread.add_uint32(id_tag, static_cast<std::uint32_t>(id));
  for (const auto& f : stack) {
    protozero::pbf_writer frame(thread, frames_tag);
    frame.add_string(1, f.function);
    frame.add_string(2, fmt::format("{}:{}", f.source, f.line));
    frame.add_string(3, f.function); // gdb's own line
  }
}

std::string xpu_timer_file(const process_stacks& p) {
  std::string bytes;
  protozero::pbf_writer file(bytes);
  for (const auto& t : p.threads)
    write_thread(file, 1, 1, 3, t.id, t.native);
  for (const auto& t : p.threads)
    if (!t.python.empty())
      write_thread(file, 2, 4, 7, t.id, t.python);
  file.add_int32(3, static_cast<std::int32_t>(p.pid));
  file.add_string(11, "S (sleeping)");
  return bytes;
}

void write_dumps(const std::string& directory, std::uint32_t ranks, bool as_xpu_timer) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto p = process_of(rank, ranks);
    const auto name = as_xpu_timer ? fmt::format("{:05}-{:05}.stacktrace", rank, ranks)
                                   : dump_file_name({rank, ranks});
    std::ofstream file(directory + "/" + name, std::ios::binary);
    file << (as_xpu_timer ? xpu_timer_file(p) : dump_of({p}));
    if (!file.flush())
      throw std::runtime_error("cannot write " + name);
  }
}

/// What a master does with the answers: all are there, one for each rank.
double gather(std::uint32_t ranks) {
  std::vector<messages::any_msg> answers;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    merged_stacks own;
    own.add(process_of(rank, ranks));
    answers.push_back(messages::local<messages::MergedStacks>("probe", [&own](auto body) {
                        write_merged(own, body);
                      }).any());
  }
  const auto began = std::chrono::steady_clock::now();
  merged_stacks all;
  for (const auto& answer : answers) {
    const auto m = messages::admit(answer.words().begin(), answer.size_bytes());
    const auto read = m ? read_merged(*m->as<messages::MergedStacks>().read())
                        : result<merged_stacks>(tl::make_unexpected(m.error()));
    if (!read)
      throw std::runtime_error(read.error().what);
    all.merge(*read);
  }
  if (svg_of(all.python, all, {"Python"}).empty() || svg_of(all.native, all, {"native"}).empty())
    throw std::runtime_error("nothing was drawn");
  const auto took = std::chrono::steady_clock::now() - began;
  if (all.ranks.size() != ranks)
    throw std::runtime_error("ranks are missing");
  return std::chrono::duration<double>(took).count();
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 4 && words[0] == "write") {
      write_dumps(words[1], static_cast<std::uint32_t>(std::stoul(words[2])),
                  words[3] == "xpu_timer");
      return EXIT_SUCCESS;
    }
    if (words.size() == 2 && words[0] == "gather") {
      fmt::print("{:.6f}\n", gather(static_cast<std::uint32_t>(std::stoul(words[1]))));
      return EXIT_SUCCESS;
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "stack_probe: {}\n", e.what());
    return EXIT_FAILURE;
  }
  fmt::print(stderr, "stack_probe write DIRECTORY RANKS troupe|xpu_timer, or gather RANKS\n");
  return 2;
}
