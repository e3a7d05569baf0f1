#include "tests/fakes/transport.hpp"

#include "runtime/base/invariant.hpp"

#include <utility>

namespace troupe::testing {

// ---- link ----

class fake_link::connection final : public ports::connection {
 public:
  explicit connection(std::shared_ptr<fake_link> link) : link_(std::move(link)) {}
  ~connection() override { link_->end({ports::link_end::closed, "its owner let go of the link"}); }

  void open(ports::connection_events events) override {
    invariant(!link_->owner_, "a link is opened once");
    link_->owner_ = std::move(events);
    for (auto& m : std::exchange(link_->waiting_, {}))
      link_->deliver(std::move(m));
    if (link_->ended_)
      link_->owner_->on_closed(*link_->ended_);
  }
  result<void> send(messages::any_msg m) override {
    if (link_->ended_)
      return failure(errc::closed, "the link is gone");
    link_->sent_.push_back(std::move(m));
    return {};
  }
  void taken() override { ++link_->taken_; }
  void close(std::string reason) override {
    link_->end({ports::link_end::closed, std::move(reason)});
  }
  std::string peer() const override { return link_->peer_; }

 private:
  std::shared_ptr<fake_link> link_;
};

ports::connection_ptr fake_link::near_end(const std::shared_ptr<fake_link>& link) {
  return std::make_shared<connection>(link);
}

void fake_link::arrives(messages::any_msg m) {
  invariant(!ended_, "nothing arrives through a link that is gone");
  if (owner_)
    deliver(std::move(m));
  else
    waiting_.push_back(std::move(m));
}

void fake_link::deliver(messages::any_msg m) {
  ++delivered_;
  owner_->on_message(std::move(m));
}

std::vector<messages::any_msg> fake_link::take_sent() {
  return std::exchange(sent_, {});
}

void fake_link::end(ports::link_ending how) {
  if (ended_)
    return;
  ended_ = std::move(how);
  if (owner_)
    owner_->on_closed(*ended_);
}

// ---- transport ----

namespace {

class fake_listener final : public ports::listener {
 public:
  fake_listener(ports::endpoint where, std::shared_ptr<ports::transport::acceptor> accept)
      : where_(std::move(where)), accept_(std::move(accept)) {}
  ~fake_listener() override { *accept_ = nullptr; }
  ports::endpoint where() const override { return where_; }

 private:
  ports::endpoint where_;
  std::shared_ptr<ports::transport::acceptor> accept_;
};

} // namespace

result<std::unique_ptr<ports::listener>> fake_transport::listen(const ports::endpoint& where,
                                                                acceptor accept) {
  if (no_listening_)
    return tl::make_unexpected(*no_listening_);
  // A place of its own for each: the end of an older listener does not end this one.
  accept_ = std::make_shared<acceptor>(std::move(accept));
  const ports::endpoint really{where.host,
                               where.port ? where.port : static_cast<std::uint16_t>(29400)};
  return std::make_unique<fake_listener>(really, accept_);
}

void fake_transport::dial(const ports::endpoint&, messages::msg<messages::Hello> hello,
                          dialled done) {
  ++dials_;
  attempt_ = attempt{std::move(hello), std::move(done)};
}

fake_link_ptr fake_transport::knock(const messages::msg<messages::Hello>& hello) {
  invariant(has_listener(), "there is no listener");
  auto link = std::make_shared<fake_link>("peer " + std::to_string(++links_));
  (*accept_)(ports::peer{fake_link::near_end(link), hello});
  return link;
}

std::optional<messages::msg<messages::Hello>> fake_transport::dialling() const {
  return attempt_ ? std::optional(attempt_->hello) : std::nullopt;
}

fake_link_ptr fake_transport::answer_dial() {
  invariant(attempt_.has_value(), "there is no dialler");
  auto link = std::make_shared<fake_link>("master " + std::to_string(++links_));
  std::exchange(attempt_, std::nullopt)->done(fake_link::near_end(link));
  return link;
}

void fake_transport::refuse_dial(error why) {
  invariant(attempt_.has_value(), "there is no dialler");
  std::exchange(attempt_, std::nullopt)->done(tl::make_unexpected(std::move(why)));
}

} // namespace troupe::testing
