/// What a caller asks of the worker that gets its lease, and which workers offer it.
///
/// Pure. A worker of an earlier version announces no identity: it serves a model by its name, and
/// continues no text that began under an identity.
#pragma once

#include <optional>
#include <string>

#include "broker/books/state.hpp"

namespace leasehold {

/// Members that are empty ask for nothing.
struct WantedWorker {
  std::optional<std::string> name = std::nullopt;
  std::optional<ModelName> model = std::nullopt;
  std::optional<TextIdentity> text_identity = std::nullopt;
  std::uint32_t min_context = 0;  ///< Tokens.
};

/// The name does not count.
bool serves(const Worker& worker, const WantedWorker& wanted);

/// Why the worker does not serve what is wanted, with the values: "worker w2 serves tiny …".
/// Precondition: it does not.
std::string why_not(const Worker& worker, const WantedWorker& wanted);

/// What is wanted, for a sentence: "model tiny", "a text of sha256:…/int8/f16/1".
std::string describe(const WantedWorker& wanted);

/// Equal for workers that serve the same content, as far as they announce it.
std::string content_key(const Worker& worker);
/// The worker's model for people: "tiny (sha256:0123456789ab)".
std::string model_label(const Worker& worker);

/// The content that the worker of this lease serves. Nothing where the broker no longer knows it.
std::optional<ModelName> content_of_lease(State& state, LeaseId lease);

}  // namespace leasehold
