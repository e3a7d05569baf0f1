#include "runtime/os/stacks/unwinder.hpp"

#include "runtime/os/stacks/limits.hpp"
#include "runtime/os/stacks/process_memory.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace troupe::os {

namespace {

/// A mangled name of a template grows without bound when it is written out.
constexpr std::size_t mangled_max = 4'096;

std::string readable(const std::string& symbol) {
  std::string name = symbol;
  if (symbol.compare(0, 2, "_Z") == 0 && symbol.size() <= mangled_max) {
    int status = 0;
    char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    if (text != nullptr && status == 0)
      name = text;
    std::free(text);
  }
  if (name.size() > limits::stacks_name_max)
    name.resize(limits::stacks_name_max);
  return name;
}

#if defined(__x86_64__)
constexpr auto machine = EM_X86_64;
/// In DWARF's order.
std::array<Dwarf_Word, 17> in_order(const user_regs_struct& r) {
  return {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
          r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
}
constexpr int stack_register = 7, place_register = 16;
#elif defined(__aarch64__)
constexpr auto machine = EM_AARCH64;
std::array<Dwarf_Word, 32> in_order(const user_regs_struct& r) {
  std::array<Dwarf_Word, 32> all{};
  std::copy(std::begin(r.regs), std::end(r.regs), all.begin());
  all[31] = r.sp;
  return all;
}
constexpr int stack_register = 31, place_register = -1;
#endif

struct collected {
  std::vector<std::uint64_t> places;
  std::vector<bool> interrupted; ///< of each
};

int collect(Dwfl_Frame* frame, void* into) {
  auto& found = *static_cast<collected*>(into);
  Dwarf_Addr pc = 0;
  bool is_interrupted = false;
  if (!dwfl_frame_pc(frame, &pc, &is_interrupted))
    return DWARF_CB_ABORT;
  // The place to return to may already belong to the next function.
  found.places.push_back(is_interrupted || pc == 0 ? pc : pc - 1);
  found.interrupted.push_back(is_interrupted);
  return found.places.size() < limits::stacks_frames_max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// Where a handler returns to, in the C library or the vdso. libdw says "interrupted" of it and of
/// the frame below it, which was; the innermost frame is always so.
bool is_signal_frame(const collected& found, std::size_t n) {
  return n > 0 && n + 1 < found.places.size() && found.interrupted[n] && found.interrupted[n + 1];
}

int no_debug_information(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                         GElf_Word, char**) {
  return -1;
}

/// All of a module that libdwfl asks for beyond these is in files that are not opened.
Dwfl_Callbacks callbacks_with(int (*find_elf)(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**,
                                              Elf**)) {
  Dwfl_Callbacks callbacks{};
  callbacks.find_elf = find_elf;
  callbacks.find_debuginfo = no_debug_information;
  return callbacks;
}

} // namespace

unwinder::unwinder(pid_t pid, std::vector<mapping> mappings, elf_files& files)
    : pid_(pid), mappings_(std::move(mappings)), files_(files) {}

unwinder::~unwinder() {
  if (dwfl_ != nullptr)
    dwfl_end(dwfl_);
}

result<std::unique_ptr<unwinder>> unwinder::of(pid_t pid, std::vector<mapping> mappings,
                                               elf_files& files) {
  std::unique_ptr<unwinder> made(new unwinder(pid, std::move(mappings), files));
  made->find_modules();
  if (!made->begin())
    return failure(errc::absent,
                   fmt::format("the native stacks cannot be read: {}",
                               made->unread_.empty() ? dwfl_errmsg(-1) : made->unread_.c_str()));
  return made;
}

/// A file is mapped in several pieces, one behind another.
void unwinder::find_modules() {
  for (const auto& m : mappings_) {
    const bool is_file = m.inode != 0 || m.path == "[vdso]";
    if (!is_file)
      continue;
    if (!modules_.empty() && m.inode != 0 && modules_.back().whole.inode == m.inode &&
        modules_.back().whole.device == m.device && m.offset > modules_.back().whole.offset) {
      modules_.back().whole.end = m.end;
      modules_.back().whole.is_executable |= m.is_executable;
    } else {
      modules_.push_back({m});
    }
  }
  modules_.erase(std::remove_if(modules_.begin(), modules_.end(),
                                [](const module& m) { return !m.whole.is_executable; }),
                 modules_.end());
}

bool unwinder::begin() {
  static const auto callbacks = callbacks_with(&unwinder::find_elf);
  static constexpr Dwfl_Thread_Callbacks state{next_thread,   get_thread, memory_read,
                                               set_registers, nullptr,    nullptr};
  dwfl_ = dwfl_begin(&callbacks);
  if (dwfl_ == nullptr)
    return false;
  dwfl_report_begin(dwfl_);
  for (auto& m : modules_) {
    auto* reported = dwfl_report_module(dwfl_, m.whole.path.c_str(), m.whole.begin, m.whole.end);
    void** data = nullptr;
    if (reported == nullptr)
      return false;
    dwfl_module_info(reported, &data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    *data = this;
  }
  dwfl_report_end(dwfl_, nullptr, nullptr);
  // One file that can be opened says for which processor all of them are.
  for (auto& m : modules_)
    if (auto* file = file_of(m))
      return dwfl_attach_state(dwfl_, file->handle(), pid_, &state, this);
  return false;
}

unwinder::module* unwinder::module_at(std::uint64_t address) {
  auto at = std::upper_bound(modules_.begin(), modules_.end(), address,
                             [](std::uint64_t a, const module& m) { return a < m.whole.begin; });
  return at != modules_.begin() && address < (--at)->whole.end ? &*at : nullptr;
}

elf_file* unwinder::file_of(module& m) {
  if (!m.is_opened) {
    m.is_opened = true;
    const auto file = files_.of(pid_, m.whole);
    if (!file) {
      if (unread_.empty())
        unread_ = file.error().what;
      return nullptr;
    }
    GElf_Ehdr header;
    const auto at = (*file)->address_of_offset(m.whole.offset);
    if (at && gelf_getehdr((*file)->handle(), &header) != nullptr && header.e_machine == machine) {
      m.file = *file;
      m.bias = m.whole.begin - *at;
    }
  }
  return m.file;
}

diag::stack_frame unwinder::frame_at(std::uint64_t address) {
  diag::stack_frame f;
  auto* m = module_at(address);
  if (m == nullptr)
    return f;
  f.source = m->whole.path.substr(0, limits::stacks_path_max);
  if (auto* file = file_of(*m))
    if (const auto name = file->function_at(address - m->bias))
      f.function = readable(*name);
  return f;
}

std::uint64_t unwinder::stack_end(std::uint64_t address) const {
  auto at = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                             [](std::uint64_t a, const mapping& m) { return a < m.begin; });
  if (at == mappings_.begin())
    return 0;
  --at;
  return address < at->end && at->is_writable ? at->end : 0;
}

unwinder::unwound unwinder::frames_of(const thread_copy& copy) {
  unwound done;
  collected found;
  now_ = &copy;
  const auto answer = dwfl_getthread_frames(dwfl_, copy.id, collect, &found);
  now_ = nullptr;
  const auto error = dwfl_errno();
  // Without any, at least the place where it is.
  if (found.places.empty()) {
    found.places.push_back(instruction_of(copy.registers));
    found.interrupted.push_back(true);
  }
  for (std::size_t n = 0; n < found.places.size(); ++n) {
    done.frames.push_back(frame_at(found.places[n]));
    if (is_signal_frame(found, n))
      done.frames.back().function = diag::signal_frame;
  }
  if (found.places.size() >= limits::stacks_frames_max)
    done.missing =
        fmt::format("only the innermost {} native frames were read", limits::stacks_frames_max);
  else if (!copy.is_whole && answer != 0)
    done.missing = "it could not be stopped: only a part of its native stack is known";
  else if (answer == -1 && module_at(found.places.back()) == nullptr)
    done.missing = "its native stack ends in code that no file describes";
  else if (answer == -1 && found.places.size() == 1)
    done.missing = fmt::format("its native stack cannot be followed: {}", dwfl_errmsg(error));
  return done;
}

bool unwinder::read_memory(std::uint64_t address, Dwarf_Word* into) {
  const auto& stack = now_->stack;
  const auto within = address - now_->stack_begin;
  if (address >= now_->stack_begin && stack.size() >= sizeof *into &&
      within <= stack.size() - sizeof *into) {
    std::memcpy(into, stack.data() + within, sizeof *into);
    return true;
  }
  return process_memory::read_directly(pid_, address, into, sizeof *into) == sizeof *into;
}

int unwinder::find_elf(Dwfl_Module* module, void** data, const char*, Dwarf_Addr base, char**,
                       Elf** elf) {
  auto& self = *static_cast<unwinder*>(*data);
  auto* m = self.module_at(base);
  auto* file = m == nullptr ? nullptr : self.file_of(*m);
  (void)module;
  if (file != nullptr)
    *elf = file->without_sections(); // libdwfl ends it
  return -1;
}

bool unwinder::memory_read(Dwfl*, Dwarf_Addr address, Dwarf_Word* into, void* self) {
  return static_cast<unwinder*>(self)->read_memory(address, into);
}

pid_t unwinder::next_thread(Dwfl*, void* self, void** thread) {
  if (*thread != nullptr)
    return 0;
  *thread = self;
  return static_cast<unwinder*>(self)->now_->id;
}

bool unwinder::get_thread(Dwfl*, pid_t, void* self, void** thread) {
  *thread = self;
  return true;
}

bool unwinder::set_registers(Dwfl_Thread* thread, void* self) {
  const auto& copy = *static_cast<unwinder*>(self)->now_;
  const auto all = in_order(copy.registers);
  if (!copy.is_whole) {
    const Dwarf_Word sp = stack_pointer_of(copy.registers), pc = instruction_of(copy.registers);
    dwfl_thread_state_register_pc(thread, pc);
    return dwfl_thread_state_registers(thread, stack_register, 1, &sp) &&
           (place_register < 0 || dwfl_thread_state_registers(thread, place_register, 1, &pc));
  }
  dwfl_thread_state_register_pc(thread, instruction_of(copy.registers));
  return dwfl_thread_state_registers(thread, 0, all.size(), all.data());
}

} // namespace troupe::os
