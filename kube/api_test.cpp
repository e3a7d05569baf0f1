#include "kube/api.hpp"

#include <doctest/doctest.h>

using namespace troupe::kube;

TEST_CASE("which answers are worth another attempt") {
  for (const unsigned status : {0u, 429u, 500u, 503u, 504u})
    CHECK(is_passing({status, "", {}}));
  for (const unsigned status : {200u, 201u, 401u, 403u, 404u, 409u, 410u, 422u})
    CHECK(!is_passing({status, "", {}}));
}

TEST_CASE("answers in words") {
  CHECK(in_words({0, "connection refused", {}}) == "connection refused");
  CHECK(in_words({403,
                  R"({"kind":"Status","message":"nodes \"n\" is forbidden:\n no","code":403})",
                  {}}) == "nodes \"n\" is forbidden:  no (status 403)");
  CHECK(in_words({502, "<html>", {}}) == "status 502");
  CHECK(in_words({500, R"({"message":7})", {}}) == "status 500");
  CHECK(in_words({500, R"(["message"])", {}}) == "status 500");
  CHECK(in_words({500, "{\"message\":\"" + std::string(10'000, 'x') + "\"}", {}}).size() < 400);
}

TEST_CASE("values of queries") {
  CHECK(escaped("status.podIP=fd00::1,a/b c") == "status.podIP%3Dfd00%3A%3A1%2Ca%2Fb%20c");
  CHECK(escaped("a-b_c.d~e09") == "a-b_c.d~e09");
}
