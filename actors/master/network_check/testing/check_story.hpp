#pragma once

#include "actors/master/network_check/check_run_core.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace troupe::actors::testing {

using namespace messages;

/// A check of nodes n0, n1, …, which answer as the story says.
struct story {
  explicit story(network_check_options o = {})
      : core(author("master/network_check"), std::move(o), 100) {}

  static constexpr std::uint32_t witness = 99;
  static std::string name(std::uint32_t n) {
    return n == witness ? std::string("troupe-master") : fmt::format("n{}", n);
  }

  /// Of "0: n0 n1 | 1: n2 n3": groups and nodes.
  static std::vector<std::pair<std::uint32_t, std::uint32_t>> asked_in(const std::string& text) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    std::uint32_t g = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == ':')
        g = static_cast<std::uint32_t>(text[i - 1] - '0');
      else if (text[i] == 'n')
        all.emplace_back(g, static_cast<std::uint32_t>(text[i + 1] - '0'));
    return all;
  }

  /// n0 and n1 work by themselves, fail together twice, and then the witness is asked.
  void two_fail() {
    begins(2);
    probed(0);
    CHECK(probed(1) == "0: n0 n1");
    group(0, 0, 0, "cut");
    CHECK(group(1, 0, 0, "cut") == "0: n0 n1");
    group(0, 0, 0, "cut");
    CHECK(group(1, 0, 0, "cut") == "0: n0 + witness");
  }

  std::string begins(std::uint32_t nodes, bool alone = false) {
    return tell(core.wanted(now, local<CheckWanted>("planner", [&](CheckWanted::Builder b) {
                              b.setAlone(alone);
                              auto all = b.initNodes(nodes);
                              for (std::uint32_t n = 0; n < nodes; ++n) {
                                all[n].setNode(name(n));
                                all[n].setAddress(fmt::format("10.0.0.{}", n));
                                all[n].setBulkPort(4242);
                                all[n].setTrained(n == 0);
                              }
                            })));
  }

  std::string probed(std::uint32_t n, double seconds = 0.1, const std::string& failed = {}) {
    return tell(core.node_probed(now, local<NodeProbed>("prober", [&](NodeProbed::Builder b) {
                                   b.setNode(name(n));
                                   b.setCheck(check);
                                   b.setSeconds(seconds);
                                   b.setFailed(failed);
                                   b.setCollectives(libraries.count(n) != 0 ? libraries.at(n)
                                                                            : std::string());
                                   b.setRanks(ranks);
                                 })));
  }

  std::string group(std::uint32_t n, std::uint32_t g, double seconds = 0.1,
                    const std::string& failed = {}) {
    return tell(core.group_probed(now, local<GroupProbed>("prober", [&](GroupProbed::Builder b) {
                                    b.setNode(name(n));
                                    b.setCheck(check);
                                    b.setRound(round);
                                    b.setGroup(g);
                                    b.setSeconds(seconds);
                                    b.setFailed(failed);
                                    b.setLatencyUs(20);
                                    auto sizes = b.initSizes(static_cast<unsigned>(asked_sizes));
                                    for (unsigned i = 0; i < sizes.size(); ++i) {
                                      sizes[i].setAllReduceUs(1'000 * (i + 1) + n);
                                      sizes[i].setAllGatherUs(500 * (i + 1));
                                    }
                                  })));
  }

  /// Of groups as tell() has them: "0: n0 n1 | 1: n2 n3".
  std::string all_pass(const std::string& groups) {
    std::string said;
    std::uint32_t g = 0;
    for (std::size_t i = 1; i < groups.size(); ++i)
      if (groups[i] == ':')
        g = static_cast<std::uint32_t>(groups[i - 1] - '0');
      else if (groups[i - 1] == 'n')
        said = group(static_cast<std::uint32_t>(groups[i] - '0'), g);
    return said;
  }

  std::string lost(std::uint32_t n) {
    return tell(core.node_lost(now, local<NodeLost>("membership", [&](NodeLost::Builder b) {
                                 b.setNode(name(n));
                                 b.setReason("its link was silent");
                               })));
  }

  std::string passes(duration d) {
    now += d;
    return tell(core.tick(now));
  }

  /// "alone n0 n1", "0: n0 n1 | 1: n2 n3", "good n0 n1; leave n2; undecided"
  std::string tell(const check_run_core::effects& effects) {
    std::string alone, groups, rest;
    notes.clear();
    devices.clear();
    std::uint32_t last = 0;
    for (const auto& e : effects) {
      if (const auto* w = std::get_if<check_run_core::ask_witness>(&e)) {
        auto m = w->message.as<GroupProbeWanted>().read();
        CHECK(m->getMembers()[m->getPlace()].getNode() == name(witness));
        CHECK(m->getMembers()[m->getPlace()].getAddress() == "");
        CHECK(m->getMembers()[m->getPlace()].getPort() == 777);
        groups += " + witness";
      } else if (const auto* s = std::get_if<check_run_core::say>(&e)) {
        if (s->message.is<NodeProbeWanted>()) {
          auto m = s->message.as<NodeProbeWanted>().read();
          check = m->getCheck();
          alone += (alone.empty() ? "alone " : " ") + s->to + (m->getTrained() ? "*" : "");
          boxes = m->getBox().getPairs().size();
        } else {
          auto m = s->message.as<GroupProbeWanted>().read();
          round = m->getRound();
          asked_sizes = m->getSizes().size();
          largest = m->getSizes()[asked_sizes - 1];
          repeats = m->getRepeats();
          paced = m->getPaced();
          devices +=
              fmt::format("{}:{}+{}/{} ", s->to, m->getFirstRank(), m->getDevices(), m->getRanks());
          const auto receiver = m->getCount() > 0 ? 1 : m->getPlace();
          CHECK(m->getMembers()[receiver].getNode() == s->to);
          CHECK(m->getMembers()[receiver].getPort() == 4242);
          told = {m->getMembers().begin()->getNode().cStr(), m->getCount()};
          if (groups.empty() || m->getGroup() != last)
            groups += fmt::format("{}{}:", groups.empty() ? "" : " | ", m->getGroup());
          last = m->getGroup();
          groups += " " + s->to;
        }
      } else if (const auto* a = std::get_if<check_run_core::answer>(&e)) {
        auto m = a->message.read();
        rest += "good";
        for (const auto n : m->getGood())
          rest += fmt::format(" {}", n.cStr());
        rest += "; leave";
        for (const auto f : m->getLeave())
          rest += fmt::format(" {}", f.getNodes()[0].cStr());
        rest += "; undecided";
        for (const auto n : m->getUndecided())
          rest += fmt::format(" {}", n.cStr());
      } else if (const auto* m = std::get_if<check_run_core::mark>(&e)) {
        rest += fmt::format("mark {} at {}; ", m->node, m->address);
      } else {
        const auto& event = std::get<check_run_core::note>(e).event;
        if (event.severity >= log::level::notice)
          notes += event.text + "\n";
      }
    }
    return alone + groups + rest;
  }

  bool noted(const std::string& what) const { return notes.find(what) != std::string::npos; }

  check_run_core core;
  instant now{1s};
  std::uint64_t check = 0;
  std::uint32_t round = 0;
  std::size_t asked_sizes = 0, boxes = 0;
  std::uint64_t largest = 0;
  std::uint32_t repeats = 0;
  bool paced = false;
  /// The first member that the last one asked was told of, and how many there are if not all are.
  std::pair<std::string, std::uint32_t> told;
  /// Which library nodes say that they have, and how many devices for it; what groups are asked to
  /// use of them.
  std::map<std::uint32_t, std::string> libraries;
  std::uint32_t ranks = 8;
  std::string devices;
  std::string notes;
};

} // namespace troupe::actors::testing
