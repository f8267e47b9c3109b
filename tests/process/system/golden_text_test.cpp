/// Pins the tokens of fixed requests to the bundled model, through a whole worker: tokenizer,
/// forward pass, sampling, grammar. kExpectedBits of tests/model pins the logits of more models.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "common/checksum.hpp"
#include "ipc/control/tokens/text_identity.hpp"
#include "tests/process/http/http_client.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

struct GoldenTexts {
  const char* arithmetic;
  const char* kv_type;
  const char* tokens;  ///< Checksum of the tokens of kRequests, in hex.
};

constexpr std::uint32_t kPinnedVersion = 5;
constexpr const char* kOnPurpose =
    "The bundled model gives other tokens for the same requests. If that is on purpose, raise "
    "kTextVersion in ipc/control/tokens/text_identity.hpp, so that no text continues across the "
    "change, and pin the new checksums here.";
constexpr GoldenTexts kGolden[] = {
    {"int8", "f16", "8c507842f25baf5a"},
    {"int8", "f32", "7d81624c0f122343"},
    {"f32", "f16", "33b8ae327c0d0020"},
    {"f32", "f32", "33b8ae327c0d0020"},
};

const std::vector<std::string> kRequests[] = {
    {},
    {"--temperature", "0.9", "--seed", "5"},
    {"--temperature", "1.2", "--seed", "6", "--top-k", "40", "--top-p", "0.9", "--min-p", "0.02",
     "--typical-p", "0.95"},
    {"--temperature", "0.7", "--seed", "7", "--repetition-penalty", "1.2", "--presence-penalty",
     "0.3", "--frequency-penalty", "0.2"},
    {"--json", "--temperature", "0.8", "--seed", "8"},
};

std::string checksum_of(const std::vector<std::int32_t>& tokens) {
  return fmt::format("{:016x}", Checksum::of(tokens.data(), tokens.size() * sizeof tokens.front()));
}

}  // namespace

TEST_CASE("golden texts: kTextVersion is raised when the tokens of a text change") {
  REQUIRE(kTextVersion == kPinnedVersion);
  for (const GoldenTexts& golden : kGolden) {
    System system(
        {.worker_arguments = {"--arithmetic", golden.arithmetic, "--kv-type", golden.kv_type}});
    system.admit("ann");
    std::vector<std::int32_t> tokens;
    for (const auto& options : kRequests) {
      const bool ends_itself = !options.empty() && options.front() == "--json";
      const auto text = system.undisturbed(
          {.tenant = "ann", .max_tokens = 60, .ignore_eos = !ends_itself, .more = options});
      tokens.insert(tokens.end(), text.begin(), text.end());
    }
    INFO(kOnPurpose);
    CAPTURE(golden.arithmetic, golden.kv_type);
    CHECK(checksum_of(tokens) == golden.tokens);
  }
}

TEST_CASE("golden texts: kTextVersion is raised when those over HTTP change") {
  REQUIRE(kTextVersion == kPinnedVersion);
  HttpSystem http(std::vector<std::string>{});
  const std::string key = http.admit("ann");
  const Json schema = Json::parse(R"({"type":"object","properties":{"to":{"enum":["l","r"]}},
                                      "required":["to"]})");
  const Json turn{{"type", "function"}, {"function", {{"name", "turn"}, {"parameters", schema}}}};
  // The chat template, the default seed of each choice, and the grammar of a forced call.
  const Json chat{{"messages", {{{"role", "user"}, {"content", "Go on"}}}},
                  {"request_id", "golden"},
                  {"n", 2},
                  {"max_tokens", 40}};
  Json forced = chat;
  forced.update({{"tools", Json::array({turn})}, {"tool_choice", "required"}});
  std::string texts;
  for (const Json& body : {chat, forced}) {
    const Json answer = http.send(post("/v1/chat/completions", key, body)).json();
    for (const Json& choice : answer.at("choices")) texts += choice.at("message").dump() + "\n";
  }
  INFO(kOnPurpose);
  CAPTURE(texts);
  CHECK(fmt::format("{:016x}", Checksum::of(texts.data(), texts.size())) == "f8f13915a2f49aae");
}

TEST_CASE("golden texts: a worker announces the version with the SHA-256 of its file") {
  System system;
  const wire::WorkerView view = system.view().workers().value().at(0);

  REQUIRE(view.text_identity);
  CHECK(view.text_identity->version == kTextVersion);
  CHECK(view.text_identity->arithmetic == "int8");
  CHECK(view.text_identity->kv_type == "f16");
  CHECK(view.text_identity->content ==
        "7f21e87177af8a78558b7893f3c9bff45dc782f72a48accb3a93c78578e1f042");
  CHECK(view.max_context > 0);
}

}  // namespace leasehold::testing
