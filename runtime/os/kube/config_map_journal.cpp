#include "runtime/os/kube/config_map_journal.hpp"

#include "kube/journal_core.hpp"
#include "kube/limits.hpp"
#include "messages/kinds.hpp"
#include "runtime/os/call_on.hpp"
#include "runtime/os/kube/api_client.hpp"
#include "runtime/os/kube/limits.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <variant>

namespace troupe::os {

namespace {

using core = kube::journal_core;
using records = std::vector<messages::any_msg>;

std::uint64_t unix_milliseconds() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

std::string bytes_of(const messages::any_msg& record) {
  const auto bytes = record.words().asBytes();
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

/// Their checksums were right.
result<records> admitted(const std::string& where, const std::vector<std::string>& all) {
  records out;
  for (const auto& bytes : all) {
    auto record = messages::admit(bytes.data(), bytes.size());
    if (!record)
      return failure(errc::invalid, fmt::format("journal '{}': record {} of those that are kept is "
                                                "no record: {}",
                                                where, out.size() + 1, record.error().what));
    out.push_back(std::move(*record));
  }
  return out;
}

core::options core_options(const config_map_journal::options& o, const journal_owner& mine) {
  core::options c;
  c.name_space = o.name_space;
  c.name = o.name;
  c.elastic_job = o.elastic_job;
  c.job = mine.job;
  c.uid = mine.uid;
  c.run = mine.run;
  c.owner = fmt::format("{}/{:016x}", o.host, o.number);
  c.least_term = unix_milliseconds();
  c.seed = o.number;
  c.patience = limits::config_map_patience;
  return c;
}

} // namespace

namespace {

std::set<std::string> nodes_of(messages::World::Reader world) {
  std::set<std::string> nodes;
  for (const auto member : world.getMembers())
    nodes.insert(member.getNode().cStr());
  return nodes;
}

} // namespace

/// Everything but `post`, `drain` and `open` runs on the thread.
class config_map_journal::shell {
 public:
  shell(const options& o, journal_owner mine, log::sink log)
      : where_("configmap:" + o.name), mine_(std::move(mine)), log_(std::move(log)),
        core_(core_options(o, mine_)) {}

  ~shell() {
    drain();
    call_on(io_, [this] {
      call_ = nullptr;
      timer_.cancel();
      perform(core_.ended());
    });
  }

  result<void> open(const caller_maker& calls) {
    auto made = calls(io_);
    if (!made)
      return tl::make_unexpected(made.error());
    auto outcome = outcome_.get_future();
    boost::asio::post(io_.context(), [this, &made] {
      call_ = std::move(*made);
      perform(core_.open(now()));
    });
    return outcome.get();
  }

  /// `what` asks the core under a new ticket, for which it keeps what is called back.
  void post(std::function<core::effects(core::ticket)> what) {
    {
      const std::lock_guard lock(mutex_);
      ++posted_;
    }
    boost::asio::post(io_.context(), [this, what = std::move(what)] {
      perform(what(++tickets_));
      const std::lock_guard lock(mutex_);
      --posted_;
      settle();
    });
  }

  void append(messages::any_msg record, std::function<void(result<std::uint64_t>)> done) {
    post([this, record = std::move(record), done = std::move(done)](core::ticket t) {
      appends_.emplace(t, done);
      return core_.append(now(), t, bytes_of(record), may_be_promised(record));
    });
  }

  void read_all(std::function<void(result<records>)> done) {
    post([this, done = std::move(done)](core::ticket t) {
      reads_.emplace(t, done);
      return core_.read(t);
    });
  }

  void compact(selection keep, std::function<void(result<void>)> done) {
    post([this, keep = std::move(keep), done = std::move(done)](core::ticket t) {
      compactions_.emplace(t, done);
      return core_.compact(t, [this, keep](std::vector<std::string> all) {
        auto read = admitted(where_, all);
        if (!read)
          return all; // the next read tells
        std::vector<std::string> kept;
        for (const auto& record : keep(std::move(*read)))
          kept.push_back(bytes_of(record));
        return kept;
      });
    });
  }

  term opened_as;
  bool taken_up = false;
  std::vector<log::event> notices;

 private:
  /// Whether the job may go on with it before it is written. A world of the nodes that the last one
  /// had is commanded by this master alone, since all of them are linked to it. One of other nodes
  /// may be one part of a network that is cut, beside another part with a master of its own.
  bool may_be_promised(const messages::any_msg& record) {
    if (!record.is<messages::GenerationSealed>())
      return record.is<messages::GenerationProposed>() || record.is<messages::RestartCounted>();
    auto nodes = nodes_of(record.as<messages::GenerationSealed>().read()->getWorld());
    return std::exchange(last_world_, nodes) == nodes;
  }

  static instant now() { return std::chrono::steady_clock::now(); }

  void drain() {
    std::unique_lock lock(mutex_);
    idle_.wait_for(lock, limits::journal_end_within, [this] { return posted_ == 0 && !is_busy_; });
  }

  /// With the lock.
  void settle() {
    is_busy_ = core_.is_busy();
    idle_.notify_all();
  }

