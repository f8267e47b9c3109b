/// Small random models, one per supported family, generated for a test.
#pragma once

#include <string>

#include "tests/support/temporary_directory.hpp"
#include "tools/make_model/model_shape.hpp"

namespace leasehold::testing {

/// The properties in which generated models differ. Other widths and the vocabulary (512) are the
/// same for all.
struct Family {
  const char* name;
  std::string_view architecture = "llama";
  make_model::Rope rope = make_model::Rope::Plain;
  bool with_experts = false;
  std::uint32_t head_dim = 0;
  TensorType type = TensorType::F32;
  make_model::Vocabulary vocabulary = make_model::Vocabulary::SentencePiece;
  std::uint32_t parts = 1;
  std::uint32_t context = 256;
  bool is_mix = false;
  std::uint32_t ffn = 96;
  std::uint32_t layers = 2;
  std::uint32_t dense_layers = 0;
  std::uint32_t rope_dim = 0;
  bool has_optional = false;
  std::uint32_t latent_rank = 0;
  bool has_direct_queries = false;
  bool has_fused_heads = false;
  std::uint32_t window = 0;
  std::uint32_t window_head_dim = 0;
  std::uint32_t shared_layers = 0;
  std::uint32_t layer_embd = 0;
  bool tied = false;
  std::uint32_t state_size = 0;
  std::uint32_t state_groups = 0;
  std::uint32_t state_heads = 0;
};

inline constexpr Family kFamilies[] = {
    {.name = "llama"},
    {.name = "llama, rope_freqs", .rope = make_model::Rope::Divisors},
    {.name = "llama, linear", .rope = make_model::Rope::Linear},
    // Half of its matrices have rows too short for blocks of 256.
    {.name = "llama, q4_k_m", .type = TensorType::Q4_K, .is_mix = true, .ffn = 512},
    {.name = "mixtral", .with_experts = true},
    {.name = "mixtral, q8_0", .with_experts = true, .type = TensorType::Q8_0},
    {.name = "qwen2", .architecture = "qwen2", .vocabulary = make_model::Vocabulary::ByteLevel},
    {.name = "qwen2, yarn", .architecture = "qwen2", .rope = make_model::Rope::Yarn},
    {.name = "qwen3",
     .architecture = "qwen3",
     .head_dim = 32,
     .vocabulary = make_model::Vocabulary::ByteLevel},
    {.name = "qwen2moe",
     .architecture = "qwen2moe",
     .with_experts = true,
     .vocabulary = make_model::Vocabulary::ByteLevel},
    {.name = "qwen2moe, q4_0",
     .architecture = "qwen2moe",
     .with_experts = true,
     .type = TensorType::Q4_0},
    {.name = "qwen3moe, in parts",
     .architecture = "qwen3moe",
     .with_experts = true,
     .head_dim = 32,
     .vocabulary = make_model::Vocabulary::ByteLevel,
     .parts = 3},
    {.name = "glm4moe",
     .architecture = "glm4moe",
     .with_experts = true,
     .head_dim = 32,
     .layers = 3,
     .dense_layers = 1,
     .rope_dim = 16,
     .has_optional = true},
    {.name = "ernie4_5-moe, q4_0",
     .architecture = "ernie4_5-moe",
     .with_experts = true,
     .type = TensorType::Q4_0,
     .layers = 3,
     .dense_layers = 1,
     .has_optional = true},
    {.name = "glm4, iq4_nl",
     .architecture = "glm4",
     .type = TensorType::IQ4_NL,
     .rope_dim = 8,
     .has_optional = true},
    // Values are projections of their own, the last layers share them, and layers have embeddings.
    {.name = "gemma4",
     .architecture = "gemma4",
     .rope = make_model::Rope::Divisors,
     .head_dim = 32,
     .layers = 12,
     .has_optional = true,
     .window = 20,
     .window_head_dim = 16,
     .shared_layers = 6,
     .layer_embd = 32},
    // Values are the products of keys, and experts are beside the feed-forward.
    {.name = "gemma4, q8_0",
     .architecture = "gemma4",
     .with_experts = true,
     .head_dim = 32,
     .type = TensorType::Q8_0,
     .layers = 7,
     .window = 20,
     .window_head_dim = 64,
     .tied = true},
    {.name = "cohere2", .architecture = "cohere2", .layers = 5, .window = 20, .tied = true},
    {.name = "cohere2, q4_0",
     .architecture = "cohere2",
     .type = TensorType::Q4_0,
     .layers = 4,
     .window = 20,
     .tied = true},
    {.name = "minimax-m2, mxfp4",
     .architecture = "minimax-m2",
     .with_experts = true,
     .head_dim = 32,
     .type = TensorType::MXFP4,
     .rope_dim = 16,
     .has_optional = true},
    {.name = "deepseek2",
     .architecture = "deepseek2",
     .with_experts = true,
     .vocabulary = make_model::Vocabulary::ByteLevel,
     .layers = 3,
     .dense_layers = 1,
     .has_optional = true},
    {.name = "deepseek2, direct queries, yarn",
     .architecture = "deepseek2",
     .rope = make_model::Rope::Yarn,
     .head_dim = 24,
     .rope_dim = 4,
     .latent_rank = 40,
     .has_direct_queries = true},
    // As files from before April 2025.
    {.name = "deepseek2, fused heads, q8_0",
     .architecture = "deepseek2",
     .head_dim = 48,
     .type = TensorType::Q8_0,
     .rope_dim = 16,
     .latent_rank = 64,
     .has_fused_heads = true},
    // As wide as DeepSeek's, whose keys have kernels of their own on a card.
    {.name = "deepseek2, q8_0",
     .architecture = "deepseek2",
     .with_experts = true,
     .head_dim = 96,
     .type = TensorType::Q8_0,
     .rope_dim = 64,
     .latent_rank = 512},
};

/// Families whose layers keep a recurrent state, with attention in the fourth layer.
inline constexpr Family kRecurrentFamilies[] = {
    {.name = "qwen35",
     .architecture = "qwen35",
     .head_dim = 32,
     .layers = 5,
     .rope_dim = 8,
     .state_size = 24,
     .state_groups = 1,
     .state_heads = 3},
    {.name = "qwen35moe, q8_0",
     .architecture = "qwen35moe",
     .with_experts = true,
     .head_dim = 32,
     .type = TensorType::Q8_0,
     .layers = 4,
     .rope_dim = 8,
     .state_size = 32,
     .state_groups = 2,
     .state_heads = 6},
    // Its rows are grouped by key head, as in older files.
    {.name = "qwen3next",
     .architecture = "qwen3next",
     .with_experts = true,
     .head_dim = 16,
     .layers = 4,
     .state_size = 20,
     .state_groups = 2,
     .state_heads = 6},
    {.name = "lfm2", .architecture = "lfm2", .layers = 4},
    {.name = "lfm2moe, q4_0",
     .architecture = "lfm2moe",
     .with_experts = true,
     .type = TensorType::Q4_0,
     .layers = 5,
     .dense_layers = 2},
    {.name = "granitehybrid",
     .architecture = "granitehybrid",
     .with_experts = true,
     .layers = 4,
     .state_size = 10,
     .state_groups = 1,
     .state_heads = 5},
    {.name = "nemotron_h", .architecture = "nemotron_h", .layers = 6, .state_size = 18},
    {.name = "nemotron_h_moe, q8_0",
     .architecture = "nemotron_h_moe",
     .with_experts = true,
     .type = TensorType::Q8_0,
     .layers = 7,
     .state_size = 32,
     .state_groups = 2,
     .state_heads = 4},
};

/// What a family's model is made from.
make_model::ModelRequest request_for(const Family& family);

/// Returns the family with that name. Throws if there is none.
const Family& family_named(std::string_view name);

/// A family's model file, deleted by the destructor. Throws if it cannot be written.
class GeneratedModel {
 public:
  explicit GeneratedModel(const Family& family);

  /// The last part, if there are several.
  const std::string& path() const { return path_; }

 private:
  TemporaryDirectory folder_ = TemporaryDirectory::create("family").value();
  std::string path_;
};

}  // namespace leasehold::testing
