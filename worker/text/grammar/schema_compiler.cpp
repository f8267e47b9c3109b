#include "worker/text/grammar/schema_compiler.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {
namespace {

/// The keywords that apply to one type.
const std::map<std::string, std::set<std::string>>& keywords_by_type() {
  static const std::map<std::string, std::set<std::string>> kKeywords{
      {"object", {"properties", "required", "additionalProperties"}},
      {"array", {"items", "prefixItems", "minItems", "maxItems"}},
      {"string", {"minLength", "maxLength", "pattern", "format"}},
      {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
      {"number", {}},
      {"boolean", {}},
      {"null", {}}};
  return kKeywords;
}

/// Annotations, and containers of definitions.
bool is_annotation(const std::string& keyword) {
  static const std::set<std::string> kAnnotations{
      "$id",         "$schema", "$comment", "$anchor",    "$defs",    "definitions", "title",
      "description", "default", "examples", "deprecated", "readOnly", "writeOnly"};
  return kAnnotations.contains(keyword);
}

}  // namespace

// ------------------------------------------------------------------------------ the whole document

SchemaCompiler::SchemaNode SchemaCompiler::SchemaNode::at(const std::string& key) const {
  return {schema.at(key), path + "/" + key};
}

std::unexpected<Error> SchemaCompiler::schema_error(const SchemaNode& node,
                                                    const std::string& what) {
  return fail(Errc::BadRequest, fmt::format("JSON schema, {}: {}", node.path, what));
}

Result<RuleId> SchemaCompiler::read() {
  const RuleId root = rule_for("");
  while (!pending_.empty()) {
    const std::string pointer = std::move(pending_.front());
    pending_.pop_front();
    const OrderedJson& schema = document_.at(OrderedJson::json_pointer(pointer));
    builder_.define(by_pointer_.at(pointer), {TRY(value({schema, "#" + pointer}))});
  }
  return root;
}

/// Compiled later, because a schema may refer to one that is being compiled.
RuleId SchemaCompiler::rule_for(const std::string& pointer) {
  const auto [known, is_new] = by_pointer_.emplace(pointer, RuleId{});
  if (is_new) {
    known->second = builder_.declare("#" + pointer);
    pending_.push_back(pointer);
  }
  return known->second;
}

Result<Symbols> SchemaCompiler::reference(const SchemaNode& node) {
  TRY(check_keywords(node, {"$ref"}));
  const OrderedJson& target = node.schema.at("$ref");
  const std::string text = target.is_string() ? target.get<std::string>() : std::string();
  if (!text.starts_with('#')) return schema_error(node.at("$ref"), "expected \"#\" or \"#/…\"");
  const std::string pointer = text.substr(1);
  const bool is_there = [&] {
    try {
      return document_.contains(OrderedJson::json_pointer(pointer));
    } catch (const nlohmann::json::exception&) {
      return false;
    }
  }();
  if (!is_there)
    return schema_error(node.at("$ref"), fmt::format("there is no '{}' in this document", text));
  return GrammarBuilder::rule(rule_for(pointer));
}

// ------------------------------------------------------------------------------------- one schema

Result<void> SchemaCompiler::check_keywords(const SchemaNode& node,
                                            const std::set<std::string>& known) {
  for (const auto& [keyword, value] : node.schema.items()) {
    if (!known.contains(keyword) && !is_annotation(keyword))
      return schema_error(node, fmt::format("'{}' is not supported here", keyword));
  }
  return {};
}

Result<std::vector<std::string>> SchemaCompiler::types_of(const SchemaNode& node) {
  std::vector<std::string> types;
  if (!node.schema.contains("type")) {
    for (const auto& [name, keywords] : keywords_by_type()) {
      if (std::ranges::any_of(keywords, [&](const auto& k) { return node.schema.contains(k); }))
        types.push_back(name);
    }
    return types;
  }
  const SchemaNode type = node.at("type");
  if (!type.schema.is_string() && (!type.schema.is_array() || type.schema.empty()))
    return schema_error(type, "expected the name of a type or a list of them");
  for (const OrderedJson& one :
       type.schema.is_array() ? type.schema : OrderedJson::array({type.schema})) {
    if (!one.is_string() || !keywords_by_type().contains(one.get<std::string>()))
      return schema_error(type, "expected object, array, string, number, integer, boolean or null");
    types.push_back(one.get<std::string>());
  }
  return types;
}

Result<Symbols> SchemaCompiler::value(const SchemaNode& node) {
  const OrderedJson& schema = node.schema;
  if (schema.is_boolean() && schema.get<bool>()) return json_["value"];
  if (schema.is_boolean()) return schema_error(node, "'false' allows no text");
  if (!schema.is_object()) return schema_error(node, "expected a schema: an object, true or false");
  if (builder_.is_full())
    return schema_error(node, "the schema is too large up to here; make it smaller");
  if (schema.contains("$ref")) return reference(node);
  if (schema.contains("const") || schema.contains("enum")) return literals(node);
  for (const char* keyword : {"anyOf", "oneOf"})
    if (schema.contains(keyword)) return alternatives(node, keyword);
  if (schema.contains("allOf")) return all_of(node);
  return typed(node);
}

Result<Symbols> SchemaCompiler::alternatives(const SchemaNode& node, const char* keyword) {
  TRY(check_keywords(node, {keyword}));
  const SchemaNode list = node.at(keyword);
  if (!list.schema.is_array() || list.schema.empty())
    return schema_error(list, "expected a list of schemas");
  std::vector<Symbols> all;
  for (std::size_t i = 0; i < list.schema.size(); ++i)
    all.push_back(TRY(value({list.schema[i], fmt::format("{}/{}", list.path, i)})));
  return builder_.choice(std::move(all));
}

/// Merges objects member by member; a member described twice is refused.
Result<Symbols> SchemaCompiler::all_of(const SchemaNode& node) {
  TRY(check_keywords(node, {"allOf"}));
  const SchemaNode list = node.at("allOf");
  if (!list.schema.is_array() || list.schema.empty())
    return schema_error(list, "expected a list of schemas");
  if (list.schema.size() == 1) return value({list.schema[0], list.path + "/0"});
  OrderedJson merged{{"type", "object"},
                     {"properties", OrderedJson::object()},
                     {"required", OrderedJson::array()}};
  for (std::size_t i = 0; i < list.schema.size(); ++i) {
    const SchemaNode part{list.schema[i], fmt::format("{}/{}", list.path, i)};
    if (!part.schema.is_object()) return schema_error(part, "expected the schema of an object");
    TRY(check_keywords(part, {"type", "properties", "required"}));
    if (TRY(types_of(part)) != std::vector<std::string>{"object"})
      return schema_error(part, "only schemas of objects can be merged");
    const OrderedJson properties = part.schema.value("properties", OrderedJson::object());
    if (!properties.is_object()) return schema_error(part.at("properties"), "expected an object");
    for (const auto& [name, schema] : properties.items()) {
      if (merged["properties"].contains(name))
        return schema_error(part, fmt::format("property '{}' is described twice", name));
      merged["properties"][name] = schema;
    }
    const OrderedJson required = part.schema.value("required", OrderedJson::array());
    if (!required.is_array()) return schema_error(part.at("required"), "expected a list of names");
    for (const OrderedJson& name : required) merged["required"].push_back(name);
  }
  return object({merged, list.path});
}

Result<Symbols> SchemaCompiler::typed(const SchemaNode& node) {
  const std::vector<std::string> types = TRY(types_of(node));
  std::set<std::string> known{"type"};
  for (const std::string& type : types) {
    const auto& keywords = keywords_by_type().at(type);
    known.insert(keywords.begin(), keywords.end());
  }
  TRY(check_keywords(node, known));
  if (types.empty()) return json_["value"];
  std::vector<Symbols> all;
  for (const std::string& type : types) all.push_back(TRY(of_type(node, type)));
  return builder_.choice(std::move(all));
}

Result<Symbols> SchemaCompiler::of_type(const SchemaNode& node, const std::string& type) {
  if (type == "object") return object(node);
  if (type == "array") return array(node);
  if (type == "string") return string(node);
  if (type == "integer") return integer(node);
  return json_[type];
}

}  // namespace leasehold
