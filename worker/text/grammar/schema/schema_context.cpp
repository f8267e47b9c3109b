#include "worker/text/grammar/schema/schema_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/cli/print_error.hpp"
#include "common/ordered_json.hpp"
#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr int kMaxSchemaDepth = 64;
constexpr std::size_t kMaxPathBytes = 120;

/// The text of the member, or an empty text if the member is not a string.
std::string text_member(const OrderedJson& schema, const char* key) {
  const auto found = schema.find(key);
  return found != schema.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Resolves percent escapes: "%24defs" is "$defs".
std::string without_percent_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) && hex(text[i + 2]);
    plain += escaped ? static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16))
                     : text[i];
    if (escaped) i += 2;
  }
  return plain;
}

const OrderedJson* part_at(const OrderedJson& resource, const std::string& pointer) {
  try {
    const OrderedJson::json_pointer at(pointer);
    return resource.contains(at) ? &resource.at(at) : nullptr;
  } catch (const nlohmann::json::exception&) {
    return nullptr;
  }
}

}  // namespace

/// Checks depth after parsing: the library's callback takes quadratic time.
Result<SchemaContext> SchemaContext::parse(std::string_view text, bool strict, WorkBudget& work) {
  auto root = parse_ordered_json(text);
  if (!root) return fail(Errc::BadRequest, "JSON schema: " + root.error().detail);
  if (!nests_deeper_than(kMaxSchemaDepth, *root))
    return SchemaContext(*std::move(root), strict, work);
  return fail(Errc::BadRequest,
              fmt::format("JSON schema: nested deeper than {} levels", kMaxSchemaDepth));
}

SchemaContext::SchemaContext(OrderedJson root, bool strict, WorkBudget& work)
    : root_(std::make_unique<OrderedJson>(std::move(root))), strict_(strict), work_(&work) {
  index_parts(*root_, {.parent = nullptr, .resource = root_.get(), .key = {}});
}

void SchemaContext::index_parts(const OrderedJson& part, const Place& place) {
  Place here = place;
  if (part.is_object()) {
    const bool is_resource =
        !text_member(part, "$id").empty() || text_member(part, "id").contains(':');
    if (is_resource) here.resource = &part;
  }
  places_.emplace(&part, here);
  if (part.is_object()) add_names(part, *here.resource);
  if (!part.is_structured()) return;
  for (const auto& [key, child] : part.items())
    index_parts(child, {.parent = &part, .resource = here.resource, .key = key});
}

void SchemaContext::add_names(const OrderedJson& schema, const OrderedJson& resource) {
  for (const char* key : {"$id", "id"}) {
    std::string name = text_member(schema, key);
    if (name.ends_with('#')) name.pop_back();
    if (!name.empty()) add_name(schema, resource, name);
  }
  const std::string anchor = text_member(schema, "$anchor");
  if (!anchor.empty()) add_name(schema, resource, fmt::format("#{}", anchor));
}

/// Makes the name known in its resource and in all enclosing ones, except where the name is known
/// already. So two resources may use the same names.
void SchemaContext::add_name(const OrderedJson& schema, const OrderedJson& resource,
                             const std::string& name) {
  for (const OrderedJson* in = &resource; in != nullptr; in = outer_resource(*in))
    by_name_.emplace(ScopedName{in, name}, &schema);
}

/// The resource around `resource`; null for the root.
const OrderedJson* SchemaContext::outer_resource(const OrderedJson& resource) const {
  const OrderedJson* parent = places_.at(&resource).parent;
  return parent == nullptr ? nullptr : places_.at(parent).resource;
}

/// The part that the name refers to in this schema; of several, the nearest.
const OrderedJson* SchemaContext::named(const OrderedJson& schema, const std::string& name) const {
  for (const OrderedJson* in = places_.at(&schema).resource; in != nullptr;
       in = outer_resource(*in))
    if (const auto found = by_name_.find({in, name}); found != by_name_.end()) return found->second;
  return nullptr;
}

