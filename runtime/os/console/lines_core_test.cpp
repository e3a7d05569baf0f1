#include "runtime/os/console/lines_core.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using troupe::os::lines_core;

namespace {

struct outcome {
  std::string shown;
  std::string kept;
};

/// The stream offered in blocks that grow by `step` bytes when nothing could be taken, as a file
/// does that is read while it is written; `held_max` bytes of an unfinished line are held.
outcome passed(const std::string& stream, std::size_t step, std::size_t held_max = 1'000,
               std::size_t enough = 1'000) {
  lines_core lines("> ", {"loss", "[x]"});
  outcome out;
  std::size_t from = 0;
  std::size_t to = 0;
  while (to < stream.size()) {
    to = std::min(to + step, stream.size());
    for (;;) {
      const auto block = std::string_view(stream).substr(from, std::min(to - from, held_max));
      outcome part;
      auto taken = lines.take(block, enough, part.shown, part.kept);
      if (taken == 0 && block.size() == held_max) {
        lines.pass_piece(block, part.shown, part.kept);
        taken = block.size();
      }
      out.shown += part.shown;
      out.kept += part.kept;
      from += taken;
      if (taken == 0)
        break;
    }
  }
  lines.end(std::string_view(stream).substr(from), out.shown, out.kept);
  return out;
}

} // namespace

TEST_SUITE("lines_core") {
  TEST_CASE("every line gets a prefix, however the bytes arrive") {
    struct row {
      const char* what;
      std::string stream, shown;
    };
    using namespace std::string_literals;
    const row table[] = {
        {"nothing", "", ""},
        {"lines", "a\nbc\n", "> a\n> bc\n"},
        {"an empty line", "\n\na\n", "> \n> \n> a\n"},
        {"an unfinished last line is ended", "a\nb", "> a\n> b\n"},
        {"as Windows writes", "a\r\nb\r\n", "> a\n> b\n"},
        {"a progress bar", "10%\r20%\r30%\n", "> 10%\n> 20%\n> 30%\n"},
        {"both in a row", "a\r\r\nb\n\rc", "> a\n> \n> b\n> \n> c\n"},
        {"any bytes", "\0\xff\x1b[0m\n"s, "> \0\xff\x1b[0m\n"s},
    };
    for (const auto& each : table)
      for (std::size_t step = 1; step <= each.stream.size() + 1; ++step) {
        CAPTURE(each.what);
        CAPTURE(step);
        CHECK(passed(each.stream, step).shown == each.shown);
        CHECK(passed(each.stream, step, 1'000, 1).shown == each.shown);
      }
  }

  TEST_CASE("of a progress bar one state is shown so often, and its last") {
    using namespace std::chrono_literals;
    lines_core lines("> ", {"[x]"}, 10s);
    std::string shown, kept;
    const auto at = [&](int second, const std::string& bytes) {
      shown.clear();
      lines.set_time(troupe::instant(std::chrono::seconds(second)), "");
      return lines.take(bytes, 100, shown, kept);
    };
    CHECK(at(1, "1%\r") == 3);
    CHECK(shown == "> 1%\n");
    CHECK(at(2, "2%\r3%\r") == 3); // "\n" may follow the last
    CHECK(shown.empty());
    CHECK(at(3, "3%\r4%\r[x]\rend\r\nline\n") == 20);
    CHECK(shown == "> [x]\n> end\n> line\n");
    CHECK(kept == "> [x]\n");
    CHECK(at(12, "5%\r") == 0);
    CHECK(at(13, "5%\r6%\r") == 3);
    CHECK(shown == "> 5%\n");
    shown.clear();
    lines.end("7%\r", shown, kept);
    CHECK(shown == "> 7%\n");
  }

  TEST_CASE("a prefix with the time has that of the moment at which the line is shown") {
    lines_core lines("${time} [3] ", {"b"});
    CHECK(lines.tells_time());
    CHECK_FALSE(lines_core("> ", {}).tells_time());
    std::string shown, kept;
    lines.set_time({}, "12:00:00.000");
    (void)lines.take("a\n", 100, shown, kept);
    lines.set_time({}, "12:00:01.500");
    (void)lines.take("b\n", 100, shown, kept);
    CHECK(shown == "12:00:00.000 [3] a\n12:00:01.500 [3] b\n");
    CHECK(kept == "12:00:01.500 [3] b\n");
  }

  TEST_CASE("lines with a needle are kept apart, with their prefix") {
    const std::string stream = "step 1\nloss 2\n[x] and loss\nLOSS\nlo\nss\nloss";
    for (std::size_t step = 1; step <= stream.size(); ++step)
      CHECK(passed(stream, step).kept == "> loss 2\n> [x] and loss\n> loss\n");
  }

  TEST_CASE("a line too long to be held passes in pieces, under one prefix") {
    const std::string line(100, 'x');
    for (const auto* end : {"\n", "\r\n", "\r", ""})
      for (std::size_t step = 1; step <= line.size(); ++step) {
        CAPTURE(step);
        const auto after = *end ? std::string("b\n") : std::string();
        CHECK(passed("a\n" + line + end + after, step, 7).shown ==
              "> a\n> " + line + "\n" + (after.empty() ? "" : "> b\n"));
      }
  }

  TEST_CASE("whether a long line is kept apart is seen in its first piece") {
    const auto found = passed("loss" + std::string(20, 'x') + "\nb\n", 100, 10);
    CHECK(found.kept == "> loss" + std::string(20, 'x') + "\n");
    CHECK(passed(std::string(20, 'x') + "loss\n", 100, 10).kept.empty());
  }

  TEST_CASE("a line that has to make room is ended, and goes on as another") {
    lines_core lines("> ", {});
    std::string shown, kept;
    lines.pass_piece("abc", shown, kept);
    CHECK(lines.within_line());
    lines.end({}, shown, kept);
    CHECK_FALSE(lines.within_line());
    CHECK(lines.take("def\n", 100, shown, kept) == 4);
    CHECK(shown == "> abc\n> def\n");
  }

  TEST_CASE("it stops when there is enough to show") {
    lines_core lines("> ", {});
    std::string shown, kept;
    CHECK(lines.take("a\nb\nc\n", 4, shown, kept) == 2);
    CHECK(lines.take("b\nc\n", 5, shown, kept) == 2);
    CHECK(shown == "> a\n> b\n");
  }
}
