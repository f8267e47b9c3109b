/// Compares generated models whose layers keep a recurrent state with a plain computation in
/// doubles, and bit by bit with themselves in other chunks and batches.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/model/matrix.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/plain_model.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kRecurrentTokens = 70;

}  // namespace

TEST_CASE("model: every family with recurrent state agrees with a computation in doubles") {
  const Family family =
      GENERATE(from_range(std::begin(kRecurrentFamilies), std::end(kRecurrentFamilies)));
  const GeneratedModel model(family);
  PlainModel plain(model.path());
  const std::vector<TokenId> text = matrix_text(kRecurrentTokens);
  const std::vector<float> ours = compute_logits(model.path(), text, {.kv_type = KvType::F32});
  double worst = 0;
  double spread = 0;
  std::size_t at = 0;
  for (const TokenId token : text)
    for (const double expected : plain.next(token)) {
      worst = std::max(worst, std::abs(ours[at++] - expected));
      spread = std::max(spread, std::abs(expected));
    }
  INFO(family.name << ": off by " << worst << " of " << spread);
  CHECK(spread > 1);
  CHECK(worst < 3e-5 * spread);
}

TEST_CASE("model: every family with recurrent state has the same bits in any chunks and batches") {
  const Family family =
      GENERATE(from_range(std::begin(kRecurrentFamilies), std::end(kRecurrentFamilies)));
  const Arithmetic arithmetic = family.type == TensorType::F32 ? Arithmetic::F32 : Arithmetic::Int8;
  const GeneratedModel model(family);
  const std::vector<TokenId> text = matrix_text(kRecurrentTokens);
  const auto bits = [&](Variant variant) {
    variant.arithmetic = arithmetic;
    return compute_logits(model.path(), text, variant);
  };
  const std::vector<float> whole = bits({});
  INFO("SEED=" << test_seed() << ", " << family.name);
  CHECK(same_bits(bits({.chunking = Chunking::OneByOne}), whole));
  CHECK(same_bits(bits({.reference = true, .chunking = Chunking::Sixteens}), whole));
  CHECK(same_bits(bits({.threads = 3,
                        .batch = 5,
                        .batch_index = 2,
                        .chunking = Chunking::Random,
                        .scattered = true,
                        .seed = test_seed()}),
                  whole));
  for (const SimdPath path : kSimdPaths)
    if (cpu_has(path)) CHECK(same_bits(bits({.simd = path, .batch = 3}), whole));
}

}  // namespace leasehold::testing
