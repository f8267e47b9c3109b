/// make_model: writes a GGUF model of a named shape with seeded weights.
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

#include "common/command_line.hpp"
#include "common/version.hpp"
#include "tools/cli/progress_line.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::make_model {
namespace {

constexpr const char* kProgram = "make_model";

/// The command line as typed; a size that is not given keeps what the shape says.
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
  bool tied = false;
};

void declare(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "make_model " + std::string(version()));
  app.add_option("--shape", options.shape, "tiny, demo, 0.5b, 1b, 7b or custom")
      ->capture_default_str();
  app.add_option("--type", options.type, "f32, f16, q8_0 or q4_0")->capture_default_str();
  app.add_option("--arch", options.architecture, "llama, qwen2, qwen3, qwen2moe or qwen3moe")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "same seed and arguments, same bytes")
      ->capture_default_str();
  app.add_option("--out", options.out, "file to write")->required();
  app.add_option("--rope", options.rope, "plain, linear, yarn or divisors")->capture_default_str();
  app.add_option("--vocabulary", options.vocabulary, "sentencepiece or byte-level")
      ->capture_default_str();
  app.add_option("--parts", options.parts, "files to write: NAME-00001-of-0000N.gguf …")
      ->capture_default_str();
  const std::string group = "Sizes (all of them for custom; elsewhere they change the shape)";
  app.add_option("--layers", options.layers)->group(group);
  app.add_option("--embd", options.embd)->group(group);
  app.add_option("--heads", options.heads)->group(group);
  app.add_option("--kv-heads", options.kv_heads)->group(group);
  app.add_option("--head-dim", options.head_dim)->group(group);
  app.add_option("--ffn", options.ffn)->group(group);
  app.add_option("--experts", options.experts)->group(group);
  app.add_option("--experts-used", options.experts_used)->group(group);
  app.add_option("--expert-ffn", options.expert_ffn)->group(group);
  app.add_option("--vocab", options.vocab)->group(group);
  app.add_option("--context", options.context)->group(group);
  app.add_option("--window", options.window, "how far back attention looks, as in Mistral")
      ->group(group);
  app.add_flag("--tied", options.tied, "no output.weight: the embedding table serves as output")
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
  shape.vocab = options.vocab.value_or(shape.vocab);
  shape.context = options.context.value_or(shape.context);
  shape.window = options.window.value_or(shape.window);
  shape.tied = shape.tied || options.tied;
  return shape;
}

Result<ModelRequest> request_from(const Options& options) {
  ModelRequest request;
  request.architecture = TRY(architecture_from(options.architecture));
  request.shape = with_changes(TRY(named_shape(options.shape)), options);
  request.type = TRY(weight_type_from(options.type));
  request.seed = options.seed;
  request.rope = TRY(rope_from(options.rope));
  request.parts = options.parts;
  request.vocabulary = TRY(vocabulary_from(options.vocabulary));
  return request;
}

Result<std::uint64_t> write(const Options& options) {
  const ModelRequest request = TRY(request_from(options));
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
  CLI::App app("Writes a GGUF model of a named shape with seeded weights.", kProgram);
  Options options;
  declare(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  // A file size limit then is a failed write, which cleans up, and not a signal, which would not.
  std::signal(SIGXFSZ, SIG_IGN);
  return report(options, write(options));
}

}  // namespace
}  // namespace leasehold::make_model

int main(int argc, char** argv) {
  return leasehold::make_model::run(argc, argv);
}
