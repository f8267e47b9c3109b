#include "worker/engine/propose/ngram_proposer.hpp"

#include <algorithm>
#include <bit>

#include "common/checksum.hpp"
#include "common/machine/confined.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kFewestEntries = 256;

}  // namespace

void NgramIndex::propose(std::span<const TokenId> text, std::uint32_t most,
                         std::vector<TokenId>& proposals) {
  if (!read(text) || text.size() < kRun) return;
  const std::span<const TokenId> run = text.last(kRun);
  const std::uint32_t from = last_behind(run);
  if (from == 0 || !std::ranges::equal(text.subspan(from - kRun, kRun), run)) return;
  const std::span<const TokenId> known = text.subspan(from);
  for (std::size_t i = 0; i < most; ++i)
    proposals.push_back(i < known.size() ? known[i] : proposals[i - known.size()]);
}

/// Adds tokens to the index. Returns true once it holds every run that is followed by a token.
bool NgramIndex::read(std::span<const TokenId> text) {
  if (behind_.size() < 2 * text.size()) {
    behind_.assign(std::max(kFewestEntries, std::bit_ceil(4 * text.size())), 0);
    n_read_ = 0;
  }
  const std::size_t begin = std::max(n_read_, kRun);
  const std::size_t end = std::min(text.size(), begin + kMaxNewTokens);
  for (std::size_t i = begin; i < end; ++i)
    last_behind(text.subspan(i - kRun, kRun)) = static_cast<std::uint32_t>(i);
  n_read_ = std::max(n_read_, end);
  return n_read_ >= text.size();
}

std::uint32_t& NgramIndex::last_behind(std::span<const TokenId> run) {
  const std::uint64_t hash = Checksum::of(run.data(), run.size_bytes());
  return behind_[(hash ^ hash >> 32) & (behind_.size() - 1)];
}

void NgramProposer::retain(Running running) {
  std::array<std::uint64_t, kMaxStepSequences> admissions{};
  for (const auto& sequence : running) admissions[sequence->stop_slot] = sequence->admission;
  for (std::size_t i = 0; i < texts_.size(); ++i)
    if (texts_[i].admission != 0 && texts_[i].admission != admissions[i]) texts_[i] = {};
}

void NgramProposer::propose(std::span<const PlannedRows> parts, std::uint32_t most,
                            const GateSet*) {
  for (const PlannedRows& part : parts) {
    Sequence& sequence = *part.sequence;
    Text& text = texts_[sequence.stop_slot];
    text.admission = sequence.admission;
    const auto proposed = catch_request_errors([&]() -> Result<void> {
      text.index.propose(sequence.tokens, most, sequence.proposals);
      return {};
    });
    if (!proposed) sequence.proposals.clear();
  }
}

}  // namespace leasehold
