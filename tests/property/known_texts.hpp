/// Proposers that know the texts, and propose as many right tokens as a test wants.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "common/random.hpp"
#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {

inline constexpr std::uint32_t kProposed = 5;

using Texts = std::vector<std::vector<TokenId>>;

/// Proposes for one text after the other.
class TextProposer : public Proposer {
 public:
  void retain(Running) override {}
  void propose(std::span<const PlannedRows> parts, std::uint32_t most, const GateSet*) override {
    for (const PlannedRows& part : parts)
      propose(part.sequence->tokens, most, part.sequence->proposals);
  }
  virtual void propose(std::span<const TokenId> text, std::uint32_t most,
                       std::vector<TokenId>& proposals) = 0;
};

/// Proposes from texts that are known: first `right` tokens, then wrong ones.
class KnownTexts final : public TextProposer {
 public:
  using TextProposer::propose;
  using Right = std::function<std::size_t(std::size_t text_size)>;
  KnownTexts(const Texts& texts, Right right) : texts_(&texts), right_(std::move(right)) {}

  void propose(std::span<const TokenId> text, std::uint32_t most,
               std::vector<TokenId>& proposals) override {
    const auto begins = [&](const std::vector<TokenId>& known) {
      return known.size() > text.size() && std::equal(text.begin(), text.end(), known.begin());
    };
    const auto known = std::ranges::find_if(*texts_, begins);
    for (std::size_t i = 0; i < most; ++i) {
      const std::size_t at = text.size() + i;
      const TokenId next = known != texts_->end() && at < known->size() ? (*known)[at] : 7;
      proposals.push_back(i < right_(text.size()) ? next : next ^ 1);
    }
  }

 private:
  const Texts* texts_;
  Right right_;
};

/// Tokens that the model does not have.
class UnknownTokens final : public TextProposer {
 public:
  using TextProposer::propose;
  void propose(std::span<const TokenId> text, std::uint32_t most,
               std::vector<TokenId>& proposals) override {
    for (std::size_t i = 0; i < most; ++i)
      proposals.push_back((text.size() + i) % 2 == 0 ? -1 : INT32_MAX);
  }
};

using MakeProposer = std::function<std::shared_ptr<Proposer>()>;
inline MakeProposer known(const Texts& texts, KnownTexts::Right right) {
  return [&texts, right] { return std::make_shared<KnownTexts>(texts, right); };
}
inline std::size_t all_right(std::size_t) {
  return kProposed;
}
inline std::size_t none_right(std::size_t) {
  return 0;
}
inline std::size_t some_right(std::size_t text_size) {
  return random_at(3, text_size) % (kProposed + 1);
}

inline RigOptions speculating(RigOptions options, MakeProposer make_proposer = {}) {
  options.limits.speculate = kProposed;
  options.make_proposer = std::move(make_proposer);
  return options;
}

}  // namespace leasehold::testing
