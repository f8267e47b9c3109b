/// Renders templates for compare.py. Reads a JSON array of
/// {"template": text, "variables": object, "now_unix_s": integer} from stdin and writes an array of
/// {"text": text} or {"error": text} to stdout.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "worker/text/chat/jinja/template.hpp"
#include "worker/text/chat/json_value.hpp"

namespace {

using Json = nlohmann::ordered_json;
using namespace leasehold;

Result<std::string> render(const Json& one) {
  const auto parsed = TRY(jinja::Template::parse(one["template"].get<std::string>()));
  jinja::Template::Variables variables;
  for (const auto& [name, value] : one["variables"].items())
    variables.emplace_back(name, TRY(value_from_json(value)));
  return TRY(parsed.render(variables, one["now_unix_s"].get<std::int64_t>())).take_bytes();
}

}  // namespace

int main() {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  Json results = Json::array();
  for (const Json& one : Json::parse(input)) {
    const auto text = render(one);
    results.push_back(text ? Json{{"text", *text}}
                           : Json{{"error", fmt::format("{}: {}", name(text.error().code),
                                                        text.error().detail)}});
  }
  std::cout << results.dump() << '\n';
}
