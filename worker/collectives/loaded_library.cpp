#include "worker/collectives/loaded_library.hpp"

#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace troupe::worker {

namespace {

#if defined(__x86_64__)
constexpr bool is_address(std::uint32_t type) {
  return type == R_X86_64_64 || type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT;
}
#elif defined(__aarch64__)
constexpr bool is_address(std::uint32_t type) {
  return type == R_AARCH64_ABS64 || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT;
}
#else
constexpr bool is_address(std::uint32_t) {
  return false;
}
#endif

std::uintptr_t page_of(std::uintptr_t address) {
  return address & ~static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE) - 1);
}

std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name)
    hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

} // namespace

bool loaded_library::take_tables(const dl_phdr_info& from) {
  base_ = from.dlpi_addr;
  const ElfW(Dyn)* entries = nullptr;
  for (std::size_t i = 0; i < from.dlpi_phnum; ++i) {
    const auto& part = from.dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC)
      entries = reinterpret_cast<const ElfW(Dyn)*>(base_ + part.p_vaddr);
    if (part.p_type == PT_GNU_RELRO) {
      read_only_begin_ = page_of(base_ + part.p_vaddr);
      read_only_end_ = page_of(base_ + part.p_vaddr + part.p_memsz);
    }
  }
  if (entries == nullptr)
    return false;
  for (; entries->d_tag != DT_NULL; ++entries) {
    // glibc has made these absolute in place; other loaders have not.
    const auto pointer = entries->d_un.d_ptr;
    const auto address = pointer < base_ ? base_ + pointer : pointer;
    switch (entries->d_tag) {
    case DT_SYMTAB:
      symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
      break;
    case DT_STRTAB:
      names_ = reinterpret_cast<const char*>(address);
      break;
    case DT_GNU_HASH:
      hashes_ = reinterpret_cast<const std::uint32_t*>(address);
      break;
    case DT_RELA:
      relocations_ = reinterpret_cast<const ElfW(Rela)*>(address);
      break;
    case DT_RELASZ:
      relocations_count_ = entries->d_un.d_val / sizeof(ElfW(Rela));
      break;
    case DT_RELACOUNT:
      relative_ = entries->d_un.d_val;
      break;
    case DT_JMPREL:
      calls_ = reinterpret_cast<const ElfW(Rela)*>(address);
      break;
    case DT_PLTRELSZ:
      calls_count_ = entries->d_un.d_val / sizeof(ElfW(Rela));
      break;
    case DT_PLTREL:
      if (entries->d_un.d_val != DT_RELA)
        return false;
      break;
    default:
      break;
    }
  }
  return symbols_ != nullptr && names_ != nullptr && hashes_ != nullptr &&
         relocations_ != nullptr && calls_ != nullptr && relative_ <= relocations_count_;
}

std::optional<loaded_library> loaded_library::find(std::string_view file_name) {
  struct search {
    std::string_view name;
    std::optional<loaded_library> found;
  } wanted{file_name, std::nullopt};
  ::dl_iterate_phdr(
      [](dl_phdr_info* each, std::size_t, void* given) {
        auto& in = *static_cast<search*>(given);
        const std::string_view path(each->dlpi_name == nullptr ? "" : each->dlpi_name);
        if (path.substr(path.rfind('/') + 1) != in.name)
          return 0;
        loaded_library library;
        if (library.take_tables(*each))
          in.found = library;
        return 1;
      },
      &wanted);
  return wanted.found;
}

std::optional<loaded_library::symbol> loaded_library::defined(const char* name) const {
  const auto buckets = hashes_[0], first = hashes_[1], bloom_words = hashes_[2];
  const auto* bucket = hashes_ + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const auto* chain = bucket + buckets;
  const auto hash = gnu_hash(name);
  auto index = buckets == 0 ? 0 : bucket[hash % buckets];
  if (index < first)
    return std::nullopt;
  for (;; ++index) {
    const auto there = chain[index - first];
    if ((there | 1) == (hash | 1) && std::strcmp(name_of(index), name) == 0)
      if (auto* const address = address_of(index))
        return symbol{index, address, symbols_[index].st_size};
    if ((there & 1) != 0)
      return std::nullopt;
  }
}

void loaded_library::each_address_word(const std::function<void(const address_word&)>& use) const {
  const auto read = [&](const ElfW(Rela) & each) {
    const auto index = static_cast<std::uint32_t>(ELF64_R_SYM(each.r_info));
    if (index != 0 && each.r_addend == 0 &&
        is_address(static_cast<std::uint32_t>(ELF64_R_TYPE(each.r_info))))
      use({index, reinterpret_cast<void**>(base_ + each.r_offset)});
  };
  for (auto i = relative_; i < relocations_count_; ++i)
    read(relocations_[i]);
  for (std::size_t i = 0; i < calls_count_; ++i)
    read(calls_[i]);
}

const char* loaded_library::name_of(std::uint32_t index) const {
  return names_ + symbols_[index].st_name;
}

void* loaded_library::address_of(std::uint32_t index) const {
  const auto& it = symbols_[index];
  const auto type = ELF64_ST_TYPE(it.st_info);
  if (it.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT))
    return nullptr;
  return reinterpret_cast<void*>(base_ + it.st_value);
}

bool loaded_library::replace(void** word, void* by) const {
  const auto address = reinterpret_cast<std::uintptr_t>(word);
  const auto store = [&] { __atomic_store_n(word, by, __ATOMIC_RELEASE); };
  if (address < read_only_begin_ || address >= read_only_end_) {
    store();
    return true;
  }
  auto* const page = reinterpret_cast<void*>(page_of(address));
  const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (::mprotect(page, bytes, PROT_READ | PROT_WRITE) != 0)
    return false;
  store();
  ::mprotect(page, bytes, PROT_READ);
  return true;
}

} // namespace troupe::worker
