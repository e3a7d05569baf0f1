#include "actors/master/recovery/exit_classes.hpp"

#include "messages/limits.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace troupe::actors {

namespace {

constexpr int sigkill = 9, sigterm = 15;
/// What shells and containers make of a signal: 128 and its number.
constexpr int by_shell = 128;
/// What DLRover's agents end with when memory ran out.
constexpr int out_of_memory_code = 247;

/// What CUDA, PyTorch, its CPU allocator, the C library and C++ say, in this order.
constexpr std::array out_of_memory_words{"out of memory", "outofmemoryerror",
                                         "can't allocate memory", "cannot allocate memory",
                                         "std::bad_alloc"};

/// What NCCL, PyTorch's store client, Gloo's connections, the kernel and HCCL say when they cannot
/// reach a peer, in this order. A port that is in use is none of it.
constexpr std::array network_words{"ncclremoteerror",
                                   "got completion from peer",
                                   "client socket has timed out",
                                   "client socket has failed to connect",
                                   "gloo/transport/tcp/pair",
                                   "no route to host",
                                   "network is unreachable",
                                   "ei0006",
                                   "getting socket times out"};

/// Nothing: it does not say so. Else the line that does.
using match = std::optional<std::string>;

/// By an exit code, or by the message, which is told anyway.
match by_itself() {
  return std::string();
}

/// Where the text says one of the words; npos if nowhere.
template<class Words>
std::size_t place_of(std::string_view text, const Words& words) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (const std::string_view word : words) {
    const auto found = std::search(text.begin(), text.end(), word.begin(), word.end(), same);
    if (!word.empty() && found != text.end())
      return static_cast<std::size_t>(found - text.begin());
  }
  return std::string_view::npos;
}

/// The line around a place, the front of it left out if it would be too long; UTF-8 stays whole.
/// A quarter of the room is for what stands before the word: there a log names the device, and
/// behind it are the numbers.
std::string line_around(std::string_view text, std::size_t place) {
  constexpr std::string_view ends = "\r\n";
  // A cut inside a character would make a message that no reader of UTF-8 takes.
  const auto is_inner = [&text](std::size_t at) { return (text[at] & 0xc0) == 0x80; };
  auto begin = text.find_last_of(ends, place);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  begin = text.find_first_not_of(" \t", begin);
  auto end = std::min(text.find_first_of(ends, place), text.size());
  if (end - begin > limits::matched_line_max)
    begin = std::max(begin, place - std::min(place, limits::matched_line_max / 4));
  end = std::min(end, begin + limits::matched_line_max);
  while (begin < end && is_inner(begin))
    ++begin;
  while (end < text.size() && end > begin && is_inner(end))
    --end;
  return std::string(text.substr(begin, end - begin));
}

template<class Words>
match line_with(std::string_view text, const Words& words) {
  const auto place = place_of(text, words);
  return place == std::string_view::npos ? match() : line_around(text, place);
}

template<class Words>
/// The message is shown with the failure anyway; of a traceback the line has to be named.
match in_error_file(const exit_evidence& e, const Words& words) {
  return place_of(e.message, words) != std::string_view::npos ? by_itself()
                                                              : line_with(e.traceback, words);
}

/// A worker may be a shell or a container that outlives the process which the signal hit.
bool by_signal(const exit_evidence& e, int number) {
  return e.exit_code == -number || e.exit_code == by_shell + number;
}

/// What it wrote last, if it ended by itself.
/// A process that was killed was not ended by what it had complained about before.
std::string_view last_words(const exit_evidence& e) {
  return by_signal(e, sigkill) || by_signal(e, sigterm) ? std::string_view() : e.log_tail;
}

/// From the last traceback on; without one the last line.
/// Of chained exceptions the last is the one that was not caught. Earlier ones, and warnings about
/// memory that a program got over, say nothing about its end.
std::string_view what_ended_it(std::string_view log) {
  if (const auto begin = log.rfind("Traceback (most recent call last)");
      begin != std::string_view::npos)
    return log.substr(begin);
  log = log.substr(0, log.find_last_not_of(" \t\r\n") + 1);
  const auto end_of_others = log.find_last_of("\r\n");
  return end_of_others == std::string_view::npos ? log : log.substr(end_of_others + 1);
}

