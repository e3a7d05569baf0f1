#pragma once

#include "runtime/ports/storage.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::testing {

/// A new, empty place at each call; it goes with what keeps it.
struct storage_place {
  std::function<std::unique_ptr<ports::storage>()> open;
  std::shared_ptr<void> keep;
};

/// What every ports::storage promises. To be called from one TEST_CASE per storage.
void check_storage_contract(const std::function<storage_place()>& make);

/// So many bytes that differ from those of another number, page aligned if wished.
class sample {
 public:
  explicit sample(std::size_t size, std::uint64_t number = 1);
  ports::bytes_view view() const { return {data_, size_}; }
  ports::bytes_view from(std::size_t offset) const { return {data_ + offset, size_ - offset}; }
  std::string text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_;
  std::size_t size_;
};

/// A whole file, read with `get`; nothing if it is not there, and an error text if it is damaged.
std::string content_of(ports::storage& storage, const std::string& name);

} // namespace troupe::testing
