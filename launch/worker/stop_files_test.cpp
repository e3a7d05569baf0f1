#include "launch/worker/stop_files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;
namespace fs = std::filesystem;

namespace {

struct place {
  fs::path root = fs::temp_directory_path() / fmt::format("troupe_stop_files_{}", ::getpid());
  std::vector<log::event> told;

  place() { fs::create_directories(root); }
  ~place() { fs::remove_all(root); }
  place(const place&) = delete;
  place& operator=(const place&) = delete;

  std::string path(const char* name) const { return (root / name).string(); }
  result<void> remove(const stop_files& files) {
    return remove_stop_files(
        files, [this](const std::string&, const log::event& e) { told.push_back(e); });
  }
};

} // namespace

TEST_CASE("files that were left are removed, and none need be there") {
  place p;
  std::ofstream(p.path("own")) << "";
  std::ofstream(p.path("usual")) << "";
  for (int again = 0; again < 2; ++again)
    CHECK(p.remove({p.path("own"), p.path("usual")}));
  CHECK_FALSE(fs::exists(p.path("own")));
  CHECK_FALSE(fs::exists(p.path("usual")));
  CHECK(p.remove({}));
  CHECK(p.told.empty());
}

TEST_CASE("the run's own that stays is an error, and another's is told and does no more") {
  place p;
  fs::create_directory(p.path("stays")); // which no unlink removes
  const auto own = p.remove({p.path("stays"), ""});
  REQUIRE_FALSE(own);
  CHECK(own.error().what.find(
            fmt::format("--stop-file {} is there and cannot be removed", p.path("stays"))) == 0);
  CHECK(p.told.empty());
  CHECK(p.remove({p.path("own"), p.path("stays")}));
  REQUIRE(p.told.size() == 1);
  CHECK(p.told[0].severity == log::level::warning);
  CHECK(p.told[0].text.find(p.path("stays")) != std::string::npos);
  CHECK(p.told[0].text.find("$TROUPE_STOP_FILE") != std::string::npos);
}
