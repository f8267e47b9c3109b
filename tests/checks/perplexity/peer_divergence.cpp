#include "tests/checks/perplexity/peer_divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "common/machine/text_file.hpp"
#include "kernels/model/kv_type.hpp"
#include "tests/checks/perplexity/peer_logits.hpp"
#include "tests/checks/perplexity/peer_programs.hpp"
#include "tests/checks/perplexity/token_odds.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {
namespace {

constexpr const char* kProgram = "llama-perplexity";
constexpr std::size_t kMaxTextBytes = 256 << 20;
constexpr std::uint32_t kComparedRows = 64;
// large enough for a position to compare in the second half
constexpr std::uint32_t kLeastWindow = 4;

/// Properties of a file that are known before the peer runs.
struct ComparedFile {
  const std::string& path;
  std::uint32_t n_vocab;
  std::optional<TokenId> bos;
};

Result<ComparedFile> check_file(const PeerDivergenceConfig& config, const std::string& path,
                                const std::string& text) {
  const GgufFile file = TRY(GgufFile::open(path));
  const ModelConfig model = TRY(read_config(file));
  if (config.window < kLeastWindow || config.window > model.n_context)
    return fail(Errc::BadRequest,
                fmt::format("a window of {} tokens does not fit {}; choose {} to {}", config.window,
                            path, kLeastWindow, model.n_context));
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  const std::size_t n_tokens = TRY(tokenizer.encode(text)).size();
  if (n_tokens < 2 * std::size_t{config.window})
    return fail(Errc::BadRequest,
                fmt::format("the text has {} tokens, and the peer needs two windows of {}; use a "
                            "longer text or --window {}",
                            n_tokens, config.window, n_tokens / 2));
  return ComparedFile{.path = path, .n_vocab = model.n_vocab, .bos = tokenizer.bos()};
}

/// Runs the peer on the model file. The peer writes its result to `path`.
Result<void> write_peer_logits(const PeerDivergenceConfig& config, const PeerPrograms& programs,
                               const std::string& model_path, const std::string& path) {
  const std::string kv_type(name(config.kv_type));
  std::vector<std::string> arguments = {"-m",
                                        model_path,
                                        "-f",
                                        config.text_path,
                                        "-c",
                                        std::to_string(config.window),
                                        "-t",
                                        std::to_string(config.threads),
                                        "-ngl",
                                        "0",
                                        "-ctk",
                                        kv_type,
                                        "-ctv",
                                        kv_type,
                                        "--kl-divergence-base",
                                        path};
  if (config.windows > 0)
    arguments.insert(arguments.end(), {"--chunks", std::to_string(config.windows)});
  TRY(programs.output_of(kProgram, std::move(arguments)));
  return {};
}

/// Runs the reference and our model in step with the positions of the peer's file.
class Comparison {
 public:
  static Result<Comparison> load(const PeerDivergenceConfig& config, const ComparedFile& subject,
                                 PeerLogits peer) {
    if (peer.window() != config.window || peer.n_vocab() != subject.n_vocab)
      return fail(
          Errc::FileCorrupt,
          fmt::format("{} wrote windows of {} tokens of a vocabulary of {}, not {} of {}; "
                      "use another llama.cpp",
                      kProgram, peer.window(), peer.n_vocab(), config.window, subject.n_vocab));
    LocalOptions options{.model_path = subject.path,
                         .threads = config.threads,
                         .kv_type = config.reference_kv_type,
                         .arithmetic = Arithmetic::F32,
                         .max_rows = kComparedRows,
                         .positions = config.window};
    auto reference = TRY(LocalModel::load(options));
    options.kv_type = config.kv_type;
    options.arithmetic = config.arithmetic;
    auto ours = TRY(LocalModel::load(std::move(options)));
    return Comparison(std::move(peer), subject.bos, std::move(reference), std::move(ours));
  }

  Result<FileDivergence> run() {
    for (std::uint32_t i = 0; i < peer_.windows(); ++i) TRY(compare_window(i));
    const auto n = static_cast<double>(sums_.positions);
    FileDivergence means = sums_;
    means.peer /= n;
    means.ours /= n;
    means.ours_exact /= n;
    const double difference = means.ours - means.peer;
    const double variance = squares_ / n - difference * difference;
    means.difference_error = std::sqrt(std::max(0.0, variance) / n);
    return means;
  }

