// A tenant server keeps resumable requests beyond their connection, and generates each once.
#include <algorithm>
#include <future>
#include <utility>

#include "tests/unit/worker/serve/resume_fixture.hpp"

namespace leasehold::testing {

TEST_CASE("resumable request: it outlives its connection, and each later token arrives once") {
  ResumeFixture fixture;
  auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  fixture.hang_up(std::move(ann));  // the engine has not started yet
  fixture.start_engine();
  const auto again = fixture.tenant();
  fixture.resume(*again, "r");
  fixture.run_until_ended(*again);
  CHECK(fixture.reason_of(*again) == "MaxTokensReached");
  const auto all = fixture.ids_of(*again);
  REQUIRE(all.size() == kResumeTokens);
  CHECK(all == fixture.undisturbed());

  // Once more, from a position in the middle of the text that has ended.
  const auto late = fixture.tenant();
  fixture.resume(*late, "r", 9);
  fixture.run_until_ended(*late);
  CHECK(fixture.ids_of(*late, 10) == std::vector(all.begin() + 10, all.end()));
}

TEST_CASE("resumable request: the same submission continues the stream and generates nothing") {
  ResumeFixture fixture;
  auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  const auto again = fixture.tenant();
  fixture.submit_and_answer(*again, "r");
  fixture.start_engine();
  fixture.run_until_ended(*again);
  const auto all = fixture.ids_of(*again);
  REQUIRE(all.size() == kResumeTokens);
  CHECK(fixture.tokens_of(*ann).empty());
  CHECK(fixture.error_of(*ann, "r") == Errc::RequestIdConflict);  // its stream was taken over

  const auto late = fixture.tenant();
  fixture.submit_and_answer(*late, "r", {.emitted = std::vector(all.begin(), all.begin() + 20)});
  fixture.run_until_ended(*late);
  CHECK(fixture.ids_of(*late, 20) == std::vector(all.begin() + 20, all.end()));
  CHECK(fixture.rig.engine().scheduler().running().all().empty());
}

TEST_CASE("resumable request: another body or other tokens under its id are refused") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  const auto again = fixture.tenant();
  fixture.submit(*again, "r", {.prompt = "Another time"});
  CHECK(fixture.error_of(*again, "r") == Errc::RequestIdConflict);
  again->answers.clear();
  fixture.submit(*again, "r", {.emitted = {1}});
  CHECK(fixture.error_of(*again, "r") == Errc::RequestIdConflict);
}

TEST_CASE("resumable request: a foreign and an unknown id get the same answer") {
  ResumeFixture fixture;
  fixture.start_engine();
  const auto ann = fixture.tenant(), bob = fixture.tenant("bob");
  fixture.submit_and_answer(*ann, "anns");
  fixture.resume(*bob, "anns");
  fixture.resume(*bob, "none");
  CHECK(fixture.error_of(*bob, "anns") == Errc::UnknownRequest);
  CHECK(fixture.error_of(*bob, "none") == Errc::UnknownRequest);
  std::string foreign = bob->answers.at("anns").error().detail;
  foreign.replace(foreign.find("anns"), 4, "none");
  CHECK(foreign == bob->answers.at("none").error().detail);
}

TEST_CASE("resumable request: a position that does not exist yet is refused") {
  ResumeFixture fixture;
  fixture.start_engine();
  const auto ann = fixture.tenant();
  fixture.submit_and_answer(*ann, "r");
  fixture.run_until_ended(*ann);
  ann->answers.clear();
  fixture.resume(*ann, "r", kResumeTokens);
  CHECK(fixture.error_of(*ann, "r") == Errc::BadRequest);
}

