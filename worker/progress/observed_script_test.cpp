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

  script() { writer.take(1, now); }
  phase after(moment seen) {
    observe(writer, seen, ++now);
    return phase_now();
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

TEST_CASE("an evaluation lasts while its batches come, and training ends it") {
  script s;
  CHECK(s.after(moment::evaluation_begins) == phase::evaluation);
  CHECK(s.after(moment::input_begins) == phase::input);
  CHECK(s.after(moment::input_ends) == phase::evaluation);
  CHECK(s.after(moment::evaluation_begins) == phase::evaluation);
  CHECK(s.after(moment::training_begins) == phase::other);
  CHECK(s.writer.is_outside());
}

TEST_CASE("a frozen part of the model is no evaluation for longer than a forward pass") {
  script s;
  s.after(moment::input_begins);
  s.after(moment::input_ends);
  s.after(moment::evaluation_begins);
  CHECK(s.after(moment::backward_begins) == phase::backward);
  s.after(moment::backward_ends);
  CHECK(s.phase_now() == phase::other);
}

TEST_CASE("a phase of the script's own is not ended by a batch") {
  script s;
  s.writer.enter(phase::user, "sampling", s.now);
  s.after(moment::input_begins);
  CHECK(s.after(moment::input_ends) == phase::user);
}

TEST_CASE("a batch that never comes to a backward pass is a forward pass until the next") {
  script s;
  for (int i = 0; i < 50; ++i) {
    CHECK(s.after(moment::input_begins) == phase::input);
    CHECK(s.after(moment::input_ends) == phase::forward);
  }
}
