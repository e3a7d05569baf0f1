#pragma once

#include "actors/operator/world.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <string>

namespace troupe::actors {
struct operator_addresses;
}

/// One ElasticJob: kube/job_core.hpp.
///
/// State: none that is not in the cluster; the informer tells it all.
namespace troupe::actors::operated_job {

using handle = sup::protocol<
    sup::tell<messages::msg<messages::JobObject>>, sup::tell<messages::msg<messages::PodObject>>,
    sup::tell<messages::msg<messages::PodGone>>, sup::tell<messages::msg<messages::PodsTold>>>;

/// `route`: what the informer calls it.
handle start(sup::context& ctx, const std::string& route, const operator_options& options,
             const operator_world& world, const operator_addresses& at);

} // namespace troupe::actors::operated_job
