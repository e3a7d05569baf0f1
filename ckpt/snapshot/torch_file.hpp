#pragma once

#include "ckpt/snapshot/archive.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::ckpt {

/// The records of what `torch.save` writes, in its order (torch/serialization.py, `_save`,
/// of 2.13): the pickle, three small ones that say how to read the rest, each storage, and the
/// version.
class torch_file {
 public:
  /// Sizes in bytes, of the pickle and of each storage, which the pickle names "0", "1", …
  torch_file(std::uint64_t pickle, const std::vector<std::uint64_t>& storages);

  const archive_layout& layout() const { return layout_; }
  std::uint64_t pickle_at() const { return layout_.data_of(0); }
  std::uint64_t storage_at(std::size_t index) const;
  /// Everything but the pickle and the storages.
  void write_frame(char* snapshot) const;

 private:
  archive_layout layout_;
  std::size_t storages_;
};

} // namespace troupe::ckpt
