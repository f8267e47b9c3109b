/// A sample of the same-bits matrix, and the committed bits. The whole matrix: same_bits_long_test.
#include <algorithm>

#include "tests/model/matrix.hpp"
#include "tests/support/generated_model.hpp"

namespace leasehold::testing {
namespace {

constexpr int kSample = 120;
constexpr int kAdapterSample = 40;

Variant random_variant(std::uint64_t seed) {
  SeededRandom random(seed);
  Variant variant{.reference = random.below(6) == 0, .seed = seed};
  do variant.simd = kSimdPaths[random.below(std::size(kSimdPaths))];
  while (!cpu_has(variant.simd));
  variant.threads = static_cast<std::uint32_t>(1 + random.below(3));
  constexpr KvType kTypes[] = {KvType::F16, KvType::F32, KvType::Q8_0};
  variant.kv_type = kTypes[random.below(std::size(kTypes))];
  variant.arithmetic = random.below(2) == 0 ? Arithmetic::F32 : Arithmetic::Int8;
  // Plain loops are slow, and their result for a row does not depend on the batch size.
  const bool is_slow = variant.reference || variant.simd == SimdPath::Scalar;
  variant.batch = static_cast<std::uint32_t>(1 + random.below(is_slow ? 6 : 64));
  variant.batch_index = static_cast<std::uint32_t>(random.below(variant.batch));
  variant.chunking = static_cast<Chunking>(random.below(kChunkings));
  variant.scattered = random.below(2) == 0;
  return variant;
}

/// Checks both backends.
void check_expected(const ExpectedBits& row, const std::string& model_path,
                    Arithmetic arithmetic = Arithmetic::F32) {
  for (const bool reference : {false, true}) {
    const auto digest = [&](KvType kv_type) {
      return bits_digest(
          compute_logits(model_path, matrix_text(kMatrixTokens),
                         {.reference = reference, .kv_type = kv_type, .arithmetic = arithmetic}));
    };
    CAPTURE(row.model, reference);
    CHECK(digest(KvType::F16) == row.kv_f16);
    CHECK(digest(KvType::F32) == row.kv_f32);
  }
}

}  // namespace

TEST_CASE("same bits: a sample of batch, batch_index, chunks, threads, path, blocks and kv type") {
  INFO("SEED=" << test_seed());
  for (std::uint64_t i = 0; i < kSample; ++i) check_variant(random_variant(test_seed() * 1000 + i));
}

TEST_CASE("same bits: a sample with an adapter, or without one beside rows that have some") {
  INFO("SEED=" << test_seed());
  for (std::uint64_t i = 0; i < kAdapterSample; ++i) {
    Variant variant = random_variant(test_seed() * 1000 + kSample + i);
    variant.beside_adapters = true;
    variant.has_adapter = i % 2 == 0;
    check_variant(variant);
  }
}

TEST_CASE("same bits: an adapter changes the logits, on the reference backend too") {
  const Arithmetic arithmetic = GENERATE(Arithmetic::F32, Arithmetic::Int8);
  const std::vector<float>& adapted = serial_bits(KvType::F16, arithmetic, true);
  CHECK_FALSE(same_bits(adapted, serial_bits(KvType::F16, arithmetic)));
  check_variant({.reference = true, .arithmetic = arithmetic, .has_adapter = true});
}

TEST_CASE("same bits: every model and both kv types give the committed bits") {
  const ExpectedBits row = GENERATE(from_range(std::begin(kExpectedBits), std::end(kExpectedBits)));
  check_expected(row, matrix_model(row.model));
}

TEST_CASE("same bits: int8 arithmetic gives the committed bits") {
  const ExpectedBits row =
      GENERATE(from_range(std::begin(kExpectedInt8Bits), std::end(kExpectedInt8Bits)));
  check_expected(row, matrix_model(row.model), Arithmetic::Int8);
}

TEST_CASE("same bits: every family, with experts or without, gives the committed bits") {
  const Family family = GENERATE(from_range(std::begin(kFamilies), std::end(kFamilies)));
  const auto* row = std::ranges::find(kExpectedFamilyBits, family.name, &ExpectedBits::model);
  INFO(family.name << " has no row in expected_bits.hpp");
  REQUIRE(row != std::end(kExpectedFamilyBits));
  const GeneratedModel model(family);
  check_expected(*row, model.path());
}

TEST_CASE("same bits: a family in int8 arithmetic gives the committed bits") {
  const ExpectedBits row =
      GENERATE(from_range(std::begin(kExpectedInt8FamilyBits), std::end(kExpectedInt8FamilyBits)));
  const GeneratedModel model(family_named(row.model));
  check_expected(row, model.path(), Arithmetic::Int8);
}

TEST_CASE("same bits: keys and values in q8_0 give the committed bits") {
  const ExpectedKvBits row =
      GENERATE(from_range(std::begin(kExpectedKvQ8Bits), std::end(kExpectedKvQ8Bits)));
  for (const bool reference : {false, true}) {
    const auto digest = [&](Arithmetic arithmetic) {
      return bits_digest(compute_logits(
          matrix_model(row.model), matrix_text(kMatrixTokens),
          {.reference = reference, .kv_type = KvType::Q8_0, .arithmetic = arithmetic}));
    };
    CAPTURE(row.model, reference);
    CHECK(digest(Arithmetic::F32) == row.f32);
    CHECK(digest(Arithmetic::Int8) == row.int8);
  }
}

TEST_CASE("same bits: a text longer than a partition of attention, in chunks and in batches") {
  const auto text = matrix_text(300);
  const auto [kv_type, expected] = GENERATE(std::pair{KvType::F16, kExpectedLongTextDigest},
                                            std::pair{KvType::Q8_0, kExpectedLongKvQ8Digest});
  for (Variant variant : {Variant{.chunking = Chunking::Whole},
                          Variant{.threads = 3, .chunking = Chunking::Random, .scattered = true},
                          Variant{.threads = 2,
                                  .batch = 3,
                                  .batch_index = 1,
                                  .chunking = Chunking::Sixteens,
                                  .scattered = true}}) {
    variant.kv_type = kv_type;
    INFO(describe(variant));
    CHECK(bits_digest(compute_logits(model_for(kv_type), text, variant)) == expected);
  }
}

TEST_CASE("same bits: the comparison detects one flipped bit of one logit") {
  std::vector<float> bits = serial_bits(KvType::F16);
  std::uint32_t word;
  std::memcpy(&word, &bits[bits.size() / 2], sizeof word);
  word ^= 1;
  std::memcpy(&bits[bits.size() / 2], &word, sizeof word);
  CHECK_FALSE(same_bits(bits, serial_bits(KvType::F16)));
  CHECK(bits_digest(bits) != bits_digest(serial_bits(KvType::F16)));
  CHECK_FALSE(same_bits(serial_bits(KvType::F32), serial_bits(KvType::F16)));
  CHECK_FALSE(same_bits(serial_bits(KvType::F16, Arithmetic::Int8), serial_bits(KvType::F16)));
}

}  // namespace leasehold::testing