/// From the surest sign to the weakest: an exit code is meant for a supervisor, an error file tells
/// the end, a log tells all that happened.
match of_hardware(const exit_evidence& e, const hardware_signs& signs) {
  if (std::count(signs.exit_codes.begin(), signs.exit_codes.end(), e.exit_code) > 0)
    return by_itself();
  if (auto said = in_error_file(e, signs.words))
    return said;
  return line_with(last_words(e), signs.words);
}

/// The kernel's count only says that something was killed for memory meanwhile. It is believed of a
/// process that was ended by SIGKILL, and of no other.
match of_memory(const exit_evidence& e) {
  if (e.exit_code == out_of_memory_code || (e.out_of_memory && by_signal(e, sigkill)))
    return by_itself();
  if (auto said = in_error_file(e, out_of_memory_words))
    return said;
  return e.traceback.empty() ? line_with(what_ended_it(last_words(e)), out_of_memory_words)
                             : match();
}

/// Of chained exceptions an earlier one may be of the network, and was caught.
match of_network(const exit_evidence& e) {
  if (place_of(e.message, network_words) != std::string_view::npos)
    return by_itself();
  if (auto said = line_with(what_ended_it(e.traceback), network_words))
    return said;
  return e.traceback.empty() ? line_with(what_ended_it(last_words(e)), network_words) : match();
}

/// One question for each row of the table, so that the table alone decides the order.
match is(exit_class which, const exit_evidence& e, const hardware_signs& signs) {
  switch (which) {
  case exit_class::HUNG:
    return e.hung ? by_itself() : match();
  case exit_class::HARDWARE:
    return of_hardware(e, signs);
  case exit_class::OUT_OF_MEMORY:
    return of_memory(e);
  // What the kernel killed for memory was found one row earlier: this is some other sender's
  // SIGKILL.
  case exit_class::KILLED:
    return by_signal(e, sigkill) ? by_itself() : match();
  case exit_class::PREEMPTED:
    return by_signal(e, sigterm) ? by_itself() : match();
  case exit_class::NETWORK:
    return of_network(e);
  case exit_class::SOFTWARE:
  case exit_class::UNKNOWN:
    return by_itself();
  }
  return by_itself();
}

} // namespace

/// The order decides where an end fits several. Broken hardware also shows as memory that cannot be
/// had, and only its class spares the job the next failure. A kill for memory is a SIGKILL too.
/// What fits nothing else is the program's own.
const std::vector<exit_treatment>& exit_treatments() {
  static const std::vector<exit_treatment> table{
      // What it has said before it stood still did not end it.
      {exit_class::HUNG, "hung", false, "it kept the other ranks waiting"},
      {exit_class::HARDWARE, "hardware", true, "its hardware seems to be broken"},
      {exit_class::OUT_OF_MEMORY, "out of memory", false, "memory ran out"},
      {exit_class::KILLED, "killed", false, "it was killed from outside"},
      {exit_class::PREEMPTED, "preempted", false, "it was asked to end from outside"},
      {exit_class::NETWORK, "network", false, "it lost the network, or a peer"},
      {exit_class::SOFTWARE, "software", false, ""},
  };
  return table;
}

/// A class that this version does not know is treated as the program's own failure.
const exit_treatment& treatment_of(exit_class which) {
  const auto& table = exit_treatments();
  const auto row = std::find_if(table.begin(), table.end(),
                                [which](const exit_treatment& t) { return t.which == which; });
  return row == table.end() ? table.back() : *row;
}

/// The first row that fits decides; the last one always does.
judgement classify(const exit_evidence& e, const hardware_signs& signs) {
  for (const auto& row : exit_treatments())
    if (auto said = is(row.which, e, signs))
      return {row.which, *said};
  return {exit_class::SOFTWARE, {}};
}

} // namespace troupe::actors
