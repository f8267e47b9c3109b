/// What templates find there: filters, tests, methods of values, global functions. README.md lists
/// them.
///
/// A name is looked up when it is used: a template that mentions an unknown filter in a branch
/// nobody takes works.
#pragma once

#include <optional>
#include <string_view>

#include "worker/text/chat/jinja/runtime.hpp"

namespace leasehold::jinja {

using Filter = Result<Value> (*)(Runtime&, const Value& subject, const Arguments&);
using Test = Result<bool> (*)(Runtime&, const Value& subject, const Arguments&);
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
struct NamedTest {
  std::string_view name;
  Test test;
};

/// Errors: UnsupportedModel for a name that is not known, and those of the filter or test.
Result<Value> apply_filter(Runtime& runtime, std::string_view name, const Value& subject,
                           const Arguments& arguments);
Result<bool> apply_test(Runtime& runtime, std::string_view name, const Value& subject,
                        const Arguments& arguments);

/// Null for a name not in the table.
Filter find_text_filter(std::string_view name);
Filter find_list_filter(std::string_view name);
Filter find_number_filter(std::string_view name);

/// `value.name` where that is a method of text, dict or list; undefined where it is none.
Result<Value> method_of(Runtime& runtime, const Value& value, std::string_view name);

/// A method called: str.strip and so on. Nothing when there is no such method.
using Method = Result<Value> (*)(Runtime&, const Value& self, const Arguments&);
struct NamedMethod {
  std::string_view name;
  Method method;
};
Method find_text_method(std::string_view name);

/// `value.name`: a method, or else an entry of a dict, an attribute of a namespace or of `loop`.
Result<Value> attribute_of(Runtime& runtime, const Value& value, std::string_view name);
/// `value[index]`: an element or entry, or else an attribute.
Result<Value> element_of(Runtime& runtime, const Value& value, const Value& index);
/// `a.b.0` as the filters map, sort and so on read it. A `fallback` other than none replaces each
/// undefined step.
Result<Value> element_by_path(Runtime& runtime, const Value& value, const Value& path,
                              const Value& fallback = Value(None{}));

/// range, dict, namespace, raise_exception, strftime_now; undefined for another name.
/// `now_unix_s` is what strftime_now tells, in UTC.
Result<Value> global_function(Runtime& runtime, std::string_view name, std::int64_t now_unix_s);

}  // namespace leasehold::jinja
