// The corpus of line_fuzz follows the messages.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "message_samples.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold::testing;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The names of the message types, from the declarations in ipc/control/messages.
std::vector<std::string> message_types() {
  std::vector<std::string> types;
  const std::regex declaration(R"(struct (\w+) : Message<\1>)");
  const std::string messages = source_dir() + "/ipc/control/messages";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(messages)) {
    if (!entry.is_regular_file()) continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end;
         ++found) {
      types.push_back((*found)[1]);
    }
  }
  return types;
}

}  // namespace

TEST_CASE("fuzz seeds: every message type has a sample") {
  const std::vector<std::string> types = message_types();
  REQUIRE(types.size() > 60);
  for (const std::string& type : types) {
    CAPTURE(type);
    CHECK(std::ranges::any_of(message_samples(), [&](const MessageSample& sample) {
      return sample.name == type || sample.name.starts_with(type + " of ");
    }));
  }
}

TEST_CASE("fuzz seeds: the corpus holds the seed of every sample; else run make_fuzz_seeds") {
  REQUIRE(message_samples().size() <= 256);  // selected by one byte
  for (std::size_t i = 0; i < message_samples().size(); ++i) {
    const std::string& name = message_samples()[i].name;
    CAPTURE(name);
    CHECK(text_of(source_dir() + "/tests/fuzz/corpus/line_fuzz/" + name) == line_seed(i));
  }
}