TEST_CASE("resumable request: after its lease was revoked the same submission generates the rest") {
  const auto text = [] {
    ResumeFixture alone;
    alone.start_engine();
    return alone.undisturbed();
  }();
  ResumeFixture fixture;
  auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  fixture.replace_lease_after(3);
  fixture.start_engine();
  fixture.run_until_ended(*ann);
  CHECK(fixture.reason_of(*ann) == "Revoked");
  CHECK(fixture.ids_of(*ann).size() == 3);
  ann->answers.clear();
  fixture.resume(*ann, "r", 2);  // the lease of both has ended, and what it has is the client's
  fixture.parse_until_answered(*ann, "r");
  CHECK(ann->answers.at("r").has_value());

  const auto again = fixture.tenant();  // a new process, which knows no token
  fixture.submit_and_answer(*again, "r");
  fixture.run_until_ended(*again);
  CHECK(fixture.reason_of(*again) == "MaxTokensReached");
  CHECK(fixture.ids_of(*again) == text);
}

TEST_CASE("resumable request: a stopped rebind that the engine refuses is not generated again") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  fixture.replace_lease_after(3);
  fixture.start_engine();
  fixture.run_until_ended(*ann);
  std::promise<void> has_paused, goes_on;
  fixture.loop.post([&](Engine&) {
    has_paused.set_value();
    goes_on.get_future().wait();
  });
  has_paused.get_future().wait();
  const auto again = fixture.tenant();
  fixture.submit(*again, "r");
  fixture.wait_until_seen(*again);
  CHECK(fixture.parse() == 1);
  const RequestId stopped[] = {{"ann/r"}};
  const Error why{Errc::RequestCancelled, "stopped"};
  CHECK(fixture.server->operations().stop(stopped, why).size() == 1);
  fixture.rig.revoke(fixture.lease);
  fixture.lease = fixture.rig.grant("ann");
  goes_on.set_value();
  CHECK(fixture.error_of(*again, "r") == Errc::RequestCancelled);

  const auto last = fixture.join_under(fixture.lease);
  fixture.run_until_ended(*last);
  CHECK(fixture.reason_of(*last) == "RequestCancelled");
  CHECK(fixture.ids_of(*last).size() == 3);
}

TEST_CASE("resumable request: while one submission is at the parser another one gets QueueFull") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  fixture.cancel(*ann, "r");
  fixture.wait_until_seen(*ann);
  fixture.start_engine();
  fixture.run_until_ended(*ann);
  CHECK(fixture.reason_of(*ann) == "Cancelled");  // interrupted, and kept

  const auto again = fixture.tenant();
  ann->answers.clear();
  fixture.submit(*ann, "r");
  fixture.wait_until_seen(*ann);
  fixture.submit(*again, "r");
  fixture.wait_until_seen(*again);
  CHECK(fixture.error_of(*again, "r") == Errc::QueueFull);
  run_until(fixture.io, [&] { return ann->has_ended() && fixture.reason_of(*ann) != "Cancelled"; });
  CHECK(fixture.reason_of(*ann) == "MaxTokensReached");
}

TEST_CASE("resumable request: the end of a joined reader's lease ends its stream, not the text") {
  ResumeFixture fixture;
  auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  const LeaseId other = fixture.rig.grant("ann");
  const auto joined = fixture.join_under(other);
  fixture.rig.revoke(other);
  fixture.server->lease_ended(other);  // the engine has not started, so no token comes
  fixture.run_until_ended(*joined);
  CHECK(fixture.reason_of(*joined) == "Revoked");
  CHECK(fixture.tokens_of(*joined).empty());
  fixture.cancel(*joined, "r");  // another connection reads it now
  CHECK(fixture.error_of(*joined, "cancel r") == Errc::UnknownRequest);

  const auto again = fixture.tenant();
  fixture.resume(*again, "r");
  fixture.wait_until_seen(*again);
  fixture.start_engine();
  fixture.run_until_ended(*again);
  CHECK(fixture.reason_of(*again) == "MaxTokensReached");
  CHECK(fixture.ids_of(*again).size() == kResumeTokens);
}

