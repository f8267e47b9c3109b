// Every field that OpenAI, vLLM, SGLang or llama.cpp document is honoured, refused by name where
// its value asks for something, or on a list of fields that promise nothing about the text.
// Sources: the API references of OpenAI (chat completions, completions, responses), vLLM's and
// SGLang's OpenAI-compatible servers, the README of llama.cpp's server.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/random.hpp"
#include "worker/http/api/api_request.hpp"
#include "worker/http/api/unsupported_fields.hpp"

/// In a namespace of its own, because the tests of bodies have helpers of the same names.
namespace leasehold::http::documented_fields_test {

using Json = nlohmann::json;

namespace {

const ApiModel kModel{.name = "m", .max_context = 256, .n_vocab = 300};

const char* const kDocumented[] = {
    // OpenAI: chat completions and completions
    "model", "messages", "prompt", "audio", "best_of", "echo", "frequency_penalty", "function_call",
    "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata",
    "modalities", "moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty",
    "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format",
    "safety_identifier", "seed", "service_tier", "stop", "stream", "stream_options", "suffix",
    "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity",
    "web_search_options",
    // vLLM
    "add_generation_prompt", "add_special_tokens", "allowed_token_ids", "bad_words", "cache_salt",
    "chat_template", "chat_template_kwargs", "continue_final_message", "documents",
    "early_stopping", "guided_choice", "guided_decoding_backend", "guided_grammar", "guided_json",
    "guided_json_object", "guided_regex", "guided_whitespace_pattern", "ignore_eos",
    "include_reasoning", "include_stop_str_in_output", "kv_transfer_params", "length_penalty",
    "logits_processors", "media_io_kwargs", "min_p", "min_tokens", "mm_processor_kwargs",
    "priority", "prompt_embeds", "prompt_logprobs", "repetition_detection", "repetition_penalty",
    "request_id", "return_token_ids", "return_tokens_as_token_ids", "skip_special_tokens",
    "spaces_between_special_tokens", "stop_token_ids", "structural_tag", "structured_outputs",
    "thinking_token_budget", "top_k", "truncate_prompt_tokens", "use_beam_search", "vllm_xargs",
    // SGLang
    "bootstrap_host", "bootstrap_port", "bootstrap_room", "custom_logit_processor", "custom_params",
    "data_parallel_rank", "ebnf", "extra_key", "input_embeds", "input_ids", "json_schema",
    "lora_path", "no_stop_trim", "regex", "return_cached_tokens_details", "return_hidden_states",
    "return_meta_info", "return_prompt_token_ids", "return_routed_experts", "rid",
    "separate_reasoning", "session_params", "stop_regex", "stream_reasoning",
    // llama.cpp
    "adaptive_decay", "adaptive_target", "cache_prompt", "dry_allowed_length", "dry_base",
    "dry_multiplier", "dry_penalty_last_n", "dry_sequence_breakers", "dynatemp_exponent",
    "dynatemp_range", "grammar", "grammar_lazy", "grammar_triggers", "id_slot", "image_data",
    "lora", "min_keep", "mirostat", "mirostat_eta", "mirostat_tau", "n_cache_reuse", "n_cmpl",
    "n_discard", "n_indent", "n_keep", "n_predict", "n_probs", "parse_tool_calls",
    "post_sampling_probs", "preserved_tokens", "reasoning_budget", "reasoning_format",
    "repeat_last_n", "repeat_penalty", "response_fields", "return_progress", "return_tokens",
    "samplers", "speculative.n_max", "speculative.n_min", "speculative.p_min", "t_max_predict_ms",
    "thinking_budget_tokens", "thinking_forced_open", "timings_per_token", "top_n_sigma",
    "typical_p", "xtc_probability", "xtc_threshold"};

/// Fields that change no text, whatever their value, and why.
const std::map<std::string, std::string> kNoPromise{
    {"adaptive_decay", "only with adaptive_target, which is refused"},
    {"bootstrap_host", "where a server of SGLang finds another one"},
    {"bootstrap_port", "where a server of SGLang finds another one"},
    {"bootstrap_room", "where a server of SGLang finds another one"},
    {"cache_prompt", "a cached prompt gives the same text"},
    {"cache_salt", "keys share no cached prefixes anyway"},
    {"data_parallel_rank", "which copy of a model computes"},
    {"dry_allowed_length", "only with dry_multiplier, which is refused"},
    {"dry_base", "only with dry_multiplier, which is refused"},
    {"dry_penalty_last_n", "only with dry_multiplier, which is refused"},
    {"dry_sequence_breakers", "only with dry_multiplier, which is refused"},
    {"dynatemp_exponent", "only with dynatemp_range, which is refused"},
    {"extra_key", "keys share no cached prefixes anyway"},
    {"guided_decoding_backend", "which library computes masks"},
    {"id_slot", "which place of a server computes"},
    {"metadata", "kept with a stored answer; none is stored"},
    {"mirostat_eta", "only with mirostat, which is refused"},
    {"mirostat_tau", "only with mirostat, which is refused"},
    {"n_cache_reuse", "a cached prompt gives the same text"},
    {"n_discard", "a context is never shifted"},
    {"n_keep", "a context is never shifted"},
    {"priority", "the order of service"},
    {"prompt_cache_key", "a cached prompt gives the same text"},
    {"prompt_cache_retention", "a cached prompt gives the same text"},
    {"safety_identifier", "names the end user"},
    {"service_tier", "the price of service"},
    {"spaces_between_special_tokens", "special tokens are not in the text"},
    {"speculative.n_max", "speculation gives the same text"},
    {"speculative.n_min", "speculation gives the same text"},
    {"speculative.p_min", "speculation gives the same text"},
    {"stream_reasoning", "the sizes of chunks"},
    {"user", "names the end user"},
    {"verbosity", "a hint, which models of OpenAI read"},
    {"xtc_threshold", "only with xtc_probability, which is refused"},
};

/// A value and how its effect shows.
struct Probe {
  std::string field;
  Json value;
  std::function<bool(const ApiRequest&)> had_effect;
  Api api = Api::Chat;
  Json with = Json::object();  ///< Sent beside it.
};

const Json kTool = {{"type", "function"}, {"function", {{"name", "f"}}}};
const std::string kSchema = R"({"type":"null"})";

auto sampling(auto wire::Sampling::* member, auto value) {
  return [=](const ApiRequest& r) { return r.submit.sampling.*member == value; };
}
bool has_schema(const ApiRequest& r) {
  return r.submit.sampling.response_format.schema == kSchema;
}
bool has_regex(const ApiRequest& r) {
  return r.submit.sampling.regex == "a|b";
}
bool has_grammar(const ApiRequest& r) {
  return r.submit.sampling.grammar == "root ::= \"a\"";
}
bool is_json_object(const ApiRequest& r) {
  return r.submit.sampling.response_format.type == "json_object";
}

std::vector<Probe> make_probes() {
  using S = wire::Sampling;
  const Json schema = Json::parse(kSchema);
  const Json assistant = {{"role", "assistant"}, {"content", "The capital is"}};
  return {
      {"model", "m", [](const auto&) { return true; }},
      {"messages",
       {{{"role", "user"}, {"content", "x"}}},
       [](const auto& r) { return r.submit.messages->front().content == "x"; }},
      {"prompt", "x", [](const auto& r) { return r.submit.prompt == "x"; }, Api::Completions},
      {"echo", true, [](const auto& r) { return r.echo; }, Api::Completions},
      {"best_of", 2, [](const auto& r) { return r.n == 2; }, Api::Completions, {{"n", 2}}},
      {"frequency_penalty", 0.5, sampling(&S::frequency_penalty, 0.5f)},
      {"presence_penalty", -0.5, sampling(&S::presence_penalty, -0.5f)},
      {"repetition_penalty", 1.5, sampling(&S::repetition_penalty, 1.5f)},
      {"repeat_penalty", 1.5, sampling(&S::repetition_penalty, 1.5f)},
      {"repeat_last_n", 7, sampling(&S::penalty_window, 7u)},
      {"repeat_last_n", -1, sampling(&S::penalty_window, 0u)},
      {"repeat_last_n",
       0,
       sampling(&S::repetition_penalty, 1.0f),
       Api::Chat,
       {{"repeat_penalty", 1.5}}},
      {"temperature", 0, sampling(&S::temperature, 0.0f)},
      {"top_p", 0.25, sampling(&S::top_p, 0.25f)},
      {"min_p", 0.25, sampling(&S::min_p, 0.25f)},
      {"typical_p", 0.25, sampling(&S::typical_p, 0.25f)},
      {"top_k", 3, sampling(&S::top_k, 3u)},
      {"top_k", 3.0, sampling(&S::top_k, 3u)},
      {"top_k", -1, sampling(&S::top_k, 0u)},
      {"seed", 9, sampling(&S::seed, std::uint64_t{9})},
      {"seed", 9.0, sampling(&S::seed, std::uint64_t{9})},
      {"seed", -2, sampling(&S::seed, ~std::uint64_t{1})},
      {"seed", 18446744073709551615u, sampling(&S::seed, ~std::uint64_t{0})},
      {"min_tokens", 3, sampling(&S::min_tokens, 3u)},
      {"include_stop_str_in_output", true, sampling(&S::include_stop_str_in_output, true)},
      {"stop", "x", sampling(&S::stop, wire::StringList{{"x"}})},
      {"stop", std::vector<std::string>(9, "x"),
       sampling(&S::stop, wire::StringList{std::vector<std::string>(9, "x")})},
      {"stop_token_ids", {3, 4.0}, sampling(&S::stop_token_ids, std::vector<std::int32_t>{3, 4})},
      {"logit_bias", {{"5", -1}}, sampling(&S::logit_bias, wire::TokenBiases{{{5, -1.0f}}})},
      {"logit_bias", Json::array({{5, -1}, {6, 2.5}}),
       sampling(&S::logit_bias, wire::TokenBiases{{{5, -1.0f}, {6, 2.5f}}})},
      {"logprobs", true, sampling(&S::logprobs, true)},
      {"logprobs", 2, sampling(&S::top_logprobs, 2u), Api::Completions},
      {"top_logprobs", 2, sampling(&S::top_logprobs, 2u), Api::Chat, {{"logprobs", true}}},
      {"prompt_logprobs", 2, [](const auto& r) { return r.submit.prompt_logprobs == 2u; }},
      {"ignore_eos", true, [](const auto& r) { return r.submit.ignore_eos; }},
      {"max_tokens", 16.0, [](const auto& r) { return r.submit.max_emitted_tokens == 16; }},
      {"max_completion_tokens", 17,
       [](const auto& r) { return r.submit.max_emitted_tokens == 17; }},
      {"n_predict", 18, [](const auto& r) { return r.submit.max_emitted_tokens == 18; }},
      {"n_predict", -1, [](const auto& r) { return r.submit.max_emitted_tokens == 256; },
       Api::Completions},
      {"max_tokens", -1,
       [](const auto& r) { return r.submit.max_emitted_tokens == 256 && r.submit.may_shorten; }},
      {"n", 2.0, [](const auto& r) { return r.n == 2; }},
      {"n_cmpl", 2, [](const auto& r) { return r.n == 2; }},
      {"stream", true, [](const auto& r) { return r.stream; }},
      {"stream_options", {{"include_usage", true}}, [](const auto& r) { return r.include_usage; }},
      {"rid", "r", [](const auto& r) { return r.submit.request_id.value == "r"; }},
      {"request_id", "r", [](const auto& r) { return r.submit.request_id.value == "r"; }},
      {"tools", Json::array({kTool}), [](const auto& r) { return !r.submit.tools.empty(); }},
      {"tool_choice",
       "required",
       [](const auto& r) { return r.tool_form == ToolForm::Call; },
       Api::Chat,
       {{"tools", Json::array({kTool})}}},
      {"parallel_tool_calls", false, [](const auto& r) { return !r.parallel_tool_calls; }},
      {"chat_template_kwargs",
       {{"a", 1}},
       [](const auto& r) { return r.submit.chat_template_kwargs == R"({"a":1})"; }},
      {"reasoning_effort", "low",
       [](const auto& r) {
         return r.submit.chat_template_kwargs == R"({"reasoning_effort":"low"})";
       }},
      {"add_generation_prompt", false,
       [](const auto& r) { return !r.submit.add_generation_prompt; }},
      {"continue_final_message",
       true,
       [](const auto& r) {
         return r.submit.continue_final_message && !r.submit.add_generation_prompt;
       },
       Api::Chat,
       {{"messages", {assistant}}}},
      {"add_special_tokens", false, [](const auto&) { return true; }},
      {"add_special_tokens", true, [](const auto&) { return true; }, Api::Completions},
      {"response_format", {{"type", "json_object"}}, is_json_object},
      {"response_format", {{"type", "json_object"}, {"schema", schema}}, has_schema},
      {"response_format", {{"type", "json_object"}, {"value", schema}}, has_schema},
      {"response_format", {{"type", "json"}, {"value", schema}}, has_schema},
      {"response_format",
       {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}},
       has_schema},
      {"response_format", {{"type", "json_schema"}, {"schema", schema}}, has_schema},
      {"response_format", {{"type", "json_schema"}, {"value", {{"schema", schema}}}}, has_schema},
      {"response_format", {{"type", "regex"}, {"value", "a|b"}}, has_regex},
      {"response_format", {{"type", "grammar"}, {"grammar", "root ::= \"a\""}}, has_grammar},
      {"guided_json", schema, has_schema},
      {"guided_json", kSchema, has_schema},
      {"guided_json_object", true, is_json_object},
      {"guided_regex", "a|b", has_regex},
      {"guided_choice", {"a", "b"}, has_regex},
      {"guided_grammar", "root ::= \"a\"", has_grammar},
      {"structured_outputs", {{"json", schema}}, has_schema},
      {"structured_outputs", {{"regex", "a|b"}}, has_regex},
      {"structured_outputs", {{"choice", {"a", "b"}}}, has_regex},
      {"structured_outputs", {{"grammar", "root ::= \"a\""}}, has_grammar},
      {"structured_outputs", {{"json_object", true}}, is_json_object},
      {"grammar", "root ::= \"a\"", has_grammar},
      {"ebnf", "root ::= \"a\"", has_grammar},
      {"json_schema", schema, has_schema},
      {"json_schema", kSchema, has_schema},
      {"regex", "a|b", has_regex},
  };
}

const std::vector<Probe>& probes() {
  static const std::vector<Probe> kProbes = make_probes();
  return kProbes;
}

Json body_of(Api api, const Json& more) {
  Json body{{"model", "m"}};
  if (api == Api::Completions) body["prompt"] = "Hi";
  if (api == Api::Messages) body["max_tokens"] = 9;
  if (api == Api::Chat || api == Api::Messages)
    body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
  if (api == Api::Responses) body["input"] = "Hi";
  body.update(more);
  return body;
}

std::expected<ApiRequest, ApiError> parse(Api api, const Json& more) {
  return parse_api_request(api, body_of(api, more).dump(), kModel);
}

/// The parts of a submission that the fields decide.
Json submitted(const ApiRequest& request) {
  Json json = request.submit.to_json();
  json.erase("request_id");
  json["sampling"].erase("seed");
  return json;
}

constexpr Api kApis[] = {Api::Completions, Api::Chat, Api::Responses, Api::Messages};

std::string first_segment(const std::string& path) {
  return path.substr(0, path.find('/'));
}

}  // namespace

