#include "worker/text/grammar/json_schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"
#include "worker/text/grammar/schema_compiler.hpp"

namespace leasehold {
namespace {

constexpr int kMaxDepth = 64;

bool nests_deeper_than(int levels, const OrderedJson& json) {
  if (!json.is_structured()) return false;
  if (levels == 0) return true;
  return std::ranges::any_of(
      json, [levels](const OrderedJson& part) { return nests_deeper_than(levels - 1, part); });
}

/// Checks depth after parsing: the library's callback takes quadratic time.
Result<OrderedJson> parse(std::string_view text) {
  try {
    OrderedJson document = OrderedJson::parse(text);
    if (!nests_deeper_than(kMaxDepth, document)) return document;
    return fail(Errc::BadRequest,
                fmt::format("JSON schema: nested deeper than {} levels", kMaxDepth));
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::BadRequest, fmt::format("JSON schema: {}", error.what()));
  }
}

}  // namespace

Result<Grammar> parse_json_schema(std::string_view text) {
  const OrderedJson document = TRY(parse(text));
  GrammarBuilder builder;
  SchemaCompiler reader(document, builder);
  const RuleId root = TRY(reader.read());
  return builder.finish(root);
}

Grammar json_object_grammar() {
  GrammarBuilder builder;
  const JsonRules json(builder);
  const RuleId root = builder.declare("json object");
  builder.define(root, {json["object"]});
  auto grammar = builder.finish(root);
  ensures(grammar.has_value(), "the built-in grammar compiles");
  return *std::move(grammar);
}

}  // namespace leasehold