std::string SchemaContext::path_of(const OrderedJson& part) const {
  std::string path;
  const OrderedJson* at = &part;
  for (auto place = places_.find(at); place != places_.end() && place->second.parent != nullptr;
       place = places_.find(at)) {
    const std::string& key = place->second.key;
    if (path.size() + key.size() > kMaxPathBytes) return fmt::format("#/…{}", path);
    path = fmt::format("/{}{}", printable(key), path);
    at = place->second.parent;
  }
  return fmt::format("#{}", path);
}

std::unexpected<Error> SchemaContext::error(const OrderedJson& part,
                                            const std::string& what) const {
  return fail(Errc::BadRequest, fmt::format("JSON schema, {}: {}", path_of(part), what));
}

Result<void> SchemaContext::spend(const OrderedJson& part, std::size_t steps) {
  if (work_->take(steps)) return {};
  return too_much_work(part);
}

std::unexpected<Error> SchemaContext::too_much_work(const OrderedJson& part) const {
  return error(part, fmt::format("compiling takes more than {} steps up to here; make this part "
                                 "smaller",
                                 WorkBudget::kMaxCompileSteps));
}

const OrderedJson* SchemaContext::find(const OrderedJson& object, const std::string& name) {
  if (!object.is_object()) return nullptr;
  const auto [members, is_new] = members_.try_emplace(&object);
  if (is_new)
    for (auto entry = object.begin(); entry != object.end(); ++entry)
      members->second.emplace(entry.key(), &*entry);
  const auto found = members->second.find(name);
  return found == members->second.end() ? nullptr : found->second;
}

Result<const OrderedJson*> SchemaContext::target(const OrderedJson& schema) {
  const OrderedJson& ref = schema.at("$ref");
  if (!ref.is_string()) return error(ref, "expected \"#\" or \"#/…\"");
  const std::string text = ref.get<std::string>();
  const std::size_t hash = std::min(text.find('#'), text.size());
  const std::string base = text.substr(0, hash);
  const std::string fragment = without_percent_escapes(std::string_view(text).substr(hash));
  const OrderedJson* resource = places_.at(&schema).resource;
  if (!base.empty()) {
    resource = named(schema, base);
    if (resource == nullptr) {
      if (strict_)
        return strict_error(ref,
                            fmt::format("there is no '{}' in this document; refer to a part of it, "
                                        "such as \"#/$defs/…\"",
                                        text));
      add_unchecked(schema, fmt::format("'$ref' \"{}\"", printable_excerpt(text)));
      return nullptr;
    }
  }
  if (fragment.size() <= 1) return resource;
  const bool is_pointer = fragment[1] == '/';
  const OrderedJson* part = is_pointer ? part_of(*resource, fragment.substr(1))
                                       : named(base.empty() ? schema : *resource, fragment);
  if (part != nullptr) return part;
  return error(ref, fmt::format("there is no '{}' in this document", text));
}

/// Also tries the enclosing resources, because many documents write pointers within a resource as
/// pointers from the enclosing document.
const OrderedJson* SchemaContext::part_of(const OrderedJson& resource,
                                          const std::string& pointer) const {
  for (const OrderedJson* in = &resource; in != nullptr; in = outer_resource(*in))
    if (const OrderedJson* part = part_at(*in, pointer)) return part;
  return nullptr;
}

Result<void> SchemaContext::refuse_unenforceable(const OrderedJson& schema,
                                                 const std::string& keyword) {
  if (strict_)
    return strict_error(schema,
                        fmt::format("'{}' is not supported: no grammar can promise it", keyword));
  add_unchecked(schema, fmt::format("'{}'", keyword));
  return {};
}

void SchemaContext::add_unchecked(const OrderedJson& schema, const std::string& what) {
  if (!noted_.emplace(&schema, what).second) return;
  if (unchecked_.listed.size() < UncheckedParts::kMaxListed) {
    unchecked_.listed.push_back(fmt::format("{}: {}", path_of(schema), what));
  } else {
    ++unchecked_.omitted;
  }
}

}  // namespace leasehold
