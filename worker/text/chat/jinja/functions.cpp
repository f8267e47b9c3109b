// Global functions: range, dict, namespace, raise_exception, strftime_now.
#include <algorithm>
#include <ctime>

#include "common/cli/printable_line.hpp"
#include "common/utf8.hpp"
#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/text_operations.hpp"

namespace leasehold::jinja {
namespace {

constexpr std::size_t kMaxDateBytes = 1024;
constexpr std::size_t kMaxRefusalBytes = 1024;

Result<Value> range(Runtime& runtime, const BoundArguments& given) {
  std::vector<std::int64_t> bounds;
  for (const Value& bound : given.all.positional)
    bounds.push_back(TRY(require_integer(runtime, "range", bound)));
  if (bounds.empty() || bounds.size() > 3 || !given.all.named.empty()) {
    return runtime.bad_request("range takes a stop, or a start, a stop and a step");
  }
  const std::int64_t start = bounds.size() == 1 ? 0 : bounds[0];
  const std::int64_t stop = bounds.size() == 1 ? bounds[0] : bounds[1];
  const std::int64_t step = bounds.size() == 3 ? bounds[2] : 1;
  if (step == 0) return runtime.bad_request("the step of range is zero");
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (std::cmp_greater_equal(items.size(), runtime.limits().range_items)) {
      return runtime.unsupported(fmt::format("range() of more than {} numbers is not supported",
                                             runtime.limits().range_items));
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return runtime.list(std::move(items));
}

/// The entries of dict(…) and namespace(…): those of the mapping argument, then named arguments.
Result<std::vector<Dict::Entry>> entries_given(Runtime& runtime, const Arguments& given) {
  std::vector<Dict::Entry> entries;
  if (given.positional.size() > 1)
    return runtime.bad_request("dict and namespace take one mapping");
  if (!given.positional.empty()) {
    const Dict* dict = given.positional[0].as_dict();
    if (dict == nullptr)
      return runtime.unsupported("dict() of a value that is not a mapping is not supported");
    TRY(runtime.charge(dict->entries().size()));
    entries = dict->entries();
  }
  for (const auto& [name, value] : given.named) {
    const auto same = std::ranges::find_if(entries, [&](const Dict::Entry& entry) {
      return entry.first.is_text() && *entry.first.as_text() == name;
    });
    TRY(runtime.charge(1 + entries.size() / 8));
    if (same != entries.end()) {
      same->second = value;
    } else {
      entries.emplace_back(Value::text(name), value);
    }
  }
  return entries;
}

Result<Value> make_namespace(Runtime& runtime, const BoundArguments& given) {
  const auto entries = TRY(entries_given(runtime, given.all));
  TRY(runtime.charge(16 + entries.size()));
  Value space = runtime.make_namespace();
  for (const auto& [key, value] : entries) {
    const std::string name = TRY(require_text(runtime, "the name of an attribute", key));
    (*space.get<NamespaceRef>())->attributes[name] = value;
  }
  return space;
}

Result<Value> raise_exception(Runtime& runtime, const BoundArguments& given) {
  const auto text = TRY(to_text(runtime, given.value(0)));
  return fail(Errc::BadRequest, fmt::format("the model's chat template refuses these messages: {}",
                                            printable_line(text.bytes(), kMaxRefusalBytes)));
}

Result<Value> strftime_now(Runtime& runtime, const BoundArguments& given) {
  const std::string format = TRY(require_text(runtime, "strftime_now", given.value(0)));
  const std::time_t now = runtime.now_unix_s();
  std::tm date{};
  if (::gmtime_r(&now, &date) == nullptr) return runtime.bad_request("the clock is out of range");
  char text[kMaxDateBytes];
  // The added dot distinguishes an empty result from one that is too long.
  const std::size_t size = std::strftime(text, sizeof(text), (format + ".").c_str(), &date);
  if (size == 0) return runtime.bad_request("the date is longer than 1023 bytes");
  return runtime.text(std::string(text, size - 1));
}

Result<Value> make_dict(Runtime& runtime, const BoundArguments& given) {
  return runtime.dict(TRY(entries_given(runtime, given.all)));
}

using Function = Result<Value> (*)(Runtime&, const BoundArguments&);

constexpr Builtin<Function> kFunctions[] = {{"dict", make_dict, kAnyArguments},
                                            {"namespace", make_namespace, kAnyArguments},
                                            {"raise_exception", raise_exception, {"message"}},
                                            {"range", range, kAnyArguments},
                                            {"strftime_now", strftime_now, {"format"}}};

}  // namespace

Result<Value> global_function(Runtime& runtime, std::string_view name) {
  const Builtin<Function>* found = find_builtin(kFunctions, name);
  if (found == nullptr)
    return Value::undefined(fmt::format("'{}' is undefined", printable_excerpt(name)));
  return runtime.callable(Value(), [&runtime, found](const Arguments& given) -> Result<Value> {
    return found->function(runtime,
                           TRY(bind_arguments(runtime, found->name, found->parameters, given)));
  });
}

}  // namespace leasehold::jinja
