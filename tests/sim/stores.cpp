#include "tests/sim/stores.hpp"

#include <utility>

namespace troupe::sim {

namespace {

class sim_store final : public ports::open_store {
 public:
  sim_store(world& of, host_ptr launcher, std::uint16_t port,
            std::map<std::string, std::uint16_t>& left)
      : world_(of), launcher_(std::move(launcher)), port_(port), left_(left) {}
  ~sim_store() override {
    if (launcher_->alive())
      world_.tell(&observer::store_closed, launcher_->name());
    else
      left_[launcher_->name()] = port_; // launcher_ended() says what becomes of it
  }
  std::uint16_t port() const override { return port_; }

 private:
  world& world_;
  host_ptr launcher_;
  std::uint16_t port_;
  std::map<std::string, std::uint16_t>& left_;
};

} // namespace

class sim_store_host final : public ports::store_host {
 public:
  sim_store_host(stores& of, host_ptr launcher) : stores_(of), launcher_(std::move(launcher)) {}

  result<std::unique_ptr<ports::open_store>> open(const ports::store_options& o) override {
    stores_.close_left(launcher_->name());
    stores_.world_.tell(&observer::store_opened, launcher_->name());
    return make(o.port ? o.port : ++stores_.last_port_);
  }
  std::unique_ptr<ports::open_store> adopt(std::uint16_t port) override {
    const auto found = stores_.left_.find(launcher_->name());
    if (found == stores_.left_.end() || found->second != port)
      return nullptr;
    stores_.left_.erase(found);
    return make(port);
  }

 private:
  std::unique_ptr<ports::open_store> make(std::uint16_t port) {
    return std::make_unique<sim_store>(stores_.world_, launcher_, port, stores_.left_);
  }

  stores& stores_;
  host_ptr launcher_;
};

/// A store that was not adopted has been ended by a sweep.
void stores::close_left(const std::string& node) {
  if (left_.erase(node) != 0)
    world_.tell(&observer::store_closed, node);
}

/// What a dying launcher had open the kernel closes; no component decided that.
void stores::launcher_ended(const host_ptr& launcher, ending_kind how) {
  if (how != ending_kind::crashed)
    left_.erase(launcher->name());
}

std::shared_ptr<ports::store_host> stores::host_of(const host_ptr& launcher) {
  return std::make_shared<sim_store_host>(*this, launcher);
}

} // namespace troupe::sim
