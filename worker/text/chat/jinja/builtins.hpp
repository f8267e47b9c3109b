/// The built-in filters, tests, methods and global functions; README.md lists them.
///
/// Names are looked up when they are used, so an unknown filter in a branch that is not taken is
/// not an error.
#pragma once

#include <array>
#include <string_view>

#include "worker/text/chat/jinja/runtime.hpp"

namespace leasehold::jinja {

/// The names of a built-in's parameters, in order. The unused ones at the end are empty.
using ParameterNames = std::array<std::string_view, 4>;
/// For a built-in that reads its arguments itself.
inline constexpr ParameterNames kAnyArguments = {"*"};

/// The arguments of a call, in the order of the built-in's parameters.
struct BoundArguments {
  const Arguments& all;
  std::array<const Value*, 4> values{};  ///< Null for a missing argument.

  Value value(std::size_t i, Value fallback = Value(None{})) const {
    return values[i] != nullptr ? *values[i] : fallback;
  }
  bool flag(std::size_t i) const { return values[i] != nullptr && values[i]->is_truthy(); }
};

using Filter = Result<Value> (*)(Runtime&, const Value& subject, const BoundArguments&);
using Test = Result<bool> (*)(Runtime&, const Value& subject, const BoundArguments&);

template <class Function>
struct Builtin {
  std::string_view name;
  Function function;
  ParameterNames parameters{};
};

/// Returns null for an unknown name.
template <class Function, std::size_t count>
const Builtin<Function>* find_builtin(const Builtin<Function> (&rows)[count],
                                      std::string_view name) {
  for (const Builtin<Function>& row : rows)
    if (row.name == name) return &row;
  return nullptr;
}

/// Errors: BadRequest for an argument that the built-in does not take.
Result<BoundArguments> bind_arguments(const Runtime& runtime, std::string_view callee,
                                      const ParameterNames& parameters, const Arguments& given);

/// Errors: UnsupportedModel for an unknown name; those of the filter or test.
Result<Value> apply_filter(Runtime& runtime, std::string_view name, const Value& subject,
                           const Arguments& arguments);
Result<bool> apply_test(Runtime& runtime, std::string_view name, const Value& subject,
                        const Arguments& arguments);

/// Return null for an unknown name.
const Builtin<Filter>* find_text_filter(std::string_view name);
const Builtin<Filter>* find_list_filter(std::string_view name);
const Builtin<Filter>* find_number_filter(std::string_view name);

/// The method `value.name` of a text, dict or list; undefined if there is none.
Result<Value> method_of(Runtime& runtime, const Value& value, std::string_view name);

/// A method of text such as str.strip; null for an unknown name.
using Method = Filter;
const Builtin<Method>* find_text_method(std::string_view name);

/// Returns `value.name`: a method, otherwise an entry of a dict, or an attribute of a namespace or
/// of `loop`.
Result<Value> attribute_of(Runtime& runtime, const Value& value, std::string_view name);
/// Returns `value[index]`: an element or entry, otherwise an attribute.
Result<Value> element_of(Runtime& runtime, const Value& value, const Value& index);
/// Follows a path such as `a.b.0`, as the filters map and sort do. A `fallback` other than none
/// replaces the result of each undefined step.
Result<Value> element_by_path(Runtime& runtime, const Value& value, const Value& path,
                              const Value& fallback = Value(None{}));

/// One of range, dict, namespace, raise_exception and strftime_now; undefined for other names.
Result<Value> global_function(Runtime& runtime, std::string_view name);

}  // namespace leasehold::jinja
