#include "worker/opened_model.hpp"

#include <spdlog/spdlog.h>

#include "worker/kv/sequence_record.hpp"

namespace leasehold {

Result<OpenedModel> OpenedModel::open(const std::string& path, WeightsScope scope) {
  GgufFile file = TRY(GgufFile::open(path));
  const ModelConfig config = TRY(read_config(file));
  WeightsPlan plan = make_weights_plan(TRY(make_weights_layout(file, config)), scope);
  Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  TRY(check_record_block_size(KvLayout{
      .n_layers = config.n_layers, .n_kv_heads = config.n_kv_heads, .head_dim = config.head_dim}
                                  .block_size_bytes()));
  Result<ChatTemplate> chat = ChatTemplate::from_metadata(file);
  if (!chat)
    spdlog::warn("requests with messages will be refused reason=\"{}\"", chat.error().detail);
  return OpenedModel{std::move(file), config, std::move(plan), std::move(tokenizer),
                     std::move(chat)};
}

}  // namespace leasehold
