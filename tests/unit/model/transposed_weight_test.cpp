/// Files of latent attention whose heads have keys and values in one tensor.
#include "kernels/model/transposed_weight.hpp"

#include <cstring>

#include "kernels/quant/dequantize.hpp"
#include "tests/unit/model/config_cases.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kKey = 6;    // unrotated elements of a key
constexpr std::uint32_t kValue = 5;  // elements of a value
constexpr std::uint32_t kRank = 32;  // elements of a latent vector
constexpr std::uint64_t kHeadRows = kKey + kValue;

/// A file whose tensor of keys and values has this type. Weights that these tests do not read are
/// missing.
GgufBuilder fused_heads(TensorType type) {
  return tiny_model("deepseek2").tensor("blk.0.attn_kv_b.weight", type, {kRank, 4 * kHeadRows});
}

/// The weight of the keys, [heads · rank, key].
WeightTensor keys_weight(TensorType type) {
  WeightTensor weight{.name = "blk.0.attn_k_b.weight",
                      .type = type,
                      .rows = kHeads * kRank,
                      .columns = kKey,
                      .size_bytes = row_size_bytes(type, kHeads * kRank * kKey),
                      .is_transposed = true};
  for (std::uint32_t head = 0; head < kHeads; ++head)
    weight.pieces.push_back(
        {"blk.0.attn_kv_b.weight", static_cast<std::uint32_t>(head * kHeadRows), kKey});
  return weight;
}

/// The elements of the file's tensor as floats.
std::vector<float> floats_of(const GgufFile& file) {
  const GgufTensor& tensor = *file.find("blk.0.attn_kv_b.weight");
  std::vector<float> floats(tensor.rows() * kRank);
  for (std::uint64_t row = 0; row < tensor.rows(); ++row)
    dequantize_row(tensor.type, file.data(tensor).data() + row * row_size_bytes(tensor.type, kRank),
                   floats.data() + row * kRank, kRank);
  return floats;
}

std::vector<std::byte> read_bytes(const GgufFile& file, const WeightTensor& weight,
                                  std::uint64_t from, std::uint64_t count) {
  std::vector<std::byte> bytes(count);
  REQUIRE(read_weight(file, weight, from, bytes).has_value());
  return bytes;
}

}  // namespace

TEST_CASE(
    "transposed weight: the elements of each head's keys change places, and keep their bits") {
  const TensorType type = GENERATE(TensorType::F32, TensorType::Q8_0, TensorType::Q4_0);
  const TemporaryFile path(fused_heads(type).bytes());
  const auto file = GgufFile::open(path.path());
  REQUIRE(file.has_value());
  const WeightTensor weight = keys_weight(TensorType::F32);
  const auto bytes = read_bytes(*file, weight, 0, weight.size_bytes);
  const std::vector<float> source = floats_of(*file);
  std::uint64_t different = 0;
  for (std::uint64_t head = 0; head < kHeads; ++head)
    for (std::uint64_t i = 0; i < kRank; ++i)
      for (std::uint64_t d = 0; d < kKey; ++d) {
        const float& expected = source[(head * kHeadRows + d) * kRank + i];
        const std::byte* ours = &bytes[((head * kRank + i) * kKey + d) * sizeof(float)];
        different += std::memcmp(&expected, ours, sizeof expected) != 0 ? 1 : 0;
      }
  CHECK(different == 0);
}

TEST_CASE("transposed weight: any range of bytes is that of the whole") {
  const TemporaryFile path(fused_heads(TensorType::F16).bytes());
  const auto file = GgufFile::open(path.path());
  REQUIRE(file.has_value());
  const WeightTensor weight = keys_weight(TensorType::F16);
  const auto whole = read_bytes(*file, weight, 0, weight.size_bytes);
  for (const auto& [from, count] : {std::pair(0u, 1u), std::pair(11u, 26u), std::pair(383u, 2u),
                                    std::pair(100u, 1000u), std::pair(1535u, 1u)}) {
    CAPTURE(from, count);
    CHECK(read_bytes(*file, weight, from, count) ==
          std::vector(whole.begin() + from, whole.begin() + from + count));
  }
}
