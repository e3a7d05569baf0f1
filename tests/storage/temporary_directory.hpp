#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::testing {

struct temporary_directory {
  temporary_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-storage-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~temporary_directory() { std::filesystem::remove_all(path); }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  std::filesystem::path path;
};

} // namespace troupe::testing
