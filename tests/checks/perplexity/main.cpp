/// leasehold-perplexity: measures how well a model predicts a text and how it differs from another,
/// or how predictions that llama.cpp wrote and ours differ from the same reference.
///
/// Exit codes: 0 done, 2 wrong usage, otherwise the code of the error (common/errc.hpp).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "common/machine/text_file.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "kernels/model/kv_type.hpp"
#include "tests/checks/perplexity/peer_divergence.hpp"
#include "tests/checks/perplexity/token_odds.hpp"
#include "tools/cli/progress_line.hpp"

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
  std::string peer_logits_path;
  bool check_window = false;
};

Result<void> complete(Options& options) {
  options.measure.text = TRY(read_text_file(options.text_path, kMaxTextBytes));
  options.measure.kv_type = *kv_type_from_name(options.kv_type);
  options.measure.reference_kv_type = *kv_type_from_name(options.reference_kv_type);
  options.measure.arithmetic = options.arithmetic == "f32" ? Arithmetic::F32 : Arithmetic::Int8;
  options.measure.reference_backend = options.backend == "reference";
  return {};
}

Result<int> print_score(const Options& options) {
  cli::ProgressLine line(std::chrono::steady_clock::now(), ::isatty(STDERR_FILENO) == 1);
  const TextScore score =
      TRY(measure_perplexity(options.measure, [&](std::uint64_t done, std::uint64_t total) {
        line.update(done, total, std::chrono::steady_clock::now());
      }));
  std::cout << fmt::format("tokens      {}\nperplexity  {:.4f}\n", score.scored,
                           score.perplexity());
  if (!options.measure.reference_path.empty())
    std::cout << fmt::format("mean KL     {:.3e} nats\nworst KL    {:.3e} nats\n",
                             score.mean_divergence(), score.worst_divergence);
  return kExitOk;
}

/// Prints what the driver of llama-perplexity needs, as JSON.
Result<int> print_divergence(const Options& options) {
  const FileDivergence file = TRY(compare_with_peer(options.measure, options.peer_logits_path));
  const nlohmann::json json{{"positions", file.positions},
                            {"peer", file.peer},
                            {"ours", file.ours},
                            {"ours_exact", file.ours_exact},
                            {"difference_error", file.difference_error},
                            {"code_floor", kCodeFloorNats}};
  std::cout << json.dump() << '\n';
  return kExitOk;
}

Result<int> run(Options& options) {
  TRY(complete(options));
  if (!options.peer_logits_path.empty()) return print_divergence(options);
  if (!options.check_window) return print_score(options);
  TRY(check_peer_window(options.measure));
  return kExitOk;
}

void declare(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "leasehold-perplexity " + std::string(version()));
  app.add_option("--model", options.measure.model_path, "GGUF model file")->required();
  app.add_option("--text", options.text_path, "Text to predict, UTF-8")->required();
  CLI::Option* const reference =
      app.add_option("--reference", options.measure.reference_path,
                     "GGUF model with the same vocabulary, to compare every prediction with");
  app.add_option("--adapter", options.measure.adapter_path,
                 "LoRA adapter of the model: a GGUF file or a folder of PEFT")
      ->excludes(reference);
  CLI::Option* const window =
      app.add_option("--window", options.measure.window,
                     "Tokens per window; default: the model's context, at most 512");
  CLI::Option* const backend = app.add_option("--backend", options.backend, "Compute backend")
                                   ->check(CLI::IsMember({"cpu", "reference"}))
                                   ->capture_default_str();
  app.add_option("--threads", options.measure.threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--kv-type", options.kv_type, "Format of keys and values")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--reference-kv-type", options.reference_kv_type,
                 "Format of keys and values of the reference")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--arithmetic", options.arithmetic,
                 "Arithmetic of the model; that of the reference is f32")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  CLI::Option* const logits =
      app.add_option("--peer-logits", options.peer_logits_path,
                     "File of llama-perplexity; compare it and the model with the model in f32");
  CLI::Option* const check =
      app.add_flag("--check-window", options.check_window,
                   "Only check that llama-perplexity accepts the window for this model and text");
  for (CLI::Option* const option : {logits, check})
    option->excludes(reference)->excludes(backend)->needs(window);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measure how well a model predicts a text", "leasehold-perplexity"};
  declare(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const Result<int> done = run(options);
  return done ? finish_program(app.get_name(), *done) : print_error(app.get_name(), done.error());
}
