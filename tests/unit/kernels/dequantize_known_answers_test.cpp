/// Hand-written blocks, one per format, with their values.
#include <catch2/catch.hpp>
#include <vector>

#include "kernels/quant/dequantize.hpp"

namespace leasehold {
namespace {

using Block = std::vector<int>;

/// Appends `count` times the same byte.
Block& add(Block& block, std::size_t count, int value) {
  block.insert(block.end(), count, value);
  return block;
}

std::vector<float> dequantized(TensorType type, const Block& block) {
  REQUIRE(block.size() % block_shape(type).size_bytes == 0);
  std::vector<std::byte> bytes;
  for (const int value : block) bytes.push_back(static_cast<std::byte>(value));
  std::vector<float> out(block.size() / block_shape(type).size_bytes * block_shape(type).elements);
  dequantize_row(type, bytes.data(), out.data(), out.size());
  return out;
}

}  // namespace

TEST_CASE("dequantize: F32, F16 and BF16 are little-endian and unchanged") {
  CHECK(dequantized(TensorType::F32, {0x00, 0x00, 0x80, 0x3F, 0x00, 0x00, 0x20, 0xC1}) ==
        std::vector<float>{1.0F, -10.0F});
  CHECK(dequantized(TensorType::F16, {0x00, 0x3C, 0x00, 0xC9, 0x01, 0x00}) ==
        std::vector<float>{1.0F, -10.0F, 0x1p-24F});
  CHECK(dequantized(TensorType::BF16, {0x80, 0x3F, 0x20, 0xC1, 0x01, 0x00}) ==
        std::vector<float>{1.0F, -10.0F, 0x1p-133F});
}

TEST_CASE("dequantize: Q8_0 is a half scale, then 32 signed bytes") {
  Block block{0x00, 0x38};  // 0.5
  for (int i = 0; i < 32; ++i) block.push_back(i * 8 - 128);
  const auto values = dequantized(TensorType::Q8_0, block);
  CHECK(values[0] == -64.0F);
  CHECK(values[16] == 0.0F);
  CHECK(values[31] == 60.0F);
}

TEST_CASE("dequantize: Q4_0 keeps elements 0 to 15 in low nibbles, 16 to 31 in high ones") {
  Block block{0x00, 0xC0};  // -2
  for (int i = 0; i < 16; ++i) block.push_back(i | (15 - i) << 4);
  const auto values = dequantized(TensorType::Q4_0, block);
  for (std::size_t i = 0; i < 16; ++i) {
    CAPTURE(i);
    CHECK(values[i] == -2.0F * (static_cast<float>(i) - 8));
    CHECK(values[i + 16] == -2.0F * (7 - static_cast<float>(i)));
  }
}

TEST_CASE("dequantize: Q4_1 adds a minimum instead of subtracting 8") {
  Block block{0x00, 0x3C, 0x00, 0xC2};  // 1, -3
  for (int i = 0; i < 16; ++i) block.push_back(i | (15 - i) << 4);
  const auto values = dequantized(TensorType::Q4_1, block);
  CHECK(values[0] == -3.0F);
  CHECK(values[15] == 12.0F);
  CHECK(values[16] == 12.0F);
  CHECK(values[31] == -3.0F);
}

TEST_CASE("dequantize: Q5_0 has the fifth bit of element i in bit i of a word") {
  Block block{0x00, 0x3C, 0x01, 0x00, 0x02, 0x80};  // 1; bits 0, 17 and 31
  add(block, 16, 0x21);
  const auto values = dequantized(TensorType::Q5_0, block);
  CHECK(values[0] == 1.0F);     // 1 + 16 - 16
  CHECK(values[1] == -15.0F);   // 1 - 16
  CHECK(values[16] == -14.0F);  // 2 - 16
  CHECK(values[17] == 2.0F);
  CHECK(values[31] == 2.0F);
}

TEST_CASE("dequantize: Q5_1 has scale, minimum, fifth bits, nibbles") {
  Block block{0x00, 0x40, 0x00, 0x3C, 0x00, 0x01, 0x00, 0x00};  // 2, 1; bit 8
  add(block, 16, 0xF3);
  const auto values = dequantized(TensorType::Q5_1, block);
  CHECK(values[0] == 7.0F);    // 2·3 + 1
  CHECK(values[8] == 39.0F);   // 2·19 + 1
  CHECK(values[16] == 31.0F);  // 2·15 + 1
}

TEST_CASE("dequantize: IQ4_NL has a scale, and nibbles that name values of a table") {
  Block block{0x00, 0x40};  // 2
  for (int i = 0; i < 16; ++i) block.push_back(i | (15 - i) << 4);
  const auto values = dequantized(TensorType::IQ4_NL, block);
  CHECK(values[0] == -254.0F);  // 2·-127
  CHECK(values[7] == -20.0F);
  CHECK(values[8] == 2.0F);
  CHECK(values[15] == 226.0F);
  CHECK(values[16] == 226.0F);
  CHECK(values[31] == -254.0F);
}

TEST_CASE("dequantize: MXFP4 has an exponent, and nibbles that are small floats") {
  Block block{0x80};  // 2^1
  for (int i = 0; i < 16; ++i) block.push_back(i | (15 - i) << 4);
  const auto values = dequantized(TensorType::MXFP4, block);
  CHECK(values[1] == 1.0F);   // 2·0.5
  CHECK(values[7] == 12.0F);  // 2·6
  CHECK(values[8] == 0.0F);
  CHECK(values[16] == -12.0F);  // code 15
  CHECK(values[17] == -8.0F);   // code 14
  block[0] = 0;                 // 2^-127, and half of it is not a normal float
  CHECK(dequantized(TensorType::MXFP4, block)[1] == 0x1p-128F);
  block[0] = 1;
  CHECK(dequantized(TensorType::MXFP4, block)[7] == 0x1.8p-124F);
}

TEST_CASE("dequantize: IQ4_XS has a scale of six bits per 32 elements, less 32") {
  // 1; the upper bits of scales 1 and 7; the lower bits of scales 0 and 1, and of 6 and 7.
  Block block{0x00, 0x3C, 0x08, 0x80, 0x53, 0x00, 0x00, 0xF0};
  for (int s = 0; s < 8; ++s) add(block, 16, 0xF8);  // values 1 and 113
  const auto values = dequantized(TensorType::IQ4_XS, block);
  CHECK(values[0] == -29.0F);  // 3 - 32
  CHECK(values[16] == -29.0F * 113);
  CHECK(values[32] == 5.0F);  // 5 + 2·16 - 32
  CHECK(values[6 * 32] == -32.0F);
  CHECK(values[7 * 32] == 15.0F);  // 15 + 2·16 - 32
}

TEST_CASE("dequantize: Q2_K has a scale and a minimum per 16 elements, two bits per element") {
  Block block;
  for (int s = 0; s < 16; ++s) block.push_back(s | (15 - s) << 4);
  add(block, 32, 0b11'10'01'00);                        // elements 0 … 127: 0, then 1, 2, 3
  add(block, 32, 0b00'00'00'11);                        // elements 128 … 159: 3, then 0
  block.insert(block.end(), {0x00, 0x3C, 0x00, 0x40});  // d 1, dmin 2
  const auto values = dequantized(TensorType::Q2_K, block);
  CHECK(values[0] == -30.0F);         // 0·0 - 2·15
  CHECK(values[16] == -28.0F);        // sub-block 1: 1·0 - 2·14
  CHECK(values[47] == 2.0F - 26.0F);  // sub-block 2: 2·1 - 2·13
  CHECK(values[127] == 21.0F - 16.0F);
  CHECK(values[128] == 24.0F - 14.0F);
  CHECK(values[255] == 0.0F);  // 15·0 - 2·0
}

TEST_CASE("dequantize: Q3_K subtracts 4 if the third bit is clear, and 32 from its scales") {
  Block block;
  add(block, 32, 0b1000'0001);    // set for elements 0 … 31 and 224 … 255
  add(block, 32, 0b00'00'00'10);  // elements 0 … 31: 2, to 127: 0
  add(block, 32, 0b01'00'00'00);  // elements 224 … 255: 1
  add(block, 8, 0x31);            // low bits: 1 for scales 0 … 7, 3 for 8 … 15
  add(block, 4, 0b11'10'00'01);   // high bits: 1, 0, 2, 3 by fours
  block.insert(block.end(), {0x00, 0x3C});
  const auto values = dequantized(TensorType::Q3_K, block);
  CHECK(values[0] == (17.0F - 32) * 2);
  CHECK(values[32] == (17.0F - 32) * -4);
  CHECK(values[64] == (1.0F - 32) * -4);
  CHECK(values[128] == (35.0F - 32) * -4);
  CHECK(values[223] == (51.0F - 32) * -4);
  CHECK(values[255] == (51.0F - 32) * 1);
}

TEST_CASE("dequantize: Q4_K packs eight six-bit scales and minima in twelve bytes") {
  Block block{0x00, 0x3C, 0x00, 0x38};            // d 1, dmin 0.5
  block.insert(block.end(), {0x81, 2, 3, 4});     // scale 0: 1, and 2 << 4 for scale 4
  block.insert(block.end(), {0x45, 6, 7, 8});     // min 0: 5, and 1 << 4 for min 4
  block.insert(block.end(), {0x9A, 0, 0, 0xF0});  // scale 4: 10, min 4: 9; min 7: 15
  add(block, 128, 0x73);
  const auto values = dequantized(TensorType::Q4_K, block);
  CHECK(values[0] == 1 * 3 - 2.5F);
  CHECK(values[32] == 2 * 7 - 3.0F);
  CHECK(values[64] == 3 * 3 - 3.5F);
  CHECK(values[128] == 42 * 3 - 12.5F);
  CHECK(values[224] == 0 * 7 - 7.5F);
}

TEST_CASE("dequantize: Q5_K has a fifth bit for element i of sub-block s in bit s of byte i") {
  Block block{0x00, 0x3C, 0x00, 0x00};  // d 1, dmin 0
  block.insert(block.end(), {1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2});
  block.push_back(0b1000'0010);  // byte 0: sub-blocks 1 and 7
  add(block, 31, 0);
  add(block, 128, 0x73);
  const auto values = dequantized(TensorType::Q5_K, block);
  CHECK(values[0] == 3.0F);
  CHECK(values[32] == 23.0F);
  CHECK(values[33] == 7.0F);
  CHECK(values[224] == 46.0F);
  CHECK(values[225] == 14.0F);
}

TEST_CASE("dequantize: Q6_K has a signed scale per 16 elements and separate high bits") {
  Block block;
  add(block, 64, 0xA1);           // elements 0 … 63: 1, 64 … 127: 10
  add(block, 64, 0);              // elements 128 … 255: 0
  add(block, 32, 0b11'10'01'00);  // 0, 16, 32, 48 for the quarters of the first half
  add(block, 32, 0);
  for (int s = 0; s < 16; ++s) block.push_back(s - 8);
  block.insert(block.end(), {0x00, 0x3C});
  const auto values = dequantized(TensorType::Q6_K, block);
  CHECK(values[0] == -8.0F * (1 - 32));
  CHECK(values[16] == -7.0F * (1 - 32));
  CHECK(values[32] == -6.0F * (17 - 32));
  CHECK(values[64] == -4.0F * (42 - 32));
  CHECK(values[127] == -1.0F * (58 - 32));
  CHECK(values[128] == 0.0F);
  CHECK(values[255] == 7.0F * -32);
}

TEST_CASE("dequantize: consecutive blocks each have their own scale") {
  Block row;
  for (const int high : {0x3C, 0x40}) {  // 1, 2
    row.insert(row.end(), {0, high});
    add(row, 32, 3);
  }
  const auto values = dequantized(TensorType::Q8_0, row);
  CHECK(values[31] == 3.0F);
  CHECK(values[32] == 6.0F);
}

}  // namespace leasehold
