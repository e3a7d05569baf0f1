#include "launch/wiring/default_token.hpp"

#include "runtime/os/net/job_token.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace troupe;
using namespace troupe::launch;
namespace fs = std::filesystem;

namespace {

struct user {
  testing::temporary_directory home;
  machine_facts machine = [this] {
    machine_facts m;
    m.environment["HOME"] = home.path;
    return m;
  }();
  fs::path file() const { return fs::path(home.path) / ".config/troupe/token"; }
};

} // namespace

TEST_CASE("a token file is made where it is looked for, for this user only") {
  user u;
  const auto said = make_default_token(u.machine);
  REQUIRE(said);
  CHECK(said->find(u.file()) == 0);
  CHECK(fs::status(u.file()).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(fs::status(u.file().parent_path()).permissions() == fs::perms::owner_all);
  CHECK(os::job_token::read(u.file())->secret().size() == 64);
}

TEST_CASE("a token that is there stays") {
  user u;
  REQUIRE(make_default_token(u.machine));
  const auto before = os::job_token::read(u.file())->secret();
  const auto again = make_default_token(u.machine);
  REQUIRE_FALSE(again);
  CHECK(again.error().what.find("is there already") != std::string::npos);
  CHECK(os::job_token::read(u.file())->secret() == before);
}

TEST_CASE("a folder that cannot be made, and a user without one, are told") {
  user u;
  u.machine.environment["XDG_CONFIG_HOME"] = "/proc/none";
  const auto unmade = make_default_token(u.machine);
  REQUIRE_FALSE(unmade);
  CHECK(unmade.error().what.find("/proc/none/troupe/token") != std::string::npos);
  u.machine.environment.clear();
  CHECK(make_default_token(u.machine).error().what.find("HOME") != std::string::npos);
}

TEST_CASE("it is taken for what meets beyond this machine, where nothing else is given") {
  user u;
  const auto taken = [&u](const std::string& host, common_options o = {}) {
    take_default_token(o, {host, 1}, u.machine);
    return o.token_file;
  };
  CHECK(taken("10.0.0.1") == "");
  REQUIRE(make_default_token(u.machine));
  CHECK(taken("10.0.0.1") == u.file());
  CHECK(taken("head") == u.file());
  CHECK(taken("127.0.0.1") == "");
  CHECK(taken("localhost") == "");
  common_options certified;
  certified.certificate = "c.pem";
  CHECK(taken("head", certified) == "");
  common_options told;
  told.token = "secret";
  CHECK(taken("head", told) == "");
}
