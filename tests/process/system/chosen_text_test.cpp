/// Sampling options, stop conditions and grammars, also over a rebind.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process/tools/program_run.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

using Json = nlohmann::json;

struct Answer {
  std::vector<std::int32_t> tokens;
  std::string text;
  std::string reason;
  bool operator==(const Answer&) const = default;
};
std::ostream& operator<<(std::ostream& to, const Answer& answer) {
  return to << answer.tokens.size() << " tokens, " << answer.reason << ": " << answer.text;
}

struct Bench {
  Bench() { system.admit("ann"); }

  static Answer finish(Tenant& tenant) {
    const int code = tenant.finish();
    INFO(tenant.record().failed.value_or(""));
    REQUIRE(code == 0);
    return {tenant.record().tokens, tenant.record().text, tenant.record().completed.value_or("")};
  }
  Answer ask(std::vector<std::string> more, TenantSpec spec = {}) {
    spec.tenant = "ann";
    spec.more = std::move(more);
    return finish(*system.start_tenant(spec));
  }
  /// The same, with its lease revoked in the middle.
  Answer ask_and_revoke(std::vector<std::string> more, TenantSpec spec = {}) {
    spec.tenant = "ann";
    spec.rebind = true;
    spec.more = std::move(more);
    const auto tenant = system.start_streaming(spec, 10);
    system.revoke_mid_request("ann");
    const Answer answer = finish(*tenant);
    CHECK(tenant->record().leases.size() == 2);
    return answer;
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(system.directory() / name) << text;
    return system.directory() / name;
  }

  System system;
};

/// The first `n` bytes at or after `from` that do not occur earlier in the text.
std::string first_seen(const std::string& text, std::size_t from, std::size_t n) {
  while (text.find(text.substr(from, n)) < from) ++from;
  return text.substr(from, n);
}

}  // namespace

TEST_CASE("chosen text: a stop string ends the text before it, also over rebinds") {
  Bench bench;
  const Answer whole = bench.ask({});
  REQUIRE(whole.text.size() > 200);
  const std::string stop = first_seen(whole.text, whole.text.size() * 3 / 4, 12);
  // The worker holds text back while it may become the stop string, then sends it.
  const std::string never = whole.text.substr(20, 60) + "\x01";
  const std::vector<std::string> stops{"--stop", never, "--stop", stop};

  const Answer stopped = bench.ask(stops);

  CHECK(stopped.reason == "StopSequence");
  CHECK(stopped.text == whole.text.substr(0, whole.text.find(stop)));
  CHECK(stopped.tokens.size() < whole.tokens.size());
  CHECK(is_prefix(stopped.tokens, whole.tokens));
  CHECK(bench.ask_and_revoke(stops) == stopped);
}

TEST_CASE("chosen text: held-back text arrives with the end") {
  Bench bench;
  const Answer whole = bench.ask({});
  const std::vector<std::string> stops{"--stop",
                                       whole.text.substr(whole.text.size() - 40) + "\x01"};
  CHECK(bench.ask(stops) == whole);
  CHECK(bench.ask_and_revoke(stops) == whole);
}

TEST_CASE("chosen text: a stop token ends the text and is not part of it") {
  Bench bench;
  const Answer whole = bench.ask({});
  const std::int32_t stop = whole.tokens[whole.tokens.size() * 3 / 4];
  const Answer stopped = bench.ask({"--stop-token", std::to_string(stop)});
  const auto first = std::ranges::find(whole.tokens, stop);
  CHECK(stopped.reason == "StopSequence");
  CHECK(stopped.tokens == std::vector<std::int32_t>(whole.tokens.begin(), first));
}

