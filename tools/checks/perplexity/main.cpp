/// leasehold-perplexity: measures how well a model predicts a text and how it differs from another.
///
/// Exit codes: 0 done, 2 wrong usage, otherwise the code of the error (common/errc.hpp).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "common/command_line.hpp"
#include "common/text_file.hpp"
#include "common/version.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "tools/checks/perplexity/perplexity.hpp"
#include "tools/cli/progress_line.hpp"
#include "worker/model/kv_type.hpp"

namespace {

using namespace leasehold;

constexpr std::size_t kMaxTextBytes = 256 << 20;

struct Options {
  PerplexityConfig measure;
  std::string text_path;
  std::string kv_type = "f16";
  std::string reference_kv_type = "f16";
  std::string backend = "cpu";
  std::string arithmetic = "f32";
};

Result<TextScore> measure(Options& options) {
  options.measure.text = TRY(read_text_file(options.text_path, kMaxTextBytes));
  options.measure.kv_type = *kv_type_from_name(options.kv_type);
  options.measure.reference_kv_type = *kv_type_from_name(options.reference_kv_type);
  options.measure.arithmetic = options.arithmetic == "f32" ? Arithmetic::F32 : Arithmetic::Int8;
  options.measure.reference_backend = options.backend == "reference";
  cli::ProgressLine line(std::chrono::steady_clock::now(), ::isatty(STDERR_FILENO) == 1);
  return measure_perplexity(options.measure, [&](std::uint64_t done, std::uint64_t total) {
    line.update(done, total, std::chrono::steady_clock::now());
  });
}

void declare(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "leasehold-perplexity " + std::string(version()));
  app.add_option("--model", options.measure.model_path, "GGUF model file")->required();
  app.add_option("--text", options.text_path, "Text to predict, UTF-8")->required();
  app.add_option("--reference", options.measure.reference_path,
                 "GGUF model with the same vocabulary, to compare every prediction with");
  app.add_option("--window", options.measure.window,
                 "Tokens per window; default: the model's context, at most 512");
  app.add_option("--threads", options.measure.threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--kv-type", options.kv_type, "Format of keys and values")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--reference-kv-type", options.reference_kv_type,
                 "Format of keys and values of --reference")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--arithmetic", options.arithmetic,
                 "Arithmetic of the model; that of --reference is f32")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  app.add_option("--backend", options.backend, "Compute backend")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measure how well a model predicts a text", "leasehold-perplexity"};
  declare(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const Result<TextScore> score = measure(options);
  if (!score) return print_error(app.get_name(), score.error());
  std::cout << fmt::format("tokens      {}\nperplexity  {:.4f}\n", score->scored,
                           score->perplexity());
  if (!options.measure.reference_path.empty())
    std::cout << fmt::format("mean KL     {:.3e} nats\nworst KL    {:.3e} nats\n",
                             score->mean_divergence(), score->worst_divergence);
  return finish_program(app.get_name(), kExitOk);
}
