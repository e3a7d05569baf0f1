#include "diag/stacks/motion.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::diag {

namespace {

/// Less CPU time than this is a timer or a thread that keeps time; less I/O is a line of a log.
constexpr std::uint32_t works_permille = 30;
/// A process or thread that shows no stacks: so much is a compiler, less keeps an eye on things.
constexpr std::uint32_t computes_permille = 500;
constexpr std::uint32_t nearly_all_permille = 800;
constexpr std::uint32_t all_permille = 1000;
/// A thread that wanted a core and got less than this of it says nothing by standing still.
constexpr std::uint32_t starved_below_permille = 300;
constexpr std::uint32_t delayed_permille = 200;
constexpr std::uint64_t io_bytes_least = 64u << 10;

std::uint32_t permille(duration used, duration between) {
  if (between <= duration::zero() || used <= duration::zero())
    return 0;
  return static_cast<std::uint32_t>(std::min<double>(
      1e6, 1000.0 * static_cast<double>(used.count()) / static_cast<double>(between.count())));
}

/// Also where it is less than before: a connection that is closed takes its count with it.
bool io_moved(std::uint64_t from, std::uint64_t to) {
  return std::max(from, to) - std::min(from, to) >= io_bytes_least;
}

const thread_look* thread_with(const std::vector<thread_look>& threads, std::int32_t id) {
  const auto found =
      std::find_if(threads.begin(), threads.end(), [id](const auto& t) { return t.id == id; });
  return found == threads.end() ? nullptr : &*found;
}

/// Of a child's main thread, and of those that have run since. A thread that is new says nothing:
/// pools start them, and timers.
bool stacks_moved(std::int32_t main, const std::vector<thread_look>& from,
                  const std::vector<thread_look>& to) {
  return std::any_of(to.begin(), to.end(), [&](const thread_look& t) {
    const auto* before = thread_with(from, t.id);
    return before && before->stack != t.stack && (t.id == main || t.cpu_time > before->cpu_time);
  });
}

void keep_common(std::map<std::int32_t, duration>& of,
                 const std::map<std::int32_t, duration>& with) {
  for (auto one = of.begin(); one != of.end();)
    one = with.count(one->first) ? std::next(one) : of.erase(one);
}

bool waits_outside(const thread_look& t) {
  return t.waits == awaited::outside || t.waits == awaited::child;
}

/// Its input comes from workers of a data loader: no other thread or child is waited for.
bool waits_for_loader(const process_look& look) {
  return look.waits_for_input && std::any_of(look.children.begin(), look.children.end(),
                                             [](const child_look& c) { return !c.role.empty(); });
}

} // namespace

/// Those of the main thread and the script's that are seen in both looks; none: the process as a
/// whole decides.
std::vector<std::int32_t> compared_looks::deciding(const process_look& look) const {
  std::vector<std::int32_t> ids;
  for (const auto id : {look.pid, look.script})
    if (id != 0 && std::find(ids.begin(), ids.end(), id) == ids.end() &&
        thread_with(first_.threads, id) && thread_with(look.threads, id))
      ids.push_back(id);
  return ids;
}

bool compared_looks::decides(std::int32_t thread, const process_look& look) const {
  const auto ids = deciding(look);
  return ids.empty() || std::find(ids.begin(), ids.end(), thread) != ids.end();
}

compared_looks::thread_change compared_looks::change_of(const thread_look& before,
                                                        const thread_look& now,
                                                        duration between) const {
  thread_change c;
  c.ran = permille(now.cpu_time - before.cpu_time, between);
  c.wanted = std::max({c.ran, permille(now.wanted - before.wanted, between),
                       before.ready && now.ready ? all_permille : 0});
  c.elsewhere = before.stack != now.stack;
  return c;
}

void compared_looks::add(instant now, const process_look& look) {
  if (looks_ != 0 && look.started != first_.started)
    *this = {};
  ++looks_;
  if (looks_ == 1) {
    first_ = look;
    first_at_ = now;
  } else {
    stacks_known_ &= !look.threads.empty() && !first_.threads.empty();
    keep_ready(look);
    compare_threads(look, now - first_at_);
    compare_others(look, now - first_at_);
    compare_children(look, now - first_at_);
  }
  for (const auto& t : look.threads)
    position_moves_ |= t.runs_on && decides(t.id, look);
  last_ = look;
  last_at_ = now;
}

/// Of what was ready to run in the first look: whatever is so still.
void compared_looks::keep_ready(const process_look& look) {
  for (auto& t : first_.threads) {
    const auto* now = thread_with(look.threads, t.id);
    t.ready &= now && now->ready;
  }
  keep_common(first_.ready, look.ready);
  for (auto& c : first_.children) {
    const auto now = std::find_if(look.children.begin(), look.children.end(),
                                  [&c](const auto& each) { return each.pid == c.pid; });
    if (now == look.children.end())
      c.ready.clear();
    else
      keep_common(c.ready, now->ready);
  }
}

