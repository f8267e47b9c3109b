/// A card computes int8 and f32 arithmetic with the CPU's bits: whole models, in one step, in
/// chunks, in batches and as graphs.
#include <algorithm>

#include "tests/model/matrix.hpp"
#include "tests/support/card_model.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

using cuda::GraphUse;

cuda::CudaOptions exact(GraphUse graphs) {
  return {.rows = cuda::RowArithmetic::Floats, .graphs = graphs, .segment_layers = 2};
}

/// The digest of a text on the card, whose decode steps are graphs.
std::string digest_on_card(const std::string& model, const std::vector<TokenId>& text,
                           Variant variant) {
  CardModel card(exact(GraphUse::Gated));
  variant.placement = &card;
  return bits_digest(compute_logits(model, text, variant));
}

/// Of the matrix's text.
std::string digest_on_card(const std::string& model, Arithmetic arithmetic, KvType kv_type,
                           Chunking chunking) {
  return digest_on_card(model, matrix_text(kMatrixTokens),
                        {.kv_type = kv_type, .arithmetic = arithmetic, .chunking = chunking});
}

std::string architecture_digest_on_card(const ExpectedBits& row, Chunking chunking) {
  return digest_on_card(architecture_model(row.model),
                        matrix_text_below(kFewestTokens, kExactTokens),
                        {.arithmetic = arithmetic_of(row), .chunking = chunking});
}

}  // namespace

TEST_CASE("card bits: in int8 every model has the CPU's committed bits, in one step") {
  const ExpectedBits row =
      GENERATE(from_range(std::begin(kExpectedInt8Bits), std::end(kExpectedInt8Bits)));
  const auto digest = [&](KvType kv_type) {
    return digest_on_card(matrix_model(row.model), Arithmetic::Int8, kv_type, Chunking::Whole);
  };
  CAPTURE(row.model);
  CHECK(digest(KvType::F16) == row.kv_f16);
  CHECK(digest(KvType::F32) == row.kv_f32);
}

TEST_CASE("card bits: in int8 every model has the CPU's committed bits, in graphs") {
  const ExpectedBits row =
      GENERATE(from_range(std::begin(kExpectedInt8Bits), std::end(kExpectedInt8Bits)));
  CAPTURE(row.model);
  CHECK(digest_on_card(matrix_model(row.model), Arithmetic::Int8, KvType::F16,
                       Chunking::OneByOne) == row.kv_f16);
}

TEST_CASE("card bits: in int8 a family has the CPU's committed bits, with experts or without") {
  const ExpectedBits row =
      GENERATE(from_range(std::begin(kExpectedInt8FamilyBits), std::end(kExpectedInt8FamilyBits)));
  const GeneratedModel model(family_named(row.model));
  CAPTURE(row.model);
  for (const Chunking chunking : {Chunking::Whole, Chunking::OneByOne})
    CHECK(digest_on_card(model.path(), Arithmetic::Int8, KvType::F16, chunking) == row.kv_f16);
}

TEST_CASE("card bits: in int8 keys and values in q8_0 have the CPU's committed bits") {
  const ExpectedKvBits row =
      GENERATE(from_range(std::begin(kExpectedKvQ8Bits), std::end(kExpectedKvQ8Bits)));
  CAPTURE(row.model);
  for (const Chunking chunking : {Chunking::Whole, Chunking::OneByOne})
    CHECK(digest_on_card(matrix_model(row.model), Arithmetic::Int8, KvType::Q8_0, chunking) ==
          row.int8);
}

