#pragma once

#include <boost/json/value.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Reading objects of the API, whatever is missing or of another type in them.
namespace troupe::kube {

/// Nothing: it is no JSON.
std::optional<boost::json::value> parsed(const std::string& body);

/// The value at a path of members; null if there is none.
const boost::json::value* member(const boost::json::value& of,
                                 std::initializer_list<const char*> path);

/// Empty if there is no text at the path.
std::string text(const boost::json::value& of, std::initializer_list<const char*> path);

std::optional<std::int64_t> number(const boost::json::value& of,
                                   std::initializer_list<const char*> path);

bool is_true(const boost::json::value& of, std::initializer_list<const char*> path);

/// The member as an object or a list, which it becomes if it is anything else.
boost::json::object& object_at(boost::json::object& of, const char* name);
boost::json::array& array_at(boost::json::object& of, const char* name);

/// Empty if there is no list at the path.
const boost::json::array& items(const boost::json::value& of,
                                std::initializer_list<const char*> path);

/// The value of a label or an annotation, whose key may have any character.
std::string label(const boost::json::value& of, const std::string& key);
std::string annotation(const boost::json::value& of, const std::string& key);

/// The uid of the owner that manages it; empty: it has none.
std::string controller_of(const boost::json::value& of);

/// That uid, if the owner is an ElasticJob.
std::string elastic_job_of(const boost::json::value& of);

/// "namespace/name", or "name" of what is in no namespace.
std::string key_of(const boost::json::value& of);

/// A value that taints and labels may have: other characters become '-', at most 63.
std::string as_label(const std::string& text);

} // namespace troupe::kube
