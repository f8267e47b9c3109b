// Resumable requests under adapters.
#include "tests/unit/worker/serve/resume_fixture.hpp"

namespace leasehold::testing {

TEST_CASE("resumable request: another process goes on under the adapter that began the text only") {
  ResumeFixture fixture;
  fixture.load_adapter(1);
  const auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann, {.adapter = "tuned"});
  fixture.replace_lease_after(3);
  fixture.start_engine();
  fixture.run_until_ended(*ann);
  CHECK(fixture.reason_of(*ann) == "Revoked");

  fixture.load_adapter(2);
  for (int i = 0; i < 2; ++i) {  // a refusal does not forget which version began it
    const auto again = fixture.tenant();
    fixture.submit(*again, "r", {.adapter = "tuned"});
    CHECK(fixture.error_of(*again, "r") == Errc::UnknownAdapter);
  }
  fixture.load_adapter(1);
  const auto last = fixture.tenant();
  fixture.submit_and_answer(*last, "r", {.adapter = "tuned"});
  fixture.run_until_ended(*last);
  CHECK(fixture.reason_of(*last) == "MaxTokensReached");
  CHECK(fixture.ids_of(*last).size() == kResumeTokens);
  const auto joined = fixture.tenant();
  fixture.submit_and_answer(*joined, "r", {.adapter = "tuned"});
  const std::string digest = joined->answers.at("r").value().body.at("adapter_digest");
  CHECK(digest.starts_with("01"));
}

TEST_CASE(
    "resumable request: one that waits for its adapter cannot be moved yet, and is not unknown") {
  ResumeFixture fixture;
  const LeaseId other = fixture.rig.grant("ann");
  const auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann, {.adapter = "tuned"});
  fixture.start_engine();
  fixture.move(*ann, "r", other);
  fixture.parse_until_answered(*ann, "move r");
  CHECK(ann->answers.at("move r").error().code == Errc::QueueFull);
  fixture.move(*ann, "unknown", other);
  fixture.parse_until_answered(*ann, "move unknown");
  CHECK(ann->answers.at("move unknown").error().code == Errc::UnknownRequest);
}

}  // namespace leasehold::testing
