#include "tools/tenant/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "common/cli/number_option.hpp"
#include "common/cli/version.hpp"
#include "common/machine/text_file.hpp"
#include "common/random.hpp"

namespace leasehold::tenant {
namespace {

struct CommandLine {
  CLI::App app{"Run one prompt under a lease and stream the answer", "leasehold-tenant"};
  std::string socket, tenant, worker, model, request_id, output = "text", prompt, system;
  std::string rebind_mode = "auto";
  std::string embed;
  std::uint32_t dimensions = 0;
  std::string schema_file, grammar_file;
  std::vector<std::string> biases;
  bool json = false, lenient = false, chat = false;
  CLI::Option* system_option = nullptr;
  CLI::Option* prompt_option = nullptr;
  CLI::Option* logprobs_option = nullptr;
  CLI::Option* max_tokens_option = nullptr;
  std::int64_t rebind_timeout_ms = 600'000;
  client::SessionConfig config;
};

constexpr float kMostBias = 100.0f;

Result<std::string> read_nonempty_text(const std::string& path) {
  std::string text = TRY(read_text_file(path, kMaxTextBytes));
  if (text.empty()) return fail(Errc::BadRequest, path + " is empty");
  return text;
}

void add_lease(CommandLine& line) {
  line.app.set_version_flag("--version", "leasehold-tenant " + std::string(version()));
  line.app.add_option("--tenant", line.tenant, "Name of the tenant")->required()->check(check_name);
  line.app
      .add_option("--socket", line.socket,
                  "Broker socket; default: $LEASEHOLD_BROKER, else "
                  "$XDG_RUNTIME_DIR/leasehold/broker.sock, else /run/leasehold/broker.sock")
      ->check(check_socket_path);
  line.app.add_option("--worker", line.worker, "Name of the worker; default: any that is ready")
      ->check(check_name);
  line.app.add_option("--model", line.model,
                      "Model as `brokerctl workers` names it, or sha256: and at least 8 digits of "
                      "its content; default: what every ready worker serves");
  add_number_option(line.app, "--blocks", line.config.blocks,
                    "KV blocks to acquire at the start; 0: one extent's worth", 0, 1 << 20);
  auto* rebind = line.app.add_flag("--rebind", line.config.rebind,
                                   "Continue under a new lease when the lease is revoked");
  line.app
      .add_flag("--any-arithmetic", line.config.any_arithmetic,
                "With --rebind: continue also on a worker of another arithmetic (f32, int8), whose "
                "tokens may differ; default: refuse")
      ->needs(rebind);
  line.app
      .add_option("--rebind-mode", line.rebind_mode,
                  "With --rebind: auto, to move the text before a lease ends where possible, or "
                  "reprefill, to always compute it again")
      ->check(CLI::IsMember({"auto", "reprefill"}))
      ->capture_default_str();
  add_number_option(line.app, "--rebind-timeout-ms", line.rebind_timeout_ms,
                    "With --rebind: how long the text waits in turn for its next lease when memory "
                    "is short",
                    std::int64_t{0}, std::int64_t{86'400'000});
}

/// Rejects "nan", which CLI11's range check accepts.
std::string check_not_nan(const std::string& text) {
  if (!std::isnan(std::strtod(text.c_str(), nullptr))) return {};
  return fmt::format("'{}' is not a number", text);
}

void add_shape(CommandLine& line) {
  auto* shape = line.app.add_option_group("shape", "Constrain the answer");
  auto* json = shape->add_flag("--json", line.json, "Answer with a JSON object");
  auto* schema = shape->add_option("--json-schema", line.schema_file,
                                   "Answer with JSON that is valid under the schema in this file");
  auto* grammar = shape->add_option("--grammar", line.grammar_file,
                                    "Answer with text that matches the GBNF grammar in this file");
  shape
      ->add_flag("--lenient", line.lenient,
                 "With --json-schema: ignore keywords that cannot be promised, and list them")
      ->needs(schema);
  json->excludes(schema)->excludes(grammar);
  schema->excludes(grammar);
}

void add_sampling(CommandLine& line) {
  wire::Sampling& sampling = line.config.request.sampling;
  const auto add = [&line](const char* name, auto& value, const char* what, auto low, auto high) {
    line.app.add_option(name, value, what)
        ->check(CLI::Range(low, high))
        ->check(check_not_nan, "")
        ->capture_default_str();
  };
  add("--top-k", sampling.top_k, "Sample from this number of most likely tokens; 0: all", 0,
      1 << 30);
  add("--top-p", sampling.top_p, "Sample from the most likely tokens up to this probability mass",
      0.0, 1.0);
  add("--min-p", sampling.min_p, "Smallest probability relative to the most likely token", 0.0,
      1.0);
  add("--typical-p", sampling.typical_p,
      "Sample from the most typical tokens up to this probability mass", 0.0, 1.0);
  add("--repetition-penalty", sampling.repetition_penalty,
      "Divisor for the logit of every token already seen; 1: none", 0.01, 100.0);
  add("--presence-penalty", sampling.presence_penalty,
      "Subtracted from the logit of every token already generated", -2.0, 2.0);
  add("--frequency-penalty", sampling.frequency_penalty,
      "Subtracted from the logit once per earlier occurrence", -2.0, 2.0);
  add("--penalty-window", sampling.penalty_window,
      "Number of recent tokens that penalties consider; 0: all", 0, 1 << 30);
  line.app.add_option("--stop", sampling.stop.all, "Text that ends the answer; repeatable")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  line.app
      .add_option("--stop-token", sampling.stop_token_ids,
                  "Token id that ends the answer; repeatable")
      ->check(CLI::Range(0, std::numeric_limits<std::int32_t>::max()))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  line.app
      .add_option("--logit-bias", line.biases,
                  "Bias of a token's logit as TOKEN=BIAS, -100 to 100; repeatable")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  line.logprobs_option =
      line.app
          .add_option("--logprobs", sampling.top_logprobs,
                      "With -o json: log probability of each token and of this many others")
          ->check(CLI::Range(0, 20));
  add_shape(line);
}

/// Parses "17=-2.5".
Result<void> add_bias(const std::string& text, wire::TokenBiases& biases) {
  std::int32_t token = 0;
  float bias = 0.0f;
  const char* const end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, token);
  const bool has_value = id.ec == std::errc{} && token >= 0 && id.ptr != end && *id.ptr == '=';
  const auto value = has_value ? std::from_chars(id.ptr + 1, end, bias) : id;
  if (!has_value || value.ec != std::errc{} || value.ptr != end || !(std::abs(bias) <= kMostBias))
    return fail(
        Errc::BadRequest,
        fmt::format("--logit-bias {}: expected TOKEN=BIAS with a bias from -100 to 100", text));
  biases.by_token[token] = bias;
  return {};
}

/// Adds the sampling options that need a file or their own parser.
Result<void> complete_sampling(const CommandLine& line, wire::Sampling& sampling) {
  sampling.logprobs = line.logprobs_option->count() > 0;
  for (const std::string& text : line.biases) TRY(add_bias(text, sampling.logit_bias));
  if (line.json) sampling.response_format.type = "json_object";
  if (!line.grammar_file.empty()) sampling.grammar = TRY(read_nonempty_text(line.grammar_file));
  if (line.schema_file.empty()) return {};
  sampling.response_format.type = "json_schema";
  sampling.response_format.schema = TRY(read_nonempty_text(line.schema_file));
  sampling.response_format.strict = !line.lenient;
  return {};
}

/// Options of an embedding, which replaces the text.
void add_embedding(CommandLine& line, CLI::Option* resumable, CLI::Option* adapter) {
  auto* embed =
      line.app
          .add_option("--embed", line.embed,
                      "Print the embedding of the prompt instead of a text: of its last position, "
                      "the mean of all, or as the model's file says (auto)")
          ->check(CLI::IsMember({"auto", "last", "mean"}))
          ->excludes(line.max_tokens_option)
          ->excludes(line.logprobs_option)
          ->excludes(resumable)
          ->excludes(adapter);
  add_number_option(line.app, "--dimensions", line.dimensions,
                    "With --embed: leading elements to keep; default: all", 1u, 1u << 20)
      ->needs(embed);
}

void add_request(CommandLine& line) {
  wire::RequestSubmit& request = line.config.request;
  line.prompt_option =
      line.app.add_option("--prompt", line.prompt, "Prompt; default: read from stdin");
  line.app.add_flag("--chat", line.chat,
                    "Send the prompt as a user message through the model's chat template");
  line.system_option = line.app.add_option("--system", line.system, "System message; needs --chat");
  line.max_tokens_option = add_number_option(
      line.app, "--max-tokens", request.max_emitted_tokens,
      "Most tokens to generate; the default is lowered to what the tenant's quota "
      "holds",
      1, 1 << 20);
  line.app
      .add_option("--temperature", request.sampling.temperature, "Sampling temperature; 0: greedy")
      ->check(CLI::Range(0.0, 100.0))
      ->check(check_not_nan, "")
      ->capture_default_str();
  line.app
      .add_option("--seed", request.sampling.seed,
                  "Seed; the same seed and position give the same choice")
      ->capture_default_str();
  line.app.add_flag("--ignore-eos", request.ignore_eos,
                    "Continue to --max-tokens after the end of sequence");
  add_number_option(
      line.app, "--priority", request.priority,
      "Priority among the tenant's requests, -10 to 10; the highest runs first and is "
      "preempted last",
      -wire::RequestSubmit::kMaxPriority, wire::RequestSubmit::kMaxPriority);
  add_sampling(line);
  auto* id = line.app.add_option("--request-id", line.request_id, "Request id; default: a new one")
                 ->check(check_name);
  auto* resumable =
      line.app
          .add_flag(
              "--resumable", request.resumable,
              "The worker keeps the text for a minute without this process; another one with the "
              "same --request-id and request continues it")
          ->needs(id);
  auto* adapter =
      line.app
          .add_option("--adapter", request.adapter,
                      "Name of an adapter that the tenant may use; default: the base model")
          ->check(check_name);
  add_embedding(line, resumable, adapter);
  line.app.add_option("-o,--output", line.output, "Format: text, or json with one object per line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

Result<Arguments> to_arguments(const CommandLine& line) {
  Arguments arguments{.output = line.output == "json" ? Output::Json : Output::Text,
                      .prompt = line.prompt,
                      .prompt_from_stdin = line.prompt_option->count() == 0,
                      .is_chat = line.chat,
                      .config = line.config};
  client::SessionConfig& config = arguments.config;
  config.tenant = TRY(TenantId::parse(line.tenant));
  config.moves = line.rebind_mode == "auto";
  config.request.request_id =
      TRY(RequestId::parse(line.request_id.empty() ? mint_request_id() : line.request_id));
  config.request.may_shorten = line.max_tokens_option->count() == 0;
  config.retry.rebind_timeout = std::chrono::milliseconds(line.rebind_timeout_ms);
  if (line.system_option->count() > 0) arguments.system = line.system;
  if (arguments.system && !line.chat) {
    return fail(Errc::BadRequest, "--system needs a chat; add --chat");
  }
  if (line.logprobs_option->count() > 0 && arguments.output != Output::Json) {
    return fail(Errc::BadRequest, "--logprobs needs JSON, which shows them; add -o json");
  }
  if (!line.embed.empty()) {
    config.request.embedding = wire::Embedding{.pooling = line.embed == "auto" ? "" : line.embed,
                                               .dimensions = line.dimensions};
    config.request.max_emitted_tokens = 0;
    config.request.may_shorten = false;
  }
  TRY(complete_sampling(line, config.request.sampling));
  if (!line.worker.empty()) config.worker = TRY(TenantId::parse(line.worker)).value;
  if (!line.model.empty()) {
    auto model = ModelName::parse(line.model);
    if (!model) return fail(model.error().code, "--model: " + model.error().detail);
    config.model = *std::move(model);
  }
  if (!line.socket.empty()) arguments.socket = line.socket;
  return arguments;
}

}  // namespace

void set_prompt(Arguments& arguments, std::string prompt, std::int64_t now_unix_s) {
  wire::RequestSubmit& request = arguments.config.request;
  if (!arguments.is_chat) {
    request.prompt = std::move(prompt);
    return;
  }
  request.messages.emplace();
  if (arguments.system) request.messages->push_back({"system", *arguments.system});
  request.messages->push_back({"user", std::move(prompt)});
  request.asked_at_unix_s = now_unix_s;
}

std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments) {
  CommandLine line;
  add_lease(line);
  add_request(line);
  if (auto usage = parse_cli_arguments(line.app, arguments))
    return std::unexpected(*std::move(usage));
  auto parsed = to_arguments(line);
  if (parsed) return *std::move(parsed);
  return std::unexpected(Usage{.text = std::move(parsed).error().detail});
}

}  // namespace leasehold::tenant
