#include "launch/worker/progress_memory.hpp"

#include "diag/progress/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe::launch {

class progress_memory::page {
 public:
  explicit page(int descriptor) : descriptor_(descriptor) {}
  page(page&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  page& operator=(page&&) = delete;
  ~page() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

progress_memory::progress_memory(std::uint32_t local_ranks)
    : pages_(std::make_shared<std::vector<page>>()) {
  for (std::uint32_t local = 0; local < std::min(local_ranks, local_ranks_max); ++local) {
    const auto name = fmt::format("troupe-progress-{}", local);
    page made(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (made.descriptor() < 0 ||
        ::ftruncate(made.descriptor(), static_cast<off_t>(diag::page_bytes)) != 0 ||
        ::fcntl(made.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return;
    pages_->push_back(std::move(made));
  }
}

std::vector<int> progress_memory::descriptors() const {
  std::vector<int> all;
  for (const auto& each : *pages_)
    all.push_back(each.descriptor());
  return all;
}

} // namespace troupe::launch
