#include "launch/worker/log_tail.hpp"

#include "messages/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

const std::string full(limits::log_tail_max, 'x');

} // namespace

TEST_SUITE("log_tail") {
  TEST_CASE("a short log is told in full") {
    CHECK(last_lines("") == "");
    CHECK(last_lines("one\ntwo") == "one\ntwo");
    CHECK(last_lines(full) == full);
  }

  TEST_CASE("of a long one whole lines, and of a line that is too long its end") {
    CHECK(last_lines("cut off\nlast\n" + full.substr(8)) == "last\n" + full.substr(8));
    CHECK(last_lines("\n" + full) == full);
    CHECK(last_lines("x" + full) == full);
    CHECK(last_lines("x" + full.substr(1) + "\n") == full.substr(1) + "\n");
  }

  TEST_CASE("whatever was written, it is UTF-8 without zero bytes, and no longer than it may be") {
    CHECK(last_lines(std::string("a\0b\xff\n", 5)) == "a b\xef\xbf\xbd\n");
    const auto noise = last_lines(std::string(limits::log_tail_max + 1, '\xff'));
    CHECK(noise.size() <= limits::log_tail_max);
    CHECK(noise.find("\xef\xbf\xbd") == 0);
    CHECK(noise.size() % 3 == 0);
  }

  TEST_CASE("the exception that a program ended with is found behind its traceback") {
    CHECK(exception_in("") == "");
    CHECK(exception_in("ValueError: said without a traceback\n") == "");
    const std::string traceback = "Traceback (most recent call last):\n"
                                  "  File \"t.py\", line 2, in <module>\n"
                                  "    f()\n";
    CHECK(exception_in(traceback) == ""); // cut off
    CHECK(exception_in("step 1\n" + traceback + "ValueError: no such batch\n") ==
          "ValueError: no such batch");
    CHECK(exception_in(traceback +
                       "KeyError: 'a'\n\nDuring handling of the above exception, "
                       "another exception occurred:\n\n" +
                       traceback + "my.Error\nsecond line\nW0000 a warning\n") == "my.Error");
    CHECK(exception_in("[rank3]: Traceback (most recent call last):\n[rank3]:   File \"t.py\"\n"
                       "[rank3]:     f()\n[rank3]: OSError: gone\n") == "OSError: gone");
    CHECK(exception_in(traceback + std::string(255, 'x') + "\u00b5").size() == 255);
  }
}
