#include "ckpt/catalog/line.hpp"

#include "ckpt/catalog/newest_generation.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/limits.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <string_view>

namespace troupe::ckpt {

namespace {

constexpr std::string_view run_files = ".troupe/runs";
constexpr std::size_t name_bytes_max = 1024, record_bytes_max = 64u << 10;

std::string record_of(term own) {
  return fmt::format("{}/{}", run_files, own.value);
}

/// One line, whatever the user has called the run.
std::string in_one_line(std::string name) {
  name.resize(std::min(name.size(), name_bytes_max));
  std::replace(name.begin(), name.end(), '\n', ' ');
  return name;
}

/// The lists of a record, each line of which begins so.
struct list_of_saves {
  std::string_view mark;
  std::vector<save_id> run_record::*ids;
};
constexpr list_of_saves lists[] = {{"", &run_record::from},
                                   {"left ", &run_record::left},
                                   {"lacking ", &run_record::lacking},
                                   {"damaged ", &run_record::damaged}};

std::string to_text(const run_record& record) {
  auto text = fmt::format("{}\n{}\n", record.by_master.value, record.run);
  for (const auto& list : lists)
    for (const auto& id : record.*list.ids)
      text += fmt::format("{}{} {}\n", list.mark, id.made_by.value, id.number);
  return fmt::format("{}{:08x}\n", text, libdeflate_crc32(0, text.data(), text.size()));
}

std::optional<run_record> record_in(term own, const std::string& text) {
  std::istringstream in(text);
  run_record found;
  found.own = own;
  std::string rest;
  if (!std::getline(in, rest))
    return std::nullopt;
  std::from_chars(rest.data(), rest.data() + rest.size(), found.by_master.value);
  if (!std::getline(in, found.run))
    return std::nullopt;
  while (std::getline(in, rest) && rest.find(' ') != rest.npos) { // `text` is bounded.
    const auto* list = std::begin(lists);
    for (const auto& one : lists)
      list = rest.rfind(one.mark, 0) == 0 ? &one : list;
    auto& id = (found.*list->ids).emplace_back();
    const auto* const begin = rest.data() + list->mark.size();
    const auto* const end = rest.data() + rest.size();
    const auto made_by = std::from_chars(begin, end, id.made_by.value);
    if (made_by.ptr != end)
      std::from_chars(made_by.ptr + 1, end, id.number);
  }
  // The same text again: the checksum and every other byte is as it was written.
  return to_text(found) == text ? std::optional(std::move(found)) : std::nullopt;
}

/// None for a file of others.
std::optional<term> term_in(const std::string& name) {
  if (name.size() <= run_files.size())
    return std::nullopt;
  term found;
  const char* const end = name.data() + name.size();
  std::from_chars(name.data() + run_files.size() + 1, end, found.value);
  return record_of(found) == name ? std::optional(found) : std::nullopt;
}

/// Nothing if there is none that can be read.
result<std::optional<run_record>> find_record(ports::storage& storage, term own) {
  const auto text = storage.get_small(record_of(own), record_bytes_max);
  if (!text && text.error().code == errc::unavailable)
    return tl::make_unexpected(text.error());
  return text ? record_in(own, *text) : std::optional<run_record>();
}

bool is_of(const run_record& record, const run_at_start& who) {
  return record.run == in_one_line(who.run) && record.by_master == term_of(who.made_by);
}

/// Processes without a launcher have no name in common.
bool is_same_run(const run_record& record, const run_at_start& who) {
  return !who.run.empty() && record.run == in_one_line(who.run);
}

/// The highest that any save, begun or complete, or any fence here is of.
result<term> newest_term(ports::storage& storage, const std::vector<run_record>& runs) {
  const auto fence = newest_on_record(storage);
  if (!fence)
    return tl::make_unexpected(fence.error());
  auto newest = *fence == generation{} ? term{} : term_of(*fence);
  const auto see = [&newest](generation g) {
    if (g != generation{})
      newest = std::max(newest, term_of(g));
  };
  for (const auto& one : runs)
    newest = std::max(newest, one.own);
  const auto known = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!known)
    return tl::make_unexpected(known.error());
  for (const auto& [step, found] : known->steps()) {
    see(found.begun_by.made_by);
    see(found.says.made_by);
  }
  for (const auto& copy : known->copies())
    see(copy.says.made_by);
  return newest;
}

tl::unexpected<error> is_older(const run_at_start& who, const run_record& newer) {
  return failure(errc::refused,
                 fmt::format("{} of run '{}' saves nothing here: a later master of that run has "
                             "begun to (term {}). If that was another run, whose machine had a "
                             "clock that was ahead, and it has ended, remove '{}'",
                             in_full(who.made_by), in_one_line(who.run), newer.by_master.value,
                             record_of(newer.own)));
}

/// Its memory and the other run's steps would be taken for states of one training.
tl::unexpected<error> is_overtaken(const run_at_start& who, const run_record& other) {
  return failure(
      errc::refused,
      fmt::format("run '{}' has begun to save here after run '{}': what lies here is not "
                  "of one training any more. Give each run a directory of its own; if "
                  "the other has ended and its steps were moved away, remove '{}'",
                  other.run, in_one_line(who.run), record_of(other.own)));
}

bool has(const std::vector<save_id>& ids, const save_id& one) {
  return std::find(ids.begin(), ids.end(), one) != ids.end();
}

/// What an earlier run has saved; the newest stay.
void add_to(std::vector<save_id>& ids, const save_id& one, term own) {
  if (one.made_by == generation{} || !(term_of(one.made_by) < own))
    return;
  if (!has(ids, one))
    ids.push_back(one);
  std::sort(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return b < a; });
  ids.resize(std::min(ids.size(), limits::given_up_max));
}

