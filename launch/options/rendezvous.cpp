#include "launch/options/rendezvous.hpp"

#include "launch/options/nearest.hpp"
#include "launch/options/scheduler_environment.hpp"
#include "launch/options/values.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include <arpa/inet.h>

namespace troupe::launch {

result<std::pair<std::uint32_t, std::uint32_t>> parse_nodes(const std::string& text) {
  const auto fields = split(text, ':');
  const auto low = python_int(fields.front()), high = python_int(fields.back());
  if (fields.size() > 2 || !low || !high)
    return failure(errc::invalid, fmt::format("--nnodes: '{}' is neither N nor MIN:MAX", text));
  if (*low <= 0 || *low > *high)
    return failure(errc::invalid,
                   fmt::format("--nnodes: '{}' does not satisfy 0 < MIN <= MAX", text));
  if (*high > limits::nodes_max)
    return failure(errc::invalid,
                   fmt::format("--nnodes: {} nodes are more than the {} there can be", *high,
                               limits::nodes_max));
  return std::pair{static_cast<std::uint32_t>(*low), static_cast<std::uint32_t>(*high)};
}

namespace {

bool is_name(const std::string& host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '-';
  });
}

/// "::1", or with the interface it is to be reached by: "fe80::1%eth0".
bool is_v6(const std::string& host) {
  const auto percent = host.find('%');
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.substr(0, percent).c_str(), &address) == 1 &&
         (percent == std::string::npos || is_name(host.substr(percent + 1)));
}

