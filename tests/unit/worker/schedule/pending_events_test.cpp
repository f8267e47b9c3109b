// The order of the events that a scheduler hands to its engine.
#include "worker/schedule/pending_events.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <type_traits>

namespace leasehold::testing {
namespace {

std::string named(const std::vector<SchedulerEvent>& events) {
  std::string names;
  for (const SchedulerEvent& event : events) {
    std::visit(
        [&]<class Event>(const Event& each) {
          constexpr char kKind = std::is_same_v<Event, Token>               ? 'T'
                                 : std::is_same_v<Event, Completed>         ? 'C'
                                 : std::is_same_v<Event, AdmissionRejected> ? 'A'
                                 : std::is_same_v<Event, Rebound>           ? 'R'
                                 : std::is_same_v<Event, PromptLogprobs>    ? 'L'
                                 : std::is_same_v<Event, Admitted>          ? 'D'
                                                                            : 'P';
          names += kKind + each.engine_request_id.value + " ";
        },
        event);
  }
  return names;
}

}  // namespace

TEST_CASE(
    "pending events: last tokens come between admissions and completions, other tokens last") {
  PendingEvents events;
  events.add(Token{{"goes-on"}, 5, 0});
  events.add(Token{{"ends"}, 6, 0});
  events.add(Preempted{{"waits"}});
  events.add(Token{{"ends"}, 7, 1});
  events.add(Rebound{{"rebound"}, {}, {}});
  events.add(Completed{{"ends"}});
  events.add(AdmissionRejected{{"refused"}, {}, {}});
  events.add(Admitted{{"ends"}, {}});
  CHECK(named(events.take()) == "Dends Tends Tends Cends Arefused Rrebound Pwaits Tgoes-on ");
}

TEST_CASE("pending events: log probabilities of a prompt precede the tokens of their request") {
  PendingEvents events;
  for (const char* id : {"goes-on", "ends"}) {
    events.add(Token{{id}, 5, 0});
    events.add(PromptLogprobs{{id}, 0, {}});
  }
  events.add(Completed{{"ends"}});
  CHECK(named(events.take()) == "Lends Tends Cends Lgoes-on Tgoes-on ");
}

TEST_CASE("pending events: each event is taken once") {
  PendingEvents events;
  events.add(Token{{"one"}, 5, 0});
  CHECK(named(events.take()) == "Tone ");
  CHECK(events.take().empty());
  events.add(Completed{{"two"}});
  CHECK(named(events.take()) == "Ctwo ");
}

}  // namespace leasehold::testing
