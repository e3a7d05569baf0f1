#include "tests/link/certificates.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/os/net/addresses.hpp"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <fstream>

namespace troupe::testing {

namespace {

constexpr long day = 24 * 3600;

template<class Write>
void write_pem(const std::string& path, Write write) {
  BIO* file = BIO_new_file(path.c_str(), "w");
  invariant(file && write(file) == 1, "cannot write " + path);
  BIO_free_all(file);
}

void extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  invariant(extension && X509_add_ext(certificate, extension, -1) == 1, "cannot add " + value);
  X509_EXTENSION_free(extension);
}

X509* blank(EVP_PKEY* key, const std::string& name, validity when) {
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  std::uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial + 1ull);
  const bool expired = when == validity::expired;
  X509_gmtime_adj(X509_getm_notBefore(certificate), expired ? -2 * day : -day);
  X509_gmtime_adj(X509_getm_notAfter(certificate), expired ? -day : 10 * day);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string value;
  for (const auto& name : names)
    value += std::string(value.empty() ? "" : ",") + (os::numeric(name) ? "IP:" : "DNS:") + name;
  return value;
}

} // namespace

temporary_folder::temporary_folder() {
  auto name = (std::filesystem::temp_directory_path() / "troupe-link-XXXXXX").string();
  invariant(::mkdtemp(name.data()) != nullptr, "cannot make a temporary folder");
  path_ = name;
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string temporary_folder::write(const std::string& name, const std::string& content) const {
  std::ofstream(file(name)) << content;
  return file(name);
}

struct authority::identity {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  ~identity() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

authority::authority(const temporary_folder& folder, const std::string& name)
    : folder_(folder), self_(std::make_unique<identity>()),
      certificate_file_(folder.file(name + ".pem")) {
  self_->key = EVP_EC_gen("P-256");
  self_->certificate = blank(self_->key, name, validity::now);
  X509_set_issuer_name(self_->certificate, X509_get_subject_name(self_->certificate));
  extend(self_->certificate, self_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  invariant(X509_sign(self_->certificate, self_->key, EVP_sha256()) > 0, "cannot sign");
  write_pem(certificate_file_,
            [this](BIO* file) { return PEM_write_bio_X509(file, self_->certificate); });
}

authority::~authority() = default;

os::tls_files authority::issue(const std::string& file, const std::vector<std::string>& names,
                               validity when) const {
  identity issued;
  issued.key = EVP_EC_gen("P-256");
  issued.certificate = blank(issued.key, file, when);
  X509_set_issuer_name(issued.certificate, X509_get_subject_name(self_->certificate));
  if (!names.empty())
    extend(issued.certificate, self_->certificate, NID_subject_alt_name, alternative_names(names));
  invariant(X509_sign(issued.certificate, self_->key, EVP_sha256()) > 0, "cannot sign");
  const os::tls_files files{folder_.file(file + ".pem"), folder_.file(file + ".key"),
                            certificate_file_};
  write_pem(files.certificate,
            [&issued](BIO* to) { return PEM_write_bio_X509(to, issued.certificate); });
  write_pem(files.key, [&issued](BIO* to) {
    return PEM_write_bio_PrivateKey(to, issued.key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

std::string authority::revoke(const std::string& file, const std::vector<os::tls_files>& revoked,
                              validity when) const {
  X509_CRL* list = X509_CRL_new();
  X509_CRL_set_version(list, X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(list, X509_get_subject_name(self_->certificate));
  ASN1_TIME* time = ASN1_TIME_new();
  X509_CRL_set1_lastUpdate(list, X509_gmtime_adj(time, -2 * day));
  X509_CRL_set1_nextUpdate(list, X509_gmtime_adj(time, when == validity::expired ? -day : day));
  ASN1_TIME_free(time);
  for (const auto& each : revoked) {
    BIO* from = BIO_new_file(each.certificate.c_str(), "r");
    X509* certificate = PEM_read_bio_X509(from, nullptr, nullptr, nullptr);
    BIO_free_all(from);
    X509_REVOKED* entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate));
    ASN1_TIME* since = X509_gmtime_adj(nullptr, -day);
    X509_REVOKED_set_revocationDate(entry, since);
    ASN1_TIME_free(since);
    X509_CRL_add0_revoked(list, entry);
    X509_free(certificate);
  }
  invariant(X509_CRL_sign(list, self_->key, EVP_sha256()) > 0, "cannot sign");
  write_pem(folder_.file(file), [list](BIO* to) { return PEM_write_bio_X509_CRL(to, list); });
  X509_CRL_free(list);
  return folder_.file(file);
}

} // namespace troupe::testing
