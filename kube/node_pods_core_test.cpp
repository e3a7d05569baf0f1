#include "kube/node_pods_core.hpp"

#include "kube/job_objects.hpp"
#include "tests/kube/kept_pods.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

#include <functional>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;
using testing::kept_pods;
using testing::make;
using testing::running;
using testing::told;
using testing::with;

using names = std::vector<std::string>;

TEST_CASE("nothing is made before it is known what is there and what is wanted") {
  kept_pods p;
  p.perform(p.core.want(p.now, 2, testing::template_of_tests()));
  CHECK(p.live() == "");
  p.perform(p.core.all_told(p.now));
  p.sync();
  CHECK(p.live() == "0:0 1:1");

  kept_pods q;
  make(q, 0, 4);
  q.sync();
  q.perform(q.core.all_told(q.now));
  CHECK(q.asked.empty()); // not even of a rank that will perhaps not be wanted
  q.perform(q.core.want(q.now, 2, testing::template_of_tests()));
  q.sync();
  CHECK(q.live() == "0:4 1:5");
}

TEST_CASE("more nodes and fewer: the highest ranks go") {
  running p(3);
  p.perform(p.core.want(p.now, 5, testing::template_of_tests()));
  p.sync();
  CHECK(p.live() == "0:0 1:1 2:2 3:3 4:4");
  CHECK(testing::is_deleted(p.pod("2")) == false);
  p.perform(p.core.want(p.now, 1, testing::template_of_tests()));
  p.sync();
  CHECK(p.live() == "0:0");
  CHECK(testing::is_deleted(p.pod("2"))); // with its grace
  CHECK(p.pod("4").is_null());            // it had not begun
  CHECK(p.told.empty());
  p.perform(p.core.want(p.now, 3, testing::template_of_tests()));
  p.sync();
  CHECK(p.live() == "0:0 1:5 2:6");
  p.pass(1h);
  CHECK(p.live() == "0:0 1:5 2:6");
  CHECK(p.slept_well());
}

TEST_CASE("a template that changes is that of later pods") {
  running p(2);
  auto other = testing::template_of_tests();
  other.as_object()["spec"].as_object()["containers"].as_array()[0].as_object()["image"] =
      "train:2";
  p.perform(p.core.want(p.now, 2, other));
  p.end("0", 1);
  p.pass(2s);
  const auto image = [&](const char* id) {
    return text(items(p.pod(id), {"spec", "containers"})[0], {"image"});
  };
  CHECK(image("1") == "train:1");
  CHECK(image("2") == "train:2");
}

TEST_CASE("what follows from an end") {
  struct row {
    const char* name;
    std::function<void(kept_pods&)> ends;
    const char* live; ///< after it
    const char* restarts;
    std::size_t given_up, faulty;
  };
  const row rows[] = {
      {"0", [](kept_pods& p) { p.end("0", 0); }, "1:1", "", 0, 0},
      {"1", [](kept_pods& p) { p.end("0", 1); }, "1:1 0:2", "1", 0, 0},
      {"137", [](kept_pods& p) { p.end("0", 137); }, "1:1 0:2", "1", 0, 0},
      {"143", [](kept_pods& p) { p.end("0", 143); }, "1:1 0:2", "1", 0, 0},
      {"2", [](kept_pods& p) { p.end("0", 2); }, "1:1", "", 1, 0},
      {"201", [](kept_pods& p) { p.end("0", 201); }, "1:1 0:2", "1", 0, 1},
      {"202", [](kept_pods& p) { p.end("0", 202); }, "1:1 0:2", "1", 0, 1},
      {"14", [](kept_pods& p) { p.end("0", 14); }, "1:1 0:2", "1", 0, 1},
      {"memory", [](kept_pods& p) { p.end("0", 137, "OOMKilled"); }, "1:1 0:2", "1", 0, 0},
      {"evicted", [](kept_pods& p) { p.kubelet.evict("train-edljob-worker-0"); }, "1:1 0:2", "0", 0,
       0},
      {"preempted",
       [](kept_pods& p) {
         p.kubelet.disrupt("train-edljob-worker-0");
         p.end("0", 143);
       },
       "1:1 0:2", "0", 0, 0},
      {"deleted",
       [](kept_pods& p) {
         p.server.answer({"DELETE", p.kubelet.path("train-edljob-worker-0"), "", ""});
       },
       "1:1 0:2", "0", 0, 0},
      {"gone", [](kept_pods& p) { p.kubelet.terminated("train-edljob-worker-0"); }, "1:1 0:2", "0",
       0, 0},
  };
  for (const auto& r : rows) {
    CAPTURE(r.name);
    running p(2);
    r.ends(p);
    p.sync();
    CHECK(p.live() == (r.faulty == 0 ? r.live : "1:1")); // a broken machine is marked first
    p.pass(2s);
    CHECK(p.live() == r.live);
    CHECK(annotation(p.pod("2"), restarts_annotation) == r.restarts);
    CHECK(p.given_up.size() == r.given_up);
    CHECK(p.faulty.size() == r.faulty);
    p.pass(1h);
    CHECK(p.live() == r.live);
    CHECK(p.slept_well());
  }
}

