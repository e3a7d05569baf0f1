#include "runtime/os/log/logs.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/log/console_sink.hpp"
#include "runtime/os/log/json_line.hpp"
#include "runtime/os/log/printable.hpp"

#include <boost/json/parse.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <pty.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

using namespace troupe;

namespace {

/// A file of this test's own, removed with it.
class scratch_file {
 public:
  scratch_file() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-log-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    path = name;
    stream = std::fopen(path.c_str(), "w");
  }
  ~scratch_file() {
    std::fclose(stream);
    std::filesystem::remove(path);
  }

  std::vector<std::string> lines() const {
    std::ifstream file(path);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);)
      all.push_back(line);
    return all;
  }

  std::string path;
  std::FILE* stream = nullptr;
};

log::event event(log::level severity, std::string text) {
  return {severity, "something", std::move(text), {}};
}

/// Logs one event of each level and answers what the console got, without the times.
std::vector<std::string> told_with(os::verbosity how_much) {
  const scratch_file console;
  {
    auto logs = os::logs::open({how_much, console.stream, ""});
    REQUIRE(logs);
    const auto sink = (*logs)->sink();
    for (const auto severity : {log::level::debug, log::level::info, log::level::notice,
                                log::level::warning, log::level::error})
      sink("master/recovery", event(severity, log::to_string(severity)));
  }
  std::vector<std::string> told;
  const std::regex shape(R"(\d\d:\d\d:\d\d\.\d\d\d  (.*))");
  for (const auto& line : console.lines()) {
    std::smatch parts;
    REQUIRE(std::regex_match(line, parts, shape));
    told.push_back(parts[1]);
  }
  return told;
}

/// What a terminal gets for a warning.
std::string seen_on_a_terminal() {
  int screen = -1;
  int keyboard_side = -1;
  REQUIRE(::openpty(&screen, &keyboard_side, nullptr, nullptr, nullptr) == 0);
  std::FILE* stream = ::fdopen(keyboard_side, "w");
  {
    auto logs = os::logs::open({os::verbosity::normal, stream, ""});
    REQUIRE(logs);
    (*logs)->sink()("x", event(log::level::warning, "careful"));
  }
  char bytes[256];
  const auto got = ::read(screen, bytes, sizeof bytes);
  std::fclose(stream);
  ::close(screen);
  REQUIRE(got > 0);
  return {bytes, static_cast<std::size_t>(got)};
}

} // namespace

TEST_CASE("the console tells as much as was asked for") {
  using lines = std::vector<std::string>;
  CHECK(told_with(os::verbosity::quiet) == lines{"warning: warning", "error: error"});
  CHECK(told_with(os::verbosity::normal) == lines{"notice", "warning: warning", "error: error"});
  CHECK(told_with(os::verbosity::verbose) ==
        lines{"[master/recovery] debug", "[master/recovery] info", "[master/recovery] notice",
              "warning: [master/recovery] warning", "error: [master/recovery] error"});
}

TEST_CASE("a system that refuses a thread at the end loses no line") {
  const scratch_file console;
  auto opened = os::logs::open({os::verbosity::normal, console.stream, {}});
  REQUIRE(opened);
  (*opened)->sink()("test", event(log::level::notice, "the last"));
  pthread_attr_t before, huge;
  REQUIRE(::pthread_getattr_default_np(&before) == 0);
  REQUIRE(::pthread_getattr_default_np(&huge) == 0);
  // More than there are addresses.
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0);
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  opened->reset();
  REQUIRE(::pthread_setattr_default_np(&before) == 0);
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&before);
  REQUIRE(console.lines().size() == 1);
  CHECK(console.lines().front().find("the last") != std::string::npos);
}

