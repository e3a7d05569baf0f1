#include "kube/job_objects.hpp"
#include "kube/node_pods_core.hpp"
#include "tests/kube/kept_pods.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;
using testing::kept_pods;
using testing::make;
using testing::running;
using testing::told;
using testing::with;

using names = std::vector<std::string>;

TEST_CASE("a name that is not free: ours is taken over, another's is left") {
  kept_pods p;
  make(p, 0, 0); // and no watch tells of it
  p.perform(p.core.all_told(p.now));
  p.perform(p.core.want(p.now, 1, testing::template_of_tests()));
  CHECK(p.asked == names{"POST", "GET train-edljob-worker-0"});
  p.sync();
  CHECK(p.live() == "0:0");

  auto other = testing::job_of_tests();
  other.uid = "earlier";
  kept_pods q;
  make(q, 0, 0, 0, other);
  q.perform(q.core.all_told(q.now));
  q.perform(q.core.want(q.now, 1, testing::template_of_tests()));
  CHECK(q.asked == names{"POST", "GET train-edljob-worker-0", "POST"});
  CHECK(q.live() == "0:0 0:1");
  // One that the watch tells is known before.
  kept_pods r;
  make(r, 0, 6, 0, other);
  r.sync();
  r.start(1);
  CHECK(r.asked == names{"POST"});
  CHECK(r.live() == "0:6 0:7");
}

TEST_CASE("an answer that is lost makes no second pod") {
  for (const bool has_effect : {false, true}) {
    CAPTURE(has_effect);
    kept_pods p;
    (has_effect ? p.server.wrong.unanswered : p.server.wrong.unheard) = 1;
    p.perform(p.core.all_told(p.now));
    p.perform(p.core.want(p.now, 1, testing::template_of_tests()));
    CHECK(p.asked == names{"POST", "GET train-edljob-worker-0"});
    p.server.wrong = {};
    p.pass(10s);
    p.sync();
    CHECK(p.live() == "0:0");
    CHECK(p.count("POST") == (has_effect ? 1 : 2));
  }
}

TEST_CASE("what the server refuses is told once") {
  kept_pods p;
  p.server.instead = [](const api_request& r) -> std::optional<api_answer> {
    if (r.method == "POST")
      return with(403, "pods is forbidden: exceeded quota");
    return std::nullopt;
  };
  p.start(3);
  p.pass(10min);
  CHECK(p.told_names() == names{"pods_refused"});
  CHECK(told(p, "the master cannot create pods in the namespace jobs: pods is forbidden: exceeded "
                "quota (status 403)"));
  CHECK(p.count("POST") <= 3 * 12);
  p.server.instead = nullptr;
  p.pass(61s);
  CHECK(p.live() == "0:0 1:1 2:2");
}

TEST_CASE("a template that the server refuses is not tried again until it changes") {
  for (const unsigned status : {400u, 422u}) {
    kept_pods p;
    p.server.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.method == "POST" && r.body.find("train:1") != std::string::npos)
        return with(status, "spec.containers[0].image: no");
      return std::nullopt;
    };
    p.start(3);
    p.pass(1h);
    CHECK(p.told_names() == names{"pod_template_refused"});
    CHECK(told(p, "spec.containers[0].image: no (status "));
    CHECK(p.count("POST") <= 3);
    auto other = testing::template_of_tests();
    other.as_object()["spec"].as_object()["containers"].as_array()[0].as_object()["image"] = "new";
    p.perform(p.core.want(p.now, 3, other));
    CHECK(p.live() == "0:0 1:1 2:2");
  }
}

TEST_CASE("a server that is busy is left alone") {
  kept_pods p;
  p.server.wrong.too_many = 1;
  p.start(5);
  p.pass(1min);
  CHECK(p.asked.size() < 40);
  CHECK(p.told.empty());
  p.server.wrong = {};
  p.pass(2min);
  CHECK(p.live() == "0:0 1:1 2:2 3:3 4:4");
}

TEST_CASE("of two pods for one rank the younger one is deleted") {
  kept_pods p;
  make(p, 0, 7);
  p.server.advance(p.now += 5s);
  make(p, 0, 3);
  p.sync();
  p.start(1);
  CHECK(p.live() == "0:7");
  p.run_all();
  p.pass(1h);
  CHECK(p.live() == "0:7");
  CHECK(p.told.empty());
}

TEST_CASE("a master that was started again takes over") {
  kept_pods p;
  make(p, 0, 0);    // its end was of an earlier pod
  make(p, 0, 4, 1); // runs
  make(p, 1, 1);    // has ended while no master was there
  make(p, 2, 2);    // is done
  make(p, 3, 5, 3); // has failed once too often
  make(p, 9, 6);    // is not wanted
  for (const char* id : {"0", "1", "5"})
    p.kubelet.end(std::string("train-edljob-worker-") + id, 1);
  p.kubelet.end("train-edljob-worker-2", 0);
  p.sync();
  p.start(5);
  p.pass(2s);
  CHECK(p.live() == "0:4 1:7 4:8");
  CHECK(annotation(p.pod("7"), restarts_annotation) == "1");
  REQUIRE(p.given_up.size() == 1);
  CHECK(p.given_up[0].rank == 3);
  p.run_all();
  p.end("4", 1);
  p.pass(2s);
  CHECK(p.live() == "1:7 4:8 0:9");
  CHECK(annotation(p.pod("9"), restarts_annotation) == "2");
}