/// What manifests and records say of the runs before a save.
std::vector<save_id> line_before(const step_catalog& known, const std::vector<run_record>& runs,
                                 term of) {
  std::vector<save_id> all;
  const auto add = [&all](const std::vector<save_id>& line) {
    for (const auto& id : line)
      go_on_from(all, id, {});
  };
  for (const auto& one : runs)
    if (one.own == of)
      add(one.from);
  for (const auto* found : known.complete_newest_first())
    if (term_of(found->says.made_by) == of)
      add(found->says.line);
  return all;
}

} // namespace

bool line::holds(const save_id& id) const {
  return term_of(id.made_by) == own || std::any_of(from.begin(), from.end(), [&id](const auto& f) {
           return term_of(f.made_by) == term_of(id.made_by) && !(f < id);
         });
}

bool line::touches(generation which) const {
  return term_of(which) == own || std::any_of(from.begin(), from.end(), [which](const auto& f) {
           return term_of(f.made_by) == term_of(which);
         });
}

void go_on_from(std::vector<save_id>& line, const save_id& save,
                const std::vector<save_id>& before) {
  auto all = before;
  all.push_back(save);
  for (const auto& id : all) {
    const auto known = std::find_if(line.begin(), line.end(), [&id](const auto& f) {
      return term_of(f.made_by) == term_of(id.made_by);
    });
    if (known == line.end())
      line.push_back(id);
    else
      *known = std::max(*known, id);
  }
  std::sort(line.begin(), line.end(), [](const auto& a, const auto& b) { return b < a; });
  line.resize(std::min(line.size(), limits::line_runs_max));
}

result<std::vector<run_record>> run_records(ports::storage& storage) {
  const auto listed = storage.list(std::string(run_files));
  if (!listed)
    return tl::make_unexpected(listed.error());
  std::vector<run_record> all;
  for (const auto& file : *listed)
    if (const auto own = term_in(file.name)) {
      auto found = find_record(storage, *own);
      if (!found)
        return tl::make_unexpected(found.error());
      if (*found)
        all.push_back(std::move(**found));
    }
  return all;
}

