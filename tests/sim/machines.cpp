#include "tests/sim/machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::sim {

class machines::view final : public ports::cluster, public std::enable_shared_from_this<view> {
 public:
  view(machines& of, std::function<void(std::function<void()>)> in_master)
      : of_(of), in_master_(std::move(in_master)) {}

  void listen(listener by) override {
    by_ = std::move(by);
    tell();
  }
  bool replaces() const override { return true; }
  void mark_faulty(const node_name&, const std::string&, const std::string&) override {}
  void node_lost(const node_name&, const std::string&, const std::string&) override {}
  void replace(const node_name& node, const std::string&, bool, const std::string&) override {
    of_.replace(node);
  }
  void want(std::uint32_t nodes) override {
    of_.wanted_ = nodes;
    tell();
  }
  void end() override {}

  void tell() {
    of_.world_.events.in({}, [me = weak_from_this()] {
      if (const auto self = me.lock(); self && self->by_.supplied)
        self->in_master_([self] { self->by_.supplied(self->of_.supply()); });
    });
  }

 private:
  machines& of_;
  const std::function<void(std::function<void()>)> in_master_;
  listener by_;
};

machines::machines(world& of, machines_options options, std::uint32_t nodes,
                   std::function<void(const std::string&)> start)
    : world_(of), options_(options), start_(std::move(start)), nodes_(nodes), wanted_(nodes) {}

std::shared_ptr<ports::cluster>
machines::seen_by(std::function<void(std::function<void()>)> in_master) {
  const auto made = std::make_shared<view>(*this, std::move(in_master));
  newest_ = made;
  return made;
}

void machines::replace(const std::string& node) {
  // A master that comes later may say it again.
  if (!left_.insert(node).second)
    return;
  const auto used = used_[node];
  if (used >= options_.again) {
    ++given_up_;
    world_.write("-", fmt::format("! no machine is given for {} any more", node));
  } else {
    const auto next = fmt::format("n{}", ++nodes_);
    used_[next] = used + 1;
    world_.write("-", fmt::format("! {} is to take the place of {}", next, node));
    world_.events.in(world_.between({}, options_.begins_within), [this, next] { start_(next); });
  }
  if (const auto told = newest_.lock())
    told->tell();
}

ports::cluster::supply machines::supply() const {
  return {wanted_, wanted_ - std::min(wanted_, given_up_),
          given_up_ == 0 ? std::string() : "no machine is left",
          fmt::format("replaced {} times at most", options_.again)};
}

} // namespace troupe::sim
