#pragma once

#include "actors/command_identity.hpp"
#include "messages/kinds.hpp"

#include <optional>
#include <string>

namespace troupe::actors {

/// What a node says that it runs.
command_identity command_of(messages::Hello::Command::Reader said);

/// The one command of a job. Two jobs that meet at one address, with the same id because neither
/// was given one, would otherwise become one world with two scripts in it.
///
/// The master at a launcher knows the command from the start. A stand-alone master learns it from
/// the first node. A node that already trains (its state names a generation) is then a better
/// witness than one that has only just come: a restarted master may hear a stray first.
class job_command {
 public:
  explicit job_command(command_identity known = {});

  /// Why a node that runs `its` cannot take part, in one line; nothing if it can.
  std::optional<std::string> validation_error(const command_identity& its, bool trains) const;

  /// The node was taken. True if that proves the command wrong that was learned before.
  bool learn(const command_identity& its, bool trains);

 private:
  bool contradicts(const command_identity& its) const;

  command_identity known_;
  bool proven_;
};

} // namespace troupe::actors