std::optional<std::uint16_t> port_of(const std::string& text) {
  const auto number = text.size() <= 5 ? digits(text) : std::nullopt;
  if (!number || *number > 65'535)
    return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

} // namespace

result<std::string> parse_host(const std::string& text) {
  auto host = text;
  if (host.size() > 1 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (!is_name(host) && !is_v6(host))
    return failure(errc::invalid,
                   fmt::format("'{}' is neither a host's name nor an address", text));
  return host;
}

result<ports::endpoint> parse_endpoint(const std::string& text, std::uint16_t default_port) {
  const auto wrong = [&] {
    return failure(errc::invalid,
                   fmt::format("'{}' is not an endpoint: host, host:port or [v6]:port", text));
  };
  const auto word = stripped(text);
  const auto colon = word.rfind(':');
  const bool with_port = colon != std::string::npos && !(word.front() == '[' && word.back() == ']');
  const auto name = with_port ? word.substr(0, colon) : word;
  // Without brackets the last group of an IPv6 address would be its port.
  if (name.find(':') != std::string::npos && name.front() != '[')
    return wrong();
  const auto host = parse_host(name);
  if (!host)
    return wrong();
  if (!with_port)
    return ports::endpoint{*host, default_port};
  const auto port = port_of(word.substr(colon + 1));
  if (!port)
    return failure(errc::invalid,
                   fmt::format("'{}': the port is not a number from 0 to 65535", text));
  return ports::endpoint{*host, *port};
}

namespace {

error wrong_setting(const std::string& key, const std::string& value, const char* what) {
  return {errc::invalid, fmt::format("--rdzv-conf: '{}={}' is not {}", key, value, what)};
}

result<duration> seconds_of(const std::string& key, const std::string& value, bool zero_too) {
  constexpr double most = 1e6;
  const auto seconds = python_float(value);
  if (!seconds || !(*seconds >= 0) || *seconds > most || (*seconds == 0 && !zero_too))
    return tl::make_unexpected(wrong_setting(key, value, "a number of seconds"));
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(*seconds));
}

result<bool> truth_of(const std::string& key, const std::string& value) {
  auto word = value;
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (const auto* yes : {"1", "true", "t", "yes", "y"})
    if (word == yes)
      return true;
  for (const auto* no : {"0", "false", "f", "no", "n"})
    if (word == no)
      return false;
  return tl::make_unexpected(wrong_setting(key, value, "yes or no"));
}

/// Without a pair of quotes around all of it: what starts a program without a shell, as torchrun's
/// own tests do, sometimes leaves the shell's quotes in.
std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '\'' || text.front() == '"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// The pairs, the last of several values for a key wins.
result<std::map<std::string, std::string>> pairs_of(const std::string& text) {
  std::map<std::string, std::string> pairs;
  const auto all = stripped(unquoted(stripped(text)));
  if (all.empty())
    return pairs;
  for (const auto& pair : split(all, ',')) {
    const auto equals = pair.find('=');
    const auto key = stripped(pair.substr(0, equals));
    const auto value = equals == std::string::npos ? "" : stripped(pair.substr(equals + 1));
    if (key.empty() || value.empty())
      return failure(errc::invalid,
                     fmt::format("--rdzv-conf: '{}' is not of the form key=value", pair));
    pairs[key] = value;
  }
  return pairs;
}

/// torchrun ignores what it does not know, and a setting with a letter missing with it.
std::optional<error> unknown_setting(const std::string& key) {
  static const std::vector<std::string> known{
      "join_timeout", "last_call_timeout", "read_timeout", "keep_alive_interval",
      "keep_alive_max_attempt", "is_host", "close_timeout", "heartbeat_timeout", "store_type",
      // of torchrun's own backends and of DLRover, and without meaning here
      "lastcall_timeout", "pend_timeout", "timeout", "rank", "use_libuv", "protocol", "etcd_prefix",
      "cacert", "ca_cert", "cert", "key", "ssl_cert", "ssl_cert_key"};
  if (std::find(known.begin(), known.end(), key) != known.end())
    return std::nullopt;
  const auto meant = nearest(key, known);
  return error{errc::invalid,
               fmt::format("--rdzv-conf: '{}' is no setting{}", key,
                           meant.empty() ? " (see --help)" : "; did you mean " + meant + "?")};
}

std::optional<error> take_setting(rendezvous_settings& out, const std::string& key,
                                  const std::string& value) {
  struct timeout {
    const char* key;
    std::optional<duration>* target;
    bool zero_too;
  };
  std::optional<duration> unused;
  for (const auto& t :
       {timeout{"join_timeout", &out.join_timeout, false},
        timeout{"last_call_timeout", &out.last_call_timeout, true},
        timeout{"read_timeout", &out.read_timeout, false}, timeout{"close_timeout", &unused, false},
        timeout{"heartbeat_timeout", &unused, false}}) {
    if (key != t.key)
      continue;
    const auto seconds = seconds_of(key, value, t.zero_too);
    if (!seconds)
      return seconds.error();
    *t.target = *seconds;
  }
  if (key == "is_host") {
    const auto truth = truth_of(key, value);
    if (!truth)
      return truth.error();
    out.is_host = *truth;
  }
  if (key == "store_type" && value != "tcp" && value != "TCP")
    return wrong_setting(key, value, "tcp, and the master speaks nothing else");
  for (const auto* own :
       {"backend", "endpoint", "run_id", "min_nodes", "max_nodes", "local_addr", "node_unit"})
    if (key == own)
      return error{errc::invalid,
                   fmt::format("--rdzv-conf: '{}' has an option of its own (see --help)", key)};
  return unknown_setting(key);
}

/// Nothing if neither is given; torchrun's default for the one that is not.
result<std::optional<duration>> lease_of(const std::map<std::string, std::string>& pairs) {
  std::int64_t seconds = 1;
  bool given = false;
  for (const auto& [key, otherwise] :
       {std::pair{"keep_alive_interval", 5}, std::pair{"keep_alive_max_attempt", 3}}) {
    const auto found = pairs.find(key);
    const auto number =
        found == pairs.end() ? std::optional<std::int64_t>(otherwise) : python_int(found->second);
    if (!number)
      return tl::make_unexpected(wrong_setting(key, found->second, "a whole number"));
    constexpr std::int64_t most = 10'000; // its square is still a duration
    seconds *= std::clamp<std::int64_t>(*number, 0, most);
    given = given || found != pairs.end();
  }
  if (!given)
    return std::optional<duration>{};
  if (std::chrono::seconds(seconds) < limits::lease_min ||
      std::chrono::seconds(seconds) > limits::lease_max)
    return failure(errc::invalid,
                   fmt::format("--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is "
                               "{} s; {} to {} are possible",
                               seconds, troupe::in_words(limits::lease_min),
                               troupe::in_words(limits::lease_max)));
  return std::optional<duration>(std::chrono::seconds(seconds));
}

} // namespace

result<rendezvous_settings> parse_rendezvous_settings(const std::string& text) {
  const auto pairs = pairs_of(text);
  if (!pairs)
    return tl::make_unexpected(pairs.error());
  rendezvous_settings out;
  for (const auto& [key, value] : *pairs)
    if (auto wrong = take_setting(out, key, value))
      return tl::make_unexpected(*wrong);
  const auto lease = lease_of(*pairs);
  if (!lease)
    return tl::make_unexpected(lease.error());
  out.lease = *lease;
  return out;
}

namespace {

std::optional<error> backend_validation_error(const std::string& backend) {
  if (backend == "static" || backend == "c10d")
    return std::nullopt;
  if (backend == "etcd" || backend == "etcd-v2")
    return error{errc::invalid,
                 fmt::format("--rdzv-backend {}: there is no etcd here, the master does its work; "
                             "use c10d with --rdzv-endpoint",
                             backend)};
  return error{errc::invalid,
               fmt::format("--rdzv-backend: '{}' is neither static nor c10d", backend)};
}

/// Only the static backend reads it: with c10d torchrun takes any word.
std::optional<error> store_timeout_validation_error(const std::string& conf) {
  const auto pairs = pairs_of(conf);
  const auto found = pairs->find("timeout");
  return found == pairs->end() || python_int(found->second)
             ? std::nullopt
             : std::optional(wrong_setting(found->first, found->second, "a whole number"));
}

result<ports::endpoint> first_node(const rendezvous_arguments& w) {
  const auto host = parse_host(stripped(w.master_addr.value_or("127.0.0.1")));
  if (!host)
    return failure(errc::invalid, "--master-addr: " + host.error().what);
  const auto port = w.master_port.value_or(static_port);
  if (port < 0 || port > 65'535)
    return failure(errc::invalid,
                   fmt::format("--master-port: {} is not a number from 0 to 65535", port));
  return ports::endpoint{*host, static_cast<std::uint16_t>(port)};
}

result<ports::endpoint> given_endpoint(const rendezvous_arguments& w, rendezvous_backend backend) {
  if (backend == rendezvous_backend::dynamic && stripped(w.endpoint).empty())
    return ports::endpoint{"localhost", rendezvous_port};
  auto where = parse_endpoint(w.endpoint, rendezvous_port);
  if (!where)
    where.error().what = "--rdzv-endpoint: " + where.error().what;
  return where;
}

/// What an option says goes before what the scheduler environment says.
bool is_said(const rendezvous_arguments& w) {
  return w.master_addr || !stripped(w.endpoint).empty();
}

result<void> meet_as_told(rendezvous_options& r, const rendezvous_arguments& w) {
  r.at_first_node = r.backend == rendezvous_backend::fixed && w.endpoint.empty();
  r.endpoint_from = !stripped(w.endpoint).empty() ? "--rdzv-endpoint"
                    : w.master_addr               ? "--master-addr"
                                                  : "nothing says another";
  r.endpoint_is_said = is_said(w);
  const auto where = r.at_first_node ? first_node(w) : given_endpoint(w, r.backend);
  if (!where)
    return tl::make_unexpected(where.error());
  r.endpoint = *where;
  return {};
}

result<void> meet_as_found(rendezvous_options& r, const rendezvous_arguments& w,
                           const scheduler_environment& around) {
  auto with_port = w;
  with_port.master_addr = around.master->host;
  if (!w.master_port)
    with_port.master_port = around.master->port;
  const auto where = first_node(with_port);
  if (!where)
    return tl::make_unexpected(where.error());
  r.endpoint = *where;
  r.endpoint_from = around.from;
  r.endpoint_is_said = true;
  r.found_by_scheduler = !around.named;
  r.master_is_named = around.named;
  r.at_first_node = r.backend == rendezvous_backend::fixed && !around.named;
  return {};
}

result<std::optional<std::uint32_t>>
node_rank_of(const rendezvous_arguments& w, std::uint32_t nodes_max,
             const std::optional<scheduler_environment>& around) {
  const bool found = !w.node_rank && around && around->node_rank;
  const auto rank = found ? std::optional<std::int64_t>(*around->node_rank) : w.node_rank;
  if (!rank)
    return std::optional<std::uint32_t>{};
  if (*rank < 0 || *rank >= nodes_max)
    return failure(errc::invalid,
                   fmt::format("--node-rank {} does not exist among {} node(s) (--nnodes){}", *rank,
                               nodes_max, found ? fmt::format("; from {}", around->from) : ""));
  return std::optional(static_cast<std::uint32_t>(*rank));
}

} // namespace

result<rendezvous_options> derive_rendezvous(const rendezvous_arguments& w, std::uint32_t nodes_max,
                                             const result<scheduler_environment>& around) {
  rendezvous_options r;
  const auto settings = parse_rendezvous_settings(w.conf);
  if (!settings)
    return tl::make_unexpected(settings.error());
  r.settings = *settings;
  if (w.standalone && nodes_max > 1)
    return failure(errc::invalid, "--standalone is for one node; leave out --nnodes");
  const bool no_address = w.backend == "static" && w.endpoint.empty() && !w.master_port;
  // A job of one node that a worker starts is a job of its own; one of several needs a place to
  // meet, and the outer job's master would not let it in under another id.
  const bool others = nodes_max == 1 && around && around->in_worker;
  const bool named = around && around->named && !others && !is_said(w);
  if (w.standalone || (no_address && nodes_max == 1 && !named)) {
    r.backend = rendezvous_backend::dynamic;
    r.standalone = true;
    return r;
  }
  if (auto wrong = backend_validation_error(w.backend))
    return tl::make_unexpected(*wrong);
  r.backend = w.backend == "static" ? rendezvous_backend::fixed : rendezvous_backend::dynamic;
  if (r.backend == rendezvous_backend::fixed)
    if (auto wrong = store_timeout_validation_error(w.conf))
      return tl::make_unexpected(*wrong);
  std::optional<scheduler_environment> found;
  if (!is_said(w) && (nodes_max > 1 || named)) {
    if (!around)
      return tl::make_unexpected(around.error());
    if (around->master)
      found = *around;
  }
  if (auto met = found ? meet_as_found(r, w, *found) : meet_as_told(r, w); !met)
    return tl::make_unexpected(met.error());
  if (r.backend == rendezvous_backend::fixed) {
    const auto rank = node_rank_of(w, nodes_max, found);
    if (!rank)
      return tl::make_unexpected(rank.error());
    r.node_rank = *rank;
    // A pod more than there are nodes is a standby, like any other node without a rank.
    const auto index = around ? rank_among_siblings(*around, r.endpoint.host) : std::nullopt;
    if (!r.node_rank && index && *index < nodes_max)
      r.node_rank = index;
    r.node_rank_is_found = r.node_rank && !w.node_rank;
  }
  return r;
}

} // namespace troupe::launch
