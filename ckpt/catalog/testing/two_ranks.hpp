#pragma once

#include "ckpt/catalog/ddp_layout.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/ports/testing/memory_storage.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace troupe::ckpt::testing {

/// A job of two ranks that saves to one place. Each save has the next number, as the ranks count.
struct two_ranks {
  ports::testing::memory_place place;
  ports::testing::memory_storage storage{place};
  retention keep;
  framework whose = framework::ddp;
  save_id last{generation{1}, 0};

  save_id next() { return {last.made_by, ++last.number}; }

  static std::string content(std::uint64_t step, global_rank rank, const std::string& salt) {
    return "rank " + std::to_string(rank) + " at step " + std::to_string(step) + salt;
  }
  step_catalog opened(node_name only_of = {}) {
    auto catalog = step_catalog::open(storage, std::move(only_of));
    REQUIRE_MESSAGE(catalog, catalog.error().what);
    return std::move(*catalog);
  }
  result<void> begin(step_catalog& catalog, std::uint64_t step) {
    return catalog.begin(step, ddp_layout::directory(step), next());
  }
  /// The shards of both ranks, by the save that was begun last, and what the manifest says of them.
  manifest put(std::uint64_t step, const std::string& salt = "") {
    manifest m;
    m.step = step;
    m.made_by = last.made_by;
    m.save = last.number;
    m.world_size = 2;
    m.layout = ddp_layout::name;
    for (global_rank rank = 0; rank < 2; ++rank) {
      const auto name = ddp_layout::shard(rank);
      const auto text = content(step, rank, salt);
      const auto put = storage.put(ddp_layout::directory(step) + "/" + name, ports::bytes_of(text),
                                   ports::never_stops);
      REQUIRE(put);
      m.shards.push_back({name, *put, rank == 0 ? "node-a" : "node-b"});
    }
    return m;
  }
  result<void> commit(step_catalog& catalog, const manifest& m) const {
    return catalog.commit(m, whose);
  }
  /// Without retention.
  result<void> complete(step_catalog& catalog, std::uint64_t step, const std::string& salt = "") {
    return begin(catalog, step).and_then([&] { return commit(catalog, put(step, salt)); });
  }
  /// With it; all saves before this one have ended.
  result<retained> save(step_catalog& catalog, std::uint64_t step, const std::string& salt = "") {
    if (auto done = complete(catalog, step, salt); !done)
      return tl::make_unexpected(done.error());
    return catalog.retain(keep, {last, last});
  }
  std::string files() {
    std::string all;
    for (const auto& [name, bytes] : place.files)
      all += name + " ";
    return all;
  }
  /// The operation on this name fails, until place.fault is taken away.
  void fail(const std::string& operation, const std::string& at, const std::string& why = "full") {
    place.fault = [operation, at, why](const char* what,
                                       const std::string& name) -> std::optional<error> {
      if (what == operation && name == at)
        return error{errc::unavailable, why};
      return std::nullopt;
    };
  }
  /// Another process does this right before the operation on this name, once.
  void before(const std::string& operation, const std::string& at, std::function<void()> work) {
    place.fault = [this, operation, at, work = std::move(work)](
                      const char* what, const std::string& name) -> std::optional<error> {
      if (what == operation && name == at) {
        const auto others = work; // the next line removes this function
        place.fault = nullptr;
        others();
      }
      return std::nullopt;
    };
  }
};

inline std::uint64_t newest_of(const step_catalog& catalog) {
  return catalog.newest() == nullptr ? 0 : catalog.newest()->step;
}

/// Of a call that must fail.
template<class T>
error error_of(const result<T>& how) {
  REQUIRE_FALSE(how);
  return how.error();
}

} // namespace troupe::ckpt::testing
