#pragma once

#include "kube/api.hpp"
#include "runtime/base/time.hpp"

#include <boost/json/value.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What a simulated API server needs of paths, selectors and objects.
namespace troupe::testing {

/// What a request is about.
struct place {
  std::string kind;     ///< the collection, without its namespace: "/api/v1/pods"
  std::string resource; ///< "pods"
  std::string name_space, name, subresource;
  std::map<std::string, std::string> query;

  std::string key() const { return name_space.empty() ? name : name_space + "/" + name; }
  /// Empty if it is missing.
  std::string asked(const std::string& key) const;
};

/// Nothing: no API is there.
std::optional<place> place_of(const std::string& target);

/// labelSelector and fieldSelector, as equalities: "a=b,c=d".
class selection {
 public:
  selection() = default;
  explicit selection(const place& p);
  bool matches(const boost::json::value& object) const;

 private:
  std::vector<std::pair<std::string, std::string>> labels_, fields_;
};

kube::api_answer refused(unsigned status, const std::string& reason, const std::string& message);
kube::api_answer answered(unsigned status, const boost::json::value& body);

/// What a server refuses (422) about metadata, in words.
std::optional<std::string> wrong_metadata(const boost::json::value& object);

/// RFC 3339.
std::string timestamp(instant at);

boost::json::object& metadata_of(boost::json::value& object);
bool has_finalizers(const boost::json::value& object);
bool is_deleted(const boost::json::value& object);
/// A pod that no kubelet has to end before it is removed.
bool needs_no_grace(const place& p, const boost::json::value& object);

} // namespace troupe::testing