TEST_CASE("card bits: in int8 batches, chunks, graphs and blocks in any order change no bit") {
  constexpr KvType kTypes[] = {KvType::F16, KvType::F32, KvType::Q8_0};
  for (std::uint64_t i = 0; i < 8; ++i) {
    SeededRandom random(test_seed() * 1000 + i);
    CardModel card(exact(static_cast<GraphUse>(random.below(3))));
    Variant variant{.placement = &card,
                    .kv_type = kTypes[i % std::size(kTypes)],
                    .arithmetic = Arithmetic::Int8,
                    .batch = static_cast<std::uint32_t>(1 + random.below(6)),
                    .chunking = static_cast<Chunking>(random.below(kChunkings)),
                    .scattered = random.below(2) == 0,
                    .seed = i + 1};
    variant.batch_index = static_cast<std::uint32_t>(random.below(variant.batch));
    INFO("SEED=" << test_seed());
    check_variant(variant);
  }
}

TEST_CASE("card bits: with adapters, and beside rows with adapters, in one step and in graphs") {
  for (std::uint64_t i = 0; i < 4; ++i) {
    CardModel card(exact(i == 0 ? GraphUse::None : GraphUse::Gated));
    INFO("SEED=" << test_seed());
    check_variant({.placement = &card,
                   .arithmetic = i % 3 == 0 ? Arithmetic::F32 : Arithmetic::Int8,
                   .batch = static_cast<std::uint32_t>(1 + i),
                   .chunking = i % 2 == 0 ? Chunking::OneByOne : Chunking::Random,
                   .seed = test_seed() + i,
                   .beside_adapters = true,
                   .has_adapter = i != 3});
  }
}

TEST_CASE("card bits: every architecture has the CPU's committed bits") {
  const ExpectedBits row = GENERATE(from_range(expected_architectures()));
  CAPTURE(row.model);
  CHECK(architecture_digest_on_card(row, Chunking::Halving) == row.kv_f16);
}

TEST_CASE("card bits: every architecture has the same bits in one step and in graphs", "[.long]") {
  const ExpectedBits row = GENERATE(from_range(expected_architectures()));
  CAPTURE(row.model);
  for (const Chunking chunking : {Chunking::Whole, Chunking::OneByOne})
    CHECK(architecture_digest_on_card(row, chunking) == row.kv_f16);
}

TEST_CASE("card bits: in f32 a model of any type has the CPU's committed bits") {
  const std::string name =
      GENERATE(as<std::string>(), "own", "stories260K-f16", "kq-llama-bf16", "kq-llama-q4_k_m");
  const auto* row = std::ranges::find(kExpectedBits, name, &ExpectedBits::model);
  REQUIRE(row != std::end(kExpectedBits));
  CAPTURE(name);
  CHECK(digest_on_card(matrix_model(name), Arithmetic::F32, KvType::F16, Chunking::Whole) ==
        row->kv_f16);
}

TEST_CASE("card bits: in f32 keys and values in q8_0 have the CPU's committed bits") {
  const ExpectedKvBits& row = kExpectedKvQ8Bits[0];
  CHECK(digest_on_card(matrix_model(row.model), Arithmetic::F32, KvType::Q8_0, Chunking::Whole) ==
        row.f32);
}

TEST_CASE("card bits: decode steps of one row in int8 are replayed as graphs") {
  CardModel card(exact(GraphUse::Gated));
  const auto model = required(LocalModel::load({.model_path = bundled_model_path(),
                                                .placement = &card,
                                                .arithmetic = Arithmetic::Int8,
                                                .positions = 64}));
  for (const TokenId token : matrix_text(3)) {
    const LocalRow row{.sequence = 0, .token = token};
    REQUIRE(model->forward({&row, 1}));
  }
  CHECK(card.backend().graph_count() > 0);
}

TEST_CASE("card bits: halves give other bits than int8 and than f32") {
  CardModel card({.graphs = GraphUse::None});
  const auto halves = compute_logits(bundled_model_path(), matrix_text(3),
                                     {.placement = &card, .arithmetic = Arithmetic::F16});
  for (const Arithmetic arithmetic : {Arithmetic::Int8, Arithmetic::F32})
    CHECK_FALSE(same_bits(
        halves, compute_logits(bundled_model_path(), matrix_text(3), {.arithmetic = arithmetic})));
}

}  // namespace leasehold::testing