TEST_CASE("a machine is told as faulty before its pod is replaced") {
  running p(1);
  p.end("0", 201);
  REQUIRE(p.faulty.size() == 1);
  CHECK(p.faulty[0].machine == "machine-0");
  CHECK(p.faulty[0].address == "10.0.0.0");
  CHECK(p.faulty[0].reason == "it has ended with 201 (hardware)");
  CHECK(p.count("POST") == 1);
}

TEST_CASE("a rank is given up when it has used up its restarts, and the others go on") {
  running p(2);
  for (const char* id : {"0", "2", "3"}) {
    p.end(id, 1);
    p.pass(1min);
    p.run_all();
  }
  CHECK(p.live() == "1:1 0:4");
  CHECK(label(p.pod("4"), relaunch_label) == "3");
  p.end("4", 1);
  p.pass(1h);
  CHECK(p.live() == "1:1");
  REQUIRE(p.given_up.size() == 1);
  CHECK(p.given_up[0].rank == 0);
  CHECK(p.told_names() == names{"pod_replaced", "pod_replaced", "pod_replaced", "node_given_up"});
  CHECK(told(p, "it has ended with 1 (restart 3 of 3, in 2.0 s)"));
  // Wanted anew, it has used up nothing.
  p.perform(p.core.want(p.now, 0, testing::template_of_tests()));
  p.perform(p.core.want(p.now, 1, testing::template_of_tests()));
  p.sync();
  CHECK(p.live() == "0:5");
}

TEST_CASE("a row of failures is spaced, and forgotten once a pod has run well") {
  running p(1, {testing::job_of_tests(), 100});
  std::vector<duration> waits;
  const auto fail = [&](int id) {
    p.end(std::to_string(id), 1);
    const auto from = p.now;
    while (p.live().empty()) {
      REQUIRE(p.core.next_wakeup());
      p.pass(*p.core.next_wakeup() - p.now);
    }
    waits.push_back(p.now - from);
    p.run_all();
  };
  for (int id = 0; id < 9; ++id)
    fail(id);
  CHECK(waits == std::vector<duration>{0s, 1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s});
  CHECK(told(p, "it has ended with 1 (restart 1 of 100)"));
  CHECK(told(p, "it has ended with 1 (restart 6 of 100, in 16.0 s)"));
  p.pass(10min);
  fail(9);
  CHECK(waits.back() == 0s);
}

TEST_CASE("out of memory is given more, to the bound, and not counted until then") {
  running p(1, {testing::job_of_tests(), 1, 30ull << 30});
  const auto memory = [&](const char* id) {
    return memory_of(items(p.pod(id), {"spec", "containers"})[0], "limits").value_or(0) >> 30;
  };
  const auto out_of_memory = [&](const char* id) {
    p.end(id, 137, "OOMKilled");
    p.pass(1min);
    p.run_all();
  };
  CHECK(memory("0") == 16);
  out_of_memory("0");
  CHECK(memory("1") == 24);
  out_of_memory("1");
  CHECK(memory("2") == 30);
  CHECK(told(p, "it was out of memory, and is given more (not counted)"));
  out_of_memory("2");
  CHECK(memory("3") == 30);
  CHECK(told(p, "it was out of memory (restart 1 of 1, in 2.0 s)"));
  out_of_memory("3");
  CHECK(p.given_up.size() == 1);

  // What a pod had, its successor's master sees as well.
  running q(1, {testing::job_of_tests(), 1, 100ull << 30});
  q.end("0", 137, "OOMKilled");
  q.pass(1min);
  kept_pods next({testing::job_of_tests(), 1, 100ull << 30});
  next.server = q.server;
  next.sync();
  next.start(1);
  next.run_all();
  next.end("1", 137, "OOMKilled");
  next.pass(1min);
  CHECK(memory_of(items(next.pod("2"), {"spec", "containers"})[0], "limits") == 36ull << 30);
}