result<line> line_of(ports::storage& storage, term own) {
  return find_record(storage, own).map([own](const auto& found) {
    return found ? line{own, found->from, found->left, found->lacking, found->damaged}
                 : line{own, {}};
  });
}

result<generation> saves_as(ports::storage& storage, const run_at_start& who) {
  const auto runs = run_records(storage);
  if (!runs)
    return tl::make_unexpected(runs.error());
  const auto newest = newest_term(storage, *runs);
  if (!newest)
    return tl::make_unexpected(newest.error());
  const auto by_master = term_of(who.made_by);
  bool has_begun = false;
  const run_record* last = nullptr; // The run whose term is the newest.
  for (const auto& one : *runs) {
    if (is_same_run(one, who) && by_master < one.by_master)
      return is_older(who, one);
    has_begun = has_begun || is_of(one, who);
    if (one.own == *newest)
      last = &one;
  }
  if (last != nullptr && is_of(*last, who))
    return with_term(who.made_by, last->own);
  if (*newest < by_master || (*newest == by_master && last == nullptr))
    return who.made_by;
  if (last != nullptr && has_begun && !who.run.empty() && !is_same_run(*last, who))
    return is_overtaken(who, *last);
  return with_term(who.made_by, term{newest->value + 1});
}

result<void> begin_run(ports::storage& storage, const run_at_start& who, generation as,
                       const origin& from) {
  const auto runs = run_records(storage);
  if (!runs)
    return tl::make_unexpected(runs.error());
  const auto own = term_of(as);
  const run_record* before = nullptr;
  for (const auto& one : *runs)
    if (one.own == own)
      before = &one;
  if (before != nullptr && !is_of(*before, who))
    return failure(errc::overloaded,
                   fmt::format("run '{}' has begun to save here at the same moment; start this one "
                               "again, or use another directory",
                               before->run));
  const auto known = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!known)
    return tl::make_unexpected(known.error());
  run_record record{own, term_of(who.made_by), in_one_line(who.run),
                    line_before(*known, *runs, own)};
  auto save = from.save;
  if (const auto* there = !save && from.step ? known->find(*from.step) : nullptr;
      there != nullptr && there->is_complete())
    save = there->says.id();
  if (save && term_of(save->made_by) != own)
    go_on_from(record.from, *save, line_before(*known, *runs, term_of(save->made_by)));
  record.from.erase(std::remove_if(record.from.begin(), record.from.end(),
                                   [own](const auto& id) { return !(term_of(id.made_by) < own); }),
                    record.from.end());
  if (before != nullptr) {
    record.left = before->left;
    record.damaged = before->damaged;
    record.lacking = before->lacking;
  }
  for (const auto& [step, found] : known->steps())
    if (found.is_left())
      add_to(record.left, found.begun_by, own);
  for (const auto& id : from.damaged)
    add_to(record.damaged, id, own);
  for (const auto& id : from.lacking)
    add_to(record.lacking, id, own);
  // No load of this run comes to what the runs before it have passed over. Whether bytes are wrong
  // is not seen without a load, and may have been mended since.
  for (const auto& one : *runs)
    if (line{own, record.from}.touches(with_term(generation{1}, one.own)))
      for (const auto& id : one.lacking)
        add_to(record.lacking, id, own);
  if (before != nullptr && to_text(*before) == to_text(record))
    return {};
  return storage.replace(record_of(own), to_text(record));
}

result<std::vector<std::uint64_t>> steps_of_others(ports::storage& storage, term own) {
  const auto of = line_of(storage, own);
  if (!of)
    return tl::make_unexpected(of.error());
  const auto known = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!known)
    return tl::make_unexpected(known.error());
  std::vector<std::uint64_t> all;
  for (const auto* found : known->complete_newest_first())
    if (const auto id = found->says.id();
        !of->holds(id) && !has(of->damaged, id) && !has(of->lacking, id))
      all.push_back(found->step);
  return all;
}

} // namespace troupe::ckpt
