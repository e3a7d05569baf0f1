#include "worker/collectives/hooks.hpp"

#include "worker/collectives/loaded_library.hpp"
#include "worker/collectives/observed_functions.hpp"
#include "worker/collectives/process_groups.hpp"
#include "worker/collectives/trampolines.hpp"
#include "worker/progress/own_page.hpp"

#include <array>
#include <mutex>
#include <vector>

namespace troupe::worker {

namespace {

using diag::collective;

struct watched {
  observed what;
  void* original = nullptr;
};

std::array<watched, trampolines_max> all_watched;
std::size_t watched_count = 0;

struct of_this_thread {
  const void* calling = nullptr; ///< a method of this group made the call that comes to enqueue
  collective kind = collective::other;
  row loop = diag::page_writer::no_row;
  const void* point_to_point = nullptr;
  std::array<char, diag::communicator_words::name_bytes>
      name{}; ///< of groups that are asked; empty: none
  std::uint64_t members = 0, members_hash = 0;
};
thread_local of_this_thread mine;

void report(const observed& what, const void* self) {
  switch (what.what) {
  case role::call:
    mine.calling = self;
    mine.kind = what.kind;
    break;
  case role::call_only:
    makes_collective();
    page().entered_only(row_of(self), what.kind, now_ns());
    break;
  case role::point_to_point:
    mine.point_to_point = self;
    break;
  case role::enqueue:
    makes_collective();
    page().entered(row_of(self), mine.calling == self ? mine.kind : collective::other, 0, now_ns());
    break;
  case role::loop:
    mine.loop = row_of(self);
    break;
  case role::finish:
    page().left(mine.loop, now_ns());
    break;
  case role::sequence_number:
    if (mine.name[0] != '\0')
      name_group(self, mine.name.data(), mine.members, mine.members_hash);
    break;
  case role::destroy:
    forget_group(self);
    break;
  }
}

/// A word to be replaced, and by what.
struct replacement {
  void** word;
  void* by;
};

/// One function may stand in several words.
void* watch(const observed& what, void* original) {
  if (watched_count == trampolines_max || original == nullptr)
    return nullptr;
  all_watched[watched_count] = {what, original};
  return trampoline(watched_count++);
}

/// Entered and left with a call.
struct in_call {
  row its;
  in_call(row which, collective kind) : its(which) {
    makes_collective();
    page().entered(its, kind, 0, now_ns());
  }
  ~in_call() { page().left(its, now_ns()); }
};

/// Between two ranks: counted while it is waited for.
row message_row() {
  return mine.point_to_point == nullptr ? diag::page_writer::no_row
                                        : point_to_point_row_of(mine.point_to_point);
}

/// `bool SendWork::wait(std::chrono::milliseconds)`: its end is seen by calling it.
using wait_function = bool (*)(void*, std::int64_t);
wait_function send_wait = nullptr, recv_wait = nullptr;
bool wait_for_send(void* work, std::int64_t timeout) {
  const in_call now(message_row(), collective::send);
  return send_wait(work, timeout);
}
bool wait_for_recv(void* work, std::int64_t timeout) {
  const in_call now(message_row(), collective::recv);
  return recv_wait(work, timeout);
}

/// `void ProcessGroupGloo::monitoredBarrier(const BarrierOptions&, bool)`: it makes no work.
using barrier_function = void (*)(void*, const void*, bool);
barrier_function monitored = nullptr;
void monitored_barrier(void* group, const void* options, bool all_ranks) {
  const in_call now(row_of(group), collective::barrier);
  monitored(group, options, all_ranks);
}

bool starts_with(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

/// Words of one virtual table.
bool lies_in(const std::optional<loaded_library::symbol>& table, void** word) {
  if (!table)
    return false;
  const auto* const begin = static_cast<const char*>(table->address);
  const auto* const at = reinterpret_cast<const char*>(word);
  return at >= begin && at < begin + table->bytes;
}

std::string replace_all(const loaded_library& in, const std::vector<replacement>& all) {
  for (const auto& each : all)
    if (each.by != nullptr && !in.replace(each.word, each.by))
      return "the system does not let a process change its own memory";
  return {};
}

/// Functions of gloo's process groups that are called by name, and how each is looked at.
struct named_function {
  const char* mangled;
  role what;
  bool needed;
};
#define GLOO "_ZN4c10d16ProcessGroupGloo"
constexpr std::array<named_function, 5> named_functions = {{
    {GLOO "7runLoopEi", role::loop, true},
    {GLOO "9AsyncWork14finishWorkGlooEv", role::finish, true},
    {GLOO "9AsyncWork19finishWorkGlooErrorERKNSt15__exception_ptr13exception_ptrE", role::finish,
     false},
    {GLOO "9AsyncWork19finishWorkGlooErrorENSt15__exception_ptr13exception_ptrE", role::finish,
     false},
    // The last, so that none is entered whose end would not be seen.
    {GLOO "7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkENS1_6detail34intrusive_target_default_null_"
          "typeIS3_EEEE",
     role::enqueue, true},
}};

class gloo_hooks {
 public:
  explicit gloo_hooks(const loaded_library& library)
      : library_(library), table_(library.defined("_ZTVN4c10d16ProcessGroupGlooE")),
        sends_(library.defined("_ZTVN4c10d16ProcessGroupGloo8SendWorkE")),
        receives_(library.defined("_ZTVN4c10d16ProcessGroupGloo8RecvWorkE")) {
    for (std::size_t i = 0; i < named_functions.size(); ++i)
      if (const auto found = library.defined(named_functions[i].mangled))
        symbols_[i] = found->index;
  }

  /// Empty if it is done.
  std::string install() {
    library_.each_address_word([&](const auto& each) { take(each); });
    if (methods_.empty())
      return "no virtual table of ProcessGroupGloo";
    for (std::size_t i = 0; i < named_functions.size(); ++i)
      if (named_functions[i].needed && by_name_[i].empty())
        return std::string("no call of ") + named_functions[i].mangled;
    if (auto why = replace_all(library_, methods_); !why.empty())
      return why;
    for (const auto& each : by_name_)
      if (auto why = replace_all(library_, each); !why.empty())
        return why;
    return {};
  }

 private:
  void take(const loaded_library::address_word& each) {
    for (std::size_t i = 0; i < named_functions.size(); ++i)
      if (symbols_[i] != 0 && symbols_[i] == each.symbol)
        by_name_[i].push_back(
            {each.word, watch({named_functions[i].what}, library_.address_of(each.symbol))});
    if (lies_in(table_, each.word)) {
      if (starts_with(library_.name_of(each.symbol), GLOO "16monitoredBarrierE"))
        take_call(each, monitored, monitored_barrier);
      else if (const auto method =
                   observed_method(library_.name_of(each.symbol), "ProcessGroupGloo"))
        methods_.push_back({each.word, watch(*method, *each.word)});
    } else if (lies_in(sends_, each.word)) {
      if (starts_with(library_.name_of(each.symbol), GLOO "8SendWork4waitE"))
        take_call(each, send_wait, wait_for_send);
    } else if (lies_in(receives_, each.word)) {
      if (starts_with(library_.name_of(each.symbol), GLOO "8RecvWork4waitE"))
        take_call(each, recv_wait, wait_for_recv);
    }
  }

  template<class Function>
  void take_call(const loaded_library::address_word& each, Function& original, Function by) {
    original = reinterpret_cast<Function>(*each.word);
    methods_.push_back({each.word, reinterpret_cast<void*>(by)});
  }

  const loaded_library& library_;
  std::optional<loaded_library::symbol> table_, sends_, receives_;
  std::array<std::uint32_t, named_functions.size()> symbols_{};
  std::vector<replacement> methods_;
  std::array<std::vector<replacement>, named_functions.size()> by_name_;
};
#undef GLOO

std::string hook_nccl(const loaded_library& library) {
  const auto table = library.defined("_ZTVN4c10d16ProcessGroupNCCLE");
  std::vector<replacement> methods;
  library.each_address_word([&](const auto& each) {
    if (!lies_in(table, each.word))
      return;
    auto method = observed_method(library.name_of(each.symbol), "ProcessGroupNCCL");
    if (!method || method->what == role::point_to_point)
      return;
    if (method->what == role::call)
      method->what = role::call_only;
    methods.push_back({each.word, watch(*method, *each.word)});
  });
  return methods.empty() ? "no virtual table of ProcessGroupNCCL" : replace_all(library, methods);
}

void note(hooked& done, std::uint64_t feeds, const char* library, const std::string& why) {
  if (why.empty())
    done.feeds |= feeds;
  else
    done.why += std::string(done.why.empty() ? "" : "; ") + library + ": " + why;
}

hooked hook_all() {
  hooked done;
  if (trampoline(0) == nullptr) {
    done.why = "not on this processor";
    return done;
  }
  constexpr auto enters = static_cast<std::uint64_t>(diag::feed::collectives);
  constexpr auto ends = static_cast<std::uint64_t>(diag::feed::collective_ends);
  if (const auto cpu = loaded_library::find("libtorch_cpu.so"))
    note(done, enters | ends, "libtorch_cpu.so", gloo_hooks(*cpu).install());
  else
    done.why = "libtorch_cpu.so is not loaded";
  // Before PyTorch 2.0 it was two libraries.
  for (const char* name : {"libtorch_cuda_cpp.so", "libtorch_cuda.so"})
    if (const auto cuda = loaded_library::find(name)) {
      note(done, enters, name, hook_nccl(*cuda));
      break;
    }
  return done;
}

} // namespace

hooked hook_process_groups() {
  static std::once_flag once;
  static hooked done;
  std::call_once(once, [] {
    done = hook_all();
    page().feeds(static_cast<diag::feed>(done.feeds));
  });
  return done;
}

void name_next(const char* name, std::uint64_t members, std::uint64_t members_hash) {
  mine.name[std::string_view(name).copy(mine.name.data(), mine.name.size() - 1)] = '\0';
  mine.members = members;
  mine.members_hash = members_hash;
}

void named() {
  mine.name[0] = '\0';
}

} // namespace troupe::worker

void* troupe_trampoline_entered(std::size_t index, void* first, void* second) {
  using namespace troupe::worker;
  const auto& [what, original] = all_watched[index];
#if defined(__x86_64__)
  report(what, what.answers_object ? second : first);
#else
  (void)second;
  report(what, first);
#endif
  return original;
}
