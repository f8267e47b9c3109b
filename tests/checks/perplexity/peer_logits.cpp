#include "tests/checks/perplexity/peer_logits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>

#include "tests/checks/perplexity/token_odds.hpp"

namespace leasehold {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "_logits_";
// limit for the tokens of a window, for the vocabulary and for the number of windows
constexpr std::int32_t kMostTokens = 1 << 20;
constexpr std::size_t kNumbers = 4;  // size of scale and lowest value in units of uint16

struct Head {
  std::array<char, kMagic.size()> magic;
  std::int32_t window;
  std::int32_t n_vocab;
  std::int32_t windows;
};
static_assert(sizeof(Head) == 20);

bool is_count(std::int32_t value, std::int32_t least) {
  return value >= least && value <= kMostTokens;
}

}  // namespace

Result<PeerLogits> PeerLogits::open(const std::string& path) {
  std::error_code failed;
  const std::uint64_t size_bytes = std::filesystem::file_size(path, failed);
  PeerLogits logits;
  logits.path_ = path;
  logits.file_.open(path, std::ios::binary);
  if (failed || !logits.file_)
    return fail(Errc::FileNotFound,
                fmt::format("{} cannot be read; llama-perplexity did not write it", path));
  TRY(logits.read_counts(size_bytes));
  TRY(logits.read_tokens());
  return logits;
}

Result<void> PeerLogits::read_counts(std::uint64_t size_bytes) {
  Head head{};
  file_.read(reinterpret_cast<char*>(&head), sizeof(head));
  if (!file_ || std::string_view(head.magic.data(), head.magic.size()) != kMagic)
    return fail(Errc::FileCorrupt,
                fmt::format("{} does not begin with {}; use a llama-perplexity that writes "
                            "--kl-divergence-base",
                            path_, kMagic));
  if (!is_count(head.window, 4) || !is_count(head.n_vocab, 2) || !is_count(head.windows, 1))
    return fail(Errc::FileCorrupt,
                fmt::format("{} has {} windows of {} tokens of a vocabulary of {}; use a longer "
                            "text or another llama-perplexity",
                            path_, head.windows, head.window, head.n_vocab));
  window_ = static_cast<std::uint32_t>(head.window);
  n_vocab_ = static_cast<std::uint32_t>(head.n_vocab);
  windows_ = static_cast<std::uint32_t>(head.windows);
  row_.resize(kNumbers + n_vocab_ + n_vocab_ % 2);
  const std::uint64_t rows = std::uint64_t{windows_} * positions();
  const std::uint64_t expected = sizeof(Head) +
                                 std::uint64_t{windows_} * window_ * sizeof(TokenId) +
                                 rows * row_.size() * sizeof(std::uint16_t);
  if (size_bytes == expected) return {};
  return fail(Errc::FileCorrupt,
              fmt::format("{} has {} bytes, and {} windows need {}; run llama-perplexity again",
                          path_, size_bytes, windows_, expected));
}

Result<void> PeerLogits::read_tokens() {
  static_assert(sizeof(TokenId) == sizeof(std::int32_t));
  tokens_.resize(std::size_t{windows_} * window_);
  file_.read(reinterpret_cast<char*>(tokens_.data()),
             static_cast<std::streamsize>(tokens_.size() * sizeof(TokenId)));
  if (!file_) return fail(Errc::FileCorrupt, path_ + " ends in its tokens; it was cut off");
  const auto foreign = std::ranges::find_if(tokens_, [this](TokenId token) {
    return token < 0 || static_cast<std::uint32_t>(token) >= n_vocab_;
  });
  if (foreign == tokens_.end()) return {};
  return fail(Errc::FileCorrupt, fmt::format("{} has the token {}, and a vocabulary of {}", path_,
                                             *foreign, n_vocab_));
}

Result<std::vector<double>> PeerLogits::next() {
  file_.read(reinterpret_cast<char*>(row_.data()),
             static_cast<std::streamsize>(row_.size() * sizeof(std::uint16_t)));
  if (!file_) return fail(Errc::FileCorrupt, path_ + " has no further position; it was cut off");
  CodedOdds coded;
  std::memcpy(&coded.scale, row_.data(), sizeof(float));
  std::memcpy(&coded.lowest, row_.data() + kNumbers / 2, sizeof(float));
  coded.codes.assign(row_.begin() + kNumbers, row_.begin() + kNumbers + n_vocab_);
  return decode_odds(coded);
}

}  // namespace leasehold
