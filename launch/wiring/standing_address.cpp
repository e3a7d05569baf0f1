#include "launch/wiring/standing_address.hpp"

#include <cstdint>
#include <mutex>
#include <utility>

namespace troupe::launch {

struct standing_address::shared {
  std::mutex mutex;
  std::unique_ptr<ports::listener> place;
  acceptor accept;         ///< empty: nothing listens now
  std::uint64_t owner = 0; ///< the newest
};

/// What an owner of the place holds.
class standing_address::share final : public ports::listener {
 public:
  share(std::shared_ptr<shared> of, std::uint64_t owner) : of_(std::move(of)), owner_(owner) {}
  ~share() override {
    const std::lock_guard lock(of_->mutex);
    if (of_->owner == owner_)
      of_->accept = nullptr;
  }
  share(const share&) = delete;
  share& operator=(const share&) = delete;

  ports::endpoint where() const override {
    const std::lock_guard lock(of_->mutex);
    return of_->place->where();
  }

 private:
  std::shared_ptr<shared> of_;
  std::uint64_t owner_;
};

standing_address::standing_address(std::shared_ptr<ports::transport> over)
    : over_(std::move(over)), shared_(std::make_shared<shared>()) {}

result<std::unique_ptr<ports::listener>> standing_address::listen(const ports::endpoint& where,
                                                                  acceptor accept) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->place) {
    // Not owned: the place is a part of it.
    auto opened = over_->listen(where, [weak = std::weak_ptr(shared_)](ports::peer peer) {
      const auto self = weak.lock();
      acceptor now;
      if (self) {
        const std::lock_guard guard(self->mutex);
        now = self->accept;
      }
      if (now)
        now(std::move(peer));
    });
    if (!opened)
      return tl::make_unexpected(opened.error());
    shared_->place = std::move(*opened);
  }
  shared_->accept = std::move(accept);
  return std::make_unique<share>(shared_, ++shared_->owner);
}

void standing_address::dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
                            dialled done) {
  over_->dial(where, std::move(hello), std::move(done));
}

} // namespace troupe::launch
