#pragma once

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace troupe::kube {

/// MindCluster's words about recovery on an ElasticJob: the labels `process-recover-enable` and
/// `fault-scheduling` of the job or else of its workers' template, and the job's annotation
/// `recover-strategy`. None of them chooses yet how the job recovers: a remark for each that is
/// there tells what follows, or that its value is not known.
std::vector<std::string> recovery_remarks(const boost::json::value& job);

} // namespace troupe::kube
