/// What a model's file says, before any broker is asked.
#pragma once

#include <string>

#include "worker/gguf/gguf.hpp"
#include "worker/model/config.hpp"
#include "worker/model/weights_plan.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

struct OpenedModel {
  GgufFile file;
  ModelConfig config;
  WeightsPlan plan;
  Tokenizer tokenizer;
  Result<ChatTemplate> chat;  ///< Without it plain prompts are still served.

  /// Errors: what is wrong with the file, typed.
  static Result<OpenedModel> open(const std::string& path, WeightsScope scope);
};

}  // namespace leasehold
