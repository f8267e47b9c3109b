// Pages of a list whose entries are on several hosts.
#include <catch2/catch.hpp>

#include "tools/gateway/decide/list_page.hpp"

using namespace leasehold;
using namespace leasehold::gateway;
using nlohmann::json;

namespace {

json entry(const std::string& id, std::int64_t created_at) {
  return {{"id", id}, {"created_at", created_at}, {"more", {{"kept", true}}}};
}

HostList list(std::vector<json> entries, bool has_more = false) {
  return {.entries = std::move(entries), .has_more = has_more};
}

std::string ids_of(const json& page) {
  std::string ids;
  for (const json& one : page.at("data")) ids += one.at("id").get<std::string>() + " ";
  return ids;
}

}  // namespace

TEST_CASE("list page: the newest of all hosts come first, and each host's order stays") {
  const json page = page_of({list({entry("a9", 9), entry("a5", 5), entry("a5'", 5)}),
                             list({entry("b7", 7), entry("b5", 5), entry("b1", 1)})},
                            5, ListOrder::NewestFirst);
  CHECK(ids_of(page) == "a9 b7 a5 a5' b5 ");
  CHECK(page.at("object") == "list");
  CHECK(page.at("has_more") == true);
  CHECK(page.at("first_id") == "a9");
  CHECK(page.at("last_id") == "b5");
  CHECK(page.at("data")[0].at("more").at("kept") == true);
}

TEST_CASE("list page: other orders") {
  CHECK(ids_of(page_of({list({entry("a1", 1), entry("a8", 8)}), list({entry("b1", 1)})}, 9,
                       ListOrder::OldestFirst)) == "a1 b1 a8 ");
  const json by_id =
      page_of({list({entry("b", 1), entry("d", 1)}), list({entry("a", 9), entry("b", 9)})}, 3,
              ListOrder::ById);
  CHECK(ids_of(by_id) == "a b b ");
  CHECK(by_id.at("has_more") == true);
}

TEST_CASE("list page: an empty page has neither ids nor more, unless a host says so") {
  const json empty = page_of({list({}), list({})}, 20, ListOrder::NewestFirst);
  CHECK(empty ==
        json::parse(
            R"({"object":"list","has_more":false,"first_id":null,"last_id":null,"data":[]})"));
  CHECK(page_of({list({entry("a", 1)}, true)}, 1, ListOrder::NewestFirst).at("has_more") == true);
}

TEST_CASE("list page: pages that follow one another hold each entry once") {
  const std::vector<std::vector<json>> hosts{{entry("a4", 4), entry("a3", 3), entry("a3'", 3)},
                                             {entry("b4", 4), entry("b3", 3), entry("b2", 2)}};
  std::string seen;
  std::optional<ListPosition> after;
  for (int pages = 0; pages < 6; ++pages) {
    std::vector<HostList> lists(2);
    for (std::size_t host = 0; host < 2; ++host) {
      bool is_past = !after || after->host != host;
      for (const json& one : hosts[host]) {
        const ListPosition at = position_of(one, host);
        const bool is_own = after && after->host == host;
        if (is_past && (is_own || !after || precedes(*after, at, ListOrder::NewestFirst)))
          lists[host].entries.push_back(one);
        if (is_own && at.id == after->id) is_past = true;
      }
    }
    const json page = page_of(std::move(lists), 2, ListOrder::NewestFirst);
    if (page.at("data").empty()) break;
    seen += ids_of(page);
    const json& last = page.at("data").back();
    const std::size_t host = last.at("id").get<std::string>().front() == 'a' ? 0 : 1;
    after = position_of(last, host);
  }
  CHECK(seen == "a4 b4 a3 a3' b3 b2 ");
}

TEST_CASE("list page: what a host sends is checked") {
  const auto read = read_host_list(R"({"object":"list","data":[{"id":"a"}],"has_more":true})");
  REQUIRE(read.has_value());
  CHECK(read->entries.size() == 1);
  CHECK(read->has_more);
  const std::string deep =
      R"({"data":[{"id":"a","x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}]}";
  for (const std::string& wrong :
       {std::string("{"), std::string("[]"), std::string(R"({"data":{}})"),
        std::string(R"({"data":[1]})"), std::string(R"({"data":[{"id":1}]})"), deep}) {
    const auto refused = read_host_list(wrong);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == Errc::MalformedMessage);
  }
  CHECK(position_of(json{{"id", "a"}, {"created_at", "x"}}, 0).created_at == 0);
}
