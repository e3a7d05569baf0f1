#include "actors/master/recovery/exit_classes.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace troupe::actors {

namespace {

constexpr int sigkill = 9, sigterm = 15;
/// What shells and containers make of a signal: 128 and its number.
constexpr int by_shell = 128;
/// What DLRover's agents end with when memory ran out.
constexpr int out_of_memory_code = 247;

constexpr std::array out_of_memory_words{"out of memory", "outofmemoryerror",
                                         "can't allocate memory", "cannot allocate memory"};

bool says(std::string_view text, std::string_view word) {
  return !word.empty() &&
         std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) ==
                  std::tolower(static_cast<unsigned char>(b));
         }) != text.end();
}

template<class Words>
bool says_any(const exit_evidence& e, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&e](const auto& w) { return says(e.message, w) || says(e.traceback, w); });
}

bool by_signal(const exit_evidence& e, int number) {
  return e.exit_code == -number || e.exit_code == by_shell + number;
}

bool is(exit_class which, const exit_evidence& e, const hardware_signs& signs) {
  switch (which) {
  case exit_class::HARDWARE:
    return std::count(signs.exit_codes.begin(), signs.exit_codes.end(), e.exit_code) > 0 ||
           says_any(e, signs.words);
  case exit_class::OUT_OF_MEMORY:
    return e.exit_code == out_of_memory_code || (e.out_of_memory && by_signal(e, sigkill)) ||
           says_any(e, out_of_memory_words);
  case exit_class::KILLED:
    return by_signal(e, sigkill);
  case exit_class::PREEMPTED:
    return by_signal(e, sigterm);
  case exit_class::SOFTWARE:
  case exit_class::UNKNOWN:
    return true;
  }
  return true;
}

} // namespace

const std::vector<exit_treatment>& exit_treatments() {
  static const std::vector<exit_treatment> table{
      {exit_class::HARDWARE, "hardware", true, "its hardware seems to be broken"},
      {exit_class::OUT_OF_MEMORY, "out of memory", false, "memory ran out"},
      {exit_class::KILLED, "killed", false, "somebody killed it"},
      {exit_class::PREEMPTED, "preempted", false, "somebody asked it to end"},
      {exit_class::SOFTWARE, "software", false, ""},
  };
  return table;
}

const exit_treatment& treatment_of(exit_class which) {
  const auto& table = exit_treatments();
  const auto row = std::find_if(table.begin(), table.end(),
                                [which](const exit_treatment& t) { return t.which == which; });
  return row == table.end() ? table.back() : *row;
}

exit_class classify(const exit_evidence& e, const hardware_signs& signs) {
  for (const auto& row : exit_treatments())
    if (is(row.which, e, signs))
      return row.which;
  return exit_class::SOFTWARE;
}

} // namespace troupe::actors
