#include "runtime/os/stacks/elf_files.hpp"

#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::os {

namespace {

/// Of the code that the kernel gives to each process; it has one or two pages.
constexpr std::size_t vdso_pages_max = 4;

template<class Visit>
void for_each_symbol(Elf* elf, Visit visit) {
  for (auto* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr ||
        (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) || header.sh_entsize == 0)
      continue;
    auto* data = elf_getdata(section, nullptr);
    if (data == nullptr)
      continue;
    const auto count =
        std::min<std::uint64_t>(header.sh_size / header.sh_entsize, limits::stacks_symbols_max);
    for (std::uint64_t n = 0; n < count; ++n) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(n), &symbol) == nullptr)
        break;
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name != 0 && !visit(symbol, header.sh_link))
        return;
    }
  }
}

} // namespace

result<std::unique_ptr<elf_file>> elf_file::open(const std::string& path) {
  std::unique_ptr<elf_file> file(new elf_file);
  file->fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file->fd_ < 0)
    return failure(errc::absent, fmt::format("{}: {}", path, std::strerror(errno)));
  elf_version(EV_CURRENT);
  file->elf_ = elf_begin(file->fd_, ELF_C_READ_MMAP, nullptr);
  if (file->elf_ == nullptr || !file->read_headers())
    return failure(errc::invalid, fmt::format("{} is no ELF file that can be read", path));
  return file;
}

std::unique_ptr<elf_file> elf_file::from_memory(std::string image) {
  std::unique_ptr<elf_file> file(new elf_file);
  file->image_ = std::move(image);
  elf_version(EV_CURRENT);
  file->elf_ = elf_memory(file->image_.data(), file->image_.size());
  return file->elf_ != nullptr && file->read_headers() ? std::move(file) : nullptr;
}

elf_file::~elf_file() {
  if (mapped_ != nullptr)
    ::munmap(mapped_, mapped_size_);
  elf_end(elf_);
  if (fd_ >= 0)
    ::close(fd_);
}

Elf* elf_file::without_sections() {
  if (fd_ < 0)
    return elf_memory(image_.data(), image_.size());
  struct stat file {};
  if (mapped_ == nullptr && ::fstat(fd_, &file) == 0 &&
      static_cast<std::size_t>(file.st_size) > sizeof(Elf64_Ehdr)) {
    const auto size = static_cast<std::size_t>(file.st_size);
    auto* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, 0);
    if (at == MAP_FAILED)
      return nullptr;
    mapped_ = static_cast<char*>(at);
    mapped_size_ = size;
    Elf64_Ehdr header;
    std::memcpy(&header, mapped_, sizeof header);
    if (header.e_ident[EI_CLASS] == ELFCLASS64) {
      header.e_shoff = 0;
      header.e_shnum = header.e_shstrndx = 0;
      std::memcpy(mapped_, &header, sizeof header);
    }
  }
  return mapped_ == nullptr ? nullptr : elf_memory(mapped_, mapped_size_);
}

bool elf_file::read_headers() {
  std::size_t count = 0;
  if (elf_kind(elf_) != ELF_K_ELF || elf_getphdrnum(elf_, &count) != 0)
    return false;
  for (std::size_t n = 0; n < count; ++n) {
    GElf_Phdr header;
    if (gelf_getphdr(elf_, static_cast<int>(n), &header) != nullptr && header.p_type == PT_LOAD)
      segments_.push_back(header);
  }
  return true;
}

std::optional<std::uint64_t> elf_file::address_of_offset(std::uint64_t offset) const {
  constexpr std::uint64_t page = 4'096; // a mapping begins at the page in which its segment does
  for (const auto& s : segments_) {
    const auto begin = s.p_offset / page * page;
    if (offset >= begin && offset < s.p_offset + s.p_filesz)
      return s.p_vaddr - s.p_offset + offset;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> elf_file::address_of_symbol(std::string_view name) {
  std::optional<std::uint64_t> found;
  for_each_symbol(elf_, [&](const GElf_Sym& symbol, std::uint32_t strings) {
    const auto* text = elf_strptr(elf_, strings, symbol.st_name);
    if (text != nullptr && name == text)
      found = symbol.st_value;
    return !found;
  });
  return found;
}

void elf_file::read_functions() {
  functions_are_read_ = true;
  for_each_symbol(elf_, [&](const GElf_Sym& symbol, std::uint32_t strings) {
    const auto type = GELF_ST_TYPE(symbol.st_info);
    if (type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && symbol.st_size != 0))
      functions_.push_back(
          {symbol.st_value, symbol.st_value + symbol.st_size, symbol.st_name, strings});
    return functions_.size() < limits::stacks_symbols_max;
  });
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const function& a, const function& b) { return a.begin < b.begin; });
}