TEST_CASE("chosen text: every sampling option has an effect, and a seed repeats it") {
  Bench bench;
  const TenantSpec spec{.max_tokens = 40};
  const Answer greedy = bench.ask({}, spec);
  const auto hot = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--temperature", "1.2", "--seed", "7"});
    return bench.ask(more, spec);
  };
  // Filters that leave one token make any temperature greedy.
  CHECK(hot({"--top-k", "1"}) == greedy);
  CHECK(hot({"--top-p", "0"}) == greedy);
  CHECK(hot({"--min-p", "1"}) == greedy);
  const Answer drawn = hot({});
  CHECK(drawn != greedy);
  CHECK(hot({}) == drawn);
  CHECK(hot({"--typical-p", "0.2"}) != drawn);
  CHECK(bench.ask({"--temperature", "1.2", "--seed", "8"}, spec) != drawn);
  CHECK(bench.ask({"--repetition-penalty", "1.5"}, spec) != greedy);
  CHECK(bench.ask({"--frequency-penalty", "2"}, spec) != greedy);
  CHECK(bench.ask({"--presence-penalty", "2"}, spec) != greedy);
  const std::int32_t banned = greedy.tokens.front();
  const Answer without = bench.ask({"--logit-bias", std::to_string(banned) + "=-100"}, spec);
  CHECK(std::ranges::find(without.tokens, banned) == without.tokens.end());
}

TEST_CASE("chosen text: sampling with every option continues unchanged after a rebind") {
  Bench bench;
  const std::vector<std::string> all{"--temperature",
                                     "0.9",
                                     "--seed",
                                     "5",
                                     "--top-k",
                                     "50",
                                     "--top-p",
                                     "0.95",
                                     "--min-p",
                                     "0.01",
                                     "--typical-p",
                                     "0.97",
                                     "--repetition-penalty",
                                     "1.1",
                                     "--presence-penalty",
                                     "0.3",
                                     "--frequency-penalty",
                                     "0.2",
                                     "--penalty-window",
                                     "30",
                                     "--logit-bias",
                                     "5=-3"};
  const Answer undisturbed = bench.ask(all);
  CHECK(undisturbed.tokens.size() == 120);
  CHECK(bench.ask_and_revoke(all) == undisturbed);
}

TEST_CASE("chosen text: text under a schema or grammar stays valid over a rebind") {
  Bench bench;
  const std::string schema = bench.write("schema.json", R"({
    "type": "object", "required": ["name", "tags"],
    "properties": {"name": {"type": "string", "minLength": 20, "maxLength": 30},
                   "tags": {"type": "array", "minItems": 20, "maxItems": 20,
                            "items": {"enum": ["red", "green"]}}}})");
  const std::string grammar = bench.write("words.gbnf",
                                          "root ::= (word \" \"){30} \"!\"\n"
                                          "word ::= [A-Z] [a-zé]{2,5}\n");
  const TenantSpec spec{.max_tokens = 400, .ignore_eos = false};
  const auto drawn = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--temperature", "1.3", "--seed", "3"});
    return more;
  };

  const Answer json = bench.ask(drawn({"--json-schema", schema}), spec);
  CHECK(json.reason == "EndOfSequence");
  const Json value = Json::parse(json.text, nullptr, false);
  REQUIRE(value.is_object());
  CHECK(value.at("tags").size() == 20);
  CHECK(bench.ask_and_revoke(drawn({"--json-schema", schema}), spec) == json);

  const Answer words = bench.ask(drawn({"--grammar", grammar}), spec);
  CHECK(words.reason == "EndOfSequence");
  CHECK(std::ranges::count(words.text, ' ') == 30);
  CHECK(words.text.ends_with(" !"));
  CHECK(bench.ask_and_revoke(drawn({"--grammar", grammar}), spec) == words);

  const Answer any = bench.ask(drawn({"--json"}), {.max_tokens = 200, .ignore_eos = false});
  CHECK(any.text.starts_with("{"));
  CHECK((any.reason == "MaxTokensReached" || Json::parse(any.text, nullptr, false).is_object()));
}

