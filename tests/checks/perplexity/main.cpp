/// leasehold-perplexity: measures how well a model predicts a text and how it differs from another,
/// or how llama.cpp and this engine differ from the same reference.
///
/// Exit codes: 0 done, 1 a check failed, 2 wrong usage, otherwise the code of the error
/// (common/errc.hpp).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "common/machine/text_file.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "kernels/model/kv_type.hpp"
#include "tests/checks/perplexity/peer_divergence.hpp"
#include "tests/checks/perplexity/perplexity.hpp"
#include "tools/cli/progress_line.hpp"

namespace {

using namespace leasehold;

constexpr std::size_t kMaxTextBytes = 256 << 20;

constexpr int kBeyondPeer = 1;

struct Options {
  PerplexityConfig measure;
  std::vector<std::string> model_paths;
  std::string text_path;
  std::string kv_type = "f16";
  std::string reference_kv_type;  // empty: f16, with a peer f32
  std::string backend = "cpu";
  std::string arithmetic;  // empty: f32, with a peer int8
  std::string peer_dir;    // empty: without a peer
  std::uint32_t windows = 0;
  bool check = false;
};

KvType reference_kv_type(const Options& options, KvType by_default) {
  return kv_type_from_name(options.reference_kv_type).value_or(by_default);
}

Arithmetic arithmetic(const Options& options, Arithmetic by_default) {
  if (options.arithmetic.empty()) return by_default;
  return options.arithmetic == "f32" ? Arithmetic::F32 : Arithmetic::Int8;
}

Result<TextScore> measure(Options& options) {
  options.measure.model_path = options.model_paths.front();
  options.measure.text = TRY(read_text_file(options.text_path, kMaxTextBytes));
  options.measure.kv_type = *kv_type_from_name(options.kv_type);
  options.measure.reference_kv_type = reference_kv_type(options, KvType::F16);
  options.measure.arithmetic = arithmetic(options, Arithmetic::F32);
  options.measure.reference_backend = options.backend == "reference";
  cli::ProgressLine line(std::chrono::steady_clock::now(), ::isatty(STDERR_FILENO) == 1);
  return measure_perplexity(options.measure, [&](std::uint64_t done, std::uint64_t total) {
    line.update(done, total, std::chrono::steady_clock::now());
  });
}

Result<int> print_score(Options& options) {
  const TextScore score = TRY(measure(options));
  std::cout << fmt::format("tokens      {}\nperplexity  {:.4f}\n", score.scored,
                           score.perplexity());
  if (!options.measure.reference_path.empty())
    std::cout << fmt::format("mean KL     {:.3e} nats\nworst KL    {:.3e} nats\n",
                             score.mean_divergence(), score.worst_divergence);
  return kExitOk;
}

Result<int> print_peer(const Options& options) {
  PeerDivergenceConfig config{.peer_dir = options.peer_dir,
                              .model_paths = options.model_paths,
                              .text_path = options.text_path,
                              .windows = options.windows,
                              .threads = options.measure.threads,
                              .kv_type = *kv_type_from_name(options.kv_type),
                              .reference_kv_type = reference_kv_type(options, KvType::F32),
                              .arithmetic = arithmetic(options, Arithmetic::Int8)};
  if (options.measure.window != 0) config.window = options.measure.window;
  cli::ProgressLine line(std::chrono::steady_clock::now(), ::isatty(STDERR_FILENO) == 1);
  const PeerDivergence measured =
      TRY(measure_peer_divergence(config, [&](std::size_t done, std::size_t total) {
        line.update(done, total, std::chrono::steady_clock::now());
      }));
  std::cout << divergence_text(config, measured);
  return options.check && !passes(measured) ? kBeyondPeer : kExitOk;
}

void declare_numbers(CLI::App& app, Options& options) {
  app.add_option("--threads", options.measure.threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--kv-type", options.kv_type, "Format of keys and values")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--reference-kv-type", options.reference_kv_type,
                 "Format of keys and values of the reference; default: f16, with --peer f32")
      ->check(CLI::IsMember(kv_type_names()));
  app.add_option("--arithmetic", options.arithmetic,
                 "Arithmetic of the model; that of the reference is f32; default: f32, with --peer "
                 "int8")
      ->check(CLI::IsMember({"f32", "int8"}));
}

void declare_peer(CLI::App& app, Options& options) {
  CLI::Option* const peer =
      app.add_option("--peer", options.peer_dir,
                     "Folder with llama.cpp's llama-perplexity; compare it and this engine with "
                     "this engine's f32 arithmetic on each file");
  peer->excludes("--reference");
  app.add_option("--windows", options.windows, "Windows of each file; default: the whole text")
      ->check(CLI::Range(1u, 1u << 20))
      ->needs(peer);
  app.add_flag("--check", options.check,
               "Exit with 1 if the mean KL of a file is more than 1.1 times the peer's, if that of "
               "all files is more than the peer's, or if a file could not be compared")
      ->needs(peer);
}

void declare(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "leasehold-perplexity " + std::string(version()));
  app.add_option("--model", options.model_paths, "GGUF model file; with --peer repeatable")
      ->required();
  app.add_option("--text", options.text_path, "Text to predict, UTF-8")->required();
  app.add_option("--reference", options.measure.reference_path,
                 "GGUF model with the same vocabulary, to compare every prediction with");
  app.add_option("--window", options.measure.window,
                 "Tokens per window; default: the model's context, at most 512; with --peer 128");
  app.add_option("--backend", options.backend, "Compute backend")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
  declare_numbers(app, options);
  declare_peer(app, options);
  app.callback([&options] {
    if (options.peer_dir.empty() && options.model_paths.size() > 1)
      throw CLI::ValidationError("--model", "several models need --peer");
    if (!options.peer_dir.empty() && options.backend != "cpu")
      throw CLI::ValidationError("--backend", "--peer needs the backend cpu");
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measure how well a model predicts a text", "leasehold-perplexity"};
  declare(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const Result<int> done = options.peer_dir.empty() ? print_score(options) : print_peer(options);
  return done ? finish_program(app.get_name(), *done) : print_error(app.get_name(), done.error());
}
