#include "runtime/sup/spec.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/sup/tree_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace troupe::sup {

namespace {

using detail::node;

tree make_supervisor(std::string id, budget limit, node::kind is, strategy how,
                     std::vector<tree> children) {
  auto n = std::make_shared<node>();
  n->id = std::move(id);
  n->is = is;
  n->how = how;
  n->restarts = limit;
  n->children = std::move(children);
  return tree(std::move(n));
}

template<class Change>
tree changed(const node& from, Change change) {
  auto n = std::make_shared<node>(from);
  change(*n);
  return tree(std::move(n));
}

result<void> validate_id(const std::string& id, const std::string& where) {
  if (id.empty())
    return failure(errc::invalid, where + ": a child without an id");
  if (id.size() > limits::name_max)
    return failure(errc::invalid,
                   where + ": an id of " + std::to_string(id.size()) + " characters");
  if (id.find('/') != std::string::npos)
    return failure(errc::invalid, where + ": the id " + id + " contains a slash");
  return {};
}

result<void> validate_node(const node& n, const std::string& above) {
  if (auto id = validate_id(n.id, above.empty() ? "the root" : above); !id)
    return id;
  const std::string path = above.empty() ? n.id : above + "/" + n.id;
  if (n.is == node::kind::worker) {
    if (!n.start)
      return failure(errc::invalid, path + ": a worker without a starter");
    if (n.limit.limit <= duration::zero())
      return failure(errc::invalid, path + ": no time to stop");
    return {};
  }
  if (n.restarts.period <= duration::zero() && n.how != strategy::one_fate)
    return failure(errc::invalid, path + ": a restart budget without a period");
  if (n.restarts.restarts > limits::restarts_max)
    return failure(errc::invalid, path + ": a restart budget without an end");
  if (n.children.size() > limits::children_max)
    return failure(errc::invalid, path + ": too many children");
  std::set<std::string> ids;
  for (const tree& child : n.children) {
    if (auto below = validate_node(child.root(), path); !below)
      return below;
    if (!ids.insert(child.id()).second)
      return failure(errc::invalid, path + ": two children called " + child.id());
  }
  return {};
}

void outline_into(std::string& out, const node& n, unsigned depth, bool is_root) {
  out += fmt::format("{:{}}{} {}", "", depth * 2, n.id, detail::kind_name(n));
  if (!is_root)
    out += fmt::format(" {}", to_string(n.when));
  out += '\n';
  for (const tree& child : n.children)
    outline_into(out, child.root(), depth + 1, false);
}

} // namespace

namespace detail {

tree make_worker(std::string id, restart when, stop_within limit, starter start,
                 std::function<void()> forget) {
  auto n = std::make_shared<node>();
  n->id = std::move(id);
  n->when = when;
  n->limit = limit;
  n->start = std::move(start);
  n->forget = std::move(forget);
  return tree(std::move(n));
}

const char* kind_name(const node& n) {
  if (n.is == node::kind::worker)
    return "worker";
  return n.is == node::kind::dynamic ? "dynamic" : to_string(n.how);
}

unsigned height(const node& n) {
  if (n.is == node::kind::worker)
    return 0;
  unsigned below = 0;
  for (const tree& child : n.children)
    below = std::max(below, height(child.root()));
  if (n.is == node::kind::dynamic)
    below = std::max(below, 1u);
  return below + 1;
}

result<void> validate_dynamic_child(const tree& t) {
  return validate_node(t.root(), "dynamic");
}

} // namespace detail

const std::string& tree::id() const {
  return node_->id;
}

tree tree::as(restart when) const {
  return changed(*node_, [when](node& n) { n.when = when; });
}

tree tree::at(address<supervisor_handle> where) const {
  invariant(node_->is != node::kind::worker, "a worker's address is given with its starter");
  return changed(*node_, [&where](node& n) {
    // A dynamic supervisor already has an address, of its own wider protocol; both are kept.
    n.bind = [where, also = n.bind](const caf::actor& a) {
      where.bind(caf::actor_cast<supervisor_handle>(a));
      if (also)
        also(a);
    };
    n.forget = [where, also = n.forget] {
      where.clear();
      if (also)
        also();
    };
  });
}

tree one_for_one(std::string id, budget limit, std::vector<tree> children) {
  return make_supervisor(std::move(id), limit, node::kind::fixed, strategy::one_for_one,
                         std::move(children));
}

tree one_for_all(std::string id, budget limit, std::vector<tree> children) {
  return make_supervisor(std::move(id), limit, node::kind::fixed, strategy::one_for_all,
                         std::move(children));
}

tree rest_for_one(std::string id, budget limit, std::vector<tree> children) {
  return make_supervisor(std::move(id), limit, node::kind::fixed, strategy::rest_for_one,
                         std::move(children));
}

tree one_fate(std::string id, std::vector<tree> children) {
  return make_supervisor(std::move(id), {}, node::kind::fixed, strategy::one_fate,
                         std::move(children));
}

tree dynamic(std::string id, budget limit, address<dynamic_handle> where,
             std::function<void(const child_end&)> on_end) {
  const tree t =
      make_supervisor(std::move(id), limit, node::kind::dynamic, strategy::one_for_one, {});
  return changed(t.root(), [&](node& n) {
    n.on_end = std::move(on_end);
    n.bind = [where](const caf::actor& a) { where.bind(caf::actor_cast<dynamic_handle>(a)); };
    n.forget = [where] { where.clear(); };
  });
}

result<void> validate(const tree& t) {
  if (t.root().is == node::kind::worker)
    return failure(errc::invalid, t.id() + ": a tree begins with a supervisor");
  return validate_node(t.root(), "");
}

std::string outline(const tree& t) {
  std::string out;
  outline_into(out, t.root(), 0, true);
  return out;
}

} // namespace troupe::sup
