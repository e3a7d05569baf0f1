#include "tests/storage/power_cut_disk.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>

namespace troupe::testing {

namespace {

constexpr std::size_t sector = 512;
constexpr std::uint64_t direct_alignment = 4'096;

} // namespace

const char* to_string(mishap m) {
  constexpr const char* names[] = {"none",     "kill",     "power_cut",
                                   "no_space", "io_error", "short_write"};
  return names[static_cast<std::size_t>(m)];
}

// ---- the disk ----------------------------------------------------------------------------------

void power_cut_disk::plan(mishap what, std::uint64_t at_call) {
  planned_ = what;
  at_call_ = at_call;
  calls_ = 0;
}

int power_cut_disk::step(bool may_lack_space, bool may_fail) {
  if (calls_++ < at_call_)
    return 0;
  const auto what = planned_;
  const bool fits = what == mishap::kill || what == mishap::power_cut ||
                    (what == mishap::no_space && may_lack_space) ||
                    (what == mishap::io_error && may_fail);
  if (!fits)
    return 0;
  planned_ = mishap::none;
  if (what == mishap::no_space)
    return -ENOSPC;
  if (what == mishap::io_error)
    return -EIO;
  if (what == mishap::power_cut)
    cut_power();
  throw process_ended();
}

bool power_cut_disk::step_short() {
  if (planned_ != mishap::short_write || calls_ <= at_call_)
    return false;
  planned_ = mishap::none;
  return true;
}

void power_cut_disk::cut_power() {
  for (auto& [number, n] : nodes_) {
    lose(n);
    // At some cuts nothing has come to the disk yet, at some nearly all.
    const double chance = std::min(1.0, random_.unit() * 1.5);
    for (const auto& change : n.directory_changes) {
      if (!random_.chance(chance))
        continue;
      n.durable_names.erase(change.also_gone);
      if (change.node)
        n.durable_names[change.name] = *change.node;
      else
        n.durable_names.erase(change.name);
    }
    n.directory_changes.clear();
    n.names = n.durable_names;
    n.links = 0;
  }
  for (const auto& [number, n] : nodes_)
    for (const auto& [name, named] : n.names)
      ++nodes_.at(named).links;
}

void power_cut_disk::lose(node& file) {
  const double chance = std::min(1.0, random_.unit() * 1.5);
  auto& bytes = file.durable_bytes;
  for (const auto& change : file.file_changes) {
    if (!random_.chance(chance))
      continue;
    if (change.is_size) {
      bytes.resize(change.at);
      continue;
    }
    bytes.resize(std::max<std::size_t>(bytes.size(), change.at + change.bytes.size()));
    bytes.replace(change.at, change.bytes.size(), change.bytes);
  }
  file.file_changes.clear();
  file.bytes = bytes;
}

std::optional<int> power_cut_disk::find(const std::string& path) const {
  int at = 0;
  std::size_t from = 0;
  while (from < path.size()) {
    const auto to = std::min(path.find('/', from), path.size());
    const auto part = path.substr(from, to - from);
    from = to + 1;
    if (part.empty() || part == ".")
      continue;
    const node& here = nodes_.at(at);
    const auto found = here.names.find(part);
    if (!here.directory || found == here.names.end())
      return std::nullopt;
    at = found->second;
  }
  return at;
}

std::optional<int> power_cut_disk::parent_of(const std::string& path, std::string& name) const {
  const auto slash = path.rfind('/');
  name = path.substr(slash + 1);
  const auto parent = find(path.substr(0, slash));
  return parent && nodes_.at(*parent).directory ? parent : std::nullopt;
}

void power_cut_disk::change(int directory, directory_change what) {
  node& here = nodes_.at(directory);
  const auto drop = [this, &here](const std::string& name) {
    const auto found = here.names.find(name);
    if (found == here.names.end())
      return;
    --nodes_.at(found->second).links;
    here.names.erase(found);
  };
  if (what.node)
    ++nodes_.at(*what.node).links;
  drop(what.also_gone);
  drop(what.name);
  if (what.node)
    here.names[what.name] = *what.node;
  here.directory_changes.push_back(std::move(what));
}

std::int64_t power_cut_disk::write(int file, const std::byte* from, std::size_t bytes,
                                   std::uint64_t at) {
  node& n = nodes_.at(file);
  const auto grows = at + bytes > n.bytes.size() ? at + bytes - n.bytes.size() : 0;
  if (grows > 0 && used() + grows > capacity_)
    return -ENOSPC;
  const std::string text(reinterpret_cast<const char*>(from), bytes);
  n.bytes.resize(std::max<std::size_t>(n.bytes.size(), at + bytes));
  n.bytes.replace(at, bytes, text);
  for (std::size_t done = 0; done < bytes;) {
    const auto size = std::min<std::size_t>(sector - (at + done) % sector, bytes - done);
    n.file_changes.push_back({at + done, text.substr(done, size)});
    done += size;
  }
  return static_cast<std::int64_t>(bytes);
}

void power_cut_disk::resize(int file, std::uint64_t size) {
  node& n = nodes_.at(file);
  n.bytes.resize(size);
  n.file_changes.push_back({size, "", true});
}

std::uint64_t power_cut_disk::used() const {
  std::uint64_t sum = 0;
  for (const auto& [number, n] : nodes_)
    if (n.links > 0)
      sum += n.bytes.size();
  return sum;
}

void power_cut_disk::walk(int from, const std::string& path,
                          std::map<std::string, std::string>& into) const {
  for (const auto& [name, number] : nodes_.at(from).names) {
    const node& n = nodes_.at(number);
    if (n.directory)
      walk(number, path + name + "/", into);
    else
      into[path + name] = n.bytes;
  }
}

std::map<std::string, std::string> power_cut_disk::files() const {
  std::map<std::string, std::string> all;
  walk(0, "/", all);
  return all;
}

std::string power_cut_disk::rot() {
  const auto all = files();
  auto which = std::next(all.begin(), static_cast<std::ptrdiff_t>(random_.below(all.size())));
  while (which->second.empty())
    if (++which == all.end())
      which = all.begin();
  node& n = nodes_.at(*find(which->first));
  n.bytes[random_.below(n.bytes.size())] ^= static_cast<char>(1U << random_.below(8));
  n.durable_bytes = n.bytes;
  return which->first;
}

// ---- a process ---------------------------------------------------------------------------------

class simulated_process final : public os::file_ops {
 public:
  explicit simulated_process(power_cut_disk& disk) : disk_(disk) {}

