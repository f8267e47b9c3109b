// The text of a killed resumable tenant must come whole to the next process with its request id.
#include <catch2/catch.hpp>

#include "tests/unit/checks/runner/spoiled_record.hpp"

using namespace leasehold;
using namespace leasehold::runner;

TEST_CASE("soak judge: finds the text of a killed process that no other process completes") {
  const auto process = [](bool was_killed, bool is_whole) {
    Text text{
        .tenant = "bob", .undisturbed = {7, 8}, .was_killed = was_killed, .request_id = "bob-0"};
    text.record.tokens = is_whole ? text.undisturbed : std::vector{7};
    if (is_whole) text.record.completed = "MaxTokensReached";
    return text;
  };
  const auto is_found = [](std::vector<Text> texts) {
    return finds({.texts = std::move(texts)}, "came whole to the next one");
  };
  const Text killed = process(true, false), whole = process(false, true);
  CHECK_FALSE(is_found({killed, whole}));
  CHECK_FALSE(is_found({killed, killed, whole}));
  CHECK(is_found({killed}));
  CHECK(is_found({killed, killed}));
  CHECK(is_found({killed, process(false, false)}));
  CHECK(is_found({whole}));  // no text was resumed
  Text forgets = killed;
  forgets.request_id.clear();
  CHECK(is_found({forgets, whole}));  // it was not resumable
}
