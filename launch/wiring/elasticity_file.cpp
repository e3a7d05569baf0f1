#include "launch/wiring/elasticity_file.hpp"

#include "runtime/os/read_at_most.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <cstring>
#include <optional>

namespace troupe::launch {

namespace json = boost::json;
using actors::elasticity_config;

namespace {

/// A DeepSpeed config; a longer file is not read as one.
constexpr std::size_t config_bytes_max = 1u << 20;

std::optional<std::int64_t> whole(const json::value& v) {
  if (v.is_int64())
    return v.as_int64();
  return std::nullopt; // what does not fit into 64 bits is out of every bound
}

/// Takes the section apart, key by key; the first validation error stays.
class section {
 public:
  explicit section(const json::object& object) : object_(object) {}

  void number(const char* key, std::int64_t& target, bool needed = false) {
    const auto* v = find(key, needed);
    if (!v)
      return;
    if (const auto n = whole(*v))
      target = *n;
    else
      refuse(fmt::format("{} is no whole number", key));
  }

  void truth(const char* key, bool& target) {
    const auto* v = find(key, false);
    if (!v)
      return;
    if (v->is_bool())
      target = v->as_bool();
    else
      refuse(fmt::format("{} is neither true nor false", key));
  }

  void numbers(const char* key, std::vector<std::int64_t>& target) {
    const auto* v = find(key, true);
    if (!v)
      return;
    if (!v->is_array())
      return refuse(fmt::format("{} is no list", key));
    target.clear();
    for (const auto& each : v->as_array()) {
      const auto n = whole(each);
      if (!n)
        return refuse(fmt::format("{} holds something that is no whole number", key));
      target.push_back(*n);
    }
  }

  /// 0.1 or 0.2, as a number or in quotes.
  void version(elasticity_config::rules& target) {
    const auto* v = find("version", false);
    if (!v)
      return;
    const auto is = [v](double number, const char* text) {
      return (v->is_double() && v->as_double() == number) ||
             (v->is_string() && v->as_string() == text);
    };
    if (is(0.1, "0.1"))
      target = elasticity_config::rules::v0_1;
    else if (!is(0.2, "0.2"))
      refuse("version is neither 0.1 nor 0.2");
  }

  const std::optional<std::string>& validation_error() const { return validation_error_; }

 private:
  const json::value* find(const char* key, bool needed) {
    const auto* v = object_.if_contains(key);
    if (!v && needed)
      refuse(fmt::format("{} is missing", key));
    return v;
  }
  void refuse(std::string what) {
    if (!validation_error_)
      validation_error_ = std::move(what);
  }

  const json::object& object_;
  std::optional<std::string> validation_error_;
};

} // namespace

result<actors::elasticity> read_elasticity(const std::string& text,
                                           elasticity_config::variant which) {
  json::error_code bad;
  const auto all = json::parse(text, bad);
  if (bad)
    return failure(errc::invalid, "it is not JSON: " + bad.message());
  const auto* root = all.if_object();
  const auto* found = root ? root->if_contains("elasticity") : nullptr;
  const auto* object = found ? found->if_object() : nullptr;
  if (!object)
    return failure(errc::invalid, "it has no \"elasticity\" section");
  elasticity_config c;
  c.which = which;
  bool enabled = false;
  section s(*object);
  s.truth("enabled", enabled);
  s.number("max_train_batch_size", c.max_train_batch_size, true);
  s.numbers("micro_batch_sizes", c.micro_batch_sizes);
  s.number("min_gpus", c.min_gpus);
  s.number("max_gpus", c.max_gpus);
  s.number("num_gpus_per_node", c.num_gpus_per_node);
  s.number("model_parallel_size", c.model_parallel_size);
  s.truth("prefer_larger_batch", c.prefer_larger_batch);
  s.version(c.version);
  if (s.validation_error())
    return failure(errc::invalid, "elasticity: " + *s.validation_error());
  if (!enabled)
    return failure(errc::invalid, "elasticity is not enabled");
  return actors::elasticity::make(std::move(c));
}

result<actors::elasticity> load_elasticity(const std::string& path,
                                           elasticity_config::variant which) {
  const auto text = os::read_at_most(path, config_bytes_max);
  if (!text)
    return failure(errc::invalid,
                   fmt::format("--elasticity-config {}: {}", path, std::strerror(text.error())));
  if (text->size() > config_bytes_max)
    return failure(errc::invalid, fmt::format("--elasticity-config {}: more than {} bytes", path,
                                              config_bytes_max));
  auto read = read_elasticity(*text, which);
  if (!read)
    read.error().what = fmt::format("--elasticity-config {}: {}", path, read.error().what);
  return read;
}

} // namespace troupe::launch
