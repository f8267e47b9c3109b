/// A model file, opened and checked before the worker calls the broker.
#pragma once

#include <optional>
#include <string>

#include "ipc/control/text_identity.hpp"
#include "worker/gguf/content_digest.hpp"
#include "worker/gguf/gguf.hpp"
#include "worker/model/config.hpp"
#include "worker/model/kv_type.hpp"
#include "worker/model/weights_plan.hpp"
#include "worker/options.hpp"
#include "worker/serve/prompt.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

struct Attachment;

struct OpenedModel {
  GgufFile file;
  ModelConfig config;
  WeightsPlan plan;
  Arithmetic arithmetic;  ///< Of its matmuls; the plan suits it.
  Tokenizer tokenizer;
  Result<ChatTemplate> chat;  ///< After an error plain prompts are still served.

  ContextBound context_bound = ContextBound::Model;  ///< What `config.n_context` comes from.

  /// Limits requests to the options' `max_context`; 0 keeps the model's context. Errors: those of
  /// GgufFile::open, read_config, make_weights_layout, kv_layout_of and Tokenizer; BadRequest when
  /// the model's context is shorter.
  static Result<OpenedModel> open(const WorkerOptions& options);

  /// Chooses halves instead of floats if the broker lends the memory of a card and the options
  /// leave the choice to the worker. The plan stays: rows lie alike for both.
  void choose_arithmetic(const WorkerOptions& options, const Attachment& lent);

  /// What the worker's tokens depend on, for a model file of this content.
  TextIdentity text_identity(const WorkerOptions& options, const ContentDigest& content) const;
  /// A part of it, as workers of every version announce it.
  std::string announced_arithmetic(const WorkerOptions& options) const {
    return leasehold::announced_arithmetic(arithmetic, options.kv_type);
  }

  /// On a CPU: whether the steps find memory beside a draft model's; warns of weights that do not.
  /// Errors: those of machine_memory and check_step_memory.
  Result<void> check_memory(const WorkerOptions& options, const Attachment& lent,
                            std::uint64_t draft_bytes) const;

  /// What the broker learns of the model once it is loaded; the rest is the engine's.
  wire::WorkerReady announcement(const WorkerOptions& options, const TextIdentity& identity,
                                 const Attachment& lent) const;

  /// The model outlives it.
  PromptEncoder prompt_encoder() const {
    return {.tokenizer = &tokenizer,
            .chat = &chat,
            .max_context = config.n_context,
            .context_bound = context_bound};
  }

  /// What decides the bytes of the KV cache and of sequence records, for texts of this identity.
  /// Nothing for the memory of a device, which is not adopted.
  std::optional<std::string> kv_identity(const TextIdentity& identity,
                                         const Attachment& lent) const;
};

}  // namespace leasehold
