#include "runtime/os/probe/cuda_devices.hpp"

#include "probe/known_product.hpp"
#include "probe/limits.hpp"
#include "runtime/os/probe/cuda_driver.hpp"
#include "runtime/os/probe/cuda_memory.hpp"
#include "runtime/os/probe/nccl.hpp"
#include "runtime/os/probe/nccl_group.hpp"
#include "runtime/os/probe/nvml.hpp"
#include "runtime/os/probe/timed_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::os {

namespace {

using namespace cuda;

/// The work is fixed, and not the time. A device with few multiprocessors would take seconds for
/// what a large one needs to be busy.
constexpr int multiprocessors_of_large_ones = 32;
constexpr std::size_t large_product = 4'096, small_product = 1'024, products_made = 50;
/// Devices before this cannot multiply bfloat16.
constexpr int capability_with_bfloat16 = 8;
/// Versions of cuBLAS with the functions as they are called here, and as many as are looked for.
constexpr int oldest_blas = 11, newest_blas = 20;
constexpr std::size_t copied_bytes = 256u << 20, copies = 8;

/// The first call that has failed; nothing is called behind it.
class calls {
 public:
  explicit calls(const cuda_driver& driver) : driver_(driver) {}

  bool ok(driver_result code, const char* what) {
    outcome_ = driver_.check(code, what);
    return outcome_.has_value();
  }
  bool blas_ok(int status, const char* what) {
    if (status != blas_success)
      outcome_ = failure(errc::refused, fmt::format("{} (cuBLAS status {})", what, status));
    return status == blas_success;
  }
  tl::unexpected<error> failed() const { return tl::make_unexpected(outcome_.error()); }

 private:
  const cuda_driver& driver_;
  result<void> outcome_;
};

/// Points of time in the work of the current context.
class events {
 public:
  explicit events(const cuda_driver& driver) : driver_(driver) {}
  ~events() {
    for (const auto made : all_)
      driver_.destroy_event(made);
  }
  events(const events&) = delete;
  events& operator=(const events&) = delete;

  driver_result record() {
    event made = nullptr;
    if (const auto code = driver_.create_event(&made, 0); code != success)
      return code;
    all_.push_back(made);
    return driver_.record(made, nullptr);
  }
  driver_result wait_for_last() const { return driver_.wait_for(all_.back()); }
  /// Between one and the next. Precondition: the last was waited for.
  driver_result times(std::vector<duration>& into) const {
    for (std::size_t n = 1; n < all_.size(); ++n) {
      float milliseconds = 0;
      if (const auto code = driver_.elapsed(&milliseconds, all_[n - 1], all_[n]); code != success)
        return code;
      into.push_back(std::chrono::duration_cast<duration>(
          std::chrono::duration<float, std::milli>(milliseconds)));
    }
    return success;
  }

 private:
  const cuda_driver& driver_;
  std::vector<event> all_;
};

/// -2 to 2 as bfloat16 or half.
std::vector<std::uint16_t> as_short_floats(const std::vector<std::int8_t>& entries, bool bfloat16) {
  constexpr std::array<std::uint16_t, 5> of_bfloat16{0xc000, 0xbf80, 0, 0x3f80, 0x4000};
  constexpr std::array<std::uint16_t, 5> of_half{0xc000, 0xbc00, 0, 0x3c00, 0x4000};
  std::vector<std::uint16_t> all;
  all.reserve(entries.size());
  for (const auto entry : entries)
    all.push_back((bfloat16 ? of_bfloat16 : of_half)[static_cast<std::size_t>(entry + 2)]);
  return all;
}

/// cuBLAS, as far as it is used.
struct blas {
  /// A driver runs what was made for its version of CUDA or for an older one. Each library needs
  /// its companion.
  blas(const std::string& own_program, int cuda_version) {
    for (auto version = cuda_version; version >= oldest_blas && !library; --version) {
      const auto named = [&](const char* name) {
        return nvidia_libraries(own_program, "cublas", fmt::format("{}.so.{}", name, version));
      };
      const loaded_library companion(named("libcublasLt"));
      library = loaded_library(named("libcublas"));
    }
    create = library.function<signatures::cublasCreate_v2>("cublasCreate_v2");
    destroy = library.function<signatures::cublasDestroy_v2>("cublasDestroy_v2");
    multiply = library.function<signatures::cublasGemmEx>("cublasGemmEx");
  }
  bool is_there() const { return create != nullptr && destroy != nullptr && multiply != nullptr; }

  loaded_library library;
  signatures::cublasCreate_v2* create = nullptr;
  signatures::cublasDestroy_v2* destroy = nullptr;
  signatures::cublasGemmEx* multiply = nullptr;
};

class nvidia_devices final : public probe::device_port {
 public:
  nvidia_devices(std::unique_ptr<cuda_driver> driver, int count, std::string own_program)
      : driver_(std::move(driver)), all_(static_cast<std::size_t>(count)),
        own_program_(std::move(own_program)) {}

