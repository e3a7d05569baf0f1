#include "tests/sim/bulk.hpp"

#include "ckpt/limits.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/link/bulk_peers.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::sim {

struct sim_bulk_links::reception {
  std::string job;
  std::map<ports::bulk_purpose, ports::transport::acceptor> acceptors;
  std::vector<std::weak_ptr<ports::connection>> peers; ///< as many as there are is for the judge

  void meet(ports::peer p) {
    const auto gone = [](const auto& peer) { return peer.expired(); };
    peers.erase(std::remove_if(peers.begin(), peers.end(), gone), peers.end());
    auto hello = p.hello.read();
    const auto found = acceptors.find(hello->getPurpose());
    const auto accept = found == acceptors.end() ? ports::transport::acceptor{} : found->second;
    const auto why = link::bulk_refusal(
        *hello, {job, static_cast<bool>(accept), peers.size(), limits::bulk_peers_max});
    if (why)
      return link::turn_away(p, "bulk_exchange", *why);
    peers.push_back(p.link);
    accept(std::move(p));
  }
};

sim_bulk_links::sim_bulk_links(network& of, const host_ptr& h, std::string job)
    : job_(std::move(job)), node_(h->name()), transport_(of.transport_of(h)),
      author_(node_ + "/bulk"), rate_(limits::copy_rate, limits::bulk_burst),
      reception_(std::make_shared<reception>()) {
  reception_->job = job_;
  auto opened = transport_->listen(
      {node_, port}, [reception = reception_](ports::peer p) { reception->meet(std::move(p)); });
  invariant(opened.has_value(), opened ? "" : opened.error().what);
  listener_ = std::move(*opened);
}

sim_bulk_links::~sim_bulk_links() {
  listener_.reset();
  reception_->acceptors.clear();
}

ports::endpoint sim_bulk_links::where() const {
  return listener_->where();
}

void sim_bulk_links::serve(ports::bulk_purpose purpose, ports::transport::acceptor accept) {
  // What the earlier one owns is destroyed when the table is in order again.
  std::swap(reception_->acceptors[purpose], accept);
}

void sim_bulk_links::dial(const ports::endpoint& where, ports::bulk_purpose purpose,
                          ports::transport::dialled done) {
  transport_->dial(where, link::bulk_hello(author_, job_, node_, purpose), std::move(done));
}

instant sim_bulk_links::may_send(instant now, std::uint64_t bytes) const {
  return rate_.may_send(now, bytes);
}

void sim_bulk_links::sent(instant now, std::uint64_t bytes) {
  rate_.sent(now, bytes);
}

} // namespace troupe::sim
