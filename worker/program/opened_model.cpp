#include "worker/program/opened_model.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/checksum.hpp"
#include "common/cli/version.hpp"
#include "common/machine/available_memory.hpp"
#include "common/machine/text_file.hpp"
#include "common/utf8.hpp"
#include "worker/engine/engine_limits.hpp"
#include "worker/kv/record_layout.hpp"
#include "worker/kv/sequence_record.hpp"
#include "worker/lease/attachment.hpp"
#include "worker/serve/prompt.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxTemplateBytes = 1 << 20;

/// Limits requests to `max_context` tokens; 0 keeps the model's context.
Result<void> limit_context(OpenedModel& model, std::uint32_t max_context) {
  if (max_context == 0) return {};
  if (max_context > model.config.n_context) {
    return fail(Errc::BadRequest,
                fmt::format("--max-context is {}, and {} holds {} tokens; use at most that",
                            max_context, name(model.context_bound), model.config.n_context));
  }
  model.config.n_context = max_context;
  model.context_bound = ContextBound::Worker;
  return {};
}

/// Warns when the weights exceed the memory that the control group has left. This is not an error,
/// because another worker may have filled the weights, and its group is then charged for them.
void warn_of_group_limit(const MachineMemory& memory, std::uint64_t weights_bytes) {
  if (memory.limit_file.empty() || weights_bytes <= memory.available_bytes) return;
  spdlog::warn(
      "the weights exceed what the control group has left; filling them lets the kernel end its "
      "processes weights_bytes={} available_bytes={} limit_bytes={} limit_file={}",
      weights_bytes, memory.available_bytes, memory.total_bytes, memory.limit_file);
}

struct OpenedChat {
  Result<ChatTemplate> chat;
  std::string digits;  ///< TextIdentity::chat_template.
};

/// The model's own template may be an error, and then requests with messages are refused.
Result<OpenedChat> open_own_chat(const GgufFile& file, const Tokenizer& tokenizer) {
  OpenedChat own{.chat = ChatTemplate::from_metadata(file)};
  if (const auto refused = TRY(check_prompts(tokenizer, own.chat)))
    spdlog::warn("requests with messages will be refused reason=\"{}\"", refused->detail);
  return own;
}

/// A template that an operator names must work.
Result<OpenedChat> open_chat_file(const GgufFile& file, const Tokenizer& tokenizer,
                                  const std::string& path) {
  const auto refuse = [&path](const Error& error) {
    return fail(error.code, fmt::format("--chat-template {}: {}", path, error.detail));
  };
  const auto source = read_trusted_file(path, kMaxTemplateBytes);
  if (!source) return refuse(source.error());
  if (!is_utf8(*source)) return refuse({Errc::BadRequest, "the file is not UTF-8"});
  OpenedChat opened{.chat = ChatTemplate::replaced(file, *source),
                    .digits = fmt::format("{:016x}", Checksum::of(source->data(), source->size()))};
  if (const auto refused = TRY(check_prompts(tokenizer, opened.chat))) return refuse(*refused);
  return opened;
}

/// Gives the model the names of the options, if there are any, and returns all but the first.
std::vector<std::string> rename_model(ModelConfig& config, std::vector<std::string> names) {
  if (names.empty()) return names;
  config.name = std::move(names.front());
  names.erase(names.begin());
  return names;
}

}  // namespace

Result<OpenedModel> OpenedModel::read(std::shared_ptr<const GgufFile> file,
                                      const WorkerOptions& options) {
  ModelConfig config = TRY(read_config(*file));
  std::vector<std::string> aliases = rename_model(config, options.model_names);
  ChosenPlan planned =
      TRY(choose_weights_plan(*file, config, options.arithmetic, options.weights_scope));
  Tokenizer tokenizer = TRY(Tokenizer::from_metadata(*file));
  const ContextBound bound =
      config.has_sliding_window ? ContextBound::SlidingWindow : ContextBound::Model;
  const KvLayout kv = TRY(kv_layout_of(config, options.kv_type));
  TRY(check_record_block_size(kv.block_size_bytes()));
  OpenedChat opened = TRY(options.chat_template_path.empty()
                              ? open_own_chat(*file, tokenizer)
                              : open_chat_file(*file, tokenizer, options.chat_template_path));
  OpenedModel model{.file = std::move(file),
                    .config = std::move(config),
                    .aliases = std::move(aliases),
                    .plan = std::move(planned.plan),
                    .arithmetic = planned.arithmetic,
                    .tokenizer = std::move(tokenizer),
                    .chat = std::move(opened.chat),
                    .chat_template = std::move(opened.digits),
                    .context_bound = bound};
  TRY(limit_context(model, options.limits.max_context));
  return model;
}

void OpenedModel::choose_arithmetic(const WorkerOptions& options, const Attachment& lent) {
  if (!options.arithmetic && lent.device != "cpu" && arithmetic == Arithmetic::F32)
    arithmetic = Arithmetic::F16;
}

TextIdentity OpenedModel::text_identity(const WorkerOptions& options,
                                        const ContentDigest& content) const {
  // A context that uses other divisors of the rotation (longrope) gives other texts.
  const bool is_short = config.rope.uses_short_factors(config.n_context);
  return {.content = content.hex(),
          .arithmetic = fmt::format("{}{}", name(arithmetic), is_short ? "_short_rope" : ""),
          .kv_type = std::string(name(options.kv_type)),
          .chat_template = chat_template};
}

Result<void> OpenedModel::check_memory(const WorkerOptions& options, const Attachment& lent,
                                       std::uint64_t draft_bytes) const {
  if (lent.device != "cpu") return {};
  const MachineMemory memory = TRY(machine_memory());
  TRY(check_step_memory(options.limits, config, memory.available_bytes, draft_bytes));
  warn_of_group_limit(memory, plan.size_bytes());
  return {};
}

wire::WorkerReady OpenedModel::announcement(const WorkerOptions& options,
                                            const TextIdentity& identity,
                                            const Attachment& lent) const {
  return {.address = options.listen_path,
          .model = config.name,
          .aliases = aliases,
          .arithmetic = announced_arithmetic(options),
          .kv_identity = kv_identity(identity, lent),
          .text_identity = identity,
          .max_context = config.n_context,
          .can_sleep = options.draft_model_path.empty()};
}

std::optional<std::string> OpenedModel::kv_identity(const TextIdentity& identity,
                                                    const Attachment& lent) const {
  if (lent.device != "cpu") return std::nullopt;
  return fmt::format("record={} context={} text={} build={}", kRecordVersion, config.n_context,
                     to_string(identity), version());
}

}  // namespace leasehold
