#pragma once

#include "ckpt/snapshot/snapshot_layout.hpp"

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::ckpt::testing {

/// Snapshots of several files, put together as a training process does it.
struct file_snapshot {
  struct part {
    bool is_archive = false;
    std::string head;
    std::vector<std::string> storages;
  };
  struct file {
    std::string name;
    std::vector<part> parts;
  };

  static snapshot_layout::contents shape(const std::vector<file>& files) {
    snapshot_layout::contents c;
    for (const auto& f : files) {
      c.files.push_back({f.name, f.parts.size()});
      for (const auto& p : f.parts) {
        c.parts.push_back({p.is_archive, p.head.size(), p.storages.size()});
        for (const auto& s : p.storages)
          c.storages.push_back(s.size());
      }
    }
    return c;
  }
  /// `before`: what the memory holds.
  static std::string written(const snapshot_layout& layout, const std::vector<file>& files,
                             char before = '?') {
    std::string snapshot(layout.bytes(), before);
    layout.write_frame(snapshot.data());
    std::size_t part = 0, storage = 0;
    for (const auto& f : files)
      for (const auto& p : f.parts) {
        std::memcpy(snapshot.data() + layout.head_at(part++), p.head.data(), p.head.size());
        for (const auto& s : p.storages)
          std::memcpy(snapshot.data() + layout.storage_at(storage++), s.data(), s.size());
      }
    return snapshot;
  }
  /// Precondition: the files can be.
  static std::string sealed(const std::vector<file>& files) {
    const auto layout = snapshot_layout::of(shape(files));
    auto snapshot = written(layout.value(), files);
    if (const auto done = seal_snapshot(snapshot.data(), snapshot.size()); !done)
      throw std::logic_error(done.error().what);
    return snapshot;
  }
  /// Of one plain part each.
  static std::string of(const std::vector<std::pair<std::string, std::string>>& files) {
    std::vector<file> all;
    for (const auto& [name, content] : files)
      all.push_back({name, {{false, content, {}}}});
    return sealed(all);
  }
  static std::string_view content(std::string_view snapshot, const listed_file& of) {
    return snapshot.substr(of.begin, of.bytes);
  }
};

} // namespace troupe::ckpt::testing
