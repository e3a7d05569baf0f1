#include "runtime/os/net/job_token.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::os {

namespace {

constexpr std::string_view space = " \t\r\n";
constexpr auto how_to_make_one = "make one with: actor-launcher --new-token";

/// Closes it at the end of the scope.
struct descriptor {
  explicit descriptor(int n) : number(n) {}
  ~descriptor() {
    if (number >= 0)
      ::close(number);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  const int number;
};

/// What helps against a mode that lets others read. The files of a Secret's volume in Kubernetes
/// are links into a directory beside them, and nothing below a mount that may only be read is
/// changed from here.
std::string remedy_for_mode(const std::string& path) {
  const auto secret = std::filesystem::path(path).parent_path() / "..data";
  std::error_code gone;
  return std::filesystem::exists(secret, gone)
             ? "give the Secret's volume `defaultMode: 0400` in the pod's spec"
             : "chmod 600 it";
}

/// Why others than this user might know what is in the file.
std::optional<std::string> exposed(const struct stat& file, const std::string& path) {
  if (!S_ISREG(file.st_mode))
    return "is no regular file";
  if (file.st_uid != ::geteuid() && file.st_uid != 0)
    return fmt::format("belongs to user {}, not to this one", file.st_uid);
  const auto forbidden = file.st_uid == 0 ? S_IRWXO : S_IRWXG | S_IRWXO;
  if ((file.st_mode & forbidden) != 0)
    return fmt::format("may be read or written by others (mode {:04o}): {}", file.st_mode & 07777,
                       remedy_for_mode(path));
  return std::nullopt;
}

result<std::string> content_of(const std::string& path) {
  const auto wrong = [&path](const std::string& why) {
    return failure(errc::invalid, fmt::format("the token file {} {}", path, why));
  };
  // A FIFO without a writer must not hold us up.
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (file.number < 0 || ::fstat(file.number, &facts) != 0)
    return wrong(fmt::format("cannot be read: {}", std::strerror(errno)));
  if (const auto why = exposed(facts, path))
    return wrong(*why);
  std::string text(limits::token_max + 2, '\0');
  const auto n = ::read(file.number, text.data(), text.size());
  if (n < 0)
    return wrong(fmt::format("cannot be read: {}", std::strerror(errno)));
  text.resize(static_cast<std::size_t>(n));
  return text;
}

} // namespace

result<job_token> job_token::parse(const std::string& text) {
  const auto first = text.find_first_not_of(space);
  if (first == std::string::npos)
    return failure(errc::invalid, fmt::format("the job token is empty; {}", how_to_make_one));
  auto secret = text.substr(first, text.find_last_not_of(space) - first + 1);
  if (secret.size() < limits::token_min)
    return failure(errc::invalid,
                   fmt::format("the job token has {} characters; fewer than {} can be guessed; {}",
                               secret.size(), limits::token_min, how_to_make_one));
  if (secret.size() > limits::token_max)
    return failure(errc::invalid, fmt::format("the job token has more than {} characters; {}",
                                              limits::token_max, how_to_make_one));
  const bool one_word = std::all_of(secret.begin(), secret.end(),
                                    [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!one_word)
    return failure(
        errc::invalid,
        fmt::format("the job token is not one word of printable ASCII; {}", how_to_make_one));
  return job_token(std::move(secret));
}

result<job_token> job_token::read(const std::string& path) {
  const auto text = content_of(path);
  if (!text)
    return tl::make_unexpected(text.error());
  auto token = parse(*text);
  if (!token)
    token.error().what += fmt::format(" ({})", path);
  return token;
}

result<void> job_token::write_new(const std::string& path) const {
  const auto above = std::filesystem::path(path).parent_path();
  std::error_code unmade;
  if (!above.empty() && std::filesystem::create_directories(above, unmade))
    std::filesystem::permissions(above, std::filesystem::perms::owner_all, unmade);
  const descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.number < 0 && errno == EEXIST)
    return failure(errc::refused,
                   fmt::format("{} is there already, and jobs may be using it; remove it first if "
                               "a new token is wanted",
                               path));
  const auto text = secret_ + "\n";
  if (file.number < 0 ||
      ::write(file.number, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.number) != 0) {
    const auto why = std::strerror(errno);
    if (file.number >= 0)
      ::unlink(path.c_str());
    return failure(errc::unavailable,
                   fmt::format("the token file {} cannot be written: {}", path, why));
  }
  return {};
}

job_token job_token::fresh() {
  std::array<unsigned char, 32> random{};
  invariant(::getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()),
            "the kernel gives no random bytes");
  return job_token(fmt::format("{:02x}", fmt::join(random, "")));
}

std::array<unsigned char, 32> job_token::key() const {
  // A new way to use the key takes a new context, so that no two ways can be played against each
  // other.
  std::string digest = "SHA256", salt = "troupe", context = "troupe link, TLS 1.3 external PSK, 1";
  auto secret = secret_;
  const std::unique_ptr<EVP_KDF, decltype(&::EVP_KDF_free)> hkdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), &::EVP_KDF_free);
  invariant(hkdf != nullptr, "OpenSSL has no HKDF");
  const std::unique_ptr<EVP_KDF_CTX, decltype(&::EVP_KDF_CTX_free)> run(EVP_KDF_CTX_new(hkdf.get()),
                                                                        &::EVP_KDF_CTX_free);
  const OSSL_PARAM how[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, context.data(), context.size()),
      OSSL_PARAM_construct_end()};
  std::array<unsigned char, 32> key{};
  invariant(EVP_KDF_derive(run.get(), key.data(), key.size(), how) == 1, "HKDF failed");
  return key;
}

} // namespace troupe::os
