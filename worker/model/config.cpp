#include "worker/model/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "worker/model/architecture.hpp"
#include "worker/model/utf8.hpp"

namespace leasehold {
namespace {

// Far above any model of these architectures, far below where a product of two overflows 32 bits
// or a corrupt number asks for absurd memory.
constexpr std::uint32_t kMaxLayers = 1024;
constexpr std::uint32_t kMaxWidth = 1u << 20;
constexpr std::uint32_t kMaxHeads = 1024;
constexpr std::uint32_t kMaxHeadDim = 1024;
constexpr std::uint32_t kMaxVocab = 1u << 22;
constexpr std::uint32_t kMaxContext = 1u << 24;
constexpr std::size_t kMaxNameBytes = 256;

/// Reads the keys of one file's architecture: `keys.count("block_count", …)`.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}

  std::string key(std::string_view suffix) const {
    return fmt::format("{}.{}", architecture_, suffix);
  }
  bool has(std::string_view suffix) const { return file_.has(key(suffix)); }

  /// 1 … max.
  Result<std::uint32_t> count(std::string_view suffix, std::uint32_t max) const {
    const auto number = TRY(file_.get<std::uint32_t>(key(suffix)));
    if (number == 0) return corrupt("{} is 0", key(suffix));
    if (number > max)
      return unsupported("{} is {}; this build is made for {} at most", key(suffix), number, max);
    return number;
  }

  /// The same, with `fallback` where the key is not there.
  Result<std::uint32_t> count_or(std::string_view suffix, std::uint32_t max,
                                 std::uint32_t fallback) const {
    if (!has(suffix)) return fallback;
    return count(suffix, max);
  }

  template <class T>
  Result<T> get_or(std::string_view suffix, T fallback) const {
    return file_.get_or<T>(key(suffix), std::move(fallback));
  }

  /// Strictly between the two.
  Result<float> between(std::string_view suffix, float low, float high, float value) const {
    if (value > low && value < high) return value;
    return corrupt("{} is {}, not between {} and {}", key(suffix), value, low, high);
  }

  template <class... Values>
  std::unexpected<Error> corrupt(fmt::format_string<Values...> text, Values&&... values) const {
    return refuse(Errc::FileCorrupt, fmt::format(text, std::forward<Values>(values)...));
  }
  template <class... Values>
  std::unexpected<Error> unsupported(fmt::format_string<Values...> text, Values&&... values) const {
    return refuse(Errc::UnsupportedModel, fmt::format(text, std::forward<Values>(values)...));
  }

 private:
  std::unexpected<Error> refuse(Errc code, const std::string& text) const {
    return fail(code, fmt::format("{}: {}", file_.path(), text));
  }