TEST_CASE("resumable request: a connection whose lease has ended takes no stream over") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant(), reader = fixture.tenant();
  fixture.submit_and_resume(*ann, *reader);
  const LeaseId texts = std::exchange(fixture.lease, fixture.rig.grant("ann"));
  const auto late = fixture.tenant();
  fixture.rig.revoke(fixture.lease);
  fixture.lease = texts;
  fixture.resume(*late, "r");
  CHECK(fixture.error_of(*late, "r") == Errc::LeaseRevoked);
  fixture.start_engine();
  fixture.run_until_ended(*reader);
  CHECK(fixture.reason_of(*reader) == "MaxTokensReached");
  CHECK(fixture.ids_of(*reader).size() == kResumeTokens);
}

TEST_CASE("resumable request: a joined reader gets nothing after the deadline of its lease") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann);
  const LeaseId other = fixture.rig.grant("ann");
  const auto joined = fixture.join_under(other);
  fixture.rig.set_deadline(other, fixture.rig.clock().now() + std::chrono::seconds(1));
  fixture.rig.clock().advance(std::chrono::seconds(1));  // no broker revokes it
  fixture.start_engine();
  fixture.run_until_ended(*joined);
  CHECK(fixture.reason_of(*joined) == "Revoked");
  CHECK(joined->seen.notifications.back().second.body.at("revoke_reason") == "ttl_expired");
  CHECK(fixture.tokens_of(*joined).empty());
}

TEST_CASE("resumable request: a move that fails leaves the reader under its earlier lease") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant(), again = fixture.tenant();
  fixture.submit_and_resume(*ann, *again);
  const LeaseId other = fixture.rig.grant("ann");
  fixture.move(*again, "r", other);
  fixture.wait_until_seen(*again);
  fixture.rig.revoke(other);
  fixture.server->lease_ended(other);
  fixture.start_engine();
  fixture.run_until_ended(*again);
  CHECK(fixture.error_of(*again, "move r") == Errc::LeaseRevoked);
  CHECK(fixture.reason_of(*again) == "MaxTokensReached");
  CHECK(fixture.ids_of(*again).size() == kResumeTokens);
}

TEST_CASE("resumable request: its id without 'resumable' is another request") {
  ResumeFixture fixture;
  fixture.start_engine();
  const auto ann = fixture.tenant();
  fixture.submit_and_answer(*ann, "r");
  fixture.run_until_ended(*ann);

  const auto plain = fixture.tenant();
  fixture.submit_and_answer(*plain, "r",
                            {.prompt = "One morning the little fox", .resumable = false});
  fixture.run_until_ended(*plain);
  CHECK(fixture.ids_of(*plain).size() == kResumeTokens);
  const auto ends = std::ranges::count(plain->seen.notifications, "request.completed",
                                       [](const auto& each) { return each.first; });
  CHECK(ends == 1);
}

TEST_CASE("resumable request: a resume before the engine has the request gets each position once") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant(), again = fixture.tenant();
  fixture.submit_and_resume(*ann, *again);
  fixture.start_engine();
  fixture.run_until_ended(*again);
  CHECK(fixture.ids_of(*again).size() == kResumeTokens);
  CHECK(fixture.error_of(*ann, "r") == Errc::RequestIdConflict);
}

TEST_CASE("resumable request: a refusal of the engine ends the stream of a resume, too") {
  ResumeFixture fixture;
  const auto ann = fixture.tenant(), again = fixture.tenant();
  fixture.submit_and_resume(*ann, *again);
  fixture.rig.revoke(fixture.lease);
  fixture.start_engine();
  fixture.run_until_ended(*again);
  CHECK(fixture.tokens_of(*again).empty());
  CHECK(fixture.reason_of(*again) != "MaxTokensReached");
}

TEST_CASE("resumable request: without 'resumable\' the end of the connection cancels it") {
  ResumeFixture fixture;
  auto ann = fixture.tenant();
  fixture.submit_and_parse(*ann, {.resumable = false});
  fixture.hang_up(std::move(ann));
  const auto again = fixture.tenant();
  fixture.resume(*again, "r");
  CHECK(fixture.error_of(*again, "r") == Errc::UnknownRequest);
  fixture.start_engine();
  run_until(fixture.io, [&] { return fixture.rig.engine().scheduler().running().all().empty(); });
}

}  // namespace leasehold::testing
