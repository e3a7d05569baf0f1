#include "launch/shell/inquiry.hpp"

#include "actors/limits.hpp"
#include "actors/tree_report.hpp"
#include "messages/limits.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <utility>

#include <unistd.h>

namespace troupe::launch {

namespace {

/// The master gives its nodes and its own actors their time first.
constexpr auto answer_within = 3 * limits::request_within;
constexpr auto scale_within = limits::scale_answer_within + limits::request_within;
constexpr auto stacks_within = limits::stacks_answer_within + limits::request_within;

messages::msg<messages::Hello> introduction(messages::author& author, inquiry::purpose what) {
  return author.write<messages::Hello>({}, [what](messages::Hello::Builder b) {
    b.setChangesJob(what == inquiry::purpose::changes);
    b.setNode(fmt::format("shell-{}", ::getpid()));
    b.setRole(messages::Hello::Role::SHELL);
  });
}

} // namespace

/// What has happened on one link. Outlives the inquiry that has given the link up.
struct inquiry::events {
  std::mutex mutex;
  std::optional<result<ports::connection_ptr>> dialled;
  std::deque<messages::any_msg> heard;
  std::optional<std::string> closed;

  template<class Take>
  auto with(Take take) {
    const std::lock_guard lock(mutex);
    return take(*this);
  }
};

inquiry::inquiry(std::shared_ptr<ports::transport> transport, ports::endpoint master,
                 std::shared_ptr<wake_up> wake, std::function<bool()> stopped, purpose what)
    : transport_(std::move(transport)), master_(std::move(master)), wake_(std::move(wake)),
      stopped_(std::move(stopped)), purpose_(what) {}

inquiry::~inquiry() {
  drop_link("answered");
}

void inquiry::drop_link(const std::string& why) {
  if (link_)
    link_->close(why);
  link_.reset();
  events_.reset();
}

bool inquiry::wait(duration within, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  wake_->wait_until(deadline, [&] { return stopped_() || done(); });
  return done();
}

result<void> inquiry::link() {
  if (link_)
    return {};
  auto happened = std::make_shared<events>();
  transport_->dial(master_, introduction(author_, purpose_), [happened, wake = wake_](auto r) {
    happened->with([&r](events& e) { e.dialled = std::move(r); });
    wake->call();
  });
  const auto dialled = [&] {
    return happened->with([](events& e) { return e.dialled.has_value(); });
  };
  if (!wait(limits::dial_within, dialled))
    return failure(errc::unavailable, "it could not be reached in time");
  auto link = happened->with([](events& e) { return std::move(*e.dialled); });
  if (!link)
    return tl::make_unexpected(link.error());
  link_ = std::move(*link);
  events_ = happened;
  link_->open({[happened, wake = wake_](messages::any_msg m) {
                 happened->with([&m](events& e) { e.heard.push_back(std::move(m)); });
                 wake->call();
               },
               [happened, wake = wake_](const ports::link_ending& end) {
                 happened->with([&end](events& e) { e.closed = end.reason; });
                 wake->call();
               }});
  // Only a master welcomes a shell.
  const auto told = [&] {
    return happened->with([](events& e) { return !e.heard.empty() || e.closed; });
  };
  if (wait(limits::request_within, told)) {
    const auto first = happened->with([](events& e) {
      return e.heard.empty() ? messages::any_msg() : std::exchange(e.heard, {}).front();
    });
    if (first.is<messages::Welcome>()) {
      link_->taken();
      job_ = first.as<messages::Welcome>().read()->getJob().cStr();
      return {};
    }
    const auto why = first.is<messages::Refused>()
                         ? std::string(first.as<messages::Refused>().read()->getReason().cStr())
                         : std::string("what listens there is not a master");
    drop_link("not welcome");
    return failure(errc::refused, why);
  }
  drop_link("no welcome");
  return failure(errc::unavailable, "it did not say in time what it is");
}

template<class Answer, class Question>
result<messages::msg<Answer>> inquiry::ask(const messages::msg<Question>& question,
                                           duration within) {
  if (auto linked = link(); !linked)
    return tl::make_unexpected(linked.error());
  const auto number = ++questions_;
  if (auto sent = link_->send(messages::with_correlation(question, number).any()); !sent) {
    drop_link("broken");
    return tl::make_unexpected(sent.error());
  }
  std::optional<messages::msg<Answer>> answer;
  const auto answered = [&] {
    const auto heard = events_->with([](events& e) { return std::exchange(e.heard, {}); });
    for (const messages::any_msg& m : heard) {
      link_->taken();
      if (m.is<Answer>() && m.envelope().correlation == number)
        answer = m.as<Answer>();
    }
    return answer || events_->with([](events& e) { return e.closed.has_value(); });
  };
  const bool in_time = wait(within, answered);
  if (answer)
    return *answer;
  const auto why = events_->with([](events& e) { return e.closed.value_or(""); });
  drop_link("no answer");
  return failure(errc::unavailable, in_time ? why : "it did not answer in time");
}

result<sup::node_report> inquiry::ask_tree(const std::string& node) {
  const auto answer = ask<messages::TreeReport>(
      author_.write<messages::TreeRequest>({}, [&node](auto b) { b.setNode(node); }),
      answer_within);
  if (!answer)
    return tl::make_unexpected(answer.error());
  auto report = answer->read();
  if (report->getRoots().size() == 0)
    return failure(errc::invalid, "its answer is empty");
  auto tree = actors::read_tree(report->getRoots()[0], limits::nesting_max);
  if (!tree)
    return failure(errc::invalid, "its answer is nested too deeply");
  return std::move(*tree);
}

result<messages::msg<messages::StacksReport>> inquiry::ask_stacks() {
  return ask<messages::StacksReport>(author_.write<messages::StacksRequest>({}, [](auto) {}),
                                     stacks_within);
}

result<messages::msg<messages::ScaleReport>> inquiry::ask_scale(std::uint32_t nodes_min,
                                                                std::uint32_t nodes_max) {
  return ask<messages::ScaleReport>(
      author_.write<messages::ScaleRequest>({},
                                            [&](auto b) {
                                              b.setNodesMin(nodes_min);
                                              b.setNodesMax(nodes_max);
                                            }),
      scale_within);
}

} // namespace troupe::launch
