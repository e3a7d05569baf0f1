#include "messages/conversations.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::messages;

namespace {

any_msg stop() {
  return author("test").write<Stop>(generation{1}, [](auto) {}).any();
}

} // namespace

TEST_CASE("a message reaches the receiver of its kind, and the common one if it has none") {
  std::string heard;
  const auto receive = receivers{[&heard](const auto&) { heard = "any directive"; },
                                 [&heard](const msg<Prepare>&) { heard = "Prepare"; }};
  CHECK(route(stop(), directives{}, receive));
  CHECK(heard == "any directive");
  const auto prepare = author("test").write<Prepare>(generation{1}, [](auto) {}).any();
  CHECK(route(prepare, directives{}, receive));
  CHECK(heard == "Prepare");
}

TEST_CASE("a kind of another conversation reaches no receiver, and the caller is told") {
  bool reached = false;
  CHECK_FALSE(route(stop(), node_reports{}, [&reached](const auto&) { reached = true; }));
  CHECK_FALSE(reached);
}
