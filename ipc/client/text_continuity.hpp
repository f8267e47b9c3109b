/// Under which leases a text may continue: its tokens depend on the model and on how the worker
/// computes (ipc/control/text_identity.hpp), and the rest of it must fit into the context.
///
/// The broker chooses a worker by what `ask` writes. `check` compares the lease that it granted,
/// because an earlier version of the broker ignores that. Pure. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ipc/control/messages.hpp"

namespace leasehold::client {

class TextContinuity {
 public:
  struct Terms {
    std::optional<ModelName> model;             ///< Of a new text; nothing: what is served.
    std::optional<TextIdentity> text_identity;  ///< Of a text that an earlier process began.
    bool any_arithmetic = false;  ///< Only the content must be equal, also for a text with tokens.
  };
  explicit TextContinuity(Terms terms);

  /// Writes what the next lease must offer into `wanted`. `tokens`: those of the text so far.
  void ask(wire::LeaseAcquire& wanted, std::size_t tokens) const;

  /// Errors: UnknownWorker for a lease under which a text with tokens would go on otherwise;
  /// PromptTooLong where its rest does not fit.
  Result<void> check(const wire::LeaseAcquired& lease, std::size_t tokens) const;

  /// A worker accepted the text under this lease. Returns the arithmetic if a text with tokens was
  /// computed in another one before; empty otherwise.
  std::string accepted(const wire::LeaseAcquired& lease, std::size_t tokens,
                       std::uint64_t most_tokens);

 private:
  Result<void> check_identity(const wire::LeaseAcquired& lease, std::size_t tokens) const;

  Terms terms_;
  std::optional<TextIdentity> identity_;  // of the lease it was accepted under last
  std::string arithmetic_;                // of the same; empty: not known
  std::uint32_t min_context_ = 0;         // tokens; 0: not known
};

}  // namespace leasehold::client
