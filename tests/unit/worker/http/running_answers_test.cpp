// The answers in progress: what an operator and the owner see, and what a cancel reaches.
#include "worker/http/running_answers.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/request_routes.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

struct AnswersFixture {
  RunningAnswer answer(const std::string& id, const std::string& key,
                       std::vector<RunningChoice> choices) {
    return {.id = id,
            .tenant = {"ann"},
            .key = {key},
            .x_request_id = "trace-" + id,
            .began_at = {1'000'000},
            .choices = [choices] { return choices; },
            .end = [this, id](const Error& why, bool at_once) { ended[id] = {why.code, at_once}; }};
  }

  RunningAnswers answers;
  std::map<std::string, std::pair<Errc, bool>> ended;  // by answer: why, and whether at once
  RunningAnswers::Registration one{answers,
                                   answer("cmpl-a", "k1",
                                          {{.engine_request_id = {"ann/a"}, .prompt_tokens = 3},
                                           {.engine_request_id = {"ann/x"}, .emitted_tokens = 2}})};
  RunningAnswers::Registration other{
      answers,
      answer("chatcmpl-b", "k2", {{.engine_request_id = {"ann/b"}, .awaits_lease = true}})};
};

}  // namespace

TEST_CASE("running answers: a cancel of one choice reaches all choices of its answer only") {
  AnswersFixture fixture;
  const RequestId named[] = {{"ann/x"}, {"ann/elsewhere"}};
  const auto all = fixture.answers.with_other_choices(named);
  CHECK(all == std::unordered_set<RequestId>{{"ann/x"}, {"ann/a"}, {"ann/elsewhere"}});
  const RequestId stopped[] = {{"ann/a"}, {"ann/x"}};
  const auto ended = fixture.answers.end(all, stopped, {Errc::RequestCancelled, ""});
  CHECK(ended == std::vector<RequestId>{{"ann/a"}, {"ann/x"}});
  REQUIRE(fixture.ended.size() == 1);
  CHECK(fixture.ended.at("cmpl-a") == std::pair(Errc::RequestCancelled, false));
}

TEST_CASE("running answers: an answer with a choice that this worker does not have ends at once") {
  AnswersFixture fixture;
  const RequestId stopped[] = {{"ann/a"}};  // ann/x was moved to another worker
  fixture.answers.end({{"ann/a"}, {"ann/x"}}, stopped, {Errc::RequestCancelled, ""});
  CHECK(fixture.ended.at("cmpl-a") == std::pair(Errc::RequestCancelled, true));
}

TEST_CASE("running answers: a cancel by the answer's id reaches the choices after the first") {
  RunningAnswers answers;
  const RunningAnswers::Registration rest(
      answers,
      {.id = "chatcmpl-req-1",
       .tenant = {"ann"},
       .choices = [] { return std::vector<RunningChoice>{{.engine_request_id = {"ann/x"}}}; },
       .end = [](const Error&, bool) {}});
  const RequestId first[] = {{"ann/req-1"}};
  CHECK(answers.with_other_choices(first).contains({"ann/x"}));
  const RequestId other_tenant[] = {{"bob/req-1"}};
  CHECK_FALSE(answers.with_other_choices(other_tenant).contains({"ann/x"}));
}

TEST_CASE("running answers: each choice is a row with its answer, key and age") {
  const AnswersFixture fixture;
  const auto views = fixture.answers.views({6'000'000});
  REQUIRE(views.size() == 3);
  CHECK(views[0].answer == "cmpl-a");
  CHECK(views[0].key == ApiKeyId{"k1"});
  CHECK(views[0].age_ms == 5);
  CHECK(views[0].x_request_id == "trace-cmpl-a");
  CHECK(views[2].state == wire::RequestState::AwaitingLease);
}

TEST_CASE("running answers: an owner lists the answers of its own key, and detached requests") {
  const AnswersFixture fixture;
  const std::vector<wire::RequestView> detached{{.id = "ann/left",
                                                 .state = wire::RequestState::Decode,
                                                 .prompt_tokens = 4,
                                                 .emitted_tokens = 5,
                                                 .age_ms = 6,
                                                 .detached = true}};
  const auto list =
      nlohmann::json::parse(requests_json(fixture.answers, {"k1"}, detached, {6'000'000}));
  REQUIRE(list.at("data").size() == 2);
  CHECK(list.at("data")[1] == nlohmann::json{{"id", "left"},
                                             {"object", "request"},
                                             {"status", "in_progress"},
                                             {"detached", true},
                                             {"running_choices", 1},
                                             {"prompt_tokens", 4},
                                             {"completion_tokens", 5},
                                             {"age_ms", 6}});
  const auto& entry = list.at("data")[0];
  CHECK(entry.at("id") == "cmpl-a");
  CHECK(entry.at("status") == "in_progress");
  CHECK(entry.at("running_choices") == 2);
  CHECK(entry.at("prompt_tokens") == 3);
  CHECK(entry.at("completion_tokens") == 2);
}

TEST_CASE("running answers: an id in a path is of the caller's tenant, whatever it names") {
  CHECK(ids_meant({"ann"}, "chatcmpl-req-1") ==
        std::vector<std::string>{"ann/chatcmpl-req-1", "ann/req-1"});
  CHECK(ids_meant({"ann"}, "bob/req-1") == std::vector<std::string>{"ann/bob/req-1"});
}
