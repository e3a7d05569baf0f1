#include "worker/progress/observed_script.hpp"

#include "diag/progress/page_view.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace troupe;
using namespace troupe::worker;
using diag::phase;

namespace {

struct script {
  std::unique_ptr<diag::progress_page> page = std::make_unique<diag::progress_page>();
  diag::page_writer writer{*page};
  std::uint64_t now = 1;

  observed_script observed;
  bool gradients = true;

  script() { writer.take(1, now); }
  phase after(moment seen) {
    observed.see(writer, seen, gradients, ++now);
    return phase_now();
  }
  phase batch() {
    CHECK(after(moment::input_begins) == phase::input);
    return after(moment::input_ends);
  }
  phase turn_gradients(bool on) {
    gradients = on;
    return after(moment::gradients_switched);
  }
  void train() {
    CHECK(batch() == phase::forward);
    for (const auto each : {moment::backward_begins, moment::backward_ends,
                            moment::optimizer_begins, moment::optimizer_ends})
      after(each);
  }
  phase phase_now() const { return diag::read_page(*page, now)->phase_now; }
};

} // namespace

TEST_CASE("a training loop's phases follow each other") {
  script s;
  for (int step = 0; step < 100; ++step) {
    CHECK(s.after(moment::input_begins) == phase::input);
    CHECK(s.after(moment::input_ends) == phase::forward);
    CHECK(s.after(moment::backward_begins) == phase::backward);
    CHECK(s.after(moment::backward_ends) == phase::other);
    CHECK(s.after(moment::optimizer_begins) == phase::optimizer);
    CHECK(s.after(moment::optimizer_ends) == phase::other);
  }
}

TEST_CASE("batches without gradients are an evaluation, until these are on again") {
  script s;
  s.train();
  CHECK(s.turn_gradients(false) == phase::other);
  for (int i = 0; i < 3; ++i) {
    CHECK(s.batch() == phase::evaluation);
    CHECK(s.turn_gradients(false) == phase::evaluation); // once more inside
  }
  CHECK(s.after(moment::input_begins) == phase::input);
  CHECK(s.after(moment::input_is_over) == phase::evaluation);
  CHECK(s.turn_gradients(true) == phase::other);
  CHECK(s.writer.is_outside());
  s.train();
}

TEST_CASE(
    "batches that are only looked at without gradients are an evaluation from the second on") {
  script s;
  s.train();
  for (int i = 0; i < 5; ++i) {
    CHECK(s.batch() == (i == 0 ? phase::forward : phase::evaluation));
    s.turn_gradients(false);
    s.turn_gradients(true);
  }
  CHECK(s.after(moment::input_begins) == phase::input);
  CHECK(s.after(moment::input_is_over) == phase::evaluation);
  s.train();
}

TEST_CASE("batches that are fetched before they are used are no evaluation") {
  script s;
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 4; ++i) {
      s.after(moment::input_begins);
      s.turn_gradients(false); // by a data set
      s.turn_gradients(true);
      CHECK(s.after(moment::input_ends) == phase::forward);
    }
    for (int i = 0; i < 4; ++i) {
      s.turn_gradients(false); // a teacher, or the model's buffers
      s.turn_gradients(true);
      s.after(moment::backward_begins);
      s.after(moment::backward_ends);
    }
    s.after(moment::optimizer_begins);
    s.turn_gradients(false);
    s.turn_gradients(true);
    s.after(moment::optimizer_ends);
  }
}

TEST_CASE("what is done without gradients between two steps is no evaluation") {
  script s;
  for (int step = 0; step < 3; ++step) {
    s.train();
    CHECK(s.turn_gradients(false) == phase::other); // a mean of the weights, a sum of losses
    CHECK(s.turn_gradients(true) == phase::other);
  }
}

TEST_CASE("what was done without gradients between two epochs says nothing of the second") {
  script s;
  for (int epoch = 0; epoch < 3; ++epoch) {
    s.train();
    s.after(moment::input_begins);
    CHECK(s.after(moment::input_is_over) == phase::forward);
    s.turn_gradients(false); // an evaluation without a loader
    s.turn_gradients(true);
  }
}

TEST_CASE("a step that fails is over when the next batch is fetched") {
  script s;
  for (int i = 0; i < 3; ++i)
    s.after(moment::optimizer_begins);
  CHECK(s.batch() == phase::forward);
}

TEST_CASE("what is made without gradients before the first batch is no evaluation") {
  script s;
  s.turn_gradients(false); // a module's first weights
  s.turn_gradients(true);
  s.train();
}

TEST_CASE("a phase of the script's own is not ended by a batch") {
  script s;
  s.writer.enter(phase::user, "sampling", s.now);
  s.after(moment::input_begins);
  CHECK(s.after(moment::input_ends) == phase::user);
}

TEST_CASE("a batch that never comes to a backward pass is a forward pass until the next") {
  script s;
  for (int i = 0; i < 50; ++i)
    CHECK(s.batch() == phase::forward);
}
