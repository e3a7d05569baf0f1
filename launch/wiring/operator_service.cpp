#include "launch/wiring/operator_service.hpp"

#include "launch/options/version.hpp"
#include "metrics/operator_metrics.hpp"

#include <fmt/format.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

namespace troupe::launch {

namespace {

instant clock_now() {
  return std::chrono::steady_clock::now();
}

constexpr auto probe_content_type = "text/plain; charset=utf-8";

} // namespace

struct operator_service::counts {
  template<class Use>
  auto with(Use use) {
    const std::lock_guard lock(mutex);
    return use(metrics);
  }
  bool is_alive() {
    return with([](const auto& m) { return m.is_alive(clock_now()); });
  }
  bool is_ready() {
    return with([](const auto& m) { return m.is_ready(clock_now()); });
  }

  std::mutex mutex; ///< of what follows
  metrics::operator_metrics metrics{version_number(), clock_now()};
};

namespace {

/// Hands each request on, and counts it when it is over.
template<class Counts>
class counted_api final : public kube::api_server {
 public:
  counted_api(std::shared_ptr<kube::api_server> to, std::shared_ptr<Counts> counts)
      : to_(std::move(to)), counts_(std::move(counts)) {}

  void call(kube::api_request what, on_answer answered) override {
    auto counted = begun(what.method, std::move(answered));
    to_->call(std::move(what), std::move(counted));
  }
  std::uint64_t watch(kube::api_request what, on_line line, on_answer ended) override {
    return to_->watch(std::move(what), std::move(line), begun("WATCH", std::move(ended)));
  }
  void cut(std::uint64_t watch) override { to_->cut(watch); }

 private:
  on_answer begun(const std::string& method, on_answer then) {
    const auto at = clock_now();
    counts_->with([&](auto& m) { m.asked(at); });
    return [counts = counts_, method, at, then = std::move(then)](const kube::api_answer& a) {
      counts->with([&](auto& m) { m.answered(clock_now(), method, a.status, clock_now() - at); });
      then(a);
    };
  }

  std::shared_ptr<kube::api_server> to_;
  std::shared_ptr<Counts> counts_;
};

} // namespace

operator_service::operator_service() : counts_(std::make_shared<counts>()) {}
operator_service::~operator_service() = default;

log::sink operator_service::counting(log::sink to) const {
  return [to = std::move(to), counts = counts_](const std::string& from, const log::event& e) {
    counts->with([&](auto& m) { m.observe(e); });
    to(from, e);
  };
}

std::shared_ptr<kube::api_server>
operator_service::counting(std::shared_ptr<kube::api_server> to) const {
  return std::make_shared<counted_api<counts>>(std::move(to), counts_);
}

result<void> operator_service::serve(const std::optional<ports::endpoint>& where,
                                     const log::sink& log) {
  if (!where)
    return {};
  auto server = os::text_server::open(
      *where,
      {{"/metrics", metrics::content_type,
        [of = counts_] { return of->with([](const auto& m) { return m.text(); }); }},
       {"/healthz", probe_content_type,
        [of = counts_] {
          return std::string(of->is_alive() ? "ok\n" : "its actors stand still\n");
        },
        nullptr, [of = counts_] { return of->is_alive(); }},
       {"/readyz", probe_content_type,
        [of = counts_] {
          return std::string(of->is_ready() ? "ok\n" : "the API server does not answer it well\n");
        },
        nullptr, [of = counts_] { return of->is_ready(); }}});
  if (!server)
    return failure(errc::refused, "--metrics-listen: " + server.error().what);
  server_ = std::move(*server);
  const auto at = ports::to_string(server_->where());
  log("metrics", {log::level::info,
                  "metrics_served",
                  fmt::format("metrics are at http://{0}/metrics, probes at http://{0}/healthz and "
                              "http://{0}/readyz",
                              at),
                  {{"endpoint", at}}});
  return {};
}

} // namespace troupe::launch
