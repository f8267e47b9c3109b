#include "worker/http/api/constraint_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "ipc/control/transport/excess.hpp"
#include "worker/text/grammar/gbnf.hpp"
#include "worker/text/grammar/regex.hpp"

namespace leasehold::http {
namespace {

/// At most one of the members is set.
struct Constraint {
  wire::ResponseFormat format;
  std::string grammar;
  std::string regex;
  std::string schema_path;

  bool is_none() const { return format.type == "text" && grammar.empty() && regex.empty(); }
};

/// Reads the value of one field. A field that asks for nothing gives no constraint.
using ReadValue = Read<Constraint> (*)(const Field&);
struct Spelling {
  const char* key;
  ReadValue read;
};

Read<void> check_size(const Field& field, const std::string& text) {
  if (text.size() <= SamplingParams::kMaxGrammarBytes) return {};
  return field.refuse(fmt::format("{} has {} bytes; at most {} are allowed", field.path(),
                                  text.size(), SamplingParams::kMaxGrammarBytes));
}

/// Reads a text of limited size. llama.cpp's clients send an empty text for no constraint.
Read<std::string> checked_text(const Field& field) {
  std::string text = TRY(text_of(field, {}));
  TRY(check_size(field, text));
  return text;
}

/// Checks that the grammar is well-formed; the worker compiles it.
Read<Constraint> grammar_constraint(const Field& field) {
  std::string grammar = TRY(checked_text(field));
  GrammarBuilder builder;
  const auto rules = add_gbnf_rules(grammar, builder);
  if (!grammar.empty() && !rules) return field.refuse(rules.error().detail);
  return Constraint{.grammar = std::move(grammar)};
}

Read<Constraint> regex_constraint(const Field& field) {
  std::string regex = TRY(checked_text(field));
  if (const auto checked = check_regex(regex); !checked)
    return field.refuse(checked.error().detail);
  return Constraint{.regex = std::move(regex)};
}

Read<Constraint> schema_constraint(const Field& field, bool strict) {
  std::string schema = field.json().dump();
  TRY(check_size(field, schema));
  return Constraint{
      .format = {.type = "json_schema", .schema = std::move(schema), .strict = strict},
      .schema_path = field.path()};
}

/// Reads a schema, sent as JSON or as a text that contains JSON.
Read<Constraint> json_constraint(const Field& field) {
  if (field.json().is_object() || field.json().is_boolean()) return schema_constraint(field, true);
  if (!field.json().is_string()) {
    return field.refuse(
        fmt::format("{} is a JSON schema, got {}", field.path(), shown(field.json())));
  }
  const std::string text = TRY(checked_text(field));
  if (text.empty()) return Constraint{};
  const auto parsed = control::parse_request_json(text, field.path());
  if (!parsed) return field.refuse(parsed.error().detail);
  return json_constraint(Field(&*parsed, field.path()));
}

Read<Constraint> object_constraint(const Field& field) {
  return Constraint{.format = {.type = TRY(flag_of(field, false)) ? "json_object" : "text"}};
}

/// Makes the whole text one of the choices.
Read<Constraint> choice_constraint(const Field& field) {
  TRY(check_array(field, SamplingParams::kMaxGrammarBytes));
  if (field.json().empty())
    return field.refuse(fmt::format("{} is empty; send at least one text", field.path()));
  std::string regex;
  for (std::size_t i = 0; i < field.json().size(); ++i) {
    const Field one = field.at(i);
    if (!one) return one.refuse(fmt::format("{} is a text, got null", one.path()));
    if (i > 0) regex += '|';
    regex += regex_of_text(TRY(text_of(one, {})));
  }
  TRY(check_size(field, regex));
  return Constraint{.regex = regex.empty() ? "()" : std::move(regex)};
}

Read<Constraint> unsupported_constraint(const Field& field) {
  return field.refuse(fmt::format("{} is not supported; leave it out", field.path()));
}

Read<Constraint> unsupported_flag(const Field& field) {
  if (!TRY(flag_of(field, false))) return Constraint{};
  return unsupported_constraint(field);
}

/// The constraint of the only field that has one, and the path of that field.
struct Found {
  Constraint constraint;
  std::string path;
};

/// Reads the fields in the order of the body, so that an error names the constraint that the client
/// wrote later.
Read<Found> read_one(std::vector<std::pair<Field, ReadValue>> fields) {
  std::erase_if(fields, [](const auto& each) { return !each.first; });
  std::ranges::sort(fields, std::less<>(), [](const auto& each) { return &each.first.json(); });
  Found found;
  for (const auto& [field, read] : fields) {
    Constraint constraint = TRY(read(field));
    if (constraint.is_none()) continue;
    if (!found.path.empty()) {
      return field.refuse(
          fmt::format("{} and {} exclude each other; send one", found.path, field.path()));
    }
    found = {std::move(constraint), field.path()};
  }
  return found;
}

Read<Found> read_members(const Field& field, std::span<const Spelling> spellings) {
  std::vector<std::pair<Field, ReadValue>> fields;
  for (const Spelling& spelling : spellings)
    fields.emplace_back(field[spelling.key], spelling.read);
  return read_one(std::move(fields));
}

// ------------------------------------------------------------------------------ structured_outputs

constexpr Spelling kStructured[] = {
    {"json", json_constraint},
    {"regex", regex_constraint},
    {"choice", choice_constraint},
    {"grammar", grammar_constraint},
    {"json_object", object_constraint},
    {"structural_tag", unsupported_constraint},
    {"whitespace_pattern", unsupported_constraint},
    {"disable_any_whitespace", unsupported_flag},
    {"disable_additional_properties", unsupported_flag},
};

Read<Constraint> structured_constraint(const Field& field) {
  TRY(check_object(field));
  return TRY(read_members(field, kStructured)).constraint;
}

// ------------------------------------------------------------------------------- response_format

/// Reads the schema of json_schema in OpenAI's form, {"name", "schema", "strict"}.
Read<Constraint> named_schema(const Field& named) {
  TRY(check_object(named));
  const Field schema = named["schema"];
  if (!schema.is_object())
    return schema.refuse(fmt::format("{} is missing; send a JSON schema", schema.path()));
  return schema_constraint(schema, TRY(flag_of(named["strict"], false)));
}

/// OpenAI nests the schema in `json_schema`, and Hugging Face in `value`. llama.cpp and
/// /v1/responses have the schema beside the type.
Read<Constraint> schema_format(const Field& format) {
  const Field value = format["value"];
  if (value && value["schema"]) return named_schema(value);
  if (value) return json_constraint(value);
  if (!format["json_schema"] && format["schema"]) return named_schema(format);
  const Field named = format["json_schema"];
  if (!named) return named.refuse("response_format/json_schema is missing; send a JSON schema");
  return named_schema(named);
}

constexpr Spelling kObjectSchemas[] = {{"schema", json_constraint}, {"value", json_constraint}};

/// Any JSON object, or an object that a schema accepts.
Read<Constraint> object_format(const Field& format) {
  const Found found = TRY(read_members(format, kObjectSchemas));
  return found.path.empty() ? Constraint{.format = {.type = "json_object"}} : found.constraint;
}

/// Reads the format's text from its member `value` or `key`.
Read<Constraint> text_format(const Field& format, const char* key, ReadValue read) {
  const Field value = format[format["value"] ? "value" : key];
  if (!value) return value.refuse(fmt::format("{} is missing; send a text", value.path()));
  Constraint constraint = TRY(read(value));
  if (constraint.is_none()) return value.refuse(fmt::format("{} is empty", value.path()));
  return constraint;
}

Read<Constraint> format_constraint(const Field& format) {
  TRY(check_object(format));
  const Field type = format["type"];
  const std::string name = TRY(text_of(type, {}));
  if (name == "text") return Constraint{};
  if (name == "json_object" || name == "json") return object_format(format);
  if (name == "json_schema") return schema_format(format);
  if (name == "regex") return text_format(format, "pattern", regex_constraint);
  if (name == "grammar") return text_format(format, "grammar", grammar_constraint);
  return type.refuse(
      fmt::format("{} is text, json_object, json_schema, regex or grammar", type.path()));
}

// ------------------------------------------------------------------------------------ the body

constexpr Spelling kSpellings[] = {
    {"response_format", format_constraint},
    {"structured_outputs", structured_constraint},
    {"guided_json", json_constraint},
    {"guided_regex", regex_constraint},
    {"guided_choice", choice_constraint},
    {"guided_grammar", grammar_constraint},
    {"guided_json_object", object_constraint},
    {"grammar", grammar_constraint},
    {"json_schema", json_constraint},
    {"regex", regex_constraint},
    {"ebnf", grammar_constraint},
};

constexpr auto kSpelledNames = [] {
  std::array<const char*, std::size(kSpellings)> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kSpellings[i].key;
  return names;
}();

}  // namespace

std::span<const char* const> constraint_fields() {
  return kSpelledNames;
}

Read<ConstraintPaths> read_constraint(const BodyFields& body, wire::Sampling& out) {
  std::vector<std::pair<Field, ReadValue>> fields;
  for (const Spelling& spelling : kSpellings)
    fields.emplace_back(body[spelling.key], spelling.read);
  Found found = TRY(read_one(std::move(fields)));
  out.response_format = std::move(found.constraint.format);
  out.grammar = std::move(found.constraint.grammar);
  out.regex = std::move(found.constraint.regex);
  return ConstraintPaths{std::move(found.path), std::move(found.constraint.schema_path)};
}

}  // namespace leasehold::http
