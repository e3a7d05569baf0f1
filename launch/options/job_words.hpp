#pragma once

#include "launch/options/argument_grammar.hpp"
#include "messages/job_words.hpp"

#include <map>
#include <string>

/// A command line's options of the job (scope::job), which its node sends to the master.
namespace troupe::launch {

constexpr auto id_option = "--rdzv-id";
constexpr auto nodes_option = "--nnodes";
constexpr auto check_option = "--network-check";
constexpr auto elasticity_option = "--elasticity-config";
using messages::topology_option;
constexpr auto conf_option = "--rdzv-conf";

/// Without --rdzv-id, which tells jobs apart and is a field of the hello; without --nnodes, of
/// which only the derived value can be compared; and of --rdzv-conf only the keys that are the
/// master's, each as a word of its own: "--rdzv-conf join_timeout". What DLRover's variables say of
/// the job stands as the option that it means.
messages::job_words job_words_of(const argument_grammar::positional& found,
                                 const std::map<std::string, std::string>& environment);

} // namespace troupe::launch
