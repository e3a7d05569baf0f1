#include "runtime/os/probe/nccl_group.hpp"

#include "probe/collective_values.hpp"
#include "probe/group_probe.hpp"
#include "runtime/os/probe/cuda_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

namespace troupe::os {

namespace {

using namespace cuda;
using clock = std::chrono::steady_clock;

constexpr std::size_t element = sizeof(float);

class nccl_group final : public probe::device_group {
 public:
  nccl_group(const cuda_driver& driver, const nccl& library, const std::vector<context>& devices,
             const probe::group_place& place)
      : driver_(driver), nccl_(library), place_(place), values_(place.ranks) {
    for (const auto its_context : devices)
      members_.push_back(std::make_unique<member>(driver, its_context));
  }
  ~nccl_group() override;
  nccl_group(const nccl_group&) = delete;
  nccl_group& operator=(const nccl_group&) = delete;

  result<void> join(const nccl_unique_id& id);
  result<duration> all_reduce(std::uint64_t bytes, std::uint32_t repeats) override;
  result<duration> all_gather(std::uint64_t bytes, std::uint32_t repeats) override;

 private:
  struct member {
    member(const cuda_driver& driver, context c) : its_context(c), given(driver), taken(driver) {}

    context its_context;
    nccl_communicator communicator = nullptr;
    device_memory given, taken;
  };
  /// Calls one function of NCCL for a member.
  using call = std::function<nccl_result(member&)>;

  std::uint32_t rank_of(std::size_t index) const {
    return place_.first_rank + static_cast<std::uint32_t>(index);
  }
  result<void> fail(result<void> why) {
    failed_ = failed_ || !why;
    return why;
  }
  result<void> enter(const member& m) const {
    return driver_.check(driver_.set_current(m.its_context), "a device cannot be used");
  }
  result<void> prepare(std::size_t index, const std::vector<float>& nothing);
  result<void> for_all(const std::string& what, const call& one);
  result<void> wait(const std::string& what);
  result<duration> timed(const std::string& what, std::uint32_t repeats, const call& one);
  result<void> forget(std::size_t count);
  using right = std::function<bool(const float*)>;
  result<void> compare(const char* collective, std::uint64_t bytes, std::size_t count,
                       const right& is_right);

