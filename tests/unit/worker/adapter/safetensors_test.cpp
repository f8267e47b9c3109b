#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "worker/adapter/safetensors.hpp"

namespace leasehold {
namespace {

using Catch::Matchers::Contains;

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::uint64_t begin, std::uint64_t end) {
  return fmt::format(R"("{}": {{"dtype": "{}", "shape": {}, "data_offsets": [{}, {}]}})", name,
                     dtype, shape, begin, end);
}

/// Reads a header in front of `data_bytes` of data.
Result<std::vector<SafetensorsTensor>> read_header(const std::string& members,
                                                   std::uint64_t data_bytes) {
  const std::string header = "{" + members + "}";
  return read_safetensors(header, kSafetensorsPrefixBytes + header.size() + data_bytes, "a.st");
}

struct RefusedHeader {
  std::string members;
  Errc code;
  std::string_view why;
};

}  // namespace

TEST_CASE("safetensors: matrices have the places of the header") {
  const std::string members = R"("__metadata__": {"format": "pt"}, )" +
                              entry("b", "F32", "[1, 3]", 12, 24) + ", " +
                              entry("a", "BF16", "[2, 3]", 0, 12);
  const auto tensors = read_header(members, 24);
  REQUIRE(tensors);
  REQUIRE(tensors->size() == 2);
  const SafetensorsTensor& a = tensors->front();
  CHECK((a.name == "a" && a.type == TensorType::BF16 && a.rows == 2 && a.columns == 3));
  CHECK(a.offset == kSafetensorsPrefixBytes + members.size() + 2);
  CHECK(tensors->back().offset == a.offset + 12);
}

TEST_CASE("safetensors: offsets that overlap, leave holes or leave the file are refused") {
  const std::string a = entry("a", "F16", "[2, 4]", 0, 16);
  const RefusedHeader cases[] = {
      {a + ", " + entry("b", "F16", "[2, 4]", 8, 24), Errc::FileCorrupt, "tensor b begins at"},
      {entry("b", "F16", "[2, 4]", 8, 24), Errc::FileCorrupt, "tensor b begins at byte 8"},
      {a, Errc::FileCorrupt, "has 24 bytes of data, and its tensors take 16"},
      {entry("a", "F16", "[3, 4]", 0, 25), Errc::FileCorrupt, "data_offsets outside"},
      {entry("a", "F16", "[3, 4]", 24, 0), Errc::FileCorrupt, "data_offsets outside"},
      {entry("a", "F16", "[2, 4]", 0, 24), Errc::FileCorrupt, "a is 2 × 4, which does not take"},
      {entry("a", "F16", "[0, 4]", 0, 24), Errc::FileCorrupt, "a is 0 × 4"},
      {entry("a", "F16", "[12, 0]", 0, 24), Errc::FileCorrupt, "a is 12 × 0"},
      {entry("a", "F16", "[1, 12]", 0, 23), Errc::FileCorrupt, "a is 1 × 12"},
      // The product of the shape is 12 in 64 bits.
      {entry("a", "F16", "[9223372036854775814, 2]", 0, 24), Errc::FileCorrupt, "tensor a is"},
      {entry("a", "F16", "[24]", 0, 24), Errc::UnsupportedModel, "a is not a matrix"},
      {entry("a", "F16", "[1, 3, 4]", 0, 24), Errc::UnsupportedModel, "a is not a matrix"},
      {entry("a", "F16", "[-3, -4]", 0, 24), Errc::UnsupportedModel, "a is not a matrix"},
      {entry("a", "F64", "[1, 3]", 0, 24), Errc::UnsupportedModel, "a has type F64"},
      {R"("a": 1)", Errc::FileCorrupt, "tensor a is not described"},
      {R"("a": {})", Errc::FileCorrupt, "tensor a has no dtype"},
      {R"("a": {"dtype": "F16", "shape": [3, 4]})", Errc::FileCorrupt, "data_offsets outside"},
      {R"("a")", Errc::FileCorrupt, "is not a JSON object"},
  };
  for (const RefusedHeader& one : cases) {
    CAPTURE(one.members);
    const auto tensors = read_header(one.members, 24);
    REQUIRE_FALSE(tensors);
    CHECK(tensors.error().code == one.code);
    CHECK_THAT(tensors.error().detail, Contains(std::string(one.why)));
  }
}

TEST_CASE("safetensors: the header's length is bounded by the file and by a megabyte") {
  CHECK(check_safetensors_header_size(92, 100, "a.st"));
  for (const std::uint64_t bytes : {std::uint64_t{93}, ~std::uint64_t{0}, ~std::uint64_t{0} - 7})
    CHECK(check_safetensors_header_size(bytes, 100, "a.st").error().code == Errc::FileCorrupt);
  CHECK_FALSE(check_safetensors_header_size(0, 7, "a.st"));
  CHECK(check_safetensors_header_size(kMaxSafetensorsHeaderBytes, 1ull << 40, "a.st"));
  CHECK_FALSE(check_safetensors_header_size(kMaxSafetensorsHeaderBytes + 1, 1ull << 40, "a.st"));
}

}  // namespace leasehold
