#include "runtime/os/copies/target_links.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::ckpt {

void target_links::mailbox::put(event e) {
  {
    const std::lock_guard held(thread->lock);
    events.push_back(std::move(e));
    ++thread->wakes;
  }
  thread->woken.notify_all();
}

target_links::target_links(std::shared_ptr<ports::bulk_links> bulk,
                           std::shared_ptr<wake_point> thread)
    : bulk_(std::move(bulk)), mail_(std::make_shared<mailbox>(mailbox{std::move(thread), {}})) {}

target_links::~target_links() {
  drop_all_but({}, "the source of copies ends");
}

void target_links::dial(const std::string& address, const ports::endpoint& where) {
  if (links_.count(address) != 0)
    return;
  const auto number = ++last_;
  links_[address].number = number;
  bulk_->dial(where, ports::bulk_purpose::COPIES,
              [mail = mail_, number](result<ports::connection_ptr> answer) {
                if (answer)
                  mail->put({number, dialled{std::move(*answer)}});
                else
                  mail->put({number, lost{answer.error()}});
              });
}

bool target_links::is_connected(const std::string& address) const {
  const auto at = links_.find(address);
  return at != links_.end() && at->second.connection;
}

void target_links::send(const std::string& address, const messages::any_msg& m) {
  if (is_connected(address))
    (void)links_.at(address).connection->send(m);
}

target_links::news target_links::take(dialled what, const std::string& address, link& on) {
  on.connection = std::move(what.link);
  const auto number = on.number;
  on.connection->open({[mail = mail_, number](messages::any_msg m) {
                         mail->put({number, heard{std::move(m)}});
                       },
                       [mail = mail_, number](const ports::link_ending& how) {
                         mail->put({number, lost{{errc::closed, how.reason}}});
                       }});
  return {address, connected{}};
}

std::optional<target_links::news> target_links::next() {
  for (;;) {
    event e;
    {
      const std::lock_guard held(mail_->thread->lock);
      if (mail_->events.empty())
        return std::nullopt;
      e = std::move(mail_->events.front());
      mail_->events.pop_front();
    }
    const auto at = std::find_if(links_.begin(), links_.end(),
                                 [&e](const auto& l) { return l.second.number == e.link; });
    if (at == links_.end())
      continue; // it was dropped meanwhile, and a link that was still dialled is with this
    const auto address = at->first;
    if (auto* const answer = std::get_if<dialled>(&e.what))
      return take(std::move(*answer), address, at->second);
    if (auto* const message = std::get_if<heard>(&e.what)) {
      at->second.connection->taken();
      return news{address, std::move(*message)};
    }
    links_.erase(at);
    return news{address, std::get<lost>(std::move(e.what))};
  }
}

void target_links::drop(const std::string& address, const std::string& reason) {
  const auto gone = links_.extract(address);
  if (!gone.empty() && gone.mapped().connection)
    gone.mapped().connection->close(reason);
}

void target_links::drop_all_but(const std::set<std::string>& addresses, const std::string& reason) {
  std::vector<std::string> others;
  for (const auto& [address, l] : links_)
    if (addresses.count(address) == 0)
      others.push_back(address);
  for (const auto& address : others)
    drop(address, reason);
}

} // namespace troupe::ckpt
