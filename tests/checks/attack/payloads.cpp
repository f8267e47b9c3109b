#include "tests/checks/attack/payloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/ids.hpp"
#include "ipc/control/messages/tenant.hpp"

namespace leasehold::attack {
namespace {

using wire::Json;

/// Fewer numbers than the count at which a worker refuses a line without parsing it
/// (worker/serve/connections.cpp).
constexpr std::size_t kNumbersOfOneLine = 131'000;
/// Likewise for members (ipc/control/transport/excess.hpp). Each one counts as a name, a member and
/// a quarter for its value.
constexpr std::size_t kMembersOfOneBody = 14'000;
constexpr std::size_t kLongBodyBytes = 500 << 10;

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// Returns the rules root ::= r0, r0 ::= r1 and so on.
std::string chain_of_rules(std::size_t count) {
  std::string text = "root ::= r0\n";
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("r{} ::= r{}\n", i, i + 1);
  return text + fmt::format("r{} ::= \"a\"\n", count);
}

/// Each rule uses the next one twice, so that the text has 2^count letters.
std::string doubling_rules(std::size_t count) {
  std::string text = "root ::= r0\n";
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("r{0} ::= r{1} r{1}\n", i, i + 1);
  return text + fmt::format("r{} ::= [a-z]\n", count);
}

Json gbnf(std::string grammar) {
  return {{"temperature", 1.0}, {"seed", 1}, {"grammar", std::move(grammar)}};
}

Json schema(Json schema) {
  return {
      {"temperature", 1.0},
      {"seed", 1},
      {"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", schema.dump()}}}}}};
}

Json pattern(const std::string& text) {
  return schema({{"type", "string"}, {"pattern", text}});
}

Json many_choices(std::size_t count) {
  Json choices = Json::array();
  for (std::size_t i = 0; i < count; ++i) choices.push_back(fmt::format("choice {}", i));
  return {{"enum", std::move(choices)}};
}

Json many_types(std::size_t count) {
  Json types = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    types.push_back({{"type", "object"},
                     {"properties", {{fmt::format("p{}", i), {{"type", "string"}}}}},
                     {"required", {fmt::format("p{}", i)}}});
  }
  return {{"anyOf", std::move(types)}};
}

/// Each definition uses the next one twice.
Json doubling_definitions(std::size_t count) {
  Json definitions = Json::object();
  for (std::size_t i = 0; i < count; ++i) {
    const Json next = {{"$ref", fmt::format("#/$defs/d{}", i + 1)}};
    definitions[fmt::format("d{}", i)] = {
        {"type", "object"}, {"properties", {{"a", next}, {"b", next}}}, {"required", {"a", "b"}}};
  }
  definitions[fmt::format("d{}", count)] = {{"type", "integer"}};
  return {{"$ref", "#/$defs/d0"}, {"$defs", std::move(definitions)}};
}

}  // namespace

std::string call_line(const Json& id, std::string_view method, const Json& params) {
  const Json call = {
      {"jsonrpc", "2.0"}, {"id", id}, {"method", std::string(method)}, {"params", params}};
  return call.dump() + "\n";
}

std::string authentication(const std::string& token) {
  return call_line(0, wire::ConnectionAuthenticate::kMethod,
                   wire::ConnectionAuthenticate{.token = token}.to_json());
}

std::string submit_line(const Ask& ask) {
  wire::RequestSubmit submit{.token = ask.token,
                             .request_id = {ask.request_id},
                             .max_emitted_tokens = ask.max_tokens,
                             .ignore_eos = ask.sampling.is_null()};
  if (ask.prompt.empty()) {
    submit.prompt_tokens = {300, 301, 302, 303};  // words in the vocabulary of the bundled model
  } else {
    submit.prompt = ask.prompt;
  }
  Json params = submit.to_json();
  if (!ask.sampling.is_null()) params["sampling"] = ask.sampling;
  return call_line(1, wire::RequestSubmit::kMethod, params);
}

std::string expensive_line() {
  constexpr std::string_view kHead = R"({"jsonrpc":"2.0","id":1,"method":"none","params":{"a":[)";
  constexpr std::string_view kTail = "0]}}\n";
  constexpr std::string_view kNumber = "1.25e-7,";
  const std::size_t room = (kLongLineBytes - kHead.size() - kTail.size()) / kNumber.size();
  return std::string(kHead) + repeated(kNumber, std::min(room, kNumbersOfOneLine)) +
         std::string(kTail);
}

