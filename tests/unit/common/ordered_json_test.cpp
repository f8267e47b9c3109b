#include "common/ordered_json.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using Json = nlohmann::ordered_json;

TEST_CASE("ordered json: the value and the order of members are those of the library's parser") {
  for (const char* text :
       {R"({"b":1,"a":{"d":[1,-2,3.5e1,true,false,null,"x\n"],"c":{}},"":[]})", "[]", "{}", "7",
        R"("text")", "[[[]],{}]", R"({"z":18446744073709551615,"y":-1,"x":0.1})"}) {
    const auto parsed = parse_ordered_json(text);
    REQUIRE(parsed.has_value());
    CHECK(*parsed == Json::parse(text));
    CHECK(parsed->dump() == Json::parse(text).dump());
  }
}

TEST_CASE("ordered json: of members with one name the last value counts, at the first place") {
  for (const char* text : {R"({"a":1,"b":2,"a":3,"c":4,"b":5,"a":6})", R"({"a":{"x":1},"a":[2]})",
                           R"([{"k":1,"k":1},{"k":{"k":1,"k":2},"k":3}])"}) {
    const auto parsed = parse_ordered_json(text);
    REQUIRE(parsed.has_value());
    CHECK(parsed->dump() == Json::parse(text).dump());
  }
}

TEST_CASE("ordered json: an object of members is that of the parser") {
  const Json object = ordered_object({{"b", 1}, {"a", {2}}, {"b", 3}});
  CHECK(object.dump() == R"({"b":3,"a":[2]})");
  CHECK(ordered_object({}).dump() == "{}");
}

TEST_CASE("ordered json: levels are counted to the deepest value") {
  const auto nests = [](int levels, const char* text) {
    return nests_deeper_than(levels, *parse_ordered_json(text));
  };
  CHECK_FALSE(nests(0, "1"));
  CHECK(nests(0, "[]"));
  CHECK_FALSE(nests(2, R"([{"a":1}])"));
  CHECK(nests(1, R"([1,{"a":1}])"));
}

TEST_CASE("ordered json: what is not JSON is refused with the library's text") {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "\"\xff\"", "1 2", "nul"}) {
    const auto parsed = parse_ordered_json(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code == Errc::BadRequest);
    CHECK(parsed.error().detail.contains("parse error"));
  }
}

TEST_CASE("ordered json: the members of an object are not compared with each other") {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += '"' + std::to_string(i) + "\":0,";
  text.back() = '}';
  const auto parsed = parse_ordered_json(text);  // the library takes 4.5 * 10^10 comparisons
  REQUIRE(parsed.has_value());
  CHECK(parsed->size() == 300'000);
}
