// Filters over lists, dicts and other iterable values.
#include <algorithm>
#include <unordered_set>

#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/operators.hpp"
#include "worker/text/chat/jinja/text_operations.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

/// The sort key of an element: the element or a part of it; texts in lower case unless
/// case_sensitive.
struct Key {
  Value path = Value(None{});
  bool case_sensitive = false;

  Result<Value> of(Runtime& runtime, const Value& element) const {
    Value value = path.is_none() ? element : TRY(element_by_path(runtime, element, path));
    if (case_sensitive || !value.is_text()) return value;
    return convert_case(runtime, *value.as_marked_text(), Case::Lower);
  }
};

struct Keyed {
  Value key;
  Value element;
};

Result<std::vector<Keyed>> keyed(Runtime& runtime, const Value& subject, const Key& key) {
  std::vector<Value> elements = TRY(runtime.elements(subject));
  std::vector<Keyed> out;
  for (Value& element : elements) {
    Value its_key = TRY(key.of(runtime, element));
    out.push_back({std::move(its_key), std::move(element)});
  }
  return out;
}

/// Sorts by merging, because a comparison may fail, which std::sort cannot report.
Result<void> sort_keyed(Runtime& runtime, std::vector<Keyed>& items, bool reverse) {
  std::vector<Keyed> merged(items.size());
  for (std::size_t width = 1; width < items.size(); width *= 2) {
    for (std::size_t start = 0; start < items.size(); start += 2 * width) {
      std::size_t left = start, right = std::min(start + width, items.size());
      const std::size_t middle = right, end = std::min(start + 2 * width, items.size());
      for (std::size_t out = start; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const Value &one = items[left].key, &other = items[right].key;
          take_right =
              reverse ? TRY(is_less(runtime, one, other)) : TRY(is_less(runtime, other, one));
        }
        merged[out] = std::move(items[take_right ? right++ : left++]);
      }
    }
    std::swap(items, merged);
  }
  return {};
}

Result<Value> sorted(Runtime& runtime, const Value& subject, const Key& key, bool reverse) {
  std::vector<Keyed> items = TRY(keyed(runtime, subject, key));
  TRY(sort_keyed(runtime, items, reverse));
  std::vector<Value> out;
  for (Keyed& item : items) out.push_back(std::move(item.element));
  return runtime.list(std::move(out));
}

Result<Value> sort(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Key key{.path = given.value(2), .case_sensitive = given.flag(1)};
  return sorted(runtime, subject, key, given.flag(0));
}

Result<Value> pairs_of(Runtime& runtime, const Value& subject) {
  if (subject.is_undefined()) return runtime.list({});
  const Dict* dict = subject.as_dict();
  if (dict == nullptr) {
    return runtime.bad_request(fmt::format("expected a mapping, got '{}'", subject.type_name()));
  }
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict->entries())
    pairs.push_back(TRY(runtime.tuple({key, value})));
  return runtime.list(std::move(pairs));
}

Result<Value> items(Runtime& runtime, const Value& subject, const BoundArguments&) {
  return pairs_of(runtime, subject);
}

Result<Value> dictsort(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Value by = given.value(1, Value::text("key"));
  if (subject.is_undefined())
    return attribute_of(runtime, subject, "items");  // reports the undefined value
  const std::string what = TRY(require_text(runtime, "the argument `by` of dictsort", by));
  if (what != "key" && what != "value")
    return runtime.bad_request("dictsort sorts by 'key' or 'value'");
  const Key key{.path = Value(std::int64_t{what == "key" ? 0 : 1}),
                .case_sensitive = given.flag(0)};
  return sorted(runtime, TRY(pairs_of(runtime, subject)), key, given.flag(2));
}

Result<bool> contains(Runtime& runtime, const std::vector<Value>& values, const Value& wanted) {
  for (const Value& value : values)
    if (TRY(are_equal(runtime, value, wanted))) return true;
  return false;
}

/// Texts are found by their hash; the other keys of a list are few.
Result<Value> unique(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Key key{.path = given.value(1), .case_sensitive = given.flag(0)};
  std::unordered_set<std::string> texts;
  std::vector<Value> others, out;
  for (Keyed& item : TRY(keyed(runtime, subject, key))) {
    if (const std::string* text = item.key.as_text()) {
      TRY(runtime.charge_bytes(text->size()));
      if (texts.insert(*text).second) out.push_back(std::move(item.element));
      continue;
    }
    if (TRY(contains(runtime, others, item.key))) continue;
    others.push_back(std::move(item.key));
    out.push_back(std::move(item.element));
  }
  return runtime.list(std::move(out));
}

template <bool largest>
Result<Value> min_or_max(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Key key{.path = given.value(1), .case_sensitive = given.flag(0)};
  std::optional<Keyed> best;
  for (Keyed& item : TRY(keyed(runtime, subject, key))) {
    const bool better = !best || (largest ? TRY(is_less(runtime, best->key, item.key))
                                          : TRY(is_less(runtime, item.key, best->key)));
    if (better) best = std::move(item);
  }
  return best ? best->element : Value::undefined("min and max of an empty sequence are undefined");
}