  int open(const std::string& path, int flags) override {
    std::string name;
    if (const int wrong = step((flags & O_CREAT) != 0, true); wrong < 0)
      return wrong;
    if (disk_.refused_.direct_open && (flags & O_DIRECT) != 0)
      return -EINVAL;
    auto found = disk_.find(path);
    if (found && (flags & O_EXCL) != 0)
      return -EEXIST;
    if (!found && (flags & O_CREAT) != 0) {
      const auto parent = disk_.parent_of(path, name);
      if (!parent)
        return -ENOENT;
      found = disk_.next_node_++;
      disk_.nodes_[*found] = {};
      disk_.change(*parent, {name, *found, ""});
    }
    if (!found)
      return -ENOENT;
    open_[next_] = {*found, (flags & O_DIRECT) != 0};
    return next_++;
  }
  void close(int file) override {
    if (ended_)
      return;
    auto& n = disk_.nodes_.at(open_.at(file).node);
    if (n.locked_by == file)
      n.locked_by = -1;
    open_.erase(file);
  }
  std::int64_t pwrite(int file, const std::byte* from, std::size_t bytes,
                      std::uint64_t at) override {
    if (const int wrong = step(true, true); wrong < 0)
      return wrong;
    return write_now(file, from, bytes, at, disk_.step_short());
  }
  std::int64_t write_now(int file, const std::byte* from, std::size_t bytes, std::uint64_t at,
                         bool in_part) {
    const auto& target = open_.at(file);
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    if (target.direct &&
        (disk_.refused_.direct_write || (address | at | bytes) % direct_alignment != 0))
      return -EINVAL;
    if (in_part)
      bytes = target.direct ? bytes / 3 / sector * sector : bytes / 3;
    return disk_.write(target.node, from, bytes, at);
  }
  std::int64_t pread(int file, std::byte* into, std::size_t bytes, std::uint64_t at) override {
    if (const int wrong = step(false, true); wrong < 0)
      return wrong;
    const auto& content = disk_.nodes_.at(open_.at(file).node).bytes;
    if (at >= content.size())
      return 0;
    const auto size = std::min<std::size_t>(bytes, content.size() - at);
    std::memcpy(into, content.data() + at, size);
    return static_cast<std::int64_t>(size);
  }
  std::int64_t size(int file) override {
    return static_cast<std::int64_t>(disk_.nodes_.at(open_.at(file).node).bytes.size());
  }
  std::int64_t size_of(const std::string& path) override {
    const auto found = disk_.find(path);
    return found ? static_cast<std::int64_t>(disk_.nodes_.at(*found).bytes.size()) : -ENOENT;
  }
  int fallocate(int file, std::uint64_t bytes) override {
    if (const int wrong = step(true, true); wrong < 0)
      return wrong;
    if (disk_.refused_.reserve)
      return -EOPNOTSUPP;
    if (disk_.used() + bytes > disk_.capacity_)
      return -ENOSPC;
    disk_.resize(open_.at(file).node, bytes);
    return 0;
  }
  int ftruncate(int file, std::uint64_t bytes) override {
    if (const int wrong = step(false, true); wrong < 0)
      return wrong;
    disk_.resize(open_.at(file).node, bytes);
    return 0;
  }
  int fsync(int file) override {
    if (const int wrong = step(true, true); wrong < 0)
      return wrong;
    auto& n = disk_.nodes_.at(open_.at(file).node);
    n.file_changes.clear();
    n.durable_bytes = n.bytes;
    n.directory_changes.clear();
    n.durable_names = n.names;
    return 0;
  }
  int flock(int file) override {
    if (const int wrong = step(false, false); wrong < 0)
      return wrong;
    auto& n = disk_.nodes_.at(open_.at(file).node);
    if (disk_.refused_.lock)
      return -ENOLCK;
    if (n.locked_by >= 0)
      return -EWOULDBLOCK;
    n.locked_by = file;
    return 0;
  }
  int links(int file) override { return disk_.nodes_.at(open_.at(file).node).links; }
  int rename(const std::string& from, const std::string& to) override {
    if (const int wrong = step(true, true); wrong < 0)
      return wrong;
    std::string old_name;
    std::string name;
    const auto moved = disk_.find(from);
    const auto parent = disk_.parent_of(to, name);
    if (!moved || !parent || disk_.parent_of(from, old_name) != parent)
      return -ENOENT;
    disk_.change(*parent, {name, *moved, old_name});
    return 0;
  }
  int unlink(const std::string& path) override { return drop(path, false); }
  bool is_link(const std::string&) override { return false; }
  int rmdir(const std::string& path) override { return drop(path, true); }
  int mkdir(const std::string& path) override {
    if (const int wrong = step(true, true); wrong < 0)
      return wrong;
    std::string name;
    const auto parent = disk_.parent_of(path, name);
    if (!parent)
      return -ENOENT;
    if (disk_.find(path))
      return -EEXIST;
    const int made = disk_.next_node_++;
    disk_.nodes_[made].directory = true;
    disk_.change(*parent, {name, made, ""});
    return 0;
  }
  int entries(const std::string& path, std::vector<os::directory_entry>& into) override {
    using kind = os::directory_entry::kind_of;
    if (const int wrong = step(false, true); wrong < 0)
      return wrong;
    const auto found = disk_.find(path);
    if (!found)
      return -ENOENT;
    if (!disk_.nodes_.at(*found).directory)
      return -ENOTDIR;
    for (const auto& [name, number] : disk_.nodes_.at(*found).names)
      into.push_back({name, disk_.nodes_.at(number).directory ? kind::directory : kind::file});
    return 0;
  }
  std::uint64_t free_bytes(const std::string& /*directory*/) override {
    const auto used = disk_.used();
    return disk_.capacity_ > used ? disk_.capacity_ - used : 0;
  }
  std::unique_ptr<os::write_queue> queue(unsigned depth, std::string& why_not) override;

