#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Prometheus' text format, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/).
namespace troupe::metrics {

/// What a monitoring system reads it in.
inline constexpr auto content_type = "text/plain; version=0.0.4; charset=utf-8";

using labels = std::vector<std::pair<std::string, std::string>>;

/// Durations, counted by the smallest bound of a fixed row that is not below them.
class duration_histogram {
 public:
  void observe(double seconds);

 private:
  friend class exposition;
  std::vector<std::uint64_t> counts_; ///< of each bound and of those beyond all; empty: none yet
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

/// Writes families one after the other. Names are the caller's and are not checked; values of
/// labels may be any text.
class exposition {
 public:
  /// These stand at each sample.
  explicit exposition(labels of_all) : of_all_(std::move(of_all)) {}

  void counter(const std::string& name, const std::string& help) { begin(name, help, "counter"); }
  void gauge(const std::string& name, const std::string& help) { begin(name, help, "gauge"); }
  void histogram(const std::string& name, const std::string& help) {
    begin(name, help, "histogram");
  }

  // Of the family that was begun last.
  void sample(double value, const labels& of_this = {}) { write("", value, of_this); }
  void sample(const duration_histogram& h, const labels& of_this = {});

  /// A family of one sample.
  void counter(const std::string& name, const std::string& help, double value) {
    counter(name, help);
    sample(value);
  }
  void gauge(const std::string& name, const std::string& help, double value) {
    gauge(name, help);
    sample(value);
  }

  const std::string& text() const { return text_; }

 private:
  void begin(const std::string& name, const std::string& help, const char* type);
  void write(const char* suffix, double value, const labels& of_this);

  labels of_all_;
  std::string family_, text_;
};

} // namespace troupe::metrics
