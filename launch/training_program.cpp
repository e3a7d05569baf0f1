#include "launch/training_program.hpp"

#include "runtime/base/limits.hpp"

#include <fmt/format.h>

namespace troupe::launch {

actors::leader::program program_of(const worker_contract& contract,
                                   const std::shared_ptr<worker_output>& output,
                                   const std::shared_ptr<ports::process_host>& processes) {
  actors::leader::program p;
  p.spec = [contract, output](const actors::assignment& a) -> result<ports::process_spec> {
    if (auto files = output->begin(a); !files)
      return tl::make_unexpected(files.error());
    return worker_spec(contract, a);
  };
  p.explain = [contract, processes](const actors::assignment& a, const ports::exit_status& status) {
    const auto path = files_of(contract.output, a).error_file;
    const auto file =
        path.empty() ? std::nullopt : processes->read_small_file(path, limits::text_max);
    const auto message = file ? message_in_error_file(*file) : std::nullopt;
    return message ? fmt::format("{}: {}", ports::to_string(status), *message)
                   : ports::to_string(status);
  };
  p.ended = [output](const actors::assignment& a) { output->end(a); };
  return p;
}

} // namespace troupe::launch