  int step(bool may_lack_space, bool may_fail) {
    if (ended_)
      return -EIO;
    try {
      return disk_.step(may_lack_space, may_fail);
    } catch (const process_ended&) {
      // Whatever destructors do from now on is not done.
      ended_ = true;
      throw;
    }
  }
  bool ended() const { return ended_; }
  power_cut_disk& disk() { return disk_; }

 private:
  struct opened {
    int node = 0;
    bool direct = false;
  };

  int drop(const std::string& path, bool directory) {
    if (const int wrong = step(false, true); wrong < 0)
      return wrong;
    std::string name;
    const auto found = disk_.find(path);
    if (!found)
      return -ENOENT;
    const auto& n = disk_.nodes_.at(*found);
    if (n.directory != directory)
      return directory ? -ENOTDIR : -EISDIR;
    if (!n.names.empty())
      return -ENOTEMPTY;
    const auto parent = disk_.parent_of(path, name);
    disk_.change(*parent, {name, std::nullopt, ""});
    return 0;
  }

  power_cut_disk& disk_;
  std::map<int, opened> open_;
  int next_ = 3;
  bool ended_ = false;
};

/// Writes that end in any order, some of them short, some to be repeated.
class simulated_queue final : public os::write_queue {
 public:
  explicit simulated_queue(simulated_process& process) : process_(process) {}

