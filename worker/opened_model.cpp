#include "worker/opened_model.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "worker/kv/sequence_record.hpp"

namespace leasehold {

Result<OpenedModel> OpenedModel::open(const std::string& path, WeightsScope scope,
                                      Arithmetic arithmetic) {
  GgufFile file = TRY(GgufFile::open(path));
  const ModelConfig config = TRY(read_config(file));
  WeightsPlan plan = make_weights_plan(TRY(make_weights_layout(file, config, arithmetic)), scope);
  Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  TRY(check_record_block_size(KvLayout{
      .n_layers = config.n_layers, .n_kv_heads = config.n_kv_heads, .head_dim = config.head_dim}
                                  .block_size_bytes()));
  Result<ChatTemplate> chat = ChatTemplate::from_metadata(file);
  if (!chat)
    spdlog::warn("requests with messages will be refused reason=\"{}\"", chat.error().detail);
  return OpenedModel{.file = std::move(file),
                     .config = config,
                     .plan = std::move(plan),
                     .tokenizer = std::move(tokenizer),
                     .chat = std::move(chat),
                     .context_bound = config.has_sliding_window ? ContextBound::SlidingWindow
                                                                : ContextBound::Model};
}

Result<void> OpenedModel::limit_context(std::uint32_t max_context) {
  if (max_context == 0) return {};
  if (max_context > config.n_context) {
    return fail(Errc::BadRequest,
                fmt::format("--max-context is {}, and {} holds {} tokens; use at most that",
                            max_context, name(context_bound), config.n_context));
  }
  config.n_context = max_context;
  context_bound = ContextBound::Worker;
  return {};
}

}  // namespace leasehold