 private:
  Comparison(PeerLogits peer, std::optional<TokenId> bos, std::unique_ptr<LocalModel> reference,
             std::unique_ptr<LocalModel> ours)
      : peer_(std::move(peer)),
        bos_(bos),
        reference_(std::move(reference)),
        ours_(std::move(ours)) {}

  Result<void> compare_window(std::uint32_t i) {
    const auto in_file = peer_.tokens(i);
    std::vector<TokenId> tokens(in_file.begin(), in_file.end());
    // The peer begins each window with BOS if it began the text with BOS.
    if (bos_ == peer_.tokens(0).front()) tokens.front() = *bos_;
    reference_->restart(0);
    ours_->restart(0);
    const std::uint32_t end = peer_.first_position() + peer_.positions();
    for (std::uint32_t at = 0; at < end; at += kComparedRows)
      TRY(compare_step(std::span(tokens).subspan(at, std::min(kComparedRows, end - at)), at));
    return {};
  }

  /// Compares the predictions for `tokens`, whose positions begin at `first`.
  Result<void> compare_step(std::span<const TokenId> tokens, std::uint32_t first) {
    std::vector<LocalRow> rows;
    for (const TokenId token : tokens)
      rows.push_back(
          {.token = token, .wants_logits = first + rows.size() >= peer_.first_position()});
    TRY(reference_->forward(rows));
    TRY(ours_->forward(rows));
    const auto n_compared = std::ranges::count_if(rows, &LocalRow::wants_logits);
    for (std::uint32_t i = 0; i < n_compared; ++i) TRY(compare_position(i));
    return {};
  }

  Result<void> compare_position(std::uint32_t i) {
    const std::vector<double> exact = log_probabilities(reference_->logits(i));
    const std::vector<double> reference = clip_odds(exact);
    const std::vector<double> ours = log_probabilities(ours_->logits(i));
    const double of_peer = divergence(reference, TRY(peer_.next()));
    const double of_ours = divergence(reference, TRY(decode_odds(encode_odds(ours))));
    sums_.peer += of_peer;
    sums_.ours += of_ours;
    squares_ += (of_ours - of_peer) * (of_ours - of_peer);
    sums_.ours_exact += divergence(exact, ours);
    ++sums_.positions;
    return {};
  }

  PeerLogits peer_;
  std::optional<TokenId> bos_;
  std::unique_ptr<LocalModel> reference_, ours_;
  FileDivergence sums_;
  double squares_ = 0;  // sum of squares of ours - peer
};

Result<FileDivergence> compare_file(const PeerDivergenceConfig& config,
                                    const PeerPrograms& programs, const std::string& path,
                                    const std::string& text) {
  const ComparedFile subject = TRY(check_file(config, path, text));
  const std::string logits_path = programs.scratch().file("logits");
  std::error_code ignored;
  std::filesystem::remove(logits_path, ignored);  // left by the previous file
  TRY(write_peer_logits(config, programs, path, logits_path));
  PeerLogits logits = TRY(PeerLogits::open(logits_path));
  Comparison comparison = TRY(Comparison::load(config, subject, std::move(logits)));
  return comparison.run();
}

}  // namespace

Result<PeerDivergence> measure_peer_divergence(const PeerDivergenceConfig& config,
                                               const FilesDone& progress) {
  const std::string text = TRY(read_text_file(config.text_path, kMaxTextBytes));
  const PeerPrograms programs = TRY(PeerPrograms::open(config.peer_dir, {kProgram}));
  PeerDivergence measured{.version = {}, .files = {}};
  measured.version = TRY(programs.version_of(kProgram));
  for (const std::string& path : config.model_paths) {
    if (progress) progress(measured.files.size(), config.model_paths.size());
    const auto compared = compare_file(config, programs, path, text);
    FileDivergence row = compared.value_or(FileDivergence{});
    if (!compared) row.error = compared.error();
    row.file = std::filesystem::path(path).stem();
    measured.files.push_back(std::move(row));
  }
  return measured;
}

}  // namespace leasehold
