/// A model file, opened and checked before the worker calls the broker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/tokens/text_identity.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/gguf/content_digest.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/model/kv_type.hpp"
#include "kernels/model/weights_plan.hpp"
#include "worker/options.hpp"
#include "worker/serve/prompt.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

struct Attachment;

struct OpenedModel {
  std::shared_ptr<const GgufFile> file;
  ModelConfig config;  ///< `name` is the first of the options' `model_names`, if there are any.
  std::vector<std::string> aliases;  ///< The other `model_names`.
  WeightsPlan plan;
  Arithmetic arithmetic;  ///< Arithmetic of the matmuls; the plan's layout supports it.
  Tokenizer tokenizer;
  Result<ChatTemplate> chat;  ///< If this is an error, plain prompts are still served.
  std::string chat_template;  ///< See TextIdentity.

  ContextBound context_bound = ContextBound::Model;  ///< The cause of the limit `config.n_context`.

  /// Checks the opened model file, and limits requests to the options' `max_context`; 0 keeps the
  /// model's context. Errors: those of read_config, make_weights_layout, kv_layout_of and
  /// Tokenizer; BadRequest when `max_context` exceeds the model's context. Also those of
  /// read_trusted_file and of ChatTemplate for the options' `chat_template_path`.
  static Result<OpenedModel> read(std::shared_ptr<const GgufFile> file,
                                  const WorkerOptions& options);

  /// Chooses F16 instead of F32 if the broker lends GPU memory and the options leave the choice to
  /// the worker. The plan does not change, because both have the same layout.
  void choose_arithmetic(const WorkerOptions& options, const Attachment& lent);

  /// Everything that the worker's tokens depend on, for a model file of this content.
  TextIdentity text_identity(const WorkerOptions& options, const ContentDigest& content) const;
  /// The arithmetic and KV type, in the form that workers of every version announce.
  std::string announced_arithmetic(const WorkerOptions& options) const {
    return leasehold::announced_arithmetic(arithmetic, options.kv_type);
  }

  /// On a CPU, checks that the memory suffices for the steps and a draft model's passes, and warns
  /// when it may not suffice for the weights. Errors: those of machine_memory and
  /// check_step_memory.
  Result<void> check_memory(const WorkerOptions& options, const Attachment& lent,
                            std::uint64_t draft_bytes) const;

  /// The model's part of `worker.ready`; the engine supplies the rest.
  wire::WorkerReady announcement(const WorkerOptions& options, const TextIdentity& identity,
                                 const Attachment& lent) const;

  /// The model outlives the encoder.
  PromptEncoder prompt_encoder() const {
    return {.tokenizer = &tokenizer,
            .chat = &chat,
            .max_context = config.n_context,
            .context_bound = context_bound};
  }

  EmbeddingModel embedding_model(const WorkerOptions& options) const {
    return {.pooling = std::string(name(config.pooling_type)),
            .width = config.n_embd,
            .is_matryoshka = options.is_matryoshka};
  }

  /// Identifies everything that determines the bytes of the KV cache and of sequence records, for
  /// texts of this identity. Nothing for GPU memory, which is not adopted.
  std::optional<std::string> kv_identity(const TextIdentity& identity,
                                         const Attachment& lent) const;
};

}  // namespace leasehold
