/// Parses a tenant's request: tokenizes its prompt and compiles its grammar.
///
/// Parsing a request takes up to a tenth of a second (worker/MEASUREMENTS.md), so the parser runs
/// on its own thread.
///
/// Threads: one at a time. Lifetime: the objects that `prompt` points to outlive the parser.
#pragma once

#include "ipc/control/tokens/lease_token.hpp"
#include "worker/schedule/request.hpp"
#include "worker/serve/parse_sampling.hpp"
#include "worker/serve/prompt.hpp"
#include "worker/serve/resumable_streams.hpp"
#include "worker/serve/text_stream.hpp"

namespace leasehold {

/// A submission on its way to the engine. One thread at a time has it: that of the tenants' sockets
/// makes it, the parser's adds what the engine needs, and the first one submits it.
struct IncomingRequest {
  wire::RequestSubmit submit;
  LeaseClaim claim;
  std::uint64_t connection = 0;
  std::weak_ptr<control::Peer> peer;  ///< The peer of the connection.
  TimePoint submitted_at;
  std::uint32_t delivered = 0;  ///< Tokens that the client has.
  /// The digest of the earlier submission that this one repeats.
  std::optional<BodyDigest> repeats{};
  bool joins = false;  ///< Only continues that submission's stream; the request is not parsed.
  control::Responder respond{};  ///< While it is being parsed, set only when `joins`.

  // Set by the parser.
  BodyDigest body{};  ///< Digest of a resumable request.
  PromptRequest prompt{};
  std::optional<TextStream> text{};
  std::vector<wire::TokenEmitted> before{};  ///< The tokens emitted under earlier leases.

  wire::RequestSubmitted answer{};  ///< Set once parsed.

  RequestId engine_request_id() const;
};

class RequestParser {
 public:
  RequestParser(const PromptEncoder& prompt, const EmbeddingModel& embeddings)
      : prompt_(prompt), embeddings_(embeddings), constraints_(*prompt.tokenizer) {}

  /// Sets the parser's members of `incoming`; only `body` if it joins a stream.
  /// Errors: those of parse_sampling, parse_embedding, PromptEncoder and ConstraintCompiler;
  /// BadRequest for emitted tokens outside the vocabulary; PromptTooLong; RequestIdConflict for
  /// another body than that of the submission that it repeats.
  Result<void> parse(IncomingRequest& incoming);

 private:
  Result<PromptRequest> parse_prompt(const IncomingRequest& incoming);

  PromptEncoder prompt_;
  EmbeddingModel embeddings_;
  ConstraintCompiler constraints_;
};

/// Errors: BadRequest for more log probabilities than RequestSubmit::kMaxPromptLogprobs, or more
/// received positions than the prompt has.
Result<void> check_prompt_logprobs(const PromptRequest& request);

/// The refusal of a resumable request whose id belongs to a submission with this difference.
Error id_conflict(const RequestId& client_request_id, std::string_view difference);

/// The approximate size of an unparsed request in memory.
std::size_t size_bytes(const wire::RequestSubmit& wire_request);

}  // namespace leasehold
