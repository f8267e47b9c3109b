#include "tests/checks/perplexity/peer_divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/model/gguf/gguf.hpp"
#include "tests/checks/perplexity/peer_logits.hpp"
#include "tests/checks/perplexity/token_odds.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {
namespace {

constexpr const char* kProgram = "llama-perplexity";
constexpr std::uint32_t kComparedRows = 64;
// large enough for a position to compare in the second half
constexpr std::uint32_t kLeastWindow = 4;

/// The context that the peer gives a window: a multiple of 256. It decides about the divisors of a
/// rotation that has two sets (longrope).
constexpr std::uint32_t context_of(std::uint32_t window) {
  constexpr std::uint32_t kMultiple = 256;
  return (window + kMultiple - 1) / kMultiple * kMultiple;
}

/// Properties of a file that are known before the peer runs.
struct ComparedFile {
  std::uint32_t n_vocab;
  std::optional<TokenId> bos;
};

Result<ComparedFile> check_file(const PerplexityConfig& config) {
  const GgufFile file = TRY(GgufFile::open(config.model_path));
  const ModelConfig model = TRY(read_config(file));
  if (config.window < kLeastWindow || config.window > model.n_context)
    return fail(Errc::BadRequest,
                fmt::format("a window of {} tokens does not fit {}; choose {} to {}", config.window,
                            config.model_path, kLeastWindow, model.n_context));
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  const std::size_t n_tokens = TRY(tokenizer.encode(config.text)).size();
  if (n_tokens < 2 * std::size_t{config.window})
    return fail(Errc::BadRequest,
                fmt::format("the text has {} tokens, and the peer needs two windows of {}; use a "
                            "longer text or --window {}",
                            n_tokens, config.window, n_tokens / 2));
  return ComparedFile{.n_vocab = model.n_vocab, .bos = tokenizer.bos()};
}

/// Runs the reference and our model in step with the positions of the peer's file.
class Comparison {
 public:
  static Result<Comparison> load(const PerplexityConfig& config, const ComparedFile& subject,
                                 PeerLogits peer) {
    if (peer.window() != config.window || peer.n_vocab() != subject.n_vocab)
      return fail(
          Errc::FileCorrupt,
          fmt::format("{} wrote windows of {} tokens of a vocabulary of {}, not {} of {}; "
                      "use another llama.cpp",
                      kProgram, peer.window(), peer.n_vocab(), config.window, subject.n_vocab));
    LocalOptions options{.model_path = config.model_path,
                         .threads = config.threads,
                         .kv_type = config.reference_kv_type,
                         .arithmetic = Arithmetic::F32,
                         .max_rows = kComparedRows,
                         .positions = config.window,
                         .modify_config = [window = config.window](ModelConfig& model) {
                           model.n_context = std::min(model.n_context, context_of(window));
                         }};
    auto reference = TRY(load_adapted(config, options));
    options.kv_type = config.kv_type;
    options.arithmetic = config.arithmetic;
    auto ours = TRY(load_adapted(config, std::move(options)));
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

}  // namespace

Result<void> check_peer_window(const PerplexityConfig& config) {
  TRY(check_file(config));
  return {};
}

Result<FileDivergence> compare_with_peer(const PerplexityConfig& config,
                                         const std::string& logits_path) {
  const ComparedFile subject = TRY(check_file(config));
  PeerLogits logits = TRY(PeerLogits::open(logits_path));
  Comparison comparison = TRY(Comparison::load(config, subject, std::move(logits)));
  return comparison.run();
}

}  // namespace leasehold