Result<Value> sum(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Value path = given.value(0);
  Value total = given.value(1, Value(std::int64_t{0}));
  for (const Value& element : TRY(runtime.elements(subject))) {
    const Value part = path.is_none() ? element : TRY(element_by_path(runtime, element, path));
    total = TRY(arithmetic(runtime, "+", total, part));
  }
  return total;
}

Result<Value> length(Runtime& runtime, const Value& subject, const BoundArguments&) {
  const auto number = [](std::size_t size) { return Value(static_cast<std::int64_t>(size)); };
  if (const std::string* text = subject.as_text()) return number(count_characters(*text));
  if (const List* list = subject.as_list()) return number(list->items.size());
  if (const Dict* dict = subject.as_dict()) return number(dict->entries().size());
  if (subject.is_undefined()) return number(0);
  return runtime.bad_request(fmt::format("'{}' has no length", subject.type_name()));
}

template <bool first>
Result<Value> first_or_last(Runtime& runtime, const Value& subject, const BoundArguments&) {
  const auto end_of = [](const std::vector<Value>& elements) {
    if (elements.empty()) return Value::undefined("the sequence is empty");
    return first ? elements.front() : elements.back();
  };
  if (const List* several = subject.as_list()) return end_of(several->items);
  return end_of(TRY(runtime.elements(subject)));
}

Result<Value> list(Runtime& runtime, const Value& subject, const BoundArguments&) {
  return runtime.list(TRY(runtime.elements(subject)));
}

Result<Value> reverse(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Value none(None{});
  const SliceBounds backwards{.start = none, .stop = none, .step = Value(std::int64_t{-1})};
  if (subject.is_text()) return slice(runtime, subject, backwards);
  const Value elements = TRY(list(runtime, subject, given));
  return slice(runtime, elements, backwards);
}

/// The arguments without the first `count` positional ones.
Arguments arguments_after(const Arguments& given, std::size_t count) {
  Arguments rest = given;
  const std::size_t taken = std::min(count, rest.positional.size());
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(taken));
  return rest;
}

Result<Value> map(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  if (!subject.is_truthy()) return runtime.list({});  // as Jinja does: `none | map(...)` is empty
  std::vector<Value> out = TRY(runtime.elements(subject));
  if (given.all.positional.empty()) {
    Parameters parameters("map", given.all);
    const Value path = parameters.next("attribute");
    const Value fallback = parameters.next("default");
    TRY(parameters.done(runtime));
    if (path.is_none()) return runtime.bad_request("map needs a filter or an attribute");
    for (Value& element : out) element = TRY(element_by_path(runtime, element, path, fallback));
    return runtime.list(std::move(out));
  }
  const std::string filter = TRY(require_text(runtime, "map", given.all.positional.front()));
  const Arguments rest = arguments_after(given.all, 1);
  for (Value& element : out) element = TRY(apply_filter(runtime, filter, element, rest));
  return runtime.list(std::move(out));
}

/// select, reject, selectattr, rejectattr. Without a test, the truth of an element decides.
template <bool by_attribute, bool wanted>
Result<Value> select_items(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  constexpr std::size_t kTestIndex = by_attribute ? 1 : 0;
  if (!subject.is_truthy()) return runtime.list({});  // as Jinja does, also for none
  if (given.all.positional.size() < kTestIndex)
    return runtime.bad_request("the name of an attribute is missing");
  std::string test;
  if (given.all.positional.size() > kTestIndex) {
    test = TRY(require_text(runtime, "the name of a test", given.all.positional[kTestIndex]));
  }
  const Arguments rest = arguments_after(given.all, kTestIndex + 1);
  std::vector<Value> out;
  for (const Value& element : TRY(runtime.elements(subject))) {
    TRY(runtime.charge(1));
    const Value judged =
        by_attribute ? TRY(element_by_path(runtime, element, given.all.positional[0])) : element;
    const bool holds =
        test.empty() ? judged.is_truthy() : TRY(apply_test(runtime, test, judged, rest));
    if (holds == wanted) out.push_back(element);
  }
  return runtime.list(std::move(out));
}

constexpr Builtin<Filter> kListFilters[] = {
    {"count", length},
    {"dictsort", dictsort, {"case_sensitive", "by", "reverse"}},
    {"first", first_or_last<true>},
    {"items", items},
    {"last", first_or_last<false>},
    {"length", length},
    {"list", list},
    {"map", map, kAnyArguments},
    {"max", min_or_max<true>, {"case_sensitive", "attribute"}},
    {"min", min_or_max<false>, {"case_sensitive", "attribute"}},
    {"reject", select_items<false, false>, kAnyArguments},
    {"rejectattr", select_items<true, false>, kAnyArguments},
    {"reverse", reverse},
    {"select", select_items<false, true>, kAnyArguments},
    {"selectattr", select_items<true, true>, kAnyArguments},
    {"sort", sort, {"reverse", "case_sensitive", "attribute"}},
    {"sum", sum, {"attribute", "start"}},
    {"unique", unique, {"case_sensitive", "attribute"}},
};

}  // namespace

const Builtin<Filter>* find_list_filter(std::string_view name) {
  return find_builtin(kListFilters, name);
}

}  // namespace leasehold::jinja
