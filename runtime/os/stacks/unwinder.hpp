#pragma once

#include "diag/stacks/process_stacks.hpp"
#include "runtime/os/stacks/elf_files.hpp"
#include "runtime/os/stacks/stopped_thread.hpp"

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

/// Makes frames of the copies of a process's threads: by the tables that the compiler left for
/// exceptions (.eh_frame), with names from the tables of symbols. What is in neither is known by
/// its file alone. Line numbers are not looked for: they are in other files, and large.
class unwinder {
 public:
  /// `files` lives longer.
  static result<std::unique_ptr<unwinder>> of(pid_t pid, std::vector<mapping> mappings,
                                              elf_files& files);
  ~unwinder();
  unwinder(const unwinder&) = delete;
  unwinder& operator=(const unwinder&) = delete;

  /// Up to where memory from `address` on is mapped and written to.
  std::uint64_t stack_end(std::uint64_t address) const;

  struct unwound {
    std::vector<diag::stack_frame> frames;
    std::string missing;
  };
  unwound frames_of(const thread_copy& copy);

 private:
  struct module {
    mapping whole; ///< from its first mapping to its last
    std::uint64_t bias = 0;
    elf_file* file = nullptr;
    bool is_opened = false;
  };

  unwinder(pid_t pid, std::vector<mapping> mappings, elf_files& files);
  bool begin();
  void find_modules();
  module* module_at(std::uint64_t address);
  elf_file* file_of(module& m);
  diag::stack_frame frame_at(std::uint64_t address);
  bool read_memory(std::uint64_t address, Dwarf_Word* into);

  static int find_elf(Dwfl_Module*, void** data, const char*, Dwarf_Addr, char**, Elf** elf);
  static bool memory_read(Dwfl*, Dwarf_Addr address, Dwarf_Word* into, void* self);
  static pid_t next_thread(Dwfl*, void* self, void** thread);
  static bool get_thread(Dwfl*, pid_t, void* self, void** thread);
  static bool set_registers(Dwfl_Thread* thread, void* self);

  pid_t pid_;
  std::vector<mapping> mappings_;
  elf_files& files_;
  std::vector<module> modules_; ///< by address
  std::string unread_;          ///< why a file could not be opened, the first of them
  Dwfl* dwfl_ = nullptr;
  const thread_copy* now_ = nullptr;
};

} // namespace troupe::os
