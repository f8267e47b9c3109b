// What is sent to etcd, and what its replies mean.
#include <catch2/catch.hpp>

#include "ipc/etcd/json_gateway.hpp"
#include "ipc/etcd/member_address.hpp"

using namespace leasehold;
using namespace leasehold::etcd;
using Catch::Contains;

namespace {

const std::string kHeader = R"("header":{"cluster_id":"2037210783374497686","revision":"7"})";
const Transaction kJoin{.conditions = {Compare::absent("a")},
                        .success = {Put{"a", "b"}, Get{KeyRange::one("w")}},
                        .failure = {Get{KeyRange::one("a")}}};

Errc code_of_body(int status, const std::string& body) {
  return error_of_reply(status, body).code;
}

}  // namespace

TEST_CASE("etcd text: a transaction has conditions and both branches") {
  CHECK(transaction_body(kJoin) ==
        R"({"compare":[{"create_revision":"0","key":"YQ==","result":"EQUAL","target":"CREATE"}],)"
        R"("failure":[{"request_range":{"key":"YQ=="}}],)"
        R"("success":[{"request_put":{"key":"YQ==","value":"Yg=="}},)"
        R"({"request_range":{"key":"dw=="}}]})");
  const Transaction change{
      .conditions = {Compare::modified_at("k", {5}), Compare::not_created_at("h", {4})},
      .success = {Delete{KeyRange::prefix("m/")}},
      .failure = {Get{.range = KeyRange::one("a"), .newest_only = true}}};
  CHECK(transaction_body(change) ==
        R"({"compare":[{"key":"aw==","mod_revision":"5","result":"EQUAL","target":"MOD"},)"
        R"({"create_revision":"4","key":"aA==","result":"NOT_EQUAL","target":"CREATE"}],)"
        R"("failure":[{"request_range":{"key":"YQ==","keys_only":true,"limit":"1",)"
        R"("sort_order":"DESCEND","sort_target":"MOD"}}],)"
        R"("success":[{"request_delete_range":{"key":"bS8=","range_end":"bTA="}}]})");
}

TEST_CASE("etcd text: a reply shows which branch was executed and what it found") {
  const auto joined = read_transaction_reply(
      "{" + kHeader +
          R"(,"succeeded":true,"responses":[{"response_put":{}},{"response_range":{}}]})",
      kJoin);
  REQUIRE(joined);
  CHECK(*joined ==
        TransactionReply{.succeeded = true, .revision = {7}, .found = {{}}, .counts = {0}});
  const auto refused = read_transaction_reply(
      "{" + kHeader +
          R"(,"responses":[{"response_range":{"kvs":[{"key":"YQ==","create_revision":"2",)"
          R"("mod_revision":"6","version":"3","value":"Yg=="}],"count":"1"}}]})",
      kJoin);
  REQUIRE(refused);
  CHECK(!refused->succeeded);
  CHECK(refused->found == std::vector<std::vector<KeyValue>>{
                              {{.key = "a", .value = "b", .created = {2}, .modified = {6}}}});
  CHECK(refused->counts == std::vector<std::int64_t>{1});
}

TEST_CASE("etcd text: a reply that is not etcd's is refused with the member that is wrong") {
  const auto problem = [](const std::string& text) {
    const auto reply = read_transaction_reply(text, kJoin);
    REQUIRE(!reply);
    CHECK(reply.error().code == Errc::MalformedMessage);
    return reply.error().detail;
  };
  CHECK_THAT(problem(""), Contains("not JSON"));
  CHECK_THAT(problem("[]"), Contains("not a JSON object"));
  CHECK_THAT(problem("{}"), Contains("header"));
  CHECK_THAT(problem(R"({"header":{"revision":7}})"), Contains("header.revision"));
  CHECK_THAT(problem(R"({"header":{"revision":"-7"}})"), Contains("header.revision"));
  CHECK_THAT(problem(R"({"header":{"revision":"99999999999999999999"}})"), Contains("revision"));
  CHECK_THAT(problem("{" + kHeader + R"(,"succeeded":1})"), Contains("succeeded"));
  CHECK_THAT(problem("{" + kHeader + R"(,"succeeded":true})"), Contains("responses"));
  CHECK_THAT(problem("{" + kHeader + R"(,"responses":[{"response_put":{}}]})"),
             Contains("response_range"));
  const auto with_entry = [&](const std::string& entry) {
    return problem("{" + kHeader + R"(,"responses":[{"response_range":{"kvs":[)" + entry + "]}}]}");
  };
  CHECK_THAT(with_entry(R"({"key":"YQ","create_revision":"1","mod_revision":"1"})"),
             Contains("base64"));
  CHECK_THAT(with_entry(R"({"key":"Yg==","create_revision":"1","mod_revision":"1"})"),
             Contains("within the range"));
  CHECK_THAT(with_entry(R"({"key":"YQ==","create_revision":"2","mod_revision":"1"})"),
             Contains("mod_revision"));
  CHECK_THAT(problem(std::string(1000, '[')), Contains("levels"));
}

