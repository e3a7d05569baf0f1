#include "tests/fakes/stores.hpp"

namespace troupe::testing {

namespace {

class fake_store final : public ports::open_store {
 public:
  explicit fake_store(std::shared_ptr<std::size_t> open) : open_(std::move(open)) { ++*open_; }
  ~fake_store() override { --*open_; }
  std::uint16_t port() const override { return 4000; }

 private:
  std::shared_ptr<std::size_t> open_;
};

} // namespace

result<std::unique_ptr<ports::open_store>> fake_stores::open(const ports::store_options& o) {
  if (no_store_)
    return tl::make_unexpected(*no_store_);
  last_ = o;
  return std::make_unique<fake_store>(open_);
}

std::unique_ptr<ports::open_store> fake_stores::adopt(std::uint16_t) {
  return std::make_unique<fake_store>(open_);
}

} // namespace troupe::testing
