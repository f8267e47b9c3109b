#include "tools/cli/json_text.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using leasehold::cli::json_text;
using Json = nlohmann::json;

TEST_CASE("json_text: control characters are escaped, and the document stays the same") {
  const Json document{{"name", "a\x1b\x7F\xC2\x80\xC2\x9F\xC2\xA0\xC3\xA9z"}};
  const std::string text = json_text(document);

  CHECK(text == "{\"name\":\"a\\u001b\\u007f\\u0080\\u009f\xC2\xA0\xC3\xA9z\"}");
  CHECK(Json::parse(text) == document);
}

TEST_CASE("json_text: format controls are escaped, and the document stays the same") {
  const Json document = "a\u202eb\u061cc\u00e9";
  const std::string text = json_text(document);
  CHECK(text.contains("\\u202e"));
  CHECK(text.contains("\\u061c"));
  CHECK(text.contains("é"));
  CHECK(Json::parse(text) == document);
}

TEST_CASE("json_text: invalid UTF-8 is replaced, also at the end") {
  CHECK(json_text(Json("a\xC2")) == "\"a\xEF\xBF\xBD\"");
}

TEST_CASE("json_text: an indent makes several lines") {
  CHECK(json_text(Json{{"a", 1}}, 2) == "{\n  \"a\": 1\n}");
}