void compared_looks::compare_threads(const process_look& look, duration between) {
  const auto ids = deciding(look);
  bool all_counts = ids.empty();
  for (const auto id : ids) {
    const auto &before = *thread_with(first_.threads, id), &after = *thread_with(look.threads, id);
    const auto change = change_of(before, after, between);
    goes_elsewhere_ |= change.elsewhere && change.ran >= works_permille;
    position_moves_ |= before.position != after.position;
    io_moves_ |= io_moved(before.io_bytes, after.io_bytes);
    // The bytes that it waits for are carried by the process's connections, not by its own calls.
    all_counts |=
        after.joins || after.waits == awaited::outside || before.waits == awaited::outside;
  }
  if (all_counts)
    io_moves_ |= io_moved(first_.io_bytes, look.io_bytes);
}

/// The script's thread says more than a main thread that only waits for it.
const thread_look* compared_looks::decisive(const process_look& look) const {
  const auto ids = deciding(look);
  return ids.empty() ? nullptr : thread_with(look.threads, ids.back());
}

/// One that runs now and then may be met at that.
const thread_look* compared_looks::sleeper() const {
  const auto* t = decisive(last_);
  return t && t->ready ? thread_with(first_.threads, t->id) : t;
}

/// It has not run since the first look, and is to.
bool compared_looks::is_woken() const {
  const auto ids = deciding(last_);
  return std::any_of(ids.begin(), ids.end(), [this](std::int32_t id) {
    const auto& t = *thread_with(last_.threads, id);
    return t.ready && t.cpu_time == thread_with(first_.threads, id)->cpu_time;
  });
}

compared_looks::effort compared_looks::effort_of(const thread_look& before, const thread_look& now,
                                                 duration between) const {
  const auto wanted = change_of(before, now, between).wanted;
  if (wanted >= computes_permille)
    return effort::moves;
  if (now.role == thread_role::helper)
    return effort::none;
  // One that polls is met at work in some looks only.
  const bool at_work = wanted >= works_permille || waits_outside(before) || waits_outside(now);
  if (!at_work)
    return effort::none;
  return now.role == thread_role::pool ? effort::works : effort::maybe;
}

/// A process without Python shows only what it uses. One of Python that asks for nothing and sleeps
/// may be a server that waits for requests, unless it is a pool's.
compared_looks::effort compared_looks::effort_of(const child_look& before, const child_look& now,
                                                 duration between) const {
  const auto used = permille(now.cpu_time - before.cpu_time, between);
  const auto wanted = std::max({used, permille(now.wanted - before.wanted, between),
                                before.ready.empty() ? 0 : all_permille});
  if (io_moved(before.io_bytes, now.io_bytes))
    return effort::moves;
  if (now.threads.empty())
    return wanted >= computes_permille ? effort::moves : effort::none;
  if (wanted >= works_permille)
    return used >= works_permille && stacks_moved(now.pid, before.threads, now.threads)
               ? effort::moves
               : effort::works;
  auto most = effort::none;
  for (const auto& t : now.threads)
    if (waits_outside(t) && t.role != thread_role::helper)
      most = std::max(most, t.role == thread_role::pool ? effort::works : effort::maybe);
  return most;
}

/// The other threads.
void compared_looks::compare_others(const process_look& look, duration between) {
  const auto* decides_most = decisive(look);
  const bool joins = decides_most && (decides_most->joins || decides_most->shared_lock);
  const bool for_loader = waits_for_loader(look);
  for (const auto& t : look.threads) {
    const auto* before = thread_with(first_.threads, t.id);
    if (!before || decides(t.id, look))
      continue;
    const auto e = effort_of(*before, t, between);
    beside_ = std::max(beside_, e);
    if (joins && (!for_loader || t.role == thread_role::helper))
      awaited_ = std::max(awaited_, e);
  }
}

/// A data loader's worker counts while the script waits for its input; another child, if a thread
/// that decides has started it.
bool compared_looks::child_counts(const child_look& child, const process_look& look) const {
  if (!child.role.empty())
    return look.waits_for_input;
  return child.started_by == 0 || decides(child.started_by, look);
}

void compared_looks::compare_children(const process_look& look, duration between) {
  for (const auto& child : look.children)
    compare_child(child, look, between);
}

