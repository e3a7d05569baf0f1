#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// JSON that knows on which line each of its values stands.
///
/// Files that tell of a network are written by hand and by other programs. "Node 10.0.0.7 is there
/// twice" helps little in one of ten thousand lines, so what is read keeps its line until all
/// checks are done.
namespace troupe::topology {

struct json_value {
  /// `prose`: a text that can be no name, since it is too long or has control characters. It is
  /// not kept.
  enum class kind : std::uint8_t { null, boolean, number, fraction, text, prose, array, object };

  kind is = kind::null;
  std::uint32_t line = 0; ///< where it begins, from 1
  std::int64_t number = 0;
  std::string text;
  std::string name;               ///< as a member of an object
  std::vector<json_value> inside; ///< of an array or object
};

/// What becomes of prose: an object of Kubernetes has annotations with whole documents in them.
enum class prose : std::uint8_t { refused, passed_over };

/// Refuses, each with its line: what is no JSON, a member that is there twice, texts that are
/// longer than `limits::name_max` or have control characters, and more than `limits` allows of
/// anything.
result<json_value> located_json(std::string_view text, prose texts = prose::refused);

/// "line 12: what"
error at_line(std::uint32_t line, std::string_view what);

/// The first thing that is wrong with a document.
class json_problem {
 public:
  void found(std::uint32_t line, std::string_view what) {
    if (!first_)
      first_ = at_line(line, what);
  }
  const std::optional<error>& first() const { return first_; }

 private:
  std::optional<error> first_;
};

/// Members of an object, read by their names. What is missing or of another kind is told to the
/// problem, and read as nothing. Members that are not asked for do not matter.
class json_members {
 public:
  /// `what` names the object to people: "a server".
  json_members(const json_value& of, std::string_view what, json_problem& problem);

  std::string text(std::string_view name);
  std::string optional_text(std::string_view name);
  /// A number written as a text, as versions before 2.0 of rank tables do it.
  std::uint32_t number_in_text(std::string_view name);
  std::uint32_t number(std::string_view name);
  /// Empty if it is missing.
  const std::vector<json_value>& list(std::string_view name);
  const std::vector<json_value>& optional_list(std::string_view name);
  /// Null if it is missing.
  const json_value* object(std::string_view name);
  const json_value* optional_object(std::string_view name);
  bool has(std::string_view name) const { return find(name) != nullptr; }

  std::uint32_t line() const { return of_.line; }
  /// The line of a member that is there, else of the object.
  std::uint32_t line_of(std::string_view name) const;

 private:
  const json_value* find(std::string_view name) const;
  const json_value* expect(std::string_view name, json_value::kind kind, std::string_view called);

  const json_value& of_;
  std::string_view what_;
  json_problem& problem_;
};

} // namespace troupe::topology
