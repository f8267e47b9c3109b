// The bounds of what a request may ask about its prompt.
#include "worker/serve/request_parser.hpp"

#include <catch2/catch.hpp>

namespace leasehold::testing {
namespace {

std::string refusal(std::uint32_t tokens, std::optional<std::uint32_t> alternatives,
                    std::uint32_t received = 0) {
  PromptRequest request{.prompt = std::vector<TokenId>(tokens, 1)};
  request.prompt_logprobs = alternatives;
  request.reported_positions = received;
  const Result<void> checked = check_prompt_logprobs(request);
  if (checked) return {};
  CHECK(checked.error().code == Errc::BadRequest);
  return checked.error().detail;
}

}  // namespace

TEST_CASE("request parser: the log probabilities of a prompt are bounded") {
  CHECK(refusal(131'072, 0).empty());
  CHECK(refusal(6'241, 20).empty());
  CHECK(refusal(1'000'000, std::nullopt).empty());
  CHECK(refusal(6'242, 20) ==
        "6242 prompt tokens with 20 alternatives each make 131082 log probabilities, and a request "
        "may have 131072; ask for fewer alternatives or send a shorter prompt");
}

TEST_CASE("request parser: a rebind has received no more positions than the prompt has") {
  CHECK(refusal(5, 1, 5).empty());
  CHECK(refusal(5, 1, 6) ==
        "received_prompt_positions is 6, and the prompt has 5 tokens; send the positions that "
        "arrived");
}

}  // namespace leasehold::testing
