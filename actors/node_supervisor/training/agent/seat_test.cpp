#include "actors/node_supervisor/training/agent/seat.hpp"

#include "tests/actors/agent_story.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

TEST_SUITE("seat") {
  TEST_CASE("a master before revision 1 sends the whole world, in which the node finds its seat") {
    agent_story s("b");
    messages::author master("master");
    s.core.prepare(s.now, master.write<messages::Prepare>(generation{1}, [](auto b) {
      b.setWorld(proposed(1, {"a", "b", "c"}).read()->getWorld());
    }));
    CHECK(s.starts(1) == lines("start 0: g1 rank 2 of 6, node 1 of 3, store a.lan:29400",
                               "start 1: g1 rank 3 of 6, node 1 of 3, store a.lan:29400"));
  }

  TEST_CASE("an order without a seat for this node starts nothing, and changes nothing") {
    agent_story s("b");
    s.prepares(1, {"a", "b"});
    CHECK(text(s.core.prepare(s.now, prepare(2, {"a", "c"}, "c"))) == "");
    CHECK(s.core.current() == generation{1});
  }

  TEST_CASE("its workers are counted among those of their role, or among all by older masters") {
    for (const std::uint32_t of_role : {5u, 0u}) {
      agent_core core({"a", 2, 30s}, messages::author("a/agent"));
      messages::author master("master");
      core.prepare(dawn, master.write<messages::Prepare>(generation{1}, [of_role](auto b) {
        auto seat = b.initSeat();
        seat.setWorldSize(9);
        auto me = seat.initMember();
        me.setNode("a");
        me.setFirstRank(4);
        me.setFirstRoleRank(3);
        me.setRoleWorldSize(of_role);
      }));
      core.store_placed(dawn, generation{1}, 4000);
      std::string seen;
      for (const auto& e :
           core.start(dawn, master.write<messages::Start>(generation{1}, [](auto) {})))
        if (const auto* begun = std::get_if<agent_core::start_generation>(&e))
          for (const auto& slot : begun->slots)
            seen += fmt::format("{}/{} ", slot.place.role_rank, slot.place.role_world_size);
      CHECK(seen == (of_role ? "3/5 4/5 " : "4/9 5/9 "));
    }
  }
}