  const cuda_driver& driver_;
  const nccl& nccl_;
  const probe::group_place place_;
  const probe::collective_values values_;
  std::vector<std::unique_ptr<member>> members_;
  bool failed_ = false;
};

/// To leave waits for what is still on its way to others. Where something has failed that may take
/// for good.
nccl_group::~nccl_group() {
  for (const auto& m : members_)
    if (m->communicator != nullptr && driver_.set_current(m->its_context) == success)
      (void)(failed_ ? nccl_.abort : nccl_.leave)(m->communicator);
}

/// All calls of one process belong together: one by one each would wait for the others' for good.
result<void> nccl_group::for_all(const std::string& what, const call& one) {
  if (const auto begun = nccl_.check(nccl_.begin_calls(), what); !begun)
    return fail(begun);
  result<void> outcome;
  for (const auto& m : members_) {
    outcome = enter(*m);
    if (outcome)
      outcome = nccl_.check(one(*m), what);
    if (!outcome)
      break;
  }
  const auto ended = nccl_.check(nccl_.end_calls(), what);
  return fail(outcome ? ended : outcome);
}

std::size_t elements_of_block(std::uint64_t bytes, std::uint32_t ranks) {
  const auto all = std::max<std::size_t>(bytes / element, 1);
  return (all + ranks - 1) / ranks;
}

result<void> nccl_group::prepare(std::size_t index, const std::vector<float>& nothing) {
  auto& m = *members_[index];
  const auto own = values_.own(rank_of(index), place_.bytes_max / element);
  auto ready = enter(m);
  if (ready)
    ready = driver_.check(m.given.allocate(own.size() * element), "its memory is not to be had");
  if (ready)
    ready =
        driver_.check(m.taken.allocate(nothing.size() * element), "its memory is not to be had");
  if (ready)
    ready = driver_.check(driver_.to_device(m.given.at(), own.data(), own.size() * element),
                          "nothing can be copied to it");
  return ready;
}

result<void> nccl_group::join(const nccl_unique_id& id) {
  const std::vector<float> most(
      std::max<std::size_t>(place_.bytes_max / element,
                            place_.ranks * elements_of_block(place_.bytes_max, place_.ranks)));
  for (std::size_t index = 0; index < members_.size(); ++index)
    if (const auto ready = prepare(index, most); !ready)
      return fail(failure(errc::refused, fmt::format("device {}: {}", index, ready.error().what)));
  auto rank = static_cast<int>(place_.first_rank);
  return for_all(fmt::format("the devices could not join {} others", place_.ranks - place_.devices),
                 [&](member& m) {
                   return nccl_.join(&m.communicator, static_cast<int>(place_.ranks), id, rank++);
                 });
}

/// Until all devices are done. One that waits for another node's, which is lost, does so for good;
/// the library may have noticed.
result<void> nccl_group::wait(const std::string& what) {
  for (const auto& m : members_) {
    if (auto entered = enter(*m); !entered)
      return fail(entered);
    for (;;) {
      const auto code = driver_.ask_stream(nullptr);
      if (code == success)
        break;
      if (code != not_ready)
        return fail(driver_.check(code, what.c_str()));
      for (const auto& each : members_) {
        nccl_result found = nccl_success;
        const auto asked = nccl_.failed_meanwhile(each->communicator, &found);
        const auto worse = asked == nccl_success ? found : asked;
        if (worse != nccl_in_progress)
          if (auto none = nccl_.check(worse, what); !none)
            return fail(none);
      }
      std::this_thread::yield();
    }
  }
  return {};
}

/// The first one makes connections, and is not measured.
result<duration> nccl_group::timed(const std::string& what, std::uint32_t repeats,
                                   const call& one) {
  clock::time_point began;
  for (std::uint32_t n = 0; n <= repeats; ++n) {
    if (const auto called = for_all(what, one); !called)
      return tl::make_unexpected(called.error());
    if (n > 0 && n < repeats)
      continue;
    if (const auto waited = wait(what); !waited)
      return tl::make_unexpected(waited.error());
    if (n == 0)
      began = clock::now();
  }
  return std::chrono::duration_cast<duration>(clock::now() - began) / std::max(repeats, 1u);
}

/// What an earlier collective has left would pass for a result.
result<void> nccl_group::forget(std::size_t count) {
  const std::vector<float> nothing(count, -1);
  for (const auto& m : members_) {
    auto done = enter(*m);
    if (done)
      done = driver_.check(driver_.to_device(m->taken.at(), nothing.data(), count * element),
                           "nothing can be copied to a device");
    if (!done)
      return fail(done);
  }
  return {};
}

result<void> nccl_group::compare(const char* collective, std::uint64_t bytes, std::size_t count,
                                 const right& is_right) {
  std::vector<float> out(count);
  for (std::size_t index = 0; index < members_.size(); ++index) {
    auto done = enter(*members_[index]);
    if (done)
      done =
          driver_.check(driver_.to_host(out.data(), members_[index]->taken.at(), count * element),
                        "nothing can be copied from a device");
    if (!done)
      return fail(done);
    if (!is_right(out.data()))
      return fail(failure(errc::refused, fmt::format("device {}: {}", index,
                                                     probe::wrong_values(collective, bytes))));
  }
  return {};
}

result<duration> nccl_group::all_reduce(std::uint64_t bytes, std::uint32_t repeats) {
  const auto count = bytes / element;
  if (const auto forgotten = forget(count); !forgotten)
    return tl::make_unexpected(forgotten.error());
  const auto took =
      timed(fmt::format("an all-reduce of {} bytes has failed", bytes), repeats, [&](member& m) {
        return nccl_.all_reduce(m.given.address(), m.taken.address(), count, nccl_float, nccl_sum,
                                m.communicator, nullptr);
      });
  if (!took)
    return took;
  const auto compared = compare("all-reduce", bytes, count,
                                [&](const float* out) { return values_.is_reduced(out, count); });
  return compared ? took : tl::make_unexpected(compared.error());
}

/// Blocks are of one size, so a few elements more may come out than are asked for.
result<duration> nccl_group::all_gather(std::uint64_t bytes, std::uint32_t repeats) {
  const auto each = elements_of_block(bytes, place_.ranks);
  if (const auto forgotten = forget(each * place_.ranks); !forgotten)
    return tl::make_unexpected(forgotten.error());
  const auto took =
      timed(fmt::format("an all-gather of {} bytes has failed", bytes), repeats, [&](member& m) {
        return nccl_.all_gather(m.given.address(), m.taken.address(), each, nccl_float,
                                m.communicator, nullptr);
      });
  if (!took)
    return took;
  const auto compared = compare("all-gather", bytes, each * place_.ranks,
                                [&](const float* out) { return values_.is_gathered(out, each); });
  return compared ? took : tl::make_unexpected(compared.error());
}

} // namespace

result<std::unique_ptr<probe::device_group>>
join_nccl_group(const cuda_driver& driver, const nccl& library, const std::vector<context>& devices,
                const std::string& key, const probe::group_place& place) {
  nccl_unique_id id;
  if (key.size() != sizeof id.internal)
    return failure(errc::refused, fmt::format("a key of NCCL has {} bytes, and this one has {}",
                                              sizeof id.internal, key.size()));
  std::memcpy(id.internal, key.data(), key.size());
  auto group = std::make_unique<nccl_group>(driver, library, devices, place);
  if (const auto joined = group->join(id); !joined)
    return tl::make_unexpected(joined.error());
  return std::unique_ptr<probe::device_group>(std::move(group));
}

result<std::string> make_nccl_key(const nccl& library) {
  if (const auto usable = library.usable(); !usable)
    return tl::make_unexpected(usable.error());
  nccl_unique_id id{};
  if (const auto made = library.check(library.make_id(&id), "no key for the group could be made");
      !made)
    return tl::make_unexpected(made.error());
  return std::string(id.internal, sizeof id.internal);
}

} // namespace troupe::os
