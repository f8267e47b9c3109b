/// A model in several files is read as one. Errors name parts that are missing or do not belong.
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "kernels/model/gguf/gguf.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

/// Three parts: one tensor in the first, two in the second, one in the last.
GgufBuilder part(std::uint32_t number) {
  GgufBuilder builder;
  builder.set("split.no", number).set("split.count", 3u).set("split.tensors.count", 4u);
  if (number == 0) builder.set("general.architecture", "llama").vector("a", {1, 2});
  if (number == 1) builder.vector("b", {3, 4, 5}).vector("c", {6});
  if (number == 2) builder.vector("d", {7, 8});
  return builder;
}

/// A temporary folder with the parts under their published names.
class SplitModel {
 public:
  SplitModel() {
    for (std::uint32_t i = 0; i < 3; ++i) write(path(i), part(i));
  }

  std::string path(std::uint32_t number) const {
    return folder_.file(fmt::format("m-{:05}-of-00003.gguf", number + 1));
  }
  std::string other(const char* name) const { return folder_.file(name); }
  static void write(const std::string& path, const GgufBuilder& builder) {
    const std::string bytes = builder.bytes();
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  TemporaryDirectory folder_ = TemporaryDirectory::create("split").value();
};

std::vector<float> numbers(const GgufFile& file, const char* name) {
  const GgufTensor* tensor = file.find(name);
  REQUIRE(tensor != nullptr);
  std::vector<float> floats(tensor->columns());
  REQUIRE(file.read(*tensor, 0, std::as_writable_bytes(std::span(floats))).has_value());
  const auto mapped = file.data(*tensor);
  CHECK(std::equal(mapped.begin(), mapped.end(), std::as_bytes(std::span(floats)).begin()));
  return floats;
}

std::string why_refused(const std::string& path) {
  const auto file = GgufFile::open(path);
  return file ? "it loads" : file.error().detail;
}

void check_refused(const SplitModel& model, Errc code, const std::string& says) {
  for (const std::uint32_t from : {0u, 1u, 2u}) {
    if (!std::filesystem::exists(model.path(from))) continue;
    const auto file = GgufFile::open(model.path(from));
    CAPTURE(from);
    if (file) continue;
    CHECK(name(file.error().code) == name(code));
    CHECK_THAT(file.error().detail, Contains(says));
  }
  CHECK_FALSE(GgufFile::open(model.path(0)));
}

}  // namespace

TEST_CASE("gguf split: opening any part gives all tensors and the metadata") {
  const SplitModel model;
  for (const std::uint32_t from : {0u, 1u, 2u}) {
    CAPTURE(from);
    const auto file = GgufFile::open(model.path(from));
    REQUIRE(file.has_value());
    CHECK(file->tensors().size() == 4);
    CHECK(*file->get<std::string>("general.architecture") == "llama");
    CHECK(numbers(*file, "a") == std::vector<float>{1, 2});
    CHECK(numbers(*file, "b") == std::vector<float>{3, 4, 5});
    CHECK(numbers(*file, "c") == std::vector<float>{6});
    CHECK(numbers(*file, "d") == std::vector<float>{7, 8});
    CHECK(file->identity() == GgufFile::open(model.path(0))->identity());
    CHECK(file->check_unchanged().has_value());
  }
}

TEST_CASE("gguf split: the identity covers every part") {
  const SplitModel model;
  const auto before = GgufFile::open(model.path(0));
  REQUIRE(before.has_value());
  CHECK(*before->identity_now() == before->identity());
  std::uint64_t sum = 0;
  for (const std::uint32_t i : {0u, 1u, 2u}) sum += std::filesystem::file_size(model.path(i));
  CHECK(before->identity().size_bytes == sum);

  // The same bytes in a new file.
  std::filesystem::rename(model.path(2), model.other("old"));
  SplitModel::write(model.path(2), part(2));
  CHECK_FALSE(*before->identity_now() == before->identity());
  CHECK_FALSE(GgufFile::open(model.path(0))->identity() == before->identity());
}

TEST_CASE("gguf split: a part truncated or rewritten after opening is detected") {
  const SplitModel model;
  const auto file = GgufFile::open(model.path(0));
  REQUIRE(file.has_value());
  REQUIRE(::truncate(model.path(1).c_str(), 64) == 0);
  CHECK_THAT(file->check_unchanged().error().detail, Contains(model.path(1)));
  std::vector<std::byte> bytes(4);
  const auto read = file->read(*file->find("c"), 0, bytes);
  REQUIRE_FALSE(read.has_value());
  CHECK_THAT(read.error().detail, Contains(model.path(1)));
}

TEST_CASE("gguf split: a missing part is an error that names it") {
  const SplitModel model;
  std::filesystem::remove(model.path(1));
  check_refused(model, Errc::FileNotFound, model.path(1) + ": no such model file");
  check_refused(model, Errc::FileNotFound, "part 2 of 3");
}

TEST_CASE("gguf split: a part of another model is an error that names it") {
  const SplitModel model;
  SECTION("of another number of parts") {
    SplitModel::write(model.path(1), part(1).set("split.count", 4u));
    CHECK_THAT(why_refused(model.path(0)),
               Contains(model.path(1) + ": is part 2 of 4, expected part 2 of 3"));
  }
  SECTION("out of order") {
    SplitModel::write(model.path(1), part(2));
    CHECK_THAT(why_refused(model.path(0)),
               Contains(model.path(1) + ": is part 3 of 3, expected part 2 of 3"));
  }
  SECTION("no part of anything") {
    SplitModel::write(model.path(2), tiny_llama());
    CHECK_THAT(why_refused(model.path(0)), Contains(model.path(2)));
  }
  SECTION("with a tensor that is in another part too") {
    SplitModel::write(model.path(2), part(2).vector("a", {1}));
    check_refused(model, Errc::FileCorrupt, model.path(2) + ": tensor a is also in");
  }
  SECTION("with tensors too few or too many") {
    SplitModel::write(model.path(2), part(2).vector("e", {1}));
    check_refused(model, Errc::FileCorrupt, "split.tensors.count is 4, and its 3 parts have 5");
  }
}

TEST_CASE("gguf split: a part with an unexpected file name is refused") {
  const SplitModel model;
  SplitModel::write(model.other("mine.gguf"), part(1));
  CHECK_THAT(why_refused(model.other("mine.gguf")), Contains("must end with -00002-of-00003.gguf"));
  SplitModel::write(model.other("mine.gguf"), part(1).set("split.no", 7u));
  CHECK_THAT(why_refused(model.other("mine.gguf")), Contains("split.no is 7 of 3 parts"));
  SplitModel::write(model.other("mine.gguf"), part(0).set("split.count", 5000u));
  CHECK(GgufFile::open(model.other("mine.gguf")).error().code == Errc::UnsupportedModel);
}