std::optional<std::string> elf_file::function_at(std::uint64_t address) {
  if (!functions_are_read_)
    read_functions();
  auto at = std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](std::uint64_t a, const function& f) { return a < f.begin; });
  // Of several that begin there, one that has a size and holds the address; else one that has none
  // (written in assembler), which ends where the next begins.
  const function* without_size = nullptr;
  constexpr int looked_at = 16;
  for (int n = 0; n < looked_at && at != functions_.begin(); ++n) {
    --at;
    if (address < at->end) {
      const auto* name = elf_strptr(elf_, at->strings, at->name);
      return name == nullptr ? std::nullopt : std::optional<std::string>(name);
    }
    if (at->begin != at->end)
      break;
    if (without_size == nullptr)
      without_size = &*at;
  }
  const auto* name = without_size == nullptr
                         ? nullptr
                         : elf_strptr(elf_, without_size->strings, without_size->name);
  return name == nullptr ? std::nullopt : std::optional<std::string>(name);
}

std::optional<std::string> elf_file::constant(std::string_view prefix,
                                              bool (*accept)(std::string_view, char)) {
  for (auto* section = elf_nextscn(elf_, nullptr); section != nullptr;
       section = elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS ||
        (header.sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) != SHF_ALLOC)
      continue;
    const auto* data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr)
      continue;
    std::string_view text(static_cast<const char*>(data->d_buf), data->d_size);
    for (std::size_t at = text.find(prefix); at != text.npos; at = text.find(prefix, at + 1)) {
      const auto end = text.find('\0', at);
      if (end != text.npos && accept(text.substr(at, end - at), at == 0 ? '\0' : text[at - 1]))
        return std::string(text.substr(at, end - at));
    }
  }
  return std::nullopt;
}

std::optional<std::string> elf_file::library_name() {
  for (auto* section = elf_nextscn(elf_, nullptr); section != nullptr;
       section = elf_nextscn(elf_, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNAMIC ||
        header.sh_entsize == 0)
      continue;
    auto* data = elf_getdata(section, nullptr);
    const auto count = data == nullptr ? 0 : header.sh_size / header.sh_entsize;
    GElf_Dyn entry;
    for (std::uint64_t n = 0;
         n < count && gelf_getdyn(data, static_cast<int>(n), &entry) != nullptr; ++n)
      if (entry.d_tag == DT_SONAME)
        if (const auto* name = elf_strptr(elf_, header.sh_link, entry.d_un.d_val))
          return std::string(name);
  }
  return std::nullopt;
}

result<elf_file*> elf_files::of(pid_t pid, const mapping& m) {
  if (m.path == "[vdso]") {
    const auto at = ::getauxval(AT_SYSINFO_EHDR);
    if (!kernels_ && at != 0)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's word for where it is
      kernels_ = elf_file::from_memory(
          std::string(reinterpret_cast<const char*>(at),
                      std::min<std::size_t>(m.end - m.begin, vdso_pages_max * 4'096)));
    if (!kernels_)
      return failure(errc::absent, "the kernel's own code cannot be read");
    return kernels_.get();
  }
  const auto known = files_.find({m.device, m.inode});
  if (known != files_.end())
    return known->second ? result<elf_file*>(known->second->get())
                         : tl::make_unexpected(known->second.error());
  result<std::unique_ptr<elf_file>> opened =
      failure(errc::absent, fmt::format("{} is not there any more", m.path));
  for (const auto& path :
       {m.path, fmt::format("/proc/{}/root{}", pid, m.path), fmt::format("/proc/{}/exe", pid),
        fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, m.begin, m.end)}) {
    struct stat file {};
    // On some file systems (overlay, btrfs) the mapping names another device than stat does.
    if (::stat(path.c_str(), &file) != 0 || file.st_ino != m.inode || !S_ISREG(file.st_mode))
      continue;
    opened = elf_file::open(path);
    if (opened)
      break;
  }
  const auto& kept = files_.emplace(std::pair(m.device, m.inode), std::move(opened)).first->second;
  return kept ? result<elf_file*>(kept->get()) : tl::make_unexpected(kept.error());
}

} // namespace troupe::os