TEST_CASE("etcd text: a line of a watch has events, or says why the watch ends") {
  const auto events = read_watch_reply(
      R"({"result":{)" + kHeader +
      R"(,"events":[{"kv":{"key":"YQ==","value":"Yg==","create_revision":"2","mod_revision":"3"}},)"
      R"({"type":"DELETE","kv":{"key":"YQ==","mod_revision":"4"}}]}})");
  REQUIRE(events);
  CHECK(events->events ==
        std::vector<WatchEvent>{
            {.entry = {.key = "a", .value = "b", .created = {2}, .modified = {3}}},
            {.entry = {.key = "a", .value = {}, .created = {}, .modified = {4}},
             .is_deleted = true}});
  const auto compacted = read_watch_reply(
      R"({"result":{"header":{"raft_term":"2"},"canceled":true,"compact_revision":"3"}})");
  REQUIRE(compacted);
  CHECK((compacted->is_cancelled && compacted->compacted == Revision{3}));
  const auto lost = read_watch_reply(
      R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})");
  REQUIRE(!lost);
  CHECK(lost.error().code == Errc::TimedOut);
  CHECK_THAT(lost.error().detail, Contains("no leader"));
  CHECK(!read_watch_reply(R"({"result":{)" + kHeader + R"(,"events":[{"type":"X","kv":{}}]}})"));
}

TEST_CASE("etcd text: errors are typed by their code and say what to do") {
  CHECK(code_of_body(403, R"({"message":"etcdserver: permission denied","code":7})") ==
        Errc::PermissionDenied);
  CHECK(code_of_body(
            400, R"({"message":"etcdserver: authentication failed, invalid user ID","code":3})") ==
        Errc::PermissionDenied);
  CHECK(code_of_body(400, R"({"error":"etcdserver: duplicate key","code":3})") == Errc::BadRequest);
  CHECK(code_of_body(429, R"({"message":"etcdserver: mvcc: database space exceeded","code":8})") ==
        Errc::DiskFull);
  CHECK(code_of_body(503, R"({"message":"etcdserver: request timed out","code":14})") ==
        Errc::TimedOut);
  CHECK(code_of_body(500, R"({"message":"etcdserver: corrupt","code":13})") == Errc::SystemError);
  CHECK(code_of_body(404, "404 page not found") == Errc::MalformedMessage);
  CHECK_THAT(error_of_reply(404, "x").detail, Contains("answers 404"));
  CHECK(is_invalid_token(R"({"message":"etcdserver: invalid auth token","code":16})"));
  CHECK(!is_invalid_token(R"({"message":"etcdserver: permission denied","code":7})"));
}

TEST_CASE("etcd address: without encryption only this machine is accepted") {
  const auto detail = [](std::string_view text) {
    const auto parsed = MemberAddress::parse(text, Reach::ThisMachine);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == Errc::BadRequest);
    return parsed.error().detail;
  };
  for (const char* text : {"http://127.0.0.1:2379", "http://[::1]:2379", "http://localhost:2379",
                           "http://LOCALHOST:2379", "unix:/run/etcd.sock"})
    CHECK(MemberAddress::parse(text, Reach::ThisMachine));
  CHECK_THAT(detail("http://10.0.0.5:2379"), Contains("use https://"));
  CHECK_THAT(detail("http://127.evil.example:2379"), Contains("use https://"));
  const auto encrypted = MemberAddress::parse("https://10.0.0.5:2379", Reach::ThisMachine);
  REQUIRE(encrypted);
  CHECK(encrypted->is_encrypted);
  CHECK(encrypted->authority() == "10.0.0.5:2379");
  CHECK_THAT(detail("https://10.0.0.5:2379/v3"), Contains("use https://10.0.0.5:2379"));
  CHECK_THAT(detail("http://127.0.0.1:2379/v3"), Contains("has a path"));
  CHECK_THAT(detail("unix:etcd.sock"), Contains("absolute"));
  CHECK(MemberAddress::parse("http://10.0.0.5:2379", Reach::AnyMachine));
}