TEST_CASE("a pod that was made and that no watch tells of is looked for") {
  kept_pods p;
  p.perform(p.core.all_told(p.now));
  p.perform(p.core.want(p.now, 1, testing::template_of_tests()));
  p.kubelet.terminated("train-edljob-worker-0"); // before any watch has seen it
  p.pass(29s);
  CHECK(p.live() == "");
  p.pass(3s);
  CHECK(p.live() == "0:1");

  kept_pods q;
  q.perform(q.core.all_told(q.now));
  q.perform(q.core.want(q.now, 1, testing::template_of_tests()));
  q.kubelet.terminated("train-edljob-worker-0");
  q.perform(q.core.all_told(q.now)); // a list without it
  q.pass(2s);
  CHECK(q.live() == "0:1");
}

TEST_CASE("a pod that is gone before its making is answered is not waited for") {
  kept_pods p;
  p.perform(p.core.all_told(p.now));
  const auto effects = p.core.want(p.now, 1, testing::template_of_tests());
  const auto& call = std::get<node_pods_core::call>(effects.at(0));
  const auto answer = p.server.answer(call.what);
  const auto pod = p.pod("0");
  p.kubelet.terminated("train-edljob-worker-0");
  p.perform(p.core.pod_gone(p.now, "jobs/train-edljob-worker-0", text(pod, {"metadata", "uid"})));
  p.perform(p.core.answered(p.now, call.number, answer));
  p.pass(2s);
  CHECK(p.live() == "0:1");
  CHECK(p.core.answered(p.now, call.number, answer).empty());
}

TEST_CASE("a pod whose name another one has meanwhile is gone") {
  running p(1);
  auto other = testing::job_of_tests();
  other.uid = "earlier";
  p.kubelet.terminated("train-edljob-worker-0"); // and no watch tells of it
  make(p, 0, 0, 0, other);
  p.asked.clear();
  p.perform(p.core.give_up(p.now)); // a conflict, of which the reason is not known
  while (p.core.next_wakeup() && p.asked.size() < 9) {
    p.now = *p.core.next_wakeup();
    p.perform(p.core.tick(p.now));
  }
  CHECK(p.asked == names{"DELETE train-edljob-worker-0", "GET train-edljob-worker-0"});
  CHECK(!p.core.is_busy());
  CHECK(p.live() == "0:0");
}

TEST_CASE("a pod of an earlier life of the rank that is told late counts nothing") {
  kept_pods p;
  make(p, 0, 5);
  p.sync();
  p.start(1);
  p.run_all();
  p.end("5", 1);
  make(p, 0, 3);
  p.kubelet.end("train-edljob-worker-3", 1);
  p.sync();
  p.pass(2s);
  CHECK(p.live() == "0:6");
  CHECK(annotation(p.pod("6"), restarts_annotation) == "1");
}

TEST_CASE("an answer that is older than what the watch has told changes nothing") {
  rank_pods rank({3, 0, 15min});
  const instant now{};
  rank.begin(now);
  node_pod pod;
  pod.uid = "u";
  pod.phase = pod_phase::running;
  rank.is(now, pod, true);
  rank.doubt(now, "u");
  CHECK(rank.next(now).is == rank_pods::action::what::look);
  pod.phase = pod_phase::pending;
  rank.is(now, pod, false);
  CHECK(rank.is_running());
  CHECK(rank.next(now).is == rank_pods::action::what::nothing);
}

TEST_CASE("a node lost after its pod is gone says nothing against the next that has its address") {
  running p(2);
  p.server.answer({"DELETE", p.kubelet.path("train-edljob-worker-0"), "", ""});
  p.kubelet.terminated("train-edljob-worker-0");
  p.sync();
  p.perform(p.core.node_lost(p.now, "10.0.0.0", "nothing heard of it for 10 s"));
  p.kubelet.bind("train-edljob-worker-2", "machine-9");
  p.kubelet.run("train-edljob-worker-2", "10.0.0.0");
  p.sync();
  p.end("1", 1);
  p.pass(10s);
  CHECK(p.live() == "0:2 1:3");
  CHECK(member(p.pod("3"), {"spec", "affinity"}) == nullptr);
}

TEST_CASE("a node lost with its deleted pod says nothing against their machine") {
  running p(2);
  p.server.answer({"DELETE", p.kubelet.path("train-edljob-worker-0"), "", ""});
  p.sync();
  p.perform(p.core.node_lost(p.now, "10.0.0.0", "the launcher received signal 15"));
  p.kubelet.end("train-edljob-worker-0", 143); // told once more, with its address
  p.sync();
  p.end("1", 1);
  p.pass(10s);
  CHECK(p.live() == "0:2 1:3");
  CHECK(member(p.pod("3"), {"spec", "affinity"}) == nullptr);
}