  void go_on(const core::effects& effects) {
    perform(effects);
    const std::lock_guard lock(mutex_);
    settle();
  }

  void perform(const core::effects& effects) {
    for (const auto& e : effects)
      std::visit([this](const auto& one) { take(one); }, e);
    if (const auto at = core_.next_wakeup()) {
      timer_.expires_at(*at);
      timer_.async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled)
          go_on(core_.tick(now()));
      });
    }
  }

  void take(const core::call& c) {
    call_(c.what, [this, number = c.number](const kube::api_answer& a) {
      go_on(core_.answered(now(), number, a));
    });
  }
  void take(const core::note& n) { log_("kubernetes", n.event); }

  void take(const core::found& f) {
    journal_past past{f.image.job, f.image.run, {}, 0, f.image.uid};
    if (auto owned = check_owner(where_, past.job, mine_); !owned)
      return outcome_.set_value(owned);
    // Its operator has made it another's before that one's master could begin.
    if (!mine_.uid.empty() && !f.elastic_job_uid.empty() && f.elastic_job_uid != mine_.uid)
      return outcome_.set_value(failure(
          errc::refused, fmt::format("journal '{}': the ElasticJob was deleted, and another has "
                                     "its name and this journal; nothing in it was changed",
                                     where_)));
    const auto bytes = records_of(f.image);
    auto all = bytes ? admitted(where_, *bytes) : tl::make_unexpected(bytes.error());
    if (!all)
      return outcome_.set_value(tl::make_unexpected(all.error()));
    past.records = std::move(*all);
    auto opening = open_over(where_, past, mine_, f.as);
    notices = std::move(opening.notices);
    for (const auto& record : past.records)
      if (record.is<messages::GenerationSealed>())
        last_world_ = nodes_of(record.as<messages::GenerationSealed>().read()->getWorld());
    perform(core_.take(opening.anew));
  }
  void take(const core::opened& o) {
    opened_as = o.as;
    taken_up = o.taken_up;
    outcome_.set_value({});
  }
  void take(const core::not_opened& n) { outcome_.set_value(tl::make_unexpected(n.why)); }

  template<class Callback, class Answer>
  static void answer(std::map<core::ticket, Callback>& open, core::ticket which, Answer what) {
    auto found = open.extract(which);
    found.mapped()(std::move(what));
  }
  void take(const core::appended& a) { answer(appends_, a.which, a.index); }
  void take(const core::have_read& r) {
    answer(reads_, r.which,
           r.records ? admitted(where_, *r.records) : tl::make_unexpected(r.records.error()));
  }
  void take(const core::compacted& c) { answer(compactions_, c.which, c.outcome); }

  std::string where_;
  journal_owner mine_;
  log::sink log_;
  core core_;
  core::ticket tickets_ = 0;
  std::set<std::string> last_world_; ///< the nodes of the last that was appended
  std::map<core::ticket, std::function<void(result<std::uint64_t>)>> appends_;
  std::map<core::ticket, std::function<void(result<records>)>> reads_;
  std::map<core::ticket, std::function<void(result<void>)>> compactions_;
  std::promise<result<void>> outcome_; ///< of the opening
  caller call_;

  std::mutex mutex_; ///< of what follows
  std::condition_variable idle_;
  int posted_ = 0;
  bool is_busy_ = false;

  io_thread io_{"troupe-kube"};
  boost::asio::steady_timer timer_{io_.context()};
};

config_map_journal::caller_maker config_map_journal::calls_to(api_access access) {
  return [access = std::move(access)](io_thread& io) -> result<caller> {
    auto client = api_client::open(io, access);
    if (!client)
      return tl::make_unexpected(client.error());
    return caller([client = std::shared_ptr<api_client>(std::move(*client))](
                      const kube::api_request& what, api_client::done answered) {
      client->call(what, std::move(answered));
    });
  };
}

result<std::unique_ptr<config_map_journal>> config_map_journal::open(const caller_maker& calls,
                                                                     const options& o,
                                                                     const journal_owner& mine,
                                                                     log::sink log) {
  auto made = std::make_unique<shell>(o, mine, std::move(log));
  if (const auto opened = made->open(calls); !opened)
    return tl::make_unexpected(opened.error());
  return std::unique_ptr<config_map_journal>(new config_map_journal(std::move(made)));
}

config_map_journal::config_map_journal(std::unique_ptr<shell> s) : shell_(std::move(s)) {}

config_map_journal::~config_map_journal() = default;

const std::vector<log::event>& config_map_journal::notices() const {
  return shell_->notices;
}

term config_map_journal::opened_as() const {
  return shell_->opened_as;
}

bool config_map_journal::taken_up() const {
  return shell_->taken_up;
}

void config_map_journal::append(messages::any_msg record,
                                std::function<void(result<std::uint64_t>)> done) {
  shell_->append(std::move(record), std::move(done));
}

void config_map_journal::read_all(std::function<void(result<records>)> done) {
  shell_->read_all(std::move(done));
}

void config_map_journal::compact(selection keep, std::function<void(result<void>)> done) {
  shell_->compact(std::move(keep), std::move(done));
}

} // namespace troupe::os