TEST_CASE(
    "chosen text: a schema that cannot be promised needs --lenient, which says what is left") {
  Bench bench;
  const std::string schema = bench.write("schema.json", R"({
    "type": "object", "required": ["name", "tags"],
    "properties": {"name": {"type": "string", "minLength": 20, "maxLength": 30, "not": {"const": "x"}},
                   "tags": {"type": "array", "minItems": 20, "maxItems": 20, "uniqueItems": true,
                            "items": {"enum": ["red", "green"]}}}})");
  const std::vector<std::string> shape{"--temperature", "1.3", "--seed", "3",
                                       "--json-schema", schema};
  const auto print = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{
        "--socket", bench.system.broker_socket(), "--tenant",     "ann",
        "--prompt", "Once upon a time",           "--max-tokens", "400"};
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramRun program("leasehold-tenant", arguments);
    const int code = program.finish([] {});
    return std::tuple(code, program.output, program.errors());
  };

  const auto [refused, nothing, why] = print({});
  CHECK(refused == exit_code(Errc::BadRequest));
  CHECK(nothing.empty());
  CHECK_THAT(why, Catch::Contains("#/properties/name: 'not' is not supported"));

  const auto [accepted, text, notes] = print({"--lenient"});
  CHECK(accepted == 0);
  CHECK(notes ==
        "leasehold-tenant: not checked: #/properties/name: 'not'\n"
        "leasehold-tenant: not checked: #/properties/tags: 'uniqueItems'\n");
  const Json value = Json::parse(text, nullptr, false);
  REQUIRE(value.is_object());
  CHECK(value.at("tags").size() == 20);

  std::vector<std::string> lenient = shape;
  lenient.emplace_back("--lenient");
  const TenantSpec spec{.max_tokens = 400, .ignore_eos = false};
  const Answer whole = bench.ask(lenient, spec);
  CHECK(Json::parse(whole.text, nullptr, false) == value);
  CHECK(bench.ask_and_revoke(lenient, spec) == whole);
}

TEST_CASE("chosen text: log probabilities are the same over a rebind") {
  Bench bench;
  const auto run = [&](bool with_revocation) {
    std::vector<std::string> arguments{"--socket",     bench.system.broker_socket(),
                                       "--tenant",     "ann",
                                       "--prompt",     "Once upon a time",
                                       "--max-tokens", "120",
                                       "--ignore-eos", "--rebind",
                                       "--logprobs",   "3",
                                       "-o",           "json"};
    ProgramRun program("leasehold-tenant", arguments);
    bool to_do = with_revocation;
    const auto meanwhile = [&] {
      if (!to_do || std::ranges::count(program.output, '\n') < 12) return;
      to_do = false;
      bench.system.revoke_mid_request("ann");
    };
    REQUIRE(program.finish(meanwhile, std::chrono::seconds(120)) == 0);
    std::vector<Json> tokens;
    std::istringstream lines(program.output);
    for (std::string line; std::getline(lines, line);) {
      Json json = Json::parse(line);
      if (json.at("event") == "rebound") CHECK(with_revocation);
      if (json.at("event") != "token") continue;
      json.erase("lease");
      json.erase("at_boottime_ns");
      tokens.push_back(std::move(json));
    }
    CHECK(program.output.contains("rebound") == with_revocation);
    return tokens;
  };

  const std::vector<Json> tokens = run(false);

  REQUIRE(tokens.size() == 120);
  for (const Json& token : tokens) {
    const Json& top = token.at("top_logprobs");
    REQUIRE(top.size() == 3);
    REQUIRE(token.at("logprob") <= 0.0);
    // Greedy: the most likely token is chosen.
    REQUIRE(top[0].at("token") == token.at("token"));
    REQUIRE(top[0].at("logprob") == token.at("logprob"));
    REQUIRE(top[1].at("logprob") >= top[2].at("logprob"));
  }
  CHECK(run(true) == tokens);
}

}  // namespace leasehold::testing
