#include "worker/http/api/unsupported_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace leasehold::http {
namespace {

constexpr UnsupportedField kFields[] = {
    // OpenAI
    {"audio"},
    {"function_call", R"(["none", "auto"])"},
    {"functions", "[[]]"},
    {"modalities", R"([["text"]])"},
    {"moderation"},
    {"prediction"},
    {"suffix", R"([""])"},
    {"web_search_options"},
    // vLLM
    {"allowed_token_ids"},
    {"bad_words", "[[]]"},
    {"chat_template"},
    {"documents", "[[]]"},
    {"early_stopping", "[false]"},
    {"guided_whitespace_pattern"},
    {"include_reasoning", "[true]"},
    {"kv_transfer_params", "[{}]"},
    {"length_penalty", "[1]"},
    {"logits_processors", "[[]]"},
    {"media_io_kwargs", "[{}]"},
    {"mm_processor_kwargs", "[{}]"},
    {"prompt_embeds"},
    {"repetition_detection"},
    {"return_token_ids", "[false]"},
    {"return_tokens_as_token_ids", "[false]"},
    {"skip_special_tokens", "[true]"},
    {"structural_tag"},
    {"thinking_token_budget"},
    {"truncate_prompt_tokens"},
    {"use_beam_search", "[false]"},
    {"vllm_xargs", "[{}]"},
    // SGLang
    {"custom_logit_processor"},
    {"custom_params", "[{}]"},
    {"input_embeds"},
    {"input_ids"},
    {"lora_path"},
    {"no_stop_trim", "[false]"},
    {"return_cached_tokens_details", "[false]"},
    {"return_hidden_states", "[false]"},
    {"return_meta_info", "[false]"},
    {"return_prompt_token_ids", "[false]"},
    {"return_routed_experts", "[false]"},
    {"separate_reasoning", "[true]"},
    {"session_params", "[{}]"},
    {"stop_regex", R"([[], ""])"},
    // llama.cpp
    {"adaptive_target", "[-1]"},
    {"dry_multiplier", "[0]"},
    {"dynatemp_range", "[0]"},
    {"grammar_lazy", "[false]"},
    {"grammar_triggers", "[[]]"},
    {"image_data", "[[]]"},
    {"lora", "[[]]"},
    {"min_keep", "[0]"},
    {"mirostat", "[0]"},
    {"n_indent", "[0]"},
    {"n_probs", "[0]"},
    {"parse_tool_calls", "[true]"},
    {"post_sampling_probs", "[false]"},
    {"preserved_tokens", "[[]]"},
    {"reasoning_budget", "[-1]"},
    {"reasoning_format", R"(["auto", "deepseek"])"},
    {"response_fields", "[[]]"},
    {"return_progress", "[false]"},
    {"return_tokens", "[false]"},
    {"samplers"},
    {"t_max_predict_ms", "[0, -1]"},
    {"thinking_budget_tokens", "[-1]"},
    {"thinking_forced_open", "[false]"},
    {"timings_per_token", "[false]"},
    {"top_n_sigma", "[-1]"},
    {"xtc_probability", "[0]"},
};

/// The neutral values, parsed once.
const std::vector<OrderedJson>& neutral_values() {
  static const std::vector<OrderedJson> kValues = [] {
    std::vector<OrderedJson> values;
    for (const UnsupportedField& field : kFields)
      values.push_back(OrderedJson::parse(field.neutral));
    return values;
  }();
  return kValues;
}

}  // namespace

std::span<const UnsupportedField> unsupported_fields() {
  return kFields;
}

Read<void> check_unsupported(const BodyFields& body) {
  for (std::size_t i = 0; i < std::size(kFields); ++i) {
    const Field field = body[kFields[i].name];
    if (!field || std::ranges::find(neutral_values()[i], field.json()) != neutral_values()[i].end())
      continue;
    return field.refuse(fmt::format("{} is not supported; leave it out", field.path()));
  }
  return {};
}

}  // namespace leasehold::http
