#include "kernels/model/gguf/gguf.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/model/gguf/gguf_cursor.hpp"
#include "tests/support/gguf_builder.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

Result<GgufFile> open_bytes(const std::string& bytes) {
  const TemporaryFile file(bytes);
  return GgufFile::open(file.path());
}

GgufBuilder two_tensors() {
  GgufBuilder builder;
  builder.set("general.architecture", "llama")
      .tensor("one", TensorType::F32, {3, 2})
      .tensor("two", TensorType::Q8_0, {64, 1, 2});
  return builder;
}

/// True for a file system whose files are nowhere else.
bool is_in_memory(const UniqueFd& fd) {
  struct statfs status{};
  return ::fstatfs(fd.get(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

/// Nothing if the file system does not say it. Source: preadv2(2), RWF_NOWAIT, which reads only
/// what the kernel has cached.
std::optional<bool> is_cached(const UniqueFd& fd, std::size_t at) {
  char byte = 0;
  const iovec to{&byte, 1};
  const ssize_t n_read = ::preadv2(fd.get(), &to, 1, static_cast<off_t>(at), RWF_NOWAIT);
  if (n_read < 0 && errno == EOPNOTSUPP) return std::nullopt;
  return n_read == 1;
}

/// A broken file and the expected error.
struct CorruptCase {
  const char* what;
  std::string bytes;
  Errc code;
  const char* says;
};

void check_refused(const std::vector<CorruptCase>& cases) {
  for (const CorruptCase& broken : cases) {
    INFO(broken.what);
    const auto file = open_bytes(broken.bytes);
    REQUIRE_FALSE(file.has_value());
    CHECK(name(file.error().code) == name(broken.code));
    CHECK_THAT(file.error().detail, Contains(broken.says));
  }
}

/// The bytes of a file with these encoded metadata entries and no tensors.
std::string with_metadata(std::uint64_t count, const std::string& entries) {
  return "GGUF" + raw(3u) + raw(std::uint64_t{0}) + raw(count) + entries;
}

std::string with_tensor(const std::string& name, std::uint32_t n_dimensions,
                        const std::vector<std::uint64_t>& shape) {
  std::string bytes = "GGUF" + raw(3u) + raw(std::uint64_t{1}) + raw(std::uint64_t{0}) +
                      raw_string(name) + raw(n_dimensions);
  for (const std::uint64_t length : shape) bytes += raw(length);
  return bytes + raw(0u) + raw(std::uint64_t{0}) + std::string(256, '\0');
}

}  // namespace

TEST_CASE("gguf: tensors have the shapes and bytes of the file") {
  const std::string bytes = two_tensors().bytes();
  const auto file = open_bytes(bytes);
  REQUIRE(file.has_value());
  REQUIRE(file->tensors().size() == 2);

  const GgufTensor* two = file->find("two");
  REQUIRE(two != nullptr);
  CHECK(two->type == TensorType::Q8_0);
  CHECK(two->columns() == 64);
  CHECK(two->rows() == 2);
  CHECK(two->size_bytes == 2 * 2 * 34);
  CHECK(two->offset % 32 == 0);
  CHECK(two->offset + two->size_bytes <= bytes.size());
  CHECK(file->data(*two)[1] ==
        std::byte{33});  // the builder numbers bytes; "one" takes 32 with padding
  CHECK(file->find("three") == nullptr);
}

TEST_CASE("gguf: read copies the same bytes as the mapping") {
  const auto file = open_bytes(two_tensors().bytes());
  const GgufTensor& tensor = file->tensors()[1];
  std::vector<std::byte> copy(tensor.size_bytes);
  REQUIRE(file->read(tensor, 0, copy).has_value());
  CHECK(std::ranges::equal(copy, file->data(tensor)));
}

TEST_CASE("gguf: a truncated number is not read") {
  const std::array<std::byte, 8> bytes{};
  GgufCursor in{std::span<const std::byte>(bytes.data(), 3), "file"};
  CHECK(in.take<std::uint32_t>("number").error().code == Errc::FileCorrupt);
  CHECK(in.position() == 0);
  CHECK(in.take<std::uint16_t>("number").has_value());
  CHECK_FALSE(in.take<std::uint16_t>("number").has_value());
}

TEST_CASE("gguf: version 2 is read; versions 1 and 4 and big-endian files are refused") {
  GgufBuilder builder = two_tensors();
  builder.version = 2;
  CHECK(open_bytes(builder.bytes()).has_value());
  builder.version = 1;
  const std::string one = builder.bytes();
  builder.version = 4;
  const std::string four = builder.bytes();
  builder.version = 0x03000000;
  check_refused({{"1", one, Errc::UnsupportedModel, "version 1"},
                 {"4", four, Errc::UnsupportedModel, "version 4"},
                 {"big", builder.bytes(), Errc::UnsupportedModel, "big-endian"}});
}

TEST_CASE("gguf: a general.alignment moves the data section") {
  GgufBuilder builder = two_tensors();
  builder.alignment = 256;
  builder.set("general.alignment", 256u);
  const auto file = open_bytes(builder.bytes());
  REQUIRE(file.has_value());
  CHECK(file->find("two")->offset % 256 == 0);
  CHECK(file->data(*file->find("two"))[0] == std::byte{256 % 251});
}

TEST_CASE("gguf: metadata values are decoded") {
  GgufBuilder builder = two_tensors();
  builder.set("a", 7u).set("b", 0.5f).set("c", true).set("d", "text");
  builder.set("e", std::vector<std::string>{"x", "", "▁yz"});
  builder.set("f", std::vector<float>{1.0f, -2.0f}).set("g", std::vector<std::int32_t>{-1, 2});
  builder.set_raw("h", GgufType::Uint64, raw(std::uint64_t{1} << 40));
  builder.set_raw("i", GgufType::Int16, raw(std::int16_t{12}));
  const auto file = open_bytes(builder.bytes());
  REQUIRE(file.has_value());

  CHECK(file->get<std::uint32_t>("a") == 7u);
  CHECK(file->get<std::uint64_t>("a") == 7u);
  CHECK(file->get<float>("b") == 0.5f);
  CHECK(file->get<bool>("c") == true);
  CHECK(file->get<std::string>("d") == "text");
  CHECK(file->get<std::vector<std::string>>("e") == std::vector<std::string>{"x", "", "▁yz"});
  CHECK(file->get<std::vector<float>>("f") == std::vector<float>{1.0f, -2.0f});
  CHECK(file->get<std::vector<std::int32_t>>("g") == std::vector<std::int32_t>{-1, 2});
  CHECK(file->get<std::uint64_t>("h") == std::uint64_t{1} << 40);
  CHECK(file->get<std::uint32_t>("i") == 12u);
  CHECK(file->get_or<std::uint32_t>("absent", 9) == 9u);
}

TEST_CASE("gguf: a metadata value of another type, sign or size is an error that names the key") {
  GgufBuilder builder = two_tensors();
  builder.set("text", "x").set("list", std::vector<float>{1.0f});
  builder.set_raw("below", GgufType::Int32, raw(std::int32_t{-1}));
  builder.set_raw("wide", GgufType::Uint64, raw(std::uint64_t{1} << 40));
  builder.set_raw("maybe", GgufType::Bool, raw(std::uint8_t{2}));
  const auto file = open_bytes(builder.bytes());
  REQUIRE(file.has_value());

  CHECK(file->get<std::uint32_t>("text").error().code == Errc::UnsupportedModel);
  CHECK_THAT(file->get<std::uint32_t>("list").error().detail, Contains("array of float32"));
  CHECK(file->get<std::vector<std::string>>("list").error().code == Errc::UnsupportedModel);
  CHECK(file->get<std::uint32_t>("below").error().code == Errc::FileCorrupt);
  CHECK(file->get<std::uint32_t>("wide").error().code == Errc::UnsupportedModel);
  CHECK(file->get<bool>("maybe").error().code == Errc::FileCorrupt);
  CHECK(file->get_or<std::uint32_t>("text", 1).error().code == Errc::UnsupportedModel);
  CHECK_THAT(file->get<float>("absent").error().detail, Contains("absent"));
}

TEST_CASE("gguf: a file of another format is refused") {
  CHECK(GgufFile::open("/nowhere/model.gguf").error().code == Errc::FileNotFound);
  const auto directory = GgufFile::open("/");
  REQUIRE_FALSE(directory.has_value());
  CHECK(directory.error().code == Errc::BadRequest);
  CHECK(directory.error().detail == "/ is a directory; name a .gguf file");
  check_refused({{"empty", "", Errc::FileCorrupt, "empty"},
                 {"short", "GGU", Errc::FileCorrupt, "at byte 0"},
                 {"magic", "GGML" + std::string(64, '\0'), Errc::FileCorrupt, "GGUF"}});
}

TEST_CASE("gguf: invalid metadata is refused with its offset") {
  const std::string u32 = raw(std::to_underlying(GgufType::Uint32));
  const std::string array = raw(std::to_underlying(GgufType::Array));
  const std::string strings = raw(std::to_underlying(GgufType::String));
  const std::string huge = raw(~std::uint64_t{0});
  const std::string padding(64, '\0');
  GgufBuilder twice = two_tensors();
  twice.set("k", 1u).add_duplicate("k", 2u);
  check_refused({
      {"count", with_metadata(1u << 30, padding), Errc::FileCorrupt, "cannot fit"},
      {"count overflow", with_metadata(~std::uint64_t{0}, padding), Errc::FileCorrupt,
       "cannot fit"},
      {"key length", with_metadata(1, huge + padding), Errc::FileCorrupt, "at byte 32"},
      {"empty key", with_metadata(1, raw_string("") + padding), Errc::FileCorrupt, "0 bytes"},
      {"key bytes", with_metadata(1, raw_string("a\nb") + padding), Errc::FileCorrupt, "ASCII"},
      {"type", with_metadata(1, raw_string("k") + raw(13u) + padding), Errc::FileCorrupt,
       "13 is not a metadata type"},
      {"value", with_metadata(1, raw_string("kkkkkk") + u32), Errc::FileCorrupt, "kkkkkk"},
      {"string", with_metadata(1, raw_string("k") + strings + huge), Errc::FileCorrupt, "needs"},
      {"array count", with_metadata(1, raw_string("k") + array + u32 + huge), Errc::FileCorrupt,
       "cannot fit"},
      {"array size wraps",
       with_metadata(1, raw_string("k") + array + raw(std::to_underlying(GgufType::Uint64)) +
                            raw(std::uint64_t{1} << 61)),
       Errc::FileCorrupt, "cannot fit"},
      {"array of strings", with_metadata(1, raw_string("k") + array + strings + huge + padding),
       Errc::FileCorrupt, "cannot fit"},
      {"nested", with_metadata(1, raw_string("k") + array + array + raw(std::uint64_t{1})),
       Errc::UnsupportedModel, "array of arrays"},
      {"duplicate", twice.bytes(), Errc::FileCorrupt, "metadata key k occurs twice"},
  });
}

TEST_CASE("gguf: an alignment other than a power of two from 8 is refused") {
  for (const std::uint32_t alignment : {0u, 1u, 4u, 24u, 33u}) {
    INFO(alignment);
    const auto file = open_bytes(two_tensors().set("general.alignment", alignment).bytes());
    REQUIRE_FALSE(file.has_value());
    CHECK_THAT(file.error().detail, Contains("general.alignment"));
  }
  CHECK_FALSE(open_bytes(two_tensors().set("general.alignment", "32").bytes()).has_value());
}

TEST_CASE("gguf: invalid tensor entries are refused with the tensor's name") {
  check_refused({
      {"no dimensions", with_tensor("t", 0, {}), Errc::FileCorrupt, "0 dimensions"},
      {"five", with_tensor("t", 5, {1, 1, 1, 1, 1}), Errc::FileCorrupt, "5 dimensions"},
      {"zero", with_tensor("t", 2, {4, 0}), Errc::FileCorrupt, "dimension 1 of 0"},
      {"product", with_tensor("t", 2, {1ull << 40, 1ull << 40}), Errc::FileCorrupt, "dimension 1"},
      {"wraps to 0", with_tensor("t", 2, {1ull << 32, 1ull << 32}), Errc::FileCorrupt, "dimension"},
      {"too big", with_tensor("t", 1, {4096}), Errc::FileCorrupt, "file is truncated"},
      {"long name", with_tensor(std::string(65, 'x'), 1, {4}), Errc::FileCorrupt, "65 bytes"},
      {"name bytes", with_tensor("a\x1b[2J", 1, {4}), Errc::FileCorrupt, "ASCII"},
      {"duplicate", two_tensors().add_duplicate_tensor("one", TensorType::F32, {4}).bytes(),
       Errc::FileCorrupt, "tensor one occurs twice"},
      {"IQ2_XXS", two_tensors().override_type("two", 16).bytes(), Errc::UnsupportedModel,
       "tensor two has type IQ2_XXS (the nearest is Q2_K)"},
      {"IQ3_S", two_tensors().override_type("two", 21).bytes(), Errc::UnsupportedModel,
       "tensor two has type IQ3_S (the nearest is Q3_K)"},
      {"NVFP4", two_tensors().override_type("two", 40).bytes(), Errc::UnsupportedModel,
       "number 40, which this build does not know (the nearest is MXFP4)"},
      {"Q8_1", two_tensors().override_type("two", 9).bytes(), Errc::UnsupportedModel,
       "tensor two has type Q8_1"},
      {"a removed type", two_tensors().override_type("two", 4).bytes(), Errc::UnsupportedModel,
       "tensor two has type number 4, which this build does not know; this build"},
      {"a type of no format", two_tensors().override_type("two", 4711).bytes(),
       Errc::UnsupportedModel, "tensor two has type number 4711"},
      {"partial Q4_K block", two_tensors().override_type("two", 12).bytes(), Errc::FileCorrupt,
       "tensor two has rows of 64 elements, not whole Q4_K blocks of 256"},
      {"partial block",
       two_tensors().tensor("one", TensorType::F32, {33}).override_type("one", 8).bytes(),
       Errc::FileCorrupt, "not whole Q8_0 blocks"},
      {"misaligned", two_tensors().override_offset("two", 33).bytes(), Errc::FileCorrupt,
       "not a multiple of 32"},
      {"beyond", two_tensors().override_offset("two", 1ull << 62).bytes(), Errc::FileCorrupt,
       "tensor two takes"},
      {"overlap", two_tensors().override_offset("two", 0).bytes(), Errc::FileCorrupt, "overlap"},
  });
}

TEST_CASE("gguf: reading a file truncated after opening is an error, not a crash") {
  const TemporaryFile temporary(two_tensors().bytes());
  const auto file = GgufFile::open(temporary.path());
  REQUIRE(file.has_value());
  REQUIRE(file->check_unchanged().has_value());
  REQUIRE(::truncate(temporary.path().c_str(), 64) == 0);

  std::vector<std::byte> copy(file->tensors()[1].size_bytes);
  CHECK(file->read(file->tensors()[1], 0, copy).error().code == Errc::FileCorrupt);
  CHECK(file->check_unchanged().error().code == Errc::FileCorrupt);
}

TEST_CASE("gguf: releasing the cache leaves no byte of the file in memory, and all readable") {
  const std::string bytes = two_tensors().set("padding", std::string(1 << 20, 'x')).bytes();
  const TemporaryFile written(bytes);
  const UniqueFd fd(::open(written.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (is_in_memory(fd) || !is_cached(fd, 0)) {
    WARN("not run: the temporary folder is in memory, or does not say what is cached");
    return;
  }
  REQUIRE(::fsync(fd.get()) == 0);  // the kernel drops no page that it has to write
  const auto file = GgufFile::open(written.path());
  REQUIRE(file);
  std::vector<std::byte> read(file->part_size_bytes(0));
  REQUIRE(file->read_part(0, 0, read));
  REQUIRE(is_cached(fd, bytes.size() / 2) == true);

  file->release_cache();

  CHECK(is_cached(fd, bytes.size() / 2) == false);
  CHECK(file->get<std::string>("padding") == std::string(1 << 20, 'x'));
  REQUIRE(file->read_part(0, 0, read));
  CHECK(std::memcmp(read.data(), bytes.data(), bytes.size()) == 0);
}

TEST_CASE("gguf: the identity is stable for one file and differs between files") {
  const TemporaryFile first(two_tensors().bytes());
  const TemporaryFile second(two_tensors().bytes());
  const auto a = GgufFile::open(first.path());
  CHECK(a->identity() == GgufFile::open(first.path())->identity());
  CHECK_FALSE(a->identity() == GgufFile::open(second.path())->identity());
  CHECK(a->identity().size_bytes == std::filesystem::file_size(first.path()));
}
