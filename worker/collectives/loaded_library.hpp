#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

/// A shared library as the loader has it in this process: its symbols, and the words in which it
/// keeps the addresses of functions.
namespace troupe::worker {

class loaded_library {
 public:
  /// Of this file name, without its folder: "libtorch_cpu.so". Nothing if no such one is loaded, or
  /// if it lacks the tables that are needed.
  static std::optional<loaded_library> find(std::string_view file_name);

  struct symbol {
    std::uint32_t index = 0;
    void* address = nullptr;
    std::uint64_t bytes = 0;
  };
  /// One that this library defines.
  std::optional<symbol> defined(const char* name) const;

  /// A word that the loader sets to a function's or object's address, by the symbol's name.
  struct address_word {
    std::uint32_t symbol = 0;
    void** word = nullptr;
  };
  /// All of them. The loader's own order, so each table is read once and straight on.
  void each_address_word(const std::function<void(const address_word&)>& use) const;

  const char* name_of(std::uint32_t index) const;
  /// Where a symbol of this library is; nothing if another library defines it.
  void* address_of(std::uint32_t index) const;

  /// Replaces a word, also where the loader has made memory read-only since. False if the system
  /// does not allow that.
  bool replace(void** word, void* by) const;

 private:
  bool take_tables(const dl_phdr_info& from);

  std::uintptr_t base_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const std::uint32_t* hashes_ = nullptr; ///< DT_GNU_HASH
  const ElfW(Rela) * relocations_ = nullptr;
  std::size_t relocations_count_ = 0;
  std::size_t relative_ = 0; ///< so many of them, the first, have no symbol
  const ElfW(Rela) * calls_ = nullptr;
  std::size_t calls_count_ = 0;
  std::uintptr_t read_only_begin_ = 0, read_only_end_ = 0;
};

} // namespace troupe::worker