std::string endless_line() {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(kLongLineBytes, 'a');
}

namespace {

std::string http_head(const std::string& api_key, std::string_view length) {
  return fmt::format("POST /tokenize HTTP/1.1\r\nHost: w\r\nAuthorization: Bearer {}\r\n{}\r\n\r\n",
                     api_key, length);
}

}  // namespace

std::vector<std::string> endless_requests(const std::string& api_key) {
  const std::string head = http_head(api_key, "Transfer-Encoding: chunked");
  return {head + "1;" + repeated("a", kLongLineBytes), head + repeated("0", kLongLineBytes),
          head + "0\r\nX: " + repeated("y", kLongLineBytes),
          head + "0\r\n" + repeated("X: y\r\n", kLongLineBytes / 6),
          head + repeated("1;a=b\r\n \r\n", kLongLineBytes / 10)};
}

std::string expensive_request(const std::string& api_key) {
  std::string body = R"({"prompt":"a")";
  for (std::size_t i = 0; i < kMembersOfOneBody; ++i) body += fmt::format(R"(,"member {}":0)", i);
  body += R"(,"rest":")";
  body += repeated("x", kLongBodyBytes - body.size() - 2) + "\"}";
  return http_head(api_key, fmt::format("Content-Length: {}", body.size())) + body;
}

std::vector<NamedSampling> grammar_bombs() {
  return {
      {"empty alternatives", gbnf("root ::= " + repeated("\"\" | ", 16'000) + "\"\"")},
      {"equal alternatives", gbnf("root ::= (" + repeated("\"a\" | ", 8'000) + "\"a\")*")},
      {"nested repetitions", gbnf("root ::= (((\"a\"{0,60}){0,60}){0,60}){0,60}")},
      {"optional parts", gbnf("root ::= " + repeated("[a-z]? ", 4'000) + "\"!\"")},
      {"a large repetition", gbnf("root ::= [a-z]{1000000}")},
      {"left recursion", gbnf("root ::= root \"a\" | root root | \"\"")},
      {"a chain of rules", gbnf(chain_of_rules(10'000))},
      {"doubling rules", gbnf(doubling_rules(40))},
      {"deep brackets",
       gbnf("root ::= " + repeated("(", 20'000) + "\"a\"" + repeated(")", 20'000))},
  };
}

std::vector<NamedSampling> schema_bombs() {
  return {
      {"optional letters", pattern("^" + repeated("a?", 500) + repeated("a", 500) + "$")},
      {"nested stars", pattern("^(((a*)*)*)*b$")},
      {"ambiguous alternatives", pattern("^(a|a|aa|a?)*b$")},
      {"counted groups", pattern("^((a{1,50}){1,50}){1,50}$")},
      {"20 000 choices", schema(many_choices(20'000))},
      {"3 000 types", schema(many_types(3'000))},
      {"a long list", schema({{"type", "array"},
                              {"items", {{"type", "integer"}}},
                              {"minItems", 100'000},
                              {"maxItems", 1'000'000}})},
      {"doubling definitions", schema(doubling_definitions(24))},
      {"a circle of references",
       schema({{"$ref", "#/$defs/a"},
               {"$defs", {{"a", {{"$ref", "#/$defs/b"}}}, {"b", {{"$ref", "#/$defs/a"}}}}}})},
  };
}

std::vector<std::string> forged_tokens(const std::string& token) {
  std::vector<std::string> forged;
  for (const std::size_t from_end : {1, 7, 64}) {
    std::string changed = token;
    char& digit = changed[changed.size() - from_end];
    digit = digit == '0' ? '1' : '0';
    forged.push_back(std::move(changed));
  }
  const std::size_t mac = token.rfind(':');
  forged.push_back("v1:1.1:honest-0" + token.substr(mac));
  forged.push_back(token.substr(0, mac));
  forged.push_back(token + "00");
  forged.push_back("v1:4294967295.18446744073709551615:" + std::string(2'000, 'a') + ":00");
  return forged;
}

}  // namespace leasehold::attack
