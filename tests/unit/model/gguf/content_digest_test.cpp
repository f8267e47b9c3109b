/// The digest of a model's content follows its bytes and nothing else.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "kernels/model/gguf/content_digest.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

ContentDigest digest_of(const std::string& path) {
  const auto file = GgufFile::open(path);
  REQUIRE(file);
  const auto digest = content_digest(*file);
  REQUIRE(digest);
  return *digest;
}

/// A file whose bytes do not depend on this program. Its digest below is what sha256sum prints.
std::string smallest_file() {
  return "GGUF" + raw(std::uint32_t{3}) + raw(std::uint64_t{0}) + raw(std::uint64_t{0});
}

}  // namespace

TEST_CASE("content digest: of a single file it is what sha256sum prints") {
  const TemporaryFile file(smallest_file());

  CHECK(digest_of(file.path()).hex() ==
        "a4e5e156ddec27e286f75328784d7106b60a4eb1d246e950a001a3f944fbda99");
}

TEST_CASE("content digest: a byte-identical copy has the same, a file of equal shapes another") {
  const auto folder = TemporaryDirectory::create("digest").value();
  GgufBuilder model = tiny_llama();
  write(folder.file("a.gguf"), model.bytes());
  std::filesystem::copy(folder.file("a.gguf"), folder.file("copy.gguf"));
  std::string other = model.bytes();
  other.back() ^= 1;
  write(folder.file("b.gguf"), other);

  CHECK(digest_of(folder.file("copy.gguf")) == digest_of(folder.file("a.gguf")));
  CHECK(digest_of(folder.file("b.gguf")) != digest_of(folder.file("a.gguf")));
}

TEST_CASE("content digest: it covers every part of a split model, in their order") {
  const auto folder = TemporaryDirectory::create("digest").value();
  const auto path = [&](const char* set, int part) {
    return folder.file(fmt::format("{}-{:05}-of-00002.gguf", set, part));
  };
  const auto write_split = [&](const char* set, float last) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      GgufBuilder part;
      part.set("split.no", i).set("split.count", 2u);
      part.vector(i == 0 ? "first" : "second", {1, i == 0 ? 2 : last});
      write(path(set, static_cast<int>(i) + 1), part.bytes());
    }
  };
  write_split("a", 3);
  write_split("copy", 3);
  write_split("b", 4);

  CHECK(digest_of(path("copy", 2)) == digest_of(path("a", 1)));
  CHECK(digest_of(path("b", 1)) != digest_of(path("a", 1)));
}

TEST_CASE("content digest: a file that changed or was truncated after opening is an error") {
  const TemporaryFile model(tiny_llama().bytes());
  const auto file = GgufFile::open(model.path());
  REQUIRE(file);
  std::string longer = tiny_llama().bytes() + "more";

  model.overwrite(longer);
  const auto changed = content_digest(*file);
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == Errc::FileCorrupt);
  CHECK_THAT(changed.error().detail, Contains("changed while it was read"));

  std::filesystem::resize_file(model.path(), 100);
  const auto truncated = content_digest(*file);
  REQUIRE_FALSE(truncated);
  CHECK(truncated.error().code == Errc::FileCorrupt);
  CHECK_THAT(truncated.error().detail, Contains("ends after 100 of"));
}

TEST_CASE("content digest: a stop request ends it") {
  const TemporaryFile model(tiny_llama().bytes());
  const auto file = GgufFile::open(model.path());
  REQUIRE(file);
  std::stop_source stop;
  stop.request_stop();

  const auto stopped = content_digest(*file, stop.get_token());

  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == Errc::Draining);
}

TEST_CASE("content digest: hex digits are read back, and nothing else is") {
  const TemporaryFile file(smallest_file());
  const ContentDigest digest = digest_of(file.path());
  const std::string hex = digest.hex();

  CHECK(ContentDigest::from_hex(hex) == digest);
  std::string upper = hex;
  for (char& digit : upper) digit = static_cast<char>(std::toupper(digit));
  for (const std::string& wrong :
       {std::string(), hex.substr(1), hex + "0", hex + "00", "x" + hex.substr(1), upper})
    CHECK_FALSE(ContentDigest::from_hex(wrong));
}