TEST_CASE("documented fields: each is honoured, refused or promises nothing, and only one") {
  std::set<std::string> honoured;
  for (const Probe& probe : probes()) honoured.insert(probe.field);
  std::set<std::string> unsupported;
  for (const UnsupportedField& field : unsupported_fields()) unsupported.insert(field.name);
  CHECK(unsupported.size() == unsupported_fields().size());
  for (const std::string field : kDocumented) {
    CAPTURE(field);
    CHECK(honoured.contains(field) + unsupported.contains(field) + kNoPromise.contains(field) == 1);
  }
  const std::set<std::string> documented(std::begin(kDocumented), std::end(kDocumented));
  for (const std::string& field : unsupported) {
    CAPTURE(field);
    CHECK(documented.contains(field));
  }
}

TEST_CASE("documented fields: an honoured one has its effect") {
  for (const Probe& probe : probes()) {
    Json more = probe.with;
    more[probe.field] = probe.value;
    CAPTURE(probe.field, probe.value.dump());
    const auto request = parse(probe.api, more);
    if (!request) FAIL(request.error().param << ": " << request.error().error.detail);
    CHECK(probe.had_effect(*request));
  }
}

TEST_CASE(
    "documented fields: one that is not built is refused by name unless it asks for nothing") {
  const Json kAsking[] = {true, 3.5, "x", {1, "x"}, {{"a", 1}}};
  for (const UnsupportedField& field : unsupported_fields()) {
    const Json neutral = Json::parse(field.neutral);
    for (const Api api : kApis) {
      for (const Json& value : kAsking) {
        CAPTURE(field.name, value.dump());
        if (std::ranges::find(neutral, value) != neutral.end()) continue;
        const auto request = parse(api, {{field.name, value}});
        REQUIRE_FALSE(request.has_value());
        CHECK(request.error().param == field.name);
        CHECK(request.error().error.code == Errc::BadRequest);
      }
      for (const Json& value : neutral) {
        CAPTURE(field.name, value.dump());
        CHECK(parse(api, {{field.name, value}}).has_value());
      }
      CHECK(parse(api, {{field.name, nullptr}}).has_value());
    }
  }
}

