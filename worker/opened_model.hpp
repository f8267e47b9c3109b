/// A model file, opened and checked before the worker calls the broker.
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
  Result<ChatTemplate> chat;  ///< After an error plain prompts are still served.

  /// Errors: those of GgufFile::open, read_config, make_weights_layout and Tokenizer.
  static Result<OpenedModel> open(const std::string& path, WeightsScope scope);
};

}  // namespace leasehold
