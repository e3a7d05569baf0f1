#include "runtime/os/kube/kubeconfig.hpp"

#include "runtime/os/kube/limits.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace troupe;

namespace {

/// "AUTHORITY", "CERTIFICATE" and "KEY" in base64.
constexpr auto whole = R"(# as kubectl config writes it
apiVersion: v1
kind: Config
current-context: near
preferences: {}
clusters:
- name: home
  cluster:
    server: https://[fd00::1]:6443/
    certificate-authority-data: QVVUSE9SSVRZ
- cluster: {server: "https://rancher.example.com/k8s/clusters/c-1", tls-server-name: inside, certificate-authority: ca.crt}
  name: far
contexts:
- context: {cluster: home, user: person}
  name: near
- context:
    cluster: far
    namespace: training
    user: robot
  name: far
users:
- name: person
  user:
    client-certificate-data: Q0VSVElGSUNBVEU=
    client-key-data: S0VZ
- name: robot
  user:
    token: older
    tokenFile: secrets/token
)";

struct files {
  testing::temporary_directory directory;
  std::string config = (directory.path / "config").string();

  explicit files(const std::string& text) { write(config, text); }
  static void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text;
  }
  result<os::api_access> read(const std::string& context = {}) const {
    return os::access_by_kubeconfig(config, context);
  }
  std::string refused(const std::string& context = {}) const {
    const auto a = read(context);
    return a ? "accepted" : a.error().what;
  }
};

std::string changed(const std::string& from, const std::string& to) {
  std::string text = whole;
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("a kubeconfig says where the API server is and what it is shown") {
  const files f(whole);
  files::write(f.directory.path / "ca.crt", "ANOTHER");
  const auto near = f.read();
  REQUIRE_MESSAGE(near, near.error().what);
  CHECK(near->server == ports::endpoint{"fd00::1", 6443});
  CHECK(near->path.empty());
  CHECK(near->authority == "AUTHORITY");
  CHECK(near->certificate == "CERTIFICATE");
  CHECK(near->key == "KEY");
  CHECK(near->name_space == "default");
  CHECK((near->token + near->token_file + near->tls_name).empty());

  const auto far = f.read("far");
  REQUIRE_MESSAGE(far, far.error().what);
  CHECK(far->server == ports::endpoint{"rancher.example.com", 443});
  CHECK(far->path == "/k8s/clusters/c-1");
  CHECK(far->tls_name == "inside");
  CHECK(far->authority == "ANOTHER");
  CHECK(far->token_file == (f.directory.path / "secrets/token").string());
  CHECK(far->name_space == "training");
  CHECK(far->certificate.empty());
}

TEST_CASE("JSON is YAML, so what kubectl prints as JSON is read as well") {
  const files f(R"({"apiVersion": "v1", "current-context": "c",
    "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1", "insecure-skip-tls-verify": false}}],
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    "users": [{"name": "u", "user": {"token": "t"}}]})");
  const auto a = f.read();
  REQUIRE_MESSAGE(a, a.error().what);
  CHECK(a->server == ports::endpoint{"10.0.0.1", 443});
  CHECK(a->authority.empty()); // as the system trusts
  CHECK(a->token == "t");
}

TEST_CASE("a kubeconfig that cannot be used is refused in one line that names what is wrong") {
  struct {
    std::string from, to, context, told;
  } rows[] = {
      {"", "", "nowhere", "it has no context 'nowhere'"},
      {"", "", "far", "ca.crt' is empty or cannot be read"},
      {"current-context: near\n", "", "", "it has no current context"},
      {"kind: Config", "kind: Pod", "", "it is no kubeconfig (kind: Config)"},
      {"clusters:", "machines:", "", "it has no cluster 'home'"},
      {"- name: person", "- name: [person]", "", "line 22: 'name' is no text"},
      {"https://[", "http://[", "", "its server is not https://HOST[:PORT][/PATH]"},
      {":6443", ":66443", "", "the port of its server 'https://[fd00::1]:66443/'"},
      {"https://[", "https://user:secret@[", "", "its server is not https://"},
      {"    server: https", "    insecure-skip-tls-verify: true\n    server: https", "",
       "cluster 'home': insecure-skip-tls-verify is not accepted"},
      {"    server: https", "    proxy-url: http://proxy\n    server: https", "",
       "cluster 'home': proxy-url is not accepted"},
      {"QVVUSE9SSVRZ", "no*base64", "", "certificate-authority-data is no base64"},
      {"    client-key-data: S0VZ\n", "", "", "user 'person' has one of client-certificate and"},
      {"client-certificate-data: Q0VSVElGSUNBVEU=\n    client-key-data: S0VZ",
       "username: person\n    password: secret", "",
       "user 'person' has no token, tokenFile or client-certificate"},
      {"client-certificate-data: Q0VSVElGSUNBVEU=", "exec: {command: aws}", "",
       "user 'person' gets its token from a program (exec), which is not run"},
      {"preferences: {}", "preferences: {", "", "line "},
  };
  for (const auto& r : rows) {
    CAPTURE(r.told);
    const files f(changed(r.from, r.to));
    const auto told = f.refused(r.context);
    CHECK_MESSAGE(told.find(r.told) != std::string::npos, told);
    CHECK(told.rfind("the kubeconfig '" + f.config + "': ", 0) == 0);
    CHECK(told.find('\n') == std::string::npos);
    CHECK(told.find("secret") == std::string::npos);
  }
}

TEST_CASE("a file that is no kubeconfig at all is refused") {
  CHECK(os::access_by_kubeconfig("/nowhere/config", "").error().what ==
        "the kubeconfig '/nowhere/config': '/nowhere/config' is empty or cannot be read");
  CHECK(files("").refused().find("is empty or cannot be read") != std::string::npos);
  CHECK(files("just words").refused().find("it is no kubeconfig") != std::string::npos);
  CHECK(files("- a\n- b\n").refused().find("it is no kubeconfig") != std::string::npos);
  CHECK(files(std::string(100'000, '[')).refused() != "accepted");
  CHECK(files(std::string(limits::kubeconfig_max + 1, ' ')).refused().find("it has more than") !=
        std::string::npos);
}
