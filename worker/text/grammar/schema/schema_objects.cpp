#include <fmt/format.h>

#include <algorithm>

#include "worker/text/grammar/bounded_text.hpp"
#include "worker/text/grammar/schema/schema_compiler.hpp"

namespace leasehold {
namespace {

/// Each subset of the patterns may need its own rule.
constexpr std::size_t kMaxNamePatterns = 6;
constexpr std::uint64_t kMaxCountedMembers = 64;

/// The schemas of a member whose name matches `matched` and no other pattern.
Schemas schemas_for(const SchemaCase& one, const std::set<std::string>& matched) {
  Schemas all;
  for (const OrderedJson* part : one.parts) {
    bool is_matched = false;
    if (const auto patterns = part->find("patternProperties"); patterns != part->end()) {
      for (const auto& [text, schema] : patterns->items()) {
        if (!matched.contains(text)) continue;
        all.push_back(&schema);
        is_matched = true;
      }
    }
    const auto other = part->find("additionalProperties");
    if (!is_matched && other != part->end()) all.push_back(&*other);
  }
  return all;
}

}  // namespace

/// Patterns of `patternProperties`, each once, without those that are not supported.
Result<SchemaCompiler::NamePatterns> SchemaCompiler::name_patterns(const SchemaCase& one) {
  NamePatterns all;
  for (const OrderedJson* part : one.parts) {
    const auto patterns = part->find("patternProperties");
    if (patterns == part->end() || !patterns->is_object()) continue;
    for (const auto& [text, schema] : patterns->items()) {
      const bool is_known =
          std::ranges::any_of(all, [&](const auto& p) { return p.first == text; });
      if (is_known) continue;
      if (TRY(facts_.pattern(*patterns, text)) != nullptr) all.emplace_back(text, &*patterns);
    }
  }
  return all;
}

Result<Symbols> SchemaCompiler::object(const SchemaCase& one) {
  const ObjectFacts facts = TRY(facts_.object(one));
  MemberList list;
  list.declared = TRY(members(one, facts));
  list.extra = TRY(extra_members(one, facts));
  list.count = TRY(facts_.counts(one, "minProperties", "maxProperties"));
  if (list.count.min > kMaxCountedMembers)
    return context_.error(facts_.place(one),
                          fmt::format("minProperties is above {}", kMaxCountedMembers));
  if (list.extra && list.count.min > list.declared.size() + 1)
    return context_.error(
        facts_.place(one),
        "minProperties needs more than one member that `properties` does not name; "
        "name them, because additional names may be repeated");
  const bool never_reached =
      !list.extra && list.count.max && *list.count.max >= list.declared.size();
  if (never_reached) list.count.max.reset();
  if (list.count.max) list.count.max = std::min(*list.count.max, kMaxCountedMembers);
  const auto counted = std::max<std::uint64_t>(list.count.max.value_or(list.count.min), 1);
  TRY(context_.spend(facts_.place(one),
                     4 * (list.declared.size() + 1) * counted));  // the cost of the rules
  return GrammarBuilder::join(builder_.text("{"), after_members(list, 0, 0), builder_.text("}"));
}

Result<std::vector<SchemaCompiler::Member>> SchemaCompiler::members(const SchemaCase& one,
                                                                    const ObjectFacts& facts) {
  std::optional<TextAutomaton> allowed;
  if (!facts.property_names.empty()) allowed = TRY(values_.texts(facts.property_names));
  std::vector<Member> all;
  for (const std::string& name : facts.names) {
    TRY(context_.spend(facts_.place(one), 1 + name.size() / 8));
    const bool is_required = facts.required.contains(name);
    const bool is_forbidden = one.excludes(name) || (allowed && !allowed->accepts(name));
    if (is_forbidden && !is_required) continue;
    const Symbols what =
        is_forbidden ? builder_.character({}) : value(TRY(facts_.member(one, name)));
    const Symbols key =
        GrammarBuilder::join(builder_.text(OrderedJson(name).dump()), json_["colon"]);
    all.push_back({builder_.as_rule(GrammarBuilder::join(key, what)), is_required});
  }
  return all;
}

/// Matches one member that is not declared. It has one alternative for each set of patterns that a
/// name can match.
Result<std::optional<Symbols>> SchemaCompiler::extra_members(const SchemaCase& one,
                                                             const ObjectFacts& facts) {
  const NamePatterns patterns = TRY(name_patterns(one));
  if (one.allowed || (facts.is_closed && patterns.empty())) return std::nullopt;
  if (patterns.size() > kMaxNamePatterns)
    return context_.error(*patterns.front().second,
                          fmt::format("more than {} patterns for names", kMaxNamePatterns));
  std::vector<std::string> taken = facts.names;
  taken.insert(taken.end(), one.forbidden.begin(), one.forbidden.end());
  std::size_t n_bytes = 0;
  for (const std::string& name : taken) n_bytes += name.size();
  TRY(context_.spend(facts_.place(one), n_bytes));
  TextAutomaton others = TextAutomaton::of_words(taken).complement();
  const auto restrict = [&](TextAutomaton& set, const TextAutomaton& more) -> Result<void> {
    auto both = TextAutomaton::both(set, more, context_.work());
    if (!both) return context_.too_much_work(facts_.place(one));
    set = *std::move(both);
    return {};
  };
  if (!facts.property_names.empty()) {
    const auto names = TRY(values_.texts(facts.property_names));
    if (names) TRY(restrict(others, *names));
  }
  std::vector<Symbols> all;
  for (unsigned subset = facts.is_closed ? 1 : 0; subset < 1u << patterns.size(); ++subset) {
    TextAutomaton names = others;
    std::set<std::string> matched;
    for (std::size_t i = 0; i < patterns.size() && !names.is_empty(); ++i) {
      const TextAutomaton& pattern = *TRY(facts_.pattern(*patterns[i].second, patterns[i].first));
      const bool matches = (subset >> i & 1) != 0;
      if (matches) matched.insert(patterns[i].first);
      TRY(context_.spend(*patterns[i].second, pattern.states().size()));  // the cost of the copy
      TRY(restrict(names, matches ? pattern : pattern.complement()));
    }
    if (!names.is_empty()) TRY(add_extra(one, names, schemas_for(one, matched), all));
  }
  if (all.empty()) return std::nullopt;
  return builder_.as_rule(builder_.choice(std::move(all)));
}

Result<void> SchemaCompiler::add_extra(const SchemaCase& one, const TextAutomaton& names,
                                       const Schemas& schemas, std::vector<Symbols>& all) {
  const bool is_never = std::ranges::any_of(
      schemas, [](const OrderedJson* schema) { return *schema == OrderedJson(false); });
  if (is_never) return {};
  TRY(context_.spend(facts_.place(one), names.states().size()));
  all.push_back(GrammarBuilder::join(quoted(builder_, text_symbols(names, builder_)),
                                     json_["colon"], value(schemas)));
  return {};
}

Symbols SchemaCompiler::with_leading_comma(const Symbols& what) {
  return GrammarBuilder::join(json_["comma"], what);
}

/// A member after `n` others.
Symbols SchemaCompiler::with_separator(const Symbols& member, std::uint64_t n) {
  return n > 0 ? with_leading_comma(member) : GrammarBuilder::join(json_["line"], member);
}

/// The rest of an object after `n` members, from declared member `next` on. Members are counted
/// only as far as the bounds need.
Symbols SchemaCompiler::after_members(MemberList& list, std::size_t next, std::uint64_t n) {
  const std::uint64_t enough = std::max<std::uint64_t>(list.count.max.value_or(list.count.min), 1);
  n = std::min(n, enough);
  const auto known = list.known.find({next, n});
  if (known != list.known.end()) return known->second;
  Symbols rest;
  if (next == list.declared.size()) {
    rest = extra_list(list, n);
  } else {
    const Member& member = list.declared[next];
    std::vector<Symbols> alternatives;
    if (!list.count.max || n < *list.count.max) {
      const Symbols text = with_separator(member.text, n);
      alternatives.push_back(GrammarBuilder::join(text, after_members(list, next + 1, n + 1)));
    }
    if (!member.required) alternatives.push_back(after_members(list, next + 1, n));
    rest = alternatives.empty() ? builder_.character({})
                                : builder_.as_rule(builder_.choice(std::move(alternatives)));
  }
  list.known.emplace(std::pair(next, n), rest);
  return rest;
}

/// Additional members after `n` declared ones. Names may be repeated among them, so all of them
/// count as one towards the minimum.
Symbols SchemaCompiler::extra_list(const MemberList& list, std::uint64_t n) {
  std::vector<Symbols> alternatives;
  if (n >= list.count.min) alternatives.push_back(n > 0 ? json_["line"] : Symbols{});
  if (list.extra && n + 1 >= list.count.min && (!list.count.max || n < *list.count.max)) {
    Repetition more;
    if (list.count.max) more.max = static_cast<std::uint32_t>(*list.count.max - n - 1);
    alternatives.push_back(GrammarBuilder::join(
        with_separator(*list.extra, n), builder_.repeat(with_leading_comma(*list.extra), more),
        json_["line"]));
  }
  if (alternatives.empty()) return builder_.character({});
  return builder_.as_rule(builder_.choice(std::move(alternatives)));
}

}  // namespace leasehold