  int submit(int file, const std::byte* from, std::size_t bytes, std::uint64_t at,
             unsigned tag) override {
    if (const int wrong = process_.step(false, false); wrong < 0)
      return wrong;
    under_way_.push_back({file, from, bytes, at, tag});
    return 0;
  }
  os::written wait() override {
    auto& random = process_.disk().random_;
    const auto at = static_cast<std::ptrdiff_t>(random.below(under_way_.size()));
    const auto one = under_way_[static_cast<std::size_t>(at)];
    // The kernel may have done it before a process ends, or not.
    if (random.chance(0.5) && !process_.ended())
      process_.write_now(one.file, one.from, one.bytes, one.at, random.chance(0.2));
    if (const int wrong = process_.step(true, true); wrong < 0)
      return taken(at, wrong);
    if (random.chance(0.05))
      return taken(at, random.chance(0.5) ? -EINTR : -EAGAIN);
    const bool in_part = process_.disk().step_short() || random.chance(0.05);
    return taken(at, process_.write_now(one.file, one.from, one.bytes, one.at, in_part));
  }

 private:
  struct request {
    int file = 0;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::uint64_t at = 0;
    unsigned tag = 0;
  };

  os::written taken(std::ptrdiff_t at, std::int64_t answer) {
    const unsigned tag = under_way_[static_cast<std::size_t>(at)].tag;
    under_way_.erase(under_way_.begin() + at);
    return {tag, answer};
  }

  simulated_process& process_;
  std::vector<request> under_way_;
};

std::unique_ptr<os::write_queue> simulated_process::queue(unsigned /*depth*/,
                                                          std::string& why_not) {
  if (disk_.refused_.queue) {
    why_not = "no io_uring here: Operation not permitted";
    return nullptr;
  }
  return std::make_unique<simulated_queue>(*this);
}

std::unique_ptr<os::file_ops> power_cut_disk::new_process() {
  for (auto& [number, n] : nodes_)
    n.locked_by = -1;
  return std::make_unique<simulated_process>(*this);
}

} // namespace troupe::testing
