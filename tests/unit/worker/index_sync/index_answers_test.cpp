#include "worker/index_sync/index_answers.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace leasehold {
namespace {

const std::vector<RequestId> kTwoIds{{"req-1"}, {"req-2"}};

bool is_malformed_evict(std::string_view body) {
  const auto parsed = parse_evict_answer(body, 2);
  return !parsed && parsed.error().code == Errc::MalformedMessage;
}

bool is_malformed_list(std::string_view body) {
  const auto parsed = parse_listed_requests(body);
  return !parsed && parsed.error().code == Errc::MalformedMessage;
}

}  // namespace

TEST_CASE("index answers: the body of an evict call is the documented one") {
  CHECK(evict_body(kTwoIds) == R"({"request_ids":["req-1","req-2"]})");
}

TEST_CASE("index answers: counts are read, other fields are not") {
  CHECK(parse_evict_answer(
            R"({"status":"success","removed_count":1,"not_found":["a"],"cleared":{"x":1}})", 2) ==
        EvictAnswer{.removed = 1, .not_found = 1});
}

TEST_CASE("index answers: an evict answer of another shape is malformed") {
  for (const char* body :
       {"", "null", "[]", "7", "{", "\xff\xfe", "{}", R"({"removed_count":1})",
        R"({"not_found":[]})", R"({"removed_count":-1,"not_found":[]})",
        R"({"removed_count":"1","not_found":[]})", R"({"removed_count":1.0,"not_found":[]})",
        R"({"removed_count":3,"not_found":[]})", R"({"removed_count":0,"not_found":[1,2,3]})",
        R"({"removed_count":0,"not_found":{}})"}) {
    INFO(body);
    CHECK(is_malformed_evict(body));
  }
  CHECK(is_malformed_evict(std::string(1'000'000, '[')));
}

TEST_CASE("index answers: a list has only ids that a worker could have sent") {
  const auto listed =
      parse_listed_requests(R"({"request_ids":["req-1",7,"","a b","x/y","req-2",null]})");
  REQUIRE(listed);
  CHECK(*listed == kTwoIds);
}

TEST_CASE("index answers: a list of another shape is malformed") {
  for (const char* body : {"", "[]", "{}", R"({"request_ids":{}})", R"({"request_ids":"req-1"})"}) {
    INFO(body);
    CHECK(is_malformed_list(body));
  }
  CHECK(is_malformed_list(R"({"request_ids":)" + std::string(500'000, '[')));
}

}  // namespace leasehold
