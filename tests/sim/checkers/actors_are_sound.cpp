#include "tests/sim/checkers/checkers.hpp"

namespace troupe::sim::checkers {

namespace {

class actors_are_sound_checker final : public observer {
 public:
  explicit actors_are_sound_checker(world& w) : world_(w) {}

  void said(const std::string& host, const std::string& component, const log::event& e) override {
    if (e.name == "actor_threw" || e.name == "message_unexpected")
      world_.blame("actors_are_sound", host + " " + component + ": " + e.text);
  }

 private:
  world& world_;
};

} // namespace

std::shared_ptr<observer> actors_are_sound(world& w) {
  return std::make_shared<actors_are_sound_checker>(w);
}

} // namespace troupe::sim::checkers
