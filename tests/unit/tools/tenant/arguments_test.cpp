#include "tools/tenant/arguments.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::client;
using namespace leasehold::tenant;

namespace {

/// A temporary file, removed at the end.
class TemporaryText {
 public:
  explicit TemporaryText(std::string_view text) {
    const int fd = ::mkstemp(path_.data());
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  TemporaryText(const TemporaryText&) = delete;
  TemporaryText& operator=(const TemporaryText&) = delete;
  ~TemporaryText() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/leasehold-text-XXXXXX";
};

Arguments parsed(const std::vector<std::string>& words) {
  auto arguments = parse_arguments(words);
  REQUIRE(arguments);
  return *std::move(arguments);
}

int exit_code_of(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  REQUIRE_FALSE(arguments);
  REQUIRE_FALSE(arguments.error().text.empty());
  return arguments.error().exit_code;
}

}  // namespace

TEST_CASE("tenant arguments: every option arrives in the request") {
  const std::vector<std::string> words{
      "--tenant",  "A",    "--prompt",     "Once",     "--max-tokens", "9",  "--temperature", "0.5",
      "--seed",    "11",   "--ignore-eos", "--rebind", "--blocks",     "8",  "--worker",      "w",
      "-o",        "json", "--request-id", "r1",       "--socket",     "/x", "--priority",    "-3",
      "--adapter", "tuned"};

  const Arguments arguments = parsed(words);

  const SessionConfig& config = arguments.config;
  CHECK(config.tenant.value == "A");
  CHECK(arguments.prompt == "Once");
  CHECK(config.request.max_emitted_tokens == 9);
  CHECK(config.request.sampling.temperature == 0.5f);
  CHECK(config.request.sampling.seed == 11);
  CHECK(config.request.ignore_eos);
  CHECK(config.request.priority == -3);
  CHECK(config.request.adapter == "tuned");
  CHECK(config.rebind);
  CHECK(config.blocks == 8);
  CHECK(config.worker == "w");
  CHECK(arguments.output == Output::Json);
  CHECK(config.request.request_id.value == "r1");
  CHECK(arguments.socket == "/x");
}

TEST_CASE("tenant arguments: every sampling option arrives in the request") {
  const std::vector<std::string> words{"--tenant",
                                       "A",
                                       "--top-k",
                                       "40",
                                       "--top-p",
                                       "0.5",
                                       "--min-p",
                                       "0.25",
                                       "--typical-p",
                                       "0.75",
                                       "--repetition-penalty",
                                       "1.5",
                                       "--presence-penalty",
                                       "-1",
                                       "--frequency-penalty",
                                       "2",
                                       "--stop",
                                       "END",
                                       "--stop",
                                       "x y",
                                       "--stop-token",
                                       "7",
                                       "--stop-token",
                                       "9",
                                       "--logit-bias",
                                       "17=-2.5",
                                       "--logit-bias",
                                       "0=100",
                                       "--penalty-window",
                                       "64",
                                       "--logprobs",
                                       "0",
                                       "-o",
                                       "json",
                                       "--json"};
  const Arguments arguments = parsed(words);
  const wire::Sampling& sampling = arguments.config.request.sampling;
  CHECK(sampling.top_k == 40);
  CHECK(sampling.top_p == 0.5f);
  CHECK(sampling.min_p == 0.25f);
  CHECK(sampling.typical_p == 0.75f);
  CHECK(sampling.repetition_penalty == 1.5f);
  CHECK(sampling.presence_penalty == -1.0f);
  CHECK(sampling.frequency_penalty == 2.0f);
  CHECK(sampling.stop.all == std::vector<std::string>{"END", "x y"});
  CHECK(sampling.stop_token_ids == std::vector<std::int32_t>{7, 9});
  CHECK(sampling.logit_bias == wire::TokenBiases{{{0, 100.0f}, {17, -2.5f}}});
  CHECK(sampling.penalty_window == 64);
  CHECK(sampling.logprobs);
  CHECK(sampling.top_logprobs == 0);
  CHECK(sampling.response_format.type == "json_object");
}

TEST_CASE("tenant arguments: at most one of grammar and schema is read from a file") {
  const TemporaryText file("root ::= \"x\"");
  const auto grammar = parsed({"--tenant", "A", "--grammar", file.path()});
  CHECK(grammar.config.request.sampling.grammar == "root ::= \"x\"");
  const auto schema = parsed({"--tenant", "A", "--json-schema", file.path()});
  CHECK(schema.config.request.sampling.response_format.type == "json_schema");
  CHECK(schema.config.request.sampling.response_format.schema == "root ::= \"x\"");
  CHECK(schema.config.request.sampling.response_format.strict);
  const auto lenient = parsed({"--tenant", "A", "--json-schema", file.path(), "--lenient"});
  CHECK_FALSE(lenient.config.request.sampling.response_format.strict);
  CHECK(exit_code_of({"--tenant", "A", "--lenient"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--grammar", file.path(), "--lenient"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--json", "--json-schema", file.path()}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--json-schema", file.path(), "--grammar", file.path()}) ==
        2);
  CHECK(exit_code_of({"--tenant", "A", "--json", "--grammar", file.path()}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--grammar", "/nowhere/at/all"}) == 2);
}

TEST_CASE("tenant arguments: a missing prompt means stdin") {
  CHECK(parsed({"--tenant", "A"}).prompt_from_stdin);
  CHECK_FALSE(parsed({"--tenant", "A", "--prompt", "x"}).prompt_from_stdin);
}

TEST_CASE("tenant arguments: a chat has messages and a time, other requests a prompt") {
  auto plain = parsed({"--tenant", "A"});
  auto chat = parsed({"--tenant", "A", "--chat", "--system", "Be brief."});

  set_prompt(plain, "Once", 7);
  set_prompt(chat, "Hi", 7);

  CHECK(plain.config.request.prompt == "Once");
  CHECK_FALSE(plain.config.request.messages);
  CHECK_FALSE(chat.config.request.prompt);
  REQUIRE(chat.config.request.messages->size() == 2);
  CHECK(chat.config.request.messages->front().role == "system");
  CHECK(chat.config.request.messages->front().content == "Be brief.");
  CHECK(chat.config.request.messages->back().role == "user");
  CHECK(chat.config.request.messages->back().content == "Hi");
  CHECK(chat.config.request.asked_at_unix_s == 7);
}

TEST_CASE("tenant arguments: an error names the option and its value") {
  const auto says = [](std::vector<std::string> words, const std::string& text) {
    words.insert(words.begin(), {"--prompt", "x"});
    CHECK_THAT(parse_arguments(words).error().text, Catch::Contains(text));
  };
  says({"--tenant", "a b"}, "--tenant: 'a b' is not a name");
  says({"--tenant", "A", "--worker", "a b"}, "--worker: 'a b' is not a name");
  says({"--tenant", "A", "--request-id", "a b"}, "--request-id: 'a b' is not a name");
  says({"--tenant", "A", "--top-p", "nan"}, "--top-p: 'nan' is not a number");
  says({"--tenant", "A", "--temperature", "nan"}, "--temperature: 'nan' is not a number");
  says({"--tenant", "A", "--top-k", "-1"}, "--top-k: Value -1 not in range 0 to 1073741824");
  says({"--tenant", "A", "--penalty-window", "1.5"},
       "--penalty-window: Value 1.5 not in range 0 to 1073741824");
}

TEST_CASE("tenant arguments: wrong usage exits with 2 and an explanation") {
  CHECK(exit_code_of({}) == 2);
  CHECK(exit_code_of({"--tenant", "A B"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--max-tokens", "0"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--priority", "11"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--system", "Be brief."}) == 2);
  for (const char* bias : {"7", "7=", "=1", "-7=1", "7=1x", "7=nan", "7:1", "5=200", "5=-100.5"})
    CHECK(exit_code_of({"--tenant", "A", "--logit-bias", bias}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--temperature", "-1"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--temperature", "nan"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--seed", "x"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--top-p", "1.5"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--top-p", "nan"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "-o", "json", "--logprobs", "21"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--logprobs", "3"}) == 2);  // only JSON shows them
  CHECK(exit_code_of({"--tenant", "A", "--stop-token", "-4"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--prompt", ""}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--socket", ""}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--request-id", "a b"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--adapter", "a b"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--adapter", "a", "--embed", "last"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "stray"}) == 2);
}
