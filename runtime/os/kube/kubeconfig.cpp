#include "runtime/os/kube/kubeconfig.hpp"

#include "runtime/base/base64.hpp"
#include "runtime/os/contents_of.hpp"
#include "runtime/os/kube/limits.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <filesystem>
#include <regex>
#include <stdexcept>
#include <utility>

namespace troupe::os {

namespace {

/// Found out in the midst of reading; it does not leave this file.
class wrong_kubeconfig : public std::runtime_error {
  using runtime_error::runtime_error;
};

template<class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw wrong_kubeconfig(fmt::format(format, std::forward<Args>(args)...));
}

class kubeconfig {
 public:
  explicit kubeconfig(const std::filesystem::path& file) : directory_(file.parent_path()) {
    const auto text = file_of(file.filename());
    if (text.size() > limits::kubeconfig_max)
      refuse("it has more than {} bytes", limits::kubeconfig_max);
    root_ = YAML::Load(text);
    const auto kind = root_.IsMap() ? text_of(root_, "kind") : "none";
    if (!kind.empty() && kind != "Config") // kubectl may be given one without
      refuse("it is no kubeconfig (kind: Config)");
  }

  api_access access(const std::string& chosen) const {
    const auto name = chosen.empty() ? text_of(root_, "current-context") : chosen;
    if (name.empty())
      refuse("it has no current context: choose one of its contexts with --kube-context");
    const auto context = named("context", name);
    api_access a;
    a.name_space = text_of(context, "namespace");
    if (a.name_space.empty())
      a.name_space = "default";
    take_cluster(a, text_of(context, "cluster"));
    take_user(a, text_of(context, "user"));
    return a;
  }

 private:
  static std::string text_of(const YAML::Node& node, const char* key) {
    const auto found = node[key];
    if (!found || found.IsNull())
      return {};
    if (!found.IsScalar())
      refuse("line {}: '{}' is no text", found.Mark().line + 1, key);
    return found.Scalar();
  }

  /// Of the list `KINDs`, what the entry of that name has as `KIND`.
  YAML::Node named(const std::string& kind, const std::string& name) const {
    if (const auto list = root_[kind + "s"]; list && list.IsSequence())
      for (const auto& entry : list)
        if (entry.IsMap() && text_of(entry, "name") == name && entry[kind].IsMap())
          return entry[kind];
    refuse("it has no {} '{}'", kind, name);
  }

  void take_cluster(api_access& a, const std::string& name) const {
    const auto cluster = named("cluster", name);
    for (const auto* key : {"insecure-skip-tls-verify", "proxy-url"})
      if (const auto said = text_of(cluster, key); !said.empty() && said != "false")
        refuse("cluster '{}': {} is not accepted: the API server is called directly, and must "
               "prove its name",
               name, key);
    take_server(a, name, text_of(cluster, "server"));
    a.tls_name = text_of(cluster, "tls-server-name");
    a.authority = data_of(cluster, "certificate-authority");
  }

  static void take_server(api_access& a, const std::string& cluster, const std::string& url) {
    static const std::regex form(
        R"(https://(\[([0-9A-Fa-f:.]+)\]|[^\s:/@?#\[\]]+)(:([0-9]{1,5}))?(/[^\s?#]*)?)");
    std::smatch part;
    if (url.size() > limits::api_url_max || !std::regex_match(url, part, form))
      // Not shown: some have a password in it.
      refuse("cluster '{}': its server is not https://HOST[:PORT][/PATH]", cluster);
    a.server = {part[2].matched ? part[2].str() : part[1].str(), 443};
    const auto port = part[4].str();
    if (!port.empty()) {
      const auto* end = port.data() + port.size();
      if (std::from_chars(port.data(), end, a.server.port).ec != std::errc() || a.server.port == 0)
        refuse("cluster '{}': the port of its server '{}' is none from 1 to 65535", cluster, url);
    }
    a.path = part[5].str();
    if (!a.path.empty() && a.path.back() == '/')
      a.path.pop_back();
  }

  void take_user(api_access& a, const std::string& name) const {
    const auto user = named("user", name);
    for (const auto* key : {"exec", "auth-provider"})
      if (const auto found = user[key]; found && found.IsMap())
        refuse("user '{}' gets its token from a program ({}), which is not run: write a token into "
               "a file, keep it fresh, and name it as the user's tokenFile",
               name, key);
    a.token = text_of(user, "token");
    if (const auto file = text_of(user, "tokenFile"); !file.empty())
      a.token_file = beside(file);
    a.certificate = data_of(user, "client-certificate");
    a.key = data_of(user, "client-key");
    if (a.certificate.empty() != a.key.empty())
      refuse("user '{}' has one of client-certificate and client-key, which belong together", name);
    if (a.token.empty() && a.token_file.empty() && a.certificate.empty())
      refuse("user '{}' has no token, tokenFile or client-certificate", name);
  }

  /// PEM: what `KEY-data` has in base64, or the file that `KEY` names.
  std::string data_of(const YAML::Node& node, const std::string& key) const {
    if (const auto data = text_of(node, (key + "-data").c_str()); !data.empty()) {
      auto bytes = bytes_of_base64(data);
      if (!bytes)
        refuse("{}-data is no base64", key);
      return std::move(*bytes);
    }
    const auto file = text_of(node, key.c_str());
    return file.empty() ? std::string() : file_of(file);
  }

  std::filesystem::path beside(const std::filesystem::path& file) const {
    return directory_ / file;
  }

  std::string file_of(const std::filesystem::path& name) const {
    auto text = contents_of(beside(name));
    if (text.empty())
      refuse("'{}' is empty or cannot be read", beside(name).string());
    return text;
  }

  std::filesystem::path directory_;
  YAML::Node root_;
};

} // namespace

result<api_access> access_by_kubeconfig(const std::string& file, const std::string& context) {
  const auto wrong = [&file](const std::string& why) {
    return failure(errc::invalid, fmt::format("the kubeconfig '{}': {}", file, why));
  };
  try {
    auto a = kubeconfig(file).access(context);
    a.source = fmt::format("the kubeconfig '{}'", file);
    return a;
  } catch (const wrong_kubeconfig& w) {
    return wrong(w.what());
  } catch (const YAML::Exception& e) {
    return wrong(fmt::format("line {}: {}", e.mark.line + 1, e.msg));
  }
}

} // namespace troupe::os
