// Writes the seeds of the conversations' fuzz targets: two messages of every kind. Usage:
// write_seeds FOLDER Run when a schema has changed: write_seeds tests/fuzz/corpus
#include "messages/kinds.hpp"
#include "messages/testing/samples.hpp"

#include <filesystem>
#include <fstream>
#include <string>

using namespace troupe;

namespace {

/// "membership", of a kind in messages/membership.capnp.
std::string conversation_of(std::uint64_t kind) {
  const std::string place = messages::schema_of(kind)->getProto().getDisplayName();
  return std::filesystem::path(place.substr(0, place.find(':'))).stem();
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  random_source chance(2026);
  for (const auto kind : messages::testing::every_kind()) {
    const auto folder = std::filesystem::path(argv[1]) / ("fuzz_" + conversation_of(kind));
    std::filesystem::create_directories(folder);
    for (const char* which : {"1", "2"}) {
      const auto m = messages::testing::sample(kind, chance);
      const auto bytes = m.words().asChars();
      std::ofstream(folder / (messages::kind_name(kind) + which), std::ios::binary)
          .write(bytes.begin(), static_cast<std::streamsize>(bytes.size()));
    }
  }
}
