#include "tests/unit/worker/text/chat/rendering.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/text/chat/json_value.hpp"

namespace leasehold::testing {
namespace {

constexpr std::int64_t kNowUnixS = 1732104000;

constexpr const char* kVariables = R"({
  "word": "Lease", "space": " a b \n", "accent": "naïve", "n": 7, "half": 2.5, "list": [3, 1, 2],
  "names": ["b", "A", "c", "a"], "dict": {"b": 1, "a": "x"}, "nothing": null, "yes": true,
  "deep": [{"x": {"y": 2}}, {"x": {"y": 1}}],
  "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
               {"role": "assistant", "content": "'Yes'", "note": 3}]
})";

}  // namespace

Result<MarkedText> render(std::string_view source, const jinja::Limits& limits) {
  auto parsed = jinja::Template::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  jinja::Template::Variables variables;
  const auto json = nlohmann::ordered_json::parse(kVariables);
  for (const auto& [name, value] : json.items())
    variables.emplace_back(name, value_from_json(value).value());
  return parsed->render(variables, kNowUnixS, limits);
}

std::string rendered(std::string_view source) {
  const auto text = render(source);
  return text ? text->bytes() : fmt::format("{}: {}", name(text.error().code), text.error().detail);
}

void check_examples(const std::vector<Example>& examples) {
  for (const auto& [source, expected] : examples) {
    INFO(source);
    CHECK(rendered(source) == expected);
  }
}

void check_errors(const std::string& code, const std::vector<Example>& examples) {
  using namespace Catch::Matchers;
  for (const auto& [source, expected] : examples)
    CHECK_THAT(rendered(source), StartsWith(code) && Contains(std::string(expected)));
}

}  // namespace leasehold::testing
