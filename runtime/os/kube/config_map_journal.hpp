#pragma once

#include "kube/api.hpp"
#include "runtime/base/log.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/journal/journal_opening.hpp"
#include "runtime/os/kube/api_access.hpp"
#include "runtime/ports/journal_store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

/// journal_store in a ConfigMap: see kube/journal_core.hpp. A thread of its own talks with the API
/// server and calls back. A record that was acknowledged is in the store of the API server.
///
/// Not locked: the newest master that opens it takes it from the one before.
class config_map_journal final : public ports::journal_store {
 public:
  struct options {
    std::string name_space;
    std::string name;         ///< of the ConfigMap
    std::string elastic_job;  ///< the ElasticJob that the job is; empty: none
    std::string host;         ///< for people: where this master is
    std::uint64_t number = 0; ///< of this opening; no other one has it
  };

  /// Asks the API server, on the thread that it was made for, which calls `answered` as well.
  using caller = std::function<void(const kube::api_request& what,
                                    std::function<void(const kube::api_answer&)> answered)>;
  /// Errors: why there can be none.
  using caller_maker = std::function<result<caller>(io_thread& io)>;

  static caller_maker calls_to(api_access access);

  /// Waits for an API server that is away, for at most limits::config_map_open_within, and tells
  /// so. `refused` if it is another job's or a right lacks; `invalid` if it is no journal or
  /// damaged; `unavailable` if the API server cannot be reached. What is refused is not changed.
  static result<std::unique_ptr<config_map_journal>>
  open(const caller_maker& calls, const options& o, const journal_owner& mine, log::sink log);
  /// What was asked for is written for at most limits::journal_end_within; the rest is answered
  /// with `closed`.
  ~config_map_journal() override;

  /// What the user should know of the journal that was found.
  const std::vector<log::event>& notices() const;

  term opened_as() const override;
  bool taken_up() const override;
  void append(messages::any_msg record, std::function<void(result<std::uint64_t>)> done) override;
  void read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) override;
  void compact(selection keep, std::function<void(result<void>)> done) override;

 private:
  class shell;
  explicit config_map_journal(std::unique_ptr<shell> s);

  std::unique_ptr<shell> shell_;
};

} // namespace troupe::os
