// JSON schemas, built from the input so that every input is one: each byte is a choice. Numbers and
// counts are extreme on purpose. Checks the bounds of compiling, and that a lenient schema means
// the same as a strict one that needs no lenience.
#include <nlohmann/json.hpp>

#include "tests/fuzz/compile_bounds.hpp"

using namespace leasehold;

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxNesting = 5;

class SchemaWriter {
 public:
  explicit SchemaWriter(fuzz::Input& input) : input_(input) {}

  Json document() {
    Json all = schema(0);
    if (!all.is_object()) return all;
    all["$defs"] = {{"a", schema(1)}, {"b", schema(1)}};
    return all;
  }

 private:
  template <class T, std::size_t N>
  T one_of(const T (&all)[N]) {
    return all[input_.byte() % N];
  }

  /// Mostly few, sometimes hundreds.
  std::size_t count() {
    static constexpr std::size_t kCounts[] = {1, 1, 2, 2, 3, 4, 8, 100, 700};
    return one_of(kCounts);
  }

  Json number() {
    static const Json kNumbers[] = {0,  1,  2,     3,    7,     64,   65,     512,
                                    -1, -9, 65536, 1e15, 1e300, 0.25, -1e-40, 9007199254740993};
    return one_of(kNumbers);
  }

  std::string name() {
    static const std::string kNames[] = {
        "a", "b", "c", "kind", "\x1b", "é", std::string(3000, 'n')};
    return one_of(kNames);
  }

  std::string pattern() {
    static const std::string kAtoms[] = {"a",
                                         "[a-z]",
                                         "\\d",
                                         ".",
                                         "[^x]",
                                         "(a|",
                                         ")",
                                         "(b",
                                         ")",
                                         "|",
                                         "^",
                                         "$",
                                         "\\W",
                                         "[\\x00-\\x1f]",
                                         std::string("[") + std::string(2000, 'z') + "]"};
    static const std::string kTimes[] = {"", "", "", "*", "+", "?", "{0,9}", "{300}", "{2,65536}"};
    std::string all;
    for (std::size_t n = std::min<std::size_t>(count(), 8); n > 0; --n) {
      all += one_of(kAtoms);
      all += one_of(kTimes);
    }
    return all;
  }

  Json value(int nesting) {
    static const Json kValues[] = {nullptr, true, 0, 1, -3, 2.5, 1e300, "", "a", "kind"};
    if (nesting < 2 && input_.byte() % 4 == 0)
      return {{name(), value(nesting + 1)}, {"b", Json::array({value(nesting + 1)})}};
    return one_of(kValues);
  }

  template <class Make>
  Json list(Make make) {
    const Json first = make();
    const std::size_t n =
        std::min(count(), 1 + SamplingParams::kMaxGrammarBytes / first.dump().size());
    Json all = Json::array({first});
    // Many are copies of a few: the work counts, not the text.
    while (all.size() < n) all.push_back(all.size() < 4 ? make() : first);
    return all;
  }

  template <class Make>
  Json members(Make make) {
    const std::size_t n = count();
    Json all = Json::object();
    for (std::size_t i = 0; i < n; ++i) all[i < 4 ? name() : std::to_string(i)] = make();
    return all;
  }

  Json schema(int nesting) {
    if (input_.empty() || nesting > kMaxNesting) return Json::object();
    const std::uint8_t first = input_.byte();
    if (first >= 250) return first % 2 == 0;
    Json all = Json::object();
    for (int n = first % 5; n >= 0; --n) add_keyword(all, nesting);
    return all;
  }

  void add_keyword(Json& to, int nesting) {
    const auto inner = [&] { return schema(nesting + 1); };
    const auto names = [&] { return Json(name()); };
    static const char* const kBounds[] = {
        "minimum",  "maximum",  "exclusiveMinimum", "multipleOf",    "minLength",       "maxLength",
        "minItems", "maxItems", "minProperties",    "maxProperties", "exclusiveMaximum"};
    static const char* const kParts[] = {
        "additionalProperties", "items",          "propertyNames", "not", "if", "contains",
        "unevaluatedItems",     "additionalItems"};
    static const char* const kLists[] = {"anyOf", "allOf", "oneOf", "prefixItems", "items"};
    static const char* const kMaps[] = {"properties", "patternProperties", "dependentSchemas",
                                        "dependencies"};
    static const char* const kTypes[] = {"object",  "array",   "string", "number",
                                         "integer", "boolean", "null"};
    static const char* const kTargets[] = {"#", "#/$defs/a", "#/$defs/b", "#/items", "#none"};
    static const char* const kFormats[] = {"date", "uri", "ipv6", "email", "regex", "\n"};
    switch (input_.byte() % 12) {
      case 0:
        to["type"] = one_of(kTypes);
        break;
      case 1:
        to["type"] = {one_of(kTypes), one_of(kTypes)};
        break;
      case 2:
        to[one_of(kBounds)] = number();
        break;
      case 3:
        to[one_of(kParts)] = inner();
        break;
      case 4:
        to[one_of(kLists)] = list(inner);
        break;
      case 5:
        to[one_of(kMaps)] = members(inner);
        break;
      case 6:
        to["enum"] = list([&] { return value(0); });
        break;
      case 7:
        to["pattern"] = pattern();
        break;
      case 8:
        to["format"] = one_of(kFormats);
        break;
      case 9:
        to["required"] = list(names);
        break;
      case 10:
        to["$ref"] = one_of(kTargets);
        break;
      default:
        to["patternProperties"] = {{pattern(), inner()}, {pattern(), inner()}};
        break;
    }
  }

  fuzz::Input& input_;
};

void check_lenience(const Result<std::shared_ptr<const Grammar>>& strict,
                    const Result<std::shared_ptr<const Grammar>>& lenient) {
  if (!lenient) fuzz::check(!lenient.error().detail.contains("no grammar can promise"));
  if (!strict) return;
  fuzz::check(lenient.has_value());
  fuzz::check((*strict)->symbols == (*lenient)->symbols);
  fuzz::check((*strict)->unchecked == (*lenient)->unchecked);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input{{data, size}};
  const std::string text = SchemaWriter(input).document().dump();
  if (text.size() > SamplingParams::kMaxGrammarBytes) return 0;
  const auto strict = fuzz::compile_within_bounds({GrammarKind::JsonSchema, text});
  check_lenience(strict, fuzz::compile_within_bounds({GrammarKind::LenientJsonSchema, text}));
  return 0;
}
