#include "worker/grammar/json_schema.hpp"

#include <fmt/format.h>

#include "common/expects.hpp"
#include "worker/grammar/schema_reader.hpp"

namespace leasehold {
namespace {

constexpr int kMaxDepth = 64;

Result<OrderedJson> parse(std::string_view text) {
  bool too_deep = false;
  const auto watch = [&too_deep](int depth, OrderedJson::parse_event_t, OrderedJson&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  try {
    OrderedJson document = OrderedJson::parse(text, watch);
    if (!too_deep) return document;
    return fail(Errc::BadRequest,
                fmt::format("JSON schema: nested deeper than {} levels", kMaxDepth));
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::BadRequest, fmt::format("JSON schema: {}", error.what()));
  }
}

}  // namespace

Result<Grammar> read_json_schema(std::string_view text) {
  const OrderedJson document = TRY(parse(text));
  GrammarBuilder builder;
  SchemaReader reader(document, builder);
  const RuleId root = TRY(reader.read());
  return builder.finish(root);
}

Grammar json_object_grammar() {
  GrammarBuilder builder;
  const JsonRules json(builder);
  const RuleId root = builder.declare("json object");
  builder.define(root, {json["object"]});
  auto grammar = builder.finish(root);
  ensures(grammar.has_value(), "our own grammar is one");
  return *std::move(grammar);
}

}  // namespace leasehold