TEST_CASE("a lost node's pod may say how it has ended, and is deleted if it does not") {
  running p(2);
  p.perform(p.core.node_lost(p.now, "10.0.0.1", "no sign of life"));
  p.perform(p.core.node_lost(p.now, "10.9.9.9", "unknown"));
  p.pass(4s);
  CHECK(p.live() == "0:0 1:1");
  p.pass(3s);
  CHECK(p.live() == "0:0 1:2");
  CHECK(p.pod("1").is_null()); // without grace: its kubelet may be gone as well
  CHECK(told(p, "its node is lost: no sign of life (not counted)"));

  running says(1);
  says.perform(says.core.node_lost(says.now, "10.0.0.0", "its link is broken"));
  says.end("0", 201);
  says.pass(1min);
  CHECK(says.live() == "0:1");
  CHECK(says.faulty.size() == 1);
  CHECK(says.count("DELETE train-edljob-worker-0") == 0);
}

TEST_CASE("the pod of a node that was given up counts, however it ends, and when it does not") {
  struct {
    int code;
    bool is_broken;
    std::size_t faulty;
  } rows[] = {{1, false, 0}, {0, false, 0}, {1, true, 1}, {-1, false, 0}, {-1, true, 1}};
  for (const auto& row : rows) {
    INFO(row.code, " ", row.is_broken);
    running p(2);
    p.perform(p.core.node_left(p.now, "10.0.0.1", row.is_broken, "all restarts are used up"));
    p.pass(limits::pod_of_left_node_ends - 5s);
    CHECK(p.live() == "0:0 1:1"); // it has its time
    if (row.code >= 0)
      p.end("1", row.code);
    p.pass(10s);
    CHECK(p.live() == "0:0 1:2");
    p.run_all();
    CHECK(label(p.pod("2"), relaunch_label) == "1");
    CHECK(p.core.restarts_used() == 1);
    CHECK(p.faulty.size() == row.faulty);
    CHECK(told(p, "its node was given up: all restarts are used up (restart 1 of 3"));
    // Whether it goes by itself or is deleted: one pod, one restart.
    p.kubelet.terminated("train-edljob-worker-1");
    p.sync();
    p.pass(1h);
    CHECK(p.core.restarts_used() == 1);
  }
}

TEST_CASE("a rank that was given up is tried again when the job is another size") {
  running p(3);
  for (const char* id : {"0", "3", "4", "5"}) {
    p.end(id, 1);
    p.pass(20s);
    p.run_all();
  }
  CHECK(p.live() == "1:1 2:2");
  CHECK(p.core.given_up() == 1);
  p.perform(p.core.want(p.now, 3, testing::template_of_tests())); // as before
  p.sync();
  CHECK(p.core.given_up() == 1);
  p.perform(p.core.want(p.now, 2, testing::template_of_tests()));
  p.sync();
  CHECK(p.core.given_up() == 0);
  p.pass(1s);
  CHECK(p.live() == "1:1 0:6");
}