TEST_CASE("documented fields: one that promises nothing changes nothing, as an unknown one") {
  for (const Api api : {Api::Completions, Api::Chat}) {
    const Json plain = submitted(*parse(api, Json::object()));
    for (const auto& [field, reason] : kNoPromise) {
      CAPTURE(field, reason);
      const auto request = parse(api, {{field, "some value"}});
      REQUIRE(request.has_value());
      CHECK(submitted(*request) == plain);
    }
    CHECK(submitted(*parse(api, {{"a_new_field", {{"x", 1}}}})) == plain);
  }
}

TEST_CASE("documented fields: any body of them is honoured as a whole or refused by a name in it") {
  const char* given = std::getenv("SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261128;
  CAPTURE(seed);
  SeededRandom random(seed);
  const Json kValues[] = {nullptr,
                          true,
                          false,
                          0,
                          1,
                          -1,
                          2.5,
                          16.0,
                          1e30,
                          "",
                          "x",
                          "[",
                          {1},
                          {"x"},
                          Json::array(),
                          Json::object(),
                          {{"type", "text"}},
                          {{"5", 1}}};
  for (int i = 0; i < 3000; ++i) {
    const Api api = kApis[random.below(std::size(kApis))];
    Json more = Json::object();
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      const std::string field = kDocumented[random.below(std::size(kDocumented))];
      if (field == "model") continue;
      more[field] = kValues[random.below(std::size(kValues))];
    }
    const Probe& probe = probes()[random.below(probes().size())];
    const bool is_probed = probe.api == api;
    if (is_probed) more.update(probe.with);
    if (is_probed) more[probe.field] = probe.value;
    CAPTURE(i, static_cast<int>(api), more.dump());
    const auto request = parse(api, more);
    if (!request) {
      CHECK(body_of(api, more).contains(first_segment(request.error().param)));
      continue;
    }
    for (const UnsupportedField& field : unsupported_fields()) {
      if (!more.contains(field.name) || more[field.name].is_null()) continue;
      const Json neutral = Json::parse(field.neutral);
      CAPTURE(field.name);
      CHECK(std::ranges::find(neutral, more[field.name]) != neutral.end());
    }
    // A field that came later by its name may say the same in other words.
    if (is_probed) CHECK(probe.had_effect(*request));
  }
}

}  // namespace leasehold::http::documented_fields_test
