/// The comparison of formats must detect each of these small damages to a model.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "tests/model/format_table.hpp"
#include "tests/model/matrix.hpp"
#include "tests/model/oracle.hpp"
#include "tests/support/gguf_builder.hpp"

namespace leasehold::testing {
namespace {

const std::string kTensor = "blk.0.attn_v.weight";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Compares our results of one model with the oracle and the plain computation of another.
Agreement judge(const std::string& name, const std::string& model_path,
                std::function<void(ModelConfig&)> modify_config = {}) {
  PlainModel reference(matrix_model(name));
  Agreement agreement;
  for (const OracleCase& one : read_oracle(matrix_model(name))) {
    const std::vector<Logits> ours = teacher_forced_logits(model_path, one, modify_config);
    agreement.compare(one, ours, tolerance_of(name));
    agreement.compare_exactly(teacher_forced_logits(reference, one), ours);
  }
  return agreement;
}

/// The file with one byte of kTensor changed.
template <class Change>
std::string damaged(const std::string& name, std::size_t offset, Change&& change) {
  std::string bytes = bytes_of(matrix_model(name));
  const auto file = GgufFile::open(matrix_model(name));
  char& byte = bytes[file->find(kTensor)->offset + offset];
  const char before = byte;
  byte = static_cast<char>(change(static_cast<unsigned char>(before)));
  REQUIRE(byte != before);
  return bytes;
}

void check_detected(const std::string& name, const std::string& bytes) {
  const TemporaryFile file(bytes);
  const Agreement agreement = judge(name, file.path());
  CAPTURE(name, agreement.worst_top, agreement.worst_exact, agreement.wrong);
  CHECK_FALSE(holds(agreement, tolerance_of(name)));
}

/// Per file: offsets of the upper byte of the scale and of a byte of quants in the first block of
/// kTensor.
struct FlipOffsets {
  std::string name;
  std::size_t scale_sign;
  std::size_t quants;
};
const std::vector<FlipOffsets> kFlipOffsets{{"stories260K-q4_0", 1, 4}, {"kq-llama-q4_1", 1, 6},
                                            {"kq-llama-q5_0", 1, 8},    {"kq-llama-q5_1", 1, 10},
                                            {"kq-llama-q4_k_m", 1, 18}, {"kq-llama-q5_k_m", 1, 50},
                                            {"kq-llama-q6_k", 209, 2}};

}  // namespace

TEST_CASE("model: one flipped scale fails the pin") {
  const FlipOffsets at = GENERATE(from_range(kFlipOffsets));
  check_detected(at.name, damaged(at.name, at.scale_sign, [](unsigned b) { return b ^ 0x80u; }));
}

TEST_CASE("model: one swapped nibble fails the pin") {
  const FlipOffsets at = GENERATE(from_range(kFlipOffsets));
  check_detected(at.name, damaged(at.name, at.quants, [](unsigned b) { return b << 4 | b >> 4; }));
}

TEST_CASE("model: a wrong rope pairing fails the pin") {
  const std::string name = GENERATE("stories260K-f32", "stories260K-q8_0", "kq-llama-q4_k_m");
  const Agreement agreement = judge(
      name, matrix_model(name), [](ModelConfig& config) { config.rope.style = RopeStyle::Halves; });
  CAPTURE(name, agreement.worst_top, agreement.worst_exact, agreement.wrong);
  CHECK_FALSE(holds(agreement, tolerance_of(name)));
  CHECK(agreement.worst_top > tolerance_of(name));
}

TEST_CASE("model: the same comparison holds for an undamaged copy") {
  const std::string name = "kq-llama-q4_k_m";
  const TemporaryFile file(bytes_of(matrix_model(name)));
  CHECK(holds(judge(name, file.path()), tolerance_of(name)));
}

}  // namespace leasehold::testing
