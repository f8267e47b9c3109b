/// Finds the worker that a caller names, or chooses one for a new lease by the properties that the
/// caller requires.
///
/// A worker of an earlier version announces no identity. It serves a model by its name and does not
/// continue a text that began on a worker with an identity.
#pragma once

#include <optional>
#include <string>

#include "broker/books/state.hpp"

namespace leasehold {

/// An empty member matches every worker.
struct WantedWorker {
  std::optional<std::string> name = std::nullopt;
  std::optional<ModelName> model = std::nullopt;
  std::optional<TextIdentity> text_identity = std::nullopt;
  std::uint32_t min_context = 0;  ///< Tokens.
};

/// True if the worker has the wanted properties. The wanted name is not compared.
bool serves(const Worker& worker, const WantedWorker& wanted);

/// Says why the worker does not serve what is wanted, with the values: "worker w2 serves tiny …".
/// Precondition: `serves` is false.
std::string why_not(const Worker& worker, const WantedWorker& wanted);

/// Describes what is wanted, as part of a sentence: "model tiny", "a text of sha256:…/int8/f16/1".
std::string describe(const WantedWorker& wanted);

/// A key that is equal for workers that serve the same content, as far as they announce it.
std::string content_key(const Worker& worker);
/// The worker's model in readable form: "tiny (sha256:0123456789ab)".
std::string model_label(const Worker& worker);

/// The model that the worker of this lease serves. Nothing if the broker no longer knows it.
std::optional<ModelName> content_of_lease(State& state, LeaseId lease);

/// The Attached or Ready worker of this name. Errors: UnknownWorker; BrokerLost while a worker of
/// this name may still reconnect after a broker restart.
Result<Worker*> find_worker(State& state, const std::string& name);

/// The worker of the wanted name, if it serves what is wanted. Without a name: the ready worker
/// with the fewest leases that serves it; one that is asleep only if no other serves it. Errors:
/// UnknownWorker, naming what is served instead; NoModelLoaded; Draining; BrokerLost while workers
/// reconnect after a broker restart; BadRequest if the caller must choose between several models;
/// MissingWeight if only a worker that is out of service serves it.
Result<Worker*> choose_worker(State& state, const WantedWorker& wanted);

}  // namespace leasehold
