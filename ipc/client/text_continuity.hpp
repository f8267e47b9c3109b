/// Decides under which leases a text may continue: its tokens depend on the model and on how the
/// worker computes (ipc/control/tokens/text_identity.hpp), and its remaining tokens must fit into
/// the context.
///
/// `ask` writes the requirements by which the broker chooses a worker. `check` compares the granted
/// lease with them, because an earlier version of the broker ignores them. Pure. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ipc/control/messages.hpp"

namespace leasehold::client {

class TextContinuity {
 public:
  struct Terms {
    /// The model for a new text; nothing: the model that is served.
    std::optional<ModelName> model;
    /// Identity of a text that an earlier process began.
    std::optional<TextIdentity> text_identity;
    /// Only the model's content must be equal, even for a text with tokens.
    bool any_arithmetic = false;
  };
  explicit TextContinuity(Terms terms);

  /// Writes into `wanted` what the next lease must offer. `tokens`: number of the text's tokens so
  /// far.
  void ask(wire::LeaseAcquire& wanted, std::size_t tokens) const;

  /// Errors: UnknownWorker for a lease under which the later tokens of a text could differ;
  /// PromptTooLong if its remaining tokens do not fit.
  Result<void> check(const wire::LeaseAcquired& lease, std::size_t tokens) const;

  /// Records that a worker accepted the text under this lease. Returns the lease's arithmetic if
  /// earlier tokens of the text were computed in another one; empty otherwise.
  std::string accepted(const wire::LeaseAcquired& lease, std::size_t tokens,
                       std::uint64_t most_tokens);

 private:
  Result<void> check_identity(const wire::LeaseAcquired& lease, std::size_t tokens) const;

  Terms terms_;
  std::optional<TextIdentity> identity_;  // of the lease under which the text was last accepted
  std::string arithmetic_;                // of the same lease; empty: not known
  std::uint32_t min_context_ = 0;         // tokens; 0: not known
};

}  // namespace leasehold::client
