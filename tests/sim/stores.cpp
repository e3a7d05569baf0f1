#include "tests/sim/stores.hpp"

#include <utility>

namespace troupe::sim {

namespace {

class sim_store final : public ports::open_store {
 public:
  sim_store(world& of, host_ptr launcher, std::uint16_t port)
      : world_(of), launcher_(std::move(launcher)), port_(port) {
    world_.tell(&observer::store_opened, launcher_->name());
  }
  ~sim_store() override {
    // What a dying launcher had open the kernel closes; nobody decided that.
    if (launcher_->alive())
      world_.tell(&observer::store_closed, launcher_->name());
  }
  std::uint16_t port() const override { return port_; }

 private:
  world& world_;
  host_ptr launcher_;
  std::uint16_t port_;
};

} // namespace

class sim_store_host final : public ports::store_host {
 public:
  sim_store_host(stores& of, host_ptr launcher) : stores_(of), launcher_(std::move(launcher)) {}

  result<std::unique_ptr<ports::open_store>> open(const ports::store_options& o) override {
    return std::make_unique<sim_store>(stores_.world_, launcher_,
                                       o.port ? o.port : ++stores_.last_port_);
  }

 private:
  stores& stores_;
  host_ptr launcher_;
};

std::shared_ptr<ports::store_host> stores::host_of(const host_ptr& launcher) {
  return std::make_shared<sim_store_host>(*this, launcher);
}

} // namespace troupe::sim