TEST_CASE("a terminal gets colours unless NO_COLOR is set, anything else gets none") {
  ::setenv("TERM", "xterm-256color", 1);
  ::unsetenv("NO_COLOR");
  CHECK(seen_on_a_terminal().find("\033[") != std::string::npos);
  ::setenv("NO_COLOR", "1", 1);
  CHECK(seen_on_a_terminal().find('\033') == std::string::npos);
  ::unsetenv("NO_COLOR");
  for (const auto& line : told_with(os::verbosity::normal))
    CHECK(line.find('\033') == std::string::npos);
}

TEST_CASE("text of strangers cannot move the cursor, forge a line or hide") {
  CHECK(os::printable("plain, ümlaut, 日本語, 🙂") == "plain, ümlaut, 日本語, 🙂");
  CHECK(os::printable("a\n12:00:00.000  all is well") == "a\\n12:00:00.000  all is well");
  CHECK(os::printable("\033[2J\007\b\r\t") == "\\x1b[2J\\x07\\x08\\x0d\\t");
  CHECK(os::printable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(os::printable("\xc2\x9b") == "\\x9b");
  CHECK(os::printable("\u202egnp.exe\u200b\ufeff") == "\\u202egnp.exe\\u200b\\ufeff");
  CHECK(os::printable("\xff\xfe ok \xe2\x82") == "\ufffd\ufffd ok \ufffd");
  CHECK(os::printable("") == "");
}

TEST_CASE("text of strangers reaches the console escaped") {
  const scratch_file console;
  {
    auto logs = os::logs::open({os::verbosity::normal, console.stream, ""});
    REQUIRE(logs);
    (*logs)->sink()("x", event(log::level::notice, "{} %s \033[31mred\nnext"));
  }
  REQUIRE(console.lines().size() == 1);
  CHECK(console.lines().front().substr(14) == "{} %s \\x1b[31mred\\nnext");
}

TEST_CASE("an event becomes a line of JSON that can be read back, whatever is in it") {
  const std::string hostile = "quote \" backslash \\ line\n nul \1 bad \xff end";
  const log::event told{log::level::notice,
                        "generation_sealed",
                        hostile,
                        {{"generation", std::int64_t{3}},
                         {"took_ms", 1.5},
                         {"nothing", std::numeric_limits<double>::quiet_NaN()},
                         {"good", true},
                         {"na\"me", std::string("\xc3")}}};
  const auto wall = std::chrono::system_clock::time_point(std::chrono::microseconds(1'000'042));
  const auto line = os::json_line({"run \"7\"", "node-0"}, "master/rendezvous", told, wall,
                                  instant(std::chrono::nanoseconds(77)));
  CHECK(line.find('\n') == std::string::npos);
  CHECK(line.rfind(R"({"time":"1970-01-01T00:00:01.000042Z","level":"notice",)"
                   R"("job":"run \"7\"","node":"node-0","component":"master/rendezvous",)",
                   0) == 0);
  CHECK(line.find(R"("took_ms":1.5})") != std::string::npos);
  const auto read = boost::json::parse(line).as_object();
  CHECK(read.at("component").as_string() == "master/rendezvous");
  CHECK(read.at("event").as_string() == "generation_sealed");
  CHECK(read.at("text").as_string() == "quote \" backslash \\ line\n nul \1 bad \ufffd end");
  const auto& fields = read.at("fields").as_object();
  CHECK(fields.at("generation").as_int64() == 3);
  CHECK(fields.at("took_ms").as_double() == 1.5);
  CHECK(fields.at("nothing").is_null());
  CHECK(fields.at("good").as_bool());
  CHECK(fields.at("na\"me").as_string() == "\ufffd");
}

TEST_CASE("a process that knows no job and no node names none") {
  const auto line = os::json_line({}, "log", event(log::level::notice, "x"), {}, instant{});
  CHECK(line.find("job") == std::string::npos);
  CHECK(line.find("node") == std::string::npos);
  CHECK_NOTHROW((void)boost::json::parse(line));
}

