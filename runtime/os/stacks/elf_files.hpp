#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/stacks/kernel_files.hpp"

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::os {

/// An ELF file that processes have mapped, opened once for all of them: torch's largest library
/// has half a gigabyte and a hundred thousand symbols. Only what is asked for is read of it.
class elf_file {
 public:
  static result<std::unique_ptr<elf_file>> open(const std::string& path);
  static std::unique_ptr<elf_file> from_memory(std::string image);
  ~elf_file();
  elf_file(const elf_file&) = delete;
  elf_file& operator=(const elf_file&) = delete;

  Elf* handle() { return elf_; }
  /// The same file, the caller's to end, as one that has no sections: libdw takes the sorted table
  /// of functions from the section .eh_frame_hdr only if that comes before .eh_frame, as it does
  /// not in torch's libraries, and from the program header always. Without the table it would read
  /// all that comes before a function. Null if it cannot be mapped.
  Elf* without_sections();

  /// The address in the file's own numbering of what lies at `offset` in it.
  std::optional<std::uint64_t> address_of_offset(std::uint64_t offset) const;
  /// Of a dynamic or other symbol.
  std::optional<std::uint64_t> address_of_symbol(std::string_view name);
  /// The function, as it is mangled, that `address` lies in.
  std::optional<std::string> function_at(std::uint64_t address);
  /// The first text of its read-only data that ends with a zero, begins with `prefix` and is one
  /// that `accept` takes. It may be the end of a longer text, as linkers keep a text once that is
  /// the end of another; `before` is the character in front of it, 0 at a beginning.
  std::optional<std::string> constant(std::string_view prefix,
                                      bool (*accept)(std::string_view text, char before));
  /// The name by which a library is loaded (DT_SONAME); nothing: it is none, or has none.
  std::optional<std::string> library_name();

 private:
  struct function {
    std::uint64_t begin = 0, end = 0;
    std::uint32_t name = 0; ///< in its string table
    std::uint32_t strings = 0;
  };

  elf_file() = default;
  bool read_headers();
  void read_functions();

  int fd_ = -1;
  std::string image_;
  char* mapped_ = nullptr;
  std::size_t mapped_size_ = 0;
  Elf* elf_ = nullptr;
  std::vector<GElf_Phdr> segments_;
  bool functions_are_read_ = false;
  std::vector<function> functions_; ///< by begin
};

/// Those that were opened, by what they are and not by where.
class elf_files {
 public:
  elf_files() = default;

  /// The file behind a mapping of the process; why not, if it cannot be opened. It may be another
  /// one than what its path now names (replaced since, or in a container): then it is found through
  /// the process, or refused.
  result<elf_file*> of(pid_t pid, const mapping& m);

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, result<std::unique_ptr<elf_file>>> files_;
  std::unique_ptr<elf_file> kernels_; ///< the vdso
};

} // namespace troupe::os