  const GgufFile& file_;
  std::string architecture_;
};

/// The name goes to clients and logs: text only.
Result<std::string> read_name(const GgufFile& file, std::string_view architecture) {
  std::string name = TRY(file.get_or<std::string>("general.name", std::string(architecture)));
  const bool has_controls =
      std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (name.size() <= kMaxNameBytes && is_utf8(name) && !has_controls) return name;
  return fail(Errc::FileCorrupt,
              fmt::format("{}: general.name is not UTF-8 text of at most {} bytes", file.path(),
                          kMaxNameBytes));
}

Result<void> read_attention(const ArchitectureKeys& keys, ModelConfig& config) {
  config.n_heads = TRY(keys.count("attention.head_count", kMaxHeads));
  config.n_kv_heads = TRY(keys.count_or("attention.head_count_kv", kMaxHeads, config.n_heads));
  if (config.n_heads % config.n_kv_heads != 0)
    return keys.corrupt("{} heads cannot share {} kv heads evenly", config.n_heads,
                        config.n_kv_heads);
  const bool has_head_dim = keys.has("attention.key_length");
  if (!has_head_dim && config.n_embd % config.n_heads != 0)
    return keys.corrupt("a width of {} does not divide into {} heads", config.n_embd,
                        config.n_heads);
  const std::uint32_t even_share = config.n_embd / config.n_heads;
  config.head_dim = TRY(keys.count_or("attention.key_length", kMaxHeadDim, even_share));
  if (config.head_dim > kMaxHeadDim)
    return keys.unsupported("heads are {} wide; this build is made for {} at most", config.head_dim,
                            kMaxHeadDim);
  const auto value_dim = TRY(keys.count_or("attention.value_length", kMaxHeadDim, config.head_dim));
  if (value_dim != config.head_dim)
    return keys.unsupported("keys are {} wide and values {}; this build needs them equal",
                            config.head_dim, value_dim);
  return {};
}

/// Long-context variants rotate by other angles; computing them unscaled would be silently wrong.
Result<void> refuse_scaled_rope(const ArchitectureKeys& keys) {
  const auto type = TRY(keys.get_or<std::string>("rope.scaling.type", "none"));
  if (type != "none")
    return keys.unsupported("{} is {}", keys.key("rope.scaling.type"), shown(type));
  if (keys.has("rope.scaling.type")) return {};  // the factor of "none" means nothing
  for (const std::string_view suffix : {"rope.scaling.factor", "rope.scale_linear"}) {
    const float factor = TRY(keys.get_or<float>(suffix, 1.0f));
    if (factor != 0.0f && factor != 1.0f)
      return keys.unsupported("{} is {}; this build does not scale positions", keys.key(suffix),
                              factor);
  }
  return {};
}

Result<void> read_rope(const ArchitectureKeys& keys, ModelConfig& config) {
  TRY(refuse_scaled_rope(keys));
  config.rope_dim = TRY(keys.count_or("rope.dimension_count", kMaxHeadDim, config.head_dim));
  if (config.rope_dim % 2 != 0 || config.rope_dim > config.head_dim)
    return keys.corrupt("{} is {}; an even number up to the head's {} is needed",
                        keys.key("rope.dimension_count"), config.rope_dim, config.head_dim);
  const float base = TRY(keys.get_or<float>("rope.freq_base", 10000.0f));
  config.rope_base = TRY(keys.between("rope.freq_base", 1.0f, 1e12f, base));
  return {};
}

Result<std::uint32_t> read_vocabulary_size(const GgufFile& file, const ArchitectureKeys& keys) {
  const GgufTensor* embedding = file.find("token_embd.weight");
  if (embedding == nullptr)
    return fail(Errc::MissingWeight,
                fmt::format("{}: has no tensor token_embd.weight", file.path()));
  const std::uint64_t n_rows = embedding->rows();
  const std::uint64_t n_tokens = TRY(file.length("tokenizer.ggml.tokens"));
  if (n_rows != n_tokens)
    return keys.corrupt("token_embd.weight has {} rows for {} tokens", n_rows, n_tokens);
  if (n_rows > kMaxVocab)
    return keys.unsupported("{} tokens; this build is made for {} at most", n_rows, kMaxVocab);
  const auto n_vocab = static_cast<std::uint32_t>(n_rows);
  if (TRY(keys.get_or<std::uint32_t>("vocab_size", n_vocab)) != n_vocab)
    return keys.corrupt("{} is not {}, the rows of token_embd.weight", keys.key("vocab_size"),
                        n_vocab);
  return n_vocab;
}

}  // namespace

Result<ModelConfig> read_config(const GgufFile& file) {
  ModelConfig config{};
  config.architecture = TRY(file.get<std::string>("general.architecture"));
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr)
    return fail(Errc::UnsupportedModel,
                fmt::format("{}: the architecture is \"{}\"; this build computes llama",
                            file.path(), shown(config.architecture)));
  const ArchitectureKeys keys(file, architecture->name);
  config.name = TRY(read_name(file, architecture->name));
  if (TRY(keys.get_or<std::uint32_t>("expert_count", 0)) != 0)
    return keys.unsupported("is a mixture of experts");
  config.n_layers = TRY(keys.count("block_count", kMaxLayers));
  config.n_embd = TRY(keys.count("embedding_length", kMaxWidth));
  config.n_ff = TRY(keys.count("feed_forward_length", kMaxWidth));
  config.n_context = TRY(keys.count("context_length", kMaxContext));
  TRY(read_attention(keys, config));
  TRY(read_rope(keys, config));
  config.rope_style = architecture->rope_style;
  const auto epsilon = TRY(file.get<float>(keys.key("attention.layer_norm_rms_epsilon")));
  config.rms_epsilon = TRY(keys.between("attention.layer_norm_rms_epsilon", 0.0f, 1.0f, epsilon));
  config.n_vocab = TRY(read_vocabulary_size(file, keys));
  config.tied_embeddings = file.find("output.weight") == nullptr;
  return config;
}

}  // namespace leasehold