namespace {

/// The machines that a pod avoids.
std::string avoided_by(const json::value& pod) {
  std::string all;
  for (const auto& term :
       items(pod, {"spec", "affinity", "nodeAffinity",
                   "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}))
    for (const auto& rule : items(term, {"matchFields"}))
      all += (all.empty() ? "" : " ") + std::string(items(rule, {"values"})[0].as_string());
  return all;
}

} // namespace

TEST_CASE("pods are made elsewhere than on the machine of a node that was given up") {
  for (const bool is_broken : {false, true}) {
    running p(1);
    p.perform(p.core.node_left(p.now, "10.0.0.0", is_broken, "all restarts are used up"));
    p.end("0", 1);
    p.pass(10s);
    CHECK(avoided_by(p.pod("1")) == "machine-0");
    // Where no other machine is, a broken one is no better than none.
    p.kubelet.unschedulable("train-edljob-worker-1", "0/1 nodes are available");
    p.sync();
    p.pass(limits::machine_of_lost_node_avoided + 10s);
    CHECK(avoided_by(p.pod(is_broken ? "1" : "2")) == (is_broken ? "machine-0" : ""));
    CHECK(p.live() == (is_broken ? "0:1" : "0:2"));
  }
}

TEST_CASE("a node may be given up before the server tells the address of its pod") {
  running p(1);
  p.perform(p.core.node_left(p.now, "10.0.0.7", false, "all restarts are used up"));
  p.pass(1s);
  p.kubelet.run("train-edljob-worker-0", "10.0.0.7");
  p.sync();
  p.end("0", 1);
  p.pass(10s);
  CHECK(avoided_by(p.pod("1")) == "machine-0");
}

TEST_CASE("pods are made elsewhere than on a lost node's machine, until the cluster knows of it") {
  running p(3);
  p.perform(p.core.node_lost(p.now, "10.0.0.1", "no sign of life"));
  p.end("2", 1); // another rank's, meanwhile
  p.pass(20s);
  CHECK(p.live() == "0:0 2:3 1:4");
  CHECK(avoided_by(p.pod("3")) == "machine-1");
  CHECK(avoided_by(p.pod("4")) == "machine-1");
  // No other machine has room for one of them, and the one that was lost may be good by now.
  p.kubelet.bind("train-edljob-worker-3", "machine-3");
  p.sync();
  p.pass(90s);
  CHECK(p.live() == "0:0 2:3 1:5");
  CHECK(avoided_by(p.pod("5")) == "");
  CHECK(told(p, "no other machine had room for it, so it may go to any (not counted, in 1.0 s)"));
  p.pass(10min);
  CHECK(p.live() == "0:0 2:3 1:5");
  CHECK(p.slept_well());
}

TEST_CASE("pods are made elsewhere than on a broken machine, for good") {
  running p(1);
  p.end("0", 201);
  p.pass(1h);
  CHECK(p.live() == "0:1");
  CHECK(avoided_by(p.pod("1")) == "machine-0");
}

TEST_CASE("why a pod does not begin is told once, and again when it is late") {
  kept_pods p;
  p.start(2);
  const auto waits = [&](const char* message) {
    p.kubelet.unschedulable("train-edljob-worker-1", message);
    p.sync();
  };
  waits("0/5 nodes are available");
  p.pass(29s);
  CHECK(p.pending.empty());
  p.pass(2s);
  REQUIRE(p.pending.size() == 1);
  CHECK(p.pending[0].rank == 1);
  CHECK(p.pending[0].reason == "Unschedulable: 0/5 nodes are available");
  waits("0/6 nodes are available");
  p.pass(5min);
  CHECK(p.pending.size() == 1);
  p.kubelet.waiting("train-edljob-worker-0", "ErrImagePull", "no such image");
  p.sync();
  REQUIRE(p.pending.size() == 2); // at once
  p.kubelet.waiting("train-edljob-worker-0", "ImagePullBackOff", "back-off");
  p.sync();
  CHECK(p.pending.size() == 2);
  p.pass(10min);
  CHECK(p.pending.size() == 4);
  CHECK(p.told_names() ==
        names{"pod_pending", "pod_pending", "pod_pending_long", "pod_pending_long"});
  CHECK(p.told[3].severity == log::level::warning);
  CHECK(told(p, "the pod of rank 1 has not begun for 15 min: Unschedulable: 0/6 nodes are "
                "available; the job goes on with 0 nodes if --nnodes allows it"));
  p.pass(1h);
  CHECK(p.pending.size() == 4);
  CHECK(p.slept_well());
}

TEST_CASE("many ranks that wait for the same are told by words only so often") {
  kept_pods p;
  p.start(20);
  for (int id = 0; id < 20; ++id)
    p.kubelet.unschedulable("train-edljob-worker-" + std::to_string(id), "none");
  p.sync();
  p.pass(1min);
  CHECK(p.pending.size() == 20);
  CHECK(p.told.size() == limits::pod_waits_told_max);
  CHECK(told(p, "further ranks that wait for this are not told"));
}

TEST_CASE("the pods that have ended stay for their logs, the last of them") {
  running p(1, {testing::job_of_tests(), 100});
  for (int id = 0; id < 20; ++id) {
    p.end(std::to_string(id), 1);
    p.pass(2min);
    p.run_all();
  }
  CHECK(p.live() == "0:20");
  CHECK(p.names().size() == 1 + limits::ended_pods_kept);
  CHECK(p.pod("9").is_null());
  CHECK(!p.pod("10").is_null());
}

TEST_CASE("at the end what does not run is deleted, and what runs ends by itself") {
  running p(2);
  p.perform(p.core.want(p.now, 3, testing::template_of_tests()));
  p.sync();
  CHECK(p.live() == "0:0 1:1 2:2");
  p.perform(p.core.end(p.now));
  p.sync();
  CHECK(p.live() == "0:0 1:1");
  CHECK(!p.core.is_busy());
  p.end("0", 1);
  p.end("1", 1);
  p.pass(1h);
  CHECK(p.live() == "");
  CHECK(!p.pod("0").is_null()); // for its logs
  CHECK(p.told_names() == names{});
}

TEST_CASE("without its ElasticJob what has not ended is deleted") {
  kept_pods p;
  p.start(3);
  p.kubelet.bind("train-edljob-worker-0", "machine-0");
  p.kubelet.run("train-edljob-worker-0", "10.0.0.0");
  p.kubelet.bind("train-edljob-worker-1", "machine-1");
  p.end("1", 0);
  p.perform(p.core.give_up(p.now));
  p.sync();
  CHECK(testing::is_deleted(p.pod("0")));
  CHECK(!p.pod("1").is_null());
  CHECK(p.pod("2").is_null());
  CHECK(!p.core.is_busy());
  p.kubelet.terminated("train-edljob-worker-0");
  p.sync();
  p.perform(p.core.want(p.now, 3, testing::template_of_tests()));
  p.pass(1h);
  CHECK(p.live() == "");
  CHECK(p.told_names() == names{"pod_done"});

  // One whose making was not answered is looked for first.
  kept_pods q;
  q.server.wrong.unanswered = 1;
  q.perform(q.core.all_told(q.now));
  q.perform(q.core.want(q.now, 1, testing::template_of_tests()));
  q.perform(q.core.end(q.now));
  CHECK(q.core.is_busy());
  q.server.wrong = {};
  q.pass(1min);
  CHECK(q.names().empty());
  CHECK(!q.core.is_busy());
}

TEST_CASE("calls are bounded, and pods are made at a pace") {
  kept_pods p;
  p.perform(p.core.all_told(p.now));
  auto effects = p.core.want(p.now, 100, testing::template_of_tests());
  CHECK(effects.size() == limits::pod_calls_max);
  CHECK(!p.core.next_wakeup()); // an answer comes first
  p.perform(effects);
  CHECK(p.count("POST") == limits::pods_made_at_once);
  p.pass(2s);
  CHECK(p.count("POST") == 2 * limits::pods_made_per_second + limits::pods_made_at_once);
  p.pass(2s);
  CHECK(p.names().size() == 100);
  CHECK(p.slept_well());
}

TEST_CASE("more nodes than a job may have, and pods that are odd") {
  kept_pods p;
  p.perform(p.core.want(p.now, 20'000, testing::template_of_tests()));
  CHECK(p.told_names() == names{"too_many_nodes"});
  const auto odd = json::parse(R"({"metadata":{"name":"x","uid":"u","namespace":"jobs",
      "labels":{"elasticjob.dlrover/replica-type":"worker","elasticjob.dlrover/rank-index":"a"},
      "ownerReferences":[{"uid":"uid-of-job","controller":true}]}})");
  p.perform(p.core.pod_is(p.now, odd));
  p.perform(p.core.pod_is(p.now, odd));
  CHECK(p.told_names() == names{"too_many_nodes", "pod_without_rank"});
  for (const char* nothing : {"null", "{}", "[]"})
    CHECK(p.core.pod_is(p.now, json::parse(nothing)).empty());
}
