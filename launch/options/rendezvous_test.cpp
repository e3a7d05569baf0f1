#include "launch/options/rendezvous.hpp"

#include "launch/options/scheduler_environment.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

/// No variable says anything about the job.
const result<scheduler_environment> nothing = scheduler_environment{};

} // namespace

TEST_CASE("a node range needs 0 < MIN <= MAX") {
  CHECK(parse_nodes("2:20") == std::pair{2u, 20u});
  CHECK(parse_nodes("3") == std::pair{3u, 3u});
  CHECK(parse_nodes(" 1:+2 ") == std::pair{1u, 2u});
  for (const auto* wrong :
       {"", "0", "2:1", "2:20:30", "a", "1:", ":1", "-1", "1.5", "99999999999999999999", "20000"})
    CHECK_MESSAGE(!parse_nodes(wrong), wrong);
}

TEST_CASE("an endpoint is a host, host:port or [v6]:port") {
  CHECK(*parse_endpoint("h", 7) == ports::endpoint{"h", 7});
  CHECK(*parse_endpoint(" h_1.x-y:0\n", 7) == ports::endpoint{"h_1.x-y", 0});
  CHECK(*parse_endpoint("[::1]:80", 7) == ports::endpoint{"::1", 80});
  CHECK(*parse_endpoint("[::1]", 7) == ports::endpoint{"::1", 7});
  CHECK(*parse_endpoint("[fe80::1%eth0]:80", 7) == ports::endpoint{"fe80::1%eth0", 80});
  for (const auto* wrong :
       {"", ":1", "h:", "h:x", "h:65536", "h:000080", "::1", "[::1", "[::1]80", "[::1]:", "[a:b]:1",
        "[::1%]:1", "[::1%a b]:1", "10.0.0.1%eth0:1", "h:-1", "a b:1", "h/x:1", "[]", "["})
    CHECK_MESSAGE(!parse_endpoint(wrong, 7), wrong);
}

TEST_CASE("rendezvous settings take torchrun's keys and no others") {
  const auto s = parse_rendezvous_settings(
      " join_timeout = 5 , etcd_prefix=x, last_call_timeout=0.5, is_host=No, close_timeout=3");
  REQUIRE(s);
  CHECK(*s->join_timeout == 5s);
  CHECK(*s->last_call_timeout == 500ms);
  CHECK_FALSE(s->read_timeout);
  CHECK(s->is_host == false);
  CHECK(parse_rendezvous_settings("join_timeout=1,join_timeout=2")->join_timeout == duration(2s));
  CHECK(parse_rendezvous_settings("'join_timeout=3,timeout=5'")->join_timeout == duration(3s));
  CHECK(parse_rendezvous_settings("")->join_timeout == std::nullopt);
  for (const auto* wrong :
       {"join_timeout", "join_timeout=", "=5", "join_timeout=x", "join_timeout=-1",
        "join_timeout=nan", "join_timeout=0", "a=1,", "is_host=maybe", "store_type=file",
        "keep_alive_interval=x", "keep_alive_max_attempt=1.5", "keep_alive_interval=0",
        "keep_alive_interval=99999999999", "keep_alive_max_attempt=-3", "endpoint=h",
        "close_timeout=x", "unheard=x", "'join_timeout=5"})
    CHECK_MESSAGE(!parse_rendezvous_settings(wrong), wrong);
}

TEST_CASE("torchrun's keep-alive settings are the lease, with its defaults once one is given") {
  CHECK(parse_rendezvous_settings("")->lease == std::nullopt);
  CHECK(parse_rendezvous_settings("keep_alive_interval=2")->lease == duration(6s));
  CHECK(parse_rendezvous_settings("keep_alive_max_attempt=2")->lease == duration(10s));
  CHECK(parse_rendezvous_settings("keep_alive_interval=1,keep_alive_max_attempt=1")->lease ==
        duration(1s));
  CHECK(parse_rendezvous_settings("keep_alive_interval=601,keep_alive_max_attempt=1")
            .error()
            .what.find("is 601 s; 1.0 s to 10 min") != std::string::npos);
}

namespace {

rendezvous_options derived(const rendezvous_arguments& w, std::uint32_t nodes = 1) {
  const auto r = derive_rendezvous(w, nodes, nothing);
  if (!r)
    FAIL(r.error().what);
  return *r;
}

} // namespace

TEST_CASE("the store's timeout is the static backend's own setting") {
  rendezvous_arguments w;
  w.conf = "join_timeout=5,timeout=x";
  w.endpoint = "h:1";
  CHECK_FALSE(derive_rendezvous(w, 1, nothing));
  w.backend = "c10d";
  CHECK(derive_rendezvous(w, 1, nothing));
}

TEST_CASE("a job on one node that names no port has no rendezvous") {
  rendezvous_arguments w;
  CHECK(derived(w).standalone);
  w.master_addr = "head";
  CHECK(derived(w).standalone);
  w.master_port = 5;
  CHECK_FALSE(derived(w).standalone);
  w.standalone = true;
  CHECK(derived(w).standalone);
  CHECK_FALSE(derive_rendezvous(w, 2, nothing));
}

TEST_CASE("static is at the first node unless there is an endpoint, c10d at localhost") {
  rendezvous_arguments w;
  CHECK(derived(w, 2).endpoint == ports::endpoint{"127.0.0.1", 29'500});
  CHECK(derived(w, 2).at_first_node);
  w.master_addr = "::1";
  w.master_port = 80;
  CHECK(derived(w, 2).endpoint == ports::endpoint{"::1", 80});
  w.endpoint = "h";
  CHECK(derived(w, 2).endpoint == ports::endpoint{"h", 29'400});
  CHECK_FALSE(derived(w, 2).at_first_node);
  w.endpoint.clear();
  w.backend = "c10d";
  CHECK(derived(w, 2).endpoint == ports::endpoint{"localhost", 29'400});
  w.master_port = 70'000;
  CHECK(derive_rendezvous(w, 2, nothing));
  w.backend = "static";
  CHECK_FALSE(derive_rendezvous(w, 2, nothing));
  for (const auto* backend : {"etcd", "etcd-v2", "zeus", ""}) {
    w.backend = backend;
    CHECK_MESSAGE(!derive_rendezvous(w, 2, nothing), backend);
  }
}

TEST_CASE("a node rank is for static only, and must exist") {
  rendezvous_arguments w;
  w.node_rank = 1;
  CHECK(derived(w, 2).node_rank == 1u);
  CHECK_FALSE(derive_rendezvous(w, 1 + 0, nothing).value().node_rank);
  w.master_port = 1;
  CHECK_FALSE(derive_rendezvous(w, 1, nothing));
  w.node_rank = -1;
  CHECK_FALSE(derive_rendezvous(w, 2, nothing));
  w.backend = "c10d";
  CHECK_FALSE(derived(w, 2).node_rank);
}
