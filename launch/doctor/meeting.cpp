#include "launch/doctor/meeting.hpp"

#include <fmt/format.h>

namespace troupe::launch::doctor {

finding judge(const host_facts& seen) {
  finding f{"host name"};
  f.remedy = fmt::format("add a line to /etc/hosts: ADDRESS {}, with the address that other nodes "
                         "reach",
                         seen.name);
  if (seen.nodes > 1)
    f.costs = "gloo looks its own address up by this name, and takes loopback if that leads "
              "nowhere else; other nodes do not reach that (GLOO_SOCKET_IFNAME=eth0 names an "
              "interface instead)";
  if (!seen.unresolved.empty()) {
    f.how = seen.nodes > 1 ? grade::warning : grade::note;
    f.found = fmt::format("'{}' is not resolved: {}", seen.name, seen.unresolved);
    return f;
  }
  if (!seen.ours) {
    f.how = seen.nodes > 1 ? grade::warning : grade::note;
    f.found = fmt::format("'{}' leads to an address that this machine has not", seen.name);
    return f;
  }
  if (seen.loopback_only && seen.nodes > 1) {
    f.how = grade::warning;
    f.found = fmt::format("'{}' leads to loopback addresses only", seen.name);
    return f;
  }
  f.found = fmt::format("'{}' leads to this machine", seen.name);
  f.costs = f.remedy = {};
  return f;
}

namespace {

using hosting = placement::hosting;

std::string said(const endpoint_facts& seen) {
  return ports::to_string(seen.where.master) +
         (seen.from.empty() ? "" : fmt::format(" ({})", seen.from));
}

std::string by_whom(const endpoint_facts& seen) {
  return seen.owner ? fmt::format("{} (pid {}) listens there", seen.owner->name, seen.owner->pid)
                    : std::string("a program that this user may not look at listens there");
}

/// Something listens, here or elsewhere: is it a master that takes this node's proof?
finding judge_listener(const endpoint_facts& seen) {
  finding f{"port"};
  if (seen.no_master && seen.no_master->empty()) {
    f.found = fmt::format("the master of job '{}' answers at {}; this launcher joins it, or is "
                          "refused if it is of another job",
                          seen.job, ports::to_string(seen.where.master));
    return f;
  }
  f.how = seen.ours ? grade::error : grade::warning;
  f.found = fmt::format("{}: {}",
                        seen.ours ? by_whom(seen)
                                  : fmt::format("something listens at {}, and it is no master that "
                                                "takes this node",
                                                ports::to_string(seen.where.master)),
                        seen.no_master.value_or("it was not asked in time"));
  f.costs = "no node of the job reaches a master there";
  f.remedy = "another port in --rdzv-endpoint, on all nodes; ss -ltnp names the program";
  return f;
}

finding judge_distant(const endpoint_facts& seen) {
  if (seen.cannot_connect->empty())
    return judge_listener(seen);
  finding f{"port", grade::note};
  f.found =
      fmt::format("no master at {}: {}", ports::to_string(seen.where.master), *seen.cannot_connect);
  f.costs = fmt::format("the launcher dials again for {} and ends", in_words(seen.patience));
  f.remedy = "start the launcher on that machine; if it runs there, look at the address and at "
             "firewalls";
  // "Connection refused" comes from the machine itself; silence may come from anything.
  if (seen.cannot_connect->find("refused") == std::string::npos)
    f.how = grade::warning;
  return f;
}

finding judge_own(const endpoint_facts& seen) {
  if (seen.cannot_connect && seen.cannot_connect->empty()) {
    auto f = judge_listener(seen);
    // A launcher that has to run the master itself cannot join another one's.
    if (f.how == grade::ok && seen.where.host == hosting::here) {
      f.how = grade::error;
      f.found = fmt::format("{}: the master of job '{}'", by_whom(seen), seen.job);
      f.costs = "this launcher is to run the master there, and ends";
      f.remedy = "end that job, or take another port";
    }
    return f;
  }
  finding f{"port"};
  if (!seen.cannot_listen.empty()) {
    f.how = grade::error;
    f.found = seen.cannot_listen + (seen.owner ? "; " + by_whom(seen) : "");
    f.costs = "this launcher is to run the master there, and ends";
    f.remedy = "an address of this machine, and another port: --rdzv-endpoint HOST:PORT";
    return f;
  }
  const auto port = seen.where.master.port;
  f.found = fmt::format("{} is free", port);
  if (port >= seen.outgoing_from && port <= seen.outgoing_to && !seen.outgoing_avoids_it) {
    f.how = grade::note;
    f.found += fmt::format(", and one of those ({} to {}) that the kernel gives to outgoing "
                           "connections",
                           seen.outgoing_from, seen.outgoing_to);
    f.costs = "now and then a connection has it when the job starts";
    f.remedy = fmt::format("a lower port, or sysctl net.ipv4.ip_local_reserved_ports={}", port);
  }
  return f;
}

finding judge_store_port(const endpoint_facts& seen) {
  finding f{"port"};
  if (seen.cannot_listen.empty()) {
    f.found = fmt::format("{} is free for the workers' store", seen.where.store_port);
    return f;
  }
  f.how = grade::error;
  f.found = seen.cannot_listen + (seen.owner ? "; " + by_whom(seen) : "");
  f.costs = "the workers' store is to be there, and the job ends";
  f.remedy = "another --master-port, or none: then a free one is taken";
  return f;
}

} // namespace

findings judge(const endpoint_facts& seen) {
  finding f{"endpoint"};
  if (seen.where.master.port == 0) {
    f.found = "the only node needs none: its master takes a free port on loopback";
    if (seen.where.store_port == 0)
      return {f};
    return {f, judge_store_port(seen)};
  }
  if (!seen.unresolved.empty()) {
    f.how = grade::error;
    f.found = fmt::format("the name in {} is not resolved: {}", said(seen), seen.unresolved);
    f.costs = fmt::format("the launcher asks again for {} (read_timeout of --rdzv-conf) and ends",
                          in_words(seen.patience));
    f.remedy = fmt::format("correct the name (getent hosts {} asks as the launcher does), or give "
                           "an address",
                           seen.where.master.host);
    return {f};
  }
  const bool may_host = seen.where.host != hosting::elsewhere;
  f.found = fmt::format("{}: {}", said(seen),
                        seen.ours ? (may_host ? "this machine, whose launcher runs the master"
                                              : "this machine, where another launcher runs the "
                                                "master")
                                  : "another machine");
  if (seen.loopback && seen.nodes > 1) {
    f.how = grade::warning;
    f.costs = "only launchers of this machine reach it";
    f.remedy = "the name or address of this machine, the same on all nodes";
  }
  if (seen.where.host == hosting::here && !seen.ours)
    f.found = fmt::format("{}: no address of this machine, and this launcher is to run the master",
                          said(seen));
  if (may_host && (seen.ours || seen.where.host == hosting::here))
    return {f, judge_own(seen)};
  if (seen.cannot_connect)
    return {f, judge_distant(seen)};
  return {f};
}

} // namespace troupe::launch::doctor
