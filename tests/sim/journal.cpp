#include "tests/sim/journal.hpp"

#include "messages/text.hpp"
#include "runtime/base/invariant.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

class sim_journal final : public ports::journal_store {
 public:
  sim_journal(sim_disk& disk, host_ptr master)
      : disk_(disk), master_(std::move(master)), opened_as_(disk.openings) {}

  term opened_as() const override { return opened_as_; }
  bool taken_up() const override { return term{1} < opened_as_; }

  void append(messages::any_msg record, std::function<void(result<std::uint64_t>)> done) override {
    disk_.append(master_, std::move(record), std::move(done));
  }
  void read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) override {
    disk_.read_all(master_, std::move(done));
  }
  void compact(selection keep, std::function<void(result<void>)> done) override {
    disk_.compact(master_, std::move(keep), std::move(done));
  }

 private:
  sim_disk& disk_;
  host_ptr master_;
  term opened_as_;
};

std::shared_ptr<ports::journal_store> sim_disk::store_of(const host_ptr& master) {
  openings = openings.next();
  return std::make_shared<sim_journal>(*this, master);
}

void sim_disk::append(const host_ptr& master, messages::any_msg record,
                      std::function<void(result<std::uint64_t>)> done) {
  if (!master->alive())
    return;
  if (fault) {
    master->call_in(append_max,
                    [done = std::move(done), why = *fault] { done(tl::make_unexpected(why)); });
    return;
  }
  const auto raw = record.words().asChars();
  const auto ticket = ++tickets_;
  under_way_.push_back(write{std::string(raw.begin(), raw.end()), ticket});
  last_done_ = std::max(last_done_, world_.events.now() + world_.between(append_min, append_max));
  world_.events.at(last_done_, [this, ticket, master, done = std::move(done)] {
    if (under_way_.empty() || under_way_.front().ticket != ticket)
      return; // lost with its process
    become_durable(under_way_.front());
    under_way_.pop_front();
    master->call([done, index = dropped_ + records_.size()] { done(index); });
  });
}

void sim_disk::become_durable(const write& w) {
  auto record = messages::admit(w.bytes.data(), w.bytes.size());
  invariant(record.has_value(), "a record of ours was not admitted");
  records_.push_back(w.bytes);
  world_.write("master", "disk   " + messages::to_text(*record));
  world_.tell(&observer::recorded, *record);
}

void sim_disk::read_all(const host_ptr& master,
                        std::function<void(result<std::vector<messages::any_msg>>)> done) {
  // A store does one thing after the other: a reader sees what was asked to be written before.
  last_done_ = std::max(last_done_, world_.events.now() + world_.between(append_min, append_max));
  world_.events.at(last_done_, [this, master, done = std::move(done)] {
    master->call([done, all = all()] { done(all); });
  });
}

std::vector<messages::any_msg> sim_disk::all() const {
  std::vector<messages::any_msg> all;
  for (const auto& bytes : records_) {
    auto record = messages::admit(bytes.data(), bytes.size());
    invariant(record.has_value(), "a record on the disk is not one of ours");
    all.push_back(std::move(*record));
  }
  return all;
}

/// Takes no time of its own, so that it changes nothing about when other things happen.
void sim_disk::compact(const host_ptr& master, ports::journal_store::selection keep,
                       std::function<void(result<void>)> done) {
  last_done_ = std::max(last_done_, world_.events.now());
  world_.events.at(last_done_, [this, master, keep = std::move(keep), done = std::move(done)] {
    if (!master->alive())
      return;
    const auto kept = keep(all());
    dropped_ += records_.size() - kept.size();
    records_.clear();
    for (const auto& record : kept) {
      const auto raw = record.words().asChars();
      records_.emplace_back(raw.begin(), raw.end());
    }
    master->call([done] { done({}); });
  });
}

void sim_disk::process_ended() {
  const auto reached = world_.random.below(under_way_.size() + 1);
  for (std::size_t i = 0; i < reached; ++i)
    become_durable(under_way_[i]);
  under_way_.clear();
}

void sim_disk::lose() {
  invariant(under_way_.empty(), "a journal is lost between two masters");
  records_.clear();
  dropped_ = 0;
  world_.write("master", "! the journal is lost");
}

} // namespace troupe::sim
