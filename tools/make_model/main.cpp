/// make_model: writes a GGUF model of a named shape with seeded weights, or an adapter for one.
///
/// Exit codes: 0 written, 2 wrong usage, otherwise the code of the error (common/errc.hpp).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <string>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "tools/cli/progress_line.hpp"
#include "tools/make_model/adapter.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::make_model {
namespace {

constexpr const char* kProgram = "make_model";

/// The command line. A size that is not given keeps the value of the shape.
struct Options {
  std::string shape = "tiny";
  std::string type = "q8_0";
  std::string architecture = "llama";
  std::string out;
  std::uint64_t seed = 1;
  std::string rope = "plain";
  std::uint32_t parts = 1;
  std::string vocabulary = "sentencepiece";
  std::optional<std::uint32_t> layers, embd, heads, kv_heads, head_dim, ffn, vocab, context;
  std::optional<std::uint32_t> experts, experts_used, expert_ffn, window;
  std::optional<std::uint32_t> dense_layers, rope_dim, latent_rank, query_rank;
  LayerShape layer_shape;
  StateSizes state;
  std::optional<bool> tied;
  bool has_optional = false;
  bool embeds = false;
  bool has_fused_heads = false;
  bool joins_heads = false;
  std::string adapter;
  std::string adapter_type = "f16";
  float alpha = AdapterRequest{}.alpha;
  bool is_peft = false;
};

void declare_adapter(CLI::App& app, Options& options) {
  const std::string group = "Adapters (the model's other options say what it is for)";
  app.add_option("--adapter", options.adapter,
                 "Write a LoRA adapter with these ranks: 16 for every matrix, or q=8,v=8")
      ->group(group);
  app.add_option("--adapter-type", options.adapter_type,
                 "Type of its matrices: f32, f16, bf16 or q8_0")
      ->capture_default_str()
      ->group(group);
  app.add_option("--alpha", options.alpha, "Alpha; alpha / rank scales the products")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--peft", options.is_peft, "Write the folder of PEFT instead of a GGUF file")
      ->group(group);
}

void declare(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "make_model " + std::string(version()));
  app.add_option("--shape", options.shape, "Shape: tiny, demo, 0.5b, 1b, 7b or custom")
      ->capture_default_str();
  app.add_option("--type", options.type,
                 "Weight type: f32, f16, q8_0, q4_0, q5_0, q4_k, q6_k, iq4_nl, iq4_xs, mxfp4 or "
                 "q4_k_m")
      ->capture_default_str();
  app.add_option("--arch", options.architecture,
                 "Architecture, one of those that a worker loads: " + architecture_names())
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed; the same seed and arguments give the same bytes")
      ->capture_default_str();
  app.add_option("--out", options.out, "File to write")->required();
  app.add_option("--rope", options.rope, "Position scaling: plain, linear, yarn or divisors")
      ->capture_default_str();
  app.add_option("--vocabulary", options.vocabulary, "Vocabulary: sentencepiece or byte-level")
      ->capture_default_str();
  app.add_option("--parts", options.parts, "Number of files, named NAME-00001-of-0000N.gguf")
      ->capture_default_str();
  app.add_flag("--optional", options.has_optional,
               "Also write tensors that the architecture may lack, such as biases");
  app.add_flag("--embedding", options.embeds,
               "Write an embedding model: pooling of the last position, and an end token after "
               "each text");
  app.add_flag("--fused-heads", options.has_fused_heads,
               "Write the keys and values of latent attention as one tensor, as older files do");
  app.add_flag(
      "--fuse-qkv", options.joins_heads,
      "Write the queries, keys and values of a layer as one tensor where their types agree");
  const std::string group = "Sizes (required for custom; otherwise they change the shape)";
  app.add_option("--layers", options.layers, "Number of layers")->group(group);
  app.add_option("--embd", options.embd, "Embedding width")->group(group);
  app.add_option("--heads", options.heads, "Attention heads")->group(group);
  app.add_option("--kv-heads", options.kv_heads, "Key and value heads")->group(group);
  app.add_option("--head-dim", options.head_dim,
                 "Width of one head; default: embedding width / heads")
      ->group(group);
  app.add_option("--ffn", options.ffn, "Feed-forward width")->group(group);
  app.add_option("--experts", options.experts, "Experts per layer; 0: none")->group(group);
  app.add_option("--experts-used", options.experts_used, "Experts used per token")->group(group);
  app.add_option("--expert-ffn", options.expert_ffn, "Feed-forward width of one expert")
      ->group(group);
  app.add_option("--dense-layers", options.dense_layers, "First layers, which have no experts")
      ->group(group);
  app.add_option("--rope-dim", options.rope_dim,
                 "Rotated elements of a head; default: the whole head, or half of it with latent "
                 "attention")
      ->group(group);
  app.add_option("--latent-rank", options.latent_rank,
                 "Cached elements of latent attention without the rotated ones; default: 4 times "
                 "the width of a head")
      ->group(group);
  app.add_option("--query-rank", options.query_rank,
                 "Rank of the queries of latent attention; 0: none; default: embedding width / 2")
      ->group(group);
  app.add_option("--state-size", options.state.key_size,
                 "Width of a key of a recurrent state; default: head width")
      ->group(group);
  app.add_option("--state-groups", options.state.groups,
                 "Key heads of a recurrent state; default: key and value heads")
      ->group(group);
  app.add_option("--state-heads", options.state.heads,
                 "Value heads of a recurrent state; default: attention heads")
      ->group(group);
  app.add_option("--vocab", options.vocab, "Vocabulary size")->group(group);
  app.add_option("--context", options.context, "Context length in tokens")->group(group);
  app.add_option("--window", options.window, "Sliding window of attention in tokens")->group(group);
  app.add_option("--window-head-dim", options.layer_shape.window_head_width,
                 "Width of one head in layers with a window; default: that of the others")
      ->group(group);
  app.add_option("--shared-layers", options.layer_shape.shared_layers,
                 "Last layers, which read the keys and values of layers before them")
      ->group(group);
  app.add_option("--layer-embd", options.layer_shape.layer_embd,
                 "Width of the embeddings of each layer")
      ->group(group);
  app.add_flag("--tied,!--untied", options.tied,
               "Use the embedding table as the output layer, or do not; default: that of the shape")
      ->group(group);
}