void compared_looks::compare_child(const child_look& child, const process_look& look,
                                   duration between) {
  const auto before = std::find_if(first_.children.begin(), first_.children.end(),
                                   [&child](const auto& c) { return c.pid == child.pid; });
  const bool counts = child_counts(child, look), is_new = before == first_.children.end();
  const auto e = is_new ? effort::moves : effort_of(*before, child, between);
  if (counts && e == effort::moves)
    children_move_ = true;
  // A worker that reads ahead beside a step that hangs says nothing, and neither does one that is
  // in one function all the time.
  if (!child.role.empty())
    return;
  beside_ = std::max(beside_, e);
  const auto* t = decisive(look);
  if (!t)
    return;
  // A pool's workers are started by a thread of the pool, which the script waits for. A program
  // that a thread starts now and then is none.
  const bool joins = (t->joins || t->shared_lock) && !waits_for_loader(look) && !is_new;
  const bool reads = counts && t->waits == awaited::kernel;
  if (joins || reads)
    awaited_ = std::max(awaited_, e);
}

std::uint32_t compared_looks::cpu_permille() const {
  return looks_ < 2 ? 0 : permille(last_.cpu_time - first_.cpu_time, last_at_ - first_at_);
}

compared_looks::thread_change compared_looks::decided() const {
  const auto between = last_at_ - first_at_;
  thread_change most;
  const auto ids = deciding(last_);
  for (const auto id : ids) {
    const auto c =
        change_of(*thread_with(first_.threads, id), *thread_with(last_.threads, id), between);
    if (c.wanted >= most.wanted)
      most = c;
  }
  if (ids.empty()) {
    most.ran = cpu_permille();
    most.wanted = std::max(most.ran, first_.ready.empty() ? 0 : all_permille);
  }
  return most;
}

/// Of the threads that execute no Python, and of those that PyTorch computes gradients with.
std::uint32_t compared_looks::native_permille() const {
  duration of_python{};
  for (const auto& t : last_.threads)
    if (const auto* before = thread_with(first_.threads, t.id))
      of_python += t.cpu_time - before->cpu_time;
  return permille(last_.cpu_time - first_.cpu_time - of_python, last_at_ - first_at_);
}

bool compared_looks::wants_a_core() const {
  return looks_ >= 2 && decided().wanted >= nearly_all_permille;
}

bool compared_looks::lacks_a_core() const {
  if (looks_ < 2)
    return false;
  const auto between = last_at_ - first_at_;
  return permille(last_.delayed - first_.delayed, between) >= delayed_permille ||
         std::any_of(first_.ready.begin(), first_.ready.end(), [&](const auto& r) {
           return permille(last_.ready.at(r.first) - r.second, between) < starved_below_permille;
         });
}

/// No thread that decides runs: whether what they wait for may be at work.
motion compared_looks::asleep() const {
  const auto* thread = sleeper();
  if (thread && !waits_for_loader(last_) && waits_outside(*thread))
    return motion::works;
  if (thread && thread->waits == awaited::lock && native_permille() >= computes_permille)
    return motion::works;
  // An event's wait with a bound may be a pause, and a queue's may be all that is left of a hang.
  const bool may_pause = thread && thread->joins && thread->timed_lock && !waits_for_loader(last_);
  if (awaited_ == effort::works)
    return motion::works;
  return awaited_ == effort::maybe || may_pause ? motion::awaits : motion::sleeps;
}

bool compared_looks::ended() const {
  return moves() == motion::ends && looks_ >= 2 && !io_moves_ && !children_move_ &&
         !goes_elsewhere_ && awaited_ < effort::works && decided().wanted < works_permille &&
         native_permille() < computes_permille;
}

bool compared_looks::locked() const {
  const auto* thread = sleeper();
  return moves() == motion::sleeps && thread && thread->waits == awaited::lock &&
         !thread->timed_lock && beside_ == effort::none && !waits_for_loader(last_);
}

bool compared_looks::deadlocked() const {
  const auto* thread = sleeper();
  return locked() && thread->joins && !thread->shared_lock;
}

/// A stop is seen at once, and does not end by what its children still do.
motion compared_looks::moves() const {
  if (last_.state == 'T' || last_.state == 't')
    return motion::stopped;
  if (looks_ != 0 && last_.ends)
    return motion::ends;
  if (looks_ < 2)
    return motion::unknown;
  if (io_moves_ || children_move_ || goes_elsewhere_ || awaited_ == effort::moves)
    return motion::moves;
  const auto most = decided();
  // A wait for a processor is no sleep, and it is not the rank's fault.
  if (most.ran < starved_below_permille &&
      (most.wanted - most.ran >= starved_below_permille || is_woken()))
    return motion::starves;
  if (most.wanted < works_permille)
    return asleep();
  if (!stacks_known_)
    return motion::unknown;
  // Now and then at work, and at the same: it polls.
  if (most.wanted < nearly_all_permille) {
    const auto while_asleep = asleep();
    return while_asleep == motion::sleeps ? motion::spins : while_asleep;
  }
  return position_moves_ ? motion::spins : motion::works;
}

} // namespace troupe::diag