  bool has_accelerators() const override { return true; }
  result<std::vector<probe::device_facts>> list() override;
  result<probe::computed> compute(std::uint32_t index) override;
  result<std::uint64_t> copy_bandwidth(std::uint32_t from, std::uint32_t to) override;
  result<std::uint32_t> channels(std::uint32_t first, std::uint32_t second) override {
    return nvml_.links(all_.at(first).bus, all_.at(second).bus);
  }
  std::string collectives() override { return library().name(); }
  result<std::string> make_group_key() override { return make_nccl_key(library()); }
  result<std::unique_ptr<probe::device_group>> join_group(const std::string& key,
                                                          const probe::group_place& place) override;

 private:
  struct known_device {
    device number = 0;
    std::string bus;
    context its_context = nullptr;
  };

  const nccl& library() {
    if (!nccl_)
      nccl_.emplace(own_program_);
    return *nccl_;
  }
  bool find(std::size_t index, probe::device_facts& facts, calls& c);
  /// What follows is done on this device.
  bool enter(std::uint32_t index, calls& c);
  bool may_copy(std::uint32_t from, std::uint32_t to, calls& c);
  result<probe::computed> multiply(const probe::known_product& known, bool bfloat16);

  const std::unique_ptr<cuda_driver> driver_;
  std::vector<known_device> all_;
  const std::string own_program_;
  nvml nvml_;
  std::optional<nccl> nccl_;
  std::optional<blas> blas_;
  std::optional<probe::known_product> known_;
};

bool nvidia_devices::find(std::size_t index, probe::device_facts& facts, calls& c) {
  auto& found = all_[index];
  std::array<char, limits::name_max + 1> name{};
  std::array<char, bus_id_size> bus{};
  std::size_t memory = 0;
  if (!c.ok(driver_->get_device(&found.number, static_cast<int>(index)), "it is not found") ||
      !c.ok(driver_->device_name(name.data(), limits::name_max, found.number), "it has no name") ||
      !c.ok(driver_->total_memory(&memory, found.number), "it has no memory") ||
      !c.ok(driver_->bus_id(bus.data(), static_cast<int>(bus.size()), found.number),
            "it has no place"))
    return false;
  found.bus = bus.data();
  facts.index = static_cast<std::uint32_t>(index);
  facts.name = name.data();
  facts.memory_bytes = memory;
  nvml_.add_facts(found.bus, facts);
  return true;
}

/// Before any context is made: that takes memory itself.
result<std::vector<probe::device_facts>> nvidia_devices::list() {
  std::vector<probe::device_facts> facts(all_.size());
  for (std::size_t n = 0; n < all_.size(); ++n) {
    calls c(*driver_);
    if (!find(n, facts[n], c))
      return failure(errc::refused, fmt::format("device {}: {}", n, c.failed().value().what));
  }
  return facts;
}

bool nvidia_devices::enter(std::uint32_t index, calls& c) {
  auto& on = all_.at(index);
  if (on.its_context == nullptr &&
      !c.ok(driver_->retain_context(&on.its_context, on.number), "it cannot be used"))
    return false;
  return c.ok(driver_->set_current(on.its_context), "it cannot be used");
}

result<probe::computed> nvidia_devices::compute(std::uint32_t index) {
  calls c(*driver_);
  int version = 0;
  if (!c.ok(driver_->version(&version), "its driver has no version") || !enter(index, c))
    return c.failed();
  if (!blas_)
    blas_.emplace(own_program_, std::min(version / 1'000, newest_blas));
  if (!blas_->is_there())
    return probe::computed{};
  const auto& on = all_.at(index);
  int multiprocessors = 0, capability = 0;
  if (!c.ok(driver_->attribute(&multiprocessors, attribute_multiprocessors, on.number),
            "its size is unknown") ||
      !c.ok(driver_->attribute(&capability, attribute_capability_major, on.number),
            "its kind is unknown"))
    return c.failed();
  const auto size = multiprocessors < multiprocessors_of_large_ones ? small_product : large_product;
  if (!known_ || known_->size() != size)
    known_.emplace(size);
  return multiply(*known_, capability >= capability_with_bfloat16);
}

result<probe::computed> nvidia_devices::multiply(const probe::known_product& known, bool bfloat16) {
  calls c(*driver_);
  const auto left = as_short_floats(known.left(), bfloat16),
             right = as_short_floats(known.right(), bfloat16);
  std::vector<float> product(left.size());
  const auto entries = left.size() * sizeof(left[0]), floats = product.size() * sizeof(float);
  device_memory a(*driver_), b(*driver_), sums(*driver_);
  blas_handle handle = nullptr;
  if (!c.ok(a.allocate(entries), "its memory is not to be had") ||
      !c.ok(b.allocate(entries), "its memory is not to be had") ||
      !c.ok(sums.allocate(floats), "its memory is not to be had") ||
      !c.ok(driver_->to_device(a.at(), left.data(), entries), "nothing can be copied to it") ||
      !c.ok(driver_->to_device(b.at(), right.data(), entries), "nothing can be copied to it") ||
      !c.blas_ok(blas_->create(&handle), "cuBLAS does not start on it"))
    return c.failed();
  const auto n = static_cast<int>(known.size());
  const float one = 1, zero = 0;
  const int type = bfloat16 ? data_bfloat16 : data_half;
  events points(*driver_);
  // The first one loads the code for it.
  for (std::size_t made = 0; made <= products_made; ++made) {
    if (!c.blas_ok(blas_->multiply(handle, blas_no_transpose, blas_no_transpose, n, n, n, &one,
                                   a.address(), type, n, b.address(), type, n, &zero,
                                   sums.address(), data_float, n, blas_compute_float,
                                   blas_default_algorithm),
                   "a product of matrices cannot be made") ||
        !c.ok(points.record(), "a product of matrices has failed"))
      return c.failed();
  }
  std::vector<duration> times;
  if (!c.ok(points.wait_for_last(), "a product of matrices has failed") ||
      !c.ok(points.times(times), "a product of matrices has failed") ||
      !c.ok(driver_->to_host(product.data(), sums.at(), floats), "nothing can be copied from it"))
    return c.failed();
  blas_->destroy(handle);
  if (!known.is(product.data()))
    return failure(errc::refused, "a product of matrices is wrong: the device computes wrongly");
  const auto took = without_interruptions(std::move(times));
  const auto seconds = std::chrono::duration<double>(took).count();
  return probe::computed{took,
                         seconds > 0 ? known.operations() * products_made / seconds / 1e9 : 0};
}

/// Where devices have no access to each other, copies go by the memory of the machine, and their
/// bandwidth says so.
bool nvidia_devices::may_copy(std::uint32_t from, std::uint32_t to, calls& c) {
  int can = 0;
  if (!c.ok(driver_->can_access_peer(&can, all_.at(from).number, all_.at(to).number),
            "the driver does not say whether they reach each other") ||
      !enter(to, c) || !enter(from, c))
    return false;
  if (can == 0)
    return true;
  const auto enabled = driver_->enable_peer(all_.at(to).its_context, 0);
  return enabled == peer_access_already_enabled ||
         c.ok(enabled, "one device does not reach the other");
}

result<std::uint64_t> nvidia_devices::copy_bandwidth(std::uint32_t from, std::uint32_t to) {
  calls c(*driver_);
  device_memory source(*driver_), target(*driver_);
  const auto copy = [&] {
    return driver_->copy_to_peer(target.at(), all_.at(to).its_context, source.at(),
                                 all_.at(from).its_context, copied_bytes, nullptr);
  };
  if (!may_copy(from, to, c) || !enter(to, c) ||
      !c.ok(target.allocate(copied_bytes), "memory is not to be had") || !enter(from, c) ||
      !c.ok(source.allocate(copied_bytes), "memory is not to be had"))
    return c.failed();
  events points(*driver_);
  for (std::size_t made = 0; made <= copies; ++made)
    if (!c.ok(copy(), "a copy cannot be made") || !c.ok(points.record(), "a copy has failed"))
      return c.failed();
  std::vector<duration> times;
  if (!c.ok(points.wait_for_last(), "a copy has failed") ||
      !c.ok(points.times(times), "a copy has failed"))
    return c.failed();
  const auto seconds =
      std::chrono::duration<double>(without_interruptions(std::move(times))).count();
  constexpr double megabyte = 1e6;
  return seconds > 0 ? static_cast<std::uint64_t>(copied_bytes * copies / seconds / megabyte) : 0;
}

result<std::unique_ptr<probe::device_group>>
nvidia_devices::join_group(const std::string& key, const probe::group_place& place) {
  if (const auto usable = library().usable(); !usable)
    return tl::make_unexpected(usable.error());
  calls c(*driver_);
  std::vector<context> contexts;
  for (std::uint32_t index = 0; index < all_.size(); ++index) {
    if (!enter(index, c))
      return failure(errc::refused, fmt::format("device {}: {}", index, c.failed().value().what));
    contexts.push_back(all_[index].its_context);
  }
  return join_nccl_group(*driver_, library(), contexts, key, place);
}

bool has_device_files() {
  std::error_code none;
  for (std::uint32_t n = 0; n < limits::probed_devices_max; ++n)
    if (std::filesystem::exists(fmt::format("/dev/nvidia{}", n), none))
      return true;
  return false;
}

} // namespace

result<std::unique_ptr<probe::device_port>> cuda_devices(const std::string& own_program) {
  std::unique_ptr<probe::device_port> there_are_none;
  auto driver = cuda_driver::load();
  if (!driver)
    return tl::make_unexpected(driver.error());
  if (!*driver)
    return there_are_none;
  int count = 0;
  auto code = (*driver)->init(0);
  if (code == success)
    code = (*driver)->device_count(&count);
  const bool hidden = code == no_device && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  // A library without a device is what images for CUDA have, wherever they run.
  if (code != success && (hidden || !has_device_files()))
    return there_are_none;
  if (const auto works = (*driver)->check(code, "the NVIDIA driver does not work"); !works)
    return tl::make_unexpected(works.error());
  if (count == 0)
    return there_are_none;
  return std::make_unique<nvidia_devices>(std::move(*driver), count, own_program);
}

} // namespace troupe::os
