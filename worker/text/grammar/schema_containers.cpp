#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "common/utf8.hpp"
#include "worker/text/grammar/schema_compiler.hpp"

namespace leasehold {
namespace {

/// Longer names would make the tree of other names too deep.
constexpr std::size_t kMaxNameBytes = 256;

std::u32string code_points(std::string_view text) {
  std::u32string points;
  while (!text.empty()) points += static_cast<char32_t>(take_code_point(text));
  return points;
}

bool needs_escape(std::uint32_t c) {
  return c < 0x20 || c == '"' || c == '\\';
}

}  // namespace

Symbols SchemaCompiler::with_leading_comma(const Symbols& what) {
  return GrammarBuilder::join(builder_.text(","), json_["ws"], what);
}

// ---------------------------------------------------------------------------------------- objects

Result<Symbols> SchemaCompiler::object(const SchemaNode& node) {
  const std::vector<Member> all = TRY(members(node));
  const std::optional<Symbols> extra = TRY(extra_member(node));
  return GrammarBuilder::join(builder_.text("{"), json_["ws"], member_list(all, extra),
                              builder_.text("}"));
}

/// Members in `properties`, then members in `required` only.
Result<std::vector<SchemaCompiler::Member>> SchemaCompiler::members(const SchemaNode& node) {
  static const OrderedJson kNothing = OrderedJson::object();
  const bool has_properties = node.schema.contains("properties");
  const OrderedJson& properties = has_properties ? node.schema.at("properties") : kNothing;
  if (!properties.is_object()) return schema_error(node.at("properties"), "expected an object");
  std::set<std::string> required;
  std::vector<std::string> names;
  for (const auto& [name, schema] : properties.items()) names.push_back(name);
  if (node.schema.contains("required")) {
    const SchemaNode list = node.at("required");
    if (!list.schema.is_array()) return schema_error(list, "expected a list of names");
    for (const OrderedJson& name : list.schema) {
      if (!name.is_string()) return schema_error(list, "expected a list of names");
      const bool is_new = required.insert(name.get<std::string>()).second;
      if (is_new && !properties.contains(name.get<std::string>()))
        names.push_back(name.get<std::string>());
    }
  }
  const auto other = node.schema.find("additionalProperties");
  std::vector<Member> all;
  for (const std::string& name : names) {
    Symbols what = json_["value"];
    if (properties.contains(name)) {
      what = TRY(value({properties.at(name), node.path + "/properties/" + name}));
    } else if (other != node.schema.end()) {
      what = TRY(value(node.at("additionalProperties")));  // `false` is refused by value()
    }
    const Symbols key = builder_.text(OrderedJson(name).dump() + ":");
    const Symbols text = GrammarBuilder::join(key, json_["ws"], what, json_["ws"]);
    all.push_back(
        {name, builder_.as_rule(node.path + "/properties/" + name, text), required.contains(name)});
  }
  return all;
}

/// An additional member, if allowed.
Result<std::optional<Symbols>> SchemaCompiler::extra_member(const SchemaNode& node) {
  const bool has_properties = node.schema.contains("properties");
  const auto other = node.schema.find("additionalProperties");
  const bool is_absent = other == node.schema.end();
  if (is_absent ? has_properties : *other == OrderedJson(false)) return std::nullopt;
  const Symbols what = is_absent ? json_["value"] : TRY(value(node.at("additionalProperties")));
  std::vector<std::u32string> names;
  const auto add = [&names](const std::string& name) {
    if (name.size() <= kMaxNameBytes) names.push_back(code_points(name));
    return name.size() <= kMaxNameBytes;
  };
  bool fits = true;
  if (has_properties) {
    for (const auto& [name, schema] : node.schema.at("properties").items())
      fits = add(name) && fits;
  }
  if (node.schema.contains("required")) {
    for (const OrderedJson& name : node.schema.at("required")) fits = add(name) && fits;
  }
  if (!fits)
    return schema_error(
        node,
        fmt::format("a name of more than {} bytes beside additionalProperties", kMaxNameBytes));
  const Symbols key = GrammarBuilder::join(builder_.text("\""), key_other_than(names));
  return builder_.as_rule(
      node.path + "/additionalProperties",
      GrammarBuilder::join(key, builder_.text(":"), json_["ws"], what, json_["ws"]));
}

/// The rest of a name that differs from all `names`, and the closing quote.
Symbols SchemaCompiler::key_other_than(const std::vector<std::u32string>& names) {
  std::map<char32_t, std::vector<std::u32string>> by_first;
  bool may_end = true;
  for (const std::u32string& name : names) {
    if (name.empty()) {
      may_end = false;
    } else {
      by_first[name.front()].push_back(name.substr(1));
    }
  }
  CharacterClass taken{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  std::vector<Symbols> alternatives;
  for (const auto& [first, rests] : by_first) {
    if (needs_escape(first)) continue;  // names without escapes cannot contain it
    taken.push_back({first, first});
    alternatives.push_back(
        GrammarBuilder::join(builder_.character({{first, first}}), key_other_than(rests)));
  }
  const Symbols plain = builder_.character(complement_of({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  alternatives.push_back(GrammarBuilder::join(builder_.character(complement_of(taken)),
                                              builder_.repeat(plain, {}), builder_.text("\"")));
  if (may_end) alternatives.push_back(builder_.text("\""));
  return builder_.choice(std::move(alternatives));
}

/// Built from the last member to the first: the rest of the object after another member (`after`),
/// and without one before it (`first`).
Symbols SchemaCompiler::member_list(const std::vector<Member>& members,
                                    const std::optional<Symbols>& extra) {
  Symbols after;
  Symbols first;
  if (extra) {
    after = builder_.repeat(with_leading_comma(*extra), {});
    first = builder_.choice({GrammarBuilder::join(*extra, after), {}});
  }
  for (const Member& member : members | std::views::reverse) {
    const Symbols with = GrammarBuilder::join(member.text, after);
    first = member.required ? with : builder_.choice({with, first});
    const Symbols with_comma = with_leading_comma(with);
    after =
        member.required ? builder_.as_rule({}, with_comma) : builder_.choice({with_comma, after});
  }
  return first;
}

// ----------------------------------------------------------------------------------------- arrays

Result<Symbols> SchemaCompiler::array(const SchemaNode& node) {
  const Repetition count = TRY(bounds(node, "minItems", "maxItems"));
  return GrammarBuilder::join(builder_.text("["), json_["ws"], TRY(element_list(node, count)),
                              builder_.text("]"));
}

Result<Symbols> SchemaCompiler::element_list(const SchemaNode& node, const Repetition& count) {
  std::vector<Symbols> fixed;
  if (node.schema.contains("prefixItems")) {
    const SchemaNode list = node.at("prefixItems");
    if (!list.schema.is_array()) return schema_error(list, "expected a list of schemas");
    for (std::size_t i = 0; i < list.schema.size() && i < count.max.value_or(UINT32_MAX); ++i)
      fixed.push_back(GrammarBuilder::join(
          TRY(value({list.schema[i], fmt::format("{}/{}", list.path, i)})), json_["ws"]));
  }
  const auto n_fixed = static_cast<std::uint32_t>(fixed.size());
  const auto items = node.schema.find("items");
  const bool is_closed = items != node.schema.end() && *items == OrderedJson(false);
  if (is_closed && count.min > n_fixed)
    return schema_error(node, "minItems is above the number of allowed items");
  const bool has_more = !is_closed && count.max.value_or(UINT32_MAX) > n_fixed;
  if (fixed.empty() && !has_more) return Symbols{};

  Symbols rest;  // all later elements
  std::uint32_t at_front = n_fixed;
  if (has_more) {
    const Symbols what = items == node.schema.end() ? json_["value"] : TRY(value(node.at("items")));
    const Symbols element =
        builder_.as_rule(node.path + "/items", GrammarBuilder::join(what, json_["ws"]));
    if (fixed.empty()) fixed.push_back(element);
    at_front = static_cast<std::uint32_t>(fixed.size());
    const auto minus = [at_front](std::uint32_t n) { return n > at_front ? n - at_front : 0; };
    const auto max = count.max ? std::optional(minus(*count.max)) : std::nullopt;
    rest = builder_.repeat(with_leading_comma(element), {minus(count.min), max});
  }
  for (std::uint32_t i = at_front; i-- > 0;) {
    const Symbols with =
        GrammarBuilder::join(i > 0 ? with_leading_comma(fixed[i]) : fixed[i], rest);
    rest = i < count.min ? builder_.as_rule({}, with) : builder_.choice({with, {}});
  }
  return rest;
}

}  // namespace leasehold
