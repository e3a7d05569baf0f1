#include "diag/stacks/dump_file.hpp"

#include "diag/stacks/process_message.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace troupe::diag {

namespace {

constexpr auto author_name = "stacks";

/// Takes a decimal number off the beginning; nothing if there is none, or a longer one.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc())
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (text.substr(0, word.size()) != word)
    return false;
  text.remove_prefix(word.size());
  return true;
}

std::uint32_t number_at(std::string_view bytes, std::size_t place) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[place + i]);
  return value;
}

/// How long the message at the beginning is, by Cap'n Proto's table of its segments; nothing if it
/// cannot be one.
std::optional<std::size_t> message_length(std::string_view bytes) {
  constexpr std::size_t segments_max = 512;
  if (bytes.size() < 8)
    return std::nullopt;
  const auto segments = std::size_t{number_at(bytes, 0)} + 1;
  const auto table = (segments + 2) / 2 * 8; // with its padding, in whole words
  if (segments > segments_max || table > bytes.size())
    return std::nullopt;
  std::size_t length = table;
  for (std::size_t i = 0; i < segments; ++i)
    length += std::size_t{number_at(bytes, 4 * (i + 1))} * 8;
  return length;
}

result<void> add_message(merged_stacks& into, std::string_view bytes, const dump_name& of) {
  const auto m = messages::admit(bytes.data(), bytes.size());
  if (!m) // what Cap'n Proto says of it may have several lines
    return failure(m.error().code, missing_line(m.error().what));
  if (!m->is<messages::ProcessStacks>())
    return failure(errc::invalid, fmt::format("it holds a message that is no stacks: {}",
                                              messages::kind_name(m->kind())));
  auto read = m->as<messages::ProcessStacks>().read();
  if (read->getRank() != of.rank)
    return failure(errc::invalid, fmt::format("by its name it is of rank {}, and it holds rank {}",
                                              of.rank, read->getRank()));
  return add_process(into, *read);
}

} // namespace

std::string dump_file_name(const dump_name& of) {
  return fmt::format("rank-{:05}-of-{:05}.stacks", of.rank, of.world_size);
}

std::optional<dump_name> dump_named(std::string_view file) {
  if (!take(file, "rank-"))
    return std::nullopt;
  const auto rank = take_number(file);
  if (!rank || !take(file, "-of-"))
    return std::nullopt;
  const auto world = take_number(file);
  if (!world || file != ".stacks" || *rank >= *world || *world > limits::ranks_max)
    return std::nullopt;
  return dump_name{*rank, *world};
}

std::string dump_of(const std::vector<process_stacks>& processes) {
  std::string out;
  for (const auto& p : processes) {
    const auto m = messages::local<messages::ProcessStacks>(author_name, [&p](auto body) {
                     write_process(p, body);
                   }).any();
    const auto bytes = m.words().asChars();
    out.append(bytes.begin(), bytes.size());
  }
  return out;
}

result<void> add_dump(merged_stacks& into, std::string_view bytes, const dump_name& of) {
  if (bytes.empty())
    return failure(errc::invalid, "it is empty");
  for (std::size_t process = 1; !bytes.empty(); ++process) {
    const auto where = process == 1 ? std::string() : fmt::format("process {} in it: ", process);
    if (process > limits::rank_processes_max)
      return failure(errc::invalid,
                     fmt::format("it holds more than {} processes", limits::rank_processes_max));
    const auto length = message_length(bytes);
    if (!length)
      return failure(errc::invalid, where + "these are no stacks");
    if (*length > bytes.size())
      return failure(errc::invalid,
                     fmt::format("{}cut off after {} of {} bytes", where, bytes.size(), *length));
    if (auto added = add_message(into, bytes.substr(0, *length), of); !added)
      return failure(errc::invalid, where + added.error().what);
    bytes.remove_prefix(*length);
  }
  return {};
}

std::vector<process_stacks> read_dump(std::string_view bytes) {
  std::vector<process_stacks> all;
  while (const auto length = message_length(bytes)) {
    if (*length > bytes.size())
      break;
    const auto m = messages::admit(bytes.data(), *length);
    if (!m || !m->is<messages::ProcessStacks>())
      break;
    auto process = read_process(*m->as<messages::ProcessStacks>().read());
    if (!process)
      break;
    all.push_back(std::move(*process));
    bytes.remove_prefix(*length);
  }
  return all;
}

} // namespace troupe::diag
