/// Models of every family, made small and at random, against the plain
/// computation in doubles; and against themselves in other company, bit by bit.
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/random.hpp"
#include "tests/support/engine_rig.hpp"
#include "tests/support/plain_model.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::testing {
namespace {

using make_model::Architecture;
using make_model::Rope;

constexpr std::uint32_t kTokens = 40;  // beyond the context that yarn stretches, which is 32

struct Family {
  const char* name;
  Architecture architecture;
  Rope rope = Rope::Plain;
  bool with_experts = false;
  std::uint32_t head_dim = 0;
  std::uint32_t parts = 1;
};

constexpr Family kFamilies[] = {
    {.name = "llama", .architecture = Architecture::Llama},
    {.name = "llama, rope_freqs", .architecture = Architecture::Llama, .rope = Rope::Divisors},
    {.name = "llama, linear", .architecture = Architecture::Llama, .rope = Rope::Linear},
    {.name = "mixtral", .architecture = Architecture::Llama, .with_experts = true},
    {.name = "qwen2", .architecture = Architecture::Qwen2},
    {.name = "qwen2, yarn", .architecture = Architecture::Qwen2, .rope = Rope::Yarn},
    {.name = "qwen3", .architecture = Architecture::Qwen3, .head_dim = 32},
    {.name = "qwen2moe", .architecture = Architecture::Qwen2Moe, .with_experts = true},
    {.name = "qwen3moe, in parts",
     .architecture = Architecture::Qwen3Moe,
     .with_experts = true,
     .head_dim = 32,
     .parts = 3},
};

/// A model on disk, gone at the end.
class MadeModel {
 public:
  explicit MadeModel(const Family& family) {
    folder_ = (std::filesystem::temp_directory_path() / "leasehold-family-XXXXXX").string();
    REQUIRE(::mkdtemp(folder_.data()) != nullptr);
    make_model::ModelRequest request{.architecture = family.architecture,
                                     .shape = {.layers = 2,
                                               .embd = 64,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .ffn = 96,
                                               .vocab = 300,
                                               .context = 128,
                                               .head_width = family.head_dim},
                                     .type = TensorType::F32,
                                     .seed = 11,
                                     .rope = family.rope,
                                     .parts = family.parts};
    if (family.with_experts) {
      request.shape.experts = 8;
      request.shape.experts_used = 3;
      request.shape.expert_ffn = 48;
    }
    const std::string asked = folder_ + "/m.gguf";
    const auto written = make_model::write_model(request, asked, [](auto, auto) {});
    REQUIRE(written.has_value());
    path_ = make_model::part_path(asked, family.parts - 1, family.parts);
  }
  ~MadeModel() { std::filesystem::remove_all(folder_); }
  MadeModel(const MadeModel&) = delete;
  MadeModel& operator=(const MadeModel&) = delete;

  /// Of the last part, where there are several.
  const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
};

std::vector<TokenId> text(std::uint64_t seed) {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < kTokens; ++i)
    tokens.push_back(static_cast<TokenId>(3 + random_at(seed, i) % 297));
  return tokens;
}

/// A rig and how many rows a step of it has at most.
struct Way {
  bool reference = false;
  std::uint32_t threads = 1;
  std::uint32_t token_budget = 256;
  std::uint32_t companions = 0;
};

/// The logits after the text, computed that way.
std::vector<float> logits(const std::string& path, const Way& way) {
  EngineRig rig({.model_path = path,
                 .reference = way.reference,
                 .threads = way.threads,
                 .kv_type = KvType::F32,
                 .limits = {.token_budget = way.token_budget}});
  const LeaseId lease = rig.grant("tenant", 2);
  for (std::uint32_t i = 0; i < way.companions; ++i)
    REQUIRE(rig.submit(rig.request("tenant", lease, fmt::format("c{}", i), text(100 + i), 8)));
  REQUIRE(rig.submit(rig.request("tenant", lease, "ours", text(7), 1)));
  while (rig.outcome("ours").tokens.empty()) {
    REQUIRE(rig.step());
    const auto last = rig.engine().last_logits(RequestId{"ours"});
    if (!rig.outcome("ours").tokens.empty()) return {last.begin(), last.end()};
  }
  return {};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("model: every family is what doubles say of it") {
  const Family family = GENERATE(from_range(std::begin(kFamilies), std::end(kFamilies)));
  const MadeModel model(family);
  PlainModel plain(model.path());
  PlainModel::Vector expected;
  for (const TokenId token : text(7)) expected = plain.next(token);
  const std::vector<float> ours = logits(model.path(), {});
  REQUIRE(ours.size() == expected.size());
  double worst = 0;
  double spread = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    worst = std::max(worst, std::abs(ours[i] - expected[i]));
    spread = std::max(spread, std::abs(expected[i]));
  }
  INFO(family.name << ": off by " << worst << " of " << spread);
  CHECK(spread > 1);
  CHECK(worst < 1e-5 * spread);
}

TEST_CASE(
    "model: every family has the same bits alone and in company, whole "
    "and in chunks") {
  const Family family = GENERATE(from_range(std::begin(kFamilies), std::end(kFamilies)));
  const MadeModel model(family);
  INFO(family.name);
  const std::vector<float> alone = logits(model.path(), {});
  CHECK(same_bits(logits(model.path(), {.reference = true}), alone));
  CHECK(same_bits(logits(model.path(), {.threads = 2, .token_budget = 7}), alone));
  CHECK(same_bits(logits(model.path(), {.threads = 2, .companions = 5}), alone));
  CHECK(same_bits(logits(model.path(), {.token_budget = 23, .companions = 3}), alone));
}

}  // namespace leasehold::testing