TEST_CASE("a line is written in one piece, from the beginning of a line, with a mark") {
  using os::console_mark;
  CHECK(os::console_line("12:00:00.000", "go", console_mark::none, {}) == "12:00:00.000  go\n");
  CHECK(os::console_line("12:00:00.000", "go", console_mark::error, {}) ==
        "12:00:00.000  error: go\n");
  CHECK(os::console_line("12:00:00.000", "go", console_mark::warning, {true, 4}) ==
        "    \r12:00:00.000  \033[33m\033[1mgo\033[m\n");
}

TEST_CASE("a terminal's lines are broken between words, unless there is a command to copy") {
  const auto shown = [](const std::string& text) {
    const auto line = os::console_line("12:00:00.000", text, os::console_mark::none, {false, 60});
    return line.substr(61); // behind what leads to the beginning
  };
  const std::string words =
      "generation 2 starts: 2 workers on node node0-105 (its nodes were ready)";
  CHECK(shown(words) == "12:00:00.000  generation 2 starts: 2 workers on node\n"
                        "              node0-105 (its nodes were ready)\n");
  CHECK(shown(std::string(45, 'x')) == "12:00:00.000  " + std::string(45, 'x') + "\n");
  CHECK(shown(std::string(90, 'x')) == "12:00:00.000  " + std::string(90, 'x') + "\n");
  CHECK(shown(std::string(90, 'x') + " y") ==
        "12:00:00.000  " + std::string(90, 'x') + "\n              y\n");
  const std::string command =
      "on the others: actor-launcher --nnodes 2 --rdzv-endpoint h:29400 t.py";
  CHECK(shown(command) == "12:00:00.000  " + command + "\n");
  const auto in_a_file = os::console_line("12:00:00.000", words, os::console_mark::none, {});
  CHECK(in_a_file == "12:00:00.000  " + words + "\n");
}

TEST_CASE("the day is told with its zone") {
  std::tm day{};
  day.tm_year = 126;
  day.tm_mon = 10;
  day.tm_mday = 25;
  day.tm_gmtoff = -(9 * 60 + 30) * 60;
  CHECK(os::day_and_zone(day) == "2026-11-25 (UTC-09:30)");
  day.tm_gmtoff = 0;
  CHECK(os::day_and_zone(day) == "2026-11-25 (UTC+00:00)");
}

TEST_CASE("the file gets every event from every thread, each on a line, behind what was there") {
  const scratch_file console;
  const scratch_file json;
  std::ofstream(json.path) << "{}\n";
  constexpr std::size_t threads = 4;
  constexpr std::size_t each = limits::log_queue_max / threads / 2;
  {
    auto logs = os::logs::open({os::verbosity::quiet, console.stream, json.path});
    REQUIRE(logs);
    std::vector<std::thread> writers;
    for (std::size_t i = 0; i < threads; ++i)
      writers.emplace_back([sink = (*logs)->sink(), name = std::to_string(i)] {
        for (std::size_t n = 0; n < each; ++n)
          sink(name, event(log::level::debug, "tick"));
      });
    for (auto& writer : writers)
      writer.join();
  }
  const auto lines = json.lines();
  REQUIRE(lines.size() == 1 + threads * each);
  for (const auto& line : lines)
    CHECK_NOTHROW((void)boost::json::parse(line));
  CHECK(console.lines().empty());
}

TEST_CASE("a log file that cannot be opened is named") {
  const auto logs = os::logs::open({os::verbosity::normal, stderr, "/tmp"});
  REQUIRE_FALSE(logs);
  CHECK(logs.error().code == errc::invalid);
  CHECK(logs.error().what.find("'/tmp'") != std::string::npos);
}