ModelShape with_changes(ModelShape shape, const Options& options) {
  shape.layers = options.layers.value_or(shape.layers);
  shape.embd = options.embd.value_or(shape.embd);
  shape.heads = options.heads.value_or(shape.heads);
  shape.kv_heads = options.kv_heads.value_or(shape.kv_heads);
  shape.ffn = options.ffn.value_or(shape.ffn);
  shape.head_width = options.head_dim.value_or(shape.head_width);
  shape.experts = options.experts.value_or(shape.experts);
  shape.experts_used = options.experts_used.value_or(shape.experts_used);
  shape.expert_ffn = options.expert_ffn.value_or(shape.expert_ffn);
  shape.dense_layers = options.dense_layers.value_or(shape.dense_layers);
  shape.rope_width = options.rope_dim.value_or(shape.rope_width);
  shape.vocab = options.vocab.value_or(shape.vocab);
  shape.context = options.context.value_or(shape.context);
  shape.window = options.window.value_or(shape.window);
  shape.tied = options.tied.value_or(shape.tied);
  return shape;
}

Result<ModelRequest> request_from(const Options& options) {
  ModelRequest request;
  request.architecture = TRY(architecture_from(options.architecture));
  request.shape = with_changes(TRY(named_shape(options.shape)), options);
  request.latent_shape = {.rank = options.latent_rank.value_or(0),
                          .query_rank = options.query_rank.value_or(0),
                          .has_direct_queries = options.query_rank == 0u,
                          .has_fused_heads = options.has_fused_heads};
  request.layer_shape = options.layer_shape;
  request.state = options.state;
  const WeightType weight = TRY(weight_type_from(options.type));
  request.type = weight.type;
  request.is_mix = weight.is_mix;
  request.seed = options.seed;
  request.rope = TRY(rope_from(options.rope));
  request.parts = options.parts;
  request.joins_heads = options.joins_heads;
  request.has_optional = options.has_optional;
  request.vocabulary = TRY(vocabulary_from(options.vocabulary));
  request.embeds = options.embeds;
  return request;
}

Result<std::uint64_t> write_adapter_for(const ModelRequest& model, const Options& options) {
  const TargetRanks ranks = TRY(ranks_from(options.adapter));
  const TensorType type = TRY(adapter_type_from(options.adapter_type));
  return write_adapter(
      AdapterRequest{.model = model,
                     .ranks = ranks,
                     .type = type,
                     .alpha = options.alpha,
                     .seed = options.seed,
                     .form = options.is_peft ? AdapterForm::Peft : AdapterForm::Gguf},
      options.out);
}

Result<std::uint64_t> write(const Options& options) {
  const ModelRequest request = TRY(request_from(options));
  if (!options.adapter.empty()) return write_adapter_for(request, options);
  cli::ProgressLine progress(std::chrono::steady_clock::now(), ::isatty(STDERR_FILENO) == 1);
  return write_model(request, options.out, [&](std::uint64_t done, std::uint64_t total) {
    progress.update(done, total, std::chrono::steady_clock::now());
  });
}

int report(const Options& options, const Result<std::uint64_t>& written) {
  if (written) {
    std::cout << fmt::format("{} {} bytes\n", options.out, *written);
    return finish_program(kProgram, kExitOk);
  }
  const Error& error = written.error();
  return error.code == Errc::BadRequest ? print_error(kProgram, Usage{.text = error.detail})
                                        : print_error(kProgram, error);
}

int run(int argc, char** argv) {
  CLI::App app("Write a GGUF model of a named shape with seeded weights, or an adapter for one",
               kProgram);
  Options options;
  declare(app, options);
  declare_adapter(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  // A write beyond the file size limit then fails and the partial file is removed; the signal would
  // leave the file.
  std::signal(SIGXFSZ, SIG_IGN);
  return report(options, write(options));
}

}  // namespace
}  // namespace leasehold::make_model

int main(int argc, char** argv) {
  return leasehold::make_model::run(argc, argv);
}
