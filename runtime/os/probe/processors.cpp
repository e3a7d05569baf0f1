#include "runtime/os/probe/processors.hpp"

#include "probe/known_product.hpp"
#include "runtime/os/probe/matrix_product.hpp"
#include "runtime/os/probe/timed_products.hpp"

#include <unistd.h>

namespace troupe::os {

namespace {

/// The work is fixed, and not the time: that is what nodes are compared by. About 0.1 s on a usual
/// core.
constexpr std::size_t product_size = 512;
constexpr std::size_t products = 7;

error none_between() {
  return {errc::absent, "there is nothing between processors that could be measured"};
}

error no_library() {
  return {errc::absent, "processors have no library for collectives"};
}

} // namespace

result<std::vector<probe::device_facts>> processors::list() {
  probe::device_facts facts;
  facts.name = "cpu";
  facts.memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::vector{facts};
}

result<probe::computed> processors::compute(std::uint32_t) {
  const probe::known_product known(product_size);
  const std::vector<float> left(known.left().begin(), known.left().end()),
      right(known.right().begin(), known.right().end());
  std::vector<float> product(left.size());
  std::vector<duration> times;
  // The first one finds its memory and its code cold.
  for (std::size_t n = 0; n <= products; ++n) {
    const auto before = std::chrono::steady_clock::now();
    multiply(left.data(), right.data(), product.data(), product_size);
    const auto after = std::chrono::steady_clock::now();
    if (!known.is(product.data()))
      return failure(errc::refused, "a product of matrices is wrong: a processor or its memory "
                                    "is broken");
    if (n > 0)
      times.push_back(after - before);
  }
  const auto took = without_interruptions(std::move(times));
  const auto seconds = std::chrono::duration<double>(took).count();
  return probe::computed{took, known.operations() * products / seconds / 1e9};
}

result<std::uint64_t> processors::copy_bandwidth(std::uint32_t, std::uint32_t) {
  return tl::make_unexpected(none_between());
}

result<std::uint32_t> processors::channels(std::uint32_t, std::uint32_t) {
  return tl::make_unexpected(none_between());
}

result<std::string> processors::make_group_key() {
  return tl::make_unexpected(no_library());
}

result<std::unique_ptr<probe::device_group>> processors::join_group(const std::string&,
                                                                    const probe::group_place&) {
  return tl::make_unexpected(no_library());
}

} // namespace troupe::os