TEST_CASE("a full disk is told once on the console, and logging goes on") {
  const scratch_file console;
  {
    auto logs = os::logs::open({os::verbosity::normal, console.stream, "/dev/full"});
    REQUIRE(logs);
    for (int i = 0; i < 5; ++i)
      (*logs)->sink()("x", event(log::level::notice, "go on"));
  }
  std::size_t errors = 0;
  std::size_t notices = 0;
  for (const auto& line : console.lines()) {
    errors += line.find("log file '/dev/full' is not complete: ") != std::string::npos ? 1 : 0;
    notices += line.find("go on") != std::string::npos ? 1 : 0;
  }
  CHECK(errors == 1);
  CHECK(notices == 5);
}

TEST_CASE("a console that went away ends nothing, and the file is still written") {
  const scratch_file json;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  ::close(pipe[0]);
  std::FILE* stream = ::fdopen(pipe[1], "w");
  {
    auto logs = os::logs::open({os::verbosity::normal, stream, json.path});
    REQUIRE(logs);
    for (int i = 0; i < 5; ++i)
      (*logs)->sink()("x", event(log::level::notice, "still here"));
  }
  std::fclose(stream);
  CHECK(json.lines().size() == 5);
}

TEST_CASE("a console that takes nothing does not delay the caller, and the loss is told") {
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  // The test reads only when everything has been logged; the text alone would fill the pipe many
  // times.
  std::FILE* stream = ::fdopen(pipe[1], "w");
  std::string taken;
  std::thread reader;
  {
    auto logs = os::logs::open({os::verbosity::normal, stream, ""});
    REQUIRE(logs);
    const auto sink = (*logs)->sink();
    for (std::size_t i = 0; i < 4 * limits::log_queue_max; ++i)
      sink("x", event(log::level::notice, std::string(200, '.')));
    reader = std::thread([from = pipe[0], &taken] {
      char bytes[4096];
      for (ssize_t got = 0; (got = ::read(from, bytes, sizeof bytes)) > 0;)
        taken.append(bytes, static_cast<std::size_t>(got));
    });
  }
  std::fclose(stream);
  reader.join();
  ::close(pipe[0]);
  CHECK(taken.find("lines of the log were dropped") != std::string::npos);
}

TEST_CASE("a console that takes nothing holds up neither the file nor the end, and it is told") {
  const scratch_file json;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0);
  while (::write(pipe[1], "xxxxxxxx", 8) > 0)
    continue;
  REQUIRE(::fcntl(pipe[1], F_SETFL, 0) == 0);
  std::FILE* stream = ::fdopen(pipe[1], "w");
  {
    auto logs = os::logs::open({os::verbosity::normal, stream, json.path});
    REQUIRE(logs);
    for (int i = 0; i < 5; ++i)
      (*logs)->sink()("x", event(log::level::notice, "only here"));
  }
  const auto lines = json.lines();
  REQUIRE(lines.size() == 6);
  // One more if its thread had not come to the first of them when the end came.
  const auto untaken = [&lines](int most) {
    const auto told = fmt::format("the console takes nothing: up to {} lines are only here", most);
    return lines.back().find(told) != std::string::npos;
  };
  CHECK_MESSAGE((untaken(5) || untaken(6)), lines.back());
  ::close(pipe[0]); // the thread that writes ends with a broken pipe
}

TEST_CASE("a sink may be used after the logs are gone, to no effect") {
  const scratch_file console;
  log::sink late;
  {
    auto logs = os::logs::open({os::verbosity::normal, console.stream, ""});
    REQUIRE(logs);
    late = (*logs)->sink();
    late("x", event(log::level::notice, "in time"));
  }
  late("x", event(log::level::notice, "too late"));
  CHECK(console.lines().size() == 1);
}

TEST_CASE("a fan-out gives every event to all, in order") {
  std::vector<std::string> got;
  const auto into = [&got](std::string name) {
    return [&got, name](const std::string& component, const log::event& e) {
      got.push_back(name + " " + component + " " + e.text);
    };
  };
  os::fan_out({into("a"), into("b")})("master", event(log::level::info, "hello"));
  CHECK(got == std::vector<std::string>{"a master hello", "b master hello"});
  os::fan_out({})("master", event(log::level::info, "hello"));
}
