/// The file that weights are read from keeps its content, or is refused.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "kernels/model/gguf/verified_model.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/required.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// A model with equal shapes and another weight.
std::string other_weights(std::string bytes) {
  bytes.back() ^= 1;
  return bytes;
}

/// A model in one file, opened and pinned.
struct Pinned {
  explicit Pinned(bool knows_content = true) {
    write(path, bytes);
    opened.emplace(required(GgufFile::open(path)));
    model.emplace(*opened);
    if (knows_content) model->pin(required(content_digest(*opened)));
  }
  /// Renames a file over the model, as an operator would.
  void replace(const std::string& by) const {
    write(path + ".new", by);
    fs::rename(path + ".new", path);
  }
  Errc refusal() {
    const auto found = model->find();
    REQUIRE_FALSE(found);
    CHECK_THAT(found.error().detail, Contains(path));
    return found.error().code;
  }

  TemporaryDirectory folder = TemporaryDirectory::create("verified").value();
  std::string path = folder.file("model.gguf");
  std::string bytes = tiny_llama().bytes();
  std::optional<GgufFile> opened;
  std::optional<VerifiedModel> model;
};

}  // namespace

TEST_CASE("verified model: an untouched file is used as it is, also before its digest is known") {
  Pinned pinned(false);
  CHECK(required(pinned.model->find()) == &*pinned.opened);
  CHECK_FALSE(pinned.model->is_copy());
}

TEST_CASE("verified model: a byte-identical copy becomes the file from then on") {
  Pinned pinned;
  pinned.replace(pinned.bytes);
  const GgufFile* copy = required(pinned.model->find());
  CHECK(copy != &*pinned.opened);
  CHECK(pinned.model->identity() == required(FileIdentity::of_path(pinned.path)));
  fs::remove(pinned.path);
  CHECK(required(pinned.model->find()) == copy);  // deleted, and still readable
}

TEST_CASE(
    "verified model: a file of equal shapes and other weights is refused until it is undone") {
  Pinned pinned;
  pinned.replace(other_weights(pinned.bytes));
  CHECK(pinned.refusal() == Errc::MissingWeight);
  CHECK(pinned.refusal() == Errc::MissingWeight);
  pinned.replace(pinned.bytes);
  CHECK(pinned.model->find());
}

TEST_CASE("verified model: a file that is rewritten in place is refused, also with its old time") {
  Pinned pinned;
  const auto time = fs::last_write_time(pinned.path);
  write(pinned.path, other_weights(pinned.bytes));
  fs::last_write_time(pinned.path, time);
  CHECK(pinned.refusal() == Errc::MissingWeight);
  write(pinned.path, pinned.bytes);
  CHECK(pinned.model->find());
}

TEST_CASE("verified model: a truncated, a longer and a broken file are refused") {
  Pinned pinned;
  fs::resize_file(pinned.path, pinned.bytes.size() - 1);
  CHECK(pinned.refusal() == Errc::MissingWeight);
  write(pinned.path, pinned.bytes + "x");
  CHECK(pinned.refusal() == Errc::MissingWeight);
  pinned.replace(std::string(pinned.bytes.size(), 'x'));
  CHECK(pinned.refusal() == Errc::FileCorrupt);
  pinned.replace(pinned.bytes);
  CHECK(pinned.model->find());
}

TEST_CASE("verified model: a deleted file is read through its descriptor, unless it was changed") {
  Pinned pinned;
  SECTION("as it was") {
    fs::remove(pinned.path);
    CHECK(required(pinned.model->find()) == &*pinned.opened);
  }
  SECTION("rewritten before") {
    write(pinned.path, other_weights(pinned.bytes));
    fs::remove(pinned.path);
    CHECK(pinned.refusal() == Errc::FileCorrupt);
  }
}

TEST_CASE("verified model: bytes that were read while the file was rewritten are not confirmed") {
  Pinned pinned;
  REQUIRE(pinned.model->find());
  CHECK(pinned.model->confirm());
  fs::permissions(pinned.path, fs::perms::owner_read | fs::perms::owner_write);
  CHECK(pinned.model->confirm());  // other attributes, and the same bytes
  const auto time = fs::last_write_time(pinned.path);
  write(pinned.path, other_weights(pinned.bytes));
  fs::last_write_time(pinned.path, time);
  CHECK_FALSE(pinned.model->confirm());
}

TEST_CASE("verified model: of a split model every part counts") {
  const auto folder = TemporaryDirectory::create("verified").value();
  const auto path = [&](int part) {
    return folder.file("m-0000" + std::to_string(part) + "-of-00002.gguf");
  };
  const auto write_part = [&](std::uint32_t number, float value) {
    GgufBuilder part;
    part.set("split.no", number).set("split.count", 2u);
    part.vector(number == 0 ? "first" : "second", {1, value});
    write(path(static_cast<int>(number) + 1), part.bytes());
  };
  write_part(0, 2);
  write_part(1, 3);
  const GgufFile opened = required(GgufFile::open(path(1)));
  VerifiedModel model(opened);
  model.pin(required(content_digest(opened)));

  write_part(1, 4);
  CHECK(model.find().error().code == Errc::MissingWeight);
  write_part(1, 3);
  CHECK(model.find());
  fs::remove(path(2));
  CHECK(model.find());
}

}  // namespace leasehold::testing
